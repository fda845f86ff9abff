//===- lib/support/Diagnostics.h - errors, warnings, remarks ----*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#ifndef GRAFT_LIB_SUPPORT_DIAGNOSTICS_H
#define GRAFT_LIB_SUPPORT_DIAGNOSTICS_H

#include "llvm/ADT/StringRef.h"
#include "llvm/ADT/Twine.h"
#include "llvm/Support/Error.h"

#include <functional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace graft {

/// An error in a file that is read beside the graph.
class SideFileError : public llvm::ErrorInfo<SideFileError> {
public:
  static char ID;

  /// `FILE:LINE:COLUMN: MESSAGE`.
  void log(llvm::raw_ostream &OS) const override;
  std::error_code convertToErrorCode() const override {
    return llvm::inconvertibleErrorCode();
  }
  /// `FILE`, or `FILE:LINE:COLUMN`.
  std::string place() const;

  std::string File, Message;
  unsigned Line = 0, Column = 0; ///< From 1 on; 0 if unknown.
};

/// Returns \p E as an error in \p File. Its text may begin with the file name
/// and a place, `FILE:LINE:COLUMN: MESSAGE`, as parsers write it.
llvm::Error fileError(llvm::StringRef File, llvm::Error E);

/// Returns the line that \p Program prints for \p E. It begins with the name of
/// the faulty file, or of the program.
std::string errorLine(llvm::StringRef Program, llvm::Error E);

enum class Severity : uint8_t { Error, Warning, Remark, Note };

/// "error", "warning", "remark", "note".
llvm::StringRef severityName(Severity Level);

/// `node 'x': message`, or the message alone when \p Node is empty.
std::string withNode(llvm::StringRef Node, llvm::StringRef Message);

/// A detail of a remark beside its text: a text, a number or a list of texts.
using FactValue = std::variant<std::string, int64_t, std::vector<std::string>>;

/// Returns \p Value for people: a list is joined with blanks.
std::string factText(const FactValue &Value);

/// One message about a node or about the whole graph.
struct Diagnostic {
  Severity Level = Severity::Error;
  std::string Message; ///< Starts in lower case and says what to do.
  std::string Node;    ///< Name in the input, empty: the whole graph.
  std::string Pass;    ///< The pass that reports; filled in by the engine.
  /// The function of a SavedModel that contains \p Node; empty for the graph.
  std::string Function;
  std::string Id;     ///< Stable id of a remark or warning ("reduction").
  std::string File;   ///< The file, if it is not the input.
  bool Shown = false; ///< A remark that is printed without --remarks, too.
  unsigned Line = 0;  ///< 1-based line of the node in a text input, or 0.
  unsigned Column = 0;
  /// Details for the machine-readable forms of a remark, in a fixed order.
  std::vector<std::pair<std::string, FactValue>> Facts;
  /// Further messages: (node, message).
  std::vector<std::pair<std::string, std::string>> Notes;

  Diagnostic &shown(bool On = true) {
    Shown = On;
    return *this;
  }
};

/// Collects the diagnostics of a run in the order in which they are reported.
/// Nothing is printed here: the tool decides what is shown and how.
class DiagnosticEngine {
public:
  /// Resolves a node's name to its line and column in a text input.
  using Locator =
      std::function<std::pair<unsigned, unsigned>(llvm::StringRef Node)>;

  void setLocator(Locator L) { Locate = std::move(L); }
  void setPass(llvm::StringRef Name) { CurrentPass = Name.str(); }

  /// With --strict, a value that is not proved is an error: see unproved(). The
  /// passes go on, so that one run reports all errors.
  void setStrict(bool On) { Strict = On; }

  /// Makes it an error if the numbers of a step are not proved, as
  /// --fallback=refuse does.
  void refuseUnproved() { RefusesUnproved = true; }

  /// Turns remarks on or off. Passes ask before they build one, because most
  /// kinds concern thousands of nodes.
  void setRemarks(bool On) { Remarks = On; }
  bool wantsRemarks() const { return Remarks; }

  Diagnostic &error(llvm::StringRef Node, std::string Message);
  /// Adds the error \p E, with file and place if it is a SideFileError.
  Diagnostic &error(llvm::Error E);
  Diagnostic &warning(llvm::StringRef Node, std::string Message);
  Diagnostic &warning(llvm::StringRef Id, llvm::StringRef Node,
                      std::string Message);
  /// Adds a warning that something is not proved or rests on an assumption. It
  /// is an error with --strict, and may be with refuseUnproved().
  Diagnostic &unproved(llvm::StringRef Id, llvm::StringRef Node,
                       std::string Message);
  Diagnostic &remark(llvm::StringRef Id, llvm::StringRef Node,
                     std::string Message);

  /// Adds a note to the last diagnostic.
  void addNote(llvm::StringRef Node, llvm::StringRef Message) {
    List.back().Notes.push_back({Node.str(), Message.str()});
  }

  /// Adds the diagnostics of another engine unchanged: the strictness and the
  /// locator of this one do not apply to them.
  void append(const DiagnosticEngine &Other);
  /// Adds diagnostics for the body of \p Function.
  void appendOf(const DiagnosticEngine &Other, llvm::StringRef Function);
  /// Takes over the settings of \p Other.
  void configureLike(const DiagnosticEngine &Other) {
    Locate = Other.Locate;
    Strict = Other.Strict;
    RefusesUnproved = Other.RefusesUnproved;
    Remarks = Other.Remarks;
  }

  bool hasErrors() const { return Errors != 0 || Refused != 0; }
  /// Errors that stop the run.
  unsigned errorCount() const { return Errors; }
  const std::vector<Diagnostic> &all() const { return List; }
  void clear() {
    List.clear();
    Errors = Refused = 0;
  }

private:
  Diagnostic &add(Severity Level, llvm::StringRef Id, llvm::StringRef Node,
                  std::string Message);

  std::vector<Diagnostic> List;
  std::string CurrentPass;
  Locator Locate;
  unsigned Errors = 0;
  unsigned Refused = 0; ///< Errors of unproved().
  bool Strict = false;
  bool RefusesUnproved = false;
  bool Remarks = true;
};

/// Returns \p Text and writes `\xNN` for bytes that a terminal would not show:
/// controls (Latin-1 too), marks that change the direction of writing, and
/// bytes that are not UTF-8.
std::string escapeControls(llvm::StringRef Text);

/// Returns the first names of a list and the number of the others:
/// `a, b and 3 more`.
std::string listText(llvm::ArrayRef<std::string> Names);

/// Returns "; did you mean 'X'?" with the candidate nearest to \p Word, or
/// \p Otherwise if each edit distance is above a third of the length of
/// \p Word.
std::string didYouMean(llvm::StringRef Word,
                       const std::vector<std::string> &Candidates,
                       const llvm::Twine &Otherwise = "");

} // namespace graft

#endif // GRAFT_LIB_SUPPORT_DIAGNOSTICS_H
