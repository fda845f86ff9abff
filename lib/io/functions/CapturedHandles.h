//===- lib/io/functions/CapturedHandles.h - variables from outside *- C++ -*-=//
//
// SPDX-License-Identifier: Apache-2.0
//
// The graph of a concrete function (`f.get_concrete_function().graph`) has no
// variables. It has placeholders for their handles, which no session can feed.
//
//===----------------------------------------------------------------------===//

#ifndef GRAFT_LIB_IO_FUNCTIONS_CAPTUREDHANDLES_H
#define GRAFT_LIB_IO_FUNCTIONS_CAPTUREDHANDLES_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"

#include <string>

namespace graft {

/// Returns the GraphDef \p Bytes with variables in the place of placeholders. A
/// rule of \p Rules is `PLACEHOLDER=VARIABLE`, or `PLACEHOLDER=VARIABLE[4,3]`
/// if the graph does not state the shape. VARIABLE is the name and the
/// shared_name of the variable. Two placeholders may be handles of the same
/// variable.
llvm::Expected<std::string> captureVariables(llvm::StringRef Bytes,
                                             llvm::ArrayRef<std::string> Rules);

} // namespace graft

#endif // GRAFT_LIB_IO_FUNCTIONS_CAPTUREDHANDLES_H
