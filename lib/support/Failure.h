//===- lib/support/Failure.h - an error with a text -------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
// The error of a function that reports only a sentence.
//
//===----------------------------------------------------------------------===//

#ifndef GRAFT_LIB_SUPPORT_FAILURE_H
#define GRAFT_LIB_SUPPORT_FAILURE_H

#include "llvm/Support/Error.h"

namespace graft {

inline llvm::Error failure(const llvm::Twine &Message) {
  return llvm::createStringError(llvm::inconvertibleErrorCode(), Message);
}

} // namespace graft

#endif // GRAFT_LIB_SUPPORT_FAILURE_H
