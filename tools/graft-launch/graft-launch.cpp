//===- tools/graft-launch/graft-launch.cpp - tasks to try out ---*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
// The exit status is 0 when all training tasks have ended with 0. After a
// failed process it is the status of the first such process, or 128 plus the
// signal that ended the process. Other statuses: 1 for a wrong cluster file, 2
// for a wrong command line, 124 after the timeout, 126 or 127 if the command
// cannot be run, and 128 plus the signal that ended this program.
//
//===----------------------------------------------------------------------===//

#include "lib/launch/Launcher.h"
#include "lib/support/CommandLine.h"
#include "lib/support/Diagnostics.h"

#include "llvm/Support/CommandLine.h"
#include "llvm/Support/raw_ostream.h"

using namespace llvm;
using namespace graft;

static int fail(Error E, int Status) {
  errs() << escapeControls(errorLine("graft-launch", std::move(E))) << '\n';
  return Status;
}

int main(int Argc, char **Argv) {
  startProgram("graft-launch");
  cl::SetVersionPrinter(
      [](raw_ostream &OS) { OS << "graft-launch " GRAFT_VERSION "\n"; });
  Expected<LaunchOptions> O = parseLaunchOptions(Argc, Argv);
  if (!O)
    return fail(O.takeError(), ExitUsage);
  Expected<ClusterSpec> Cluster = readCluster(O->ClusterFile);
  if (!Cluster)
    return fail(Cluster.takeError(), ExitInput);
  if (Error E = choosePorts(*Cluster, O->PortBase))
    return fail(std::move(E), ExitInput);
  return launch(*O, *Cluster);
}
