//===- lib/driver/SplitInput.cpp - several inputs in one file ---*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "lib/driver/SplitInput.h"

#include "lib/driver/FileChecks.h"
#include "lib/driver/Report.h"
#include "lib/driver/Run.h"

using namespace llvm;

namespace graft {

/// Returns the inputs of one file. Blank lines before each input keep the line
/// numbers of the file.
static std::vector<std::unique_ptr<MemoryBuffer>>
split(const MemoryBuffer &Buffer) {
  std::vector<std::unique_ptr<MemoryBuffer>> Result;
  std::string Part;
  StringRef Rest = Buffer.getBuffer();
  unsigned Lines = 0;
  while (true) {
    auto [Line, After] = Rest.split('\n');
    bool IsMarker = Line.starts_with(SplitMarker);
    if (!IsMarker)
      Part += (Line + "\n").str();
    if (IsMarker || After.empty())
      Result.push_back(
          MemoryBuffer::getMemBufferCopy(Part, Buffer.getBufferIdentifier()));
    ++Lines;
    if (IsMarker)
      Part.assign(Lines, '\n');
    if (After.empty())
      return Result;
    Rest = After;
  }
}

bool hasSplitMarker(StringRef Text) {
  return Text.starts_with(SplitMarker) ||
         Text.contains(("\n" + SplitMarker).str());
}

int runSplit(const ToolOptions &O, const MemoryBuffer &Buffer) {
  if (Error E = checkFiles(O, O.Output, O.Input))
    return fail(std::move(E));
  std::string All;
  int Status = ExitGood;
  bool IsFirst = true;
  for (std::unique_ptr<MemoryBuffer> &Part : split(Buffer)) {
    std::string Text;
    Status = std::max(Status, Run(O, std::move(Part)).run(&Text));
    All += (IsFirst ? "" : SplitMarker.str() + "\n") + Text;
    IsFirst = false;
  }
  if (Status != ExitGood)
    return Status;
  WriteOptions Options = O.Write;
  Options.Format = O.Format.value_or(OutputFormat::Text);
  if (Error E = writeFile(O.Output, Options, [&](ByteSink &Sink) {
        Sink.write(All);
        return Error::success();
      }))
    return fail(std::move(E));
  return 0;
}

} // namespace graft
