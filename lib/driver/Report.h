//===- lib/driver/Report.h - messages for people ----------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#ifndef GRAFT_LIB_DRIVER_REPORT_H
#define GRAFT_LIB_DRIVER_REPORT_H

#include "lib/report/RemarksFile.h"
#include "lib/support/Diagnostics.h"

#include "llvm/Support/Error.h"
#include "llvm/Support/raw_ostream.h"

namespace graft {

/// Returns the message of a diagnostic with its node.
std::string diagnosticText(const Diagnostic &D);

/// Prints `file:line:col: error: node 'x': message [pass]` and the notes of
/// \p D.
void printDiagnostic(llvm::raw_ostream &OS, llvm::StringRef File,
                     const Diagnostic &D);

/// Prints \p Text, in which each line ends with a line feed, on stderr.
void printLines(llvm::StringRef Text);

/// Prints the message of \p E. Returns the exit status: ExitUsage for a usage
/// error, else ExitInput.
int fail(llvm::Error E);

/// Returns the diagnostics of \p Diags. Warnings and errors with the same
/// reason are merged into the first one. The notes name up to three of the
/// merged diagnostics, or all if \p ShowAll is true.
std::vector<Diagnostic> groupAlike(const DiagnosticEngine &Diags, bool ShowAll);

/// Prints the table at the end of --remarks: the variables, the reductions and
/// the values that are not proved.
void printRemarkTable(llvm::raw_ostream &OS, const DiagnosticEngine &Diags);

/// The counts of a run.
struct Summary {
  unsigned Functions = 0; ///< Distributed functions, or 0 for the graph.
  uint64_t Variables = 0;
  unsigned Replicas = 0; ///< 0: nothing was distributed.
  uint64_t SplitFeeds = 0;
  uint64_t WholeFeeds = 0;
  uint64_t Reductions = 0;
  uint64_t NotProved = 0; ///< Warnings.

  Summary &operator+=(const Summary &Other);
};

/// Returns the line that reports in a terminal that \p Output was written.
std::string summaryLine(llvm::StringRef Output, const Summary &S,
                        uint64_t Bytes, double Seconds);

/// Returns the remarks, warnings and errors about \p File.
std::string remarksText(const DiagnosticEngine &Diags, RemarksFormat Format,
                        llvm::StringRef File);

/// Compares the diagnostics with the `expected-...` comments of \p Text. Prints
/// the differences and returns true if there are none. Errors and warnings must
/// be expected; remarks and notes need not be.
bool verifyDiagnostics(llvm::raw_ostream &OS, llvm::StringRef Text,
                       llvm::StringRef File, const DiagnosticEngine &Diags,
                       const DiagnosticEngine::Locator &Locate);

} // namespace graft

#endif // GRAFT_LIB_DRIVER_REPORT_H
