//===- lib/rewrite/Work.h - counts the work of an op ------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#ifndef GRAFT_LIB_REWRITE_WORK_H
#define GRAFT_LIB_REWRITE_WORK_H

#include "lib/infer/sizes/Dims.h"

namespace graft {

/// Counts operations and bytes. An axis of unknown size counts as one.
class WorkCounter {
public:
  /// Counts one row of the batch, or all rows if the graph states their number.
  enum Rows : uint8_t { OneRow, AllRows };

  WorkCounter(const Graph &G, const DimAnalysis &Dims, Rows Of = OneRow)
      : G(G), Dims(Dims), Of(Of) {}

  /// Returns the operations of \p N: at least one for each element of a result.
  double operations(NodeId N) const;
  double elements(Endpoint E) const;
  double bytes(Endpoint E) const;

private:
  double size(DimId D) const;
  double axis(Endpoint E, int FromEnd) const;

  const Graph &G;
  const DimAnalysis &Dims;
  Rows Of;
};

} // namespace graft

#endif // GRAFT_LIB_REWRITE_WORK_H
