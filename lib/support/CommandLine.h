//===- lib/support/CommandLine.h - what programs' flags share ---*- C++ -*-===//
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
  ExitInput = 1, ///< An input or an output, or what is not proved.
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

/// Says which values the option \p O takes, for who lists the options.
void setWords(const llvm::cl::Option &O, std::vector<std::string> Words);

/// The options of \p Categories by their names; hidden ones too.
std::vector<llvm::cl::Option *>
optionsOf(llvm::ArrayRef<const llvm::cl::OptionCategory *> Categories);

/// An error if an option with one value is given twice: which of the two is
/// meant?
llvm::Error
checkRepeated(llvm::ArrayRef<const llvm::cl::OptionCategory *> Categories);

/// What there is to say of a program.
struct ProgramHelp {
  llvm::StringRef Overview;
  const llvm::cl::Option &Positional;
  llvm::ArrayRef<const llvm::cl::OptionCategory *> Categories;
  /// Exit statuses, and what each means.
  llvm::ArrayRef<std::pair<llvm::StringRef, llvm::StringRef>> Exits;
};

/// Prints it as JSON, from which docs/Cli.md, the pages of the manual and the
/// completions of shells are made.
void printOptionsJson(llvm::raw_ostream &OS, const ProgramHelp &Help);

/// Parses the command line of a program whose only files are its positional
/// arguments: ends it for --print-options-json, with the list of its options,
/// and with ExitUsage for what is wrong.
void parseProgram(int Argc, char **Argv, const ProgramHelp &Help);

/// To be called first in a program. Nothing that it opens becomes stdin, stdout
/// or stderr, closed as these may be. When it ends, what it printed has
/// arrived, or the exit status is \p Trouble; a fault of stderr, of which
/// nobody is left to be told, is none of the program.
void startProgram(llvm::StringRef Program, int Trouble = ExitInput);

/// Returns true if all that was printed has arrived; reports it if not.
bool flushPrinted();

/// `PROGRAM: error: ...` on stderr; returns \p Status.
int failProgram(llvm::StringRef Program, llvm::Error E, int Status = ExitInput);

} // namespace graft

#endif // GRAFT_LIB_SUPPORT_COMMANDLINE_H
