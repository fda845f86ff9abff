//===- lib/io/functions/CapturedHandles.h - variables from outside *- C++ -*-=//
//
// SPDX-License-Identifier: Apache-2.0
//
// The graph of a concrete function (`f.get_concrete_function().graph`) has no
// variables: their handles come from outside, through placeholders that no
// session can feed.
//
//===----------------------------------------------------------------------===//

#ifndef GRAFT_LIB_IO_FUNCTIONS_CAPTUREDHANDLES_H
#define GRAFT_LIB_IO_FUNCTIONS_CAPTUREDHANDLES_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"

#include <string>

namespace graft {

/// The GraphDef \p Bytes with variables in the place of placeholders: a rule of
/// \p Rules is `PLACEHOLDER=VARIABLE`, or `PLACEHOLDER=VARIABLE[4,3]` with the
/// shape where the graph does not tell it. The variable has this name and
/// shared_name. Two placeholders may be of one variable.
llvm::Expected<std::string> captureVariables(llvm::StringRef Bytes,
                                             llvm::ArrayRef<std::string> Rules);

} // namespace graft

#endif // GRAFT_LIB_IO_FUNCTIONS_CAPTUREDHANDLES_H
