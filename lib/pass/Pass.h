//===- lib/pass/Pass.h - passes and their metadata --------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
// A pass edits a replicated program. Its metadata are beside its code, for the
// command line, the pipeline parser and docs/Passes.md.
//
//===----------------------------------------------------------------------===//

#ifndef GRAFT_LIB_PASS_PASS_H
#define GRAFT_LIB_PASS_PASS_H

#include "lib/graph/Graph.h"
#include "lib/pass/Option.h"
#include "lib/support/Diagnostics.h"

#include "llvm/ADT/StringRef.h"

#include <map>
#include <memory>
#include <string>
#include <vector>

namespace graft {

class Module;

/// The outcome of a pass. Unchanged: the graph is the same to the byte.
enum class [[nodiscard]] PassResult : uint8_t { Failure, Changed, Unchanged };

/// Metadata of a pass.
struct PassInfo {
  const char *Name;        ///< As in a pipeline: `insert-reductions`.
  const char *Summary;     ///< One line.
  const char *Description; ///< Markdown, for docs/Passes.md and --help-pass.
};

class Pass {
public:
  /// The effect that a pass may have on the graph. A check at the end of a
  /// pipeline may run while the output is written, because no later pass edits
  /// the graph. The result of normalizing passes at the start is the graph with
  /// which checks compare.
  enum class Effect : uint8_t { Edits, Lowers, Checks, Normalises };

  virtual ~Pass() = default;
  virtual Effect effect() const { return Effect::Edits; }
  virtual const PassInfo &info() const = 0;
  virtual PassOptions &options() = 0;
  /// A pass with the same options that has not run.
  virtual std::unique_ptr<Pass> clone() const = 0;
  /// Runs on \p M. Reports to \p Diags; returns Failure after an error.
  virtual PassResult run(Module &M, DiagnosticEngine &Diags) = 0;

  /// Counters for --pass-statistics, by description.
  std::map<std::string, uint64_t> Statistics;

protected:
  /// Adds one to a counter that changes often. \p Slot, null at first, caches
  /// the address of the counter.
  void count(uint64_t *&Slot, const char *What) {
    if (!Slot)
      Slot = &Statistics[What];
    ++*Slot;
  }
};

/// Base of a pass. Its metadata are the member `static constexpr PassInfo Info`
/// of \p Derived; its options, if it has any, are \p OptionsOf.
template <typename Derived, typename OptionsOf = PassOptions>
class PassBase : public Pass {
public:
  const PassInfo &info() const final { return Derived::Info; }
  PassOptions &options() final { return Options; }
  std::unique_ptr<Pass> clone() const final { return create(Options); }
  static std::unique_ptr<Pass> create(const OptionsOf &Options = {}) {
    auto P = std::make_unique<Derived>();
    P->Options = Options;
    return P;
  }

  OptionsOf Options;

private:
  // Only Derived can call the constructor, so it must be the derived class.
  PassBase() = default;
  friend Derived;
};

/// Defines the function that GRAFT_PASS(Class) in passes/Passes.def declares.
/// Use it in namespace graft at the end of the pass's file.
#define GRAFT_DEFINE_PASS(Class)                                               \
  std::unique_ptr<Pass> create##Class##Pass() { return Class::create(); }

/// Defines the function that GRAFT_PASS_WITH_OPTIONS(Class) in
/// passes/Passes.def declares.
#define GRAFT_DEFINE_PASS_WITH_OPTIONS(Class)                                  \
  std::unique_ptr<Pass> create##Class##Pass(const Class##Options &Options) {   \
    return Class::create(Options);                                             \
  }

} // namespace graft

#endif // GRAFT_LIB_PASS_PASS_H
