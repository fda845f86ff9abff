//===- lib/program/Program.h - the words of a program -----------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
// Definitions that an input and a replicated program share: the node that holds
// the devices, the attributes that graft puts on nodes, and the names from
// which names of copies are formed.
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

/// On a renamed node: its name in the input. In most cases the merge of its
/// value now has that name.
inline constexpr llvm::StringRef OriginAttr = "_graft_origin";
/// The slice of one part of a variable, `VARIABLE SHAPE SLICE`, with shape and
/// slice as in a checkpoint: `w 10 4 0,5:0,4`. Stays in outputs, where no other
/// node shows the name of the variable.
inline constexpr llvm::StringRef SliceAttr = "_graft_slice";
/// On splits of feeds: the number of a group of feeds. The user declares that
/// all feeds of a group have equally many rows. A computed tensor that the user
/// names is a group by itself.
inline constexpr llvm::StringRef RowsAttr = "_graft_rows";
/// On constants whose batch sizes became per-replica sizes: the value in the
/// input.
inline constexpr llvm::StringRef OriginalAttr = "_graft_original";
/// The node of the input that a node of kind Inserted::Again repeats.
inline constexpr llvm::StringRef AgainAttr = "_graft_again";
/// Marks nodes of kind Inserted::Blocks.
inline constexpr llvm::StringRef BlocksAttr = "_graft_blocks";
/// The scale exponent that an unproved reduction assumes for its source.
inline constexpr llvm::StringRef AssumedAttr = "_graft_assumed";

/// The devices that replicas run on, one each.
struct Mesh {
  NodeId Node = NoNode;
  std::vector<std::string> Devices;
  std::string Word = UsualCopyWord.str(); ///< The word in the names of copies.
  unsigned replicas() const { return static_cast<unsigned>(Devices.size()); }
};

/// Returns the mesh of \p G. It is empty if \p G is not a replicated program.
Mesh readMesh(const Graph &G);

/// Returns true if a gather collective over \p Devices returns the rows in
/// replica order. TensorFlow orders members by job, task and device number.
bool gathersInOrder(llvm::ArrayRef<std::string> Devices);

/// Returns the device of unreplicated nodes if replica 0 is on \p Device: that
/// device, or the host of a TPU.
std::string hostDevice(llvm::StringRef Device);

/// Returns true if \p N combines the local values of all replicas. It reads
/// per-replica nodes although it may be unreplicated itself.
bool combinesReplicas(const Graph &G, NodeId N);

/// Adds a take-first merge of \p E, which is equal on all replicas.
NodeId insertPick(Graph &G, llvm::StringRef Name, Endpoint E, NodeId After);

/// Returns the name of \p N in the input. Names of its copies begin with it.
llvm::StringRef originName(const Graph &G, NodeId N);

} // namespace graft

#endif // GRAFT_LIB_PROGRAM_PROGRAM_H
