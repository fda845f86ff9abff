//===- lib/driver/OutputCheck.cpp - the flag --verify-output ----*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "lib/driver/OutputCheck.h"

#include "lib/certify/Certify.h"
#include "lib/io/ModuleVerifier.h"
#include "lib/io/VariableCollections.h"
#include "lib/io/read/InputFile.h"
#include "lib/io/read/Read.h"
#include "lib/program/Program.h"
#include "lib/strategy/Resources.h"

#include <algorithm>

using namespace llvm;

namespace graft {

Expected<std::unique_ptr<MemoryBuffer>> openWritten(ArrayRef<std::string> Files,
                                                    StringRef Name) {
  std::vector<std::unique_ptr<MemoryBuffer>> Parts;
  size_t Size = 0;
  for (const std::string &File : Files) {
    auto Part = openInput(File);
    if (!Part)
      return Part.takeError();
    Size += (*Part)->getBufferSize();
    Parts.push_back(std::move(*Part));
  }
  if (Parts.size() == 1)
    return std::move(Parts.front());
  auto All = WritableMemoryBuffer::getNewUninitMemBuffer(Size, Name);
  char *To = All->getBufferStart();
  for (const auto &Part : Parts)
    To = std::copy(Part->getBufferStart(), Part->getBufferEnd(), To);
  return All;
}

Error checkWritten(const Module &M, ArrayRef<std::string> Files,
                   OutputFormat Format, StringRef Name,
                   DiagnosticEngine &Diags) {
  auto Bytes = openWritten(Files, Name);
  return Bytes ? checkMessage(M, std::move(*Bytes), Format, Diags)
               : Bytes.takeError();
}

static Expected<Module> readWritten(const Module &M,
                                    std::unique_ptr<MemoryBuffer> Bytes,
                                    OutputFormat Format) {
  using Encoding = ReadOptions::Encoding;
  bool IsBinary = Format == OutputFormat::Binary;
  return readModule(std::move(Bytes),
                    {.Kind = M.Kind,
                     .Form = IsBinary ? Encoding::Binary : Encoding::Text,
                     .MetaGraph = M.MetaGraphIndex});
}

certify::Declared declaredBy(const Module &M) {
  const Graph &G = M.graph();
  certify::Declared Names;
  for (NodeId Var : localVariablesOf(M))
    Names.Local.insert(G.name(Var));
  for (const VariableRow &Row :
       listVariables(G, VariableIndex(G), declaredVariables(M)))
    Names.Trained.insert(Row.Name);
  Names.Runs = M.declaredNames();
  return Names;
}

static Error verdict(bool Good) {
  if (Good)
    return Error::success();
  return createStringError(inconvertibleErrorCode(),
                           "the output does not verify and is not kept");
}

Error checkWorkers(const Module &M, ArrayRef<std::string> Graphs,
                   OutputFormat Format, DiagnosticEngine &Diags) {
  Diags.setPass("verify-output");
  std::vector<Module> Written;
  std::vector<const Graph *> Outputs;
  bool Good = true;
  for (const std::string &Text : Graphs) {
    Expected<Module> One = readWritten(
        M, MemoryBuffer::getMemBuffer(Text, M.FileName, false), Format);
    if (!One)
      return One.takeError();
    Good &= verifyModule(*One, Diags) && verifyImport(*One, Diags);
    Written.push_back(std::move(*One));
  }
  Outputs.reserve(Written.size());
  for (const Module &One : Written)
    Outputs.push_back(&One.graph());
  Module Input;
  if (Error E = Input.graph().parse(M.graphBytes()))
    return E;
  Good = Good && certify::check(Input, Outputs, declaredBy(M), Diags);
  Diags.setPass("");
  return verdict(Good);
}

Error checkMessage(const Module &M, std::unique_ptr<MemoryBuffer> Bytes,
                   OutputFormat Format, DiagnosticEngine &Diags) {
  Expected<Module> Written = readWritten(M, std::move(Bytes), Format);
  if (!Written)
    return Written.takeError();
  Diags.setPass("verify-output");
  bool Good =
      verifyModule(*Written, Diags, &M) && verifyImport(*Written, Diags);
  // Runs the certificate again, on the written file instead of the program. An
  // output that was not lowered may have only the part of one worker.
  const Graph &Out = Written->graph();
  if (Good && !M.OnlyFunctions &&
      (M.Lowered || (M.graph().modified() && readMesh(Out).Node == NoNode))) {
    Module Input;
    if (Error E = Input.graph().parse(M.graphBytes()))
      return E;
    Good = certify::check(Input, Out, Diags,
                          M.Lowered ? certify::Claim::Step
                                    : certify::Claim::Parts);
  }
  Diags.setPass("");
  return verdict(Good);
}

} // namespace graft
