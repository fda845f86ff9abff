//===- lib/program/forms/Messages.h - numbered messages ---------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
// What workers give each other: messages in queues, which begin with the number
// of the run that they belong to, so that a worker may be killed and started
// again. A run of the chief draws a number, larger than all before, and tells
// each worker; who takes a message drops what belongs to earlier runs:
//
//     put = QueueEnqueueV2(q, number, a, b)
//
//     first = QueueDequeueV2(q)
//     loop: key, a, b = first; while key < low: key, a, b = QueueDequeueV2(q)
//     get = IdentityN(a, b, ^Assert(key <= high))
//
// Numbers are multiples of 1024. A worker that was started again in the middle
// of a run takes part once more, with the number of the run and 2, 4 and so on.
// One less is a mark without a value: what is below is over. What a worker
// takes it puts back, so that the run may be run again; the next run drops it.
//
// What is kept about runs is in a table in the chief's process, so that it ends
// with it, or on a server, so that a run of a worker needs nothing of the
// chief's task. Then whoever has to know whether the chief's process is that of
// the run asks it, by a function, which is called in no other run:
//
//  - A worker that was started again takes part in a run once more if that
//    process has begun one.
//  - A session of before the chief was started again does not fail when it
//  waits
//    for the chief. It takes a mark of the next run, and who asks then gets an
//    error that says so, after which MonitoredTrainingSession makes another.
//
// Copies of variables that a worker has end with its process, and a run that
// was cut short may have written some of them. So the run after that takes them
// from where the chief has them, before it reads them and after it writes them:
// if the chief had ended that run already, its updates are in them. A function
// reads there, too: edges between tasks are messages in runs that need none.
//
// What crosses from one task to another costs as much as a small message does:
// the ends of several nodes go together, and what is there already is not sent
// again.
//
// Who writes such messages and who checks that a file has them write them with
// this class, and compare. All nodes are in one scope.
//
//===----------------------------------------------------------------------===//

#ifndef GRAFT_LIB_PROGRAM_FORMS_MESSAGES_H
#define GRAFT_LIB_PROGRAM_FORMS_MESSAGES_H

#include "lib/graph/AttrRun.h"
#include "lib/graph/Graph.h"

#include "llvm/ADT/StringMap.h"

#include <map>
#include <optional>
#include <string>
#include <vector>

namespace graft {

/// A queue from one worker to another.
struct MessageQueue {
  std::string Name; ///< In all graphs, without the scope.
  std::string Device;
  std::string Types; ///< Of what follows the number, one for each character.
};

/// A variable of a worker that has the value of one elsewhere.
struct OwnCopy {
  Endpoint Copy, Primary; ///< Handles, or references.
  std::string Device, PrimaryDevice;
  unsigned Type = DT_INVALID;
  /// A copy may be a handle where its primary is a reference: proxies are.
  bool IsHandle = true, PrimaryIsHandle = true;
  /// How a function finds the primary; without a name it cannot.
  std::string Container, SharedName;
};

/// Writes what one worker runs of the exchange of messages.
class Messages {
public:
  struct Place {
    unsigned Workers = 1, Mine = 0;
    std::string Chief, Own; ///< The hosts of the chief and of this worker.
    std::string Home;       ///< Where what is kept about runs is.
    std::string Scope;      ///< Of all nodes.
  };
  Messages(Graph &G, Place P, NodeId After)
      : G(G), P(std::move(P)), After(After) {}

  /// The number of a run, of \p Names names. \p Marked are queues to which a
  /// run puts a mark when runs before it did not end: on the chief those to
  /// each worker. \p Copies are variables of the worker.
  void begin(unsigned Names, llvm::ArrayRef<MessageQueue> Marked,
             llvm::ArrayRef<OwnCopy> Copies = {});
  /// What waits for it runs after the chief has begun the run, and on this
  /// worker when its copies are right: the number, in the task of \p Device if
  /// it is there.
  NodeId numberNear(llvm::StringRef Device) const;

  /// Sends \p Values and the ends of \p Ends after \p After.
  NodeId put(const MessageQueue &Q, llvm::ArrayRef<Endpoint> Values,
             llvm::ArrayRef<NodeId> Ends, llvm::ArrayRef<NodeId> After);

  struct Received {
    NodeId Get = NoNode; ///< Its outputs are the values.
    Endpoint Key;
    NodeId Back = NoNode; ///< What puts a message back, on a worker.
  };
  /// Takes the message of this run; \p Exact, if given, is the number that it
  /// must have.
  Received get(const MessageQueue &Q, std::optional<Endpoint> Exact);

  /// What each run of the chief runs beside it, to say that this process has
  /// begun one; NoNode if nobody has to know.
  NodeId here() const { return Here; }

  /// Fails unless the messages of worker \p From that have \p Keys have one
  /// number, in a run of name \p Name.
  NodeId same(unsigned Name, unsigned From, llvm::ArrayRef<Endpoint> Keys);

  /// To be run when name \p Name has been run, up to \p After, which writes
  /// \p Copies.
  NodeId end(unsigned Name, llvm::ArrayRef<NodeId> After,
             llvm::ArrayRef<OwnCopy> Copies = {});

  /// Serialized FunctionDefs of what was written calls, by name.
  const std::map<std::string, std::string> &functions() const {
    return Functions;
  }

  /// Of the chief: says that runs so far are over, for who would take part in
  /// them once more. For what prepares a session.
  NodeId close();

private:
  /// What the table has at which place.
  enum Key : int64_t { LastNumber = 0 };
  int64_t keyStartedAgain(unsigned Worker) const { return Worker; }
  int64_t keyClosed() const { return P.Workers; }
  int64_t keyJoined(unsigned Worker) const { return P.Workers + Worker; }
  int64_t keyBegun(unsigned Name) const { return 2 * (P.Workers + Name); }
  int64_t keyEnded(unsigned Name) const { return keyBegun(Name) + 1; }

  NodeId add(const llvm::Twine &Name, llvm::StringRef Op,
             llvm::ArrayRef<Endpoint> Inputs, const AttrRun &Attrs,
             llvm::StringRef Device);
  NodeId ints(const llvm::Twine &Name, llvm::ArrayRef<int64_t> Values,
              llvm::StringRef Device, bool Scalar = true);
  NodeId of(const llvm::Twine &Name, llvm::StringRef Op,
            llvm::ArrayRef<Endpoint> Inputs, llvm::StringRef Device,
            unsigned Type = DT_INT64);
  NodeId merge(const llvm::Twine &Name, Endpoint A, Endpoint B,
               llvm::StringRef Device, unsigned Type = DT_INT64);
  NodeId table(llvm::StringRef Name, llvm::StringRef Device);
  NodeId state();
  NodeId constant(llvm::StringRef Name, int64_t Value);
  NodeId find(const llvm::Twine &Name, NodeId Table, NodeId Keys,
              NodeId Default, llvm::ArrayRef<NodeId> After,
              llvm::StringRef Device);
  NodeId insert(const llvm::Twine &Name, NodeId Table, NodeId Keys,
                Endpoint Values, llvm::ArrayRef<NodeId> After,
                llvm::StringRef Device);
  NodeId queue(const MessageQueue &Q);
  NodeId enqueue(const llvm::Twine &Name, const MessageQueue &Q,
                 llvm::ArrayRef<Endpoint> Values, llvm::ArrayRef<NodeId> After);
  NodeId check(const llvm::Twine &Name, Endpoint Good, llvm::StringRef Why,
               llvm::ArrayRef<NodeId> After, llvm::StringRef Device);
  bool isAtChief() const { return P.Home == P.Chief; }
  NodeId call(const llvm::Twine &Name, const std::string &Function,
              llvm::StringRef Types, llvm::StringRef There, Endpoint When,
              llvm::StringRef Device);
  NodeId ask(const llvm::Twine &Name, Endpoint When, llvm::StringRef Device);
  std::string function(const llvm::Twine &Name) const {
    return (P.Scope + "_" + Name).str();
  }
  NodeId dequeue(const llvm::Twine &Name, const MessageQueue &Q, Endpoint Queue,
                 llvm::ArrayRef<NodeId> After);
  llvm::SmallVector<Endpoint, 8> take(const MessageQueue &Q, Endpoint Low);
  NodeId mark(const MessageQueue &Q, Endpoint Key);
  Endpoint refresh(const llvm::Twine &Name, Endpoint Value, Endpoint If,
                   llvm::ArrayRef<NodeId> After,
                   llvm::ArrayRef<OwnCopy> Copies);
  Endpoint chiefBegins(unsigned Names, llvm::ArrayRef<MessageQueue> Marked);
  Endpoint workerBegins(llvm::ArrayRef<MessageQueue> Marked);
  llvm::SmallVector<NodeId, 8> together(const llvm::Twine &Name,
                                        llvm::ArrayRef<NodeId> Nodes,
                                        llvm::StringRef Device);
  MessageQueue beginQueue(unsigned Worker) const;
  Endpoint on(llvm::StringRef Device, Endpoint Which);
  Endpoint highOn(llvm::StringRef Device);

  Graph &G;
  Place P;
  NodeId After;
  llvm::StringMap<NodeId> Known; ///< Queues, tables and constants.
  Endpoint Run; ///< The number of the run, where what is kept about runs is.
  /// Likewise, but on a worker with copies a number that is there when the run
  /// has begun and they are right.
  Endpoint Number;
  Endpoint Low, High;
  std::vector<NodeId> Brought; ///< The number on other devices.
  NodeId Here = NoNode;
  std::map<std::string, std::string> Functions;
  Endpoint CutShort; ///< Of a worker: whether the run before this one was.
  Endpoint OwnOpen;  ///< Likewise, as a number.
  std::vector<NodeId> Started; ///< To be run by every run.
};

} // namespace graft

#endif // GRAFT_LIB_PROGRAM_FORMS_MESSAGES_H
