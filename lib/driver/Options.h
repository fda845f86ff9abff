//===- lib/driver/Options.h - the command line ------------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#ifndef GRAFT_LIB_DRIVER_OPTIONS_H
#define GRAFT_LIB_DRIVER_OPTIONS_H

#include "lib/driver/Plan.h"
#include "lib/io/read/Read.h"
#include "lib/io/write/Write.h"
#include "lib/pass/PassManager.h"

#include <optional>

namespace graft {

/// What the command line asks for, checked.
struct ToolOptions {
  std::string Input;
  /// The files of --certify, which must be the step of \p Against.
  std::vector<std::string> Certified;
  std::string Against;
  std::string Output;
  InputKind Kind = InputKind::Auto;
  std::optional<OutputFormat> Format; ///< Or by the name of the output.
  WriteOptions Write;
  std::string Depfile;
  /// Files that the command line itself was read from, and that it names.
  std::vector<std::string> FurtherInputs;

  ChosenPasses Passes; ///< Empty: the bytes pass through.
  Instrumentation Show;
  std::optional<PlanFormat> Plan;

  bool InPlace = false; ///< The output may be the input.
  bool Strict = false;
  bool VerifyOutput = false;
  bool VerifyIfSmall = false; ///< The same where it costs little.
  bool VerifyDiagnostics = false;
  bool SplitInput = false;
  bool Remarks = false;
  std::string RemarksFile;          ///< Empty: as text on stderr.
  std::vector<std::string> Explain; ///< Nodes.

  bool PrintPipeline = false;
  bool ListPasses = false;
  bool PassesMarkdown = false;
  std::string HelpPass;
};

/// Parses and checks the command line. What cl:: itself refuses (an unknown
/// flag) ends the program with status 1.
llvm::Expected<ToolOptions> parseCommandLine(int Argc, char **Argv,
                                             const PassRegistry &Registry);

} // namespace graft

#endif // GRAFT_LIB_DRIVER_OPTIONS_H
