//===- lib/driver/ReportJson.h - the flag --report --------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#ifndef GRAFT_LIB_DRIVER_REPORTJSON_H
#define GRAFT_LIB_DRIVER_REPORTJSON_H

#include "lib/driver/Plan.h"
#include "lib/io/Module.h"
#include "lib/support/Diagnostics.h"

#include <string>

namespace graft {

/// Returns the report on \p M with the messages of \p Diags, in the format of
/// docs/Report.md. \p M was read from \p Input and is written to \p Output.
/// \p Plan is null if the cost of a step is not known.
std::string reportJson(const Module &M, const DiagnosticEngine &Diags,
                       llvm::StringRef Input, llvm::StringRef Output,
                       const StepPlan *Plan);

} // namespace graft

#endif // GRAFT_LIB_DRIVER_REPORTJSON_H
