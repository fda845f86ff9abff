//===- lib/infer/rules/ShapeRules.cpp - rules for shapes --------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
// One function per family of OpRules.def, from the shape functions in
// tensorflow/core/framework/common_shape_fns.cc and tensorflow/core/ops.
//
//===----------------------------------------------------------------------===//

#include "lib/infer/sizes/DimRules.h"
#include "lib/ops/Ops.h"

#include "llvm/Support/MathExtras.h"

using namespace llvm;

namespace graft {

void DimRules::broadcast() {
  if (numData() == 2) {
    // One shape, or a scalar: nothing to align.
    DimRun X = inRun(0), Y = inRun(1);
    if (!X.Known || !Y.Known)
      return;
    if (X == Y || X.Count == 0 || Y.Count == 0) {
      passShape(0, X.Count == 0 ? Y : X);
      return;
    }
  }
  DimList Result;
  for (unsigned I = 0; I < numData(); ++I) {
    Dims X = in(I);
    if (!X)
      return;
    DimList Next;
    size_t Rank = std::max(Result.size(), X->size());
    for (size_t D = 0; D < Rank; ++D) {
      size_t FromEnd = Rank - D;
      bool InResult = FromEnd <= Result.size(), InX = FromEnd <= X->size();
      DimId R = InResult ? Result[Result.size() - FromEnd] : One;
      DimId Y = InX ? (*X)[X->size() - FromEnd] : One;
      Next.push_back(InResult && InX ? broadcastDim(R, Y) : InX ? Y : R);
    }
    Result = Next;
  }
  setShape(0, Result);
}

void DimRules::reduction() {
  Dims X = in(0);
  auto Axes = nums(1);
  if (!X)
    return;
  bool Keep = G.boolAttr(N, "keep_dims").value_or(false);
  if (!Axes) {
    // The rank is known even where the axes are not.
    DimList List;
    for (size_t I = 0; Keep && I < X->size(); ++I)
      List.push_back(slot(I));
    if (Keep)
      setShape(0, List);
    return;
  }
  DimList List;
  for (size_t I = 0; I < X->size(); ++I) {
    bool Reduced = is_contained(*Axes, int64_t(I)) ||
                   is_contained(*Axes, int64_t(I) - int64_t(X->size()));
    if (!Reduced)
      List.push_back((*X)[I]);
    else if (Keep)
      List.push_back(One);
  }
  setShape(0, List);
}

/// Gives \p To, which together are as large as \p From, the symbol of From: the
/// batch is the outermost factor, so the first of To takes what the others
/// leave.
void DimRules::spread(ArrayRef<DimId> From, ArrayRef<DimId> To) {
  if (!A.Dims.hasSym(From.front()) || A.Dims.hasSym(To.front()))
    return;
  Sym Total;
  for (DimId D : From) {
    auto S = A.Dims.sym(D);
    if (!S || !Total.multiply(*S))
      return;
  }
  for (DimId D : To.drop_front()) {
    auto S = A.Dims.sym(D);
    if (!S || S->C <= 0 || Total.C % S->C != 0 || S->Ragged != 0 ||
        (S->B != 0 && S->Rows != Total.Rows) ||
        (Total.Ragged != 0 && !S->isNumber()))
      return;
    Total.C /= S->C;
    Total.B -= S->B;
    Total.R -= S->R;
  }
  if (Total.B >= 0 && Total.R >= 0)
    A.Dims.assign(To.front(), Total);
}

/// False if the dimensions are all known and their products differ, whatever
/// the rows of a replica.
bool DimRules::sameProduct(ArrayRef<DimId> X, ArrayRef<DimId> Y) const {
  int64_t C[2] = {1, 1};
  int Rows[2] = {0, 0};
  std::optional<uint16_t> Of;
  for (unsigned Side : {0, 1})
    for (DimId D : Side == 0 ? X : Y) {
      auto S = A.Dims.sym(D);
      if (!S || S->R < 0 || S->Ragged != 0 ||
          (S->B != 0 && Of.value_or(S->Rows) != S->Rows) ||
          MulOverflow(C[Side], S->C, C[Side]))
        return true;
      Rows[Side] += S->B;
      if (S->B != 0)
        Of = S->Rows;
      for (int Power = 0; Power < S->R; ++Power)
        if (MulOverflow(C[Side], int64_t(A.Options.Replicas), C[Side]))
          return true;
    }
  return Rows[0] == Rows[1] && C[0] == C[1];
}

/// Finds the runs of dimensions of \p X and \p Y that hold the same elements.
/// Row-major order makes this unique up to dimensions of size 1.
void DimRules::matchGroups(ArrayRef<DimId> AllX, ArrayRef<DimId> AllY) {
  auto WithoutOnes = [&](ArrayRef<DimId> List) {
    DimList Result;
    llvm::copy_if(List, std::back_inserter(Result),
                  [&](DimId D) { return !A.Dims.isOne(D); });
    return Result;
  };
  DimList X = WithoutOnes(AllX), Y = WithoutOnes(AllY);
  auto AllNumbers = [&](ArrayRef<DimId> List) {
    return all_of(List, [&](DimId D) {
      return A.Dims.number(D) != UnknownSize && A.Dims.number(D) > 0;
    });
  };
  bool ByNumber = AllNumbers(X) && AllNumbers(Y);
  auto SizeOf = [&](DimId D) -> std::optional<Sym> {
    if (ByNumber)
      return Sym{A.Dims.number(D), 0, 0};
    return A.Dims.sym(D);
  };
  if (ByNumber && (A.Dims.hasSymAny(X) || A.Dims.hasSymAny(Y))) {
    auto Elements = [&](ArrayRef<DimId> List) {
      int64_t Product = 1;
      for (DimId D : List)
        Product = SaturatingMultiply<uint64_t>(Product, A.Dims.number(D));
      return Product;
    };
    // Of a list of ones nothing is left.
    if (Elements(X) != Elements(Y) && !Y.empty())
      A.Conflicts.push_back({N, X.empty() ? One : X.front(), Y.front()});
  }
  size_t I = 0, J = 0;
  while (I < X.size() && J < Y.size()) {
    size_t I0 = I, J0 = J;
    auto SX = SizeOf(X[I++]), SY = SizeOf(Y[J++]);
    while (SX && SY && !(*SX == *SY)) {
      auto Less = [](const Sym &P, const Sym &Q) {
        return std::tuple(P.B, P.R, P.C) < std::tuple(Q.B, Q.R, Q.C);
      };
      bool GrowX = Less(*SX, *SY);
      if (GrowX ? I == X.size() : J == Y.size()) {
        if (!ByNumber && !sameProduct(X, Y))
          A.Conflicts.push_back({N, X.front(), Y.front()});
        return;
      }
      auto Next = SizeOf(GrowX ? X[I++] : Y[J++]);
      Sym &Grown = GrowX ? *SX : *SY;
      if (!Next || !Grown.multiply(*Next))
        return;
    }
    if (!SX || !SY)
      return;
    ArrayRef<DimId> Left = ArrayRef(X).slice(I0, I - I0),
                    Right = ArrayRef(Y).slice(J0, J - J0);
    if (Left.size() == 1 && Right.size() == 1) {
      same(Left[0], Right[0]);
    } else {
      spread(Left, Right);
      spread(Right, Left);
    }
  }
}

/// \p X and \p Y have equally many elements, of whatever rows. What claims to
/// be rows takes part where it is outermost, as the batch is.
void DimRules::sameElements(ArrayRef<DimId> X, ArrayRef<DimId> Y) {
  auto IsSame = [&](DimId Mine, DimId Its) {
    auto S = A.Dims.sym(Mine);
    return S && S == A.Dims.sym(Its);
  };
  while (!X.empty() && !Y.empty() && IsSame(X.front(), Y.front())) {
    X = X.drop_front();
    Y = Y.drop_front();
  }
  while (!X.empty() && !Y.empty() && IsSame(X.back(), Y.back())) {
    X = X.drop_back();
    Y = Y.drop_back();
  }
  auto IsClaim = [&](DimId D) {
    auto S = A.Dims.sym(D);
    return S && !A.Dims.isOfSplit(*S);
  };
  if (X.empty() || Y.empty() || any_of(X.drop_front(), IsClaim) ||
      any_of(Y.drop_front(), IsClaim))
    return;
  auto Mine = elementsOf(X), Its = elementsOf(Y);
  if (Mine && Its)
    A.Dims.relate(*Mine, *Its);
}

void DimRules::reshape() {
  Dims V = val(1);
  if (!V)
    return;
  Dims X = in(0);
  DimList List;
  int Wild = -1;
  for (size_t I = 0; I < V->size(); ++I) {
    if (A.Dims.number((*V)[I]) == -1) {
      Wild = static_cast<int>(I);
      List.push_back(slot(I));
    } else {
      List.push_back((*V)[I]);
    }
  }
  if (Wild >= 0 && X) {
    DimId All = One, Rest = One;
    for (size_t I = 0; I < X->size(); ++I)
      All = product(64 + I, All, (*in(0))[I]);
    for (size_t I = 0; I < List.size(); ++I)
      if (int(I) != Wild)
        Rest = product(96 + I, Rest, List[I]);
    DimId Size = quotient(63, All, Rest);
    A.Dims.unify(List[Wild], Size);
    List[Wild] = Size;
  }
  setShape(0, List);
  if (!X)
    return;
  sameElements(*in(0), List);
  matchGroups(*in(0), List);
}

void DimRules::transpose() {
  Dims X = in(0);
  auto Perm = nums(1);
  if (!X || !Perm || Perm->size() != X->size())
    return;
  DimList List;
  for (int64_t P : *Perm) {
    if (P < 0 || P >= int64_t(X->size()))
      return;
    List.push_back((*X)[P]);
  }
  setShape(0, List);
}

void DimRules::tile() {
  Dims X = in(0), M = val(1);
  if (!X || !M || M->size() != X->size())
    return;
  DimList List;
  for (size_t I = 0; I < X->size(); ++I)
    List.push_back(product(I, (*in(0))[I], (*val(1))[I]));
  setShape(0, List);
}

void DimRules::pack() {
  Dims X = in(0);
  for (unsigned I = 1; X && I < numData(); ++I)
    if (Dims Y = in(I))
      sameShapes(*X, *Y);
  if (!X)
    return;
  int64_t Axis = G.intAttr(N, "axis").value_or(0);
  if (Axis < 0)
    Axis += int64_t(X->size()) + 1;
  if (Axis < 0 || Axis > int64_t(X->size()))
    return;
  DimList List(X->begin(), X->end());
  List.insert(List.begin() + Axis, number(0, numData()));
  setShape(0, List);
}

void DimRules::concat() {
  bool Old = G.isOp(N, op::Concat);
  unsigned AxisInput = Old ? 0 : numData() - 1, First = Old ? 1 : 0;
  auto Axis = num(AxisInput);
  Dims X = in(First);
  if (!Axis || !X || X->empty())
    return;
  int64_t At = *Axis < 0 ? *Axis + int64_t(X->size()) : *Axis;
  if (At < 0 || At >= int64_t(X->size()))
    return;
  DimList List(X->begin(), X->end());
  int64_t Sum = 0;
  bool Known = true;
  DimList Parts;
  for (unsigned I = First; I < First + numData() - 1; ++I) {
    Dims Y = in(I);
    if (!Y || Y->size() != List.size())
      return;
    for (size_t D = 0; D < List.size(); ++D)
      if (int64_t(D) != At)
        same(List[D], (*Y)[D]);
    DimId Part = (*Y)[At];
    Parts.push_back(Part);
    Known &= !A.Dims.hasSym(Part) && A.Dims.number(Part) != UnknownSize;
    if (Known)
      Sum += A.Dims.number(Part);
  }
  if (numData() > 2)
    List[At] = Known ? number(0, Sum) : total(1, Parts);
  if (!Known && Parts.size() == 2)
    Joined[A.Dims.find(List[At])] = {Parts[0], Parts[1]};
  setShape(0, List);
}

/// What is left of \p Whole after \p First, if that is the first part of it.
std::optional<DimId> DimRules::sizeAfter(DimId Whole, DimId First) const {
  auto It = Joined.find(A.Dims.find(Whole));
  if (It == Joined.end())
    return std::nullopt;
  auto [Begin, Rest] = It->second;
  bool Same = A.Dims.find(Begin) == A.Dims.find(First) ||
              (A.Dims.hasSym(Begin) && A.Dims.hasSym(First) &&
               A.Dims.sym(Begin) == A.Dims.sym(First));
  return Same ? std::optional(Rest) : std::nullopt;
}

/// The size of each of \p Count equal parts of \p Whole. Of a static batch each
/// has rows of its own number, also where that is no multiple of others.
DimId DimRules::partOfRows(DimId Whole, DimId Count) {
  DimId Part = quotient(1, Whole, Count);
  auto Rows = A.Dims.hasSym(Whole) ? A.Dims.sym(Whole) : std::nullopt;
  int64_t Number = A.Dims.number(Whole), Parts = A.Dims.number(Count);
  if (A.Dims.isKnown(Part) || !Rows || Rows->B != 1 || Rows->Ragged != 0 ||
      Number == UnknownSize || Parts <= 0 || Number % Parts != 0)
    return Part;
  if (auto S = rowsAt(1, {N, 0}))
    A.Dims.assign(Part, {1, 1, Rows->R, S->Rows});
  A.Dims.assignNumber(Part, Number / Parts);
  return Part;
}

void DimRules::split() {
  bool Uneven = G.isOp(N, op::SplitV);
  Dims X = in(Uneven ? 0 : 1);
  auto Axis = num(Uneven ? 2 : 0);
  if (!X || !Axis || X->empty())
    return;
  int64_t At = *Axis < 0 ? *Axis + int64_t(X->size()) : *Axis;
  if (At < 0 || At >= int64_t(X->size()))
    return;
  DimList List(X->begin(), X->end());
  // A copy: what is set below is in the same pool.
  std::optional<DimList> Sizes;
  if (Dims Parts = Uneven ? val(1) : std::nullopt)
    Sizes.emplace(Parts->begin(), Parts->end());
  DimId Whole = List[At];
  DimId Count = number(0, A.numOutputs(N));
  const char *Parts =
      "splits rows into parts that do not divide the rows of a replica";
  if (!Uneven && A.localNumber(Whole) != UnknownSize)
    require(A.localNumber(Whole) % A.numOutputs(N) == 0, Whole, Parts);
  // The size that is -1 is what the others leave.
  int64_t Rest = A.Dims.hasSym(Whole) ? UnknownSize : A.Dims.number(Whole);
  for (DimId Size : Sizes ? ArrayRef(*Sizes) : ArrayRef<DimId>()) {
    int64_t Known = A.Dims.hasSym(Size) ? UnknownSize : A.Dims.number(Size);
    if (Rest == UnknownSize || Known == UnknownSize)
      Rest = UnknownSize;
    else if (Known != -1)
      Rest -= Known;
  }
  if (auto Ends = Uneven ? nums(1) : std::nullopt) {
    int64_t Sum = 0;
    for (int64_t Size : *Ends)
      Sum += Size < 0 ? 0 : Size;
    require(is_contained(*Ends, -1) || fits(Whole, Sum), Whole, Parts);
  }
  for (unsigned Port = 0; Port < A.numOutputs(N); ++Port) {
    if (Uneven && Sizes && Port < Sizes->size() &&
        A.Dims.number((*Sizes)[Port]) != -1)
      List[At] = (*Sizes)[Port];
    else if (Uneven)
      List[At] = Sizes && Rest >= 0 ? number(64 + Port, Rest) : slot(64 + Port);
    else
      List[At] = partOfRows(Whole, Count);
    setShape(Port, List);
  }
}

void DimRules::slice() {
  Dims X = in(0), Size = val(2), From = val(1);
  auto Begin = nums(1);
  if (!X || !Size || Size->size() != X->size())
    return;
  DimList List;
  for (size_t I = 0; I < X->size(); ++I) {
    bool ToEnd = A.Dims.number((*Size)[I]) == -1;
    if (ToEnd && Begin && (*Begin)[I] == 0)
      List.push_back((*X)[I]);
    else if (ToEnd && Begin)
      List.push_back(slotFrom(I, (*X)[I]));
    else if (auto Rest = ToEnd && From && I < From->size()
                             ? sizeAfter((*X)[I], (*From)[I])
                             : std::nullopt)
      List.push_back(*Rest);
    else if (ToEnd && From && I < From->size() &&
             A.Dims.number((*From)[I]) == 0 && !A.Dims.hasSym((*From)[I]))
      List.push_back((*X)[I]);
    else if (ToEnd)
      List.push_back(slot(I));
    else
      List.push_back((*Size)[I]);
  }
  setShape(0, List);
}

void DimRules::pad() {
  Dims X = in(0);
  // The paddings are a [rank, 2] tensor, which is not tracked as a vector.
  if (!X || numData() < 2)
    return;
  auto Tensor = G.isOp(G.input(N, 1).Node, op::Const)
                    ? constValue(G, G.input(N, 1).Node)
                    : std::nullopt;
  DimList List;
  for (size_t I = 0; I < X->size(); ++I) {
    if (!Tensor || !Tensor->HasInts || Tensor->Ints.size() != 2 * X->size()) {
      List.push_back(slot(I));
      continue;
    }
    int64_t Extra = Tensor->Ints[2 * I] + Tensor->Ints[2 * I + 1];
    if (G.isOp(N, op::MirrorPadGrad))
      Extra = -Extra;
    int64_t Size = A.Dims.number((*in(0))[I]);
    if (Extra == 0)
      List.push_back((*in(0))[I]);
    else if (Size != UnknownSize && !A.Dims.hasSym((*in(0))[I]))
      List.push_back(number(I, Size + Extra));
    else
      List.push_back(slotFrom(I, (*in(0))[I]));
  }
  setShape(0, List);
}

void DimRules::gather() {
  Dims X = in(0), Rows = in(1);
  if (!X || !Rows)
    return;
  int64_t Axis = 0;
  if (G.isOp(N, op::GatherV2)) {
    auto At = num(2);
    if (!At)
      return;
    Axis = *At < 0 ? *At + int64_t(X->size()) : *At;
  }
  int64_t Lead = G.intAttr(N, "batch_dims").value_or(0);
  for (int64_t I = 0;
       I < Lead && I < int64_t(std::min(X->size(), Rows->size())); ++I)
    same((*in(0))[I], (*in(1))[I]);
  if (Lead != 0 || Axis < 0 || Axis >= int64_t(X->size()))
    return;
  DimList List(X->begin(), X->begin() + Axis);
  List.append(Rows->begin(), Rows->end());
  List.append(X->begin() + Axis + 1, X->end());
  setShape(0, List);
}

/// The result is as large as the tensor; what is put has the axes of the
/// indices but the last, and those of the tensor that no index goes through.
void DimRules::tensorScatter() {
  passShape(0, inRun(0));
  Dims X = in(0), Index = in(1), Rows = in(2);
  if (!X || !Index || !Rows || Index->empty())
    return;
  int64_t Depth = A.Dims.number(Index->back());
  if (A.Dims.hasSym(Index->back()) || Depth < 0 || Depth > int64_t(X->size()))
    return;
  DimList List(Index->begin(), Index->end() - 1);
  List.append(X->begin() + Depth, X->end());
  sameShapes(*Rows, List);
}

/// The last axis of the indices says which element, the others where it goes.
void DimRules::gatherNd() {
  Dims X = in(0), Index = in(1);
  if (!X || !Index || Index->empty())
    return;
  int64_t Depth = A.Dims.number(Index->back());
  if (Depth < 0 || Depth > int64_t(X->size()) || A.Dims.hasSym(Index->back()))
    return;
  DimList List(Index->begin(), Index->end() - 1);
  List.append(X->begin() + Depth, X->end());
  setShape(0, List);
}

/// The size of a dimension of an element-wise result. A size that may be 1 at
/// run time is not taken to be the other operand's.
DimId DimRules::broadcastDim(DimId X, DimId Y) {
  if (A.Dims.isOne(X))
    return Y;
  if (A.Dims.isOne(Y))
    return X;
  if (A.Dims.find(X) == A.Dims.find(Y))
    return X;
  bool KnowsX = A.Dims.isKnown(X), KnowsY = A.Dims.isKnown(Y);
  if (KnowsX && KnowsY)
    same(X, Y);
  // Of two unknown sizes, what comes out is that of all replicas only if both
  // are.
  if (!KnowsX && !KnowsY)
    return A.Dims.isSame(X) ? Y : X;
  return KnowsX ? X : Y;
}

} // namespace graft
