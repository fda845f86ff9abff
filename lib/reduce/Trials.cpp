//===- lib/reduce/Trials.cpp - the test, on several graphs ------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "lib/reduce/Trials.h"

#include "llvm/ADT/STLExtras.h"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

using namespace llvm;

namespace graft {

using Clock = std::chrono::steady_clock;

/// A process that leads a group of its own.
struct Trials::Running {
  size_t Index;
  int Pid;
  Clock::time_point Until;
};

static void end(int Pid) {
  kill(-Pid, SIGKILL);
  waitpid(Pid, nullptr, 0);
}

Expected<int> Trials::start(const std::string &Path) {
  std::vector<char *> Arguments;
  Arguments.reserve(Command.size() + 2);
  for (std::string &Word : Command)
    Arguments.push_back(Word.data());
  std::string File = Path;
  Arguments.push_back(File.data());
  Arguments.push_back(nullptr);
  posix_spawn_file_actions_t Files;
  posix_spawnattr_t Attributes;
  posix_spawn_file_actions_init(&Files);
  for (int Stream : {0, 1, 2})
    posix_spawn_file_actions_addopen(&Files, Stream, "/dev/null",
                                     Stream == 0 ? O_RDONLY : O_WRONLY, 0);
  posix_spawnattr_init(&Attributes);
  posix_spawnattr_setflags(&Attributes, POSIX_SPAWN_SETPGROUP);
  posix_spawnattr_setpgroup(&Attributes, 0);
  pid_t Pid = 0;
  int Failed = posix_spawnp(&Pid, Arguments[0], &Files, &Attributes,
                            Arguments.data(), environ);
  posix_spawn_file_actions_destroy(&Files);
  posix_spawnattr_destroy(&Attributes);
  if (Failed != 0)
    return createStringError(std::error_code(Failed, std::generic_category()),
                             "cannot run '" + Command[0] + "'");
  ++Count;
  return Pid;
}

Expected<std::optional<size_t>>
Trials::first(size_t Begin, size_t End, function_ref<std::string(size_t)> Make,
              function_ref<bool()> Stop) {
  std::vector<Running> All;
  std::optional<size_t> Found;
  size_t Next = Begin;
  auto EndAll = [&](size_t From) {
    erase_if(All, [&](const Running &R) {
      if (R.Index >= From)
        end(R.Pid);
      return R.Index >= From;
    });
  };
  // Only graphs before the found one are still of interest.
  while (true) {
    size_t Last = std::min(End, Found.value_or(End));
    while (All.size() < Jobs && Next < Last && !Stop()) {
      std::string Path = Make(Next++);
      if (Path.empty())
        continue;
      Expected<int> Pid = start(Path);
      if (!Pid) {
        EndAll(0);
        return Pid.takeError();
      }
      All.push_back({Next - 1, *Pid,
                     Clock::now() + std::chrono::milliseconds(
                                        static_cast<int64_t>(Seconds * 1e3))});
    }
    if (All.empty() || Stop())
      break;
    bool Any = false;
    for (Running &R : All) {
      int Status = 0;
      pid_t Ended = waitpid(R.Pid, &Status, WNOHANG);
      if (Ended == 0 && Clock::now() < R.Until)
        continue;
      Any = true;
      if (Ended == 0)
        end(R.Pid);
      else if (Ended == R.Pid && WIFEXITED(Status) && WEXITSTATUS(Status) == 0)
        Found = std::min(R.Index, Found.value_or(R.Index));
      if (Ended != 0)
        kill(-R.Pid, SIGKILL); // The rest of its group.
      R.Pid = 0;
    }
    erase_if(All, [](const Running &R) { return R.Pid == 0; });
    if (Found)
      EndAll(*Found);
    if (!Any)
      std::this_thread::sleep_for(std::chrono::microseconds(300));
  }
  EndAll(0);
  return Found;
}

} // namespace graft
