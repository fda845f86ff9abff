//===- lib/support/EndingSignals.h - signals that end programs --*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#ifndef GRAFT_LIB_SUPPORT_ENDINGSIGNALS_H
#define GRAFT_LIB_SUPPORT_ENDINGSIGNALS_H

#include <vector>

namespace graft {

/// Signals that end a program by default and do not come from a fault of the
/// program. SIGPIPE and SIGXFSZ are not included: they are errors of output.
class EndingSignals {
public:
  /// Finds the signals that the parent process has set to be ignored, as nohup
  /// does. LLVM's handlers, which are installed later, would override this.
  EndingSignals();

  /// Installs \p Handler for the signals that are not ignored, instead of
  /// LLVM's handlers.
  void install(void (*Handler)(int)) const;

private:
  std::vector<int> Ending; ///< Those that are not ignored.
  std::vector<int> Ignored;
};

} // namespace graft

#endif // GRAFT_LIB_SUPPORT_ENDINGSIGNALS_H
