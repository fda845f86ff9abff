//===- lib/io/LibraryVerifier.h - are these functions legal? ----*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#ifndef GRAFT_LIB_IO_LIBRARYVERIFIER_H
#define GRAFT_LIB_IO_LIBRARYVERIFIER_H

#include "lib/graph/Graph.h"
#include "lib/support/Diagnostics.h"

namespace graft {

/// Checks the function library of \p G as TensorFlow does when it imports a
/// graph: names, arguments and gradients of all functions, nodes of the graph
/// whose op is a function, and the bodies of the functions that the graph
/// calls. Part of verifyImport.
bool verifyLibrary(const Graph &G, DiagnosticEngine &Diags);

} // namespace graft

#endif // GRAFT_LIB_IO_LIBRARYVERIFIER_H
