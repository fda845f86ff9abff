//===- lib/io/write/Changes.h - the changes of a pass -----------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#ifndef GRAFT_LIB_IO_WRITE_CHANGES_H
#define GRAFT_LIB_IO_WRITE_CHANGES_H

#include "lib/io/write/Print.h"

#include "llvm/Support/raw_ostream.h"

namespace graft {

/// Prints the differences, matching nodes by name: new and removed nodes as in
/// a summary, and the changed parts of other nodes.
///
///     +x/split = _ToReplicas*2(x) T=float axis=0
///      pred = MatMul*2
///     -  input 0: x
///     +  input 0: x/split
///
/// Ignores the order of nodes. \p Colors is for a terminal.
void printChanges(llvm::raw_ostream &OS, llvm::ArrayRef<NodeText> Before,
                  llvm::ArrayRef<NodeText> After, bool Colors);

} // namespace graft

#endif // GRAFT_LIB_IO_WRITE_CHANGES_H
