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

/// The lowered nodes of one node of the program: its copies, or the
/// unreplicated node.
struct CopyGroup {
  std::vector<NodeId> Copies; ///< By replica; NoNode: not written.
  NodeId Once = NoNode;
  std::string Base;
  uint32_t Split = 0;
  NodeId Program = NoNode; ///< The node of the folded program.
  NodeId Pick = NoNode;
  bool TakesName = false; ///< The name of Once is the base name of copies.
  NodeId model() const { return Once != NoNode ? Once : Copies.back(); }
};

/// Checks the properties of the lowered graph \p L that its folded program \p P
/// does not show: attributes, seeds, devices and colocation of copies. No two
/// variables may have the same name. \p Groups has the copies of each node; \p
/// In is the input graph.
bool checkCopies(const Graph &L, const Graph &In, const Graph &P,
                 llvm::ArrayRef<CopyGroup> Groups, DiagnosticEngine &Diags);

} // namespace graft

#endif // GRAFT_LIB_CERTIFY_FOLD_COPIES_H
