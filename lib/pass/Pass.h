//===- lib/pass/Pass.h - passes and their metadata --------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
// A pass edits a replicated program. Its metadata stand beside its code, once,
// and the command line, the pipeline parser and docs/Passes.md read them.
//
//===----------------------------------------------------------------------===//

#ifndef GRAFT_LIB_PASS_PASS_H
#define GRAFT_LIB_PASS_PASS_H

#include "lib/graph/Graph.h"
#include "lib/support/Diagnostics.h"

#include "llvm/ADT/StringRef.h"

#include <map>
#include <memory>
#include <string>
#include <vector>

namespace graft {

class Module;

/// What a pass did. Unchanged means that the graph is the same to the byte.
enum class [[nodiscard]] PassResult : uint8_t { Failure, Changed, Unchanged };

/// One option of a pass: `name{option=value}` in a pipeline.
struct PassOption {
  const char *Name;
  const char *Help;
  const char *Default;
  /// Its value is a list: a comma in it goes on unless an option follows.
  bool IsList = false;
};

/// Metadata of a pass.
struct PassInfo {
  const char *Name;        ///< As in a pipeline: `insert-reductions`.
  const char *Summary;     ///< One line.
  const char *Description; ///< Markdown, for docs/Passes.md and --help-pass.
  llvm::ArrayRef<PassOption> Options;
};

class Pass {
public:
  /// What a pass may do to the graph. A check at the end of a pipeline may run
  /// while the output is written, because nothing changes any more. A pass
  /// that normalizes at the start defines the input that checks compare with.
  enum class Effect : uint8_t { Edits, Lowers, Checks, Normalises };

  virtual ~Pass() = default;
  virtual Effect effect() const { return Effect::Edits; }
  virtual const PassInfo &info() const = 0;
  /// Runs on \p M. Reports to \p Diags; returns Failure after an error.
  virtual PassResult run(Module &M, DiagnosticEngine &Diags) = 0;

  /// The value of an option, its default unless the pipeline sets it.
  llvm::StringRef option(llvm::StringRef Name) const;
  /// An option as an unsigned number, or an error message.
  llvm::Expected<unsigned> unsignedOption(llvm::StringRef Name) const;
  /// Whether the pipeline sets an option.
  bool isGiven(llvm::StringRef Name) const {
    return GivenOptions.count(Name.str()) != 0;
  }
  /// Sets an option; false when the pass has none of that name.
  bool setOption(llvm::StringRef Name, llvm::StringRef Value);

  /// Counters for --pass-statistics, by description.
  std::map<std::string, uint64_t> Statistics;

protected:
  /// Adds one to a counter that is counted often: \p Slot, null at first,
  /// remembers where it is.
  void count(uint64_t *&Slot, const char *What) {
    if (!Slot)
      Slot = &Statistics[What];
    ++*Slot;
  }

private:
  std::map<std::string, std::string> GivenOptions;
};

/// Base of a pass whose metadata is its member `static constexpr PassInfo
/// Info`.
template <typename Derived> class PassBase : public Pass {
public:
  const PassInfo &info() const final { return Derived::Info; }

private:
  // Only the class that is named can be the derived one.
  PassBase() = default;
  friend Derived;
};

/// Defines what a line GRAFT_PASS(Class) of passes/Passes.def declares. Stands
/// in namespace graft at the end of the pass's file.
#define GRAFT_DEFINE_PASS(Class)                                               \
  std::unique_ptr<Pass> create##Class##Pass() {                                \
    return std::make_unique<Class>();                                          \
  }                                                                            \
  const PassInfo &get##Class##PassInfo() { return Class::Info; }

} // namespace graft

#endif // GRAFT_LIB_PASS_PASS_H
