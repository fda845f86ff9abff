//===- lib/certify/forms/LoweredFile.cpp - a file that was written --------===//
//
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "lib/certify/forms/LoweredFile.h"

#include "lib/certify/forms/ProxyCheck.h"
#include "lib/program/Program.h"
#include "lib/program/forms/RowRepeat.h"

#include <cmath>

using namespace llvm;

namespace graft {

static CopyName parseCopyName(StringRef Word, StringRef Name) {
  CopyName Result{Name.str(), -1, 0};
  for (size_t At = Name.find(Word); At != StringRef::npos;
       At = Name.find(Word, At + 1)) {
    if (At != 0 && Name[At - 1] != '/')
      continue;
    size_t End = Name.find_first_not_of("0123456789", At + Word.size());
    StringRef Digits = Name.slice(At + Word.size(), End);
    bool Ends = End == StringRef::npos;
    if (Digits.empty() || Digits.getAsInteger(10, Result.Replica) ||
        (!Ends && Name[End] != '/') || (At == 0 && Ends)) {
      Result.Replica = -1;
      continue;
    }
    if (At == 0)
      Result.Base = Name.substr(End + 1).str();
    else
      Result.Base =
          (Name.take_front(At - 1) + (Ends ? "" : Name.substr(End))).str();
    Result.Split = At == 0 ? 0 : static_cast<uint32_t>(At - 1);
    return Result;
  }
  return Result;
}

CopyName copyNameIn(const Graph &In, StringRef Word, StringRef Name) {
  CopyName Result{Name.str(), -1, 0};
  if (In.find(Name) != NoNode)
    return Result;
  if (CopyName Usual = parseCopyName(Word, Name); Usual.Replica >= 0)
    return Usual;
  for (size_t At = Name.find('/'); At != StringRef::npos;
       At = Name.find('/', At + 1)) {
    StringRef Rest = Name.substr(At + 1);
    size_t Digits = std::min(Rest.find('/'), Rest.size());
    int Replica;
    if (Rest.take_front(Digits).getAsInteger(10, Replica))
      continue;
    NodeId Var = In.find(Name.take_front(At));
    std::string Base = (Name.take_front(At) + Rest.substr(Digits)).str();
    if (Var != NoNode && isVariableOp(In.opName(Var)) &&
        In.find(Base) != NoNode)
      return {Base, Replica, static_cast<uint32_t>(At)};
  }
  return Result;
}

LoweredFile::LoweredFile(const Graph &G, const Graph &In, StringRef Word)
    : G(G), In(In), Proxies(findProxies(G, In, Word)) {}

bool LoweredFile::isStamped(NodeId N) const {
  return G.node(N).Flags & NF_MayHaveGraft && G.hasAttr(N, StampAttr);
}

std::optional<int64_t> powerOfReplicas(double Factor, unsigned Replicas,
                                       unsigned Type) {
  if (!(Factor > 0) || Replicas < 2)
    return std::nullopt;
  double Whole = std::round(std::log(Factor) / std::log(double(Replicas)));
  // The relative rounding error that a constant of the type may have.
  double Precision = Type == DT_BFLOAT16 ? 0x1p-8
                     : Type == DT_HALF   ? 0x1p-11
                                         : 0x1p-22;
  if (std::abs(Factor / std::pow(double(Replicas), Whole) - 1) > Precision)
    return std::nullopt;
  return static_cast<int64_t>(Whole);
}

bool takeScale(const Graph &File, NodeId N, unsigned Replicas, Graph &Program,
               NodeId Made) {
  // The powers that the file itself states are no evidence.
  for (StringRef Key : {PowerAttr, PowersAttr, ShareAttr})
    Program.removeAttr(Made, Key);
  Endpoint Number = File.input(N, 1);
  if (auto Lookup = rowLookup(File, Number)) {
    auto Found = scalePowers(File, *Lookup, File.outputType(File.input(N, 0)),
                             File.isOp(N, op::FloorDiv), Replicas);
    if (!Found)
      return false;
    if (Found->Powers.size() == 1)
      Program.setIntAttr(Made, PowerAttr, Found->Powers[0]);
    else
      Program.setAttr(Made, PowersAttr, encodeIntListAttr(Found->Powers));
    if (Found->Share != 0)
      Program.setIntAttr(Made, ShareAttr, Found->Share);
    return true;
  }
  auto Factors = constValue(File, Number.Node);
  if (Factors && Factors->HasInts && Factors->NumElements > 1 &&
      File.isOp(N, op::Mul)) {
    SmallVector<int64_t, 4> Powers;
    for (int64_t Factor : Factors->Ints) {
      auto Power =
          powerOfReplicas(static_cast<double>(Factor), Replicas, DT_INT64);
      if (!Power)
        return false;
      Powers.push_back(*Power);
    }
    Program.setAttr(Made, PowersAttr, encodeIntListAttr(Powers));
    return true;
  }
  auto Factor = constScalar(File, Number.Node);
  auto Power = Factor
                   ? powerOfReplicas(*Factor, Replicas, File.outputType(Number))
                   : std::nullopt;
  if (Power)
    Program.setIntAttr(Made, PowerAttr,
                       File.isOp(N, op::FloorDiv) ? -*Power : *Power);
  return Power.has_value();
}

std::unique_ptr<Graph> compact(const Graph &G) {
  auto Compact = std::make_unique<Graph>();
  std::vector<NodeId> Now(G.size(), NoNode);
  for (NodeId N = 0; N < G.size(); ++N) {
    if (!G.isLive(N))
      continue;
    Now[N] = Compact->addNode(G.name(N), G.opName(N), {}, NoNode);
    Compact->setDevice(Now[N], G.device(N));
    for (const AttrEntry &A : G.attrs(N))
      Compact->setAttr(Now[N], A.Key, A.Value);
  }
  for (NodeId N = 0; N < G.size(); ++N) {
    if (!G.isLive(N))
      continue;
    SmallVector<Endpoint, 8> Inputs(G.inputs(N));
    for (Endpoint &E : Inputs)
      E.Node = Now[E.Node];
    Compact->setInputs(Now[N], Inputs);
  }
  return Compact;
}

} // namespace graft
