//===- lib/io/ModuleVerifier.h - names around the graph ---------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
// Collections, the saver, signatures and control-flow contexts of a
// MetaGraphDef refer to nodes by name.
//
//===----------------------------------------------------------------------===//

#ifndef GRAFT_LIB_IO_MODULEVERIFIER_H
#define GRAFT_LIB_IO_MODULEVERIFIER_H

#include "lib/io/Module.h"
#include "lib/support/Diagnostics.h"

namespace graft {

/// Verifies the graph of \p M and every name that refers into it. An entry that
/// names no node is no error if it already named no node in \p Original, by
/// default the input of \p M. \p Internal: see verifyGraph.
bool verifyModule(const Module &M, DiagnosticEngine &Diags,
                  const Module *Original = nullptr, bool Internal = false);

/// Checks further rules of TensorFlow's import for a file that verifyModule
/// accepts: nodes by the definitions of their ops, functions and collections. A
/// SavedModel can be loaded without its collections, so these are not checked.
bool verifyImport(const Module &M, DiagnosticEngine &Diags);

/// Returns true if the entries of \p Collection are VariableDefs.
bool holdsVariables(llvm::StringRef Collection);

/// Drops each entry of the MetaGraphDef of \p M with a name that the graph does
/// not have: entries of collections, signatures, and the saver.
void dropDangling(Module &M);

/// Returns the collection entries of \p M that name nothing in its graph.
llvm::StringSet<> findDanglingNames(const Module &M);

} // namespace graft

#endif // GRAFT_LIB_IO_MODULEVERIFIER_H
