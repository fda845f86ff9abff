//===- lib/infer/facts/RowsRead.h - rows behind a value ---------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
// Finds the splits on whose rows the value of a replica depends. If workers
// feed different numbers of rows, a value with the scale N^-k has the weight
// rows^k. The weight must count the rows of the split on which the value
// depends:
//
//     x/split = _ToReplicas(x)     pred = MatMul*(x/split, w)     loss = Mean*
//     {}                           {x/split}                      {x/split}
//
//===----------------------------------------------------------------------===//

#ifndef GRAFT_LIB_INFER_FACTS_ROWSREAD_H
#define GRAFT_LIB_INFER_FACTS_ROWSREAD_H

#include "lib/infer/facts/NumberSets.h"
#include "lib/infer/facts/ProgramFacts.h"

#include <vector>

namespace graft {

class RowsRead {
public:
  /// A per-replica tensor with rows of the batch.
  struct Source {
    NodeId Node;                ///< A split, or a fed default.
    int64_t Axis = 0;           ///< The axis of the rows.
    bool IsFed = false;         ///< Each worker feeds its rows, of any number.
    uint16_t Rows = 0;          ///< Sym::Rows.
    SizeOrigins::Origin Origin; ///< That of the number of rows.
  };

  RowsRead(const Graph &G, const ProgramFacts &Facts);

  /// Returns the sources on which \p N depends, in the order of nodes.
  llvm::SmallVector<const Source *, 4> of(NodeId N);

private:
  std::optional<Source> sourceAt(const Graph &G, const ProgramFacts &Facts,
                                 NodeId N) const;

  std::vector<Source> Sources;
  std::vector<uint32_t> Sets; ///< By node.
  NumberSets Numbers;
};

} // namespace graft

#endif // GRAFT_LIB_INFER_FACTS_ROWSREAD_H
