//===- lib/program/forms/StepCount.h - steps that are counted ---*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
// How workers that step on their own stay together. A variable on a server
// counts the steps of each worker. An update waits until the slowest worker has
// finished all but `ahead` of the steps of its own worker.
//
//     steps = VarHandleOp()                  zeros: steps = 0, before trained
//                                                   variables get first values
//     gate:   do { lead = steps[mine] - min(steps)
//             } while (lead >= ahead && sleep())
//     update = ResourceApplyAdam(.., ^gate)
//     train/step = NoOp(^update)
//     train = NoOp(^count, ^wake up the others)
//             count: steps[mine] += 1, ^train/step, ^gate
//
// A counted step has passed the gate, even if a conditional made no update in
// it. So the count of a worker is never more than `ahead` above the least
// count. A worker sleeps on an accumulator, on which many wake-up calls act
// like one.
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

/// Writes the nodes by which one worker counts its steps and waits for others.
class StepCount {
public:
  struct Place {
    unsigned Workers = 1, Mine = 0;
    int64_t Ahead = 0;  ///< The steps that a worker may be ahead.
    std::string Name;   ///< The name of the variable, in all graphs.
    std::string Frame;  ///< The frame of the loop that waits.
    std::string Server; ///< The device of all nodes.
  };
  /// Return names that no node of \p G has, the same for each worker.
  static std::string freeName(const Graph &G);
  static std::string freeFrame(const Graph &G);

  /// Writes the variable, its zeros and the gate, after \p After.
  StepCount(Graph &G, Place P, NodeId After);

  NodeId steps() const { return Steps; }
  /// Initial assignments of the trained variables wait for it.
  NodeId zeros() const { return Zeros; }
  /// Writes of gradients wait for it.
  NodeId gate() const { return Gate; }
  /// Counts the steps of \p N, whose name goes to the returned node.
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
