//===- lib/driver/Distribution.h - flags of strategies ----------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
// The flags that say how a step is distributed, and what other flags share.
//
//===----------------------------------------------------------------------===//

#ifndef GRAFT_LIB_DRIVER_DISTRIBUTION_H
#define GRAFT_LIB_DRIVER_DISTRIBUTION_H

#include "lib/graph/Graph.h"
#include "lib/pass/Registry.h"
#include "lib/strategy/Resources.h"

#include "llvm/Support/CommandLine.h"
#include "llvm/Support/Error.h"

#include <optional>
#include <string>
#include <vector>

namespace graft {

/// What other flags say that strategies depend on.
struct OtherOptions {
  bool HasPasses = false;
  std::string Passes;
  bool VerifyOutput = false;
  bool Explain = false; ///< Given.
  std::string Output;   ///< A file, or "-".
  bool OnGpus = false;  ///< Replicas are on GPUs if no flag says where.
};

llvm::cl::OptionCategory &distributionCategory();

/// Files that the flags name.
std::vector<std::string> distributionFiles();

/// Whether the flags leave it to the input what devices the replicas are on:
/// GPUs if it names one, else CPUs.
bool inputChoosesDevices();

/// Whether a node of \p G has a GPU for a device.
bool namesGpu(const Graph &G);

/// The pipeline that the flags ask for; empty when none does.
llvm::Expected<std::string> choosePipeline(const PassRegistry &Registry,
                                           const OtherOptions &Other);

/// The machines that the flags name.
llvm::Expected<ResourceSpec> distributionMachines(const OtherOptions &Other);

llvm::Error failure(const llvm::Twine &Message);

/// The number that "64M" and the like are: at most \p Limit.
std::optional<uint64_t> parseSize(llvm::StringRef Text, uint64_t Limit);

template <typename Option> bool given(const Option &O) {
  return O.getNumOccurrences() != 0;
}

/// Refuses a \p Value of \p Flag that is not among \p Known.
llvm::Error checkWord(llvm::StringRef Flag, llvm::StringRef Value,
                      const std::vector<std::string> &Known,
                      llvm::StringRef Noun = "value");

} // namespace graft

#endif // GRAFT_LIB_DRIVER_DISTRIBUTION_H
