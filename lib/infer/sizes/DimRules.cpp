//===- lib/infer/sizes/DimRules.cpp - rules for sizes -----------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
// The sizes that rules make, and the families whose rule is short; others are
// in ShapeRules.cpp, integer values in ValueRules.cpp. The rounds are in
// DimRounds.cpp.
//
//===----------------------------------------------------------------------===//

#include "lib/infer/sizes/DimRules.h"

#include "lib/graph/AttrWire.h"
#include "lib/ops/Ops.h"
#include "lib/program/Program.h"

#include "llvm/Support/MathExtras.h"

#include <numeric>

using namespace llvm;

namespace graft {

//===----------------------------------------------------------------------===//
// Helpers
//===----------------------------------------------------------------------===//

std::optional<int64_t> DimRules::num(unsigned I) const {
  auto V = I < numData() ? nums(I) : std::nullopt;
  if (!V || V->size() != 1)
    return std::nullopt;
  return V->front();
}

/// A run that holds \p List, which may be part of one.
DimRun DimRules::store(ArrayRef<DimId> List) {
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

void DimRules::passShape(unsigned Port, DimRun Run) {
  if (!Run.Known || Port >= A.numOutputs(N))
    return;
  DimRun &Mine = A.Shapes[A.outputIndex({N, Port})];
  if (!Mine.Known) {
    Mine = Run;
    Moved = true;
  } else if (!(Mine == Run)) {
    sameShapes(*A.list(Mine), *A.list(Run));
  }
}

void DimRules::setShape(unsigned Port, ArrayRef<DimId> List) {
  if (Port >= A.numOutputs(N))
    return;
  DimRun &Mine = A.Shapes[A.outputIndex({N, Port})];
  if (Mine.Known) {
    sameShapes(*A.list(Mine), List);
    return;
  }
  Mine = store(List);
  Moved = true;
}

void DimRules::setValue(unsigned Port, ArrayRef<DimId> Elements) {
  if (Port >= A.numOutputs(N) || Elements.size() > 64)
    return;
  // A later round knows more than an earlier one: what it says counts.
  DimRun &Mine = A.Values[A.outputIndex({N, Port})];
  if (Mine.Known && *A.list(Mine) == Elements)
    return;
  Mine = store(Elements);
  Moved = true;
}

DimId DimRules::slot(unsigned Slot) {
  DimId D = bareSlot(Slot);
  if (isSingle())
    A.Dims.markSame(D);
  return D;
}

DimId DimRules::bareSlot(unsigned Slot) {
  for (DimId D = FirstMade[N]; D < Makers.size() && Makers[D].Node == N; ++D)
    if (Makers[D].Slot == Slot)
      return D;
  if (!FirstRound) {
    auto [It, New] = Later.try_emplace((uint64_t(N) << 32) | Slot, 0);
    if (!New)
      return It->second;
    It->second = static_cast<DimId>(A.Dims.size());
  }
  Makers.push_back({FirstRound ? N : NoNode, Slot});
  return A.Dims.make();
}

/// Whether the node computes the single-device step's value, once.
bool DimRules::isSingle() const {
  return !A.Options.Unpatched && G.node(N).Count == Copies::Once &&
         none_of(Inputs, [&](Endpoint E) {
           return G.node(E.Node).Count == Copies::PerReplica;
         });
}

/// A size of which nothing is known but that it comes of \p From.
DimId DimRules::slotFrom(unsigned Slot, ArrayRef<DimId> From) {
  DimId D = slot(Slot);
  if (all_of(From, [&](DimId Size) { return A.Dims.isSame(Size); }))
    A.Dims.markSame(D);
  return D;
}

std::optional<Sym> DimRules::rowsAt(unsigned Slot, Endpoint Of, bool Claimed) {
  auto [It, New] = RowsMade.try_emplace((uint64_t(N) << 32) | Slot, 0);
  if (New) {
    auto Made = A.Dims.makeRows(Of, Claimed);
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

/// Says that \p Rows is that of one replica, of \p Of, which is split, or which
/// is its \p Own.
void DimRules::splitRows(DimId Rows, unsigned Slot, Endpoint Of, bool Own) {
  if (!A.Dims.hasSym(Rows)) {
    auto S = rowsAt(Slot, Of);
    if (!S)
      return;
    A.Dims.assign(Rows, *S);
  }
  // Where two that are split have numbers of rows, those say how the rows of a
  // replica are related.
  auto S = A.Dims.sym(Rows);
  int64_t Number = A.Dims.number(Rows);
  if (!S || Number <= 0)
    return;
  auto &[Known, First] = Numbered[Own];
  if (Known == 0) {
    Known = Number;
    First = *S;
    return;
  }
  int64_t Common = std::gcd(Known, Number);
  Sym Times = First;
  if (!MulOverflow(S->C, Known / Common, S->C) &&
      !MulOverflow(Times.C, Number / Common, Times.C))
    A.Dims.relate(Times, *S);
}

/// A size that is \p Was in the input and \p Now in the program, which says
/// that it follows the batch.
DimId DimRules::changedNumber(unsigned Slot, int64_t Was, int64_t Now) {
  DimId D = bareSlot(Slot);
  A.Dims.assignNumber(D, Was);
  if (Was != Now && Now > 0 && !A.Dims.hasSym(D) &&
      Was % A.Options.Replicas == 0 && Was / A.Options.Replicas == Now)
    if (auto S = rowsAt(Slot, {N, 0}, /*Claimed=*/true))
      A.Dims.assign(D, *S);
  return D;
}

/// The product of \p List.
std::optional<Sym> DimRules::elementsOf(ArrayRef<DimId> List) const {
  Sym Product;
  for (DimId D : List) {
    auto S = A.Dims.sym(D);
    if (!S || !Product.multiply(*S))
      return std::nullopt;
  }
  return Product;
}

/// The sum of \p Parts, of which not all are numbers.
DimId DimRules::total(unsigned Slot, ArrayRef<DimId> Parts) {
  DimId D = slotFrom(Slot, Parts);
  Sym Sum;
  Sum.C = 0;
  int64_t Number = 0;
  for (DimId Part : Parts)
    if (Number == UnknownSize || A.Dims.number(Part) == UnknownSize ||
        AddOverflow(Number, A.Dims.number(Part), Number))
      Number = UnknownSize;
  bool OneRows = true;
  for (DimId Part : Parts) {
    auto S = A.Dims.sym(Part);
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
  // Rows of one feed and of another are rows, too.
  if (OneRows)
    A.Dims.assign(D, Sum);
  else if (Sum.B != 1 || Sum.Ragged != 0)
    return D;
  else if (auto S = A.Dims.hasSym(D) ? std::nullopt : rowsAt(Slot, {N, 0}))
    A.Dims.assign(D, {1, 1, Sum.R, S->Rows});
  A.Dims.assignNumber(D, Number);
  return D;
}

DimId DimRules::number(unsigned Slot, int64_t Value) {
  if (Value == 1)
    return One;
  DimId D = bareSlot(Slot);
  A.Dims.assignNumber(D, Value);
  return D;
}

DimId DimRules::product(unsigned Slot, DimId X, DimId Y) {
  if (A.Dims.isOne(X))
    return Y;
  if (A.Dims.isOne(Y))
    return X;
  DimId D = slot(Slot);
  int64_t NX = A.Dims.number(X), NY = A.Dims.number(Y), Result;
  if (NX != UnknownSize && NY != UnknownSize && !MulOverflow(NX, NY, Result))
    A.Dims.assignNumber(D, Result);
  auto SX = A.Dims.sym(X), SY = A.Dims.sym(Y);
  if (SX && SY && SX->multiply(*SY)) {
    // What is made of numbers alone is no number of a replica's rows.
    if (!A.Dims.assign(D, *SX) && SX->isNumber() && !A.Options.Unpatched)
      conflict(D, X);
  } else if (A.Dims.isSame(X) && A.Dims.isSame(Y))
    A.Dims.markSame(D);
  return D;
}

DimId DimRules::quotient(unsigned Slot, DimId X, DimId Y) {
  if (A.Dims.isOne(Y))
    return X;
  // There may be no ragged rows on a replica.
  bool ByRagged = A.Dims.isRagged(Y);
  if (!ByRagged && A.Dims.find(X) == A.Dims.find(Y) && A.Dims.isKnown(X))
    return One;
  auto SX = A.Dims.sym(X), SY = A.Dims.sym(Y);
  bool Symbolic = A.Dims.hasSym(X) || A.Dims.hasSym(Y);
  bool Exact = !ByRagged && SX && SY && (SX->Ragged == 0 || SY->isNumber()) &&
               (SX->Rows == SY->Rows || SX->B == 0 || SY->B == 0) &&
               SY->C > 0 && SX->C % SY->C == 0 && SX->B >= SY->B &&
               SX->R >= SY->R;
  if (Symbolic && !Exact)
    return slotFrom(Slot | OpaqueSlot, {X, Y});
  DimId D = slotFrom(Slot, {X, Y});
  int64_t NX = A.Dims.number(X), NY = A.Dims.number(Y);
  if (NX != UnknownSize && NY != UnknownSize && NY > 0 && NX >= 0)
    A.Dims.assignNumber(D, NX / NY);
  if (Exact)
    A.Dims.assign(D, {SX->C / SY->C, int8_t(SX->B - SY->B),
                      int8_t(SX->R - SY->R), SX->Rows, SX->Ragged});
  return D;
}

/// Two sizes that must be equal are not. Ragged ones may be on all replicas
/// together, and the types see to it where they are not on each.
void DimRules::conflict(DimId X, DimId Y) {
  if ((A.Dims.hasSym(X) || A.Dims.hasSym(Y)) && !A.Dims.isRagged(X) &&
      !A.Dims.isRagged(Y))
    A.Conflicts.push_back({N, X, Y});
}

/// Says that TensorFlow would not load the graph, since \p Size is that of one
/// replica's rows, unless something \p Holds.
void DimRules::require(bool Holds, DimId Size, const char *Why) {
  if (!Holds && !A.Options.Unpatched && A.Dims.hasSym(Size) &&
      !A.Dims.isRagged(Size))
    A.Conflicts.push_back({N, Size, Size, Why});
}

/// Whether \p Size, on a replica, may be \p Number.
bool DimRules::fits(DimId Size, int64_t Number) const {
  int64_t Local = A.localNumber(Size);
  return Local == UnknownSize || Local == Number;
}

/// What the node at hand, an input or its place in the program, says of sizes
/// in attribute \p Key: those of the single-device step.
bool DimRules::sizesFrom(StringRef Key, DimList &List) {
  auto Shape = G.shapeAttr(N, Key);
  if (!Shape || Shape->UnknownRank)
    return false;
  // Where it says the sizes of one replica, those of the input count.
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

void DimRules::same(DimId X, DimId Y) {
  if (A.Dims.unify(X, Y))
    return;
  conflict(X, Y);
}

void DimRules::sameShapes(ArrayRef<DimId> X, ArrayRef<DimId> Y) {
  if (X.size() != Y.size())
    return;
  for (size_t I = 0; I < X.size(); ++I)
    same(X[I], Y[I]);
}

/// Numbers of rows that an op wants to be equal. A size that is not known says
/// nothing: it may be that of all replicas where the other is that of one.
void DimRules::sameRows(DimId X, DimId Y) {
  auto IsKnown = [&](DimId D) {
    return A.Dims.number(D) != UnknownSize && !A.Dims.isOne(D);
  };
  if (IsKnown(X) && IsKnown(Y))
    same(X, Y);
}

/// The same of the first \p Count axes, as far as both have them.
void DimRules::sameRows(ArrayRef<DimId> X, ArrayRef<DimId> Y, size_t Count) {
  for (size_t I = 0; I < std::min({Count, X.size(), Y.size()}); ++I)
    sameRows(X[I], Y[I]);
}

/// What the family of an op says of rows, whether its shape has a rule or is
/// what the file says.
void DimRules::sameRows(const OpRules &Rules) {
  auto SameLead = [&](size_t Mixed) {
    Dims X = in(0);
    for (unsigned Port = 0; X && Port < A.numOutputs(N); ++Port)
      if (Dims Y = A.shape({N, Port}); Y && X->size() > Mixed)
        sameRows(*X, *Y, X->size() - Mixed);
  };
  switch (Rules.Type) {
  case TypeRule::PerExample:
  case TypeRule::LinearRows:
    for (unsigned Port = 0; Port < A.numOutputs(N); ++Port)
      if (Dims X = in(0), Y = A.shape({N, Port}); X && Y)
        sameRows(*X, *Y, 1);
    return;
  case TypeRule::PerVector:
    return SameLead(mixedAxes(G, N));
  case TypeRule::PerMatrix:
    return SameLead(2);
  case TypeRule::PerVolume:
    return SameLead(3);
  case TypeRule::Rows:
    break;
  default:
    return;
  }
  std::optional<DimId> First;
  auto Add = [&](std::pair<char, int> Of, Dims X) {
    auto [Letter, Rank] = Of;
    size_t Axis = Letter == 't' || Letter == 'm' ? 1 : 0;
    if (Letter == 'p' || Letter == '+' || !X || X->size() <= Axis ||
        X->size() < size_t(Rank))
      return;
    if (First)
      sameRows(*First, (*X)[Axis]);
    else
      First = (*X)[Axis];
  };
  for (unsigned I = 0; I < numData(); ++I)
    Add(letterOf(Rules.Inputs, I), in(I));
  for (unsigned Port = 0; Port < A.numOutputs(N); ++Port)
    Add(letterOf(Rules.Outputs, Port), A.shape({N, Port}));
}

/// Whether the node at hand, a feed of unknown rank, is read whole by every
/// replica and may be a scalar, which it is taken for then.
bool DimRules::isWhole() const {
  return HasMesh && Supposed.count(N) == 0 &&
         G.opName(N).starts_with(op::Placeholder) && !G.anyUse(N, [&](Use U) {
           if (U.Index >= G.node(U.User).NumData)
             return false;
           switch (rulesOf(G.opName(U.User)).Shape) {
           case ShapeRule::Same:
           case ShapeRule::Broadcast:
           case ShapeRule::Select:
           case ShapeRule::Shape:
             return false;
           default:
             return Ops[G.node(U.User).Op].Update.Kind == UpdateKind::None;
           }
         });
}

//===----------------------------------------------------------------------===//
// Rules
//===----------------------------------------------------------------------===//

size_t DimRules::channelAxis(size_t Rank) const {
  bool First = Rank > 2 && G.stringAttr(N, "data_format") == StringRef("NCHW");
  return First ? 1 : Rank - 1;
}

void DimRules::shapeRule(ShapeRule Rule) {
  switch (Rule) {
  case ShapeRule::None:
    break;
  case ShapeRule::Same:
  case ShapeRule::ReadVariable:
  case ShapeRule::UpdateRef:
    for (unsigned Port = 0; Port < A.numOutputs(N); ++Port)
      passShape(Port, inRun(0));
    break;
  case ShapeRule::EnsureShape: {
    passShape(0, inRun(0));
    DimList List;
    if (Dims X = in(0); !X || !sizesFrom("shape", List))
      break;
    for (size_t I = 0; I < std::min(List.size(), in(0)->size()); ++I)
      sameRows((*in(0))[I], List[I]);
    break;
  }
  case ShapeRule::ReverseSequence: {
    passShape(0, inRun(0));
    Dims X = in(0), Lengths = in(1);
    auto Batch = static_cast<size_t>(G.intAttr(N, "batch_dim").value_or(0));
    if (X && Lengths && Lengths->size() == 1 && Batch < X->size())
      sameRows((*X)[Batch], Lengths->front());
    break;
  }
  case ShapeRule::SameAll: {
    Dims First;
    for (unsigned I = 0; I < numData(); ++I) {
      Dims X = in(I);
      if (X && First)
        sameShapes(*First, *X);
      else if (X)
        First = X;
    }
    if (First)
      setShape(0, *First);
    break;
  }
  case ShapeRule::PerInput:
    for (unsigned I = 0; I < numData(); ++I)
      passShape(I, inRun(I));
    break;
  case ShapeRule::Broadcast:
    broadcast();
    break;
  case ShapeRule::Select: {
    Dims C = in(0), X = in(1), Y = in(2);
    if (X && Y)
      sameShapes(*X, *Y);
    // The condition may be a vector along axis 0, or a scalar.
    if (C && X && C->size() == 1 && !X->empty())
      same((*C)[0], (*X)[0]);
    else if (C && X)
      sameShapes(*C, *X);
    if (Dims S = X ? X : Y)
      setShape(0, *S);
    break;
  }
  case ShapeRule::Scalar:
    setShape(0, {});
    break;
  case ShapeRule::Const:
    constant();
    break;
  case ShapeRule::FromAttr: {
    auto Shape = G.shapeAttr(N, "shape");
    if (!Shape || Shape->UnknownRank) {
      if (isWhole())
        setShape(0, {});
      break;
    }
    DimList List;
    for (size_t I = 0; I < Shape->Dims.size(); ++I)
      List.push_back(Shape->Dims[I] < 0 ? slot(I) : number(I, Shape->Dims[I]));
    setShape(0, List);
    break;
  }
  case ShapeRule::Source:
    source();
    break;
  case ShapeRule::Decode:
    decode();
    break;
  case ShapeRule::ParseExample:
    parseExample();
    break;
  case ShapeRule::SparseMatMul:
    sparseMatMul();
    break;
  case ShapeRule::Lookup:
    passShape(0, inRun(1));
    break;
  case ShapeRule::AccumulatorTake:
    return accumulated();
  case ShapeRule::ToReplicas:
  case ShapeRule::FromReplicas:
  case ShapeRule::GatherReplicas:
    crossing();
    break;
  case ShapeRule::MatMul:
    matMul(false);
    break;
  case ShapeRule::BatchMatMul:
    matMul(true);
    break;
  case ShapeRule::BiasAdd: {
    Dims X = in(0), B = in(1);
    if (!X)
      break;
    if (B && B->size() == 1 && X->size() >= 2)
      same((*X)[channelAxis(X->size())], (*B)[0]);
    setShape(0, *X);
    break;
  }
  case ShapeRule::BiasAddGrad:
    if (Dims X = in(0); X && X->size() >= 2)
      setShape(0, (*X)[channelAxis(X->size())]);
    break;
  case ShapeRule::Conv:
    convolution();
    break;
  case ShapeRule::FromSizes0:
  case ShapeRule::FromSizes1:
  case ShapeRule::FromSizes2:
    if (Dims V = val(unsigned(Rule) - unsigned(ShapeRule::FromSizes0)))
      setShape(0, *V);
    break;
  case ShapeRule::BroadcastTo:
    if (Dims V = val(1)) {
      setShape(0, *V);
      if (Dims X = in(0); X && X->size() <= V->size())
        sameRows(*X, val(1)->take_back(X->size()), X->size());
    }
    break;
  case ShapeRule::SizesOfRows:
    if (Dims V = val(0))
      setShape(0, *V);
    if (Dims V = val(0), Dy = in(numData() - 1);
        V && !V->empty() && Dy && !Dy->empty())
      sameRows((*V)[0], (*Dy)[0]);
    break;
  case ShapeRule::SizesThenShape:
    if (Dims V = val(0), X = in(1); V && X) {
      DimList List(V->begin(), V->end());
      List.append(X->begin(), X->end());
      setShape(0, List);
    }
    break;
  case ShapeRule::RowsThenSize:
    if (Dims X = in(0), V = val(1); X && !X->empty() && V && V->size() == 1)
      setShape(0, {(*X)[0], (*V)[0]});
    break;
  case ShapeRule::Pool:
    pool();
    break;
  case ShapeRule::BatchNorm: {
    Dims X = in(0), S = in(1);
    if (X)
      setShape(0, *X);
    for (unsigned Port = 1; S && Port < std::min(A.numOutputs(N), 5u); ++Port)
      setShape(Port, *S);
    break;
  }
  case ShapeRule::BatchNormGrad: {
    Dims G0 = in(0), X = in(1), S = in(2);
    if (G0 && X)
      sameShapes(*G0, *X);
    if (X)
      setShape(0, *X);
    for (unsigned Port = 1; S && Port < 3; ++Port)
      setShape(Port, *S);
    break;
  }
  case ShapeRule::Xent:
  case ShapeRule::SparseXent:
    crossEntropy(Rule == ShapeRule::SparseXent);
    break;
  case ShapeRule::Reduction:
    reduction();
    break;
  case ShapeRule::ArgReduction: {
    Dims X = in(0);
    auto Axis = num(1);
    if (!X || !Axis || X->empty())
      break;
    DimList List(X->begin(), X->end());
    int64_t I = *Axis < 0 ? *Axis + int64_t(List.size()) : *Axis;
    if (I < 0 || I >= int64_t(List.size()))
      break;
    List.erase(List.begin() + I);
    setShape(0, List);
    break;
  }
  case ShapeRule::Shape:
    for (unsigned I = 0; I < numData(); ++I)
      if (Dims X = in(I)) {
        setShape(I, number(I, int64_t(X->size())));
        setValue(I, *in(I));
      }
    break;
  case ShapeRule::VariableShape:
    if (Dims X = in(0)) {
      setShape(0, number(0, int64_t(X->size())));
      setValue(0, *in(0));
    }
    break;
  case ShapeRule::Size: {
    setShape(0, {});
    if (Dims X = in(0)) {
      DimId Product = One;
      for (size_t I = 0; I < X->size(); ++I)
        Product = product(I, Product, (*in(0))[I]);
      setValue(0, Product);
    }
    break;
  }
  case ShapeRule::Rank:
    setShape(0, {});
    if (Dims X = in(0))
      setValue(0, number(0, int64_t(X->size())));
    break;
  case ShapeRule::Tile:
    tile();
    break;
  case ShapeRule::Reshape:
    reshape();
    break;
  case ShapeRule::ExpandDims: {
    Dims X = in(0);
    auto Axis = num(1);
    if (!X || !Axis)
      break;
    DimList List(X->begin(), X->end());
    int64_t I = *Axis < 0 ? *Axis + int64_t(List.size()) + 1 : *Axis;
    if (I < 0 || I > int64_t(List.size()))
      break;
    List.insert(List.begin() + I, One);
    setShape(0, List);
    break;
  }
  case ShapeRule::Squeeze: {
    Dims X = in(0);
    if (!X)
      break;
    auto Axes = G.intListAttr(N, "squeeze_dims");
    DimList List;
    for (size_t I = 0; I < X->size(); ++I) {
      bool Drop = A.Dims.isOne((*X)[I]);
      if (Axes && !Axes->empty())
        Drop = is_contained(*Axes, int64_t(I)) ||
               is_contained(*Axes, int64_t(I) - int64_t(X->size()));
      else if (!A.Dims.isKnown((*X)[I]))
        return;
      if (!Drop)
        List.push_back((*X)[I]);
    }
    setShape(0, List);
    break;
  }
  case ShapeRule::Transpose:
    transpose();
    break;
  case ShapeRule::Pack:
    pack();
    break;
  case ShapeRule::Unpack: {
    Dims X = in(0);
    int64_t Axis = G.intAttr(N, "axis").value_or(0);
    if (!X || X->empty())
      break;
    if (Axis < 0)
      Axis += int64_t(X->size());
    if (Axis < 0 || Axis >= int64_t(X->size()))
      break;
    DimList List(X->begin(), X->end());
    require(fits(List[Axis], A.numOutputs(N)), List[Axis],
            "unstacks the rows of the whole batch");
    List.erase(List.begin() + Axis);
    for (unsigned Port = 0; Port < A.numOutputs(N); ++Port)
      setShape(Port, List);
    break;
  }
  case ShapeRule::Concat:
    concat();
    break;
  case ShapeRule::Split:
    split();
    break;
  case ShapeRule::Slice:
    slice();
    break;
  case ShapeRule::StridedSlice:
    stridedSlice(false);
    break;
  case ShapeRule::Pad:
    pad();
    break;
  case ShapeRule::Range:
    rangeValue();
    break;
  case ShapeRule::Gather:
    gather();
    break;
  case ShapeRule::GatherNd:
    gatherNd();
    break;
  case ShapeRule::TensorScatter:
    tensorScatter();
    break;
  case ShapeRule::Einsum:
    einsum();
    break;
  case ShapeRule::Where:
    where();
    break;
  case ShapeRule::Unique:
    setShape(0, slot(0));
    if (Dims X = in(0))
      setShape(1, *X);
    break;
  case ShapeRule::UnsortedSegment: {
    Dims Data = in(0), Ids = in(1), Count = val(2);
    if (!Data || !Ids || Data->size() < Ids->size())
      break;
    sameShapes(Data->take_front(Ids->size()), *Ids);
    DimList List{Count && Count->size() == 1 ? (*Count)[0] : slot(0)};
    List.append(Data->begin() + Ids->size(), Data->end());
    setShape(0, List);
    break;
  }
  case ShapeRule::OneHot: {
    Dims X = in(0), Depth = val(1);
    if (!X || G.intAttr(N, "axis").value_or(-1) != -1)
      break;
    DimList List(X->begin(), X->end());
    List.push_back(Depth && Depth->size() == 1 ? (*Depth)[0] : slot(0));
    setShape(0, List);
    break;
  }
  case ShapeRule::TopK: {
    Dims X = in(0), K = val(1);
    if (!X || X->empty())
      break;
    DimList List(X->begin(), X->end());
    if (auto Count = num(1); Count && A.localNumber(List.back()) != UnknownSize)
      require(*Count <= A.localNumber(List.back()), List.back(),
              "selects more rows than a replica has");
    List.back() = K && K->size() == 1 ? (*K)[0] : slot(0);
    setShape(0, List);
    setShape(1, List);
    break;
  }
  case ShapeRule::DynamicStitch:
    stitch();
    break;
  case ShapeRule::DynamicPartition:
    parts();
    break;
  case ShapeRule::BroadcastGradientArgs:
    broadcastGradientArgs();
    break;
  case ShapeRule::ConcatOffset:
    concatOffset();
    break;
  case ShapeRule::Merge:
    merge();
    break;
  case ShapeRule::LocalHandle:
    localHandle();
    break;
  case ShapeRule::Optional:
    // As with a handle, the shape of the box is that of what is in it.
    if (numData() == 1 && A.numOutputs(N) == 1) {
      passShape(0, inRun(0));
      if (Dims X = val(0))
        setValue(0, *X);
    }
    break;
  case ShapeRule::Diagonal:
    diagonal();
    break;
  case ShapeRule::DiagPart:
    if (Dims X = in(0); X && X->size() % 2 == 0) {
      DimList First(X->begin(), X->begin() + X->size() / 2);
      DimList Second(X->begin() + X->size() / 2, X->end());
      sameShapes(First, Second);
      setShape(0, First);
    }
    break;
  case ShapeRule::Blocks:
    blocks();
    break;
  case ShapeRule::Candidates:
    candidates();
    break;
  case ShapeRule::Cell:
  case ShapeRule::Sequence:
    cell(Rule == ShapeRule::Sequence);
    break;
  }
}

/// What the file says where no rule speaks: `_output_shapes`.
void DimRules::hintFromAttr() {
  // A handle says nothing of what it stands for.
  if (Loops && Loops->handleOf({N, 0}) != NoNode)
    return;
  auto Hints = G.shapeListAttr(N, "_output_shapes");
  if (!Hints)
    return;
  for (unsigned Port = 0; Port < A.numOutputs(N) && Port < Hints->size();
       ++Port) {
    const ShapeValue &Hint = (*Hints)[Port];
    if (Hint.UnknownRank || A.Shapes[A.outputIndex({N, Port})].Known)
      continue;
    DimList List;
    for (size_t I = 0; I < Hint.Dims.size(); ++I)
      List.push_back(Hint.Dims[I] < 0
                         ? slot(0x8000 + Port * 32 + I)
                         : number(0x8000 + Port * 32 + I, Hint.Dims[I]));
    setShape(Port, List);
  }
}

} // namespace graft
