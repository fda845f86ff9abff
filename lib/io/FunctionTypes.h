//===- lib/io/FunctionTypes.h - types of edges in a function ----*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
// Checks the types of edges in function bodies by the definitions of ops and
// the signatures of functions. Types that depend on the call are not checked.
//
//===----------------------------------------------------------------------===//

#ifndef GRAFT_LIB_IO_FUNCTIONTYPES_H
#define GRAFT_LIB_IO_FUNCTIONTYPES_H

#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/ADT/StringMap.h"

#include <string>

namespace tensorflow {
class FunctionDef;
} // namespace tensorflow

namespace graft {

using FunctionsByName = llvm::StringMap<const tensorflow::FunctionDef *>;

/// Calls \p Fault for each input of a node of \p Def, and each result, whose
/// type is known and differs from the expected type. Names in \p Def must be
/// unique.
void checkFunctionTypes(const tensorflow::FunctionDef &Def,
                        const FunctionsByName &Functions,
                        llvm::function_ref<void(const std::string &)> Fault);

} // namespace graft

#endif // GRAFT_LIB_IO_FUNCTIONTYPES_H
