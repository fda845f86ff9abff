//===- lib/rewrite/Fetches.h - tensors that a run may fetch -----*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
// Finds the tensors of a program that a user may fetch, whose names must refer
// to the global value. They are tensors that the user names, results that no
// node reads, and values from which a loss is computed.
//
//===----------------------------------------------------------------------===//

#ifndef GRAFT_LIB_REWRITE_FETCHES_H
#define GRAFT_LIB_REWRITE_FETCHES_H

#include "lib/graph/PerOp.h"
#include "lib/infer/facts/ProgramFacts.h"
#include "lib/infer/graph/Loops.h"
#include "lib/support/Diagnostics.h"

#include "llvm/ADT/BitVector.h"

#include <map>
#include <set>
#include <vector>

namespace graft {

/// Finds the tensors that match \p Pattern and that a run can fetch: no handles
/// and no values of an iteration of \p Loops (null: there are no loops).
std::vector<Endpoint> fetchesLike(const Graph &G, llvm::StringRef Pattern,
                                  const LoopInfo *Loops);

/// Returns true if the global sizes follow from the local sizes in \p E.
bool hasWholeSizes(const ProgramFacts &Facts, Endpoint E);

/// Returns true if \p E reads a sync-on-read variable without aggregation.
bool hasNoAggregate(const Graph &G, const ProgramFacts &Facts, Endpoint E);

class Fetches {
public:
  /// If \p Picks, also finds scalars that are equal on all replicas.
  Fetches(const Graph &G, const ProgramFacts &Facts, bool Picks);

  /// Adds tensors of collections and signatures, initial values, and \p Names.
  /// Returns false after an error.
  bool addNamed(const Module &M, llvm::ArrayRef<std::string> Names,
                DiagnosticEngine &Diags);
  /// Adds results that no replica reads, and scalars over the batch.
  void addSinks();
  /// Adds proved values from which a loss is computed, because training
  /// programs fetch them. A loss is a scalar over the batch, or a vector of
  /// per-example errors at which a gradient begins. All values between the last
  /// variable and the loss are added: predictions, per-example errors. Earlier
  /// values are added if they have a vector for each example, or examples of
  /// the size of a fed example. The values nearest to a loss come first, up to
  /// a limit on the output size. A value that depends only on the batch size,
  /// such as the zero state of a recurrent network, is not added: users mostly
  /// feed such a value and need no merge.
  void addForward();

  /// Returns nodes of unknown type, each with the origin of that type.
  /// Considers the nodes in \p Names and nodes whose results no node reads.
  std::vector<std::pair<NodeId, NodeId>>
  unrelated(llvm::ArrayRef<std::string> Names) const;

  /// Returns the tensors found. The flag of a tensor is true if the user gave
  /// its name and not a pattern.
  const std::map<std::pair<NodeId, uint32_t>, bool> &tensors() const {
    return Found;
  }
  /// Returns the nodes at which the inference lost the batch size.
  llvm::ArrayRef<NodeId> lost() const { return Lost; }
  /// Returns true if \p E is fetched although it is equal on all replicas.
  bool isPicked(Endpoint E) const {
    return Picks && Found.count({E.Node, E.Port}) &&
           Facts.Vars.variableOf(E) == NoNode;
  }

private:
  void addNamed(Endpoint E, bool Alone);
  bool addPattern(llvm::StringRef Pattern, DiagnosticEngine &Diags);
  bool isInLoop(NodeId N) const { return Loops && Loops->givesInside(N); }
  bool isScalar(Endpoint E) const;
  bool sumsUpBatch(Endpoint E) const;
  bool isWorthPicking(NodeId N) const;
  bool hasStaticBatch() const;
  std::vector<bool> findLost() const;
  bool readsState(NodeId N) const;
  bool isResult(Endpoint E) const;
  /// Returns true if \p U reads only the size of its operand.
  bool readsSize(Use U) const { return SizeReaders[G.node(U.User)]; }
  bool isRead(Endpoint E) const;
  bool isLossOfRows(Endpoint E) const;
  bool beginsGradient(Endpoint E) const;
  bool hasValue(Endpoint E) const;
  size_t addValues(NodeId N);
  std::vector<int64_t> exampleSizes(Endpoint E) const;
  bool mayBeState(NodeId N) const;

  const Graph &G;
  const ProgramFacts &Facts;
  bool Picks;
  PerOp SizeReaders;
  std::unique_ptr<LoopInfo> Loops; ///< Null if there are no loops.
  std::map<std::pair<NodeId, uint32_t>, bool> Found;
  std::vector<NodeId> Lost;
  std::set<std::vector<int64_t>> FedSizes; ///< The sizes of a fed example.
};

} // namespace graft

#endif // GRAFT_LIB_REWRITE_FETCHES_H
