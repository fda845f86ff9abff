//===- lib/program/forms/RowWeight.h - weights of rows ----------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
// Workers may feed different numbers of rows. The mean over all rows is then
// not the mean of the workers' means. So each replica multiplies its value by
// the number of its rows, and the sum is divided by the number of all rows.
//
//     count = GatherV2*(Shape(x/split), axis, 0)
//     rows  = Cast*(count)              all = Cast(_FromReplicas(count) sum)
//     t     = Mul*(g, rows^k)           u   = RealDiv(s, all^k)
//
// A square is Mul(rows, rows), a cube Mul(Mul(rows, rows), rows), and so on.
//
// The elements of a vector of sizes are combined one by one. The attribute is 0
// on the Pack:
//
//     n = Pack(_FromReplicas(GatherV2*(v, 0, 0)) sum,
//              _FromReplicas(GatherV2*(v, 1, 0)) pick)
//
//===----------------------------------------------------------------------===//

#ifndef GRAFT_LIB_PROGRAM_FORMS_ROWWEIGHT_H
#define GRAFT_LIB_PROGRAM_FORMS_ROWWEIGHT_H

#include "lib/program/forms/RowRepeat.h"

#include <optional>
#include <utility>

namespace graft {

/// On the nodes t and u above: k. The attribute stays in outputs, since the ops
/// alone do not show the purpose of the nodes.
inline constexpr llvm::StringRef WeightAttr = "_graft_weight";

/// The operand by which a node multiplies or divides.
struct RowWeight {
  RowCount Rows;
  bool OfAll = false; ///< The number of the rows of all replicas.
  int64_t Power = 1;  ///< The k above.
};

/// Returns the vector v of each replica whose elements \p N combines one by
/// one, as above. Returns no node if \p N is no such Pack.
Endpoint sizesOf(const Graph &G, NodeId N);

/// Returns true if \p N, between t and u above, passes elements on unchanged.
bool passesWeightsOn(const Graph &G, NodeId N);

/// Returns the weight that \p E of a program computes, or nothing if \p E is no
/// weight.
std::optional<RowWeight> rowWeight(const Graph &G, Endpoint E);

/// Returns the two numbers of rows that the assertion of \p Gate compares, or
/// nothing if there is no such assertion.
std::optional<std::pair<RowCount, RowCount>> comparedRows(const Graph &G,
                                                          NodeId Gate);

/// Returns the two numbers of rows of which the assertion of \p Gate shows that
/// they are equal on each of \p Replicas replicas, or that all replicas have
/// the same two numbers. Returns nothing if there is no such assertion.
///
///     s = _FromReplicas(Pack*(a, a * a, b, b * b, (a - b) * (a - b))) sum
///     Assert((s[1] * N == s[0] * s[0] and s[3] * N == s[2] * s[2])
///            or s[4] == 0)
std::optional<std::pair<RowCount, RowCount>>
relatedRows(const Graph &G, NodeId Gate, unsigned Replicas);

} // namespace graft

#endif // GRAFT_LIB_PROGRAM_FORMS_ROWWEIGHT_H
