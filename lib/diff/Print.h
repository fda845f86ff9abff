//===- lib/diff/Print.h - differences for people and scripts ----*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#ifndef GRAFT_LIB_DIFF_PRINT_H
#define GRAFT_LIB_DIFF_PRINT_H

#include "lib/diff/Diff.h"

#include "llvm/Support/raw_ostream.h"

namespace graft {

/// Prints each node that differs, with its differences below it: `-` marks the
/// first file, `+` the second. If there is no difference, prints at most that
/// the numbers of replicas differ.
void printText(llvm::raw_ostream &OS, const GraphDiff &D, llvm::StringRef A,
               llvm::StringRef B, bool Colors);

/// Prints an object: `files`, `replicas` if programs were compared, `same` (a
/// number of nodes), `differences`.
void printJson(llvm::raw_ostream &OS, const GraphDiff &D, llvm::StringRef A,
               llvm::StringRef B);

} // namespace graft

#endif // GRAFT_LIB_DIFF_PRINT_H
