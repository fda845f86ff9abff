//===- lib/rewrite/LocalConstants.h - constants that hold the batch -------===//
//
// SPDX-License-Identifier: Apache-2.0
//
// In a graph with a static batch, constants hold the batch size or have a row
// for each example. Each replica gets the constants of its shard:
//
//     s = Const() [8, 4]              s = Const*() [2, 4]
//     r = Reshape(x, s)          →    r = Reshape(x, s)
//     m = Const() 8 rows              m/split = _ToReplicas(m) axis=0
//
//===----------------------------------------------------------------------===//

#ifndef GRAFT_LIB_REWRITE_LOCALCONSTANTS_H
#define GRAFT_LIB_REWRITE_LOCALCONSTANTS_H

#include "lib/infer/graph/Loops.h"
#include "lib/infer/sizes/Dims.h"
#include "lib/support/Diagnostics.h"

namespace graft {

/// Returns true if constants may hold the row count of the operands of \p
/// Splits. That is so if a feed, an attribute or a shape without -1 states a
/// number of rows. It is also so if an op creates or slices a constant number
/// of rows, or contracts a constant. The certificate refuses a program in which
/// another constant holds the row count.
bool mayHoldRows(const Graph &G, llvm::ArrayRef<NodeId> Splits);

class LocalConstants {
public:
  /// \p Split(constant, axis) splits a constant.
  LocalConstants(Graph &G, const DimAnalysis &Dims, unsigned Replicas,
                 llvm::function_ref<void(NodeId, int)> Split,
                 DiagnosticEngine &Diags)
      : G(G), Dims(Dims), Replicas(Replicas), Split(Split), Diags(Diags) {}

  /// Edits the constants of \p Order, where \p Splits split the feeds. Returns
  /// false after an error.
  bool run(llvm::ArrayRef<NodeId> Order, llvm::ArrayRef<NodeId> Splits);

  /// Constants whose local value differs from the global value.
  llvm::ArrayRef<NodeId> local() const { return Local; }
  /// Returns true if at least one batch size is static.
  bool isStatic() const { return Static; }

private:
  std::string otherAxis(Endpoint Feed) const;
  bool checkSizes(llvm::ArrayRef<NodeId> Splits);
  bool localizeRows(NodeId N, int Axis);
  bool localizeSizes(NodeId N);
  /// Reports why the batch cannot be split. One device then runs the step.
  bool fail(NodeId N, std::string Message) {
    Diags.error(G.name(N), std::move(Message)).Id = "unproved";
    return false;
  }

  Graph &G;
  const DimAnalysis &Dims;
  int64_t Replicas;
  llvm::function_ref<void(NodeId, int)> Split;
  DiagnosticEngine &Diags;
  std::unique_ptr<LoopInfo> Loops;
  std::vector<NodeId> Local;
  bool Static = false;
};

} // namespace graft

#endif // GRAFT_LIB_REWRITE_LOCALCONSTANTS_H
