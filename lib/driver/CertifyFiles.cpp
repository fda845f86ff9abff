//===- lib/driver/CertifyFiles.cpp - the flag --certify ---------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "lib/driver/CertifyFiles.h"

#include "lib/certify/Certify.h"
#include "lib/driver/OutputCheck.h"
#include "lib/driver/Report.h"
#include "lib/io/ModuleVerifier.h"
#include "lib/io/read/InputFile.h"

#include "llvm/Support/FormatVariadic.h"

using namespace llvm;

namespace graft {

/// Prints the warnings and errors of \p Diags about \p File. Returns true if
/// none is an error.
static bool finish(const DiagnosticEngine &Diags, StringRef File) {
  for (const Diagnostic &D : Diags.all())
    if (D.Level != Severity::Remark)
      printDiagnostic(errs(), File, D);
  return !Diags.hasErrors();
}

/// Reads and verifies \p File.
static std::optional<Module> read(const std::string &File, InputKind Kind) {
  auto Buffer = openInput(File);
  Expected<Module> M = Buffer ? readModule(std::move(*Buffer), {.Kind = Kind})
                              : Expected<Module>(Buffer.takeError());
  DiagnosticEngine Diags;
  if (!M)
    Diags.error("", toString(M.takeError()));
  else if (verifyModule(*M, Diags))
    verifyImport(*M, Diags);
  return finish(Diags, File) ? std::optional(std::move(*M)) : std::nullopt;
}

int certifyFiles(const ToolOptions &O) {
  std::optional<Module> Input = read(O.Against, O.Kind);
  std::vector<Module> Modules;
  for (const std::string &File : O.Certified) {
    std::optional<Module> One = read(File, O.Kind);
    if (!Input || !One)
      return 1;
    Modules.push_back(std::move(*One));
  }
  std::vector<const Graph *> Graphs;
  Graphs.reserve(Modules.size());
  for (const Module &M : Modules)
    Graphs.push_back(&M.graph());
  DiagnosticEngine Diags;
  Diags.setPass("certify");
  Diags.setStrict(O.Strict);
  certify::Declared Names = declaredBy(*Input);
  if (certify::check(*Input, Graphs, Names, Diags) &&
      certify::isByItself(*Graphs.front())) {
    std::string Ahead;
    if (int64_t Most = certify::mayBeAhead(*Graphs.front()))
      Ahead = formatv("no worker is more than {0} steps ahead of the slowest; ",
                      Most);
    Diags.unproved(
        "asynchronous", "",
        "each file computes the step of the input on the feeds of its worker, "
        "and all workers update the same variables, each variable under its "
        "lock; " +
            Ahead +
            "a step may read older values of a variable than those that it "
            "updates, and no single-device run gives the same result");
  }
  return finish(Diags, O.Certified.front()) ? 0 : 1;
}

} // namespace graft
