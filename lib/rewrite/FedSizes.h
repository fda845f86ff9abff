//===- lib/rewrite/FedSizes.h - sizes of the batch that are fed -*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
// A step may be told how many rows it is fed. What is made of so many rows is
// as long as the rows of one replica on each of them:
//
//     n = Placeholder() shape=[]      n = Placeholder() shape=[]
//     s = Pack(n, 4)             →    n/share = _Scale*(n) power=-1
//     z = Fill(s, 0)                  s = Pack*(n/share, 4)
//                                     z = Fill*(s, 0)
//
// Where an op wants as many as there are rows, that is what is fed. Where one
// might be repeated for all rows, it is supposed to be, if the share is then
// found to be the rows of one replica.
//
// A number that is no multiple of the replicas has no share: the 1 of what is
// repeated after all, or the 13 of a run that only generates. So what reads a
// share waits for an assertion, which says so:
//
//     n/share/assert = Assert*(Equal(FloorMod(n, N), 0), message)
//     n/share/gate   = NoOp*(^n/share/assert)
//     n/share        = _Scale*(n, ^n/share/gate) power=-1
//
// A number that is computed of constants, none of which is the batch, has a
// share likewise: the product of a static shape, as boolean_mask makes it.
//
//===----------------------------------------------------------------------===//

#ifndef GRAFT_LIB_REWRITE_FEDSIZES_H
#define GRAFT_LIB_REWRITE_FEDSIZES_H

#include "lib/infer/sizes/Dims.h"
#include "lib/support/Diagnostics.h"

namespace graft {

/// Whether the integer of \p N, as it is or with others, says how large
/// something is; which draws it says it of does not count unless \p OfDraws.
bool leadsToSize(const Graph &G, NodeId N, bool OfDraws = true);

/// Feeds of one integer that say how large something is.
std::vector<NodeId> fedSizes(const Graph &G);

class FedSizes {
public:
  /// Of \p Fed, as fedSizes() has them.
  FedSizes(Graph &G, llvm::ArrayRef<NodeId> Fed) : G(G), Fed(Fed) {}

  /// Gives replicas their shares of those that are numbers of rows, where these
  /// are read as sizes; returns the nodes that do. \p Dims is of \p G before
  /// and after. A remark says of each how many rows have to be fed.
  std::vector<NodeId> share(std::unique_ptr<DimAnalysis> &Dims,
                            const DimOptions &Options, DiagnosticEngine &Diags);
  /// Has each of \p Shares, of \p Replicas replicas, wait for the assertion.
  void check(llvm::ArrayRef<NodeId> Shares, unsigned Replicas);

private:
  NodeId insert(NodeId Feed);
  void undo(NodeId Share);

  Graph &G;
  llvm::ArrayRef<NodeId> Fed;
};

} // namespace graft

#endif // GRAFT_LIB_REWRITE_FEDSIZES_H
