//===- tools/graft-opt/Signals.h - what ends the program --------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
// Whatever ends the program that can be caught removes temporary files first.
//
//===----------------------------------------------------------------------===//

#ifndef GRAFT_TOOLS_GRAFT_OPT_SIGNALS_H
#define GRAFT_TOOLS_GRAFT_OPT_SIGNALS_H

#include <vector>

namespace graft {

class SignalHandlers {
public:
  /// Notes which signals whoever started the program wants to be ignored, as
  /// nohup does; LLVM's handlers, which come later, do not ask.
  SignalHandlers();

  /// Takes over from LLVM's handlers, which take all but a few signals for
  /// crashes of the program. Has memory that runs out end it with an error.
  void install() const;

private:
  std::vector<int> Ending; ///< Those that nobody ignores.
  std::vector<int> Ignored;
};

} // namespace graft

#endif // GRAFT_TOOLS_GRAFT_OPT_SIGNALS_H
