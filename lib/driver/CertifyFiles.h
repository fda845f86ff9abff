//===- lib/driver/CertifyFiles.h - the flag --certify -----------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#ifndef GRAFT_LIB_DRIVER_CERTIFYFILES_H
#define GRAFT_LIB_DRIVER_CERTIFYFILES_H

#include "lib/driver/Options.h"

namespace graft {

/// Checks that the files of --certify compute the step of --against. Returns
/// the exit status of the program.
int certifyFiles(const ToolOptions &O);

} // namespace graft

#endif // GRAFT_LIB_DRIVER_CERTIFYFILES_H
