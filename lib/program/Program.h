//===- lib/program/Program.h - the words of a program -----------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
// What the input and a replicated program have in common: the node that holds
// the devices, the attributes that graft puts on nodes, whose copies are called
// after whom.
//
//===----------------------------------------------------------------------===//

#ifndef GRAFT_LIB_PROGRAM_PROGRAM_H
#define GRAFT_LIB_PROGRAM_PROGRAM_H

#include "lib/graph/CopyWord.h"
#include "lib/graph/Graph.h"
#include "lib/ops/ProgramOps.h"

#include <string>
#include <vector>

namespace graft {

/// The name in the input of a node that lost it to its merged value.
inline constexpr llvm::StringRef OriginAttr = "_graft_origin";
/// Of a part of a variable: `VARIABLE SHAPE SLICE`, the latter two as in a
/// checkpoint: `w 10 4 0,5:0,4`. Stays in outputs, where nothing else tells of
/// the variable.
inline constexpr llvm::StringRef SliceAttr = "_graft_slice";
/// On splits: which of them have equally many rows, as the user says.
inline constexpr llvm::StringRef RowsAttr = "_graft_rows";
/// The value in the input of a constant whose batch sizes were made local.
inline constexpr llvm::StringRef OriginalAttr = "_graft_original";
/// The node of the input that a node of kind Inserted::Again is once more.
inline constexpr llvm::StringRef AgainAttr = "_graft_again";
/// On nodes of kind Inserted::Blocks.
inline constexpr llvm::StringRef BlocksAttr = "_graft_blocks";
/// The scale k that an unproved reduction takes its source to have.
inline constexpr llvm::StringRef AssumedAttr = "_graft_assumed";

/// The devices that replicas run on, one each.
struct Mesh {
  NodeId Node = NoNode;
  std::vector<std::string> Devices;
  std::string Word = UsualCopyWord.str(); ///< In the names of copies.
  unsigned replicas() const { return static_cast<unsigned>(Devices.size()); }
};

/// The mesh of \p G; without devices when it is not a replicated program.
Mesh readMesh(const Graph &G);

/// Whether a collective that gathers has the rows in the order of the replicas:
/// TensorFlow has its members in the order of their devices, by job, task and
/// number.
bool gathersInOrder(llvm::ArrayRef<std::string> Devices);

/// Where what exists once for the replicas goes that begin on \p Device: there,
/// or to the host of it where that is a TPU.
std::string hostDevice(llvm::StringRef Device);

/// Whether \p N reads per-replica values as such although it may exist once:
/// the ops that combine them.
bool combinesReplicas(const Graph &G, NodeId N);

/// Adds a node with the value of \p E, which is equal on all replicas.
NodeId insertPick(Graph &G, llvm::StringRef Name, Endpoint E, NodeId After);

/// The name that copies of \p N are called after: its name in the input.
llvm::StringRef originName(const Graph &G, NodeId N);

} // namespace graft

#endif // GRAFT_LIB_PROGRAM_PROGRAM_H
