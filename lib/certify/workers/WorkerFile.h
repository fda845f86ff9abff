//===- lib/certify/workers/WorkerFile.h - the graph of a worker -*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#ifndef GRAFT_LIB_CERTIFY_WORKERS_WORKERFILE_H
#define GRAFT_LIB_CERTIFY_WORKERS_WORKERFILE_H

#include "lib/graph/Graph.h"
#include "lib/infer/graph/Variables.h"
#include "lib/ops/Ops.h"
#include "lib/program/forms/Messages.h"

#include "llvm/ADT/StringMap.h"

#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace tensorflow {
class FunctionDef;
class FunctionDefLibrary;
} // namespace tensorflow

namespace graft {

/// The role of a node in a worker's graph, by its stamp.
enum class Role : uint8_t {
  Payload,   ///< A node of the graph for all workers.
  Name,      ///< Has the name of the node that it runs.
  Own,       ///< A copy of a node of the graph for all workers.
  Wire,      ///< Part of the exchange of messages.
  Put,       ///< Sends a message.
  Get,       ///< Receives a message.
  End,       ///< Runs after a node of another worker has run.
  Reads,     ///< Waits for the reads of a worker, before a write.
  AllGiven,  ///< Waits for all messages of a run, before a write of the chief.
  Taken,     ///< The worker's copy of the value of a read.
  Outside,   ///< A read before a loop that replaces a read in the loop.
  Branch,    ///< Moves a value out of a conditional or into one.
  Given,     ///< The rows of a feed that one worker sends to other workers.
  Whole,     ///< A whole feed, concatenated from the rows of all workers.
  LocalInit, ///< The worker's part of the initialization of a session.
  Ready,     ///< Tests if this initialization may run.
};

/// One of the files that are joined.
struct WorkerFile {
  explicit WorkerFile(const Graph &G);

  /// A message that the file sends or receives.
  struct Message {
    MessageQueue Queue;
    NodeId Node = NoNode; ///< The Put or the Get.
    /// For a Get: the queue of the root, a message whose number this message
    /// must also have.
    std::optional<std::string> Root;
  };

  bool is(NodeId N, Role R) const { return Roles[N] == R; }
  /// Returns the name of \p N in the graph for all.
  llvm::StringRef originName(NodeId N) const;
  /// Returns the node that is called \p Name in the graph for all, or NoNode.
  NodeId find(llvm::StringRef Name) const {
    auto It = ByName.find(Name);
    return It == ByName.end() ? NoNode : It->second;
  }
  bool talks() const { return Number != NoNode; }
  /// Returns true if \p N records that a run of a name is over.
  bool isEnd(NodeId N) const;
  /// Returns the node \p Name of the exchange of messages, or NoNode.
  NodeId wire(const llvm::Twine &Name) const {
    return G.find((Scope + "/" + Name).str());
  }
  /// Returns the node with the number of the run, on the device that keeps the
  /// state of runs. On a worker with variable copies, Number waits until these
  /// are refreshed.
  NodeId run() const {
    NodeId Joins = wire("joins");
    return Joins == NoNode ? Number : Joins;
  }
  /// Returns true if \p N is the number of the run, here or in another task.
  bool isNumber(NodeId N) const {
    return N == Number || (talks() && N == run()) ||
           (is(N, Role::Wire) && G.isOp(N, op::Identity) &&
            G.node(N).NumData == 1 && G.input(N, 0) == Endpoint{run(), 0});
  }
  /// Returns the nodes and earlier Puts that \p Put waits for, in order. The
  /// message shows its receiver that these nodes have run.
  std::vector<NodeId> waitsOfPut(NodeId Put) const;
  /// Returns all nodes that \p N waits for by control edges, also through nodes
  /// of the exchange of messages that only wait.
  std::vector<NodeId> waitsOf(NodeId N) const;
  /// Returns the input by which \p N reads a variable, or -1.
  int readsVariable(NodeId N) const;

  /// Returns the function \p Name of the library, or null.
  const tensorflow::FunctionDef *function(llvm::StringRef Name) const;

  const Graph &G;
  /// Attributes of Number. Without Number, Worker is the lowest replica.
  unsigned Worker = 0, Workers = 0;
  std::string Scope; ///< The scope of inserted nodes; empty if there are none.
  NodeId Number = NoNode;
  std::string Own;  ///< The host of the worker.
  std::string Home; ///< The device that keeps the state of runs.
  VariableIndex Vars;
  std::vector<Role> Roles;         ///< By node.
  llvm::StringMap<NodeId> ByName;  ///< By name in the graph for all.
  std::vector<Message> Puts, Gets; ///< In the order of the file.
  std::vector<NodeId> Names;       ///< The nodes of Role::Name.
  std::vector<bool> InRun;         ///< By node: a run with messages may run it.
  /// The functions of the file; none if the file has no messages.
  std::shared_ptr<tensorflow::FunctionDefLibrary> Library;
};

} // namespace graft

#endif // GRAFT_LIB_CERTIFY_WORKERS_WORKERFILE_H
