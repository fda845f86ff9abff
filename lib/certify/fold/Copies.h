//===- lib/certify/fold/Copies.h - copies in a lowered graph ----*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#ifndef GRAFT_LIB_CERTIFY_FOLD_COPIES_H
#define GRAFT_LIB_CERTIFY_FOLD_COPIES_H

#include "lib/graph/Graph.h"
#include "lib/support/Diagnostics.h"

#include <string>
#include <vector>

namespace graft {

/// A node of the program: its copies, or the one node.
struct CopyGroup {
  std::vector<NodeId> Copies; ///< By replica; NoNode: elided.
  NodeId Once = NoNode;
  std::string Base;
  uint32_t Split = 0;
  NodeId Program = NoNode; ///< Of the program that the groups fold to.
  NodeId Pick = NoNode;
  bool TakesName = false; ///< The one node is called as what copies are of.
  NodeId model() const { return Once != NoNode ? Once : Copies.back(); }
};

/// Checks what the program \p P that \p Groups of the lowered graph \p L fold
/// to does not show: attributes and seeds of the copies, devices, colocation,
/// and that no two variables have one name. \p In is the input graph.
bool checkCopies(const Graph &L, const Graph &In, const Graph &P,
                 llvm::ArrayRef<CopyGroup> Groups, DiagnosticEngine &Diags);

} // namespace graft

#endif // GRAFT_LIB_CERTIFY_FOLD_COPIES_H
