//===- test/fuzz/resource_fuzzer.cpp - any resource_spec.yml ----*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
// A file that is accepted has devices, and the name of each resolves to it.
//
//===----------------------------------------------------------------------===//

#include "support/Require.h"

#include "lib/graph/DeviceName.h"
#include "lib/strategy/Resources.h"

using namespace graft;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *Data, size_t Size) {
  llvm::StringRef Bytes(reinterpret_cast<const char *>(Data), Size);
  std::vector<std::string> Notes;
  auto Spec = parseResources(Bytes, "fuzz.yml", Notes);
  if (!Spec) {
    std::string Message = llvm::toString(Spec.takeError());
    require(llvm::StringRef(Message).contains("fuzz.yml"),
            "an error names the file: " + Message);
    return 0;
  }
  std::vector<std::string> Devices = Spec->replicaDevices();
  require(!Devices.empty(), "there is a replica");
  for (const std::string &Device : Devices) {
    require(DeviceName::parse(Device).has_value(), "a device: " + Device);
    require(Spec->resolve(Spec->autodistName(Device)) == Device,
            "a device is found by its name: " + Device);
  }
  require(!Spec->hostDevices().empty(), "there is a host");
  return 0;
}
