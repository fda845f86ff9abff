//===- lib/program/forms/RowRepeat.h - rows that repeat ---------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
// A step may have any number of rows. The number n of its shards divides both
// the number of rows and the number N of replicas:
//
//     n = gcd(N, rows)
//
// The batch is repeated N/n times before it is split, so replica i computes
// shard i mod n. If N divides the rows, n is N and no row is repeated. All
// numbers that depend on n are looked up in tables, by the rest of rows / N:
//
//     rows  = GatherV2(Shape(x), axis, 0)
//     rest  = FloorMod(rows, N)
//     times = GatherV2(table, rest, 0)              [N/n, 1]
//     x/split = _ToReplicas(x, times)               Split(Tile(x, times))
//     f     = GatherV2(table of T, rest, 0)         n^power * (n/N)^share
//     s     = _Scale(v, f) power share              Mul(v, f)
//     c     = _FromReplicas(y, upto) concat         StridedSlice(all, 0, upto)
//     c     = StridedSlice*(all, 0, upto, 1)
//
// Here `all` is the concatenation of the replicas' rows; in the last line, it
// is CollectiveGather*(y). `upto` is the number of rows of y in the
// single-device step. If a feed has u rows for each row of the batch, `rest` is
// computed from rows/u.
//
//===----------------------------------------------------------------------===//

#ifndef GRAFT_LIB_PROGRAM_FORMS_ROWREPEAT_H
#define GRAFT_LIB_PROGRAM_FORMS_ROWREPEAT_H

#include "lib/graph/Graph.h"

#include <optional>
#include <string>
#include <utility>

namespace graft {

/// Returns the AttrValue of a table of multiples, for a tensor of rank \p Rank
/// that is split along \p Axis.
std::string timesTable(unsigned Replicas, unsigned Rank, unsigned Axis);

/// Returns the AttrValue of a table of factors of type \p Type: n^Power for
/// each of \p Powers, times (n/N)^Share. A table of one power has one
/// axis. An integer is divided instead of multiplied if the factor is less than
/// 1 (isScaleDivision).
std::string scaleTable(unsigned Replicas, unsigned Type,
                       llvm::ArrayRef<int64_t> Powers, int64_t Share);

/// Returns true if a tensor of \p Type is divided by the factors of
/// scaleTable().
bool isScaleDivision(unsigned Type, int64_t Power, int64_t Share);

/// A lookup in a table by the rest of a number of rows.
struct RowLookup {
  NodeId Table = NoNode;
  Endpoint Rest;
};
std::optional<RowLookup> rowLookup(const Graph &G, Endpoint E);

/// Returns true if input \p I of the inserted node \p N depends only on the row
/// count of a feed: it is a number of shards or of rows. Input 0 of \p N
/// depends on that feed, too. Returns false for a split that followsOther(),
/// because a run may feed a tensor between that feed and input 0.
bool isRowOperand(const Graph &G, NodeId N, unsigned I);

/// Returns the CollectiveGather of which \p N keeps the first rows, or NoNode
/// if \p N is no such node.
NodeId keptMember(const Graph &G, NodeId N);

/// Returns the axis along which \p Slice, a StridedSlice, keeps the elements
/// before operand 2 and all elements along the axes before it. Returns nothing
/// if it keeps others.
std::optional<unsigned> keptAxis(const Graph &G, NodeId Slice);

/// Returns true if \p E is output 0 of an op \p Op with \p NumData operands
/// that waits for no node.
bool isFreeOp(const Graph &G, Endpoint E, llvm::StringRef Op, unsigned NumData);

/// Returns the vector from which \p E takes an element by a GatherV2 with a
/// constant index, and the index. Returns nothing if \p E is no such element.
std::optional<std::pair<Endpoint, int64_t>> takenElement(const Graph &G,
                                                         Endpoint E);

/// The size of a tensor along an axis, as the graph reads it.
struct RowCount {
  Endpoint Of;
  int64_t Axis = 0;
  bool operator==(const RowCount &O) const = default;
};
std::optional<RowCount> rowCount(const Graph &G, Endpoint E);

/// Returns the powers that the attributes of the `_Scale` \p N state.
llvm::SmallVector<int64_t, 4> statedPowers(const Graph &G, NodeId N);

/// A number of rows, modulo the number of replicas.
struct RowRest {
  Endpoint Of;      ///< The tensor that has the rows, or the number itself.
  int64_t Axis = 0; ///< The axis of the rows; -1: a number is fed.
  int64_t Unit = 1; ///< The rows for each row of the batch.
  Endpoint Units;   ///< The number of rows, divided by Unit.
  int64_t Replicas = 0;
};
std::optional<RowRest> rowRest(const Graph &G, Endpoint Rest,
                               unsigned Replicas);

/// Returns true if \p Split, a `_ToReplicas`, repeats its rows as often as the
/// rows of another tensor.
bool followsOther(const Graph &G, NodeId Split);

/// Finds the powers and the share with which scaleTable() makes the table of \p
/// Lookup. The `_Scale` has type \p Type, and divides if \p Divides. Returns
/// nothing if there are none.
struct ScalePowers {
  llvm::SmallVector<int64_t, 4> Powers;
  int64_t Share = 0;
};
std::optional<ScalePowers> scalePowers(const Graph &G, const RowLookup &Lookup,
                                       unsigned Type, bool Divides,
                                       unsigned Replicas);

} // namespace graft

#endif // GRAFT_LIB_PROGRAM_FORMS_ROWREPEAT_H
