//===- lib/infer/batch/LocalSizes.h - sizes of one replica ------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
// In a loop nothing can be split, so what is as long as the batch there is made
// as long as the rows of one replica.
//
//===----------------------------------------------------------------------===//

#ifndef GRAFT_LIB_INFER_BATCH_LOCALSIZES_H
#define GRAFT_LIB_INFER_BATCH_LOCALSIZES_H

#include "lib/infer/graph/Loops.h"
#include "lib/infer/sizes/Dims.h"

namespace graft {

/// How many times as large as the rows of one of \p Replicas the size \p D is
/// in the single-device step.
int64_t timesLarger(const DimTable &Table, DimId D, unsigned Replicas);

/// Gives the constant \p N, all of whose elements have one value, the rows of
/// one of \p Replicas, makes it per-replica and records its value. False, and
/// no change, if its elements differ.
bool shrinkSplat(Graph &G, NodeId N, const DimAnalysis &Dims,
                 unsigned Replicas);

/// Makes the attribute statedShape() of \p N local.
void localiseShape(Graph &G, NodeId N, const DimAnalysis &Dims,
                   unsigned Replicas);

/// Returns the sizes that the attribute statedShape() of \p N says something
/// of.
std::optional<llvm::SmallVector<DimId, 4>>
statedSizes(const Graph &G, const DimAnalysis &Dims, NodeId N);

} // namespace graft

#endif // GRAFT_LIB_INFER_BATCH_LOCALSIZES_H
