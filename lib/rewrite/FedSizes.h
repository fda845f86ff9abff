//===- lib/rewrite/FedSizes.h - sizes of the batch that are fed -*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
// A feed may hold the batch size. Each replica then reads the feed divided by
// N, its share, so that tensors of this size have the row count of its shard:
//
//     n = Placeholder() shape=[]      n = Placeholder() shape=[]
//     s = Pack(n, 4)             →    n/share = _Scale*(n) power=-1
//     z = Fill(s, 0)                  s = Pack*(n/share, 4)
//                                     z = Fill*(s, 0)
//
// If an op requires that the fed size equals the row count of the batch, the
// feed is the batch size. An op that may also broadcast does not require this.
// Then the feed is assumed to be the batch size if its share is inferred to be
// the size of a shard.
//
// A fed size that N does not divide has no share. For example, a user may feed
// 1 to broadcast a tensor, or 13 in a run that only generates samples. So
// readers of a share wait for an assertion, whose message explains the error:
//
//     n/share/gate/assert = Assert*(Equal(FloorMod(n, N), 0), message)
//     n/share/gate   = NoOp*(^n/share/gate/assert)
//     n/share        = _Scale*(n, ^n/share/gate) power=-1
//
// A batch size that is computed from constants also gets a share, such as the
// product of a static shape in boolean_mask.
//
//===----------------------------------------------------------------------===//

#ifndef GRAFT_LIB_REWRITE_FEDSIZES_H
#define GRAFT_LIB_REWRITE_FEDSIZES_H

#include "lib/infer/sizes/Dims.h"
#include "lib/support/Diagnostics.h"

namespace graft {

/// Returns true if the size of a tensor depends on the integer of \p N. Ignores
/// the sizes of random samples unless \p OfDraws.
bool leadsToSize(const Graph &G, NodeId N, bool OfDraws = true);

/// Finds feeds of one integer that determine the size of a tensor.
std::vector<NodeId> fedSizes(const Graph &G);

class FedSizes {
public:
  /// \p Fed is the result of fedSizes().
  FedSizes(Graph &G, llvm::ArrayRef<NodeId> Fed) : G(G), Fed(Fed) {}

  /// Adds a share for each feed that is a batch size, and redirects readers
  /// that use the feed as a size. Returns the shares. Keeps \p Dims up to date
  /// with \p G. A remark for each feed states the row count that users must
  /// feed.
  std::vector<NodeId> share(std::unique_ptr<DimAnalysis> &Dims,
                            const DimOptions &Options, DiagnosticEngine &Diags);
  /// Makes \p Shares wait for assertions that \p Replicas divides their feeds.
  void check(llvm::ArrayRef<NodeId> Shares, unsigned Replicas);

private:
  NodeId insert(NodeId Feed);
  void undo(NodeId Share);

  Graph &G;
  llvm::ArrayRef<NodeId> Fed;
};

} // namespace graft

#endif // GRAFT_LIB_REWRITE_FEDSIZES_H
