//===- lib/launch/Options.h - the command line ------------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#ifndef GRAFT_LIB_LAUNCH_OPTIONS_H
#define GRAFT_LIB_LAUNCH_OPTIONS_H

#include "lib/launch/Tasks.h"

#include <set>

namespace graft {

struct LaunchOptions {
  std::string ClusterFile;
  std::vector<std::string> Command;
  std::set<std::string> Quiet; ///< Jobs whose output is not shown.
  /// How often a failed process is restarted, by job.
  std::map<std::string, unsigned> Restarts;
  unsigned PortBase = 0;
  double Grace = 5;   ///< Seconds from SIGTERM to SIGKILL.
  double Timeout = 0; ///< Seconds; 0 is none.
};

/// Parses \p Argv. Ends the program with status 0 after --help and with 2 after
/// an unknown flag.
llvm::Expected<LaunchOptions> parseLaunchOptions(int Argc, char **Argv);

} // namespace graft

#endif // GRAFT_LIB_LAUNCH_OPTIONS_H
