//===- lib/driver/Options.h - the command line ------------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#ifndef GRAFT_LIB_DRIVER_OPTIONS_H
#define GRAFT_LIB_DRIVER_OPTIONS_H

#include "lib/driver/Plan.h"
#include "lib/driver/Report.h"
#include "lib/io/read/Read.h"
#include "lib/io/write/Write.h"
#include "lib/pass/PassManager.h"
#include "lib/report/Drawing.h"

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
  std::vector<std::string> Tags; ///< Of the MetaGraphDef; empty: the first.
  std::optional<OutputFormat> Format; ///< Or by the name of the output.
  WriteOptions Write;
  std::string Depfile;
  /// Files that the command line itself was read from, and that it names.
  std::vector<std::string> FurtherInputs;

  ChosenPasses Passes; ///< Empty: the bytes pass through.
  Instrumentation Show;
  std::optional<PlanFormat> Plan;

  DrawingOptions Drawing;    ///< For the format Dot.
  bool ShowProgress = false; ///< Where stderr is a terminal.
  bool InPlace = false;      ///< The output may be the input.
  /// Of a folder that is written: it may replace one, and has links.
  bool ReplaceFolder = false;
  bool LinkFiles = false;
  /// PLACEHOLDER=VARIABLE_NAME: what is fed is the handle of a variable.
  std::vector<std::string> Captures;
  /// The functions of a SavedModel that are rewritten; empty: all.
  std::vector<std::string> Functions;
  bool SignaturesOnly = false; ///< The graph is, and no function.
  bool IsFunction = false;     ///< The input is the body of one.
  bool Quiet = false;          ///< Success is not told.
  bool Strict = false;
  bool VerifyOutput = false;
  bool VerifyIfSmall = false; ///< The same where it costs little.
  bool VerifyDiagnostics = false;
  bool SplitInput = false;
  bool Remarks = false;
  std::string RemarksFile;  ///< Empty: as text on stderr.
  std::string ReportFile;   ///< Empty: none is written.
  bool KeepRemarks = false; ///< For a report.
  RemarksFormat RemarksAs = RemarksFormat::Yaml;
  std::vector<std::string> Explain;   ///< Nodes.
  std::vector<std::string> CustomOps; ///< Of the user's own libraries.

  bool PrintPipeline = false;
  bool ListPasses = false;
  bool PassesMarkdown = false;
  bool OptionsJson = false;
  std::string HelpPass;
};

/// What the reader is told.
inline ReadOptions readOptions(const ToolOptions &O) {
  return {.Kind = O.Kind, .Tags = O.Tags};
}

/// Parses and checks the command line. What cl:: itself refuses (an unknown
/// flag) ends the program with status 2.
llvm::Expected<ToolOptions> parseCommandLine(int Argc, char **Argv,
                                             const PassRegistry &Registry);

/// All options as JSON.
void printOptionsJson(llvm::raw_ostream &OS);

} // namespace graft

#endif // GRAFT_LIB_DRIVER_OPTIONS_H
