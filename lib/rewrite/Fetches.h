//===- lib/rewrite/Fetches.h - what may be asked for of a step --*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
// Which tensors of a program somebody may fetch, so that their names must stand
// for the global value: those that are named, results that nothing reads, and
// what leads to a loss.
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

/// The tensors that \p Pattern stands for and a run can fetch: not what only an
/// iteration of a loop of \p Loops has (null: there are none), nor handles.
std::vector<Endpoint> fetchesLike(const Graph &G, llvm::StringRef Pattern,
                                  const LoopInfo *Loops);

/// Whether \p E holds sizes of one replica from which those of all follow.
bool hasWholeSizes(const ProgramFacts &Facts, Endpoint E);

/// Whether \p E is read from a sync-on-read variable without aggregation.
bool hasNoAggregate(const Graph &G, const ProgramFacts &Facts, Endpoint E);

class Fetches {
public:
  /// With \p Picks also numbers that are equal on all replicas.
  Fetches(const Graph &G, const ProgramFacts &Facts, bool Picks);

  /// Adds tensors of collections and signatures, initial values, and \p Names.
  /// False after an error.
  bool addNamed(const Module &M, llvm::ArrayRef<std::string> Names,
                DiagnosticEngine &Diags);
  /// Adds results that nothing reads, or only unreplicated ops read, and
  /// scalars that sum up the batch.
  void addSinks();
  /// Adds what leads to a loss, as far as it is proved: who trains fetches it.
  /// A loss is what sums up the batch in a scalar, or the errors of each
  /// example that a gradient begins at. All that is computed after the last
  /// variable has its name (predictions, errors of each example); of what comes
  /// before, what is a vector for each example, or as large as what is fed, and
  /// next to a loss, as much as lets the output grow little. What only has the
  /// size of the batch (the zero state of a recurrent network) is fed as often
  /// as it is fetched, and nobody reads a merged value: it has no name.
  void addForward();

  /// Nodes that \p Names names, and results that nothing reads, which have no
  /// value since nothing is proved of them, and which node is the cause.
  std::vector<std::pair<NodeId, NodeId>>
  unrelated(llvm::ArrayRef<std::string> Names) const;

  /// To whether the user named it, and not a pattern that it is like.
  const std::map<std::pair<NodeId, uint32_t>, bool> &tensors() const {
    return Found;
  }
  /// Results to which the size of the batch was lost on the way.
  llvm::ArrayRef<NodeId> lost() const { return Lost; }
  /// Whether \p E is fetched although it is equal on all replicas.
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
  /// Whether only the size of what it reads matters to \p U.
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
  std::unique_ptr<LoopInfo> Loops; ///< Null without.
  std::map<std::pair<NodeId, uint32_t>, bool> Found;
  std::vector<NodeId> Lost;
  std::set<std::vector<int64_t>> FedSizes; ///< Of an example.
};

} // namespace graft

#endif // GRAFT_LIB_REWRITE_FETCHES_H
