//===- lib/io/VariableCollections.h - collections of variables --*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#ifndef GRAFT_LIB_IO_VARIABLECOLLECTIONS_H
#define GRAFT_LIB_IO_VARIABLECOLLECTIONS_H

#include "lib/io/Module.h"

#include <vector>

namespace graft {

/// Returns the variables of the collection \p Key of \p M, if it is a
/// MetaGraphDef with that collection.
std::vector<NodeId> variablesOf(const Module &M, llvm::StringRef Key);

/// Returns the local variables, of which each worker has its own copy: those in
/// `local_variables` but not in `variables`.
std::vector<NodeId> localVariablesOf(const Module &M);

} // namespace graft

#endif // GRAFT_LIB_IO_VARIABLECOLLECTIONS_H
