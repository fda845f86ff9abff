//===- lib/io/write/Changes.h - what a pass did -----------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#ifndef GRAFT_LIB_IO_WRITE_CHANGES_H
#define GRAFT_LIB_IO_WRITE_CHANGES_H

#include "lib/io/write/Print.h"

#include "llvm/Support/raw_ostream.h"

namespace graft {

/// Prints what is different, nodes being matched by their names: those that are
/// new or gone as in a summary, and of others each part that is not the same.
///
///     +x/split = _ToReplicas*2(x) T=float axis=0
///      pred = MatMul*2
///     -  input 0: x
///     +  input 0: x/split
///
/// The order of nodes is none of it. With \p Colors for a terminal.
void printChanges(llvm::raw_ostream &OS, llvm::ArrayRef<NodeText> Before,
                  llvm::ArrayRef<NodeText> After, bool Colors);

} // namespace graft

#endif // GRAFT_LIB_IO_WRITE_CHANGES_H
