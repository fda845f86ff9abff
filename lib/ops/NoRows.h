//===- lib/ops/NoRows.h - kernels on tensors without rows -------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
// What TensorFlow's kernels do of no rows, found by running them: a table that
// test/conformance/exhaust/no_rows.py generates. Of rows that are counted by
// their values a replica may have none where the single device has some.
//
//===----------------------------------------------------------------------===//

#ifndef GRAFT_LIB_OPS_NOROWS_H
#define GRAFT_LIB_OPS_NOROWS_H

#include "llvm/ADT/StringRef.h"

#include <cstdint>

namespace graft {

enum class NoRows : uint8_t {
  Right,      ///< Nothing is known to be wrong.
  Unwritten,  ///< A result without an axis of rows is what the memory held.
  NotANumber, ///< Such a result has NaNs.
  Fails,      ///< The kernel fails, also where all results have rows.
};

/// Returns what the kernel of \p Op does of no rows.
NoRows onNoRows(llvm::StringRef Op);

} // namespace graft

#endif // GRAFT_LIB_OPS_NOROWS_H
