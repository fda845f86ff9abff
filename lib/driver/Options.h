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

/// The checked command line.
struct ToolOptions {
  std::string Input;
  /// The files of --certify, which must compute the step of \p Against.
  std::vector<std::string> Certified;
  std::string Against;
  std::string Output;
  InputKind Kind = InputKind::Auto;
  std::vector<std::string> Tags; ///< Tags to select; empty: first MetaGraphDef.
  std::optional<OutputFormat> Format; ///< Unset: by the name of the output.
  WriteOptions Write;
  std::string Depfile;
  /// Further files that are read: response files and files that flags name.
  std::vector<std::string> FurtherInputs;

  ChosenPasses Passes; ///< Empty: the bytes pass through.
  Instrumentation Show;
  std::optional<PlanFormat> Plan;

  DrawingOptions Drawing;    ///< For the format Dot.
  bool ShowProgress = false; ///< If stderr is a terminal.
  bool InPlace = false;      ///< The output may be the input.
  /// For an output folder: it may replace a folder, and it contains hard links
  /// to the other files of the input folder.
  bool ReplaceFolder = false;
  bool LinkFiles = false;
  /// PLACEHOLDER=VARIABLE_NAME: placeholders for handles of variables.
  std::vector<std::string> Captures;
  /// The functions of a SavedModel that are rewritten; empty: all.
  std::vector<std::string> Functions;
  bool SignaturesOnly = false; ///< Rewrite the graph and no function.
  bool IsFunction = false;     ///< The input is the body of a function.
  bool Quiet = false;          ///< Success is not reported.
  bool Strict = false;
  bool VerifyOutput = false;
  bool VerifyIfSmall = false; ///< VerifyOutput, for small inputs only.
  bool VerifyDiagnostics = false;
  bool SplitInput = false;
  bool Remarks = false;
  std::string RemarksFile;  ///< Empty: remarks go to stderr as text.
  std::string ReportFile;   ///< Empty: no report is written.
  bool KeepRemarks = false; ///< Remarks are kept for a report.
  RemarksFormat RemarksAs = RemarksFormat::Yaml;
  std::vector<std::string> Explain;   ///< Nodes.
  std::vector<std::string> CustomOps; ///< Ops of the user's own libraries.

  /// Describe the input and try to distribute it, as text or JSON; write
  /// nothing.
  bool Inspect = false;
  bool InspectJson = false;
  /// The output is named, but no option changes the input.
  bool Copies = false;
  bool PrintPipeline = false;
  bool ListPasses = false;
  bool PassesMarkdown = false;
  bool OptionsJson = false;
  std::string HelpPass;
};

/// Returns the options of the reader.
inline ReadOptions readOptions(const ToolOptions &O) {
  return {.Kind = O.Kind, .Tags = O.Tags};
}

/// Parses and checks the command line. Errors that cl:: finds itself (an
/// unknown flag) end the program with status 2.
llvm::Expected<ToolOptions> parseCommandLine(int Argc, char **Argv,
                                             const PassRegistry &Registry);

/// Prints all options as JSON.
void printOptionsJson(llvm::raw_ostream &OS);

} // namespace graft

#endif // GRAFT_LIB_DRIVER_OPTIONS_H
