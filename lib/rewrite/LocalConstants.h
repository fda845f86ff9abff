//===- lib/rewrite/LocalConstants.h - constants that hold the batch -------===//
//
// SPDX-License-Identifier: Apache-2.0
//
// In a graph with a static batch, constants hold its size or have a row for
// each of its examples. Each replica gets those of its own rows:
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

/// Whether constants may hold the number of rows of what \p Splits split: a
/// feed has that number, a shape without -1 or an attribute says of how many
/// rows a tensor is, so many are made of one or cut out, or they are contracted
/// with rows. (What else may say so is rare, and then the certificate refuses
/// the program.)
bool mayHoldRows(const Graph &G, llvm::ArrayRef<NodeId> Splits);

class LocalConstants {
public:
  /// \p Split(constant, axis) splits a constant.
  LocalConstants(Graph &G, const DimAnalysis &Dims, unsigned Replicas,
                 llvm::function_ref<void(NodeId, int)> Split,
                 DiagnosticEngine &Diags)
      : G(G), Dims(Dims), Replicas(Replicas), Split(Split), Diags(Diags) {}

  /// Edits the constants of \p Order, feeds being split by \p Splits. False
  /// after an error.
  bool run(llvm::ArrayRef<NodeId> Order, llvm::ArrayRef<NodeId> Splits);

  /// What each replica has a value of its own of.
  llvm::ArrayRef<NodeId> local() const { return Local; }
  /// Whether sizes of the batch are numbers somewhere.
  bool isStatic() const { return Static; }

private:
  std::string otherAxis(Endpoint Feed) const;
  bool checkSizes(llvm::ArrayRef<NodeId> Splits);
  bool localizeRows(NodeId N, int Axis);
  bool localizeSizes(NodeId N);
  bool fail(NodeId N, std::string Message) {
    Diags.error(G.name(N), std::move(Message));
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
