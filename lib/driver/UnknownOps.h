//===- lib/driver/UnknownOps.h - ops that nobody has ------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#ifndef GRAFT_LIB_DRIVER_UNKNOWNOPS_H
#define GRAFT_LIB_DRIVER_UNKNOWNOPS_H

#include "lib/io/Module.h"
#include "lib/support/Diagnostics.h"

namespace graft {

/// Warns of each op of \p M, and of the bodies of its functions, that is not
/// TensorFlow's: a program that does not load a library with it cannot run the
/// graph. Left out are those that the user vouches for, \p Custom, and those
/// that the TensorFlow had that wrote the MetaGraphDef.
void warnOfUnknownOps(const Module &M, llvm::ArrayRef<std::string> Custom,
                      DiagnosticEngine &Diags);

} // namespace graft

#endif // GRAFT_LIB_DRIVER_UNKNOWNOPS_H
