//===- tools/graft-opt/Signals.h - what ends the program --------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
// Whatever ends the program that can be caught removes temporary files first.
//
//===----------------------------------------------------------------------===//

#ifndef GRAFT_TOOLS_GRAFT_OPT_SIGNALS_H
#define GRAFT_TOOLS_GRAFT_OPT_SIGNALS_H

#include "lib/support/EndingSignals.h"

namespace graft {

class SignalHandlers {
public:
  /// Takes over from LLVM's handlers, which take all but a few signals for
  /// crashes of the program. Has memory that runs out end it with an error.
  void install() const;

private:
  EndingSignals Ending; ///< As they were before LLVM's handlers.
};

} // namespace graft

#endif // GRAFT_TOOLS_GRAFT_OPT_SIGNALS_H
