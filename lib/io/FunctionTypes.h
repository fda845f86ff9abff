//===- lib/io/FunctionTypes.h - types of edges in a function ----*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
// What flows along the edges of a body, by the definitions of ops and the
// signatures of functions. What attributes of a call decide is not known.
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

/// Calls \p Fault for each node of \p Def that does not take what it reads, and
/// for each result that is not what \p Def returns, where both are known. Names
/// in \p Def are unique.
void checkFunctionTypes(const tensorflow::FunctionDef &Def,
                        const FunctionsByName &Functions,
                        llvm::function_ref<void(const std::string &)> Fault);

} // namespace graft

#endif // GRAFT_LIB_IO_FUNCTIONTYPES_H
