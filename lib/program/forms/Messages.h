//===- lib/program/forms/Messages.h - numbered messages ---------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
// The exchange of messages between workers. Messages go through queues and
// begin with the number of their run, so that a worker may be killed and
// restarted. A run of the chief draws a number, larger than all before, and
// tells each worker. The receiver of a message drops those of earlier runs:
//
//     put = QueueEnqueueV2(q, number, a, b)
//
//     first = QueueDequeueV2(q)
//     loop: key, a, b = first; while key < low: key, a, b = QueueDequeueV2(q)
//     get = IdentityN(a, b, ^Assert(key <= high))
//
// Numbers are multiples of 1024. A worker that was restarted in the middle of a
// run takes part again, with the number of the run plus 2, 4 and so on. A
// number less by one is a mark without a value: messages with lower numbers are
// over. A worker puts the messages that it takes back, so that the run may be
// repeated; the next run drops them.
//
// The state of runs is in a table. In the chief's process, the table ends with
// that process. On a server, a run of a worker needs nothing of the chief's
// task. But then a worker may have to know if the chief's process is still the
// one that began the run. It asks that process by a function, which no other
// run calls:
//
//   - A restarted worker takes part in a run again if the chief's process has
//     begun one.
//   - A session from before a restart of the chief does not fail while it waits
//     for the chief. It takes a mark of the next run. The question then fails
//     with an error, after which MonitoredTrainingSession makes another
//     session.
//
// Copies of variables on a worker end with its process, and a run that was cut
// short may have written some of them. So the next run takes their values from
// the chief's variables, before it reads the copies and after it writes them:
// if the chief had ended the earlier run, its updates are in there. A function
// makes these reads too, since edges between tasks are messages in all runs.
//
// An edge between tasks costs as much as a small message. So one message tells
// that several nodes have run, and a value is not sent twice.
//
// The pass writes the messages with this class. The check of its files writes
// them again with the same class and compares. All nodes are in one scope.
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

/// A variable of a worker that has the value of a variable elsewhere.
struct OwnCopy {
  Endpoint Copy, Primary; ///< Handles, or references.
  std::string Device, PrimaryDevice;
  unsigned Type = DT_INVALID;
  /// A copy may be a handle where its primary is a reference: proxies are.
  bool IsHandle = true, PrimaryIsHandle = true;
  /// The name by which a function finds the primary; without one it cannot.
  std::string Container, SharedName;
};

/// Writes the part of the exchange of messages that one worker runs.
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

  /// Adds the number of a run, of \p Names names. A run puts a mark into the
  /// queues \p Marked if runs before it did not end; on the chief these are the
  /// queues to each worker. \p Copies are variables of the worker.
  void begin(unsigned Names, llvm::ArrayRef<MessageQueue> Marked,
             llvm::ArrayRef<OwnCopy> Copies = {});
  /// Returns the number, in the task of \p Device if it is there. A node that
  /// waits for it runs after the chief has begun the run and, on this worker,
  /// after its copies are up to date.
  NodeId numberNear(llvm::StringRef Device) const;

  /// Sends \p Values, and that the nodes \p Ends have run, after the nodes
  /// \p After.
  NodeId put(const MessageQueue &Q, llvm::ArrayRef<Endpoint> Values,
             llvm::ArrayRef<NodeId> Ends, llvm::ArrayRef<NodeId> After);

  struct Received {
    NodeId Get = NoNode; ///< Its outputs are the values.
    Endpoint Key;
    NodeId Back = NoNode; ///< Puts a message back, on a worker.
  };
  /// Takes the message of this run. If \p Exact is given, the message must have
  /// that number.
  Received get(const MessageQueue &Q, std::optional<Endpoint> Exact);

  /// The node that each run of the chief runs as well, to record that this
  /// process has begun one; NoNode if no worker asks.
  NodeId here() const { return Here; }

  /// Adds a check for runs of name \p Name. It fails unless \p Keys, the
  /// numbers of the messages of worker \p From, are all equal.
  NodeId same(unsigned Name, unsigned From, llvm::ArrayRef<Endpoint> Keys);

  /// Adds the node that ends a run of name \p Name, after \p After, which write
  /// \p Copies.
  NodeId end(unsigned Name, llvm::ArrayRef<NodeId> After,
             llvm::ArrayRef<OwnCopy> Copies = {});

  /// Serialized FunctionDefs that the nodes call, by name.
  const std::map<std::string, std::string> &functions() const {
    return Functions;
  }

  /// For the preparation of the chief's session: records that all runs so far
  /// are over, for workers that would take part in them again.
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
  Endpoint Run;                  ///< The number, where the state of runs is.
  /// The same number. On a worker with copies it is computed only after the run
  /// has begun and the copies are up to date.
  Endpoint Number;
  Endpoint Low, High;
  std::vector<NodeId> Brought; ///< The number on other devices.
  NodeId Here = NoNode;
  std::map<std::string, std::string> Functions;
  Endpoint CutShort; ///< On a worker: true if its last run was cut short.
  Endpoint OwnOpen;  ///< The same, as a number.
  std::vector<NodeId> Started; ///< Nodes that every run has to run.
};

} // namespace graft

#endif // GRAFT_LIB_PROGRAM_FORMS_MESSAGES_H
