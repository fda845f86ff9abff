//===- lib/certify/forms/BatchNormCheck.h - is it the batch norm? -*- C++ -*-=//
//
// SPDX-License-Identifier: Apache-2.0
//
// Part of the certificate. A program may compute the statistics of a fused
// batch norm in plain ops (Inserted::Definition) and have the op, its gradient
// and the readers of the statistics take those. What these ops must be is
// written here, from the definition of the op and not from the pass that made
// them: a tensor of the program is written out as a term over tensors of the
// input, and must be, letter for letter, the term that the input's tensor is
// by definition.
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
  /// When \p C, which is kept, has found which node is which.
  explicit BatchNormCheck(const Comparison &C);

  /// Whether node \p I of the input trains, a batch norm or its gradient, and
  /// its node in the program takes statistics as given.
  bool isRewritten(NodeId I) const;
  /// Whether attribute \p Key of node \p I is another for that.
  bool mayChange(NodeId I, llvm::StringRef Key) const;
  /// Whether the program's node for that of \p E has another value than \p E,
  /// a tensor of the input, which is then a definition.
  bool isHollow(Endpoint E) const {
    return isRewritten(E.Node) &&
           (isGradient(E.Node) ? E.Port == 0 : E.Port != 0);
  }
  /// Whether \p E of the program is by definition the tensor \p Want of the
  /// input.
  bool means(Endpoint E, Endpoint Want) const;
  /// Whether input \p K of the rewritten node \p I may be \p E: the statistics
  /// of the whole batch, or what is not looked at with statistics given.
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
  /// The same behind \p Text, of at most \p Budget nodes.
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
