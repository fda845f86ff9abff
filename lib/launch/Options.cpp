//===- lib/launch/Options.cpp - the command line ----------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "lib/launch/Options.h"

#include "lib/support/CommandLine.h"
#include "lib/support/Diagnostics.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/CommandLine.h"

using namespace llvm;

namespace graft {
namespace {

cl::OptionCategory Launching("Options");

cl::opt<std::string> File(cl::Positional, cl::cat(Launching),
                          cl::desc("<cluster file> -- <command>..."));
cl::opt<double>
    Grace("grace", cl::init(5), cl::value_desc("seconds"), cl::cat(Launching),
          cl::desc("Seconds between SIGTERM and SIGKILL. Default: 5"));
cl::opt<unsigned>
    PortBase("port-base", cl::value_desc("port"), cl::cat(Launching),
             cl::desc("Give addresses with port 0 the next free port from "
                      "this one on, instead of any"));
cl::list<std::string> Quiet("quiet", cl::CommaSeparated, cl::value_desc("job"),
                            cl::cat(Launching),
                            cl::desc("Hide the output of a job"));
cl::list<std::string> Restart(
    "restart", cl::CommaSeparated, cl::value_desc("job[:N]"),
    cl::cat(Launching),
    cl::desc("Restart each process of a job that fails, at most N times. "
             "Default: 1"));
cl::opt<double>
    Timeout("timeout", cl::value_desc("seconds"), cl::cat(Launching),
            cl::desc("End all processes after this time, with exit status "
                     "124"));
cl::opt<bool> OptionsJson("print-options-json", cl::Hidden, cl::cat(Launching),
                          cl::desc("Print all options as JSON and exit"));

Error usageError(const Twine &Message) {
  return make_error<UsageError>(Message.str());
}

constexpr StringLiteral Overview =
    "graft-launch: runs a command for each task of a cluster, on this machine, "
    "to try it out\n\n"
    "  graft-launch cluster.json -- python -u train.py worker-{index}.meta\n\n"
    "Each process has its TF_CONFIG; {task}, {job} and {index} in the command "
    "are its own. A port 0 in the file\nstands for a free port. When all tasks "
    "of chief and worker have ended, graft-launch ends the others. When one\n"
    "task fails, graft-launch ends all tasks.\n";

constexpr std::pair<StringRef, StringRef> Exits[] = {
    {"0", "all tasks that train have ended with status 0"},
    {"1", "the cluster file is at fault, or the first process to fail ended "
          "with status 1"},
    {"2", "the command line is at fault, or the first process to fail ended "
          "with status 2"},
    {"N",
     "the first process to fail ended with status N; 128 and its signal if "
     "a signal ended it"},
    {"124", "--timeout: time was up"},
    {"126, 127", "the command cannot be run, or is not there"},
    {"129, 130, 143", "SIGHUP, SIGINT or SIGTERM ended graft-launch"}};

Error checkJob(StringRef Flag, StringRef Job) {
  const std::vector<std::string> Known = {"chief", "worker", "ps", "evaluator"};
  if (is_contained(Known, Job))
    return Error::success();
  return usageError(
      Flag + ": unknown job '" + Job + "'" +
      didYouMean(Job, Known, "; give one of " + join(Known, ", ")));
}

/// Returns true if a clock can count \p Seconds; false for NaN.
bool isTime(double Seconds) { return Seconds >= 0 && Seconds <= 1e6; }

} // namespace

Expected<LaunchOptions> parseLaunchOptions(int Argc, char **Argv) {
  // Arguments after `--` belong to the command.
  char **End = Argv + Argc;
  char **Dashes = std::find_if(
      Argv, End, [](const char *A) { return StringRef(A) == "--"; });
  const cl::OptionCategory *Ours[] = {&Launching};
  cl::HideUnrelatedOptions(Ours);
  parseOptions(static_cast<int>(Dashes - Argv), Argv, Overview);
  if (OptionsJson) {
    printOptionsJson(outs(), {Overview, File, Ours, Exits});
    std::exit(ExitGood);
  }
  if (Error E = checkRepeated(Ours))
    return E;
  LaunchOptions O;
  O.ClusterFile = File;
  if (Dashes != End)
    O.Command.assign(Dashes + 1, End);
  if (O.ClusterFile.empty() || O.Command.empty())
    return usageError(Twine("there is no ") +
                      (O.ClusterFile.empty() ? "cluster file" : "command") +
                      ": graft-launch cluster.json -- python -u train.py");
  if (!isTime(Grace) || !isTime(Timeout))
    return usageError(Twine(isTime(Grace) ? "--timeout" : "--grace") +
                      ": not between 0 and 1000000 seconds");
  O.Grace = Grace;
  O.Timeout = Timeout;
  if (PortBase.getNumOccurrences() != 0 && (PortBase == 0 || PortBase > 65535))
    return usageError("--port-base: " + Twine(PortBase) +
                      " is not between 1 and 65535");
  O.PortBase = PortBase;
  for (const std::string &Job : Quiet) {
    if (Error E = checkJob("--quiet", Job))
      return E;
    O.Quiet.insert(Job);
  }
  for (StringRef Entry : Restart) {
    auto [Job, Times] = Entry.split(':');
    if (Error E = checkJob("--restart", Job))
      return E;
    unsigned Count = 1;
    if (Entry.contains(':') && (Times.getAsInteger(10, Count) || Count == 0))
      return usageError("--restart: '" + Entry +
                        "' is not of the form job:N with a number from 1 on");
    O.Restarts[Job.str()] = Count;
  }
  return O;
}

} // namespace graft
