//===- lib/support/EndingSignals.h - signals that end programs --*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#ifndef GRAFT_LIB_SUPPORT_ENDINGSIGNALS_H
#define GRAFT_LIB_SUPPORT_ENDINGSIGNALS_H

#include <vector>

namespace graft {

/// Signals that end a program which does not catch them, and do not say that it
/// has a fault; without SIGPIPE and SIGXFSZ, which are about what is written.
class EndingSignals {
public:
  /// Notes which of them whoever started the program wants to be ignored, as
  /// nohup does; LLVM's handlers, which come later, do not ask.
  EndingSignals();

  /// Has \p Handler take the others, instead of LLVM's handlers.
  void install(void (*Handler)(int)) const;

private:
  std::vector<int> Ending; ///< Those that nobody ignores.
  std::vector<int> Ignored;
};

} // namespace graft

#endif // GRAFT_LIB_SUPPORT_ENDINGSIGNALS_H
