//===- lib/driver/UnknownOps.h - unknown ops --------------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#ifndef GRAFT_LIB_DRIVER_UNKNOWNOPS_H
#define GRAFT_LIB_DRIVER_UNKNOWNOPS_H

#include "lib/io/Module.h"
#include "lib/support/Diagnostics.h"

namespace graft {

/// Warns about each op of \p M and its functions that TensorFlow does not have.
/// A program must load a library with such an op to run the graph. Ops in \p
/// Custom and ops of the TensorFlow version that wrote the MetaGraphDef cause
/// no warning.
void warnOfUnknownOps(const Module &M, llvm::ArrayRef<std::string> Custom,
                      DiagnosticEngine &Diags);

} // namespace graft

#endif // GRAFT_LIB_DRIVER_UNKNOWNOPS_H
