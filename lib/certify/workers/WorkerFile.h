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

/// What a node of a worker's graph is, as its stamp says.
enum class Role : uint8_t {
  Payload, ///< A node of the graph for all workers.
  Name,    ///< Has the name of one that it runs.
  Own,     ///< A node of the graph for all workers once more.
  Wire,    ///< Of the exchange of messages.
  Put,     ///< Of that: sends.
  Get,     ///< Of that: has what came.
  End,
  Reads,
  AllGiven,
  Taken,
  Outside,
  Branch,
  Given,
  Whole,
  LocalInit,
  Ready,
};

/// One of the files that are joined.
struct WorkerFile {
  explicit WorkerFile(const Graph &G);

  /// A message that the file sends or takes.
  struct Message {
    MessageQueue Queue;
    NodeId Node = NoNode; ///< What sends, or what has it.
    /// Of one that is taken: the message whose number this one has.
    std::optional<std::string> Root;
  };

  bool is(NodeId N, Role R) const { return Roles[N] == R; }
  /// The name of \p N in the graph for all.
  llvm::StringRef originName(NodeId N) const;
  /// The node of the graph for all called \p Name, or NoNode.
  NodeId find(llvm::StringRef Name) const {
    auto It = ByName.find(Name);
    return It == ByName.end() ? NoNode : It->second;
  }
  bool talks() const { return Number != NoNode; }
  /// Whether \p N says that a run of a name is over.
  bool isEnd(NodeId N) const;
  /// The node called \p Name of the exchange of messages, or NoNode.
  NodeId wire(const llvm::Twine &Name) const {
    return G.find((Scope + "/" + Name).str());
  }
  /// The number of the run where what is kept about runs is, from which
  /// Number is made when the copies of a worker are right.
  NodeId run() const {
    NodeId Joins = wire("joins");
    return Joins == NoNode ? Number : Joins;
  }
  /// Whether \p N is the number of the run, here or in another task.
  bool isNumber(NodeId N) const {
    return N == Number || (talks() && N == run()) ||
           (is(N, Role::Wire) && G.isOp(N, op::Identity) &&
            G.node(N).NumData == 1 && G.input(N, 0) == Endpoint{run(), 0});
  }
  /// Of a message, the nodes whose ends \p Put sends, in order, and what is
  /// sent before it.
  std::vector<NodeId> waitsOfPut(NodeId Put) const;
  /// All that \p N waits for by control edges, also by what of the exchange of
  /// messages only waits.
  std::vector<NodeId> waitsOf(NodeId N) const;
  /// What reads \p N: the input by which it reads a variable, or -1.
  int readsVariable(NodeId N) const;

  /// The function \p Name of the library, or null.
  const tensorflow::FunctionDef *function(llvm::StringRef Name) const;

  const Graph &G;
  /// By the stamp; without one, the first copy that the file has.
  unsigned Worker = 0, Workers = 0;
  std::string Scope; ///< Of what was added; empty: nothing.
  NodeId Number = NoNode;
  std::string Own;  ///< The host of the worker.
  std::string Home; ///< Where what is kept about runs is.
  VariableIndex Vars;
  std::vector<Role> Roles;         ///< By node.
  llvm::StringMap<NodeId> ByName;  ///< By name in the graph for all.
  std::vector<Message> Puts, Gets; ///< In the order of the file.
  std::vector<NodeId> Names;       ///< Of Role::Name.
  std::vector<bool> InRun;         ///< What a run with messages may run.
  /// The functions of a file with messages.
  std::shared_ptr<tensorflow::FunctionDefLibrary> Library;
};

} // namespace graft

#endif // GRAFT_LIB_CERTIFY_WORKERS_WORKERFILE_H
