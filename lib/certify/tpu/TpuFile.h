//===- lib/certify/tpu/TpuFile.h - a file of TPU form -----------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
// What each node of a graph of TPU form is there for, by what TensorFlow's
// passes make of it (tensorflow/core/tpu/graph_rewrite): which ops are the
// computation, what stands round them, and that nothing passes by it.
//
//===----------------------------------------------------------------------===//

#ifndef GRAFT_LIB_CERTIFY_TPU_TPUFILE_H
#define GRAFT_LIB_CERTIFY_TPU_TPUFILE_H

#include "lib/graph/Graph.h"
#include "lib/support/Diagnostics.h"

#include <vector>

namespace graft {

/// What a node of a graph of TPU form is.
enum class TpuRole : uint8_t {
  Outside,  ///< No part of the computation.
  Member,   ///< An op of the computation: each replica runs it.
  Sum,      ///< A member that is a CrossReplicaSum of all replicas.
  Metadata, ///< What says how many replicas there are.
  Pivot,    ///< What the metadata wait for.
  Input,    ///< TPUReplicatedInput: each replica has its operand.
  Output,   ///< TPUReplicatedOutput: the operand of each replica.
  Status,   ///< Whether the computation was compiled.
  Start,    ///< NoOp of the computation that waits for the pivot alone.
  Run,      ///< Waits for the computation, and does nothing.
  Shard,    ///< Passes on an output, and waits for the computation.
};

class TpuFile {
public:
  TpuFile(const Graph &G, const Graph &In, DiagnosticEngine &Diags)
      : G(G), In(In), Diags(Diags) {}

  /// Finds the roles. False after an error: it is no such file, or there is
  /// something in it that is not understood.
  bool read();

  TpuRole role(NodeId N) const { return Roles[N]; }
  unsigned replicas() const { return Replicas; }
  /// Whether \p N is an op of the computation.
  bool isMember(NodeId N) const {
    return Roles[N] == TpuRole::Member || Roles[N] == TpuRole::Sum;
  }
  /// Whether who waits for \p N waits for the computation, on all replicas. A
  /// tensor of a replica alone is there when that replica has it.
  bool runsComputation(NodeId N) const {
    return isMember(N) || Roles[N] == TpuRole::Start ||
           Roles[N] == TpuRole::Run ||
           (Roles[N] == TpuRole::Shard && !G.controlInputs(N).empty());
  }
  /// What replica \p Replica takes of the input \p N.
  Endpoint operand(NodeId N, unsigned Replica) const {
    return G.input(N, G.node(N).NumData == 1 ? 0 : Replica);
  }
  /// What \p N is called in the graph that was read, if it is of that. An op
  /// whose name something outside took is in the scope of the computation.
  llvm::StringRef base(NodeId N) const;
  /// Whether the graph that was read has a node called like \p N.
  bool isOfInput(NodeId N) const { return In.find(base(N)) != NoNode; }

private:
  bool error(NodeId N, const llvm::Twine &Message) const {
    Diags.error(G.name(N), Message.str());
    return false;
  }
  bool findMetadata();
  bool checkMetadata();
  bool findRoles();
  void findRuns();
  bool checkNode(NodeId N);
  bool checkInput(NodeId N);
  bool checkOutput(NodeId N);
  bool checkMember(NodeId N);
  bool checkSum(NodeId N);
  bool checkOutside(NodeId N);
  bool waitsOnlyFor(NodeId N, NodeId For);
  bool isWhole();
  bool isInNoBranch();

  const Graph &G;
  const Graph &In;
  DiagnosticEngine &Diags;
  NodeId Metadata = NoNode, Pivot = NoNode;
  llvm::StringRef Cluster;
  unsigned Replicas = 0;
  std::vector<TpuRole> Roles; ///< By node.
};

} // namespace graft

#endif // GRAFT_LIB_CERTIFY_TPU_TPUFILE_H
