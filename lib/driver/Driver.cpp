//===- lib/driver/Driver.cpp - the run of the program -----------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "lib/driver/Driver.h"

#include "lib/driver/CertifyFiles.h"
#include "lib/driver/Distribution.h"
#include "lib/driver/Inspect.h"
#include "lib/driver/Report.h"
#include "lib/driver/Run.h"
#include "lib/driver/SplitInput.h"
#include "lib/io/read/InputFile.h"

#include "llvm/Support/BuryPointer.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/FormatVariadic.h"

using namespace llvm;

namespace graft {

/// Returns the pipeline to print. The input is read only if the pipeline
/// depends on it.
static Expected<Pipeline> pipelineFor(const ToolOptions &O) {
  if (!O.Passes.Strategy || O.Input == "-" ||
      (!O.Passes.dependOnInput() && !sys::fs::exists(O.Input)))
    return O.Passes.pipeline({});
  auto Buffer = openInput(O.Input);
  if (!Buffer)
    return Buffer.takeError();
  Expected<Module> M = readModule(std::move(*Buffer), readOptions(O));
  if (!M)
    return M.takeError();
  return O.Passes.pipeline(devicesOf(M->graph()));
}

/// Prints the information that flags ask for instead of a run. Returns false if
/// no flag does.
static Expected<bool> printInformation(const ToolOptions &O,
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
  if (O.OptionsJson)
    printOptionsJson(outs());
  if (O.PrintPipeline)
    outs() << Printed.str() << '\n';
  return O.ListPasses || !O.HelpPass.empty() || O.PassesMarkdown ||
         O.OptionsJson || O.PrintPipeline;
}

static int flushed() { return flushPrinted() ? ExitGood : ExitInput; }

int runTool(const ToolOptions &O, const PassRegistry &Registry) {
  Expected<bool> Printed = printInformation(O, Registry);
  if (!Printed)
    return fail(Printed.takeError());
  if (*Printed)
    return flushed();
  if (!O.Certified.empty())
    return certifyFiles(O);

  Expected<std::unique_ptr<MemoryBuffer>> Buffer = openInput(O.Input);
  if (!Buffer) {
    errs() << escapeControls(toString(Buffer.takeError())) << '\n';
    return ExitInput;
  }
  if (O.Plan) {
    Progress Line;
    if (O.ShowProgress)
      Line.start("graft-opt");
    Line.stage("planning for " + O.Input);
    auto Plan = printPlan(*O.Plan, *O.Passes.Strategy,
                          (*Buffer)->getMemBufferRef(), readOptions(O));
    Line.stop();
    if (!Plan)
      return fail(Plan.takeError());
    outs() << *Plan;
    if (O.Output == "-" && !O.Format)
      return flushed();
    if (int Status = flushed(); Status != ExitGood)
      return Status;
  }
  if (O.SplitInput)
    return runSplit(O, **Buffer);
  StringRef Name = (*Buffer)->getBufferIdentifier();
  if (Name.ends_with(".pbtxt") && hasSplitMarker((*Buffer)->getBuffer()))
    return fail(createStringError(inconvertibleErrorCode(),
                                  "'" + Name + "' has the line '" +
                                      SplitMarker +
                                      "': give --split-input-file"));
  if (O.Inspect)
    return inspectFile(O, std::move(*Buffer));
  // The program ends now, so destroying the graph would only cost time.
  auto Whole = std::make_unique<Run>(O, std::move(*Buffer));
  int Status = Whole->run(nullptr);
  BuryPointer(std::move(Whole));
  return Status;
}

} // namespace graft
