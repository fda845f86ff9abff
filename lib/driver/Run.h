//===- lib/driver/Run.h - the work on one input -----------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#ifndef GRAFT_LIB_DRIVER_RUN_H
#define GRAFT_LIB_DRIVER_RUN_H

#include "lib/driver/Options.h"
#include "lib/driver/Report.h"
#include "lib/io/Module.h"
#include "lib/support/Diagnostics.h"
#include "lib/support/Progress.h"

#include "llvm/Support/MemoryBuffer.h"

#include <chrono>
#include <memory>
#include <string>

namespace graft {

/// The work on one input.
class Run {
public:
  Run(const ToolOptions &O, std::unique_ptr<llvm::MemoryBuffer> Buffer)
      : O(O), Buffer(std::move(Buffer)),
        File(this->Buffer->getBufferIdentifier()),
        Source(O.VerifyDiagnostics ? this->Buffer->getBuffer().str() : "") {
    if (O.Passes.Strategy && (O.SplitInput || O.Input == "-"))
      Bytes = this->Buffer->getBuffer().str();
    Diags.setStrict(O.Strict);
    Diags.setRemarks(O.Remarks || O.KeepRemarks || O.VerifyDiagnostics);
  }

  /// Reads, runs the passes, and writes: to the output, or to \p Text when
  /// several inputs go into one output. The exit status of the program.
  int run(std::string *Text);
  /// The same, but prints nothing: finish() does.
  void work(std::string *Text);
  const DiagnosticEngine &diagnostics() const { return Diags; }
  /// What it made, but for what its functions did.
  Summary summary() const;
  /// Prints the messages; true when there is none that makes the run fail.
  bool finish();

private:
  void process(std::string *Text);
  const Diagnostic *whyOnce() const;
  void restart(const Diagnostic &Why);
  llvm::Expected<std::unique_ptr<llvm::MemoryBuffer>> openAgain() const;
  bool load();
  llvm::Expected<Module> withCaptures(const Module &Read) const;
  bool mayWrite(llvm::StringRef Output, llvm::ArrayRef<std::string> Graph);
  void sayDevices(bool OnGpus);
  void sayMetaGraphs();
  bool transform(const std::string *Text);
  bool distributeFunctions();
  bool explain();
  bool listTypes();
  bool draw();
  llvm::Expected<std::string> writeOutput(const std::string &Path,
                                          const WriteOptions &Options) const;
  void write(std::string *Text);
  void saySuccess() const;
  bool betweenGraphs() const;
  bool writesReplica() const;
  bool verifiesOutput() const;
  llvm::Error checkWithOthers(llvm::ArrayRef<std::string> Files,
                              OutputFormat Format);
  llvm::Error writeBeside(llvm::StringRef First, const DiagnosticEngine &All);
  llvm::Error writeSideFiles();
  llvm::Error writeDepfile(llvm::StringRef First);
  llvm::Error writeReports(const DiagnosticEngine &All);
  bool writesFolder(OutputFormat Format) const;

  const ToolOptions &O;
  Progress Line;
  PassManager Manager;
  std::unique_ptr<llvm::MemoryBuffer> Buffer;
  std::string File;
  std::chrono::steady_clock::time_point Started =
      std::chrono::steady_clock::now();
  Summary OfFunctions;
  std::string Bytes;  ///< Of an input that is no file, to read it again.
  std::string Source; ///< The text with its comments.
  DiagnosticEngine Diags;
  std::string Explained; ///< What --explain asked for.
  /// What is written instead of the module: for --emit=types or dot, or of
  /// functions.
  std::optional<std::string> Shown;
  /// For a report: the variables as the strategy saw them.
  std::vector<VariableRow> Planned;
  bool OnGpus = false;     ///< The input chose that replicas are.
  bool HasDepfile = false; ///< It is written.
  bool HasReports = false;
  bool MayWrite = true;            ///< No output is an input.
  bool BadUsage = false;           ///< One is: the command line is at fault.
  bool IsFolder = false;           ///< So is the output.
  std::vector<std::string> Copied; ///< Files of the input's folder.
  /// Nothing is split: what is could not be proved.
  bool Once = false;
  bool Late = false; ///< Checks run while the output is written.
  DiagnosticEngine::Locator Locate;
  Module M;
};

} // namespace graft

#endif // GRAFT_LIB_DRIVER_RUN_H
