//===- lib/rewrite/FedSizes.h - sizes of the batch that are fed -*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
// A feed may hold the number of rows of the batch. Each replica then reads its
// share of it, so that tensors of this size are as long as its shard:
//
//     n = Placeholder() shape=[]      n = Placeholder() shape=[]
//     s = Pack(n, 4)             →    n/share = _Scale*(n) power=-1
//     z = Fill(s, 0)                  s = Pack*(n/share, 4)
//                                     z = Fill*(s, 0)
//
// If an op needs as many rows as the batch has, the feed is the batch size. If
// the op might instead repeat a tensor for all rows, the feed is taken for the
// batch size if its share then is the size of a shard.
//
// A number that is no multiple of the replicas has no share: the 1 of a tensor
// that is repeated after all, or the 13 of a run that only generates. So
// readers of a share wait for an assertion, whose message explains this:
//
//     n/share/assert = Assert*(Equal(FloorMod(n, N), 0), message)
//     n/share/gate   = NoOp*(^n/share/assert)
//     n/share        = _Scale*(n, ^n/share/gate) power=-1
//
// A number that is computed from constants, none of them the batch size, has a
// share likewise: the product of a static shape, as in boolean_mask.
//
//===----------------------------------------------------------------------===//

#ifndef GRAFT_LIB_REWRITE_FEDSIZES_H
#define GRAFT_LIB_REWRITE_FEDSIZES_H

#include "lib/infer/sizes/Dims.h"
#include "lib/support/Diagnostics.h"

namespace graft {

/// Returns true if the integer of \p N, alone or with others, determines a
/// size. Sizes of samples of random ops count only with \p OfDraws.
bool leadsToSize(const Graph &G, NodeId N, bool OfDraws = true);

/// Finds feeds of one integer that determine a size.
std::vector<NodeId> fedSizes(const Graph &G);

class FedSizes {
public:
  /// \p Fed is the result of fedSizes().
  FedSizes(Graph &G, llvm::ArrayRef<NodeId> Fed) : G(G), Fed(Fed) {}

  /// Gives replicas their shares of feeds that are batch sizes, where these are
  /// read as sizes. Returns the nodes that compute the shares. Keeps \p Dims up
  /// to date with \p G. A remark for each feed says how many rows have to be
  /// fed.
  std::vector<NodeId> share(std::unique_ptr<DimAnalysis> &Dims,
                            const DimOptions &Options, DiagnosticEngine &Diags);
  /// Has \p Shares wait for assertions that \p Replicas divides their feeds.
  void check(llvm::ArrayRef<NodeId> Shares, unsigned Replicas);

private:
  NodeId insert(NodeId Feed);
  void undo(NodeId Share);

  Graph &G;
  llvm::ArrayRef<NodeId> Fed;
};

} // namespace graft

#endif // GRAFT_LIB_REWRITE_FEDSIZES_H
