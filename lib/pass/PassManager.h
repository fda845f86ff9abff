//===- lib/pass/PassManager.h - runs pipelines ------------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
// The pass manager runs passes. Around each pass it verifies and prints the
// program, measures the time, and checks that the result "unchanged" is true.
//
//===----------------------------------------------------------------------===//

#ifndef GRAFT_LIB_PASS_PASSMANAGER_H
#define GRAFT_LIB_PASS_PASSMANAGER_H

#include "lib/pass/Registry.h"
#include "lib/pass/Timer.h"

#include "llvm/Support/Error.h"
#include "llvm/Support/raw_ostream.h"

#include <functional>

namespace graft {

/// Passes with their options, in the order in which they run.
class Pipeline {
public:
  /// The passes of \p Text: `a,b{k=v,k2='v w'}`. An error shows the whole text
  /// with a caret under the fault.
  static llvm::Expected<Pipeline> parse(llvm::StringRef Text,
                                        const PassRegistry &Registry);
  /// The text for parse(), without options that have their defaults.
  std::string str() const;

  void add(std::unique_ptr<Pass> P) { Passes.push_back(std::move(P)); }
  /// The same passes; none has run.
  Pipeline clone() const;
  bool empty() const { return Passes.empty(); }

  std::vector<std::unique_ptr<Pass>> Passes;
};

struct Instrumentation {
  enum class Changed : uint8_t { Off, Verbose, Quiet, Diff };

  bool VerifyEach = false;
  bool PrintBeforeAll = false;
  bool PrintAfterAll = false;
  std::vector<std::string> PrintBefore; ///< Names of passes.
  std::vector<std::string> PrintAfter;
  Changed PrintChanged = Changed::Off;
  bool TimePasses = false;
  bool Statistics = false;
  llvm::raw_ostream *OS = &llvm::errs();

  /// Returns true if graphs are printed between passes.
  bool prints() const {
    return PrintBeforeAll || PrintAfterAll || !PrintBefore.empty() ||
           !PrintAfter.empty() || PrintChanged != Changed::Off;
  }
};

class PassManager {
public:
  /// Adds the passes of \p Of.
  void add(Pipeline Of);

  bool empty() const { return Passes.empty(); }

  /// Runs the passes in order and stops at the first failure. Times and
  /// statistics add up over several runs; report() prints them. If \p Late is
  /// true, leaves the checks at the end of the pipeline to runLate(), which may
  /// run in another thread while \p M is written.
  bool run(Module &M, DiagnosticEngine &Diags, const Instrumentation &Show,
           bool Late = false);
  bool runLate(Module &M, DiagnosticEngine &Diags);

  /// Called before each pass, with its name, its number and the number of
  /// passes.
  std::function<void(llvm::StringRef Pass, size_t I, size_t Count)> OnPass;

  void report(const Instrumentation &Show) const;
  /// Returns the counter \p What of the pass \p Name.
  uint64_t statistic(llvm::StringRef Name, llvm::StringRef What) const;

  /// Rows of the report that are not passes. run() fills in only Verify.
  Seconds Read, Verify, Write;

private:
  struct Step {
    std::unique_ptr<Pass> P;
    Seconds Time;
    bool IsLate = false;
  };

  std::vector<Step> Passes;
};

/// docs/Passes.md: a section per listed pass.
std::string passesMarkdown(const PassRegistry &Registry);
/// The text of --help-pass.
std::string passHelp(Pass &P);

} // namespace graft

#endif // GRAFT_LIB_PASS_PASSMANAGER_H
