//===- lib/launch/Launcher.h - a process for each task ----------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#ifndef GRAFT_LIB_LAUNCH_LAUNCHER_H
#define GRAFT_LIB_LAUNCH_LAUNCHER_H

#include "lib/launch/Options.h"

namespace graft {

/// Runs the command for each task of \p Cluster until those that train have
/// ended, one has failed, time is up or a signal says so, and leaves no
/// process: SIGTERM, and SIGKILL for what is there after the grace. Returns the
/// exit status.
int launch(const LaunchOptions &O, const ClusterSpec &Cluster);

} // namespace graft

#endif // GRAFT_LIB_LAUNCH_LAUNCHER_H
