//===- lib/reduce/Trials.h - the test, on several graphs --------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#ifndef GRAFT_LIB_REDUCE_TRIALS_H
#define GRAFT_LIB_REDUCE_TRIALS_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"

#include <optional>
#include <string>
#include <vector>

namespace graft {

/// Runs a command with the path of a graph as its last argument. A graph is
/// interesting if that ends with status 0.
class Trials {
public:
  /// \p Command is run as it is; what it prints is lost, unless \p Show. A
  /// trial of more than \p Seconds is killed, with what it started, and not
  /// interesting.
  Trials(std::vector<std::string> Command, unsigned Jobs, double Seconds)
      : Command(std::move(Command)), Jobs(Jobs), Seconds(Seconds) {}

  /// The first of graphs \p Begin to \p End that is interesting, or nothing;
  /// \p Make(I) writes graph I and returns its path, or "" if there is no such
  /// graph. As many run at once as there are jobs. \p Stop ends all of it.
  llvm::Expected<std::optional<size_t>>
  first(size_t Begin, size_t End, llvm::function_ref<std::string(size_t)> Make,
        llvm::function_ref<bool()> Stop);

  unsigned jobs() const { return Jobs; }
  size_t count() const { return Count; }

private:
  struct Running;

  llvm::Expected<int> start(const std::string &Path);

  std::vector<std::string> Command;
  unsigned Jobs;
  double Seconds;
  size_t Count = 0; ///< Graphs that were tried.
};

} // namespace graft

#endif // GRAFT_LIB_REDUCE_TRIALS_H
