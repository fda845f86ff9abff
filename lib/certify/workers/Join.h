//===- lib/certify/workers/Join.h - the graph of all workers ----*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
// Joins the files of all workers. A node of a single file belongs to its
// worker. A node of several files must be equal in each of them. A worker takes
// from a queue the value that another worker puts into it:
//
//     worker 1: q/put = QueueEnqueueV2(q, number, g)
//     worker 0: s = AddN(.., q/get)                   →   s = AddN(.., g)
//
// The shard that a worker is fed becomes a part of a Split of the whole feed.
// Inserted nodes are checked and left out. WorkersCheck.cpp checks the order in
// time, above all of writes and reads.
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

/// One end of a message: a file, and an index in the Puts or Gets of that file.
struct MessageEnd {
  unsigned File = 0, Index = 0;
};

class WorkersJoin {
public:
  /// \p Files are in the order of their workers.
  WorkersJoin(const Graph &In, llvm::ArrayRef<WorkerFile> Files,
              DiagnosticEngine &Diags)
      : In(In), Files(Files), Diags(Diags), Word(copyWordOf(Files.front().G)) {}

  /// Returns the graph for all workers, or null after an error.
  std::unique_ptr<Graph> run();

  /// Returns the Put that sends the message of \p Get. Sets \p File to the file
  /// of the Put.
  const WorkerFile::Message &sender(const WorkerFile::Message &Get,
                                    unsigned &File) const {
    MessageEnd End = PutOf.lookup(Get.Queue.Name);
    File = End.File;
    return Files[End.File].Puts[End.Index];
  }
  /// Returns the file and node that a control input \p N in file \p File waits
  /// for: \p N itself or, if \p N receives a message, the node that the sender
  /// waited for.
  std::pair<unsigned, NodeId> waitsFor(unsigned File, NodeId N) const;
  /// Returns true if \p N of file \p File is in another file, too.
  bool isCommon(unsigned File, NodeId N) const {
    auto It = Counts.find(Files[File].originName(N));
    return It != Counts.end() && It->second > 1;
  }
  bool error(unsigned File, NodeId N, const llvm::Twine &Message);

private:
  /// A feed of which each worker gets a shard.
  struct Feed {
    NodeId Split = NoNode; ///< In the graph for all.
    int64_t Axis = 0;
    /// By file: its first part. The last element is the number of all parts.
    std::vector<unsigned> First;
    std::vector<NodeId> Local; ///< By file: its split, or NoNode.
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
  std::string Word; ///< The word in the names of copies.
  unsigned Errors = 0;
  std::unique_ptr<Graph> L = std::make_unique<Graph>();
  llvm::StringMap<MessageEnd> PutOf; ///< By the name of the queue.
  llvm::StringMap<Feed> Feeds;
  unsigned Replicas = 0;
  llvm::StringMap<unsigned> Counts; ///< By name: the number of files with it.
  llvm::StringMap<NodeId> NodeOf;   ///< By name: the node of the graph for all.
  std::vector<NodeId> Branches;     ///< The nodes of Role::Branch in L.
  using Group = std::vector<std::pair<int, NodeId>>;
  llvm::StringMap<Group> Groups; ///< By base name: its copies in L, by replica.
  llvm::DenseMap<NodeId, const Group *> GroupOf;
  /// Pairs of nodes of L: the first waits for the second in some files only.
  std::vector<std::pair<NodeId, NodeId>> OpenWaits;
};

} // namespace graft

#endif // GRAFT_LIB_CERTIFY_WORKERS_JOIN_H
