//===- lib/infer/facts/ProgramFacts.h - facts about a program ---*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#ifndef GRAFT_LIB_INFER_FACTS_PROGRAMFACTS_H
#define GRAFT_LIB_INFER_FACTS_PROGRAMFACTS_H

#include "lib/graph/CopyWord.h"
#include "lib/infer/graph/Topology.h"
#include "lib/infer/types/Types.h"
#include "lib/io/Module.h"

#include <string>
#include <vector>

namespace graft {

/// The op of the node that says which devices there are.
inline constexpr llvm::StringRef MeshOp = "_GraftMesh";
/// The name in the input of a node that lost it to its merged value.
inline constexpr llvm::StringRef OriginAttr = "_graft_origin";
/// On splits: which of them have equally many rows, as the user says.
inline constexpr llvm::StringRef RowsAttr = "_graft_rows";
/// The value in the input of a constant whose batch sizes were made local.
inline constexpr llvm::StringRef OriginalAttr = "_graft_original";
/// The scale k that an unproved reduction takes its source to have.
inline constexpr llvm::StringRef AssumedAttr = "_graft_assumed";
/// What an output of graft carries, with the number of replicas.
inline constexpr llvm::StringRef StampAttr = "_graft_replicas";

/// The devices that replicas run on, one each.
struct Mesh {
  NodeId Node = NoNode;
  std::vector<std::string> Devices;
  std::string Word = UsualCopyWord.str(); ///< In the names of copies.
  unsigned replicas() const { return static_cast<unsigned>(Devices.size()); }
};

/// The mesh of \p G; without devices when it is not a replicated program.
Mesh readMesh(const Graph &G);

/// Where what exists once for the replicas goes that begin on \p Device: there,
/// or to the host of it where that is a TPU.
std::string hostDevice(llvm::StringRef Device);

/// All analyses of a program in the order in which they need each other.
struct ProgramFacts {
  explicit ProgramFacts(const Graph &G, DimOptions Options);
  /// Facts of a replicated program with the replicas of its mesh.
  explicit ProgramFacts(const Graph &G);

  /// Brings the facts up to date after the demands of Types were met: nodes
  /// that are new get the types that their own rules give, and what was taken
  /// to be inserted is in the graph.
  void adoptInserted(const Graph &G);

  std::vector<NodeId> Order;
  VariableIndex Vars;
  DimAnalysis Dims;
  TypeAnalysis Types;
};

/// The facts of \p M's program, inferred unless they are known.
ProgramFacts &programFacts(Module &M);

/// Says that the facts still hold although the graph was edited.
void keepFacts(Module &M);

/// Marks the users of what is in \p Work, and theirs, as per-replica: a node
/// with a per-replica input is per-replica, and so are all nodes of its loop
/// and the arrays and stacks that it uses. Ops that may exist only once stop
/// it, and so do updates of a variable that exists once. Returns whether
/// anything was marked.
bool spreadCopies(Graph &G, const VariableIndex &Vars,
                  std::vector<NodeId> Work);

/// Whether \p N reads per-replica values as such although it may exist once:
/// the ops that combine them.
bool combinesReplicas(const Graph &G, NodeId N);

/// Adds a node with the value of \p E, which is equal on all replicas.
NodeId insertPick(Graph &G, llvm::StringRef Name, Endpoint E, NodeId After);

/// The name that copies of \p N are called after: its name in the input.
llvm::StringRef originName(const Graph &G, NodeId N);

} // namespace graft

#endif // GRAFT_LIB_INFER_FACTS_PROGRAMFACTS_H
