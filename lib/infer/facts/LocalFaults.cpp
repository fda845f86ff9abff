//===- lib/infer/facts/LocalFaults.cpp - faults of one replica ------------===//
//
// SPDX-License-Identifier: Apache-2.0
//
// Finds, op by op, the unrelated nodes that may fail on a replica, from the
// bits of sizes and numbers that LocalRuns.cpp infers. For every op with a
// rule, test/conformance/exhaust checks with TensorFlow that each node without
// a reported fault can run.
//
//===----------------------------------------------------------------------===//

#include "lib/graph/Walk.h"
#include "lib/infer/facts/LocalRuns.h"
#include "lib/infer/rules/Rules.h"
#include "lib/infer/sizes/RaggedRows.h"
#include "lib/ops/NoRows.h"
#include "lib/ops/Ops.h"

#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/Sequence.h"
#include "llvm/Support/MathExtras.h"

#include <algorithm>

using namespace llvm;

namespace graft {

/// Returns the size of \p E along \p Axis, if it is known.
std::optional<Sym> LocalRuns::size(Endpoint E, unsigned Axis) const {
  auto Shape = Facts.Dims.shape(E);
  return Shape && Axis < Shape->size() ? Facts.Dims.table().sym((*Shape)[Axis])
                                       : std::nullopt;
}

/// Returns the number of local rows of \p E along \p Axis if the graph declares
/// it, else UnknownSize.
int64_t LocalRuns::knownRows(Endpoint E, unsigned Axis) const {
  auto Shape = Facts.Dims.shape(E);
  return IsStatic && Shape && Axis < Shape->size()
             ? Facts.Dims.localNumber((*Shape)[Axis])
             : UnknownSize;
}

/// Returns true if the size of \p E along \p Axis may be per-replica. If \p
/// Axis is -1, returns true if this may hold for any axis.
bool LocalRuns::hasOwnAxis(Endpoint E, int Axis) const {
  if (auto Shape = Facts.Dims.shape(E); Shape && Axis >= 0) {
    uint8_t Known = 0;
    if (static_cast<size_t>(Axis) >= Shape->size())
      return false;
    if (ofDims((*Shape)[Axis], Known))
      return Known & OwnSize;
  }
  return hasOwnSize(E);
}

/// Returns true if the elements of \p Index are in range along \p Axis of \p
/// Table on every replica. Assumes that they are in range in the single-device
/// step.
bool LocalRuns::isOfRows(Endpoint Index, Endpoint Table, int Axis) const {
  if (!hasOwnAxis(Table, Axis) || Facts.Types.type(Index).Zero)
    return true;
  if (auto Numbers = Facts.Dims.numbers(Index)) {
    int64_t Known =
        Axis < 0 ? UnknownSize : knownRows(Table, static_cast<unsigned>(Axis));
    return all_of(*Numbers, [&](int64_t I) {
      return I == 0 || (Known != UnknownSize && I > 0 && I < Known);
    });
  }
  return (bits(Index) & (OwnNumber | AllNumber)) == OwnNumber;
}

constexpr StringRef OutOfRange =
    "looks up rows in a per-replica shard by indices that may be out of its "
    "range at run time";

/// Returns the fault of an op that reads or writes rows by index, or "".
std::string LocalRuns::faultOfLookup(NodeId N) const {
  const IndexUse &Use = ruleAt(N).Looks;
  if (Use.Index < 0 || G.intAttr(N, "batch_dims").value_or(0) != 0)
    return "";
  auto Input = [&](unsigned I) { return G.input(N, I); };
  // Each column of the indices selects along one of the first axes.
  auto IsOfAll = [&](Endpoint Index, Endpoint Table) {
    auto Shape = Facts.Dims.shape(Index);
    auto Depth = Shape && !Shape->empty()
                     ? Facts.Dims.table().sym(Shape->back())
                     : std::nullopt;
    if (!Depth || !Depth->isNumber())
      return isOfRows(Index, Table, -1);
    for (int Axis = 0; Axis < std::min<int64_t>(Depth->C, MaxRank); ++Axis)
      if (!isOfRows(Index, Table, Axis))
        return false;
    return true;
  };
  auto Axis = [&](Endpoint Table) {
    auto Shape = Facts.Dims.shape(Table);
    if (Use.By == IndexUse::LastAxis)
      return Shape ? static_cast<int>(Shape->size()) - 1 : -1;
    if (!G.isOp(N, op::GatherV2))
      return 0;
    auto V = Facts.Dims.numbers(Input(2));
    auto At = V && V->size() == 1
                  ? axisIn(V->front(), Shape            ? int64_t(Shape->size())
                                       : V->front() < 0 ? -1
                                                        : int64_t(MaxRank))
                  : std::nullopt;
    return At ? static_cast<int>(*At) : -1;
  };
  Endpoint Index = Input(static_cast<unsigned>(Use.Index)),
           Table = Use.Table < 0 ? Endpoint{N, 0}
                                 : Input(static_cast<unsigned>(Use.Table));
  bool Fits = Use.By == IndexUse::Columns ? IsOfAll(Index, Table)
                                          : isOfRows(Index, Table, Axis(Table));
  // The row numbers of another tensor may be out of range in a shard.
  if (Use.By == IndexUse::OtherRows && hasOwnAxis(Table, 0) &&
      !Facts.Types.type(Index).Zero && !Facts.Dims.numbers(Index))
    Fits = false;
  return Fits ? "" : OutOfRange.str();
}

/// Returns true if operand 0 of \p N surely has elements \p Begin to \p Begin +
/// \p Size along \p Axis, the batch axis of a shard.
bool LocalRuns::fitsInto(NodeId N, unsigned Axis, int64_t Begin,
                         int64_t Size) const {
  int64_t Known = knownRows(G.input(N, 0), Axis), End;
  return !AddOverflow(Begin, Size, End) &&
         End <= (Known == UnknownSize ? 1 : Known);
}

constexpr StringRef Uneven =
    "splits a per-replica shard, whose rows may not be a multiple of the "
    "number of parts";
constexpr StringRef TooShort =
    "takes a fixed number of rows, and a replica may have fewer";

/// Returns the only element of input \p I of \p N, if it is known.
std::optional<int64_t> LocalRuns::numberOf(NodeId N, unsigned I) const {
  auto V = Facts.Dims.numbers(G.input(N, I));
  return V && V->size() == 1 ? std::optional(V->front()) : std::nullopt;
}

/// Returns true if a replica can split its shard of \p E along \p Axis into \p
/// Parts parts of equal length.
bool LocalRuns::divides(Endpoint E, unsigned Axis, int64_t Parts) const {
  int64_t Known = knownRows(E, Axis);
  if (Parts <= 0 || (Known != UnknownSize && Known % Parts == 0))
    return true;
  auto S = size(E, Axis);
  // If the size of the axis is unknown, only axis 0 is assumed to hold rows.
  if (!S)
    return Axis != 0 || !hasOwnAxis(E, 0);
  return !S->isLocal() || S->C % Parts == 0;
}

/// Returns the fault of an op that splits rows into parts, or "".
std::string LocalRuns::faultOfSplit(NodeId N) const {
  // The tensor that is split.
  bool Even = G.isOp(N, op::Split), Parted = G.isOp(N, op::SplitV);
  Endpoint X = G.input(N, Even ? 1 : 0);
  if (G.isOp(N, op::BatchToSpace) || G.isOp(N, op::BatchToSpaceND)) {
    int64_t Side = G.intAttr(N, "block_size").value_or(1), Parts = 1;
    bool Fits = !MulOverflow(Side, Side, Parts);
    if (auto Block = G.isOp(N, op::BatchToSpaceND)
                         ? Facts.Dims.numbers(G.input(N, 1))
                         : std::nullopt)
      for (int64_t Each : *Block)
        Fits = Fits && !MulOverflow(Parts, Each, Parts);
    return Fits && divides(X, 0, Parts) ? "" : Uneven.str();
  }
  if (!Even && !Parted && !G.isOp(N, op::Unpack))
    return "";
  auto At = Even     ? numberOf(N, 0)
            : Parted ? numberOf(N, 2)
                     : std::optional(G.intAttr(N, "axis").value_or(0));
  auto Shape = Facts.Dims.shape(X);
  int64_t Rank = Shape ? int64_t(Shape->size()) : MaxRank;
  auto Along = At && (Shape || *At >= 0) ? axisIn(*At, Rank) : std::nullopt;
  if (!Along)
    return "";
  unsigned Axis = *Along;
  auto Parts = static_cast<int64_t>(Facts.Dims.numOutputs(N));
  if (Even)
    return divides(X, Axis, Parts) ? "" : Uneven.str();
  auto S = size(X, Axis);
  if (S ? !S->isLocal() : Axis != 0 || !hasOwnAxis(X, 0))
    return "";
  int64_t Known = knownRows(X, Axis);
  if (!Parted)
    return Known == Parts ? "" : Uneven.str();
  // The sizes must add up to the row count. So either all are numbers, or all
  // are multiples of the row count. A part of size -1 has the remaining rows.
  auto Sizes = Facts.Dims.value(G.input(N, 1));
  if (!Sizes)
    return "";
  int64_t Sum = 0;
  bool Open = false, OfRows = false, OfOthers = false;
  for (DimId D : *Sizes) {
    auto Part = Facts.Dims.table().sym(D);
    if (!Part || (Part->isLocal() && (!S || Part->Rows != S->Rows)))
      return TooShort.str();
    if (Part->isNumber() && Part->C < 0) {
      Open = true;
      continue;
    }
    (Part->isLocal() ? OfRows : OfOthers) = true;
    if (AddOverflow(Sum, Part->C, Sum))
      return TooShort.str();
  }
  int64_t Whole = OfRows ? S->C : Known;
  bool Fits = !(OfRows && OfOthers) &&
              (Open ? Whole != UnknownSize && Whole >= Sum : Whole == Sum);
  return Fits ? "" : TooShort.str();
}

/// Returns the fault of an op that reads or mirrors a part of the rows, or "".
std::string LocalRuns::faultOfPart(NodeId N) const {
  const DimTable &Table = Facts.Dims.table();
  auto Shape = Facts.Dims.shape(G.input(N, 0));
  if (!Shape)
    return "";
  // An FFT reads as many elements along each transformed axis as its length
  // operand requires.
  if (auto Lengths = G.opName(N).contains("RFFT")
                         ? Facts.Dims.numbers(G.input(N, 1))
                         : std::nullopt;
      Lengths && Lengths->size() <= Shape->size())
    for (unsigned I = 0; I < Lengths->size(); ++I) {
      auto Axis = static_cast<unsigned>(Shape->size() - Lengths->size() + I);
      if (auto S = size(G.input(N, 0), Axis);
          S && S->isLocal() && !fitsInto(N, Axis, 0, (*Lengths)[I]))
        return TooShort.str();
    }
  if (G.isOp(N, op::Slice)) {
    auto Begin = Facts.Dims.value(G.input(N, 1)),
         Size = Facts.Dims.value(G.input(N, 2));
    for (unsigned I = 0; I < Shape->size() && Size && I < Size->size(); ++I) {
      auto Dim = Table.sym((*Shape)[I]), Count = Table.sym((*Size)[I]);
      if (!Dim || !Dim->isLocal() || !Count || !Count->isNumber())
        continue;
      auto From =
          Begin && I < Begin->size() ? Table.sym((*Begin)[I]) : std::nullopt;
      if (!From || !From->isNumber()) {
        if (!isOfRows(G.input(N, 1), G.input(N, 0), static_cast<int>(I)))
          return OutOfRange.str();
        continue;
      }
      int64_t First = From->C;
      if (Count->C == -1 ? First > 0 && !fitsInto(N, I, First, 0)
                         : !fitsInto(N, I, First, Count->C))
        return TooShort.str();
    }
  }
  // A replica must have the elements that MirrorPad mirrors.
  if (G.isOp(N, op::MirrorPad)) {
    NodeId Of = G.input(N, 1).Node;
    auto Paddings = G.isOp(Of, op::Const) ? constValue(G, Of) : std::nullopt;
    bool Known = Paddings && Paddings->HasInts &&
                 Paddings->Ints.size() == 2 * Shape->size();
    int64_t Edge = G.stringAttr(N, "mode") == StringRef("REFLECT") ? 1 : 0;
    for (unsigned I = 0; I < Shape->size(); ++I) {
      auto Dim = Table.sym((*Shape)[I]);
      if (!Dim || !Dim->isLocal())
        continue;
      int64_t Most =
          Known ? std::max(Paddings->Ints[2 * I], Paddings->Ints[2 * I + 1])
                : 1;
      if (Most > 0 && !fitsInto(N, I, 0, Most + Edge))
        return TooShort.str();
    }
  }
  if (G.isOp(N, op::StridedSlice) &&
      G.intAttr(N, "ellipsis_mask").value_or(0) == 0 &&
      G.intAttr(N, "new_axis_mask").value_or(0) == 0) {
    int64_t Shrink = G.intAttr(N, "shrink_axis_mask").value_or(0);
    auto Begin = Facts.Dims.value(G.input(N, 1));
    for (unsigned I = 0; I < Shape->size(); ++I) {
      auto Dim = Table.sym((*Shape)[I]);
      auto From =
          Begin && I < Begin->size() ? Table.sym((*Begin)[I]) : std::nullopt;
      if (!(Shrink >> I & 1) || !Dim || !Dim->isLocal())
        continue;
      if (!From || !From->isNumber()) {
        if (!isOfRows(G.input(N, 1), G.input(N, 0), static_cast<int>(I)))
          return OutOfRange.str();
        continue;
      }
      if (!fitsInto(N, I, 0, From->C < 0 ? -From->C : From->C + 1))
        return TooShort.str();
    }
  }
  return "";
}

/// Returns true if the local elements of \p E may fill whole rows of the shape
/// \p Target, which has one size of -1.
bool LocalRuns::fillsRows(Endpoint E, ArrayRef<DimId> Target) const {
  auto Shape = Facts.Dims.shape(E);
  // If a tensor has two batch axes, a replica has less than 1/N of its
  // elements.
  if (Shape && count_if(*Shape, [&](DimId D) {
                 auto S = Facts.Dims.table().sym(D);
                 return S && S->isLocal();
               }) > 1)
    return false;
  int64_t Elements = 1, Row = 1;
  for (DimId D : Shape ? *Shape : ArrayRef<DimId>())
    if (int64_t Size = Facts.Dims.localNumber(D);
        Size < 0 || MulOverflow(Elements, Size, Elements))
      return true;
  for (DimId D : Target)
    if (int64_t Size = Facts.Dims.localNumber(D);
        Size != -1 && (Size <= 0 || MulOverflow(Row, Size, Row)))
      return true;
  return !Shape || Elements % Row == 0;
}

/// Returns the fault of an op with an operand that lists the sizes of a tensor,
/// or "".
std::string LocalRuns::faultOfShape(NodeId N) const {
  const DimTable &Table = Facts.Dims.table();
  constexpr StringRef Fixed = "applies a size that does not scale with the "
                              "batch to a per-replica shard";
  if (IsStatic && takesListOfAll(N))
    return Fixed.str();
  if (G.isOp(N, op::Reshape) || G.isOp(N, op::BroadcastTo)) {
    auto Target = Facts.Dims.value(G.input(N, 1));
    bool Open = Target &&
                any_of(*Target, [&](DimId D) { return Table.number(D) == -1; });
    uint8_t To = in(N, 1) & (OwnNumber | AllNumber);
    // A shape vector of unknown elements may contain -1.
    if (in(N, 0) & Rows && Target && To == 0 &&
        (!Open || !fillsRows(G.input(N, 0), *Target)))
      return Fixed.str();
    // BroadcastTo repeats only axes of size 1.
    auto X = Facts.Dims.shape(G.input(N, 0));
    if (G.isOp(N, op::BroadcastTo) && Target && X &&
        X->size() <= Target->size() &&
        any_of(zip(*X, Target->take_back(X->size())), [&](auto Pair) {
          auto [Has, Wants] = Pair;
          auto S = Table.sym(Wants);
          return S && S->isLocal() && !Table.isOne(Has) && isOther(Has, Wants);
        }))
      return Fixed.str();
  }
  // Operand 0 lists the sizes of a tensor. The first must be the number of rows
  // of the last operand, as in Conv2DBackpropInput.
  if (ruleAt(N).Is & trait::SizesOfRows) {
    auto Sizes = Facts.Dims.value(G.input(N, 0));
    Endpoint Rows = G.input(N, G.node(N).NumData - 1);
    auto Dy = size(Rows, 0);
    auto Batch =
        Sizes && !Sizes->empty() ? Table.sym(Sizes->front()) : std::nullopt;
    // If the number of rows is unknown, its origin tells if the rows may be
    // those of one replica.
    if (!Dy && Batch && Batch->isLocal() != hasOwnAxis(Rows, 0) &&
        (!Batch->isLocal() || !(bits(Rows) & OfRows)))
      return Fixed.str();
    if (Dy && Batch && !(*Dy == *Batch) && (Dy->isLocal() || Batch->isLocal()))
      return Fixed.str();
  }
  return "";
}

/// Returns true if \p N reads an empty list whose constant element shape may
/// contain a static batch size. Returns false unless \p N is a Merge, as at the
/// start of a loop, or an op without a type rule, such as a functional loop.
bool LocalRuns::takesListOfAll(NodeId N) const {
  if (ruleAt(N).Type && !G.isOp(N, op::Merge))
    return false;
  return any_of(G.dataInputs(N), [&](Endpoint E) {
    E = through(G, E, op::Enter, op::Identity);
    if (!G.isOp(E.Node, op::EmptyTensorList) &&
        !G.isOp(E.Node, op::TensorListReserve))
      return false;
    auto Element = Facts.Dims.numbers(G.input(E.Node, 0));
    return Element && any_of(*Element, [&](int64_t Size) {
             return is_contained(Batches, Size);
           });
  });
}

/// Returns the OwnSize and AllSize bits of the sizes that \p N requires to be
/// equal.
uint8_t LocalRuns::comparedSizes(NodeId N) const {
  const OpRule &Rule = ruleAt(N);
  bool OfAll = !Rule.Type || Rule.Is & trait::Elementwise;
  uint16_t Mask = OfAll ? AllOperands : Rule.ComparedOperands;
  bool WithSizes = Rule.Is & trait::ComparesWithSizes;
  if (Mask == AllOperands && !WithSizes && G.node(N).NumData < 2)
    return 0;
  uint8_t Result = WithSizes ? sizeOperands(N) : 0;
  for (unsigned I = 0; I < G.node(N).NumData; ++I)
    if (isOperand(Mask, I))
      Result |= in(N, I) & (OwnSize | AllSize);
  return Result;
}

/// Returns true if \p N requires the row count of one replica to equal a size
/// of a tensor that is not computed from these rows.
bool LocalRuns::comparesUnknown(NodeId N) const {
  const OpRule &Rule = ruleAt(N);
  if (!Rule.Inputs.empty())
    return comparesUnknownRows(N);
  if (G.opName(N).starts_with(op::BatchMatMul))
    return comparesUnknownLead(N);
  bool Aligned = Rule.Is & trait::Elementwise;
  uint16_t Mask = Aligned ? AllOperands : Rule.ComparedOperands;
  const DimTable &Table = Facts.Dims.table();
  auto Operands = G.dataInputs(N);
  // A concatenation compares the sizes of all axes except its own.
  std::optional<int64_t> Joined;
  if (Rule.Is & trait::JoinsRows && !G.isOp(N, op::Pack)) {
    unsigned Axis = G.isOp(N, op::Concat) ? 0 : G.node(N).NumData - 1;
    if (auto V = Facts.Dims.numbers(Operands[Axis]); V && V->size() == 1)
      Joined = V->front();
  } else if (Mask == AllOperands && !Aligned) {
    return comparesAnyUnknown(N);
  }
  auto IsOther = [&](unsigned I, size_t Rank, size_t Axis,
                     std::optional<Sym> Rows) {
    if (!isOperand(Mask, I) || in(N, I) & AllSize)
      return false;
    auto Shape = Facts.Dims.shape(Operands[I]);
    if (!Shape)
      return !(in(N, I) & OfRows);
    // Broadcasting aligns the last axes.
    size_t At = Aligned ? Axis + Shape->size() - Rank : Axis;
    if (At >= Shape->size())
      return false;
    // A tensor that is computed from rows may have the same number of rows,
    // unless its size is a number. If the op does not broadcast, different row
    // symbols are different sizes. Example: the rows that two conditions
    // select.
    auto Size = Table.sym((*Shape)[At]);
    return Size ? (Size->isNumber() ? Size->C != 1
                                    : !Aligned && Rows && !(*Size == *Rows))
                : !(in(N, I) & OfRows);
  };
  auto IsOwn = [&](DimId Size) {
    uint8_t Known = 0;
    return (ofDims(Size, Known) && Known & OwnSize) || Table.followsRows(Size);
  };
  for (unsigned I = 0; I < Operands.size(); ++I) {
    auto Shape = isOperand(Mask, I) && in(N, I) & OwnSize
                     ? Facts.Dims.shape(Operands[I])
                     : std::nullopt;
    // If no axis is known to be the batch axis, each axis may be.
    bool AnyOwn = Shape && any_of(*Shape, IsOwn);
    for (size_t Axis = 0; Shape && Axis < Shape->size(); ++Axis) {
      bool IsJoined =
          Joined && axisIn(*Joined, int64_t(Shape->size())) == unsigned(Axis);
      DimId Size = (*Shape)[Axis];
      if (IsJoined || (AnyOwn && !IsOwn(Size)))
        continue;
      for (unsigned J = 0; J < Operands.size(); ++J)
        if ((AnyOwn || J != I) &&
            IsOther(J, Shape->size(), Axis, Table.sym(Size)))
          return true;
    }
  }
  return false;
}

/// Implements comparesUnknown() for an op that works row by row. The letters in
/// OpRule::Inputs show the batch axes.
bool LocalRuns::comparesUnknownRows(NodeId N) const {
  bool Any = false, Others = false;
  std::optional<Sym> Rows;
  for (unsigned I = 0; I < G.node(N).NumData; ++I) {
    char Letter = letterOf(ruleAt(N).Inputs, I).first;
    if (Letter == 'p')
      continue;
    Endpoint E = G.input(N, I);
    int Axis = Letter == 't' || Letter == 'm' ? 1 : 0;
    auto Size = size(E, static_cast<unsigned>(Axis));
    if (hasOwnAxis(E, Axis)) {
      Any = true;
      // The row counts may differ. Example: two conditions select the rows.
      Others |= Rows && Size && !(*Rows == *Size);
      Rows = Size ? Size : Rows;
      continue;
    }
    Others |= (Size && Size->isNumber()) || !(bits(E) & (OfRows | AllSize));
  }
  return Any && Others;
}

/// Implements comparesUnknown() for a product of batches of matrices. Their
/// leading axes are aligned at the right.
bool LocalRuns::comparesUnknownLead(NodeId N) const {
  auto X = Facts.Dims.shape(G.input(N, 0)), Y = Facts.Dims.shape(G.input(N, 1));
  if (!X || !Y || X->size() < 2 || Y->size() < 2)
    return comparesAnyUnknown(N);
  const DimTable &Table = Facts.Dims.table();
  return any_of(zip(reverse(X->drop_back(2)), reverse(Y->drop_back(2))),
                [&](auto Pair) {
                  auto [A, B] = Pair;
                  auto S = Table.sym(A), T = Table.sym(B);
                  bool Any = (S && S->isLocal()) || (T && T->isLocal());
                  return Any && !Table.isOne(A) && !Table.isOne(B) &&
                         (!S || !T || !(*S == *T));
                });
}

/// Implements comparesUnknown() for an op without a list of compared axes.
/// Returns true if an operand without local rows has an unknown size that no
/// operand with local rows has. If the op may compare any size, every size
/// other than 1 suffices.
bool LocalRuns::comparesAnyUnknown(NodeId N) const {
  const DimTable &Table = Facts.Dims.table();
  // An einsum equation with "..." does not name all axes, so the op may compare
  // any size except 1.
  bool OfAll = ruleAt(N).SizeOperands == AnyInteger ||
               G.stringAttr(N, "equation").value_or("").contains("...");
  auto Operands = G.dataInputs(N);
  // Two conditions may select different numbers of rows.
  std::optional<Sym> Selected;
  for (unsigned I = 0; I < Operands.size() && G.isOp(N, op::Einsum); ++I)
    if (auto Shape = Facts.Dims.shape(Operands[I]))
      for (DimId D : *Shape) {
        auto S = Table.sym(D);
        if (!S || S->Ragged == 0)
          continue;
        if (Selected && !(*S == *Selected))
          return true;
        Selected = S;
      }
  DenseSet<DimId> Of;
  bool Any = sizeOperands(N) & OwnSize;
  for (unsigned I = 0; I < Operands.size(); ++I) {
    if (!(in(N, I) & OwnSize))
      continue;
    Any = true;
    if (auto Shape = Facts.Dims.shape(Operands[I]))
      for (DimId D : *Shape)
        Of.insert(Table.find(D));
  }
  return Any && any_of(seq(0u, unsigned(Operands.size())), [&](unsigned I) {
           if (in(N, I) & (OwnSize | OwnNumber | AllSize))
             return false;
           bool MayHave = in(N, I) & OfRows;
           auto Shape = Facts.Dims.shape(Operands[I]);
           if (!Shape)
             return OfAll && !MayHave;
           return any_of(*Shape, [&](DimId D) {
             bool Open = !Table.sym(D);
             return OfAll ? !Table.isOne(D) && !(Open && MayHave)
                          : Open && !MayHave && !Of.contains(Table.find(D));
           });
         });
}

/// Returns true if \p N combines two tensors element by element, and only one
/// of them has a size that depends on the values of one replica.
bool LocalRuns::comparesLengths(NodeId N) const {
  if (!(ruleAt(N).Is & (trait::Elementwise | trait::ComparesLengths)))
    return false;
  bool Any = false, Others = false;
  for (Endpoint E : G.dataInputs(N)) {
    if (bits(E) & Length) {
      Any = true;
      continue;
    }
    // Scalars, and parameters of constant sizes, are broadcast.
    auto Shape = Facts.Dims.shape(E);
    Others |= !Shape || any_of(*Shape, [&](DimId D) {
      auto S = Facts.Dims.table().sym(D);
      return !S || !S->isNumber();
    });
  }
  return Any && Others;
}

/// Returns true if \p Size differs from the required size \p Wanted: they are
/// different numbers, or only one of them follows the rows of one replica.
bool LocalRuns::isOther(DimId Size, DimId Wanted) const {
  int64_t Number = Facts.Dims.localNumber(Size),
          Other = Facts.Dims.localNumber(Wanted);
  if (Number != UnknownSize && Other != UnknownSize)
    return Number != Other;
  const DimTable &Table = Facts.Dims.table();
  auto S = Table.sym(Size), T = Table.sym(Wanted);
  return S && T && S->isLocal() != T->isLocal();
}

/// Returns a message if the sizes of a value that \p N writes differ from those
/// of the variable, or from those of the rows that the indices select.
/// Otherwise returns "".
std::string LocalRuns::faultOfUpdate(NodeId N) const {
  UpdateDef U = Facts.Vars.update(G, N);
  auto Var = Facts.Dims.shape(G.input(N, 0));
  auto Indices =
      U.Indices < 0
          ? std::nullopt
          : Facts.Dims.shape(G.input(N, static_cast<unsigned>(U.Indices)));
  if (!Var || (U.Indices >= 0 && (!Indices || Var->empty())))
    return "";
  for (int I = U.NumVars; I < int(G.node(N).NumData); ++I) {
    if (U.Indices >= 0 ? I != U.Grad : I == U.Indices)
      continue;
    SmallVector<DimId, 4> Wanted;
    if (Indices)
      Wanted.assign(Indices->begin(), Indices->end());
    append_range(Wanted, Indices ? Var->drop_front() : *Var);
    auto Shape = Facts.Dims.shape(G.input(N, static_cast<unsigned>(I)));
    if (Shape && Shape->size() == Wanted.size() &&
        any_of(zip(*Shape, Wanted), [&](auto Pair) {
          return isOther(std::get<0>(Pair), std::get<1>(Pair));
        }))
      return "writes a value whose size on each replica differs from that in "
             "the single-device step";
  }
  return "";
}

/// Returns true if a replica's operand of \p N may have no rows and the kernel
/// fails, or returns a wrong result, for no rows.
bool LocalRuns::mayLackRows(NodeId N) const {
  const DimTable &Table = Facts.Dims.table();
  NoRows What = Table.hasRagged() ? onNoRows(G.opName(N)) : NoRows::Right;
  auto MayLack = [&](Endpoint E) {
    auto Shape = Facts.Dims.shape(E);
    return Shape && any_of(*Shape, [&](DimId Size) {
             return mayBeNone(G, Facts.Dims, Size);
           });
  };
  if (What == NoRows::Right || none_of(G.dataInputs(N), [&](Endpoint E) {
        return !Facts.Types.type(E).isReplicated() && MayLack(E);
      }))
    return false;
  return any_of(seq(0u, Facts.Dims.numOutputs(N)), [&](unsigned Port) {
    Endpoint E{N, Port};
    return Facts.Types.natural(E).isUnrelated() &&
           (What == NoRows::Fails || !MayLack(E));
  });
}

std::string LocalRuns::fault(NodeId N) const {
  if (Facts.Vars.isUpdate(G, N))
    return faultOfUpdate(N);
  if (G.node(N).Kind != Inserted::No || !isUnproved(N))
    return "";
  if (mayLackRows(N))
    return "takes a tensor that may have no rows on a replica, and without "
           "rows TensorFlow's kernel fails or gives a wrong result";
  if (dividesByNone(G, Facts.Dims, N))
    return "divides by a number of rows that may be 0 on a replica";
  if (comparedSizes(N) == (OwnSize | AllSize))
    return "mixes a per-replica shard with rows of the whole batch, whose "
           "number differs";
  if (comparesUnknown(N))
    return "mixes a per-replica shard with a tensor that may have the rows of "
           "the whole batch";
  if (comparesLengths(N))
    return "combines a tensor whose size depends on the values of one replica "
           "with a tensor of another size";
  if (std::string Why = faultOfLookup(N); !Why.empty())
    return Why;
  if (std::string Why = faultOfSplit(N); !Why.empty())
    return Why;
  if (std::string Why = faultOfPart(N); !Why.empty())
    return Why;
  return faultOfShape(N);
}

std::vector<LocalRuns::Fault> LocalRuns::faults() const {
  std::vector<Fault> Result;
  if (Bits.empty())
    return Result;
  std::vector<bool> Fails(G.size());
  for (NodeId N : Facts.Order) {
    if (any_of(G.inputs(N), [&](Endpoint E) { return Fails[E.Node]; })) {
      Fails[N] = true;
      continue;
    }
    if (std::string Why = fault(N); !Why.empty()) {
      Fails[N] = true;
      Result.push_back({N, std::move(Why)});
    }
  }
  return Result;
}

} // namespace graft
