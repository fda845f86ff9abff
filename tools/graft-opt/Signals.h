//===- tools/graft-opt/Signals.h - fatal signals ----------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
// Removes temporary files when a signal or a fault ends the program.
//
//===----------------------------------------------------------------------===//

#ifndef GRAFT_TOOLS_GRAFT_OPT_SIGNALS_H
#define GRAFT_TOOLS_GRAFT_OPT_SIGNALS_H

#include "lib/support/EndingSignals.h"

namespace graft {

class SignalHandlers {
public:
  /// Replaces LLVM's handlers, which treat all but a few signals as crashes.
  /// Also ends the program with an error if memory runs out.
  void install() const;

private:
  EndingSignals Ending; ///< Read before LLVM's handlers are set.
};

} // namespace graft

#endif // GRAFT_TOOLS_GRAFT_OPT_SIGNALS_H
