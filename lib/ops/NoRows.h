//===- lib/ops/NoRows.h - kernels on tensors without rows -------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
// The behavior of TensorFlow's kernels on zero rows, found by running them: a
// table that test/conformance/exhaust/no_rows.py generates. With a
// data-dependent row count, a replica may have no rows where the single device
// has some.
//
//===----------------------------------------------------------------------===//

#ifndef GRAFT_LIB_OPS_NOROWS_H
#define GRAFT_LIB_OPS_NOROWS_H

#include "llvm/ADT/StringRef.h"

#include <cstdint>

namespace graft {

enum class NoRows : uint8_t {
  Right,      ///< No fault is known.
  Unwritten,  ///< A result without a row axis is uninitialized memory.
  NotANumber, ///< A result without a row axis has NaNs.
  Fails,      ///< The kernel fails, also where all results have rows.
};

/// Returns what the kernel of \p Op does on zero rows.
NoRows onNoRows(llvm::StringRef Op);

} // namespace graft

#endif // GRAFT_LIB_OPS_NOROWS_H
