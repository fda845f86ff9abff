//===- tools/graft-reduce/graft-reduce.cpp - small test cases ---*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
// The exit status is 0, 1 for a wrong input or test, 2 for a wrong command
// line, 130 after Ctrl-C or another signal. After a signal the output is the
// smallest graph so far.
//
//===----------------------------------------------------------------------===//

#include "lib/io/read/Read.h"
#include "lib/io/write/Write.h"
#include "lib/reduce/Reduce.h"
#include "lib/support/CommandLine.h"
#include "lib/support/Diagnostics.h"
#include "lib/support/EndingSignals.h"
#include "lib/support/Temporaries.h"

#include "google/protobuf/stubs/logging.h"

#include "llvm/Support/FileSystem.h"
#include "llvm/Support/InitLLVM.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/Process.h"
#include "llvm/Support/Program.h"

#include <csignal>
#include <cstdlib>
#include <thread>

using namespace llvm;
using namespace graft;

static cl::OptionCategory Reducing("Options");

static cl::opt<std::string> Input(cl::Positional, cl::cat(Reducing),
                                  cl::desc("<graph file> [-- <argument of "
                                           "graft-opt>...]"));
static cl::opt<std::string>
    Output("o", cl::cat(Reducing), cl::value_desc("file"),
           cl::desc("The output; text if it ends in .pbtxt. Default: "
                    "reduced.pbtxt"),
           cl::init("reduced.pbtxt"));
static cl::opt<std::string> Test(
    "test", cl::cat(Reducing), cl::value_desc("program"),
    cl::desc("Keep a graph if this program, with the graph as its argument, "
             "ends with status 0"));
static cl::opt<std::string>
    Warns("warns", cl::cat(Reducing), cl::value_desc("id"),
          cl::desc("Keep a graph if graft-opt prints a warning with this id"));
static cl::opt<bool>
    Fails("fails", cl::cat(Reducing),
          cl::desc("Keep a graph if graft-opt refuses it for the same reason "
                   "as the input"));
static cl::opt<bool>
    Differs("differs", cl::cat(Reducing),
            cl::desc("Keep a graph if it and the output of graft-opt have "
                     "different results; needs a Python with TensorFlow"));
static cl::opt<std::string>
    Python("python", cl::cat(Reducing), cl::value_desc("program"),
           cl::init("python3"),
           cl::desc("The Python of --differs. Default: python3"));
static cl::opt<unsigned>
    Jobs("j", cl::cat(Reducing), cl::value_desc("N"),
         cl::desc("The number of graphs to try at once. Default: one for each "
                  "core"));
static cl::opt<double>
    Timeout("timeout", cl::cat(Reducing), cl::value_desc("seconds"),
            cl::init(60), cl::desc("Time limit of one trial. Default: 60"));
static cl::opt<bool> Text("text", cl::cat(Reducing),
                          cl::desc("Give text files to the test"));

static volatile std::sig_atomic_t Interrupted = 0;

constexpr StringLiteral Overview =
    "graft-reduce finds a small part of a graph that has the same fault.\n\n"
    "  graft-reduce model.meta --fails -- --replicas=2\n"
    "  graft-reduce model.meta --test=./is-interesting.sh\n";

constexpr std::pair<StringRef, StringRef> Exits[] = {
    {"0", "the smallest graph that was found is written"},
    {"1", "the input is at fault, or the test does not find it interesting"},
    {"2", "the command line is at fault"},
    {"130", "Ctrl-C, or another signal: the smallest graph until then is "
            "written"}};

static int fail(Error E, int Status = ExitInput) {
  return failProgram("graft-reduce", std::move(E), Status);
}

/// Returns the command of the test, without the graph.
static Expected<std::vector<std::string>>
commandOf(const char *Program, ArrayRef<std::string> ForOpt) {
  unsigned Ways = !Test.empty() + !Warns.empty() + Fails + Differs;
  if (Ways != 1)
    return createStringError("give one of --test, --warns, --fails and "
                             "--differs");
  if (!Test.empty()) {
    if (!ForOpt.empty())
      return createStringError("arguments of graft-opt do not go with --test");
    return std::vector<std::string>{Test};
  }
  std::string Self =
      sys::fs::getMainExecutable(Program, reinterpret_cast<void *>(&fail));
  StringRef Folder = sys::path::parent_path(Self);
  SmallString<128> Tests(Folder);
  sys::path::append(Tests, "..", "share", "graft", "reduce");
  auto In = [](StringRef Where, StringRef Name) {
    SmallString<128> Path(Where);
    sys::path::append(Path, Name);
    return Path.str().str();
  };
  std::vector<std::string> Command;
  if (Differs)
    Command.push_back(Python);
  Command.push_back(In(Tests, Differs ? "differs" : Fails ? "fails" : "warns"));
  Command.push_back(In(Folder, "graft-opt"));
  if (!Warns.empty())
    Command.push_back(Warns);
  Command.insert(Command.end(), ForOpt.begin(), ForOpt.end());
  return Command;
}

int main(int Argc, char **Argv) {
  startProgram("graft-reduce");
  EndingSignals Ending;
  InitLLVM Init(Argc, Argv, /*InstallPipeSignalExitHandler=*/false);
  google::protobuf::SetLogHandler(nullptr);
  cl::SetVersionPrinter(
      [](raw_ostream &OS) { OS << "graft-reduce " GRAFT_VERSION "\n"; });
  const cl::OptionCategory *Ours[] = {&Reducing};
  char **End = Argv + Argc;
  char **Dashes = std::find_if(
      Argv, End, [](const char *A) { return StringRef(A) == "--"; });
  parseProgram(static_cast<int>(Dashes - Argv), Argv,
               {Overview, Input, Ours, Exits});
  if (Input.empty())
    return fail(createStringError("give a graph file, or - for stdin"),
                ExitUsage);
  std::vector<std::string> ForOpt;
  if (Dashes != End)
    ForOpt.assign(Dashes + 1, End);
  auto Command = commandOf(Argv[0], ForOpt);
  if (!Command)
    return fail(Command.takeError(), ExitUsage);
  if (!(Timeout > 0 && Timeout <= 1e6))
    return fail(createStringError("--timeout: not between 0 and 1000000 "
                                  "seconds"),
                ExitUsage);
  auto Buffer = openInput(Input);
  if (!Buffer) {
    errs() << escapeControls(toString(Buffer.takeError())) << '\n';
    return ExitInput;
  }
  // A signal stops the tests. So does a closed pipe for messages (SIGPIPE).
  // After that, the program removes the folder of the tests.
  auto Interrupt = [](int) { Interrupted = 1; };
  Ending.install(Interrupt);
  std::signal(SIGPIPE, Interrupt);

  SmallString<128> Folder;
  if (std::error_code E =
          sys::fs::createUniqueDirectory("graft-reduce", Folder))
    return fail(errorCodeToError(E));
  setenv("GRAFT_REDUCE_FOLDER", Folder.c_str(), /*overwrite=*/1);

  Trials Trying(*Command,
                Jobs != 0 ? unsigned(Jobs)
                          : std::max(1U, std::thread::hardware_concurrency()),
                Timeout);
  ReduceOptions O;
  O.Folder = Folder.str().str();
  O.Text = Text;
  O.Progress = sys::Process::StandardErrIsDisplayed() ? &errs() : nullptr;
  auto Stop = [] { return Interrupted != 0; };
  O.Stop = Stop;
  Expected<Reduced> Found = reduce((*Buffer)->getBuffer(), Trying, O);
  bool WasCut = Stop();
  if (std::error_code E = removeFolder(O.Folder))
    errs() << "graft-reduce: warning: " << Folder
           << ": cannot be removed: " << E.message() << '\n';
  if (!Found)
    return fail(Found.takeError());
  Error Failed = writeReduced(Found->Bytes, Output);
  if (Failed)
    return fail(std::move(Failed));
  errs() << "graft-reduce: " << Found->NodesBefore << " nodes to "
         << Found->Nodes << ", " << Trying.count() << " graphs tried\n";
  return WasCut ? 130 : 0;
}
