//===- lib/ops/NoRows.cpp - kernels on tensors without rows -----*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "lib/ops/NoRows.h"

#include "llvm/ADT/StringSwitch.h"

using namespace llvm;

namespace graft {

NoRows onNoRows(StringRef Op) {
  return StringSwitch<NoRows>(Op)
#define GRAFT_NO_ROWS(Name, What) .Case(Name, NoRows::What)
#include "lib/ops/NoRows.inc"
      .Default(NoRows::Right);
}

} // namespace graft
