//===- lib/certify/forms/BatchNormCheck.h - check of batch norms ----------===//
//
// SPDX-License-Identifier: Apache-2.0
//
// Part of the certificate. A program may compute the statistics of a fused
// batch norm in plain ops (Inserted::Definition). The op, its gradient and the
// readers of the statistics then take these values. The required ops follow
// from the definition of the op, and not from the pass that made them. The
// check writes a tensor of the program as a term over tensors of the input.
// This term must equal, letter for letter, the term that defines the tensor of
// the input.
//
//===----------------------------------------------------------------------===//

#ifndef GRAFT_LIB_CERTIFY_FORMS_BATCHNORMCHECK_H
#define GRAFT_LIB_CERTIFY_FORMS_BATCHNORMCHECK_H

#include "lib/graph/InputGraph.h"

#include "llvm/ADT/SmallVector.h"

#include <string>
#include <vector>

namespace graft {

struct Comparison;

class BatchNormCheck {
public:
  /// Keeps a reference to \p C, in which nodes are already matched.
  explicit BatchNormCheck(const Comparison &C);

  /// Returns true if node \p I of the input is a batch norm in training, or the
  /// gradient of one, and the program's node takes the statistics as inputs.
  bool isRewritten(NodeId I) const;
  /// Returns true if attribute \p Key of node \p I may change because \p I is
  /// rewritten.
  bool mayChange(NodeId I, llvm::StringRef Key) const;
  /// Returns true if the program computes another value under the name of \p E,
  /// a tensor of the input. A definition then has the value of \p E.
  bool isHollow(Endpoint E) const {
    return isRewritten(E.Node) &&
           (isGradient(E.Node) ? E.Port == 0 : E.Port != 0);
  }
  /// Returns true if \p E of the program equals, by definition, the tensor \p
  /// Want of the input.
  bool means(Endpoint E, Endpoint Want) const;
  /// Returns true if input \p K of the rewritten node \p I may be \p E:
  /// statistics of the whole batch, a transposed operand, or an input that is
  /// then unused.
  bool givesStatistics(NodeId I, unsigned K, Endpoint E) const;

private:
  bool isGradient(NodeId I) const;
  NodeId forward(NodeId I) const;
  llvm::SmallVector<int64_t, 4> axes(NodeId I) const;
  bool channelsFirst(NodeId I) const {
    auto Axes = axes(I);
    return !Axes.empty() && Axes[1] != 1;
  }
  std::string attrs(NodeId P) const;
  std::string term(Endpoint E) const;
  /// Appends the term of \p E, of at most \p Budget nodes, to \p Text.
  void appendTerm(std::string &Text, Endpoint E, unsigned &Budget) const;
  std::string constant(NodeId P) const;
  std::string definition(Endpoint Want) const;

  const Comparison &C;
  const InputGraph &In;
  const Graph &G;
  const std::vector<NodeId> &ProgramOf;
};

} // namespace graft

#endif // GRAFT_LIB_CERTIFY_FORMS_BATCHNORMCHECK_H
