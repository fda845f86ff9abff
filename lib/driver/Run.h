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

  /// Reads the input, runs the passes and writes to the output, or to \p Text
  /// if several inputs go into one output. Returns the exit status of the
  /// program.
  int run(std::string *Text);
  /// Runs like run(), but leaves printing of messages to finish().
  void work(std::string *Text);
  const DiagnosticEngine &diagnostics() const { return Diags; }
  /// Returns the counts of this run and of the functions.
  Summary summary() const;
  /// Prints the messages. Returns true if none makes the run fail.
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
  std::string Bytes;  ///< An input that is no file, to read it again.
  std::string Source; ///< The text with its comments.
  DiagnosticEngine Diags;
  std::string Explained; ///< The text for --explain.
  /// The text that is written instead of the module: for --emit=types or dot,
  /// or for functions.
  std::optional<std::string> Shown;
  /// The variables as the strategy saw them, for a report.
  std::vector<VariableRow> Planned;
  bool OnGpus = false;     ///< The input chose GPUs for the replicas.
  bool HasDepfile = false; ///< The depfile is written.
  bool HasReports = false;
  bool MayWrite = true;            ///< False if an output is an input.
  bool BadUsage = false;           ///< The command line is at fault.
  bool IsFolder = false;           ///< The output is a folder.
  std::vector<std::string> Copied; ///< Files of the input's folder.
  /// Set if the step is computed once, because its distribution was not proved.
  bool Once = false;
  bool Late = false; ///< Checks run while the output is written.
  DiagnosticEngine::Locator Locate;
  Module M;
};

} // namespace graft

#endif // GRAFT_LIB_DRIVER_RUN_H
