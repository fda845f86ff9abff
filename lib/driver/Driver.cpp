//===- lib/driver/Driver.cpp - what the program does ------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "lib/driver/Driver.h"

#include "lib/driver/Information.h"
#include "lib/driver/Report.h"
#include "lib/driver/Run.h"
#include "lib/driver/SplitInput.h"
#include "lib/io/read/InputFile.h"

#include "llvm/Support/BuryPointer.h"

using namespace llvm;

namespace graft {

int runTool(const ToolOptions &O, const PassRegistry &Registry) {
  Expected<bool> Printed = printInformation(O, Registry);
  if (!Printed)
    return fail(Printed.takeError());
  if (*Printed)
    return 0;

  Expected<std::unique_ptr<MemoryBuffer>> Buffer = openInput(O.Input);
  if (!Buffer) {
    errs() << escapeControls(toString(Buffer.takeError())) << '\n';
    return 1;
  }
  if (O.Plan) {
    auto Plan = printPlan(*O.Plan, *O.Passes.Strategy,
                          (*Buffer)->getMemBufferRef(), O.Kind);
    if (!Plan)
      return fail(Plan.takeError());
    outs() << *Plan;
    if (O.Output == "-" && !O.Format)
      return 0;
  }
  if (O.SplitInput)
    return runSplit(O, **Buffer);
  StringRef Name = (*Buffer)->getBufferIdentifier();
  if (Name.ends_with(".pbtxt") && hasSplitMarker((*Buffer)->getBuffer()))
    return fail(createStringError(inconvertibleErrorCode(),
                                  "'" + Name + "' has the line '" +
                                      SplitMarker +
                                      "': give --split-input-file"));
  // The program ends now: to take the graph apart first costs time only.
  auto Whole = std::make_unique<Run>(O, std::move(*Buffer));
  bool Good = Whole->run(nullptr);
  BuryPointer(std::move(Whole));
  return Good ? 0 : 1;
}

} // namespace graft
