//===- test/fuzz/cluster_fuzzer.cpp - any JSON of a cluster -----*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
// A file that is accepted has an address for each task that trains.
//
//===----------------------------------------------------------------------===//

#include "support/Require.h"

#include "lib/strategy/Cluster.h"

using namespace graft;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *Data, size_t Size) {
  llvm::StringRef Bytes(reinterpret_cast<const char *>(Data), Size);
  auto Cluster = parseCluster(Bytes, "fuzz.json");
  if (!Cluster) {
    std::string Message = llvm::toString(Cluster.takeError());
    require(llvm::StringRef(Message).contains("fuzz.json"),
            "an error names the file: " + Message);
    return 0;
  }
  size_t Addresses = 0;
  for (const auto &[Job, Tasks] : Cluster->Jobs)
    Addresses += Tasks.size();
  require(trainingTasks(*Cluster).size() <= Addresses,
          "no task without an address");
  return 0;
}
