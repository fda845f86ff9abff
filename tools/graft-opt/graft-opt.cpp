//===- tools/graft-opt/graft-opt.cpp - the compiler -------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
// Graph bytes go only to the output; all messages go to stderr. The exit status
// is 0, 1 after an error of the input, an output or the proof, 2 after an error
// of the command line, 70 after a fault of graft. An error leaves the output
// untouched.
//
//===----------------------------------------------------------------------===//

#include "Signals.h"

#include "lib/driver/Driver.h"
#include "lib/driver/Report.h"
#include "lib/support/CommandLine.h"

#include "google/protobuf/stubs/common.h"
#include "google/protobuf/stubs/logging.h"

#include "llvm/Config/llvm-config.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Support/InitLLVM.h"
#include "llvm/Support/PrettyStackTrace.h"

using namespace llvm;
using namespace graft;

static void printVersion(raw_ostream &OS) {
  OS << "graft-opt " GRAFT_VERSION " (protobuf "
     << google::protobuf::internal::VersionString(GOOGLE_PROTOBUF_VERSION)
     << ", LLVM " LLVM_VERSION_STRING ")\n";
}

int main(int Argc, char **Argv) {
  startProgram("graft-opt");
  SignalHandlers Signals;
  InitLLVM Init(Argc, Argv, /*InstallPipeSignalExitHandler=*/false);
  setBugReportMsg("PLEASE report this as a bug of graft, with the command line "
                  "and the input.\n");
  Signals.install();

  // The code that reads or writes reports errors of protobuf.
  google::protobuf::SetLogHandler(nullptr);

  cl::SetVersionPrinter(printVersion);

  PassRegistry Registry;
  registerAllPasses(Registry);
  registerTestPasses(Registry);
  Expected<ToolOptions> O = parseCommandLine(Argc, Argv, Registry);
  if (!O) {
    Error E = O.takeError();
    // Some flags name files, which parseCommandLine reads.
    int Status = E.isA<SideFileError>() ? ExitInput : ExitUsage;
    fail(std::move(E));
    return Status;
  }
  return runTool(*O, Registry);
}
