//===- lib/infer/batch/LocalSizes.h - sizes of one replica ------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
// graft cannot split a tensor inside a loop. So if a constant or a shape in a
// loop contains the batch size, it gets the per-replica size instead.
//
//===----------------------------------------------------------------------===//

#ifndef GRAFT_LIB_INFER_BATCH_LOCALSIZES_H
#define GRAFT_LIB_INFER_BATCH_LOCALSIZES_H

#include "lib/infer/graph/Loops.h"
#include "lib/infer/sizes/Dims.h"

namespace graft {

/// Returns the ratio of \p D in the single-device step to \p D on one of \p
/// Replicas.
int64_t timesLarger(const DimTable &Table, DimId D, unsigned Replicas);

/// Resizes the constant \p N to the rows of one of \p Replicas, makes it
/// per-replica and records its old value. Returns false, and changes nothing,
/// if the elements of \p N are not all equal.
bool shrinkSplat(Graph &G, NodeId N, const DimAnalysis &Dims,
                 unsigned Replicas);

/// Replaces batch sizes in the attribute statedShape() of \p N by per-replica
/// sizes. Returns true if that changes the attribute.
bool localiseShape(Graph &G, NodeId N, const DimAnalysis &Dims,
                   unsigned Replicas);

/// Returns the sizes that the attribute statedShape() of \p N describes.
std::optional<llvm::SmallVector<DimId, 4>>
statedSizes(const Graph &G, const DimAnalysis &Dims, NodeId N);

} // namespace graft

#endif // GRAFT_LIB_INFER_BATCH_LOCALSIZES_H
