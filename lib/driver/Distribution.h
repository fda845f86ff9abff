//===- lib/driver/Distribution.h - flags of strategies ----------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
// The flags that say how a step is distributed, and what other flags share.
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

/// What other flags say that strategies depend on.
struct OtherOptions {
  bool HasPasses = false;
  std::string Passes;
  bool VerifyOutput = false;
  bool Explain = false;    ///< Given.
  bool EmitsTypes = false; ///< Likewise.
  std::string Output;      ///< A file, or "-".
};

llvm::cl::OptionCategory &distributionCategory();

/// Files that the flags name.
std::vector<std::string> distributionFiles();

/// What a pipeline depends on of an input.
struct InputDevices {
  bool HasGpu = false; ///< A node is on one.
  /// The devices of nodes that are no CPUs, without job and task, sorted.
  std::vector<std::string> Accelerators;
};

InputDevices devicesOf(const Graph &G);

/// What the flags ask for: a pipeline of the user's own, which is empty if no
/// flag asks for any, or a strategy.
struct ChosenPasses {
  Pipeline Own;
  std::optional<StrategyOptions> Strategy;
  bool OnlyMapsDevices = false; ///< So does Own.

  bool empty() const { return Own.empty() && !Strategy; }
  /// Whether the type of the replicas' devices depends on the input.
  bool dependOnInput() const {
    return Strategy && Strategy->InputChoosesDevices;
  }
  /// An error if nothing says where a device of the input goes.
  llvm::Expected<Pipeline> pipeline(const InputDevices &Input,
                                    bool Once = false) const;
};

llvm::Expected<ChosenPasses> choosePasses(const PassRegistry &Registry,
                                          const OtherOptions &Other);

/// Has what \p Input places on its one accelerator go to replica 0, or its
/// replica, if it is none of the replicas' devices.
llvm::Error moveAccelerators(StrategyOptions &S, const InputDevices &Input);

/// What \p S, which the flags ask for, is for the functions of a SavedModel,
/// whose variables are those of their caller; an error if they cannot be so.
llvm::Expected<StrategyOptions> chooseForFunctions(StrategyOptions S);

/// An error unless variables exist once under \p S, as those have to that
/// --capture names: nothing gives their copies a value.
llvm::Error checkCaptures(const StrategyOptions &S);

/// Whether the flags say on which machines the replicas are.
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

  /// Refuses a value that is none of the words.
  llvm::Error check() const;

private:
  std::vector<std::string> Words;
};

/// Refuses a \p Value of \p Flag that is not among \p Known.
llvm::Error checkWord(llvm::StringRef Flag, llvm::StringRef Value,
                      const std::vector<std::string> &Known,
                      llvm::StringRef Noun = "value");

} // namespace graft

#endif // GRAFT_LIB_DRIVER_DISTRIBUTION_H
