//===- lib/certify/workers/Join.h - the graph of all workers ----*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
// The files of all workers, joined. A node that is in one file only is that
// worker's; any other is in all of them, and must be the same in each. What a
// worker takes out of a queue is what another puts into it:
//
//     worker 1: q/put = QueueEnqueueV2(q, number, g)
//     worker 0: s = AddN(.., q/get)                   →   s = AddN(.., g)
//
// Rows that a worker is fed are its part of a Split. What was added is left
// out when it has been looked at; what depends on time, the order of writes and
// reads above all, is for WorkersCheck.cpp.
//
//===----------------------------------------------------------------------===//

#ifndef GRAFT_LIB_CERTIFY_WORKERS_JOIN_H
#define GRAFT_LIB_CERTIFY_WORKERS_JOIN_H

#include "lib/certify/workers/WorkerFile.h"
#include "lib/graph/CopyWord.h"
#include "lib/support/Diagnostics.h"

#include "llvm/ADT/DenseMap.h"

#include <map>
#include <memory>

namespace graft {

class Conditions;

/// An end of a message: a file, and the number of it in Puts or Gets.
struct MessageEnd {
  unsigned File = 0, Index = 0;
};

class WorkersJoin {
public:
  /// \p Files by worker.
  WorkersJoin(const Graph &In, llvm::ArrayRef<WorkerFile> Files,
              DiagnosticEngine &Diags)
      : In(In), Files(Files), Diags(Diags), Word(copyWordOf(Files.front().G)) {}

  /// The graph for all workers; null after an error.
  std::unique_ptr<Graph> run();

  /// Who sends what file \p File takes by its Get \p Index.
  const WorkerFile::Message &sender(const WorkerFile::Message &Get,
                                    unsigned &File) const {
    MessageEnd End = PutOf.lookup(Get.Queue.Name);
    File = End.File;
    return Files[End.File].Puts[End.Index];
  }
  /// The nodes of the file \p File that node \p N of it, a control input,
  /// waits for: that, or what another worker's message waited for.
  std::pair<unsigned, NodeId> waitsFor(unsigned File, NodeId N) const;
  /// Whether \p N of a file is one that all files have.
  bool isCommon(unsigned File, NodeId N) const {
    auto It = Counts.find(Files[File].originName(N));
    return It != Counts.end() && It->second > 1;
  }
  bool error(unsigned File, NodeId N, const llvm::Twine &Message);

private:
  /// Rows that workers are fed.
  struct Feed {
    NodeId Split = NoNode; ///< Of the graph for all.
    int64_t Axis = 0;
    std::vector<unsigned>
        First;                 ///< By file, its first part; then their number.
    std::vector<NodeId> Local; ///< By file, its own split, or NoNode.
  };

  bool matchMessages();
  bool findFeeds();
  bool checkFeedShape(unsigned File, NodeId N, const Feed &F);
  bool makeNodes();
  bool makeSplits();
  NodeId addConst(const llvm::Twine &Name, int64_t Value,
                  llvm::StringRef Device);
  void stamp(NodeId N, NodeId Like, unsigned File);
  bool compare(unsigned File, NodeId N, NodeId With);
  bool sameDevice(unsigned File, NodeId N, NodeId With) const;
  bool connect();
  bool inputs(unsigned File, NodeId N, std::vector<Endpoint> &Result);
  bool outside(unsigned File, NodeId N, std::vector<Endpoint> &Result);
  bool rows(llvm::StringRef Name);
  bool control(unsigned File, NodeId User, NodeId N,
               std::vector<Endpoint> &Result);
  bool source(unsigned File, NodeId User, Endpoint E, Endpoint &Result,
              unsigned Depth = 0);
  bool whole(unsigned File, NodeId N);
  bool tellsEnd(unsigned File, NodeId Get, NodeId N);
  bool checkNames();
  bool checkName(unsigned File, NodeId N);
  bool eraseBranches();
  bool completeWaits();
  void findGroups();
  void addWaits(NodeId To, unsigned Data, std::vector<Endpoint> &Inputs,
                llvm::ArrayRef<Endpoint> Its);
  bool passesBranch(Conditions &When, Endpoint E, Endpoint To);
  Endpoint behindBranch(Endpoint E) const;
  bool isFeed(unsigned File, NodeId N) const {
    return Files[File].G.opName(N).starts_with("Placeholder") &&
           Feeds.contains(Files[File].G.name(N));
  }
  bool isLocalSplit(unsigned File, NodeId N) const;
  bool isRows(unsigned File, NodeId N) const;

  const Graph &In;
  llvm::ArrayRef<WorkerFile> Files;
  DiagnosticEngine &Diags;
  std::string Word; ///< What copies are called.
  unsigned Errors = 0;
  std::unique_ptr<Graph> L = std::make_unique<Graph>();
  llvm::StringMap<MessageEnd> PutOf; ///< By the name of the queue.
  llvm::StringMap<Feed> Feeds;
  unsigned Replicas = 0;
  llvm::StringMap<unsigned> Counts; ///< By name: in how many files it is.
  llvm::StringMap<NodeId> NodeOf;   ///< By name: of the graph for all.
  std::vector<NodeId> Branches;     ///< Of it.
  using Group = std::vector<std::pair<int, NodeId>>;
  llvm::StringMap<Group> Groups; ///< Of it: copies, by replica.
  llvm::DenseMap<NodeId, const Group *> GroupOf;
  /// Of it: nodes that a worker does not have wait for others.
  std::vector<std::pair<NodeId, NodeId>> OpenWaits;
};

} // namespace graft

#endif // GRAFT_LIB_CERTIFY_WORKERS_JOIN_H
