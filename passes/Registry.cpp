//===- passes/Registry.cpp - all passes by name -----------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "lib/pass/Registry.h"

namespace graft {

#define GRAFT_PASS(Class)                                                      \
  std::unique_ptr<Pass> create##Class##Pass();                                 \
  const PassInfo &get##Class##PassInfo();
#include "passes/Passes.def"
#undef GRAFT_PASS

void registerAllPasses([[maybe_unused]] PassRegistry &Registry) {
#define GRAFT_PASS(Class)                                                      \
  Registry.add(get##Class##PassInfo(), create##Class##Pass);
#include "passes/Passes.def"
#undef GRAFT_PASS
}

} // namespace graft
