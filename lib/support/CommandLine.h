//===- lib/support/CommandLine.h - flags of all programs --------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#ifndef GRAFT_LIB_SUPPORT_COMMANDLINE_H
#define GRAFT_LIB_SUPPORT_COMMANDLINE_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Support/Error.h"

#include <string>
#include <vector>

namespace graft {

/// Exit status of the programs; also 70, InternalErrorStatus, for a fault.
enum ExitStatus : int {
  ExitGood = 0,
  ExitInput = 1, ///< A file, or a step that is not proved.
  ExitUsage = 2, ///< The command line.
};

/// An error of the command line, not of a file.
class UsageError : public llvm::ErrorInfo<UsageError> {
public:
  static char ID;
  explicit UsageError(std::string Message) : Message(std::move(Message)) {}

  void log(llvm::raw_ostream &OS) const override { OS << Message; }
  std::error_code convertToErrorCode() const override {
    return llvm::inconvertibleErrorCode();
  }

private:
  std::string Message;
};

/// Sets the values that lists of options show for the option \p O.
void setWords(const llvm::cl::Option &O, std::vector<std::string> Words);

/// Returns the options of \p Categories, hidden ones included, sorted by name.
std::vector<llvm::cl::Option *>
optionsOf(llvm::ArrayRef<const llvm::cl::OptionCategory *> Categories);

/// Returns an error if an option with one value is given twice, because it is
/// unclear which of the two is meant.
llvm::Error
checkRepeated(llvm::ArrayRef<const llvm::cl::OptionCategory *> Categories);

/// The help of a program.
struct ProgramHelp {
  llvm::StringRef Overview;
  const llvm::cl::Option &Positional;
  llvm::ArrayRef<const llvm::cl::OptionCategory *> Categories;
  /// Exit statuses and their meanings.
  llvm::ArrayRef<std::pair<llvm::StringRef, llvm::StringRef>> Exits;
};

/// If \p Argv has --help or --help-all, prints the usage, \p Examples and the
/// options \p Common, or all options by category, and exits.
void printHelpIfAsked(int Argc, char **Argv, const ProgramHelp &Help,
                      llvm::StringRef Examples,
                      llvm::ArrayRef<llvm::StringRef> Common);

/// Prints the help as JSON, from which docs/Cli.md, the manual pages and the
/// shell completions are generated.
void printOptionsJson(llvm::raw_ostream &OS, const ProgramHelp &Help);

/// Parses the options of \p Argv. After an error, prints it and exits with
/// ExitUsage.
void parseOptions(int Argc, char **Argv, llvm::StringRef Overview);

/// Parses the command line of a program whose only files are its positional
/// arguments. If --print-options-json is given, prints the options and exits.
/// Exits with ExitUsage after an error.
void parseProgram(int Argc, char **Argv, const ProgramHelp &Help);

/// Starts a program: call this function first. No file that is opened later
/// becomes stdin, stdout or stderr, even if these are closed. If stdout cannot
/// be written completely, the exit status is \p Trouble. Errors of stderr are
/// ignored, because they cannot be reported.
void startProgram(llvm::StringRef Program, int Trouble = ExitInput);

/// Flushes stdout. Returns true if all output was written, or reports an error.
bool flushPrinted();

/// Prints `PROGRAM: error: ...` on stderr and returns \p Status.
int failProgram(llvm::StringRef Program, llvm::Error E, int Status = ExitInput);

} // namespace graft

#endif // GRAFT_LIB_SUPPORT_COMMANDLINE_H
