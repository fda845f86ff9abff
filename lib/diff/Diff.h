//===- lib/diff/Diff.h - what is different about two graphs -----*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
// Compares what two files mean. The order of nodes, attributes that have their
// default, the form of a constant, and what TensorFlow or graft notes do not
// count, nor does what graft called the nodes that it inserted.
//
// Two outputs of graft for other numbers of replicas are compared as the
// programs that they are the expansions of.
//
//===----------------------------------------------------------------------===//

#ifndef GRAFT_LIB_DIFF_DIFF_H
#define GRAFT_LIB_DIFF_DIFF_H

#include "lib/io/Module.h"

#include <string>
#include <vector>

namespace graft {

/// One thing that is different. Was and Now are texts for people; one of them
/// is empty if there was nothing, or is nothing any more.
struct Difference {
  enum What : uint8_t {
    Removed, ///< The node is not in the second graph. Was: its op.
    Added,   ///< It is only there. Now: its op.
    Renamed, ///< The same node under two names.
    Op,
    Device,
    Attribute, ///< Key: which.
    Input,     ///< Key: its number.
    Control,   ///< A control input that is only in one of the graphs.
    Colocation,
    Copies,     ///< Of a program: once, or one for each replica.
    Function,   ///< Key: its name.
    Collection, ///< Of a MetaGraphDef. Key: its name.
    Field       ///< Another part of the file. Key: its name in the message.
  };
  What Kind;
  std::string Node; ///< In the second graph if it is there; or empty.
  std::string Key;
  std::string Was, Now;
};

/// `attribute`, `input`, ...: as the JSON has it.
llvm::StringRef nameOf(Difference::What Kind);

struct DiffOptions {
  bool Names = false; ///< Names of inserted nodes count.
};

struct GraphDiff {
  /// In the order of the first graph; what was added stands last.
  std::vector<Difference> All;
  size_t Same = 0; ///< Nodes without a difference.
  /// For how many replicas the files are; 0: that does not matter, they were
  /// compared as they are.
  unsigned ReplicasOfA = 0, ReplicasOfB = 0;
};

GraphDiff compareModules(const Module &A, const Module &B,
                         const DiffOptions &Options);

} // namespace graft

#endif // GRAFT_LIB_DIFF_DIFF_H
