//===- lib/support/InternalError.cpp - bugs of graft ------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "lib/support/InternalError.h"

#include "lib/support/Temporaries.h"

#include "llvm/Support/raw_ostream.h"

#include <cstdlib>

using namespace llvm;

namespace graft {

void internalError(const Twine &Message) {
  removeTemporaries();
  errs() << "graft: internal error: " << Message
         << "; this is a fault of graft: please report it, with the command "
            "line and the input\n";
  // Other threads may use objects that destructors would destroy.
  std::_Exit(InternalErrorStatus);
}

} // namespace graft
