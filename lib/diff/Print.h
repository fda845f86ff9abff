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

/// A node in a line, what is different about it in lines below: `-` what the
/// first file has, `+` what the second has. Nothing if nothing is different.
void printText(llvm::raw_ostream &OS, const GraphDiff &D, llvm::StringRef A,
               llvm::StringRef B, bool Colors);

/// An object: `files`, `same` (a number of nodes), `differences`.
void printJson(llvm::raw_ostream &OS, const GraphDiff &D, llvm::StringRef A,
               llvm::StringRef B);

} // namespace graft

#endif // GRAFT_LIB_DIFF_PRINT_H
