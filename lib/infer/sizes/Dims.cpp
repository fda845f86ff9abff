//===- lib/infer/sizes/Dims.cpp - symbolic dimensions -----------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
// The table of sizes and the queries of DimAnalysis. SizeContext.cpp has the
// context of the rules.
//
//===----------------------------------------------------------------------===//

#include "lib/infer/sizes/Dims.h"
#include "lib/ops/Ops.h"
#include "lib/ops/ProgramOps.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/MathExtras.h"

#include <numeric>

using namespace llvm;

namespace graft {

bool Sym::multiply(const Sym &O) {
  // A Sym can express multiples of ragged rows. It cannot express a product of
  // ragged rows and batch rows, or of the rows of two feeds.
  if ((Ragged != 0 && !O.isNumber()) || (O.Ragged != 0 && !isNumber()) ||
      (B != 0 && O.B != 0 && Rows != O.Rows) || MulOverflow(C, O.C, C) ||
      AddOverflow(B, O.B, B) || AddOverflow(R, O.R, R))
    return false;
  if (O.B != 0)
    Rows = O.Rows;
  Ragged |= O.Ragged;
  return true;
}

DimTable::Wide DimTable::get(uint32_t Size) const {
  if (isWide(Size))
    return Others[Size & ~Aside];
  Wide W;
  W.Number = numberOf(Size);
  return W;
}

void DimTable::set(Entry &E, const Wide &W) {
  if (isWide(E.Size)) {
    Others[E.Size & ~Aside] = W;
  } else if (!W.HasSym && W.Number >= -int64_t(Zero) &&
             W.Number < int64_t(Zero)) {
    E.Size = static_cast<uint32_t>(W.Number + Zero);
  } else {
    E.Size = Aside | static_cast<uint32_t>(Others.size());
    Others.push_back(W);
  }
}

std::optional<Sym> DimTable::sym(DimId D) const {
  uint32_t Size = Entries[find(D)].Size;
  if (hasSymOf(Size))
    return settled(Others[Size & ~Aside].Value);
  int64_t Number = numberOf(Size);
  if (Number == UnknownSize)
    return std::nullopt;
  return Sym{Number, 0, 0};
}

std::optional<Sym> DimTable::settled(Sym S) const {
  if (S.B == 0 || S.Ragged != 0)
    return S;
  while (S.Rows < RowsMade.size() && RowsMade[S.Rows].Parent != S.Rows) {
    const RowsEntry &Is = RowsMade[S.Rows];
    for (int Power = 0; Power < S.B; ++Power)
      if (MulOverflow(S.C, Is.Factor, S.C))
        return std::nullopt;
    S.Rows = Is.Parent;
  }
  return S;
}

std::optional<uint16_t> DimTable::makeRows(Endpoint Of, bool Claimed) {
  if (RowsMade.size() > UINT16_MAX)
    return std::nullopt;
  auto Made = static_cast<uint16_t>(RowsMade.size());
  RowsMade.push_back({Made, Claimed, 1, Of});
  return Made;
}

void DimTable::shorten(uint16_t Rows) {
  // Make each entry of the path a child of the root, starting at the root.
  SmallVector<uint16_t, 8> Path;
  for (uint16_t I = Rows; RowsMade[I].Parent != I; I = RowsMade[I].Parent)
    Path.push_back(I);
  for (uint16_t I : reverse(Path)) {
    RowsEntry &Is = RowsMade[I];
    const RowsEntry &Over = RowsMade[Is.Parent];
    int64_t Factor;
    if (MulOverflow(Is.Factor, Over.Factor, Factor))
      continue;
    if (Is.Parent < Joined.size() && Joined[Is.Parent]) {
      Joined.resize(RowsMade.size());
      Joined[I] = true;
    }
    Is.Factor = Factor;
    Is.Parent = Over.Parent;
  }
}

std::vector<bool> DimTable::takeMoved() {
  std::vector<bool> Was = std::exchange(Joined, {});
  if (Was.empty())
    return {};
  // Moved: rows below an entry with a new root, and rows whose factor to the
  // root is too large.
  Was.resize(RowsMade.size());
  std::vector<bool> Moved(RowsMade.size()), Done(RowsMade.size());
  SmallVector<uint16_t, 8> Path;
  for (size_t Rows = 0; Rows < RowsMade.size(); ++Rows) {
    Path.clear();
    auto I = static_cast<uint16_t>(Rows);
    for (; !Done[I]; I = RowsMade[I].Parent) {
      Done[I] = true;
      Moved[I] = Was[I];
      Path.push_back(I);
    }
    for (uint16_t Each : reverse(Path))
      Moved[Each] = Moved[Each] || Moved[RowsMade[Each].Parent];
  }
  for (size_t Rows = 0; Rows < RowsMade.size(); ++Rows) {
    auto I = static_cast<uint16_t>(Rows);
    shorten(I);
    if (!settled({1, 1, 0, I}))
      Moved[I] = true;
  }
  return Moved;
}

bool DimTable::relate(Sym X, Sym Y) {
  for (const Sym &S : {X, Y})
    if (S.Rows < RowsMade.size())
      shorten(S.Rows);
  auto SX = settled(X), SY = settled(Y);
  if (!SX || !SY)
    return false;
  if (*SX == *SY)
    return true;
  if (SX->B != SY->B || SX->B <= 0 || SX->R != SY->R || SX->C <= 0 ||
      SY->C <= 0 || SX->Ragged != 0 || SY->Ragged != 0 ||
      SX->Rows == SY->Rows || (SX->B != 1 && SX->C != SY->C))
    return false;
  // If C * b = D * c, then b = (D/g) * t and c = (C/g) * t for some t, where g
  // is the greatest common divisor of C and D.
  int64_t Common = SX->B == 1 ? std::gcd(SX->C, SY->C) : SX->C;
  int64_t OfX = SY->C / Common, OfY = SX->C / Common;
  // Claimed rows may become a multiple of the rows of a split tensor, but not
  // the reverse.
  bool ClaimsX = RowsMade[SX->Rows].Claimed,
       ClaimsY = RowsMade[SY->Rows].Claimed;
  if (ClaimsX != ClaimsY && (ClaimsX ? OfY : OfX) != 1)
    return false;
  bool RootIsX = OfX != 1             ? false
                 : OfY != 1           ? true
                 : ClaimsX != ClaimsY ? ClaimsY
                                      : SX->Rows < SY->Rows;
  uint16_t Root = RootIsX ? SX->Rows : SY->Rows;
  if (OfX != 1 && OfY != 1) {
    auto Made = makeRows(RowsMade[SX->Rows].Of);
    if (!Made)
      return false;
    Root = *Made;
    RowsMade[Root].Claimed = ClaimsX;
  }
  Joined.resize(RowsMade.size());
  for (auto [Rows, Factor] :
       {std::pair(SX->Rows, OfX), std::pair(SY->Rows, OfY)}) {
    if (Rows == Root)
      continue;
    Joined[Rows] = true;
    RowsMade[Rows].Parent = Root;
    RowsMade[Rows].Factor = Factor;
  }
  return true;
}

bool DimTable::isEqual(DimId X, DimId Y) const {
  if (find(X) == find(Y))
    return true;
  auto S = sym(X);
  return S && S == sym(Y);
}

bool DimTable::isSame(DimId D) const {
  uint32_t Size = Entries[find(D)].Size;
  return hasSymOf(Size) ? Others[Size & ~Aside].Value.globalPower() == 0
                        : Size != Unknown && Size != UnknownRows;
}

bool DimTable::followsRows(DimId D) const {
  uint32_t Size = Entries[find(D)].Size;
  if (!hasSymOf(Size))
    return Size == UnknownRows;
  auto S = settled(Others[Size & ~Aside].Value);
  return S && S->B == 1 && S->R == 0 && S->C > 0 && S->Ragged == 0 &&
         isOfSplit(*S);
}

void DimTable::markRows(DimId D) {
  D = find(D);
  if (Entries[D].Size != Unknown)
    return;
  Entries[D].Size = UnknownRows;
  if (D < Fresh)
    Changed.push_back(D);
}

std::optional<int> DimTable::globalPower(DimId D) const {
  if (isSame(D))
    return 0;
  if (Entries[find(D)].Size == UnknownRows)
    return 1;
  auto S = hasSym(D) ? sym(D) : std::nullopt;
  if (!S || S->Ragged != 0)
    return std::nullopt;
  return S->globalPower();
}

void DimTable::markSame(DimId D) {
  D = find(D);
  if (Entries[D].Size != Unknown)
    return;
  Entries[D].Size = UnknownSame;
  if (D < Fresh)
    Changed.push_back(D);
}

bool DimTable::unify(DimId A, DimId B) {
  A = find(A);
  B = find(B);
  if (A == B)
    return true;
  // The older size is the root, so that ids depend on the graph alone.
  DimId Root = std::min(A, B), Child = std::max(A, B);
  Entry &Old = Entries[Root], &New = Entries[Child];
  // A size that follows the rows of a replica can only equal an unknown size or
  // another size that follows rows.
  auto FitsRows = [&](const Entry &E, DimId D) {
    return E.Size == Unknown || E.Size == UnknownRows || followsRows(D);
  };
  if ((Old.Size == UnknownRows && !FitsRows(New, Child)) ||
      (New.Size == UnknownRows && !FitsRows(Old, Root)))
    return false;
  if (Old.Size != New.Size || Old.Size & Aside) {
    Wide R = get(Old.Size), C = get(New.Size);
    if (R.Number != UnknownSize && C.Number != UnknownSize &&
        R.Number != C.Number)
      return false;
    // A number is the same on all replicas; a ragged size is not.
    if ((R.HasSym && R.Value.Ragged != 0 && C.Number != UnknownSize) ||
        (C.HasSym && C.Value.Ragged != 0 && R.Number != UnknownSize))
      return false;
    if (R.HasSym && C.HasSym && !relate(R.Value, C.Value))
      return false;
    // Nodes that read the size with less information must be visited again.
    bool TellsChild = (R.HasSym && !C.HasSym) ||
                      (R.Number != UnknownSize && C.Number == UnknownSize);
    bool TellsRoot = (C.HasSym && !R.HasSym) ||
                     (C.Number != UnknownSize && R.Number == UnknownSize);
    if (C.HasSym && !R.HasSym) {
      R.HasSym = true;
      R.Value = C.Value;
    }
    if (R.Number == UnknownSize)
      R.Number = C.Number;
    if (TellsRoot)
      set(Old, R);
    bool IsSame = Old.Size == UnknownSame || New.Size == UnknownSame;
    if (IsSame && !R.HasSym && R.Number == UnknownSize) {
      TellsChild |= New.Size == Unknown;
      TellsRoot |= Old.Size == Unknown;
      Old.Size = UnknownSame;
    }
    bool IsRows = Old.Size == UnknownRows || New.Size == UnknownRows;
    if (IsRows && !isWide(Old.Size)) {
      TellsChild |= New.Size == Unknown;
      TellsRoot |= Old.Size == Unknown;
      Old.Size = UnknownRows;
    }
    if ((TellsChild && Child < Fresh) || (TellsRoot && Root < Fresh))
      Changed.push_back(Root);
  }
  New.Parent = Root;
  return true;
}

bool DimTable::assign(DimId D, Sym S) {
  if (S.isNumber()) {
    assignNumber(D, S.C);
    return !hasSym(D);
  }
  D = find(D);
  Wide W = get(Entries[D].Size);
  if (W.HasSym)
    return relate(W.Value, S);
  if ((S.Ragged != 0 && W.Number != UnknownSize) ||
      (Entries[D].Size == UnknownRows && S.globalPower() != 1))
    return false;
  AnyRagged |= S.Ragged != 0;
  W.HasSym = true;
  W.Value = S;
  set(Entries[D], W);
  if (D < Fresh)
    Changed.push_back(D);
  return true;
}

void DimTable::assignNumber(DimId D, int64_t Number) {
  D = find(D);
  Wide W = get(Entries[D].Size);
  if (W.Number != UnknownSize || Number == UnknownSize ||
      (W.HasSym && W.Value.Ragged != 0) || Entries[D].Size == UnknownRows)
    return;
  W.Number = Number;
  set(Entries[D], W);
  if (D < Fresh)
    Changed.push_back(D);
}

void DimTable::flatten() {
  // A root is older than the rest of its class, so this loop reaches it first.
  for (Entry &E : Entries)
    E.Parent = Entries[E.Parent].Parent;
  for (Wide &W : Others)
    if (auto S = W.HasSym ? settled(W.Value) : std::nullopt)
      W.Value = *S;
}

void DimAnalysis::extend() {
  size_t New = G.size() + 1 - FirstOutput.size();
  FirstOutput.reserve(FirstOutput.size() + New);
  Shapes.reserve(Shapes.size() + New);
  Values.reserve(Values.size() + New);
  for (auto N = static_cast<NodeId>(FirstOutput.size() - 1); N < G.size();
       ++N) {
    // Each output of an IdentityN has its own input.
    bool HasAll = G.isLive(N) && G.isOp(N, op::IdentityN);
    uint32_t NumOutputs = HasAll ? G.node(N).NumData : 1;
    FirstOutput.push_back(FirstOutput.back() + NumOutputs);
    ZeroConsts.push_back(false);
    for (uint32_t Port = 0; Port < NumOutputs; ++Port) {
      Shapes.emplace_back();
      Values.emplace_back();
      if (G.isLive(N) && G.node(N).NumData > 0 && !G.isOp(N, GatherOp) &&
          !G.isOp(N, op::CollectiveGather) && validPort(G.input(N, Port)))
        Shapes.back() = Shapes[outputIndex(G.input(N, Port))];
    }
  }
}

void DimAnalysis::finish() {
  Dims.flatten();
  // A class of sizes may have another root now.
  for (auto &[Whole, Its] :
       SmallVector<std::pair<DimId, std::pair<DimId, DimId>>>(Parts.begin(),
                                                              Parts.end()))
    Parts.try_emplace(Dims.find(Whole), Its);
  std::vector<uint32_t> Before = countInPool(
      [&](DimId D) { return Dims.hasSym(D) || Dims.followsRows(D); });
  if (Before.back() != 0)
    for (std::vector<DimRun> *Runs : {&Shapes, &Values})
      for (DimRun &R : *Runs)
        R.Symbolic = Before[R.First + R.Count] != Before[R.First];
  Pool.shrink_to_fit();
}

std::optional<SmallVector<int64_t, 4>> DimAnalysis::numbers(Endpoint E) const {
  auto V = value(E);
  if (!V || isMatrix(E))
    return std::nullopt;
  SmallVector<int64_t, 4> Result;
  for (DimId D : *V) {
    if (Dims.hasSym(D) || Dims.number(D) == UnknownSize)
      return std::nullopt;
    Result.push_back(Dims.number(D));
  }
  return Result;
}

bool DimAnalysis::isLocal(Endpoint E) const {
  if (!isSymbolic(E))
    return false;
  return any_of(*value(E), [&](DimId D) {
    auto S = Dims.sym(D);
    return S && S->isLocal() && Dims.isOfSplit(*S);
  });
}

int64_t DimAnalysis::localNumber(DimId D) const {
  int64_t Number = Dims.number(D);
  auto S = Dims.hasSym(D) ? Dims.sym(D) : std::nullopt;
  for (int P = 0; Number != UnknownSize && S && P < S->globalPower(); ++P)
    Number /= replicas();
  return Number;
}

bool DimAnalysis::mayBeOneRow(DimId D) const {
  auto Size = Dims.sym(D);
  int64_t Number = Dims.number(D);
  return Number <= (OwnRows ? 1 : replicas()) && (!Size || Size->C <= 1);
}

std::optional<SmallVector<int64_t, 4>>
DimAnalysis::axesOfOne(Endpoint E) const {
  auto Sizes = shape(E);
  if (!Sizes || OwnRows)
    return std::nullopt;
  // The batch has at least one row for each replica. So with several replicas,
  // the batch size is not 1 in the single-device step.
  auto IsOfRows = [&](DimId D) {
    auto S = Dims.hasSym(D) ? Dims.sym(D) : std::nullopt;
    return replicas() > 1 &&
           (S ? S->B > 0 && S->C > 0 && S->Ragged == 0 && Dims.isOfSplit(*S)
              : Dims.followsRows(D));
  };
  SmallVector<int64_t, 4> Axes;
  for (const auto &[I, D] : enumerate(*Sizes)) {
    if (Dims.isOne(D))
      Axes.push_back(static_cast<int64_t>(I));
    else if (!IsOfRows(D) && (Dims.hasSym(D) || Dims.number(D) < 0))
      return std::nullopt;
  }
  return Axes;
}

bool DimAnalysis::sumsByOneRow(const Graph &G, NodeId Sum,
                               Endpoint Axes) const {
  if (Axes.Node == NoNode || !G.isOp(Sum, op::Sum) ||
      !G.isOp(Axes.Node, op::BroadcastGradientArgs))
    return false;
  auto X = shape(G.input(Sum, 0));
  if (!X)
    return false;
  auto IsOfRows = [&](DimId D) { return !Dims.isSame(D) && mayBeOneRow(D); };
  // The summed axes are axes of the longer shape. A matrix product has two more
  // axes at the end.
  size_t Rank = 0;
  for (Endpoint E : G.dataInputs(Axes.Node)) {
    auto Sizes = value(E);
    Rank = std::max(Rank, Sizes ? Sizes->size() : X->size());
  }
  if (Rank > X->size())
    return false;
  return any_of(G.dataInputs(Axes.Node), [&](Endpoint E) {
    auto Sizes = value(E);
    // An unreplicated node has the sizes of the whole batch.
    bool IsWhole = G.isOp(E.Node, op::Shape) &&
                   G.node(E.Node).Count == Copies::Once &&
                   G.node(Sum).Count == Copies::Once;
    if (!Sizes || IsWhole)
      return false;
    auto Along = X->take_front(Rank).take_back(Sizes->size());
    return any_of(zip(*Sizes, Along), [&](auto Pair) {
      auto [Size, Has] = Pair;
      return IsOfRows(Size) && Dims.isSame(Has) && !Dims.isOne(Has);
    });
  });
}

bool DimAnalysis::hasAxesOfOneRow(const Graph &G, NodeId N) const {
  if (!G.isOp(N, op::BroadcastGradientArgs))
    return false;
  auto X = value(G.input(N, 0)), Y = value(G.input(N, 1));
  // For equal shapes BroadcastGradientArgs lists no axis.
  if (!X || !Y || equal(*X, *Y, [&](DimId A, DimId B) {
        return Dims.find(A) == Dims.find(B);
      }))
    return false;
  auto IsOfRows = [&](DimId D) { return !Dims.isSame(D) && mayBeOneRow(D); };
  return any_of(*X, IsOfRows) || any_of(*Y, IsOfRows);
}

bool DimAnalysis::isUneven(Endpoint E, unsigned Axis) const {
  if (!Dims.hasRagged())
    return false;
  auto S = shape(E);
  return !S || Axis >= S->size() || Dims.isRagged((*S)[Axis]) ||
         !Dims.globalPower((*S)[Axis]);
}

int DimAnalysis::batchAxis(Endpoint E) const {
  if (!shapeRun(E).Symbolic)
    return -1;
  auto S = shape(E);
  for (size_t I = 0; I < S->size(); ++I)
    if (auto V = Dims.sym((*S)[I]);
        V ? V->isLocal() && Dims.isOfSplit(*V) : Dims.followsRows((*S)[I]))
      return static_cast<int>(I);
  return -1;
}

NodeId DimAnalysis::counterOf(uint32_t Ragged) const {
  auto Next = llvm::upper_bound(FirstOutput, Ragged - 1);
  return static_cast<NodeId>(Next - FirstOutput.begin() - 1);
}

std::string DimAnalysis::describe(DimId D) const {
  auto S = Dims.sym(D);
  if (!S)
    return "?";
  std::string Text = std::to_string(S->C);
  if (S->B)
    Text += S->B == 1 ? "*b" : formatv("*b^{0}", int(S->B)).str();
  // The rows of the first feed (id 0) are printed as b, without its name.
  if (S->B && S->Ragged == 0 && S->Rows != 0)
    Text += (" of '" + G.name(Dims.rowsOf(*S).Node) + "'").str();
  if (S->Ragged)
    Text +=
        " of rows that '" + G.name(counterOf(S->Ragged)).str() + "' selects";
  if (S->R)
    Text += S->R == 1 ? "*N" : formatv("*N^{0}", int(S->R)).str();
  return Text;
}

std::optional<int64_t> staticElements(const DimAnalysis &Dims, Endpoint E) {
  auto Shape = Dims.shape(E);
  if (!Shape)
    return std::nullopt;
  int64_t Elements = 1;
  for (DimId D : *Shape) {
    int64_t Size = Dims.table().number(D);
    if (Size == UnknownSize || Dims.table().hasSym(D) || Size < 0 ||
        MulOverflow(Elements, Size, Elements))
      return std::nullopt;
  }
  return Elements;
}

} // namespace graft
