//===- lib/program/forms/StepCount.h - steps that are counted ---*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
// How workers that make their steps by themselves stay together: a variable on
// a server counts the steps of each, and an update waits until the slowest has
// finished all but `ahead` of those that its worker has.
//
//     steps = VarHandleOp()                  zeros: steps = 0, before what is
//                                                   trained gets a first value
//     gate:   do { lead = steps[mine] - min(steps)
//             } while (lead >= ahead && sleep())
//     update = ResourceApplyAdam(.., ^gate)
//     train/step = NoOp(^update)
//     train = NoOp(^count, ^wake up the others)
//             count: steps[mine] += 1, ^train/step, ^gate
//
// A step that is counted has been let through, whether or not a conditional
// made an update in it: so own steps are never more than `ahead` above the
// least. What a worker sleeps on is an accumulator, since many calls to wake up
// are no more than one.
//
// Who writes it and who checks that a file has it write it with this class, and
// compare.
//
//===----------------------------------------------------------------------===//

#ifndef GRAFT_LIB_PROGRAM_FORMS_STEPCOUNT_H
#define GRAFT_LIB_PROGRAM_FORMS_STEPCOUNT_H

#include "lib/graph/AttrRun.h"
#include "lib/graph/Graph.h"

#include <string>

namespace graft {

/// Writes what one worker runs to count its steps and to wait for others.
class StepCount {
public:
  struct Place {
    unsigned Workers = 1, Mine = 0;
    int64_t Ahead = 0;  ///< How many steps a worker may be ahead.
    std::string Name;   ///< Of the variable, in all graphs.
    std::string Frame;  ///< Of the loop that waits.
    std::string Server; ///< Where all of it is.
  };
  /// Names that nothing in \p G has, the same for each worker.
  static std::string freeName(const Graph &G);
  static std::string freeFrame(const Graph &G);

  /// Writes the variable, its zeros and the gate, after \p After.
  StepCount(Graph &G, Place P, NodeId After);

  NodeId steps() const { return Steps; }
  /// What gives the variables that are trained first values waits for it.
  NodeId zeros() const { return Zeros; }
  /// What writes a gradient waits for it.
  NodeId gate() const { return Gate; }
  /// Counts the steps of \p N, whose name goes to the node that is returned.
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
