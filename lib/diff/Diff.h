//===- lib/diff/Diff.h - the differences of two graphs ----------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
// Compares the meaning of two files. It ignores the order of nodes, attributes
// with their default, the form of a constant, and notes of TensorFlow or graft.
// It also ignores the names of nodes that graft inserted.
//
// Two outputs of graft for different numbers of replicas are folded to their
// programs, which are compared.
//
//===----------------------------------------------------------------------===//

#ifndef GRAFT_LIB_DIFF_DIFF_H
#define GRAFT_LIB_DIFF_DIFF_H

#include "lib/io/Module.h"

#include <string>
#include <vector>

namespace graft {

/// One difference. Was and Now are texts for people. One of them is empty if
/// the node or other part is only in one of the graphs.
struct Difference {
  enum What : uint8_t {
    Removed, ///< The node is only in the first graph. Was: its op.
    Added,   ///< The node is only in the second. Now: its op.
    Renamed, ///< The same node under two names.
    Op,
    Device,
    Attribute, ///< Key: its name.
    Input,     ///< Key: its index.
    Control,   ///< A control input that is only in one of the graphs.
    Colocation,
    Copies,     ///< Unreplicated in one graph, not in the other.
    Function,   ///< Key: its name.
    Collection, ///< One of a MetaGraphDef. Key: its name.
    Field       ///< Another part of the file. Key: its name in the message.
  };
  What Kind;
  std::string Node; ///< Its name, in the second graph if it is there.
  std::string Key;
  std::string Was, Now;
};

/// Returns the name in the JSON: `attribute`, `input`, ...
llvm::StringRef nameOf(Difference::What Kind);

struct DiffOptions {
  bool Names = false; ///< Also compare names of inserted nodes.
};

struct GraphDiff {
  /// In the order of the first graph; added nodes come last.
  std::vector<Difference> All;
  size_t Same = 0; ///< Nodes without a difference.
  /// The numbers of replicas of the files; 0 if the files were compared as they
  /// are and not as programs.
  unsigned ReplicasOfA = 0, ReplicasOfB = 0;
};

GraphDiff compareModules(const Module &A, const Module &B,
                         const DiffOptions &Options);

} // namespace graft

#endif // GRAFT_LIB_DIFF_DIFF_H
