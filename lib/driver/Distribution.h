//===- lib/driver/Distribution.h - flags of strategies ----------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
// The flags that set the distribution of a step, and helpers for other flags.
//
//===----------------------------------------------------------------------===//

#ifndef GRAFT_LIB_DRIVER_DISTRIBUTION_H
#define GRAFT_LIB_DRIVER_DISTRIBUTION_H

#include "lib/driver/BuildPipeline.h"
#include "lib/graph/Graph.h"
#include "lib/support/CommandLine.h"

#include "llvm/Support/Error.h"

#include <optional>
#include <string>
#include <vector>

namespace graft {

/// Values of other flags that strategies depend on.
struct OtherOptions {
  bool HasPasses = false;
  std::string Passes;
  bool VerifyOutput = false;
  bool Explain = false;    ///< --explain is given.
  bool EmitsTypes = false; ///< --emit=types is given.
  std::string Output;      ///< A file, or "-".
};

llvm::cl::OptionCategory &distributionCategory();

/// Returns the files that the flags name.
std::vector<std::string> distributionFiles();

/// The devices of an input on which the pipeline depends.
struct InputDevices {
  bool HasGpu = false; ///< A node is on a GPU.
  /// The devices of nodes other than CPUs, without job and task, sorted.
  std::vector<std::string> Accelerators;
};

InputDevices devicesOf(const Graph &G);

/// The passes that the flags select: a strategy, or the pipeline of --passes.
/// Without such flags the pipeline is empty.
struct ChosenPasses {
  Pipeline Own;
  std::optional<StrategyOptions> Strategy;
  bool OnlyMapsDevices = false; ///< Own has no other pass.

  bool empty() const { return Own.empty() && !Strategy; }
  /// Returns true if the type of the replicas' devices depends on the input.
  bool dependOnInput() const {
    return Strategy && Strategy->InputChoosesDevices;
  }
  /// Returns the passes for \p Input, or an error if a device of \p Input needs
  /// a rule of --device-map.
  llvm::Expected<Pipeline> pipeline(const InputDevices &Input,
                                    bool Once = false) const;
};

/// Sets the flags of a trial: two replicas on CPUs.
void chooseTrial();

llvm::Expected<ChosenPasses> choosePasses(const PassRegistry &Registry,
                                          const OtherOptions &Other);

/// Moves the nodes on the only accelerator of \p Input to the device of replica
/// 0, unless a replica is on that accelerator. Returns an error if there are
/// several accelerators and --device-map is not given.
llvm::Error moveAccelerators(StrategyOptions &S, const InputDevices &Input);

/// Returns \p S adapted to the functions of a SavedModel, or an error if \p S
/// cannot be adapted. The caller of a function owns its variables.
llvm::Expected<StrategyOptions> chooseForFunctions(StrategyOptions S);

/// Returns an error unless \p S shares all variables, as --capture requires: no
/// initializer assigns copies of captured variables.
llvm::Error checkCaptures(const StrategyOptions &S);

/// Returns true if the flags name the machines of the replicas.
bool namesMachines();

/// Returns a UsageError.
llvm::Error usageError(const llvm::Twine &Message);

inline bool given(const llvm::cl::Option &O) {
  return O.getNumOccurrences() != 0;
}

/// A flag whose value is one of some words.
class Choice : public llvm::cl::opt<std::string> {
public:
  template <typename... Modifiers>
  explicit Choice(llvm::StringRef Name, std::vector<std::string> Words,
                  const Modifiers &...Mods)
      : llvm::cl::opt<std::string>(Name, Mods...), Words(std::move(Words)) {
    setWords(*this, this->Words);
  }

  /// Returns an error if the value is none of the words.
  llvm::Error check() const;

private:
  std::vector<std::string> Words;
};

/// Returns an error if \p Value of the flag \p Flag is not among \p Known.
llvm::Error checkWord(llvm::StringRef Flag, llvm::StringRef Value,
                      const std::vector<std::string> &Known,
                      llvm::StringRef Noun = "value");

} // namespace graft

#endif // GRAFT_LIB_DRIVER_DISTRIBUTION_H
