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

/// The part of a diagnostic that says what.
std::string diagnosticText(const Diagnostic &D);

/// `file:line:col: error: node 'x': message [pass]` and its notes.
void printDiagnostic(llvm::raw_ostream &OS, llvm::StringRef File,
                     const Diagnostic &D);

/// Prints \p Text, lines that are each ended, on stderr.
void printLines(llvm::StringRef Text);

/// Prints what \p E says, and gives the exit status of a program that fails:
/// that of a usage error is another one.
int fail(llvm::Error E);

/// The diagnostics, with one for all that say the same for the same reason: it
/// names the first node, and up to three more as notes, or with \p ShowAll all
/// of them. Only what is not proved is put together.
std::vector<Diagnostic> groupAlike(const DiagnosticEngine &Diags, bool ShowAll);

/// The table at the end of --remarks: variables, reductions, what is not
/// proved.
void printRemarkTable(llvm::raw_ostream &OS, const DiagnosticEngine &Diags);

/// What a run made, in numbers.
struct Summary {
  unsigned Functions = 0; ///< That are distributed; 0: it was the graph.
  uint64_t Variables = 0;
  unsigned Replicas = 0; ///< 0: nothing was distributed.
  uint64_t SplitFeeds = 0;
  uint64_t WholeFeeds = 0;
  uint64_t Reductions = 0;
  uint64_t NotProved = 0; ///< Warnings.

  Summary &operator+=(const Summary &Other);
};

/// The line that says in a terminal that \p Output was written.
std::string summaryLine(llvm::StringRef Output, const Summary &S,
                        uint64_t Bytes, double Seconds);

/// Remarks, warnings and errors about \p File.
std::string remarksText(const DiagnosticEngine &Diags, RemarksFormat Format,
                        llvm::StringRef File);

/// Holds the diagnostics against the `expected-...` comments of \p Text.
/// Prints what does not agree; true when all does. Errors and warnings that
/// are not expected do not agree, remarks and notes may be left out.
bool verifyDiagnostics(llvm::raw_ostream &OS, llvm::StringRef Text,
                       llvm::StringRef File, const DiagnosticEngine &Diags,
                       const DiagnosticEngine::Locator &Locate);

} // namespace graft

#endif // GRAFT_LIB_DRIVER_REPORT_H
