//===- lib/program/forms/Messages.h - numbered messages ---------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
// The exchange of messages between workers. Messages go through queues and
// begin with the number of their run, so that a worker may be killed and
// restarted. In each run the chief chooses a number above all earlier numbers
// and sends it to the workers. The receiver of a message drops messages of
// earlier runs:
//
//     put = QueueEnqueueV2(q, number, a, b)
//
//     first = QueueDequeueV2(q)
//     loop: key, a, b = first; while key < low: key, a, b = QueueDequeueV2(q)
//     get = IdentityN(a, b, ^Assert(key <= high))
//
// Run numbers are multiples of 1024. A worker that restarts in the middle of a
// run joins the run again, with the number of the run plus 2, 4 and so on. An
// odd number is a mark without values: messages with lower numbers are
// obsolete. A worker puts each received message back into its queue, so that a
// repeated run finds it. The next run drops these messages.
//
// A table holds the state of runs. A table in the chief's process is lost with
// that process. If the table is on a server, a worker's run needs no node in
// the chief's task. But then a worker whose last run did not end has to find
// out if the chief restarted after the chief began the run. The worker asks the
// chief's process by a function call, which other runs skip. As a result:
//
//   - A restarted worker takes part in a run again if the chief's process has
//     begun one.
//   - A session that is older than the chief's restart does not fail while it
//     waits for the chief. The session receives a mark of the next run. Then
//     the call fails, and MonitoredTrainingSession creates another session.
//
// A worker's copies of variables are lost with its process, and an aborted run
// may have written some of them. So the next run assigns the chief's variables
// to the copies, before it reads them and after it writes them. If the chief
// has completed the aborted run, its variables include the updates of that run.
// A function call makes these reads, too, because an edge between tasks costs a
// message in every run.
//
// An edge between tasks costs as much as a small message. So one message
// reports that several nodes have run, and no value is sent twice.
//
// The pass writes the messages with this class. The check of the written files
// writes them again with the same class and compares. All nodes are in one
// scope.
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
  std::string Name; ///< The same in all graphs, without the scope.
  std::string Device;
  std::string Types; ///< The types of the values after the number, a character
                     ///< each.
};

/// A worker's copy of a variable in another task.
struct OwnCopy {
  Endpoint Copy, Primary; ///< Handles, or references.
  std::string Device, PrimaryDevice;
  unsigned Type = DT_INVALID;
  /// A proxy is a handle even if its primary is a reference.
  bool IsHandle = true, PrimaryIsHandle = true;
  /// The name by which a function finds the primary; empty if it cannot.
  std::string Container, SharedName;
};

/// Writes the part of the message exchange that one worker runs.
class Messages {
public:
  struct Place {
    unsigned Workers = 1, Mine = 0;
    std::string Chief, Own; ///< The hosts of the chief and of this worker.
    std::string Home;       ///< The device that keeps the state of runs.
    std::string Scope;      ///< The scope of all nodes.
  };
  Messages(Graph &G, Place P, NodeId After)
      : G(G), P(std::move(P)), After(After) {}

  /// Adds the nodes for the number of a run. \p Names is the number of nodes at
  /// which runs can end. If an earlier run did not end, a run puts marks into
  /// the queues \p Marked. On the chief, these are the queues to each worker.
  /// \p Copies are the worker's copies of variables.
  void begin(unsigned Names, llvm::ArrayRef<MessageQueue> Marked,
             llvm::ArrayRef<OwnCopy> Copies = {});
  /// Returns a node that holds the run number: a node in the task of \p Device
  /// if there is one. A node that waits for it runs after the chief has begun
  /// the run and, on this worker, after the copies are up to date.
  NodeId numberNear(llvm::StringRef Device) const;

  /// Adds a message with \p Values that also reports that the nodes \p Ends
  /// have run. The message is sent after the nodes \p After.
  NodeId put(const MessageQueue &Q, llvm::ArrayRef<Endpoint> Values,
             llvm::ArrayRef<NodeId> Ends, llvm::ArrayRef<NodeId> After);

  struct Received {
    NodeId Get = NoNode; ///< Its outputs are the values.
    Endpoint Key;
    NodeId Back = NoNode; ///< Puts a message back, on a worker.
  };
  /// Adds nodes that receive the message of this run. If \p Exact is given, the
  /// message must have that number.
  Received get(const MessageQueue &Q, std::optional<Endpoint> Exact);

  /// Returns the node that records that the chief's process has begun a run.
  /// All runs of the chief must run this node. Returns NoNode if no worker
  /// asks.
  NodeId here() const { return Here; }

  /// Adds a check for runs that end at node number \p Name. The check fails
  /// unless \p Keys, the numbers of the messages from worker \p From, are all
  /// equal.
  NodeId same(unsigned Name, unsigned From, llvm::ArrayRef<Endpoint> Keys);

  /// Adds node number \p Name, at which runs end. This node waits for the nodes
  /// \p After, which write \p Copies.
  NodeId end(unsigned Name, llvm::ArrayRef<NodeId> After,
             llvm::ArrayRef<OwnCopy> Copies = {});

  /// Serialized FunctionDefs that the nodes call, by name.
  const std::map<std::string, std::string> &functions() const {
    return Functions;
  }

  /// Adds a node to the initialization of the chief's session. The node records
  /// that all earlier runs are over, so that restarted workers do not join
  /// them.
  NodeId close();

private:
  /// The keys of the table.
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
  Endpoint Run;                  ///< The number, on the device of the state.
  /// The same number. On a worker with copies, this tensor is computed only
  /// after the run has begun and the copies are up to date.
  Endpoint Number;
  Endpoint Low, High;
  std::vector<NodeId> Brought; ///< Copies of the number on other devices.
  NodeId Here = NoNode;
  std::map<std::string, std::string> Functions;
  Endpoint CutShort; ///< On a worker: true if its last run was cut short.
  Endpoint OwnOpen;  ///< CutShort as an integer.
  std::vector<NodeId> Started; ///< Nodes that every run has to run.
};

} // namespace graft

#endif // GRAFT_LIB_PROGRAM_FORMS_MESSAGES_H
