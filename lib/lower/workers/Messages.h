//===- lib/lower/workers/Messages.h - numbered messages ---------*- C++ -*-===//
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
// One less is a mark without a value: what is below is over. What is kept about
// runs is in a table in the chief's process (Key), so that it ends with it.
// What a worker takes it puts back, so that the run may be run again; the next
// run drops it.
//
//===----------------------------------------------------------------------===//

#ifndef GRAFT_LIB_LOWER_WORKERS_MESSAGES_H
#define GRAFT_LIB_LOWER_WORKERS_MESSAGES_H

#include "lib/graph/AttrRun.h"
#include "lib/graph/Graph.h"

#include <functional>
#include <string>
#include <vector>

namespace graft {

/// A queue from one worker to another.
struct MessageQueue {
  std::string Name; ///< In both graphs.
  std::string Device;
  std::string Types; ///< Of what follows the number, one for each character.
};

/// Writes what one worker runs of the exchange of messages.
class Messages {
public:
  /// Adds a node on a device behind another; the last is where.
  using AddFn = std::function<NodeId(const llvm::Twine &, llvm::StringRef,
                                     llvm::ArrayRef<Endpoint>, const AttrRun &,
                                     llvm::StringRef)>;
  Messages(Graph &G, AddFn Add, unsigned Workers, unsigned Mine,
           std::string ChiefHost, std::string OwnHost)
      : G(G), Add(std::move(Add)), Workers(Workers), Mine(Mine),
        Home(std::move(ChiefHost)), Own(std::move(OwnHost)) {}

  /// The number of a run, of \p Names names. \p Marked are queues to which a
  /// run puts a mark when runs before it did not end: on the chief those to
  /// each worker.
  void begin(unsigned Names, llvm::ArrayRef<const MessageQueue *> Marked);
  Endpoint number() const { return Number; }

  /// Sends \p Values after \p After.
  NodeId put(const MessageQueue &Q, llvm::ArrayRef<Endpoint> Values,
             llvm::ArrayRef<NodeId> After);

  struct Received {
    NodeId Get = NoNode; ///< Its outputs are the values.
    Endpoint Key;
    NodeId Back = NoNode; ///< What puts a message back, on a worker.
  };
  /// Takes the message of this run; \p Exact, if given, is the number that it
  /// must have.
  Received get(const MessageQueue &Q, std::optional<Endpoint> Exact);

  /// To be run when name \p Name has been run, up to \p After.
  NodeId end(unsigned Name, llvm::ArrayRef<NodeId> After);

private:
  /// What the table has at which place.
  enum Key : int64_t { LastNumber = 0 };
  int64_t keyStartedAgain(unsigned Worker) const { return Worker; }
  int64_t keyJoined(unsigned Worker) const { return Workers + Worker; }
  int64_t keyBegun(unsigned Name) const { return 2 * (Workers + Name); }
  int64_t keyEnded(unsigned Name) const { return keyBegun(Name) + 1; }

  NodeId ints(const llvm::Twine &Name, llvm::ArrayRef<int64_t> Values,
              llvm::StringRef Device, bool Scalar = true);
  NodeId of(const llvm::Twine &Name, llvm::StringRef Op,
            llvm::ArrayRef<Endpoint> Inputs, llvm::StringRef Device,
            unsigned Type = DT_INT64);
  NodeId table(const llvm::Twine &Name, llvm::StringRef Device);
  NodeId find(const llvm::Twine &Name, NodeId Table, NodeId Keys,
              NodeId Default, llvm::ArrayRef<NodeId> After,
              llvm::StringRef Device);
  NodeId insert(const llvm::Twine &Name, NodeId Table, NodeId Keys,
                Endpoint Values, llvm::ArrayRef<NodeId> After,
                llvm::StringRef Device);
  NodeId queue(const MessageQueue &Q);
  NodeId enqueue(const llvm::Twine &Name, NodeId Queue,
                 llvm::ArrayRef<Endpoint> Values, llvm::StringRef Types,
                 llvm::ArrayRef<NodeId> After, llvm::StringRef Device);
  NodeId dequeue(const llvm::Twine &Name, Endpoint Queue, llvm::StringRef Types,
                 llvm::ArrayRef<NodeId> After, llvm::StringRef Device);
  NodeId enter(const llvm::Twine &Name, Endpoint Value, llvm::StringRef Frame,
               bool Constant, llvm::StringRef Device);
  NodeId mark(const MessageQueue &Q, Endpoint Key);
  Endpoint chiefBegins(unsigned Names,
                       llvm::ArrayRef<const MessageQueue *> Marked);
  Endpoint workerBegins(llvm::ArrayRef<const MessageQueue *> Marked);
  MessageQueue beginQueue(unsigned Worker) const;

  Graph &G;
  AddFn Add;
  unsigned Workers, Mine;
  std::string Home, Own;
  Endpoint Number, Low, High;
  NodeId State = NoNode, OwnState = NoNode;
  NodeId Zero = NoNode, First = NoNode;
  std::vector<NodeId> Started; ///< To be run by every run.
};

} // namespace graft

#endif // GRAFT_LIB_LOWER_WORKERS_MESSAGES_H
