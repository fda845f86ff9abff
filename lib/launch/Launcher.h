//===- lib/launch/Launcher.h - a process for each task ----------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#ifndef GRAFT_LIB_LAUNCH_LAUNCHER_H
#define GRAFT_LIB_LAUNCH_LAUNCHER_H

#include "lib/launch/Options.h"

namespace graft {

/// Runs the command for each task of \p Cluster until all training tasks have
/// ended, one task has failed, time is up or a signal arrives. Then sends
/// SIGTERM to all processes and, after the grace period, SIGKILL. Returns the
/// exit status.
int launch(const LaunchOptions &O, const ClusterSpec &Cluster);

} // namespace graft

#endif // GRAFT_LIB_LAUNCH_LAUNCHER_H
