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

/// Verifies the graph of \p M and every name that refers into it. A collection
/// entry that named nothing in \p Original (by default, in the input that
/// \p M was read from) is not an error. \p Internal: see verifyGraph.
bool verifyModule(const Module &M, DiagnosticEngine &Diags,
                  const Module *Original = nullptr, bool Internal = false);

/// What TensorFlow asks of a file that it imports beyond verifyModule, which
/// found no error: nodes as the definitions of their ops want them, functions,
/// and, unless \p M is a SavedModel, whose functions can be loaded without
/// them, collections.
bool verifyImport(const Module &M, DiagnosticEngine &Diags);

/// Whether the entries of \p Collection are VariableDefs.
bool holdsVariables(llvm::StringRef Collection);

/// Drops from what is around the graph of \p M each entry that names what the
/// graph does not have: of collections and signatures, and the saver.
void dropDangling(Module &M);

/// The collection entries of \p M that name nothing in its graph.
llvm::StringSet<> findDanglingNames(const Module &M);

} // namespace graft

#endif // GRAFT_LIB_IO_MODULEVERIFIER_H
