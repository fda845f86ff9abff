//===- lib/launch/Launcher.cpp - a process for each task --------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
// One thread runs one loop, which waits for signals, pipes and timeouts. Each
// process leads a process group. The launcher is a subreaper: a descendant
// whose parent has ended becomes a child of the launcher, which ends it with
// the rest. If the launcher is killed, the system kills the processes, not
// their children.
//
//===----------------------------------------------------------------------===//

#include "lib/launch/Launcher.h"

#include "lib/launch/Output.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/MemoryBuffer.h"

#include <cerrno>
#include <chrono>
#include <csignal>
#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

using namespace llvm;

namespace graft {
namespace {

using Clock = std::chrono::steady_clock;

Clock::duration seconds(double S) {
  return std::chrono::duration_cast<Clock::duration>(
      std::chrono::duration<double>(S));
}

/// Returns the processes whose parent is this program now.
std::set<pid_t> children() {
  std::set<pid_t> Result;
  auto Buffer = MemoryBuffer::getFileAsStream("/proc/thread-self/children");
  if (!Buffer)
    return Result;
  SmallVector<StringRef> Words;
  SplitString((*Buffer)->getBuffer(), Words);
  for (StringRef Word : Words)
    if (pid_t Pid; !Word.getAsInteger(10, Pid))
      Result.insert(Pid);
  return Result;
}

struct Process {
  Task T;
  unsigned Restarts;      ///< The number of restarts allowed.
  unsigned Restarted = 0; ///< The number of restarts so far.
  pid_t Pid = 0;          ///< 0 when it has ended.
  pid_t Group = 0;        ///< 0 when the group is empty.
};

class Launcher {
public:
  Launcher(const LaunchOptions &O, const ClusterSpec &Cluster);
  int run();

private:
  bool start(Process &P);
  [[noreturn]] void become(char *const *Arguments, char *const *Environment,
                           int Out, int Err, int Failed);
  void cannotRun(StringRef What, int Why);

  void readSignals();
  void reap(pid_t Which);
  void ended(Process &P, int How);
  std::vector<pid_t> strays();
  bool nothingLeft();

  enum class Phase { Running, Ending, Killing };
  void end(int WithStatus);
  void tell(int Signal);
  void kill();
  void look();
  int untilNext() const;

  const LaunchOptions &O;
  const ClusterSpec &Cluster;
  Output Out;
  std::vector<Process> Processes;
  pid_t Self = ::getpid();
  /// The children that the process had before it executed this program.
  std::set<pid_t> Foreign = children();
  sigset_t OldMask;
  sighandler_t OldPipe;
  int Signals;
  Phase Now = Phase::Running;
  int Status = 0;
  bool Interrupted = false;
  /// Strays that were sent SIGTERM: processes outside of all groups.
  std::set<pid_t> Told;
  Clock::time_point Began = Clock::now(), EndingSince, KillAt, GiveUpAt;
};

Launcher::Launcher(const LaunchOptions &O, const ClusterSpec &Cluster)
    : O(O), Cluster(Cluster) {
  for (Task &T : tasksOf(Cluster)) {
    auto It = O.Restarts.find(T.Job);
    Processes.push_back({T, It == O.Restarts.end() ? 0 : It->second});
  }
  ::prctl(PR_SET_CHILD_SUBREAPER, 1);
  OldPipe = std::signal(SIGPIPE, SIG_IGN);
  std::signal(SIGCHLD, SIG_DFL);
  sigset_t Watched;
  sigemptyset(&Watched);
  sigaddset(&Watched, SIGCHLD);
  // Ignored signals stay ignored, as nohup and shells expect.
  for (int Signal : {SIGINT, SIGTERM, SIGHUP, SIGQUIT}) {
    struct sigaction Action;
    if (::sigaction(Signal, nullptr, &Action) == 0 &&
        Action.sa_handler != SIG_IGN)
      sigaddset(&Watched, Signal);
  }
  ::sigprocmask(SIG_BLOCK, &Watched, &OldMask);
  Signals = ::signalfd(-1, &Watched, SFD_CLOEXEC | SFD_NONBLOCK);
}

//===----------------------------------------------------------------------===//
// Starting
//===----------------------------------------------------------------------===//

/// Replaces the forked child by the command.
void Launcher::become(char *const *Arguments, char *const *Environment, int Out,
                      int Err, int Failed) {
  ::setpgid(0, 0);
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != Self)
    ::_exit(1);
  // The system stops a background process that reads from the terminal.
  int In = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
  ::dup2(In, STDIN_FILENO);
  ::dup2(Out, STDOUT_FILENO);
  ::dup2(Err, STDERR_FILENO);
  std::signal(SIGPIPE, OldPipe);
  ::sigprocmask(SIG_SETMASK, &OldMask, nullptr);
  ::execvpe(Arguments[0], Arguments, Environment);
  int Why = errno;
  [[maybe_unused]] ssize_t Ignored = ::write(Failed, &Why, sizeof Why);
  ::_exit(1);
}

void Launcher::cannotRun(StringRef What, int Why) {
  Out.say("error: cannot run '" + What + "': " + strerror(Why));
  end(Why == ENOENT ? 127 : 126);
}

/// Starts \p P. On failure it prints a message, begins to end all processes and
/// returns false.
bool Launcher::start(Process &P) {
  std::vector<std::string> Texts;
  Texts.reserve(O.Command.size());
  for (StringRef Argument : O.Command)
    Texts.push_back(fillIn(Argument, P.T));
  std::string Config = "TF_CONFIG=" + tfConfig(Cluster, P.T);
  std::vector<char *> Arguments, Environment = {Config.data()};
  for (std::string &Text : Texts)
    Arguments.push_back(Text.data());
  Arguments.push_back(nullptr);
  for (char **E = environ; *E; ++E)
    if (!StringRef(*E).starts_with("TF_CONFIG="))
      Environment.push_back(*E);
  Environment.push_back(nullptr);

  int Pipes[3][2] = {{-1, -1}, {-1, -1}, {-1, -1}};
  auto CloseEnds = [&](int End) {
    for (auto &Pipe : Pipes)
      ::close(Pipe[End]);
  };
  bool Good = all_of(Pipes, [](int *P) { return ::pipe2(P, O_CLOEXEC) == 0; });
  pid_t Pid = Good ? ::fork() : -1;
  if (Pid == 0)
    become(Arguments.data(), Environment.data(), Pipes[0][1], Pipes[1][1],
           Pipes[2][1]);
  int Why = errno;
  CloseEnds(1);
  if (Pid < 0) {
    CloseEnds(0);
    cannotRun(Texts[0], Why);
    return false;
  }
  // The child sets its group, too, because either process may run first.
  ::setpgid(Pid, Pid);
  P.Pid = P.Group = Pid;
  for (int I : {0, 1})
    Out.follow(Pipes[I][0], O.Quiet.contains(P.T.Job) ? 0 : I + 1, P.T.str(),
               static_cast<unsigned>(&P - Processes.data()));
  // Once exec succeeds, the pipe is closed without data.
  ssize_t Count;
  do
    Count = ::read(Pipes[2][0], &Why, sizeof Why);
  while (Count < 0 && errno == EINTR);
  ::close(Pipes[2][0]);
  if (Count != sizeof Why)
    return true;
  cannotRun(Texts[0], Why);
  return false;
}

//===----------------------------------------------------------------------===//
// Ends of processes
//===----------------------------------------------------------------------===//

void Launcher::ended(Process &P, int How) {
  P.Pid = 0;
  // Show the last lines of the process before the message about its end.
  Out.read();
  if (Now != Phase::Running || How == 0)
    return;
  bool Signaled = WIFSIGNALED(How);
  int Code = Signaled ? WTERMSIG(How) : WEXITSTATUS(How);
  std::string What =
      P.T.str() + (Signaled
                       ? " was ended by signal " + std::to_string(Code) + " (" +
                             strsignal(Code) + ")"
                       : " ended with exit status " + std::to_string(Code));
  if (P.Restarted == P.Restarts) {
    Out.say("error: " + What + "; ending the others");
    end(Signaled ? 128 + Code : Code);
    return;
  }
  Out.say("warning: " + What + "; restarting it (" + Twine(++P.Restarted) +
          " of " + Twine(P.Restarts) + ")");
  // Another process that is left in the group may hold the port of the task.
  ::kill(-P.Group, SIGKILL);
  start(P);
}

/// Handles the end of \p Which, or of all ended children if it is -1.
void Launcher::reap(pid_t Which) {
  int How;
  for (pid_t Pid; (Pid = ::waitpid(Which, &How, WNOHANG)) > 0;) {
    Told.erase(Pid);
    if (auto It = find_if(Processes, [&](Process &P) { return P.Pid == Pid; });
        It != Processes.end())
      ended(*It, How);
    if (Which > 0)
      break;
  }
  // The number of a group is valid as long as a process is in the group.
  for (Process &P : Processes)
    if (P.Pid == 0 && P.Group != 0 && ::kill(-P.Group, 0) != 0 &&
        errno == ESRCH)
      P.Group = 0;
}

void Launcher::readSignals() {
  signalfd_siginfo Info;
  while (::read(Signals, &Info, sizeof Info) == sizeof Info) {
    int Signal = static_cast<int>(Info.ssi_signo);
    if (Signal == SIGCHLD) {
      // One SIGCHLD may stand for several children: it names the first.
      reap(static_cast<pid_t>(Info.ssi_pid));
      reap(-1);
    } else if (Now == Phase::Running) {
      Interrupted = true;
      end(128 + Signal);
    } else if (Clock::now() - EndingSince > seconds(0.5)) {
      // A second signal: kill at once. Within half a second after the first
      // signal, it may be the same signal, sent twice.
      Interrupted = true;
      KillAt = Clock::now();
    }
  }
}

//===----------------------------------------------------------------------===//
// The end
//===----------------------------------------------------------------------===//

/// Returns our children outside of the groups.
std::vector<pid_t> Launcher::strays() {
  std::vector<pid_t> Result;
  for (pid_t Pid : children())
    if (!Foreign.contains(Pid) &&
        none_of(Processes, [Group = ::getpgid(Pid)](const Process &P) {
          return P.Group == Group;
        }))
      Result.push_back(Pid);
  return Result;
}

bool Launcher::nothingLeft() {
  return all_of(Processes, [](const Process &P) { return P.Group == 0; }) &&
         strays().empty();
}

void Launcher::end(int WithStatus) {
  if (Now != Phase::Running)
    return;
  Now = Phase::Ending;
  Status = WithStatus;
  EndingSince = Clock::now();
  KillAt = EndingSince + seconds(O.Grace);
  for (const Process &P : Processes)
    if (P.Group != 0) {
      ::kill(-P.Group, SIGTERM);
      // A stopped process needs SIGCONT to handle SIGTERM.
      ::kill(-P.Group, SIGCONT);
    }
}

/// Ends or kills the processes if that is due.
void Launcher::look() {
  Clock::time_point At = Clock::now();
  if (Out.error() != 0 && Now == Phase::Running) {
    Out.say(Twine("error: cannot write to stdout: ") + strerror(Out.error()));
    end(1);
  }
  if (Now == Phase::Running && none_of(Processes, [](const Process &P) {
        return P.Pid != 0 && P.T.trains();
      }))
    end(0);
  if (Now == Phase::Running && O.Timeout > 0 &&
      At >= Began + seconds(O.Timeout)) {
    std::string Names;
    for (const Process &P : Processes)
      if (P.Pid != 0)
        Names += (Names.empty() ? "" : ", ") + P.T.str();
    Out.say("error: time is up (--timeout); ending " + Names);
    end(124);
  }
  if (Now == Phase::Ending) {
    for (pid_t Pid : strays())
      if (Told.insert(Pid).second)
        ::kill(Pid, SIGTERM);
    if (At >= KillAt) {
      Now = Phase::Killing;
      GiveUpAt = At + seconds(5);
    }
  }
  if (Now == Phase::Killing) {
    for (const Process &P : Processes)
      if (P.Group != 0)
        ::kill(-P.Group, SIGKILL);
    for (pid_t Pid : strays())
      ::kill(Pid, SIGKILL);
  }
}

/// Returns the milliseconds until the next call of look(), for poll.
int Launcher::untilNext() const {
  Clock::time_point Next = Clock::now() + seconds(3600);
  if (Now == Phase::Ending)
    Next = std::min(Next, KillAt);
  else if (Now == Phase::Killing)
    Next = Clock::now() + seconds(0.05);
  else if (O.Timeout > 0)
    Next = std::min(Next, Began + seconds(O.Timeout));
  auto Left = std::chrono::ceil<std::chrono::milliseconds>(Next - Clock::now());
  return static_cast<int>(std::max<int64_t>(Left.count(), 0));
}

int Launcher::run() {
  for (Process &P : Processes)
    if (!start(P))
      break;
  while (true) {
    look();
    if (Now != Phase::Running && nothingLeft())
      break;
    if (Now == Phase::Killing && Clock::now() >= GiveUpAt) {
      Out.say("warning: some processes did not end after SIGKILL");
      break;
    }
    Out.turn(Signals, untilNext());
    readSignals();
  }
  Out.close();
  // A reader may be slow. After an interrupt, wait for it no longer than for
  // processes.
  while (!Out.empty() && !(Interrupted && Clock::now() >= KillAt)) {
    Out.turn(Signals, Interrupted ? untilNext() : -1);
    readSignals();
  }
  return Status;
}

} // namespace

int launch(const LaunchOptions &O, const ClusterSpec &Cluster) {
  return Launcher(O, Cluster).run();
}

} // namespace graft
