//===- lib/analysis/Checker.h - the certificate's checks (private) *- C++ -*-=//
//
// SPDX-License-Identifier: Apache-2.0
//
// One run of the certificate. Certificate.cpp compares the program with the
// input, edge for edge; NodeChecks.cpp asks of each node whether what it has
// and takes are true values.
//
//===----------------------------------------------------------------------===//

#ifndef GRAFT_LIB_ANALYSIS_CHECKER_H
#define GRAFT_LIB_ANALYSIS_CHECKER_H

#include "lib/analysis/BatchNormCheck.h"
#include "lib/analysis/Program.h"
#include "lib/graph/InputGraph.h"
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
};
/// Whether \p Op does to true values what a node of \p Kind does: nothing. What
/// the parameters of the op make of local values is for the types to say.
bool isErasable(Inserted Kind, OpKind Op);

class Checker {
public:
  Checker(const InputGraph &Input, const Graph &Program,
          DiagnosticEngine &Diags);

  bool run();

private:
  void error(NodeId N, const llvm::Twine &Message, NodeId Because = NoNode);
  bool matchNodes();
  NodeId findInput(llvm::StringRef Name);
  void compareNode(NodeId I, NodeId P);
  /// Whether \p E of the program is \p Want of the input.
  bool reads(Endpoint E, Endpoint Want) const {
    return E.Node != NoNode && InputOf[E.Node] == Want.Node &&
           E.Port == Want.Port;
  }
  bool readsDefined(NodeId I, NodeId P, unsigned K) const;
  void compareAttrs(NodeId I, NodeId P);
  Endpoint erase(Endpoint E) const;
  Endpoint strip(Endpoint E) const;
  bool mayChange(NodeId I, llvm::StringRef Key) const {
    return BatchNorms && BatchNorms->mayChange(I, Key);
  }
  void checkDemands(const ProgramFacts &Facts);
  void checkConstant(const ProgramFacts &Facts, NodeId P);
  bool isOpen(const RType &Type) const;
  bool isExcused(const RType &Type) const;
  bool hasTrueOutputs(const ProgramFacts &Facts, NodeId N) const;
  void checkWaits(const ProgramFacts &Facts, NodeId N, OpKind Op);
  void checkInserted(const ProgramFacts &Facts, NodeId N);
  bool isRefresh(const ProgramFacts &Facts, NodeId N) const;
  bool onlyGatesWait(NodeId N) const;
  bool isGate(NodeId N) const;
  bool runsRefreshes(NodeId N) const;
  bool overwrites(const ProgramFacts &Facts, NodeId N) const;
  bool runsChecks(NodeId N) const;
  void checkOnce(const ProgramFacts &Facts, NodeId N);
  void checkPerReplica(const ProgramFacts &Facts, NodeId N);
  void checkName(const ProgramFacts &Facts, NodeId N);
  void checkInsertedName(const ProgramFacts &Facts, NodeId N);

  OpKind opKind(NodeId N) const { return Kinds[G.node(N).Op]; }

  const InputGraph &In;
  const Graph &G;
  DiagnosticEngine &Diags;
  unsigned Replicas = 1;
  unsigned Errors = 0;
  bool ReadsBatches = false;     ///< There is a read of a queue or an iterator.
  bool OwnBatch = false;         ///< A replica takes a batch of its own.
  std::vector<OpKind> Kinds;     ///< By op of the program.
  std::vector<uint32_t> OpOf;    ///< By op of the input: that of the program.
  uint32_t ConstOp = ~0u;        ///< Of the program.
  std::vector<NodeId> ProgramOf; ///< By input node.
  std::vector<NodeId> InputOf;   ///< By program node, NoNode if inserted.
  std::vector<bool> IsRead;      ///< By input node: by a data input.
  std::vector<bool> IsInside;    ///< By node: read in a loop only.
  std::vector<std::pair<NodeId, llvm::StringRef>>
      ElementShapes; ///< That changed.
  /// By program node that was inserted: the input node whose name it has.
  llvm::DenseMap<NodeId, NodeId> NamedAfter;
  /// If ops of the input are written in other ops.
  std::optional<BatchNormCheck> BatchNorms;
  /// All input nodes, when ids are not enough to find them.
  llvm::DenseMap<llvm::StringRef, NodeId> ByName;
};

} // namespace graft

#endif // GRAFT_LIB_ANALYSIS_CHECKER_H
