//===- lib/infer/rules/RowOps.cpp - rows one by one -------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
// Ops that work on the rows of the batch one by one, with a letter for each
// operand and each result; the last one is also that of all that follow.
//
//   operands: r  axis 0 is the batch          l  the same, and the op is linear
//             t  axis 1 is the batch          m     in all of these together
//             p  the same for all rows
//   results:  r  axis 0 is the batch          +  a sum over the rows
//             t  axis 1 is the batch
//             i  like r, unless indices count the rows (include_batch_in_index)
//
// A digit after a letter is the least rank at which the axis is that of rows.
//
//===----------------------------------------------------------------------===//

#include "lib/infer/rules/Rules.h"

#include "llvm/Support/MathExtras.h"

using namespace llvm;

namespace graft {

namespace sizes {

/// SpaceToBatchND, BatchToSpaceND: how many rows, and the rank.
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
  DimId Blocks = C.number(0, Count);
  List[0] = C.isOp(op::SpaceToBatchND) ? C.product(1, List[0], Blocks)
                                       : C.quotient(1, List[0], Blocks);
  for (size_t I = 1; I <= Block->size(); ++I)
    List[I] = C.slotFrom(1 + I, List[I]);
  C.setShape(0, List);
}

/// A cell reads the input and the state before, [rows, units]. \p OverTime it
/// reads the length, the input, [time, rows, features], and the state.
template <bool OverTime> static void cell(SizeContext &C) {
  Dims X = C.in(1), State = OverTime ? C.in(2) : X;
  if (!X || !State || State->size() != 2 || X->size() != (OverTime ? 3 : 2))
    return;
  DimList List(X->begin(), X->end());
  List.back() = State->back();
  for (unsigned Port = 0; Port < C.numOutputs(); ++Port)
    C.setShape(Port, List);
}

/// What is said of rows one by one holds of axis 0.
void sameRows(SizeContext &C) {
  for (unsigned Port = 0; Port < C.numOutputs(); ++Port)
    if (Dims X = C.in(0), Y = C.out(Port); X && Y)
      C.sameRows(*X, *Y, 1);
}

/// Results have the axes of operand 0, but for the last ones, \p Mixed many.
void sameLead(SizeContext &C, size_t Mixed) {
  Dims X = C.in(0);
  for (unsigned Port = 0; X && Port < C.numOutputs(); ++Port)
    if (Dims Y = C.out(Port); Y && X->size() > Mixed)
      C.sameRows(*X, *Y, X->size() - Mixed);
}

/// What has a letter for rows has as many of them.
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

ArrayRef<OpRule> families::rowOps() {
  static constexpr OpRule Rules[] = {
      // Rows that become several, and one again.
      {.Op = op::SpaceToBatchND,
       .Sizes = sizes::blocks,
       .Type = TypeRule::ToBlocks},
      {.Op = op::BatchToSpaceND,
       .Sizes = sizes::blocks,
       .Type = TypeRule::FromBlocks},

      // Recurrent cells.
      {.Op = op::LSTMBlockCell,
       .Sizes = sizes::cell<false>,
       .Rows = sizes::sameLetters,
       .Type = TypeRule::Rows,
       .Inputs = "rrrp",
       .Outputs = "r"},
      {.Op = op::LSTMBlockCellGrad,
       .Rows = sizes::sameLetters,
       .Type = TypeRule::Rows,
       .Inputs = "rrrppppprrrrrrll",
       .Outputs = "rr+"},
      {.Op = op::GRUBlockCell,
       .Sizes = sizes::cell<false>,
       .Rows = sizes::sameLetters,
       .Type = TypeRule::Rows,
       .Inputs = "rrp",
       .Outputs = "r"},
      {.Op = op::GRUBlockCellGrad,
       .Rows = sizes::sameLetters,
       .Type = TypeRule::Rows,
       .Inputs = "rrpppprrrl",
       .Outputs = "r"},
      {.Op = op::BlockLSTM,
       .Sizes = sizes::cell<true>,
       .Rows = sizes::sameLetters,
       .Type = TypeRule::Rows,
       .Inputs = "ptrrp",
       .Outputs = "t"},
      {.Op = op::BlockLSTMV2,
       .Sizes = sizes::cell<true>,
       .Rows = sizes::sameLetters,
       .Type = TypeRule::Rows,
       .Inputs = "ptrrp",
       .Outputs = "t"},
      {.Op = op::BlockLSTMGrad,
       .Rows = sizes::sameLetters,
       .Type = TypeRule::Rows,
       .Inputs = "ptrrppppptttttttmm",
       .Outputs = "trr+"},
      {.Op = op::BlockLSTMGradV2,
       .Rows = sizes::sameLetters,
       .Type = TypeRule::Rows,
       .Inputs = "ptrrppppptttttttmm",
       .Outputs = "trr+"},

      // Images.
      {.Op = op::AdjustContrastv2,
       .Sizes = sizes::same,
       .Rows = sizes::sameLetters,
       .Type = TypeRule::Rows,
       .Inputs = "r4p",
       .Outputs = "r"},
      {.Op = op::AdjustHue,
       .Sizes = sizes::same,
       .Rows = sizes::sameLetters,
       .Type = TypeRule::Rows,
       .Inputs = "r4p",
       .Outputs = "r"},
      {.Op = op::AdjustSaturation,
       .Sizes = sizes::same,
       .Rows = sizes::sameLetters,
       .Type = TypeRule::Rows,
       .Inputs = "r4p",
       .Outputs = "r"},
      {.Op = op::Dilation2D,
       .Rows = sizes::sameLetters,
       .Type = TypeRule::Rows,
       .Inputs = "rp",
       .Outputs = "r"},
      {.Op = op::Dilation2DBackpropFilter,
       .Sizes = sizes::sameAsSecond,
       .Rows = sizes::sameLetters,
       .Type = TypeRule::Rows,
       .Inputs = "rpl",
       .Outputs = "+"},
      {.Op = op::Dilation2DBackpropInput,
       .Sizes = sizes::same,
       .Rows = sizes::sameLetters,
       .Type = TypeRule::Rows,
       .Inputs = "rpl",
       .Outputs = "r"},
      {.Op = op::DrawBoundingBoxes,
       .Sizes = sizes::same,
       .Rows = sizes::sameLetters,
       .Type = TypeRule::Rows,
       .Inputs = "rr",
       .Outputs = "r"},
      {.Op = op::DrawBoundingBoxesV2,
       .Sizes = sizes::same,
       .Rows = sizes::sameLetters,
       .Type = TypeRule::Rows,
       .Inputs = "rrp",
       .Outputs = "r"},
      {.Op = op::ExtractVolumePatches,
       .Rows = sizes::sameLetters,
       .Type = TypeRule::Rows,
       .Inputs = "l",
       .Outputs = "r"},
      {.Op = op::ImageProjectiveTransformV2,
       .Rows = sizes::sameLetters,
       .Type = TypeRule::Rows,
       .Inputs = "rrp",
       .Outputs = "r"},
      {.Op = op::ImageProjectiveTransformV3,
       .Rows = sizes::sameLetters,
       .Type = TypeRule::Rows,
       .Inputs = "rrp",
       .Outputs = "r"},
      {.Op = op::LRNGrad,
       .Sizes = sizes::same,
       .Rows = sizes::sameLetters,
       .Type = TypeRule::Rows,
       .Inputs = "lrr",
       .Outputs = "r"},
      {.Op = op::MaxPool3DGrad,
       .Sizes = sizes::same,
       .Rows = sizes::sameLetters,
       .Type = TypeRule::Rows,
       .Inputs = "rrl",
       .Outputs = "r"},
      {.Op = op::MaxPool3DGradGrad,
       .Sizes = sizes::sameAsSecond,
       .Rows = sizes::sameLetters,
       .Type = TypeRule::Rows,
       .Inputs = "rrl",
       .Outputs = "r"},
      {.Op = op::MaxPoolGrad,
       .Sizes = sizes::same,
       .Rows = sizes::sameLetters,
       .Type = TypeRule::Rows,
       .Inputs = "rrl",
       .Outputs = "r"},
      {.Op = op::MaxPoolGradV2,
       .Sizes = sizes::same,
       .Rows = sizes::sameLetters,
       .Type = TypeRule::Rows,
       .Inputs = "rrlp",
       .Outputs = "r"},
      {.Op = op::MaxPoolGradGrad,
       .Sizes = sizes::sameAsSecond,
       .Rows = sizes::sameLetters,
       .Type = TypeRule::Rows,
       .Inputs = "rrl",
       .Outputs = "r"},
      {.Op = op::MaxPoolGradGradV2,
       .Sizes = sizes::sameAsSecond,
       .Rows = sizes::sameLetters,
       .Type = TypeRule::Rows,
       .Inputs = "rrlp",
       .Outputs = "r"},
      {.Op = op::MaxPoolWithArgmax,
       .Sizes = sizes::pool,
       .Rows = sizes::sameLetters,
       .Type = TypeRule::Rows,
       .Inputs = "r",
       .Outputs = "ri"},
      {.Op = op::ResizeBicubicGrad,
       .Sizes = sizes::sameAsSecond,
       .Rows = sizes::sameLetters,
       .Type = TypeRule::Rows,
       .Inputs = "lr",
       .Outputs = "r"},
      {.Op = op::ResizeBilinearGrad,
       .Sizes = sizes::sameAsSecond,
       .Rows = sizes::sameLetters,
       .Type = TypeRule::Rows,
       .Inputs = "lr",
       .Outputs = "r"},
      {.Op = op::ScaleAndTranslate,
       .Rows = sizes::sameLetters,
       .Type = TypeRule::Rows,
       .Inputs = "rp",
       .Outputs = "r"},
      {.Op = op::ScaleAndTranslateGrad,
       .Sizes = sizes::sameAsSecond,
       .Rows = sizes::sameLetters,
       .Type = TypeRule::Rows,
       .Inputs = "lrp",
       .Outputs = "r"},

      // Quantisation with given ranges.
      {.Op = op::FakeQuantWithMinMaxVarsGradient,
       .Rows = sizes::sameLetters,
       .Type = TypeRule::Rows,
       .Inputs = "lrp",
       .Outputs = "r+"},
      {.Op = op::FakeQuantWithMinMaxVarsPerChannel,
       .Sizes = sizes::same,
       .Rows = sizes::sameLetters,
       .Type = TypeRule::Rows,
       .Inputs = "r2p",
       .Outputs = "r"},
      {.Op = op::FakeQuantWithMinMaxVarsPerChannelGradient,
       .Rows = sizes::sameLetters,
       .Type = TypeRule::Rows,
       .Inputs = "l2r2p",
       .Outputs = "r+"},

      // Matrices and vectors of each row.
      {.Op = op::BandedTriangularSolve,
       .Rows = sizes::sameLetters,
       .Type = TypeRule::Rows,
       .Inputs = "r3",
       .Outputs = "r"},
      {.Op = op::MatrixSetDiag,
       .Sizes = sizes::same,
       .Rows = sizes::sameLetters,
       .Type = TypeRule::Rows,
       .Inputs = "r3r2",
       .Outputs = "r"},
      {.Op = op::MatrixSetDiagV2,
       .Sizes = sizes::same,
       .Rows = sizes::sameLetters,
       .Type = TypeRule::Rows,
       .Inputs = "r3r2p",
       .Outputs = "r"},
      {.Op = op::MatrixSetDiagV3,
       .Sizes = sizes::same,
       .Rows = sizes::sameLetters,
       .Type = TypeRule::Rows,
       .Inputs = "r3r2p",
       .Outputs = "r"},
      {.Op = op::MatrixSolveLs,
       .Rows = sizes::sameLetters,
       .Type = TypeRule::Rows,
       .Inputs = "r3r3p",
       .Outputs = "r"},
      {.Op = op::NthElement,
       .Rows = sizes::sameLetters,
       .Type = TypeRule::Rows,
       .Inputs = "r2p",
       .Outputs = "r"},
      {.Op = op::TridiagonalMatMul,
       .Rows = sizes::sameLetters,
       .Type = TypeRule::Rows,
       .Inputs = "r3",
       .Outputs = "r"},
      {.Op = op::TridiagonalSolve,
       .Rows = sizes::sameLetters,
       .Type = TypeRule::Rows,
       .Inputs = "r3",
       .Outputs = "r"},
      {.Op = op::LowerBound,
       .Sizes = sizes::sameAsSecond,
       .Rows = sizes::sameLetters,
       .Type = TypeRule::Rows,
       .Inputs = "r2",
       .Outputs = "r"},
      {.Op = op::UpperBound,
       .Sizes = sizes::sameAsSecond,
       .Rows = sizes::sameLetters,
       .Type = TypeRule::Rows,
       .Inputs = "r2",
       .Outputs = "r"},
      {.Op = op::IsotonicRegression,
       .Sizes = sizes::same,
       .Rows = sizes::sameLetters,
       .Type = TypeRule::Rows,
       .Inputs = "r2",
       .Outputs = "r"},

      // Classes of rows.
      {.Op = op::InTopK,
       .Sizes = sizes::sameAsSecond,
       .Rows = sizes::sameLetters,
       .Type = TypeRule::Rows,
       .Inputs = "rr",
       .Outputs = "r"},
      {.Op = op::InTopKV2,
       .Sizes = sizes::sameAsSecond,
       .Rows = sizes::sameLetters,
       .Type = TypeRule::Rows,
       .Inputs = "rrp",
       .Outputs = "r"},

      // Strings.
      {.Op = op::RegexFullMatch,
       .Sizes = sizes::same,
       .Rows = sizes::sameLetters,
       .Type = TypeRule::Rows,
       .Inputs = "rp",
       .Outputs = "r"},
      {.Op = op::RegexReplace,
       .Sizes = sizes::same,
       .Rows = sizes::sameLetters,
       .Type = TypeRule::Rows,
       .Inputs = "rp",
       .Outputs = "r"},
  };
  return Rules;
}

} // namespace graft
