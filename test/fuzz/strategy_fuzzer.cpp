//===- test/fuzz/strategy_fuzzer.cpp - any strategy file --------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
// A file that is accepted is printed as text and as bytes, and both are read as
// the same strategy.
//
//===----------------------------------------------------------------------===//

#include "support/Require.h"

#include "lib/strategy/RecordFile.h"

using namespace graft;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *Data, size_t Size) {
  llvm::StringRef Bytes(reinterpret_cast<const char *>(Data), Size);
  auto Record = parseRecord(Bytes, "fuzz.strategy");
  if (!Record) {
    require(!llvm::toString(Record.takeError()).empty(),
            "an error has a message");
    return 0;
  }
  ResourceSpec Spec = resourcesOf({"/device:CPU:0", "/device:CPU:1"});
  if (llvm::Error E = resolveDevices(*Record, Spec, "fuzz.strategy")) {
    require(!llvm::toString(std::move(E)).empty(), "an error has a message");
    return 0;
  }
  std::string Text = printRecord(*Record, Spec, /*AsText=*/true);
  for (bool AsText : {true, false}) {
    auto Again = parseRecord(printRecord(*Record, Spec, AsText),
                             AsText ? "again.pbtxt" : "again");
    if (!Again)
      requireSuccess(Again.takeError(), "a record is read again");
    requireSuccess(resolveDevices(*Again, Spec, "again"), "its devices");
    require(printRecord(*Again, Spec, true) == Text,
            "a record says the same again");
  }
  return 0;
}
