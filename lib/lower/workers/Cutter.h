//===- lib/lower/workers/Cutter.h - cutting a graph between tasks *- C++ -*-==//
//
// SPDX-License-Identifier: Apache-2.0
//
// One run of cutWorker (Cut.h). Owners.cpp finds the owner of each node.
// Feeds.cpp splits feeds, Gates.cpp lets writes wait for reads, Exchange.cpp
// adds the messages between workers, Names.cpp the names that can be run.
// OwnReads.cpp makes a worker read variables after the chief has begun a run.
//
//===----------------------------------------------------------------------===//

#ifndef GRAFT_LIB_LOWER_WORKERS_CUTTER_H
#define GRAFT_LIB_LOWER_WORKERS_CUTTER_H

#include "lib/graph/Walk.h"
#include "lib/infer/graph/Variables.h"
#include "lib/lower/workers/Branches.h"
#include "lib/lower/workers/Cut.h"
#include "lib/ops/Ops.h"
#include "lib/program/forms/Messages.h"

#include "llvm/ADT/BitVector.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/StringSet.h"

#include <map>
#include <optional>

namespace graft {

/// The owner of nodes that every worker's graph has.
inline constexpr int Common = -1;

/// A tensor or a control dependency that one worker sends to another.
struct Channel {
  Endpoint From;
  int Source = 0, Target = 0;
  std::string Device; ///< The device of the queue.
  std::vector<Use> Uses;
};

/// A message from one worker to another, through one queue. It has all channels
/// that the same names need and that depend on the same number of messages.
struct Message {
  int Source = 0, Target = 0;
  unsigned Level = 0;
  llvm::BitVector Of; ///< The names that need it.
  std::vector<unsigned> Channels;
  MessageQueue Queue;
  /// The message whose run number this message must have. In every run that has
  /// this message, the same worker also sends the root to the chief. If both
  /// depend on the same number of messages, the root is sent later.
  std::optional<unsigned> Root;
};

/// A name that every worker has although worker 0 computes its value.
struct RunName {
  NodeId Node;
  /// Set if the node concatenates the rows of the replicas for a fetch. Then
  /// each worker returns its own rows.
  bool IsRows = false;
  /// The outputs that the other workers receive, or a control dependency if the
  /// node has no outputs. They are outside of conditionals, so that every run
  /// computes them.
  llvm::SmallVector<Endpoint, 2> Given;
  /// The messages that carry Given to the other workers.
  std::vector<unsigned> Values;
  std::vector<unsigned> Messages; ///< All messages that a run of the name
                                  ///< sends or receives.
  NodeId Run = NoNode;            ///< The node that has the name in the end.
};

class Cutter {
public:
  Cutter(Graph &G, const CutPlan &Plan, unsigned Worker,
         DiagnosticEngine &Diags);
  bool run();

private:
  int taskOf(llvm::StringRef Device) const;
  std::string hostOf(int Worker) const {
    return Plan.Tasks[static_cast<size_t>(Worker)] + "/device:CPU:0";
  }
  NodeId add(const llvm::Twine &Name, llvm::StringRef Part, llvm::StringRef Op,
             llvm::ArrayRef<Endpoint> Inputs, NodeId After, AttrRun Attrs,
             llvm::StringRef Device, int Worker);
  /// Calls \p F with \p N and each node that it depends on, up to nodes that
  /// every worker has.
  template <typename Fn> void forEachBehind(NodeId N, Fn F) const;

  // Owners.cpp
  /// Returns true if \p N splits a tensor into the rows of each replica.
  bool isSplit(NodeId N) const {
    return G.isOp(N, op::Split) && G.hasAttr(N, StampAttr);
  }
  std::optional<unsigned> workerOf(NodeId N) const;
  bool isWaiting(NodeId N) const { return N < Waiting.size() && Waiting[N]; }
  void markRefreshes(Inserted Kind);
  bool isFirstValue(NodeId N) const;
  bool isOnce(NodeId N) const;
  int ownerOfMade(NodeId N) const;
  void findOwners();
  void findWaiting(llvm::ArrayRef<NodeId> Order, const std::vector<bool> &Made);

  // Feeds.cpp
  bool isFeedSplit(NodeId N) const;
  int ownerOfRows(unsigned Replica) const {
    return static_cast<int>(Plan.WorkerOf[Replica]);
  }
  void shareFeeds();
  void shareFeed(NodeId Split);
  bool splitFeeds();
  bool splitFeed(NodeId Split);

  // Gates.cpp
  void gateWrites();
  llvm::DenseMap<NodeId, llvm::BitVector> leadsOf() const;
  using ByWorker = std::vector<llvm::SmallVector<NodeId, 2>>;
  ByWorker
  givers(llvm::ArrayRef<size_t> Names,
         const llvm::DenseMap<NodeId, std::vector<size_t>> &Takes) const;
  llvm::DenseSet<NodeId> givenBefore(llvm::ArrayRef<NodeId> Givers,
                                     int Worker) const;
  void gate(llvm::ArrayRef<NodeId> Group, int Worker,
            llvm::function_ref<bool(NodeId)> Leads,
            const llvm::DenseSet<NodeId> &Given);
  llvm::SmallVector<NodeId, 4> readsOf(NodeId Var) const;
  bool isTakenHere(NodeId Read, int Worker) const;
  NodeId taken(NodeId Read, int Worker);
  NodeId readOutside(NodeId Read, int Worker);
  void gateOnAll();

  // Exchange.cpp
  std::string findHome() const;
  void addFunctions();
  void findWritten();
  std::string queueDevice(NodeId Reader) const;
  std::string queueName(const llvm::Twine &Of, int Source, int Target);
  unsigned channel(Endpoint From, int Target, const std::string &Device);
  bool findChannels();
  bool canSend(Endpoint E) const;
  std::vector<unsigned> levels() const;
  void groupMessages(llvm::ArrayRef<llvm::BitVector> NamesOf);
  void findRoots();
  void exchange();
  void send(unsigned M, llvm::ArrayRef<NodeId> After);
  void receive(unsigned M);
  void takeOwners() { Owner.resize(G.size(), Mine); }

  // Names.cpp
  bool isRowsOfAll(NodeId N) const;
  void findNames();
  bool findGiven(NodeId N, llvm::SmallVectorImpl<Endpoint> &Given);
  void writeName(unsigned Name);
  void writeRows(NodeId N, llvm::ArrayRef<NodeId> Waits);
  void prepareSessions();

  // OwnReads.cpp
  void findOwnCopies();
  std::vector<OwnCopy> writtenBy(NodeId N) const;
  void readAfterBegin();

  // Cut.cpp
  void moveConstants();
  void dropWaits(llvm::ArrayRef<NodeId> Order);
  void removeOthers();
  void dropClasses();

  Graph &G;
  const CutPlan &Plan;
  int Mine;
  DiagnosticEngine &Diags;
  VariableIndex Vars;
  unsigned Workers;
  std::string Scope; ///< The scope of all nodes that are added.
  std::string Home;  ///< The device that keeps the state of runs.
  std::vector<int> Owner;
  /// By node of the graph for all tasks: set if every worker has the node,
  /// which then waits only for copies of this worker.
  std::vector<bool> Waiting;
  llvm::DenseMap<NodeId, int> Given; ///< Owners of the nodes that shareFeeds()
                                     ///< adds.
  std::vector<bool> Written;         ///< By node: an update of a variable
                                     ///< depends on it.
  std::vector<Channel> Channels;
  llvm::DenseMap<std::pair<uint64_t, int>, unsigned> Numbers;
  llvm::StringSet<> Taken;
  std::optional<Branches> Conditionals;
  std::vector<RunName> Names;
  llvm::DenseSet<NodeId> Rows; ///< See RunName::IsRows.
  /// Groups of writes: by the names that run them (as numbers in the plan) and
  /// by owner.
  std::map<std::pair<std::vector<size_t>, int>, std::vector<NodeId>>
      WriteGroups;
  std::vector<bool> AfterWrites; ///< By node: is or depends on a write.
  std::vector<Message> All;      ///< All messages.
  std::optional<Messages> Wire;
  NodeId FirstOfWire = 0;   ///< The first node that Wire added.
  std::vector<NodeId> Sent; ///< By message: the node that sends it.
  std::vector<Messages::Received> Received;
  std::vector<OwnCopy> Copies; ///< Variables of this worker, with primaries.
};

template <typename Fn> void Cutter::forEachBehind(NodeId N, Fn F) const {
  llvm::DenseSet<NodeId> Seen;
  walkInputs(G, {N}, Along::All, Seen, [&](NodeId At) {
    bool IsOwned = Owner[At] != Common || isWaiting(At);
    if (IsOwned)
      F(At);
    return IsOwned;
  });
}

} // namespace graft

#endif // GRAFT_LIB_LOWER_WORKERS_CUTTER_H
