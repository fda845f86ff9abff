//===- test/fuzz/support/Require.h - what holds for any input -----------*- C++
//-*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#ifndef GRAFT_TEST_FUZZ_SUPPORT_REQUIRE_H
#define GRAFT_TEST_FUZZ_SUPPORT_REQUIRE_H

#include "llvm/Support/Error.h"
#include "llvm/Support/raw_ostream.h"

#include <cstdint>
#include <cstdlib>

namespace graft {

/// Ends the program, which is a finding, unless \p Holds.
inline void require(bool Holds, const llvm::Twine &What) {
  if (Holds)
    return;
  llvm::errs() << "does not hold: " << What << '\n';
  std::abort();
}

inline void requireSuccess(llvm::Error E, const llvm::Twine &What) {
  if (E)
    require(false, What + ": " + llvm::toString(std::move(E)));
}

} // namespace graft

/// Checks one input. libFuzzer and the replay call it.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t *Data, size_t Size);

#endif // GRAFT_TEST_FUZZ_SUPPORT_REQUIRE_H
