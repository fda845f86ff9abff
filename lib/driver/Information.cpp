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

Expected<std::string> pipelineFor(const ToolOptions &O) {
  if (!O.PrintPipeline || O.PipelineOnGpus.empty() || O.Input == "-")
    return O.Pipeline;
  auto Buffer = openInput(O.Input);
  if (!Buffer)
    return Buffer.takeError();
  Expected<Module> M = readModule(std::move(*Buffer), {.Kind = O.Kind});
  if (!M)
    return M.takeError();
  return namesGpu(M->graph()) ? O.PipelineOnGpus : O.Pipeline;
}

bool printInformation(const ToolOptions &O, const PassRegistry &Registry,
                      const PassManager &Manager) {
  if (O.ListPasses)
    for (const PassRegistry::Entry &E : Registry.entries())
      if (!E.Hidden)
        outs() << formatv("{0,-20} {1}\n", E.Info->Name, E.Info->Summary);
  if (!O.HelpPass.empty())
    outs() << passHelp(*Registry.find(O.HelpPass)->Info);
  if (O.PassesMarkdown)
    outs() << passesMarkdown(Registry);
  if (O.PrintPipeline)
    outs() << Manager.str() << '\n';
  return O.ListPasses || !O.HelpPass.empty() || O.PassesMarkdown ||
         O.PrintPipeline;
}

} // namespace graft
