//===- lib/program/forms/StepCount.h - steps that are counted ---*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
// Bounds the staleness of asynchronous workers. A variable on a server counts
// the steps of each worker. Before an update, a worker waits until it is less
// than `ahead` steps ahead of the slowest worker.
//
//     steps = VarHandleOp()                  zeros: steps = 0, before trained
//                                                   variables are initialized
//     gate:   do { lead = steps[mine] - min(steps)
//             } while (lead >= ahead && sleep())
//     update = ResourceApplyAdam(.., ^gate)
//     train/step = NoOp(^update)
//     train = NoOp(^count, ^wake up the others)
//             count: steps[mine] += 1, ^train/step, ^gate
//
// Every counted step passes the gate, even if a conditional skips its update.
// So the count of a worker exceeds the least count by at most `ahead`. A worker
// sleeps on an accumulator, where many wake-ups have the effect of one.
//
// The pass writes this form with this class. The check of its files writes the
// form again with the same class and compares.
//
//===----------------------------------------------------------------------===//

#ifndef GRAFT_LIB_PROGRAM_FORMS_STEPCOUNT_H
#define GRAFT_LIB_PROGRAM_FORMS_STEPCOUNT_H

#include "lib/graph/AttrRun.h"
#include "lib/graph/Graph.h"

#include <string>

namespace graft {

/// Writes the nodes with which a worker counts its steps and waits for others.
class StepCount {
public:
  struct Place {
    unsigned Workers = 1, Mine = 0;
    int64_t Ahead = 0;  ///< The steps that a worker may be ahead.
    std::string Name;   ///< The name of the variable, in all graphs.
    std::string Frame;  ///< The frame of the loop that waits.
    std::string Server; ///< The device of all nodes.
  };
  /// Return names that are free in \p G and the same for each worker.
  static std::string freeName(const Graph &G);
  static std::string freeFrame(const Graph &G);

  /// Writes the variable, its zeros and the gate, after \p After.
  StepCount(Graph &G, Place P, NodeId After);

  NodeId steps() const { return Steps; }
  /// Initial assignments of the trained variables wait for this node.
  NodeId zeros() const { return Zeros; }
  /// Updates that apply gradients wait for this node.
  NodeId gate() const { return Gate; }
  /// Adds nodes that count the steps of \p N. The result has the name of \p N.
  NodeId end(NodeId N);

private:
  NodeId add(const llvm::Twine &Name, llvm::StringRef Op,
             llvm::ArrayRef<Endpoint> Inputs, const AttrRun &Attrs);
  NodeId constant(const llvm::Twine &Name, unsigned Type,
                  llvm::ArrayRef<int64_t> Shape, llvm::ArrayRef<int64_t> Values,
                  NodeId Control = NoNode);
  NodeId wakeUp(unsigned Worker, llvm::StringRef Name, NodeId Control);
  void countFromZero();
  void waitForOthers();

  Graph &G;
  Place P;
  NodeId After;
  NodeId Steps = NoNode, Zeros = NoNode, Gate = NoNode;
};

} // namespace graft

#endif // GRAFT_LIB_PROGRAM_FORMS_STEPCOUNT_H
