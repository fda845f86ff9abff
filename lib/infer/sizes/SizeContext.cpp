//===- lib/infer/sizes/SizeContext.cpp - the context of size rules --------===//
//
// SPDX-License-Identifier: Apache-2.0
//
// The queries and statements of rules about one node. SizeInference.cpp decides
// when rules run.
//
//===----------------------------------------------------------------------===//

#include "lib/infer/sizes/SizeContext.h"

#include "lib/graph/AttrWire.h"
#include "lib/program/Program.h"

#include "llvm/Support/MathExtras.h"

#include <numeric>

using namespace llvm;

namespace graft {

SizeContext::SizeContext(DimAnalysis &A, const LoopInfo *Loops)
    : NodeView{A.G}, Known(A), Table(A.Dims), Loops(Loops), One(A.Dims.make(1)),
      A(A), FirstMade(A.G.size()), Due(A.G.size()) {
  Makers.push_back({NoNode, 0});
  A.Origins.make(NoNode);
  A.Origins.defineNumber(One, 1);
  for (auto [E, Axis] : A.Options.Suppose)
    Supposed[E.Node].push_back({E.Port, Axis});
}

std::optional<int64_t> SizeContext::num(unsigned I) const {
  auto V = I < numData() ? nums(I) : std::nullopt;
  if (!V || V->size() != 1)
    return std::nullopt;
  return V->front();
}

/// Returns a run that holds \p List, which may be a part of an existing run.
DimRun SizeContext::store(ArrayRef<DimId> List) {
  DimRun Run;
  Run.Known = true;
  Run.Count = static_cast<uint16_t>(List.size());
  std::less<> Before;
  bool IsInPool = !List.empty() && !Before(List.data(), A.Pool.data()) &&
                  Before(List.data(), A.Pool.data() + A.Pool.size());
  if (IsInPool) {
    Run.First = static_cast<uint32_t>(List.data() - A.Pool.data());
    return Run;
  }
  Run.First = static_cast<uint32_t>(A.Pool.size());
  A.Pool.insert(A.Pool.end(), List.begin(), List.end());
  return Run;
}

/// Returns false if no operand sizes of different origins can be equal, as for
/// most nodes. Two conditions must hold: all sizes that are not numbers by
/// definition have one origin, and no fact makes one of them a number.
bool SizeContext::mayMeet() {
  std::optional<SizeOrigins::Origin> One;
  for (Endpoint E : Inputs)
    for (Dims List : {A.shape(E), A.value(E)})
      for (DimId D : List.value_or(ArrayRef<DimId>())) {
        SizeOrigins::Origin Is = A.Origins.of(D);
        auto S = Table.sym(D);
        bool IsNumber = S && S->isNumber() && S->Ragged == 0;
        if (IsNumber != (Is.Is == SizeOrigins::Kind::Number))
          return true;
        if (IsNumber)
          continue;
        if (One && !(*One == Is))
          return true;
        One = Is;
      }
  return false;
}

/// Returns the pairs of operand sizes that are equal by a fact that another op
/// states, and not by definition.
ArrayRef<std::pair<DimId, DimId>> SizeContext::meetings() {
  if (MeetingsOf == N)
    return Meetings;
  MeetingsOf = N;
  Meetings.clear();
  if (A.Origins.facts().empty() || !mayMeet())
    return Meetings;
  // If the node has a result, the facts that it states hold.
  using Origin = SizeOrigins::Origin;
  std::optional<std::set<std::pair<Origin, Origin>>> Own;
  auto IsOwn = [&](Origin X, Origin Y) {
    if (!Own) {
      Own.emplace();
      for (auto [A, B] : Stated)
        Own->insert(std::minmax(this->A.Origins.of(A), this->A.Origins.of(B)));
    }
    return Own->count(std::minmax(X, Y)) != 0;
  };
  // By class: the first size of an operand. A definition may join sizes of
  // different classes, such as b and 3 * b, so a size is identified by its
  // origin and its class.
  using Class = std::pair<uint64_t, uint64_t>;
  auto ClassOf = [&](DimId D) -> Class {
    auto S = Table.sym(D);
    if (!S)
      return {Table.find(D), ~uint64_t(1)};
    uint64_t Rows = S->B ? S->Rows : 0;
    return {static_cast<uint64_t>(S->C),
            uint64_t(S->Ragged) << 32 | Rows << 16 |
                uint64_t(static_cast<uint8_t>(S->B)) << 8 |
                static_cast<uint8_t>(S->R)};
  };
  SmallDenseMap<Class, DimId, 8> First;
  SmallDenseSet<std::pair<DimId, DimId>, 8> Seen;
  auto See = [&](DimId D) {
    DimId Root = A.Origins.root(D);
    if (!Seen.insert({Root, Table.find(D)}).second || Table.isOne(D))
      return;
    auto [It, New] = First.try_emplace(ClassOf(D), Root);
    if (New)
      return;
    Origin Its = A.Origins.of(It->second), Mine = A.Origins.of(Root);
    if (!(Its == Mine) && !IsOwn(Its, Mine))
      Meetings.push_back({It->second, Root});
  };
  for (Endpoint E : Inputs)
    for (Dims List : {A.shape(E), A.value(E)})
      for (DimId D : List.value_or(ArrayRef<DimId>()))
        See(D);
  return Meetings;
}

/// Returns \p List with a new size in place of each size that is equal to
/// another operand's size only by facts. The size of the result equals both
/// operand sizes only where the facts hold, so it needs a new origin.
DimList SizeContext::detached(unsigned Slot, ArrayRef<DimId> List) {
  DimList Result(List.begin(), List.end());
  auto Met = meetings();
  if (Met.empty())
    return Result;
  for (unsigned I = 0; I < Result.size() && I < MaxElements; ++I) {
    DimId L = Result[I];
    if (A.Origins.owner(L) == N ||
        none_of(Met, [&](auto Pair) { return Table.isEqual(Pair.first, L); }))
      continue;
    DimId Mine = bareSlot(Slot + I);
    if (!Table.unify(Mine, L))
      continue;
    if (Detached.insert(Mine).second)
      A.Origins.derive(Mine, L, Met);
    Result[I] = Mine;
  }
  return Result;
}

void SizeContext::passShape(unsigned Port, DimRun Run) {
  if (!Run.Known || Port >= A.numOutputs(N))
    return;
  if (!meetings().empty())
    return setShape(Port, DimList(A.list(Run)->begin(), A.list(Run)->end()));
  DimRun &Mine = A.Shapes[A.outputIndex({N, Port})];
  if (!Mine.Known) {
    Mine = Run;
    Moved = true;
  } else if (!(Mine == Run)) {
    sameShapes(*A.list(Mine), *A.list(Run));
  }
}

void SizeContext::setShape(unsigned Port, ArrayRef<DimId> Said) {
  if (Port >= A.numOutputs(N))
    return;
  DimRun &Mine = A.Shapes[A.outputIndex({N, Port})];
  if (!Mine.Known) {
    Mine = meetings().empty()
               ? store(Said)
               : store(detached(DetachedSlot + Port * MaxElements, Said));
    Moved = true;
    return;
  }
  ArrayRef<DimId> Known = *A.list(Mine);
  if (Known.size() != Said.size())
    return;
  for (auto [Old, New] : zip(Known, Said)) {
    if (A.Origins.root(Old) == A.Origins.root(New))
      continue;
    // Sizes of different origins in the same class are equal by a fact, not by
    // definition.
    if (Table.find(Old) != Table.find(New))
      same(Old, New);
  }
}

void SizeContext::setValue(unsigned Port, ArrayRef<DimId> Elements) {
  if (Port >= A.numOutputs(N) || Elements.size() > MaxElements)
    return;
  DimList Own;
  if (!meetings().empty()) {
    Own = detached(DetachedSlot * 2 + Port * MaxElements, Elements);
    Elements = Own;
  }
  // A later round knows more, so the value of an earlier round is replaced.
  DimRun &Mine = A.Values[A.outputIndex({N, Port})];
  if (Mine.Known && *A.list(Mine) == Elements)
    return;
  Mine = store(Elements);
  Moved = true;
}

DimId SizeContext::slot(unsigned Slot) {
  DimId D = bareSlot(Slot);
  if (isSingle())
    Table.markSame(D);
  return D;
}

DimId SizeContext::bareSlot(unsigned Slot) {
  for (DimId D = FirstMade[N]; D < Makers.size() && Makers[D].Node == N; ++D)
    if (Makers[D].Slot == Slot)
      return D;
  if (!FirstRound) {
    auto [It, New] = Later.try_emplace((uint64_t(N) << 32) | Slot, 0);
    if (!New)
      return It->second;
    It->second = static_cast<DimId>(Table.size());
  }
  Makers.push_back({FirstRound ? N : NoNode, Slot});
  A.Origins.make(N);
  return Table.make();
}

/// Returns true if the node and the nodes of its operands are unreplicated: it
/// computes the global value.
bool SizeContext::isSingle() const {
  return !A.Options.Unpatched && G.node(N).Count == Copies::Once &&
         none_of(Inputs, [&](Endpoint E) {
           return G.node(E.Node).Count == Copies::PerReplica;
         });
}

DimId SizeContext::slotFrom(unsigned Slot, ArrayRef<DimId> From) {
  DimId D = slot(Slot);
  if (all_of(From, [&](DimId Size) { return Table.isSame(Size); }))
    Table.markSame(D);
  return D;
}

std::optional<Sym> SizeContext::rowsAt(unsigned Slot, Endpoint Of,
                                       bool Claimed) {
  auto [It, New] = RowsMade.try_emplace((uint64_t(N) << 32) | Slot, 0);
  if (New) {
    auto Made = Table.makeRows(Of, Claimed);
    if (!Made) {
      RowsMade.erase(It);
      return std::nullopt;
    }
    It->second = *Made;
  }
  Sym S{1, 1, 0};
  S.Rows = It->second;
  return S;
}

void SizeContext::splitRows(DimId Rows, unsigned Slot, Endpoint Of, bool Own) {
  if (!Table.hasSym(Rows)) {
    auto S = rowsAt(Slot, Of);
    if (!S)
      return;
    Table.assign(Rows, *S);
    A.Origins.define(Rows, *S);
  }
  // The ratio of two row counts is the same on a replica and in the
  // single-device step.
  auto S = Table.sym(Rows);
  int64_t Number = Table.number(Rows);
  if (!S || Number <= 0 || !A.Origins.isFixed(Rows))
    return;
  auto &[Known, First] = Numbered[Own];
  if (Known == 0) {
    Known = Number;
    First = Rows;
    return;
  }
  int64_t Common = std::gcd(Known, Number);
  auto Times = Table.sym(First);
  if (Times && !MulOverflow(S->C, Known / Common, S->C) &&
      !MulOverflow(Times->C, Number / Common, Times->C))
    defineRelated(First, *Times, Rows, *S);
}

/// States that \p Times (a multiple of the rows \p X) and \p S (a multiple of
/// the rows \p Y) are equal by definition.
void SizeContext::defineRelated(DimId X, const Sym &Times, DimId Y,
                                const Sym &S) {
  size_t Before = Table.numRows();
  if (!Table.relate(Times, S))
    return;
  SizeOrigins &O = A.Origins;
  O.joinRows(O.of(X), O.of(Y));
  // If the table now expresses both as multiples of new rows, join the new rows
  // as well.
  if (auto Its = Table.sym(Y); Its && Table.numRows() != Before)
    O.joinRows(O.of(Y), O.originOf(*Its));
}

DimId SizeContext::changedNumber(unsigned Slot, int64_t Was, int64_t Now) {
  DimId D = bareSlot(Slot);
  // An unknown number is also the same on all replicas.
  if (Was == UnknownSize)
    Table.markSame(D);
  assignNumber(D, Was);
  if (Was != Now && Now > 0 && Was % A.Options.Replicas == 0 &&
      Was / A.Options.Replicas == Now)
    claimRows(Slot, D);
  return D;
}

void SizeContext::claimRows(unsigned Slot, DimId D) {
  if (Table.hasSym(D))
    return;
  if (auto S = rowsAt(Slot, {N, 0}, /*Claimed=*/true))
    assign(D, *S);
}

std::optional<Sym> SizeContext::elementsOf(ArrayRef<DimId> List) const {
  Sym Product;
  for (DimId D : List) {
    auto S = Table.sym(D);
    if (!S || !Product.multiply(*S))
      return std::nullopt;
  }
  return Product;
}

DimId SizeContext::total(unsigned Slot, ArrayRef<DimId> Parts) {
  DimId D = slotFrom(Slot, Parts);
  if (!Table.isKnown(D))
    Summands[Table.find(D)] = DimList(Parts);
  Sym Sum;
  Sum.C = 0;
  int64_t Number = 0;
  for (DimId Part : Parts)
    if (Number == UnknownSize || Table.number(Part) == UnknownSize ||
        AddOverflow(Number, Table.number(Part), Number))
      Number = UnknownSize;
  bool OneRows = true;
  for (DimId Part : Parts) {
    auto S = Table.sym(Part);
    bool Fits = S &&
                (Sum.C == 0 ||
                 (S->B == Sum.B && S->R == Sum.R && S->Ragged == Sum.Ragged)) &&
                S->C > 0 && !AddOverflow(Sum.C, S->C, Sum.C);
    if (!Fits)
      return D;
    OneRows &= Sum.C == S->C || S->Rows == Sum.Rows;
    Sum.B = S->B;
    Sum.R = S->R;
    Sum.Rows = S->Rows;
    Sum.Ragged = S->Ragged;
  }
  // The sum of multiples of the same rows is a multiple of these rows. The sum
  // of rows of different feeds is a new row count.
  if (OneRows)
    assign(D, Sum);
  else if (Sum.B != 1 || Sum.Ragged != 0)
    return D;
  else if (auto S = Table.hasSym(D) ? std::nullopt : rowsAt(Slot, {N, 0}))
    assign(D, {1, 1, Sum.R, S->Rows});
  assignNumber(D, Number);
  return D;
}

DimId SizeContext::number(unsigned Slot, int64_t Value) {
  if (Value == 1)
    return One;
  DimId D = bareSlot(Slot);
  assignNumber(D, Value);
  return D;
}

DimId SizeContext::product(unsigned Slot, DimId X, DimId Y) {
  if (Table.isOne(X))
    return Y;
  if (Table.isOne(Y))
    return X;
  DimId D = slot(Slot);
  int64_t NX = Table.number(X), NY = Table.number(Y), Result;
  if (NX != UnknownSize && NY != UnknownSize && !MulOverflow(NX, NY, Result))
    assignNumber(D, Result);
  auto SX = Table.sym(X), SY = Table.sym(Y);
  if (SX && SY && SX->multiply(*SY)) {
    // A product of two numbers cannot be a number of a replica's rows.
    if (!assign(D, *SX) && SX->isNumber() && !A.Options.Unpatched)
      conflict(D, X);
  } else if (Table.isSame(X) && Table.isSame(Y)) {
    Table.markSame(D);
  } else if ((Table.followsRows(X) && Table.isSame(Y)) ||
             (Table.isSame(X) && Table.followsRows(Y))) {
    Table.markRows(D);
  }
  if (!Table.isKnown(D)) {
    DimList Of = factorsOf({X, Y});
    unifyProducts(D, Of);
    Factors[Table.find(D)] = std::move(Of);
  }
  return D;
}

/// Unifies \p D, the product of \p Of, with an earlier product of the same
/// factors.
void SizeContext::unifyProducts(DimId D, ArrayRef<DimId> Of) {
  DimList Sorted(Of);
  llvm::sort(Sorted, [&](DimId X, DimId Y) {
    return std::pair(Table.find(X), X) < std::pair(Table.find(Y), Y);
  });
  DimList Key(Sorted);
  for (DimId &Factor : Key)
    Factor = Table.find(Factor);
  auto [It, New] =
      Products.try_emplace(std::move(Key), Product{D, std::move(Sorted)});
  if (New)
    return;
  Table.unify(It->second.Size, D);
  SmallVector<std::pair<DimId, DimId>> Factors;
  for (auto [Mine, Its] : zip(Sorted, It->second.Of))
    Factors.push_back({Mine, Its});
  A.Origins.derive(It->second.Size, D, Factors);
}

/// Cancels the common factors of two equal products and unifies the rest.
/// Example: if s * b and t * b are equal, s and t are equal.
void SizeContext::cancelFactors() {
  auto IsPositive = [&](DimId D) {
    auto S = Table.sym(D);
    return S && S->C > 0 && S->Ragged == 0;
  };
  DenseMap<DimId, const Product *> First;
  struct Rest {
    DimId X, Y;
    SmallVector<std::pair<DimId, DimId>> Because;
  };
  SmallVector<Rest> Equal;
  for (const auto &[Key, P] : Products) {
    auto [It, New] = First.try_emplace(Table.find(P.Size), &P);
    if (New)
      continue;
    DimList Mine(P.Of), Its(It->second->Of);
    Rest R{0, 0, {{P.Size, It->second->Size}}};
    erase_if(Mine, [&](DimId F) {
      auto Same = find_if(Its, [&](DimId O) { return Table.isEqual(F, O); });
      bool Shared = Same != Its.end() && IsPositive(F);
      if (Shared) {
        R.Because.push_back({F, *Same});
        Its.erase(Same);
      }
      return Shared;
    });
    if (Mine.size() != 1 || Its.size() != 1)
      continue;
    R.X = Mine.front();
    R.Y = Its.front();
    Equal.push_back(std::move(R));
  }
  for (const Rest &R : Equal)
    if (areCounts(R.X, R.Y) && Table.unify(R.X, R.Y)) {
      Table.touch(R.X);
      A.Origins.derive(R.X, R.Y, R.Because);
    }
}

bool SizeContext::areCounts(DimId X, DimId Y) const {
  bool AreRows = Table.hasSym(X) && Table.hasSym(Y);
  bool AreSame = !Table.isKnown(X) && !Table.isKnown(Y) && Table.isSame(X) &&
                 Table.isSame(Y);
  return Table.find(X) != Table.find(Y) && (AreRows || AreSame);
}

void SizeContext::sameCounts(DimId X, DimId Y) {
  bool IsNew = areCounts(X, Y);
  if (IsNew || Table.find(X) == Table.find(Y))
    unify(X, Y);
  if (IsNew && Table.find(X) == Table.find(Y))
    Table.touch(X);
}

void SizeContext::markBlocks(DimId D, int64_t Count) {
  auto [It, New] = Blocks.insert({Table.find(D), Count});
  if (!New && It->second != Count)
    It->second = -1;
}

int64_t SizeContext::blocks(DimId D) {
  D = Table.find(D);
  int64_t Count = 0;
  for (auto [Size, Is] : Blocks)
    if (Table.find(Size) == D)
      Count = Count == 0 || Count == Is ? Is : -1;
  return std::max<int64_t>(Count, 0);
}

DimList SizeContext::factorsOf(ArrayRef<DimId> List) const {
  constexpr size_t MaxFactors = 16;
  DimList Result;
  for (DimId D : List) {
    auto It = Table.isKnown(D) ? Factors.end() : Factors.find(Table.find(D));
    if (It == Factors.end() || Result.size() + It->second.size() > MaxFactors)
      Result.push_back(D);
    else
      append_range(Result, It->second);
  }
  return Result;
}

/// Returns the factors of \p X without those of \p Y. Returns nothing if \p X
/// lacks one of them.
std::optional<DimList> SizeContext::factorsLeft(unsigned Slot, DimId X,
                                                DimId Y) {
  DimList Left = factorsOf(X);
  int64_t By = 1;
  for (DimId D : factorsOf(Y)) {
    auto It =
        find_if(reverse(Left), [&](DimId F) { return Table.isEqual(F, D); });
    int64_t Number = plainNumber(D);
    if (It != Left.rend())
      Left.erase(std::prev(It.base()));
    else if (Number <= 0 || MulOverflow(By, Number, By))
      return std::nullopt;
  }
  if (By == 1)
    return Left;
  // The product of all numbers is one factor: 35 divides 5 * 7.
  int64_t Number = 1;
  for (DimId D : Left)
    if (int64_t Factor = plainNumber(D);
        Factor > 0 && MulOverflow(Number, Factor, Number))
      return std::nullopt;
  if (Number % By != 0)
    return std::nullopt;
  erase_if(Left, [&](DimId D) { return plainNumber(D) > 0; });
  if (Number != By)
    Left.push_back(number(Slot | RestSlot, Number / By));
  // A later round may know more numbers than the round that made the size.
  if (Number != By && plainNumber(Left.back()) != Number / By)
    return std::nullopt;
  return Left;
}

DimId SizeContext::quotient(unsigned Slot, DimId X, DimId Y) {
  if (auto It = OrOne.find(Table.find(Y)); It != OrOne.end())
    Y = It->second;
  if (Table.isOne(Y))
    return X;
  // The divisor may be 0: a replica may have no ragged rows.
  bool ByRagged = Table.isRagged(Y);
  if (!ByRagged && Table.find(X) == Table.find(Y) &&
      (Table.isKnown(X) || Table.followsRows(X)))
    return One;
  std::optional<DimList> Left;
  if (!ByRagged && !Table.isKnown(X))
    Left = factorsLeft(Slot, X, Y);
  if (Left && Left->size() == 1)
    return Left->front();
  auto SX = Table.sym(X), SY = Table.sym(Y);
  bool Symbolic = Table.hasSym(X) || Table.hasSym(Y);
  bool Exact = !ByRagged && SX && SY && (SX->Ragged == 0 || SY->isNumber()) &&
               (SX->Rows == SY->Rows || SX->B == 0 || SY->B == 0) &&
               SY->C > 0 && SX->C % SY->C == 0 && SX->B >= SY->B &&
               SX->R >= SY->R;
  if (Symbolic && !Exact && !Left) {
    DimId D = slotFrom(Slot | OpaqueSlot, {X, Y});
    // If 32 divided by the 8 rows must be 4, then 32 is 4 times the rows.
    int64_t Ratio = plainNumber(D), Number;
    if (SY && SY->Ragged == 0 && Ratio > 0 && Table.number(Y) > 0 &&
        !MulOverflow(Ratio, Table.number(Y), Number) &&
        Number == Table.number(X) && !MulOverflow(SY->C, Ratio, Number)) {
      Sym Rows{Number, SY->B, SY->R, SY->Rows};
      Reasons Because = reasonsOf({D, X, Y});
      SizeOrigins &O = A.Origins;
      if (!Because.empty()) {
        if (Table.hasSym(X) && SX ? Table.relate(*SX, Rows)
                                  : Table.assign(X, Rows))
          if (ByNumber.insert({X, Y}).second)
            O.derive(O.ofSize(X), O.ofSize(Y), Because);
      } else if (Table.hasSym(X) && SX) {
        relate(*SX, Rows);
      } else {
        assign(X, Rows, Y);
      }
    }
    return D;
  }
  DimId D = slotFrom(Slot, {X, Y});
  if (Left && !Left->empty() && !Table.isKnown(D)) {
    unifyProducts(D, *Left);
    Factors[Table.find(D)] = *Left;
    if (Table.followsRows(X) && Table.isSame(Y))
      Table.markRows(D);
    return D;
  }
  int64_t NX = Table.number(X), NY = Table.number(Y);
  if (NX != UnknownSize && NY != UnknownSize && NY > 0 && NX >= 0)
    assignNumber(D, NX / NY);
  if (Exact)
    assign(D, {SX->C / SY->C, int8_t(SX->B - SY->B), int8_t(SX->R - SY->R),
               SX->Rows, SX->Ragged});
  return D;
}

/// Reports two sizes that must be equal but differ. Does not report ragged
/// sizes: they may differ on a replica although their sums over all replicas
/// are equal. The replication types handle this case.
void SizeContext::conflict(DimId X, DimId Y) {
  if ((Table.hasSym(X) || Table.hasSym(Y)) && !Table.isRagged(X) &&
      !Table.isRagged(Y))
    A.Conflicts.push_back({N, X, Y});
}

void SizeContext::require(bool Holds, DimId Size, const char *Why) {
  if (!Holds && !A.Options.Unpatched && Table.hasSym(Size) &&
      !Table.isRagged(Size))
    A.Conflicts.push_back({N, Size, Size, Why});
}

bool SizeContext::fits(DimId Size, int64_t Number) const {
  int64_t Local = A.localNumber(Size);
  return Local == UnknownSize || Local == Number;
}

bool SizeContext::sizesFrom(StringRef Key, DimList &List) {
  auto Shape = G.shapeAttr(N, Key);
  if (!Shape || Shape->UnknownRank)
    return false;
  // If the attribute was changed to the sizes of one replica, use the sizes of
  // the input graph in OriginalAttr.
  auto Bytes = G.attr(N, OriginalAttr);
  auto Field = Bytes ? bytesField(*Bytes, AttrShape) : std::nullopt;
  ShapeValue Was = Field ? parseShape(*Field) : *Shape;
  if (Was.Dims.size() != Shape->Dims.size())
    return false;
  for (size_t I = 0; I < Shape->Dims.size(); ++I)
    List.push_back(Shape->Dims[I] < 0 ? slot(I)
                   : Was.Dims[I] != Shape->Dims[I]
                       ? changedNumber(I, Was.Dims[I], Shape->Dims[I])
                       : number(I, Shape->Dims[I]));
  return true;
}

/// Returns true if the node defines \p D or is an inserted node.
bool SizeContext::defines(DimId D) const {
  return A.Origins.owner(D) == N || G.node(N).Kind != Inserted::No;
}

bool SizeContext::unify(DimId X, DimId Y) {
  SizeOrigins &O = A.Origins;
  if (O.root(X) == O.root(Y))
    return true;
  // The equality of two numbers of the graph holds even if the node does not
  // run.
  bool IsDefinition =
      G.node(N).Kind != Inserted::No || (O.isFixed(X) && O.isFixed(Y)) ||
      (O.isOpen(X) && defines(X)) || (O.isOpen(Y) && defines(Y));
  if (!IsDefinition && Denied)
    return true;
  auto Met = IsDefinition && !FirstRound && G.node(N).Kind == Inserted::No
                 ? meetings()
                 : ArrayRef<std::pair<DimId, DimId>>();
  if (!Table.unify(X, Y))
    return false;
  MeetingsOf = NoNode;
  // This definition may depend on the facts in Met.
  if (!Met.empty())
    O.derive(X, Y, Met);
  else if (IsDefinition)
    O.join(X, Y);
  else {
    O.state(O.ofSize(X), O.ofSize(Y), N);
    Stated.push_back({X, Y});
  }
  return true;
}

/// Returns a size of an operand that counts the rows of \p S by definition. If
/// there is none, returns an open size that counts them by a fact.
std::optional<DimId> SizeContext::originalOf(const Sym &S) const {
  const SizeOrigins &O = A.Origins;
  if (O.facts().empty() || S.isNumber() || S.Ragged != 0)
    return std::nullopt;
  std::optional<DimId> Open;
  for (Endpoint E : Inputs)
    for (Dims List : {A.shape(E), A.value(E)})
      for (DimId D : List.value_or(ArrayRef<DimId>())) {
        auto Its = Table.hasSym(D) ? Table.sym(D) : std::nullopt;
        if (!Its || Its->B == 0 || Its->Ragged != 0 || Its->Rows != S.Rows)
          continue;
        if (O.of(D).Is == SizeOrigins::Kind::Rows)
          return D;
        if (O.isOpen(D) && !Open)
          Open = D;
      }
  return Open;
}

bool SizeContext::assign(DimId D, Sym S, std::optional<DimId> From) {
  SizeOrigins &O = A.Origins;
  bool IsDefinition = defines(D), HadSym = Table.hasSym(D);
  if (!IsDefinition && Denied)
    return true;
  // A later round may express the same size by rows that were found since then.
  auto Was = Table.sym(D);
  bool IsNew = !HadSym || !(Was == S);
  if (!Table.assign(D, S))
    return false;
  if (!From && IsDefinition)
    From = originalOf(S);
  if (From && O.isOpen(*From)) {
    if (IsDefinition && O.isOpen(D))
      O.join(D, *From);
  } else if (IsDefinition) {
    if (From && O.of(*From).Is == SizeOrigins::Kind::Rows)
      S.Rows = static_cast<uint16_t>(O.of(*From).Value);
    O.define(D, S);
  }
  if (IsNew && (!IsDefinition || HadSym))
    O.state(O.ofSize(D), O.originOf(S), N);
  return true;
}

/// Adds to \p Because the equalities that imply the number of \p D. Adds none
/// if the definition of \p D determines the number.
void SizeContext::addReasons(DimId D, Reasons &Because) const {
  int64_t Number = Table.number(D);
  if (Number == UnknownSize || A.Origins.isFixed(D))
    return;
  auto Add = [&](const auto &Pair) {
    if (!is_contained(Because, Pair))
      Because.push_back(Pair);
  };
  if (auto It = NumberReasons.find(A.Origins.root(D));
      It != NumberReasons.end())
    for_each(It->second, Add);
  else
    Add(std::pair(SizeOrigins::ofSize(D), SizeOrigins::number(Number)));
}

/// Returns the equalities that imply the numbers of the operands. They also
/// imply a number that the node computes from these numbers.
SizeContext::Reasons SizeContext::reasonsOfNumbers() const {
  Reasons Because;
  if (A.Origins.facts().empty())
    return Because;
  for (Endpoint E : Inputs)
    for (Dims List : {A.shape(E), A.value(E)})
      for (DimId D : List.value_or(ArrayRef<DimId>()))
        addReasons(D, Because);
  return Because;
}

SizeContext::Reasons SizeContext::reasonsOf(ArrayRef<DimId> Sizes) const {
  Reasons Because;
  if (!A.Origins.facts().empty())
    for (DimId D : Sizes)
      addReasons(D, Because);
  return Because;
}

void SizeContext::assignNumber(DimId D, int64_t Number) {
  if (Number == UnknownSize)
    return;
  SizeOrigins &O = A.Origins;
  if (defines(D)) {
    bool IsNew = Table.number(D) == UnknownSize;
    Table.assignNumber(D, Number);
    if (O.isFixed(D))
      return;
    Reasons Because = reasonsOfNumbers();
    if (Because.empty()) {
      O.defineNumber(D, Number);
    } else if (IsNew) {
      O.derive(O.ofSize(D), O.number(Number), Because);
      NumberReasons.try_emplace(O.root(D), std::move(Because));
    }
  } else if (!Denied && Table.number(D) == UnknownSize) {
    Table.assignNumber(D, Number);
    A.Origins.state(SizeOrigins::ofSize(D), SizeOrigins::number(Number), N);
  }
}

void SizeContext::relate(const Sym &X, const Sym &Y) {
  if (Denied || X == Y || !Table.relate(X, Y) || X.B == 0 || Y.B == 0)
    return;
  SizeOrigins &O = A.Origins;
  O.state(O.originOf(X), O.originOf(Y), N);
}

void SizeContext::same(DimId X, DimId Y) {
  if (!unify(X, Y))
    conflict(X, Y);
}

bool SizeContext::areEqualByDefinition(DimId X, DimId Y) const {
  const SizeOrigins &O = A.Origins;
  return O.root(X) == O.root(Y) ||
         (!O.isOpen(X) && !O.isOpen(Y) && O.of(X) == O.of(Y) &&
          Table.sym(X) == Table.sym(Y));
}

void SizeContext::alias(DimId X, DimId Y) {
  if (defines(X) || defines(Y))
    same(X, Y);
  else if (Table.unify(X, Y))
    MeetingsOf = NoNode;
}

void SizeContext::sameByNumber(DimId X, DimId Y, ArrayRef<DimId> Of) {
  SizeOrigins &O = A.Origins;
  Reasons Because = reasonsOf(Of);
  if (Because.empty())
    return same(X, Y);
  if (O.root(X) == O.root(Y))
    return;
  if (!Table.unify(X, Y))
    return conflict(X, Y);
  MeetingsOf = NoNode;
  if (ByNumber.insert({X, Y}).second)
    O.derive(O.ofSize(X), O.ofSize(Y), Because);
}

void SizeContext::sameShapes(ArrayRef<DimId> X, ArrayRef<DimId> Y) {
  if (X.size() != Y.size())
    return;
  for (size_t I = 0; I < X.size(); ++I)
    same(X[I], Y[I]);
}

void SizeContext::sameRows(DimId X, DimId Y) {
  auto IsKnown = [&](DimId D) {
    return Table.number(D) != UnknownSize && !Table.isOne(D);
  };
  if (IsKnown(X) && IsKnown(Y))
    same(X, Y);
}

void SizeContext::sameRows(ArrayRef<DimId> X, ArrayRef<DimId> Y, size_t Count) {
  for (size_t I = 0; I < std::min({Count, X.size(), Y.size()}); ++I)
    sameRows(X[I], Y[I]);
}

std::optional<DimId> SizeContext::sizeAfter(DimId Whole, DimId First) const {
  auto Parts = A.partsOf(Whole);
  if (!Parts)
    return std::nullopt;
  auto [Begin, Rest] = *Parts;
  bool Same = Table.find(Begin) == Table.find(First) ||
              (Table.hasSym(Begin) && Table.hasSym(First) &&
               Table.sym(Begin) == Table.sym(First));
  return Same ? std::optional(Rest) : std::nullopt;
}

/// Returns the size of a dimension of an element-wise result. Does not unify
/// \p X and \p Y if one may be 1 at run time: an axis of size 1 is broadcast.
DimId SizeContext::broadcast(DimId X, DimId Y) {
  if (Table.isOne(X))
    return Y;
  if (Table.isOne(Y))
    return X;
  if (X == Y)
    return X;
  bool KnowsX = isNeverOne(X), KnowsY = isNeverOne(Y);
  if (KnowsX && KnowsY)
    same(X, Y);
  if (Table.find(X) == Table.find(Y))
    return X;
  // The result of two unknown sizes is the same on all replicas only if both
  // operands are.
  if (!KnowsX && !KnowsY)
    return Table.isSame(X) ? Y : X;
  return KnowsX ? X : Y;
}

bool SizeContext::isNeverOne(DimId Size) const {
  if (Table.isKnown(Size))
    return !Table.isOne(Size);
  if (Table.followsRows(Size))
    return true;
  auto It =
      Table.isSame(Size) ? Summands.find(Table.find(Size)) : Summands.end();
  return It != Summands.end() &&
         any_of(It->second, [&](DimId D) { return plainNumber(D) > 1; }) &&
         all_of(It->second, [&](DimId D) {
           return plainNumber(D) >= 0 || Lengths.contains(Table.find(D));
         });
}

bool SizeContext::countsLocally(ArrayRef<DimId> X) const {
  bool OfRows = any_of(X, [&](DimId D) {
    auto S = Table.sym(D);
    return S ? S->isLocal() : Table.followsRows(D);
  });
  return OfRows && !A.Options.Unpatched &&
         G.node(N).Count == Copies::PerReplica &&
         !(Loops && Loops->givesInside(N));
}

void SizeContext::countRows(DimId Rows, Endpoint By) {
  assign(Rows, {1, 1, 0, 0, A.outputIndex(By) + 1});
}

void SizeContext::setShared() {
  Dims X = out(0);
  unsigned Type = G.outputType(N, 0);
  if (!X || !X->empty() || (Type != DT_INT32 && Type != DT_INT64) ||
      isVariant(AnyAxis) || binary_search(A.Options.Differing, N))
    return;
  if (FirstRound)
    A.Shared.push_back(N);
  DimId Value = slot(64);
  Table.markSame(Value);
  setValue(0, Value);
}

/// Returns true if a node in a loop makes \p D, and \p D may differ between
/// iterations.
bool SizeContext::isOfOneTurn(DimId D) const {
  auto Is = A.Origins.of(D).Is;
  NodeId Owner = A.Origins.owner(D);
  return Owner != NoNode && Loops->givesInside(Owner) &&
         (Is == SizeOrigins::Kind::Open || Is == SizeOrigins::Kind::Counted);
}

void SizeContext::setElement(NodeId Handle, ArrayRef<DimId> List, Sharing By) {
  SizeOrigins &O = A.Origins;
  DimRun &Mine = A.Shapes[A.outputIndex({Handle, 0})];
  bool IsFirst = !Mine.Known;
  if (IsFirst) {
    Mine = store(List);
    for (NodeId User : Loops->usersOf(Handle))
      Due[User] = true;
  }
  if (Mine.Count != List.size()) {
    Mixed.insert({Handle, AnyAxis});
    return;
  }
  for (unsigned I = 0; I < List.size(); ++I) {
    DimId Its = (*A.list(Mine))[I];
    if (isVariant(Handle, I))
      continue;
    if (By == Sharing::None && isOfOneTurn(List[I])) {
      Mixed.insert({Handle, I});
    } else if (IsFirst || O.root(Its) == O.root(List[I])) {
      continue;
    } else if (O.isOpen(Its) && O.owner(Its) != NoNode &&
               Loops->handleOf({O.owner(Its), 0}) == Handle) {
      if (Table.unify(Its, List[I]))
        O.join(Its, List[I]);
    } else if (By == Sharing::Declared || O.of(Its) == O.of(List[I]) ||
               (O.isFixed(Its) && O.isFixed(List[I]))) {
      O.alsoHolds(Handle, List[I]);
      same(Its, List[I]);
    } else {
      Mixed.insert({Handle, I});
    }
  }
}

std::optional<DimList> SizeContext::element(NodeId Handle) {
  if (Handle == NoNode || isVariant(Handle, AnyAxis))
    return std::nullopt;
  Dims E = Known.shape({Handle, 0});
  if (!E)
    return std::nullopt;
  DimList List(E->begin(), E->end());
  for (unsigned I = 0; I < List.size(); ++I)
    if (isVariant(Handle, I))
      List[I] = slot(ElementSlot + I);
  return List;
}

/// Handles an assignment of a value of shape \p Value to a variable whose shape
/// \p Var may differ. A resource variable keeps the sizes that it declares. For
/// an undeclared size, it has the size of the last assigned value.
void SizeContext::reshapeVariable(ArrayRef<DimId> Var, ArrayRef<DimId> Value,
                                  bool IsReference) {
  NodeId Of = Inputs[0].Node;
  if (Var.size() != Value.size()) {
    if (IsReference)
      Mixed.insert({Of, AnyAxis});
    return;
  }
  for (unsigned I = 0; I < Var.size(); ++I) {
    if (!A.Origins.isFixed(Var[I]))
      continue;
    if (!IsReference)
      same(Var[I], Value[I]);
    else if (!A.Origins.isFixed(Value[I]))
      Mixed.insert({Of, I});
  }
}

void SizeContext::hold(NodeId Handle, DimRun Run) {
  DimRun &Mine = HeldValues[Handle];
  if (Mine == Run)
    return;
  Mine = Run;
  for (NodeId User : Loops->usersOf(Handle))
    Due[User] = true;
}

void SizeContext::push(NodeId Handle) {
  // Several ops may push different integers, so no integers are tracked.
  auto Pushes = count_if(Loops->usersOf(Handle),
                         [&](NodeId User) { return isPushOp(G.opName(User)); });
  if (Pushes == 1 && Loops->isStack(G, Handle))
    hold(Handle, 1);
}

void SizeContext::setLength(NodeId List, DimId Length) {
  if (List == NoNode || isVariant(List, Elements) || Loops->isStack(G, List))
    return;
  auto [Mine, IsFirst] = ListLengths.try_emplace(List, Length);
  if (IsFirst)
    for (NodeId User : Loops->usersOf(List))
      Due[User] = true;
  else if (Table.find(Mine->second) != Table.find(Length))
    Mixed.insert({List, Elements});
}

std::optional<DimId> SizeContext::length(NodeId List) const {
  auto Mine = ListLengths.find(List);
  return Mine == ListLengths.end() || isVariant(List, Elements)
             ? std::nullopt
             : std::optional(Mine->second);
}

void SizeContext::sayRows(int64_t Batch, DimId Rows) {
  auto [It, IsFirst] = RowsBySaying.try_emplace(Batch, Rows);
  auto First = Table.sym(It->second), S = Table.sym(Rows);
  if (!IsFirst && First && S)
    defineRelated(It->second, *First, Rows, *S);
}

} // namespace graft
