//===- passes/Registry.cpp - all passes by name -----------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "lib/pass/Registry.h"

#include "passes/Options.h"

namespace graft {

void registerAllPasses(PassRegistry &Registry) {
#define GRAFT_PASS(Class) Registry.add(create##Class##Pass());
#include "passes/Passes.def"
}

} // namespace graft
