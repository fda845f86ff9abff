//===- lib/analysis/Dims.cpp - symbolic dimensions --------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
// The table of sizes and the queries; the rules are in DimRules.cpp.
//
//===----------------------------------------------------------------------===//

#include "lib/analysis/Dims.h"

#include "llvm/Support/FormatVariadic.h"

using namespace llvm;

namespace graft {

DimId DimTable::make(int64_t Number) {
  auto D = static_cast<DimId>(Entries.size());
  Entries.push_back({D, false, Number, Sym()});
  return D;
}

DimId DimTable::make(Sym S) {
  DimId D = make(S.isNumber() ? S.C : UnknownSize);
  if (!S.isNumber()) {
    Entries[D].HasSym = true;
    Entries[D].Value = S;
  }
  return D;
}

DimId DimTable::find(DimId D) const {
  DimId Root = D;
  while (Entries[Root].Parent != Root)
    Root = Entries[Root].Parent;
  while (Entries[D].Parent != Root) {
    DimId Next = Entries[D].Parent;
    Entries[D].Parent = Root;
    D = Next;
  }
  return Root;
}

std::optional<Sym> DimTable::sym(DimId D) const {
  const Entry &E = Entries[find(D)];
  if (E.HasSym)
    return E.Value;
  if (E.Number == UnknownSize)
    return std::nullopt;
  return Sym{E.Number, 0, 0};
}

bool DimTable::unify(DimId A, DimId B) {
  A = find(A);
  B = find(B);
  if (A == B)
    return true;
  Entry &EA = Entries[A], &EB = Entries[B];
  if (EA.Number != UnknownSize && EB.Number != UnknownSize &&
      EA.Number != EB.Number)
    return false;
  if (EA.HasSym && EB.HasSym && !(EA.Value == EB.Value))
    return false;
  // The older one is the root: ids do not depend on anything but the graph.
  DimId Root = std::min(A, B), Child = std::max(A, B);
  Entry &R = Entries[Root], &C = Entries[Child];
  // Whoever read the one that knew less must read it again.
  Changed |=
      Child < Fresh && ((R.HasSym && !C.HasSym) ||
                        (R.Number != UnknownSize && C.Number == UnknownSize));
  if (C.HasSym && !R.HasSym) {
    Changed |= Root < Fresh;
    R.HasSym = true;
    R.Value = C.Value;
  }
  if (R.Number == UnknownSize && C.Number != UnknownSize) {
    Changed |= Root < Fresh;
    R.Number = C.Number;
  }
  C.Parent = Root;
  return true;
}

bool DimTable::assign(DimId D, Sym S) {
  if (S.isNumber()) {
    assignNumber(D, S.C);
    return !hasSym(D);
  }
  Entry &E = Entries[find(D)];
  if (E.HasSym)
    return E.Value == S;
  E.HasSym = true;
  E.Value = S;
  Changed |= find(D) < Fresh;
  return true;
}

void DimTable::assignNumber(DimId D, int64_t Number) {
  Entry &E = Entries[find(D)];
  if (E.Number != UnknownSize || Number == UnknownSize)
    return;
  E.Number = Number;
  Changed |= find(D) < Fresh;
}

void DimAnalysis::extend() {
  for (auto N = static_cast<NodeId>(FirstOutput.size() - 1); N < G.size();
       ++N) {
    FirstOutput.push_back(FirstOutput.back() + 1);
    ZeroConsts.push_back(false);
    Shapes.emplace_back();
    Values.emplace_back();
    if (G.isLive(N) && G.node(N).NumData > 0 && !G.isOp(N, "_Gather") &&
        validPort(G.input(N, 0)))
      Shapes.back() = Shapes[outputIndex(G.input(N, 0))];
  }
}

std::optional<ArrayRef<DimId>> DimAnalysis::shape(Endpoint E) const {
  if (!validPort(E))
    return std::nullopt;
  const DimRun &R = Shapes[outputIndex(E)];
  if (!R.Known)
    return std::nullopt;
  return ArrayRef<DimId>(Pool).slice(R.First, R.Count);
}

std::optional<ArrayRef<DimId>> DimAnalysis::value(Endpoint E) const {
  if (!validPort(E))
    return std::nullopt;
  const DimRun &R = Values[outputIndex(E)];
  if (!R.Known)
    return std::nullopt;
  return ArrayRef<DimId>(Pool).slice(R.First, R.Count);
}

std::optional<SmallVector<int64_t, 4>> DimAnalysis::numbers(Endpoint E) const {
  auto V = value(E);
  if (!V)
    return std::nullopt;
  SmallVector<int64_t, 4> Result;
  for (DimId D : *V) {
    if (Dims.hasSym(D) || Dims.number(D) == UnknownSize)
      return std::nullopt;
    Result.push_back(Dims.number(D));
  }
  return Result;
}

bool DimAnalysis::isSymbolic(Endpoint E) const {
  auto V = value(E);
  return V && any_of(*V, [&](DimId D) { return Dims.hasSym(D); });
}

bool DimAnalysis::isLocal(Endpoint E) const {
  auto V = value(E);
  return V && any_of(*V, [&](DimId D) {
           auto S = Dims.sym(D);
           return S && S->isLocal();
         });
}

int DimAnalysis::batchAxis(Endpoint E) const {
  auto S = shape(E);
  if (!S)
    return -1;
  for (size_t I = 0; I < S->size(); ++I)
    if (auto V = Dims.sym((*S)[I]); V && V->isLocal())
      return static_cast<int>(I);
  return -1;
}

std::string DimAnalysis::describe(DimId D) const {
  auto S = Dims.sym(D);
  if (!S)
    return "?";
  std::string Text = std::to_string(S->C);
  if (S->B)
    Text += S->B == 1 ? "*b" : formatv("*b^{0}", int(S->B)).str();
  if (S->R)
    Text += S->R == 1 ? "*N" : formatv("*N^{0}", int(S->R)).str();
  return Text;
}

} // namespace graft
