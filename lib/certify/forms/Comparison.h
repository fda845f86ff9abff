//===- lib/certify/forms/Comparison.h - what the certificate knows --------===//
//
// SPDX-License-Identifier: Apache-2.0
//
// One run of the certificate, as the checks of nodes and of inserted forms see
// it: the input, the program, and which node is which.
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

/// What erasing or checking a node of an op depends on.
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
};

/// What the comparison of program and input found out, for the checks of nodes.
struct Comparison {
  Comparison(const InputGraph &Input, const Graph &Program,
             DiagnosticEngine &Diags);

  void error(NodeId N, const llvm::Twine &Message, NodeId Because = NoNode);
  /// Reports that \p N is no node of the kind that it is said to be.
  void mismatch(NodeId N);
  /// The tensor that \p E is when inserted nodes are erased; no node when one
  /// cannot be.
  Endpoint erase(Endpoint E) const;
  /// Like erase, but stops at what is part of a definition.
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
  bool GathersInOrder = true; ///< Collectives have rows as the replicas do.
  unsigned Errors = 0;
  /// What the input computes and nothing reads need not be given back.
  bool IsComputation = false;
  bool OwnBatch = false;         ///< A replica takes a batch of its own.
  std::vector<OpKind> Kinds;     ///< By op of the program.
  std::vector<NodeId> InputOf;   ///< By program node, NoNode if inserted.
  std::vector<NodeId> ProgramOf; ///< By input node.
  std::vector<bool> IsRead;      ///< By input node: by a data input.
  std::vector<bool> IsInside;    ///< By node: read in a loop only.
  /// By program node that is one of the input once more: that input node.
  llvm::DenseMap<NodeId, NodeId> AgainOf;
  /// By program node that was inserted: the input node whose name it has.
  llvm::DenseMap<NodeId, NodeId> NamedAfter;
  /// If ops of the input are written in other ops.
  std::optional<BatchNormCheck> BatchNorms;
  /// If shared variables have copies near their readers.
  std::optional<ProxyCheck> Proxies;
};

} // namespace graft

#endif // GRAFT_LIB_CERTIFY_FORMS_COMPARISON_H
