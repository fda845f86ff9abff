//===- lib/pass/TestPasses.cpp - a pass for tests ---------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
// The pass manager must detect passes that fail without a message, break the
// graph, or change the graph but return Unchanged. The hidden pass `test-edit`
// does each of these on demand.
//
//===----------------------------------------------------------------------===//

#include "lib/io/Module.h"
#include "lib/pass/Registry.h"
#include "lib/support/InternalError.h"

#include "llvm/Support/ErrorHandling.h"

#include <csignal>
#include <cstdlib>
#include <exception>

using namespace llvm;

namespace graft {
namespace {

struct TestEditOptions : PassOptions {
  Option<std::string> Node{*this, "node", "The node to edit"};
  Option<std::string> Do{*this, "do",
                         "none, rename, break, lie, fail, silent-fail, warn, "
                         "unproved, remark, or a fault: abort, segfault, "
                         "fatal, internal, stack, terminate or no-memory",
                         "none"};
  Option<std::string> To{*this, "to", "The new name, or the device of 'break'",
                         "renamed"};
};

class TestEdit final : public PassBase<TestEdit, TestEditOptions> {
public:
  static constexpr PassInfo Info = {"test-edit", "Edit one node, for tests",
                                    "For tests of the pass manager."};

  /// Causes the fault \p Do, if it names one.
  static void fault(StringRef Do) {
    if (Do == "abort")
      std::abort();
    if (Do == "segfault")
      raise(SIGSEGV);
    if (Do == "fatal")
      report_fatal_error("as asked");
    if (Do == "internal")
      internalError("as asked");
    if (Do == "stack")
      exhaustStack(1);
    if (Do == "terminate")
      std::terminate();
    if (Do == "no-memory")
      report_bad_alloc_error("as asked");
  }

  static unsigned exhaustStack(unsigned Depth) {
    volatile unsigned At = Depth;
    volatile char Frame[1 << 16];
    Frame[Depth & 0xffff] = static_cast<char>(Depth);
    return At == 0 ? Frame[0] : exhaustStack(Depth + 1) + Frame[1];
  }

  PassResult run(Module &M, DiagnosticEngine &Diags) override {
    StringRef Name = *Options.Node, Do = *Options.Do;
    Graph &G = M.graph();
    NodeId N = G.find(Name);
    ++Statistics["runs"];
    fault(Do);
    if (Do == "warn")
      Diags.warning(Name, "as asked");
    else if (Do == "unproved")
      Diags.unproved("as-asked", Name, "is not proved, as asked");
    else if (Do == "remark")
      Diags.remark("variable", Name, "is mirrored, as asked").Facts = {
          {"policy", "mirrored"}, {"reduction", "mean"}};
    else if (Do == "fail")
      Diags.error(Name, "as asked")
          .Notes.push_back({*Options.To, "this one too"});
    if (Do == "fail" || Do == "silent-fail")
      return PassResult::Failure;
    if (N == NoNode || (Do != "rename" && Do != "break" && Do != "lie"))
      return PassResult::Unchanged;
    if (Do == "break")
      G.setDevice(N, *Options.To);
    else
      G.rename(N, *Options.To);
    return Do == "lie" ? PassResult::Unchanged : PassResult::Changed;
  }
};

} // namespace

void registerTestPasses(PassRegistry &Registry) {
  Registry.add(TestEdit::create(), /*Hidden=*/true);
}

} // namespace graft
