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

/// Runs a command with the path of a graph as its last argument. The graph is
/// interesting if the command ends with status 0.
class Trials {
public:
  /// Runs \p Command without a shell and drops its output. A trial of more than
  /// \p Seconds is killed with its process group, and its graph is not
  /// interesting.
  Trials(std::vector<std::string> Command, unsigned Jobs, double Seconds)
      : Command(std::move(Command)), Jobs(Jobs), Seconds(Seconds) {}

  /// Returns the first interesting graph from \p Begin on and before \p End, or
  /// nothing. \p Make(I) writes graph I and returns its path, or "" if there is
  /// no such graph. Runs jobs() graphs at once; \p Stop ends them all.
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
  size_t Count = 0; ///< The number of graphs tried.
};

} // namespace graft

#endif // GRAFT_LIB_REDUCE_TRIALS_H
