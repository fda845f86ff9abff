//===- lib/certify/tpu/TpuFile.h - a file of TPU form -----------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
// Finds the role of each node in a graph of TPU form, as TensorFlow's passes
// read it (tensorflow/core/tpu/graph_rewrite). Checks that the computation runs
// as a whole: no path leaves the computation and comes back.
//
//===----------------------------------------------------------------------===//

#ifndef GRAFT_LIB_CERTIFY_TPU_TPUFILE_H
#define GRAFT_LIB_CERTIFY_TPU_TPUFILE_H

#include "lib/graph/Graph.h"
#include "lib/support/Diagnostics.h"

#include <vector>

namespace graft {

/// The role of a node in a graph of TPU form.
enum class TpuRole : uint8_t {
  Outside,  ///< No part of the computation.
  Member,   ///< An op of the computation: each replica runs it.
  Sum,      ///< A member that is a CrossReplicaSum of all replicas.
  Metadata, ///< TPUReplicateMetadata, which states the number of replicas.
  Pivot,    ///< The NoOp that the metadata wait for.
  Input,    ///< TPUReplicatedInput, with an operand for each replica.
  Output,   ///< TPUReplicatedOutput, with an output for each replica.
  Status,   ///< The compilation status of the computation.
  Start,    ///< A NoOp of the computation that waits only for the pivot.
  Run,      ///< A NoOp that only waits for the computation.
  Shard,    ///< An inserted Identity that passes on an output.
};

class TpuFile {
public:
  TpuFile(const Graph &G, const Graph &In, DiagnosticEngine &Diags)
      : G(G), In(In), Diags(Diags) {}

  /// Finds the roles. Returns false after an error: the file is not of TPU
  /// form, or has a part that is not understood.
  bool read();

  TpuRole role(NodeId N) const { return Roles[N]; }
  unsigned replicas() const { return Replicas; }
  /// Returns true if \p N is an op of the computation.
  bool isMember(NodeId N) const {
    return Roles[N] == TpuRole::Member || Roles[N] == TpuRole::Sum;
  }
  /// Returns true if a node that waits for \p N waits for the computation on
  /// all replicas. A Shard without control inputs waits for one replica only.
  bool runsComputation(NodeId N) const {
    return isMember(N) || Roles[N] == TpuRole::Start ||
           Roles[N] == TpuRole::Run ||
           (Roles[N] == TpuRole::Shard && !G.controlInputs(N).empty());
  }
  /// Returns the operand of the input \p N on replica \p Replica.
  Endpoint operand(NodeId N, unsigned Replica) const {
    return G.input(N, G.node(N).NumData == 1 ? 0 : Replica);
  }
  /// Returns the name of \p N in the input, if the input has \p N. If a node
  /// outside of the computation has that name, the file calls \p N
  /// `<cluster>/<name>`.
  llvm::StringRef base(NodeId N) const;
  /// Returns true if the input graph has a node with the name of \p N.
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
