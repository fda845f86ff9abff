//===- lib/analysis/Variables.h - variables and their users -----*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#ifndef GRAFT_LIB_ANALYSIS_VARIABLES_H
#define GRAFT_LIB_ANALYSIS_VARIABLES_H

#include "lib/graph/Graph.h"

#include "llvm/ADT/DenseSet.h"

#include <vector>

namespace graft {

/// Marks a node of the input that exists once although its op does not say so.
inline constexpr llvm::StringRef OnceAttr = "_graft_once";

/// Which tensors are variables. A handle or reference is followed through what
/// passes it on: Identity, Switch, Enter of a handle, the reference that an
/// update op returns. Found by op and argument kind, never by name.
class VariableIndex {
public:
  explicit VariableIndex(const Graph &G);

  /// The variables (VarHandleOp, VariableV2, ...), by node id.
  llvm::ArrayRef<NodeId> variables() const { return Vars; }

  /// The variable whose handle or reference \p E is, or NoNode.
  NodeId variableOf(Endpoint E) const {
    return E.Node >= VarOf.size() ||
                   (E.Port != 0 && (E.Port != 1 || !Switches.contains(E.Node)))
               ? NoNode
               : VarOf[E.Node];
  }
  /// Whether a conditional passes a variable on.
  bool anySwitched() const { return !Switches.empty(); }
  /// Whether input \p Index of \p N uses a variable in place: through a handle,
  /// or through a reference that the op takes as one.
  bool usesInPlace(const Graph &G, NodeId N, unsigned Index) const;

  /// Whether \p N changes a variable.
  bool isUpdate(const Graph &G, NodeId N) const {
    return UpdateOps[G.node(N).Op].Kind != UpdateKind::None;
  }
  const UpdateDef &update(const Graph &G, NodeId N) const {
    return UpdateOps[G.node(N).Op];
  }

  /// Whether \p N may exist only once: by its op (isOnceOp), or marked.
  bool isOnce(const Graph &G, NodeId N) const {
    const Node &This = G.node(N);
    return OnceOps[This.Op] ||
           (This.Flags & NF_MayHaveGraft && G.hasAttr(N, OnceAttr));
  }

  /// Makes room for nodes that are new; none of them is a variable.
  void extend(const Graph &G);

private:
  std::vector<NodeId> Vars;
  std::vector<NodeId> VarOf;        ///< By node: the variable that output 0 is.
  llvm::DenseSet<NodeId> Switches;  ///< Those of which output 1 is it too.
  std::vector<UpdateDef> UpdateOps; ///< By op.
  std::vector<bool> OnceOps;        ///< By op.
};

} // namespace graft

#endif // GRAFT_LIB_ANALYSIS_VARIABLES_H
