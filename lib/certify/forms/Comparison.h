//===- lib/certify/forms/Comparison.h - state of the certificate ----------===//
//
// SPDX-License-Identifier: Apache-2.0
//
// The state of one run of the certificate that all its checks share: the input,
// the program, and the matching of their nodes.
//
//===----------------------------------------------------------------------===//

#ifndef GRAFT_LIB_CERTIFY_FORMS_COMPARISON_H
#define GRAFT_LIB_CERTIFY_FORMS_COMPARISON_H

#include "lib/certify/forms/BatchNormCheck.h"
#include "lib/certify/forms/ProxyCheck.h"
#include "lib/graph/InputGraph.h"
#include "lib/infer/facts/ProgramFacts.h"
#include "lib/program/Program.h"
#include "lib/support/Diagnostics.h"

#include "llvm/ADT/DenseMap.h"

#include <optional>

namespace graft {

/// The ops that the checks and the erasure of inserted nodes distinguish.
enum class OpKind : uint8_t {
  Other,
  ToReplicas,
  FromReplicas,
  Reduce,
  Gather,
  Scale,
  CollectiveReduce,
  CollectiveGather,
  Identity,
  IdentityN,
  NoOp,
  Mesh,
  SeededDraw,
  SparseSlice,
  StridedSlice,
};

/// The results of comparing program and input, for the checks of nodes.
struct Comparison {
  Comparison(const InputGraph &Input, const Graph &Program,
             DiagnosticEngine &Diags);

  void error(NodeId N, const llvm::Twine &Message, NodeId Because = NoNode);
  /// Reports that \p N does not have the form of its kind.
  void mismatch(NodeId N);
  /// Returns the tensor that \p E represents once inserted nodes are erased.
  /// Returns no node if an inserted node on the way represents no tensor.
  Endpoint erase(Endpoint E) const;
  /// Like erase, but stops at nodes of a definition.
  Endpoint strip(Endpoint E) const;
  OpKind opKind(NodeId N) const { return Kinds[G.node(N).Op]; }
  bool isCollective(NodeId N) const {
    return opKind(N) == OpKind::CollectiveReduce ||
           opKind(N) == OpKind::CollectiveGather;
  }

  const InputGraph &In;
  const Graph &G;
  DiagnosticEngine &Diags;
  unsigned Replicas = 1;
  bool GathersInOrder = true; ///< Collectives gather in replica order.
  unsigned Errors = 0;
  /// Set if results of the input without users may be missing.
  bool IsComputation = false;
  bool OwnBatch = false;         ///< Each replica reads a separate batch.
  std::vector<OpKind> Kinds;     ///< By op of the program.
  std::vector<NodeId> InputOf;   ///< By program node, NoNode if inserted.
  std::vector<NodeId> ProgramOf; ///< By input node.
  std::vector<bool> IsRead;      ///< By input node: a node reads its output.
  std::vector<bool> IsInside;    ///< By node: only nodes in a loop read it.
  /// By recomputed node of the program: its original in the input.
  llvm::DenseMap<NodeId, NodeId> AgainOf;
  /// By program node that has the old name of a renamed node: the renamed node
  /// in the input.
  llvm::DenseMap<NodeId, NodeId> NamedAfter;
  /// Set if the program has definitions of batch norms.
  std::optional<BatchNormCheck> BatchNorms;
  /// Set if shared variables have proxies.
  std::optional<ProxyCheck> Proxies;
};

} // namespace graft

#endif // GRAFT_LIB_CERTIFY_FORMS_COMPARISON_H
