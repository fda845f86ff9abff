//===- lib/infer/rules/RowOps.cpp - rows one by one -------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
// Ops that work on the rows of the batch one by one. Each operand and each
// result has a letter. The last letter also holds for all further operands or
// results.
//
//   operands: r  axis 0 is the batch axis
//             t  axis 1 is the batch axis
//             l  like r, and the op is linear in all of l and m together
//             m  like t, and the op is linear in all of l and m together
//             p  a parameter that is the same for all rows
//   results:  r  axis 0 is the batch axis
//             t  axis 1 is the batch axis
//             +  a sum over the rows
//             i  like r, unless indices count the rows (include_batch_in_index)
//
// A digit after a letter is the least rank that the operand needs to have this
// batch axis.
//
//===----------------------------------------------------------------------===//

#include "lib/infer/rules/Rules.h"

#include "llvm/Support/MathExtras.h"

using namespace llvm;

namespace graft {

namespace sizes {

/// Infers the row count and other sizes of SpaceToBatchND and BatchToSpaceND.
static void blocks(SizeContext &C) {
  Dims X = C.in(0);
  auto Block = C.nums(1);
  if (!X || !Block || X->size() < Block->size() + 1)
    return;
  int64_t Count = 1;
  for (int64_t Size : *Block)
    if (Size <= 0 || MulOverflow(Count, Size, Count))
      return;
  DimList List(X->begin(), X->end());
  DimId Before = List[0], Blocks = C.number(0, Count);
  List[0] = C.isOp(op::SpaceToBatchND) ? C.product(1, List[0], Blocks)
                                       : C.quotient(1, List[0], Blocks);
  // The paddings or crops of both ends: [block axes, 2].
  auto Ends = constValue(C.G, C.G.input(C.N, 2).Node);
  bool HasEnds =
      Ends && Ends->HasInts && Ends->Ints.size() == 2 * Block->size() &&
      all_of(Ends->Ints, [](int64_t E) { return E >= 0 && E < INT32_MAX; });
  bool Joins = C.isOp(op::BatchToSpaceND);
  for (size_t I = 1; I <= Block->size(); ++I) {
    int64_t Size = C.plainNumber(List[I]), Each = (*Block)[I - 1], To = 0;
    if (HasEnds && Size > 0 && Size < INT32_MAX && Each < INT32_MAX) {
      int64_t More = Ends->Ints[2 * I - 2] + Ends->Ints[2 * I - 1];
      To = Joins ? Size * Each - More : Size + More;
      if (!Joins)
        To = To % Each == 0 ? To / Each : 0;
    }
    List[I] = To > 0 ? C.number(1 + I, To) : C.slotFrom(1 + I, List[I]);
  }
  C.setShape(0, List);
  // If a later round infers local rows for the output, infer local rows for the
  // input, too: a gradient reads their number from the input's shape.
  auto Rows = C.Table.sym(C.out(0)->front());
  if (!Rows || !Rows->isLocal() || C.Table.hasSym(Before) ||
      C.Table.number(Before) == UnknownSize)
    return;
  if (Joins ? MulOverflow(Rows->C, Count, Rows->C) : Rows->C % Count != 0)
    return;
  if (!Joins)
    Rows->C /= Count;
  C.assign(Before, *Rows);
}

/// Infers the shapes of a recurrent cell. Operand 1 is the previous state,
/// [rows, units]. If \p OverTime is set, operand 1 is the input, [time, rows,
/// features], and operand 2 is the state.
template <bool OverTime> static void cell(SizeContext &C) {
  Dims X = C.in(1), State = OverTime ? C.in(2) : X;
  if (!X || !State || State->size() != 2 || X->size() != (OverTime ? 3 : 2))
    return;
  DimList List(X->begin(), X->end());
  List.back() = State->back();
  for (unsigned Port = 0; Port < C.numOutputs(); ++Port)
    C.setShape(Port, List);
}

/// Infers a shape with the rows and channels of operand 0, and the height and
/// width of operand 1.
static void imageAsSecond(SizeContext &C) {
  Dims X = C.in(0), Y = C.in(1);
  if (X && Y && X->size() == 4 && Y->size() == 4)
    C.setShape(0, {(*X)[0], (*Y)[1], (*Y)[2], (*X)[3]});
}

/// Operand 0 and each output have equally many rows along axis 0.
void sameRows(SizeContext &C) {
  for (unsigned Port = 0; Port < C.numOutputs(); ++Port)
    if (Dims X = C.in(0), Y = C.out(Port); X && Y)
      C.sameRows(*X, *Y, 1);
}

/// Results have the axes of operand 0, except for the last \p Mixed ones.
void sameLead(SizeContext &C, size_t Mixed) {
  Dims X = C.in(0);
  for (unsigned Port = 0; X && Port < C.numOutputs(); ++Port)
    if (Dims Y = C.out(Port); Y && X->size() > Mixed)
      C.sameRows(*X, *Y, X->size() - Mixed);
}

/// Unifies the row counts of all operands and results with a letter for rows.
static void sameLetters(SizeContext &C) {
  const OpRule &Rule = ruleOf(C.opName());
  std::optional<DimId> First;
  auto Add = [&](std::pair<char, int> Of, Dims X) {
    auto [Letter, Rank] = Of;
    size_t Axis = Letter == 't' || Letter == 'm' ? 1 : 0;
    if (Letter == 'p' || Letter == '+' || !X || X->size() <= Axis ||
        X->size() < size_t(Rank))
      return;
    if (First)
      C.sameRows(*First, (*X)[Axis]);
    else
      First = (*X)[Axis];
  };
  for (unsigned I = 0; I < C.numData(); ++I)
    Add(letterOf(Rule.Inputs, I), C.in(I));
  for (unsigned Port = 0; Port < C.numOutputs(); ++Port)
    Add(letterOf(Rule.Outputs, Port), C.out(Port));
}

} // namespace sizes

namespace {

/// Infers the type of an op on each vector (\p Mixed = 1), matrix (2) or volume
/// (3). If an operand is sharded, another operand of rank 0 or 1 is a
/// parameter.
ReplicationType leadingType(TypeContext &C, int Mixed) {
  int Axis = -1, Rank = -1;
  bool Whole = false;
  for (unsigned I = 0; I < C.numData(); ++I) {
    ReplicationType X = C.plain(I);
    if (X.isVarying())
      return C.varyingLike(X);
    int R = C.rank(I);
    if (!X.isSharded()) {
      Whole |= R < 0 || R > 1;
      continue;
    }
    if (R < 0 || X.Axis >= R - Mixed ||
        (Axis >= 0 && (Axis != X.Axis || Rank != R)))
      return C.varying("operates along the batch axis");
    Axis = X.Axis;
    Rank = R;
  }
  if (Axis < 0)
    return ReplicationType::replicated();
  return Whole
             ? C.varying("combines a per-replica shard with a replicated value "
                         "along the batch axis")
             : ReplicationType::sharded(Axis);
}

ReplicationType perExampleType(TypeContext &C) {
  bool Split = false;
  for (unsigned I = 0; I < C.numData(); ++I) {
    ReplicationType X = C.plain(I);
    if (X.isVarying())
      return C.varyingLike(X);
    if (X.isSharded() && (X.Axis != 0 || I > 0))
      return C.varying("operates along the batch axis");
    Split |= X.isSharded();
  }
  return Split ? ReplicationType::sharded(0) : ReplicationType::replicated();
}

/// Returns \p Dy; Varying if \p Dy is sharded along an axis other than 0.
ReplicationType alongRows(TypeContext &C, ReplicationType Dy) {
  if (Dy.isVarying())
    return C.varyingLike(Dy);
  return Dy.isSharded() && Dy.Axis != 0
             ? C.varying("operates along the batch axis")
             : Dy;
}

} // namespace

namespace types {

/// Infers the types of the outputs from the letters of the op.
static void rows(TypeContext &C) {
  const OpRule &Rule = ruleOf(C.opName());
  SmallVector<unsigned, 2> Linear;
  std::optional<int> K;
  bool Split = false, AnyWhole = false, AllZero = true;
  for (unsigned I = 0; I < C.numData(); ++I) {
    auto [Letter, Rank] = letterOf(Rule.Inputs, I);
    bool IsLinear = Letter == 'l' || Letter == 'm';
    ReplicationType X = IsLinear ? C.numeric(I) : C.plain(I);
    if (X.isVarying())
      return C.setAll(C.varyingLike(X));
    int Axis = Letter == 't' || Letter == 'm' ? 1 : 0;
    bool OfRows = IsLinear || Letter == 'r' || Letter == 't';
    if (X.isSharded() &&
        (!OfRows || X.Axis != Axis || (Rank > 0 && C.rank(I) < Rank)))
      return C.setAll(C.varying("operates along the batch axis"));
    Split |= X.isSharded();
    AnyWhole |= !X.isSharded() && OfRows;
    if (IsLinear) {
      Linear.push_back(I);
      AllZero &= X.Zero;
      if (!X.Zero && (!K || X.K == 0))
        K = X.K;
    }
  }
  if (Split && AnyWhole)
    return C.setAll(C.varying("combines a per-replica shard with a replicated "
                              "value along the batch axis"));
  // A single linear operand keeps its type if no operand is sharded. Otherwise
  // all linear operands need the same scale, and partial sums are reduced.
  bool OnlyTerm = Linear.size() == 1 && !Split;
  for (unsigned I : Linear)
    if (ReplicationType X = C.numeric(I); X.isPartial() && !OnlyTerm)
      K = 0;
  for (unsigned I : Linear)
    if (ReplicationType X = C.numeric(I); !OnlyTerm)
      C.scaled(I, X.isPartial() ? C.reduced(I) : X, K.value_or(0));
  if (!Split && OnlyTerm)
    return C.setAll(C.numeric(Linear[0]));
  auto Give = [&](unsigned Port, ReplicationType Type) {
    Type.Zero = AllZero && !Linear.empty();
    C.set(Port, Type);
  };
  for (unsigned Port = 0; Port < C.numResults(); ++Port) {
    char Letter = letterOf(Rule.Outputs, Port).first;
    if (!Split)
      Give(Port, ReplicationType::replicated(K.value_or(0)));
    else if (Letter == 'i' && C.flag("include_batch_in_index"))
      C.set(Port, C.varying("has row indices that are local to one replica"));
    else if (Letter == '+')
      Give(Port, ReplicationType::partial(K.value_or(0)));
    else
      Give(Port, ReplicationType::sharded(Letter == 't', K.value_or(0)));
  }
}

void perExample(TypeContext &C) { C.setAll(perExampleType(C)); }

void linearRows(TypeContext &C) {
  ReplicationType Dy = C.numeric(0);
  for (unsigned I = 1; I < C.numData(); ++I)
    if (!C.operand(I).isTrue())
      Dy = C.varying("depends on a per-replica size");
  C.setAll(alongRows(C, Dy));
}

void gradSecond(TypeContext &C) {
  ReplicationType Dy = C.numeric(1);
  // All other operands are sizes: of a tensor or of windows.
  for (unsigned I = 0; I < C.numData(); ++I)
    if (I != 1 && !C.isSize(I))
      Dy = C.varying("depends on a per-replica size");
  C.setAll(alongRows(C, ofSizes(C, Dy)));
}

void perVector(TypeContext &C) {
  C.setAll(leadingType(C, static_cast<int>(mixedAxes(C.G, C.N))));
}

void perMatrix(TypeContext &C) { C.setAll(leadingType(C, 2)); }
void perVolume(TypeContext &C) { C.setAll(leadingType(C, 3)); }

} // namespace types

namespace {

using namespace trait;

constexpr OpRule Rows = {.Rows = sizes::sameLetters,
                         .Type = types::rows,
                         .Is = KeepsZeros,
                         .ComparedOperands = AllOperands,
                         .Outputs = "r"};

} // namespace

ArrayRef<OpRule> families::rowOps() {
  static const OpRule Rules[] = {
      // Ops that split a row into several rows, and back.
      {.Op = op::SpaceToBatchND,
       .Sizes = sizes::blocks,
       .Type = types::toBlocks,
       .Is = OrdersRows,
       .ZerosOf = operands(0)},
      {.Op = op::BatchToSpaceND,
       .Sizes = sizes::blocks,
       .Type = types::fromBlocks,
       .Is = OrdersRows,
       .ZerosOf = operands(0)},

      // Recurrent cells.
      entry(op::LSTMBlockCell, Rows,
            {.Sizes = sizes::cell<false>, .Inputs = "rrrp"}),
      entry(op::LSTMBlockCellGrad, Rows,
            {.Inputs = "rrrppppprrrrrrll", .Outputs = "rr+"}),
      entry(op::GRUBlockCell, Rows,
            {.Sizes = sizes::cell<false>, .Inputs = "rrp"}),
      entry(op::GRUBlockCellGrad, Rows, {.Inputs = "rrpppprrrl"}),
      entry(op::BlockLSTM, Rows,
            {.Sizes = sizes::cell<true>, .Inputs = "ptrrp", .Outputs = "t"}),
      entry(op::BlockLSTMV2, Rows,
            {.Sizes = sizes::cell<true>, .Inputs = "ptrrp", .Outputs = "t"}),
      entry(op::BlockLSTMGrad, Rows,
            {.Inputs = "ptrrppppptttttttmm", .Outputs = "trr+"}),
      entry(op::BlockLSTMGradV2, Rows,
            {.Inputs = "ptrrppppptttttttmm", .Outputs = "trr+"}),

      // Images.
      entry(op::AdjustContrastv2, Rows,
            {.Sizes = sizes::same, .Inputs = "r4p"}),
      entry(op::AdjustHue, Rows, {.Sizes = sizes::same, .Inputs = "r4p"}),
      entry(op::AdjustSaturation, Rows,
            {.Sizes = sizes::same, .Inputs = "r4p"}),
      entry(op::Dilation2D, Rows, {.Inputs = "rp"}),
      entry(op::Dilation2DBackpropFilter, Rows,
            {.Sizes = sizes::sameAsSecond, .Inputs = "rpl", .Outputs = "+"}),
      entry(op::Dilation2DBackpropInput, Rows,
            {.Sizes = sizes::same, .Inputs = "rpl"}),
      entry(op::DrawBoundingBoxes, Rows,
            {.Sizes = sizes::same, .Inputs = "rr"}),
      entry(op::DrawBoundingBoxesV2, Rows,
            {.Sizes = sizes::same, .Inputs = "rrp"}),
      entry(op::ExtractVolumePatches, Rows, {.Inputs = "l"}),
      entry(op::ImageProjectiveTransformV2, Rows,
            {.ZerosOf = operands(0), .Inputs = "rrp"}),
      entry(op::ImageProjectiveTransformV3, Rows, {.Inputs = "rrp"}),
      entry(op::LRNGrad, Rows, {.Sizes = sizes::same, .Inputs = "lrr"}),
      entry(op::MaxPool3DGrad, Rows, {.Sizes = sizes::same, .Inputs = "rrl"}),
      entry(op::MaxPool3DGradGrad, Rows,
            {.Sizes = sizes::sameAsSecond, .Inputs = "rrl"}),
      entry(op::MaxPoolGrad, Rows, {.Sizes = sizes::same, .Inputs = "rrl"}),
      entry(op::MaxPoolGradV2, Rows, {.Sizes = sizes::same, .Inputs = "rrlp"}),
      entry(op::MaxPoolGradGrad, Rows,
            {.Sizes = sizes::sameAsSecond, .Inputs = "rrl"}),
      entry(op::MaxPoolGradGradV2, Rows,
            {.Sizes = sizes::sameAsSecond, .Inputs = "rrlp"}),
      entry(op::MaxPoolWithArgmax, Rows,
            {.Sizes = sizes::pool, .Inputs = "r", .Outputs = "ri"}),
      entry(op::ResizeBicubicGrad, Rows,
            {.Sizes = sizes::sameAsSecond, .Inputs = "lr"}),
      entry(op::ResizeBilinearGrad, Rows,
            {.Sizes = sizes::sameAsSecond, .Inputs = "lr"}),
      entry(op::ScaleAndTranslate, Rows,
            {.ZerosOf = operands(0), .Inputs = "rp"}),
      entry(op::ScaleAndTranslateGrad, Rows,
            {.Sizes = sizes::imageAsSecond, .Inputs = "lrp"}),

      // Quantisation with given ranges.
      entry(op::FakeQuantWithMinMaxVarsGradient, Rows,
            {.Inputs = "lrp", .Outputs = "r+"}),
      entry(op::FakeQuantWithMinMaxVarsPerChannel, Rows,
            {.Sizes = sizes::same, .Inputs = "r2p"}),
      entry(op::FakeQuantWithMinMaxVarsPerChannelGradient, Rows,
            {.Inputs = "l2r2p", .Outputs = "r+"}),

      // Matrices and vectors of each row.
      entry(op::BandedTriangularSolve, Rows, {.Inputs = "r3"}),
      entry(op::MatrixSetDiag, Rows, {.Sizes = sizes::same, .Inputs = "r3r2"}),
      entry(op::MatrixSetDiagV2, Rows,
            {.Sizes = sizes::same, .Inputs = "r3r2p"}),
      entry(op::MatrixSetDiagV3, Rows,
            {.Sizes = sizes::same, .Inputs = "r3r2p"}),
      entry(op::MatrixSolveLs, Rows, {.Inputs = "r3r3p"}),
      entry(op::NthElement, Rows, {.Inputs = "r2p"}),
      entry(op::TridiagonalMatMul, Rows,
            {.ZerosOf = operands(3), .Inputs = "r3"}),
      entry(op::TridiagonalSolve, Rows, {.Inputs = "r3"}),
      entry(op::LowerBound, Rows,
            {.Sizes = sizes::sameAsSecond, .Inputs = "r2"}),
      entry(op::UpperBound, Rows,
            {.Sizes = sizes::sameAsSecond, .Inputs = "r2"}),
      entry(op::IsotonicRegression, Rows,
            {.Sizes = sizes::same, .Inputs = "r2"}),

      // Classes of rows.
      entry(op::InTopK, Rows, {.Sizes = sizes::sameAsSecond, .Inputs = "rr"}),
      entry(op::InTopKV2, Rows,
            {.Sizes = sizes::sameAsSecond, .Inputs = "rrp"}),

      // Strings.
      entry(op::RegexFullMatch, Rows, {.Sizes = sizes::same, .Inputs = "rp"}),
      entry(op::RegexReplace, Rows, {.Sizes = sizes::same, .Inputs = "rp"}),
  };
  return Rules;
}

} // namespace graft
