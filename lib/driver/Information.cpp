//===- lib/driver/Information.cpp - flags that only print -------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "lib/driver/Information.h"

#include "lib/driver/Distribution.h"
#include "lib/io/read/InputFile.h"

#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/raw_ostream.h"

using namespace llvm;

namespace graft {

/// The pipeline that is printed: the input has a say in it. Otherwise the input
/// is not read before everything else is known to be right.
static Expected<Pipeline> pipelineFor(const ToolOptions &O) {
  if (!O.Passes.dependOnInput() || O.Input == "-")
    return O.Passes.pipeline(/*OnGpus=*/false);
  auto Buffer = openInput(O.Input);
  if (!Buffer)
    return Buffer.takeError();
  Expected<Module> M = readModule(std::move(*Buffer), {.Kind = O.Kind});
  if (!M)
    return M.takeError();
  return O.Passes.pipeline(namesGpu(M->graph()));
}

Expected<bool> printInformation(const ToolOptions &O,
                                const PassRegistry &Registry) {
  Pipeline Printed;
  if (O.PrintPipeline)
    if (Error E = pipelineFor(O).moveInto(Printed))
      return E;
  if (O.ListPasses)
    for (const PassRegistry::Entry &E : Registry.entries())
      if (!E.Hidden)
        outs() << formatv("{0,-20} {1}\n", E.name(),
                          E.Prototype->info().Summary);
  if (!O.HelpPass.empty())
    outs() << passHelp(*Registry.find(O.HelpPass)->Prototype);
  if (O.PassesMarkdown)
    outs() << passesMarkdown(Registry);
  if (O.PrintPipeline)
    outs() << Printed.str() << '\n';
  return O.ListPasses || !O.HelpPass.empty() || O.PassesMarkdown ||
         O.PrintPipeline;
}

} // namespace graft
