//===- lib/infer/rules/ShapeOps.cpp - arithmetic of shapes ------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
// Arithmetic of shapes. It shows which element of a shape vector is the batch
// size. A result that is no monomial c * b^B * N^R, such as b + 1, becomes an
// unknown size.
//
// Ops that fill a tensor whose shape is an operand. If the shape has local
// rows, the tensor must be a shard of the global tensor, so all rows must have
// equal values.
//
//===----------------------------------------------------------------------===//

#include "lib/infer/rules/Rules.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/Sequence.h"
#include "llvm/Support/MathExtras.h"

#include "lib/infer/graph/PartedRows.h"

using namespace llvm;

namespace graft {

namespace sizes {

void shape(SizeContext &C) {
  for (unsigned I = 0; I < C.numData(); ++I)
    if (Dims X = C.in(I)) {
      C.setShape(I, C.number(I, int64_t(X->size())));
      C.setValue(I, *C.in(I));
    }
}

static void size(SizeContext &C) {
  C.setShape(0, {});
  if (Dims X = C.in(0)) {
    DimId Product = C.One;
    for (size_t I = 0; I < X->size(); ++I)
      Product = C.product(I, Product, (*C.in(0))[I]);
    C.setValue(0, Product);
  }
}

static void rank(SizeContext &C) {
  C.setShape(0, {});
  if (Dims X = C.in(0))
    C.setValue(0, C.number(0, int64_t(X->size())));
}

/// Unifies sizes that the step asserts to be equal (tf.debugging.assert_equal,
/// as in losses of sparse labels). If the sizes differ, the step fails. An
/// Assert without users is ignored, because TensorFlow does not run it. An
/// inserted Assert is ignored too, because only the nodes that wait for it may
/// rely on it.
static void assertion(SizeContext &C) {
  if (C.numData() == 0 || !C.G.hasUses(C.N) || C.node().Kind != Inserted::No)
    return;
  Endpoint E = C.Inputs[0];
  // Skip a Switch whose data and predicate are both the condition: it runs the
  // Assert only if the condition is false. Otherwise the condition holds
  // anyway.
  while (C.G.isOp(E.Node, op::Switch) && E.Port == 0 &&
         C.G.input(E.Node, 0) == C.G.input(E.Node, 1))
    E = C.G.input(E.Node, 0);
  if (C.G.isOp(E.Node, op::All))
    E = C.G.input(E.Node, 0);
  if (!C.G.isOp(E.Node, op::Equal))
    return;
  Dims X = C.Known.value(C.G.input(E.Node, 0)),
       Y = C.Known.value(C.G.input(E.Node, 1));
  if (!X || !Y || X->size() != Y->size())
    return;
  for (auto [Mine, Its] : zip(*X, *Y))
    C.sameCounts(Mine, Its);
}

/// Infers the axes along which the gradient of a broadcast operand is summed
/// (tensorflow/core/util/bcast.h).
static void broadcastGradientArgs(SizeContext &C) {
  C.setShape(0, C.slot(0));
  C.setShape(1, C.slot(1));
  Dims X = C.val(0), Y = C.val(1);
  if (!X || !Y)
    return;
  size_t Rank = std::max(X->size(), Y->size()),
         Both = std::min(X->size(), Y->size());
  C.sameRows(X->take_back(Both), Y->take_back(Both), Both);
  DimList AxesX, AxesY;
  for (size_t I = 0; I < Rank; ++I) {
    size_t FromEnd = Rank - I;
    DimId DX = FromEnd <= X->size() ? (*X)[X->size() - FromEnd] : C.One;
    DimId DY = FromEnd <= Y->size() ? (*Y)[Y->size() - FromEnd] : C.One;
    bool OneX = C.Table.isOne(DX), OneY = C.Table.isOne(DY);
    if (!OneX && !OneY && C.Table.find(DX) != C.Table.find(DY) &&
        !(C.isNeverOne(DX) && C.isNeverOne(DY)))
      return;
    // The op fails if the sizes differ. If it may not state this fact
    // (DimOptions::Denied), no axes are known.
    if (!OneX && !OneY) {
      C.same(DX, DY);
      if (C.Table.find(DX) != C.Table.find(DY))
        return;
    }
    if (OneX)
      AxesX.push_back(C.number(2 + I, int64_t(I)));
    if (OneY)
      AxesY.push_back(C.number(34 + I, int64_t(I)));
  }
  C.setValue(0, AxesX);
  C.setValue(1, AxesY);
}

/// Infers the offset of each part of a concatenation along one axis.
static void concatOffset(SizeContext &C) {
  auto Number = C.num(0);
  Dims Of = C.numData() > 1 ? C.val(1) : Dims();
  auto Axis =
      Number && Of ? axisIn(*Number, int64_t(Of->size())) : std::nullopt;
  // If the axis or a shape is unknown, the op may fail, so infer nothing.
  if (!Axis || *Number < 0 ||
      any_of(
          seq(1u, C.numData()),
          [&](unsigned I) {
            Dims S = C.val(I);
            return !S || *Axis >= S->size();
          }))
    return;
  DimId Sum = C.number(0, 0);
  for (unsigned I = 1; I < C.numData(); ++I) {
    Dims S = C.val(I);
    // The op checks that the sizes of all other axes are equal.
    if (Dims First = C.val(1); First && First->size() == S->size())
      for (size_t D = 0; D < S->size(); ++D)
        if (D != *Axis)
          C.same((*First)[D], (*S)[D]);
    DimList List(S->size(), C.number(1, 0));
    List[*Axis] = Sum;
    DimId Part = (*S)[*Axis];
    Sum = values::arithmeticElement(C, op::Add, 2 + I, Sum, Part);
    C.setShape(I - 1, C.number(100, int64_t(List.size())));
    C.setValue(I - 1, List);
  }
}

static void range(SizeContext &C) {
  auto Start = C.num(0), Delta = C.num(2);
  Dims Limit = C.val(1);
  if (!Start || !Delta || !Limit || Limit->size() != 1 || *Delta == 0) {
    C.setShape(0, C.slot(0));
    return;
  }
  DimId End = (*Limit)[0];
  if (*Start == 0 && *Delta == 1)
    C.setShape(0, End);
  auto Stop = C.num(1);
  if (!Stop)
    return;
  DimList List;
  for (int64_t V = *Start; *Delta > 0 ? V < *Stop : V > *Stop;) {
    if (List.size() == C.MaxElements)
      return;
    List.push_back(C.number(1 + List.size(), V));
    if (AddOverflow(V, *Delta, V))
      break;
  }
  if (*Start != 0 || *Delta != 1)
    C.setShape(0, C.number(0, int64_t(List.size())));
  C.setValue(0, List);
}

static void stitchValues(SizeContext &C) {
  unsigned Count = C.numData() / 2;
  DimList List;
  std::vector<bool> Set;
  for (unsigned I = 0; I < Count; ++I) {
    auto Rows = C.nums(I);
    Dims Data = C.val(Count + I);
    if (!Rows || !Data)
      return;
    for (size_t K = 0; K < Rows->size(); ++K) {
      int64_t R = (*Rows)[K];
      if (R < 0 || R >= 64 ||
          (Data->size() != Rows->size() && Data->size() != 1))
        return;
      if (size_t(R) >= List.size()) {
        List.resize(R + 1, C.One);
        Set.resize(R + 1);
      }
      List[R] = (*Data)[Data->size() == 1 ? 0 : K];
      Set[R] = true;
    }
  }
  if (!llvm::all_of(Set, [](bool B) { return B; }))
    return;
  C.setShape(0, C.number(0, int64_t(List.size())));
  C.setValue(0, List);
}

/// Infers the shape of a stitch of all parts of a DynamicPartition.
void stitch(SizeContext &C) {
  NodeId Partition = partitionStitched(C.G, C.N);
  if (Partition == NoNode) {
    stitchValues(C);
    return;
  }
  NodeId Range = numbersParted(C.G, Partition);
  auto Start = C.Known.numbers(C.G.input(Range, 0)),
       Delta = C.Known.numbers(C.G.input(Range, 2));
  Dims All = C.Known.shape({Range, 0}), Rows = C.in(C.numData() / 2);
  if (!Start || !Delta || *Start != ArrayRef<int64_t>{0} ||
      *Delta != ArrayRef<int64_t>{1} || !All || All->size() != 1 || !Rows ||
      Rows->empty())
    return;
  DimList List{All->front()};
  List.append(Rows->begin() + 1, Rows->end());
  C.setShape(0, List);
}

} // namespace sizes

namespace values {

static void invertPermutation(SizeContext &C) {
  Dims X = C.val(0);
  if (!X)
    return;
  auto Perm = C.nums(0);
  if (!Perm)
    return;
  SmallVector<int64_t, 8> Inverse(Perm->size());
  for (size_t I = 0; I < Perm->size(); ++I) {
    if ((*Perm)[I] < 0 || (*Perm)[I] >= int64_t(Perm->size()))
      return;
    Inverse[(*Perm)[I]] = static_cast<int64_t>(I);
  }
  DimList List;
  for (size_t I = 0; I < Inverse.size(); ++I)
    List.push_back(C.number(32 + I, Inverse[I]));
  C.setValue(0, List);
}

} // namespace values

namespace {

ReplicationType sizesType(const TypeContext &C, unsigned Port) {
  ReplicationType Type = ReplicationType::replicated();
  // Replicated and partial tensors have the same shape on all replicas.
  bool Same = all_of(seq(0u, C.numData()), [&](unsigned I) {
    ReplicationType X = C.operand(I);
    return (X.isReplicated() || X.isPartial()) && !X.Symbolic;
  });
  auto Value = C.D.value(C.out(Port));
  if (!Value)
    Type.Symbolic = !Same;
  else
    Type.Symbolic = any_of(*Value, [&](DimId Dim) {
      return !C.D.table().isSame(Dim) && !(Same && !C.D.table().isKnown(Dim));
    });
  // An unreplicated node reads the sizes of global values.
  if (C.node().Count == Copies::Once && !C.D.isLocal(C.out(Port)))
    Type.Symbolic = false;
  return Type;
}

/// Infers the type of a ZerosLike or OnesLike from the shape of the operand.
ReplicationType likeType(TypeContext &C, bool Zero) {
  ReplicationType X = C.operand(0), Type = ReplicationType::replicated();
  int Axis = C.D.batchAxis(C.out());
  if (X.isSharded())
    Type = ReplicationType::sharded(X.Axis);
  else if (X.isVarying() && C.localAxis(C.out()) == -2)
    return C.varyingLike(X);
  else if (Axis >= 0)
    Type = ReplicationType::sharded(Axis);
  Type.Order =
      Type.isSharded() ? ReplicationType::AnyOrder : ReplicationType::InOrder;
  Type.Zero = Zero;
  return Type;
}

/// Infers the type of a tensor that is filled with one value.
ReplicationType fillType(TypeContext &C) {
  ReplicationType Value = C.numeric(1);
  if (Value.isVarying())
    return C.varyingLike(Value);
  if (C.operand(0).isTrue() && C.D.batchAxis(C.out()) < 0)
    return Value;
  int Axis = C.isSize(0) ? C.localAxis(C.out()) : -2;
  if (Axis == -2)
    return C.varying("makes a tensor of a per-replica size");
  if (Axis < 0)
    return Value;
  if (Value.isPartial())
    Value = C.reduced(1);
  ReplicationType Type = ReplicationType::sharded(Axis, Value.K);
  Type.Order = ReplicationType::AnyOrder;
  Type.Zero = Value.Zero;
  return Type;
}

/// Infers the type of a Tile or BroadcastTo.
ReplicationType tileType(TypeContext &C) {
  ReplicationType X = C.numeric(0);
  if (X.isVarying())
    return C.varyingLike(X);
  bool IsTrue =
      C.operand(1).isTrue() && (X.isSharded() || C.D.batchAxis(C.out()) < 0);
  if (IsTrue && !X.isSharded())
    return X;
  int Axis = C.isSize(1) ? C.localAxis(C.out()) : -2;
  if (X.isSharded()) {
    int At = C.alignedAxis(0, X.Axis);
    auto In = C.shape(0), Out = C.D.shape(C.out());
    bool Keeps =
        C.isSize(1) && (IsTrue || Axis == At) && At >= 0 && In && Out &&
        C.D.table().find((*In)[X.Axis]) == C.D.table().find((*Out)[At]);
    if (!Keeps)
      return C.varying("repeats the rows of the batch");
    ReplicationType Rows = ReplicationType::sharded(At, X.K);
    Rows.Zero = X.Zero;
    return Rows;
  }
  if (Axis == -2)
    return C.varying("makes a tensor of a per-replica size");
  if (Axis < 0)
    return X;
  if (X.isPartial())
    X = C.reduced(0);
  ReplicationType Rows = ReplicationType::sharded(Axis, X.K);
  Rows.Zero = X.Zero;
  if (C.broadcastsAlong(0, Axis))
    Rows.Order = ReplicationType::AnyOrder;
  else if (C.opName() == op::BroadcastTo)
    return C.varying("broadcasts a replicated value along the batch axis, "
                     "where its size may not be 1");
  return Rows;
}

} // namespace

namespace types {

static void shapeOf(TypeContext &C) {
  for (unsigned Port = 0; Port < C.numResults(); ++Port)
    C.set(Port, sizesType(C, Port));
}

/// Returns true if a BroadcastGradientArgs compares the rows of a replica with
/// a number above 1, or with an unknown number that is the same on all
/// replicas, such as the rows of the whole batch. Such an op would fail.
static bool comparesRows(const TypeContext &C) {
  auto X = C.D.value(C.input(0)), Y = C.D.value(C.input(1));
  if (!X || !Y)
    return false;
  const DimTable &Table = C.D.table();
  auto IsRows = [&](DimId D) { return Table.hasSym(D) && !Table.isSame(D); };
  auto IsNumber = [&](DimId D) {
    return !Table.hasSym(D) &&
           (Table.number(D) > 1 ||
            (Table.number(D) == UnknownSize && Table.isSame(D)));
  };
  size_t Both = std::min(X->size(), Y->size());
  return any_of(zip(X->take_back(Both), Y->take_back(Both)), [&](auto Pair) {
    auto [Mine, Its] = Pair;
    return (IsRows(Mine) && IsNumber(Its)) || (IsNumber(Mine) && IsRows(Its));
  });
}

/// Types an op that fails if the sizes in its operands are incompatible. Local
/// sizes and the unknown sizes of a replicated tensor may be incompatible.
static void comparedSizes(TypeContext &C) {
  bool AnyLocal = false, AnyOpen = false;
  for (unsigned I = C.opName() == op::ConcatOffset ? 1 : 0; I < C.numData();
       ++I) {
    bool IsKnown = C.D.value(C.input(I)).has_value();
    bool IsSize = C.operand(I).Symbolic;
    AnyLocal |= IsSize;
    AnyOpen |= !IsKnown && !IsSize && C.operand(I).isReplicated();
  }
  if (AnyLocal && AnyOpen)
    C.setAll(C.varying("compares per-replica sizes with those of a tensor of "
                       "unknown rank"));
  else if (AnyLocal && C.isOp(op::BroadcastGradientArgs) && comparesRows(C))
    C.setAll(C.varying("compares the rows of a replica with a number that is "
                       "the same on all replicas"));
  else
    shapeOf(C);
}

void zeros(TypeContext &C) {
  // Zeros in a list have the shape of the elements that they are added to.
  if (C.G.outputType(C.N, 0) == DT_VARIANT && !C.operand(0).isVarying())
    return C.setAll(ReplicationType::nothing());
  C.setAll(likeType(C, /*Zero=*/true));
}
void ones(TypeContext &C) { C.setAll(likeType(C, /*Zero=*/false)); }
void fill(TypeContext &C) { C.setAll(fillType(C)); }
void tile(TypeContext &C) { C.setAll(tileType(C)); }
bool tileIndices(TypeContext &C) { return moveNumbers(C, tileType); }

} // namespace types

namespace {

using namespace trait;

constexpr OpRule ShapeOf = {.Type = types::shapeOf,
                            .Is = NotOfTrue | TakesUnequalRows};

} // namespace

ArrayRef<OpRule> families::shapeOps() {
  static const OpRule Rules[] = {
      entry(op::Shape, ShapeOf,
            {.Sizes = sizes::shape,
             .Is = ReadsSizes,
             .Elements = ElementsOf::SizesOfFirst}),
      entry(op::ShapeN, ShapeOf,
            {.Sizes = sizes::shape,
             .Is = ReadsSizes,
             .Elements = ElementsOf::SizesOfPort}),
      entry(op::Size, ShapeOf,
            {.Sizes = sizes::size,
             .Is = ReadsSizes,
             .Elements = ElementsOf::SizesOfFirst}),
      entry(op::Rank, ShapeOf,
            {.Sizes = sizes::rank,
             .Is = ReadsSizes,
             .Elements = ElementsOf::Nothing}),
      {.Op = op::Assert, .Sizes = sizes::assertion},
      entry(op::BroadcastGradientArgs, ShapeOf,
            {.Sizes = sizes::broadcastGradientArgs,
             .Type = types::comparedSizes,
             .Is = ComparesSizes,
             .Elements = ElementsOf::Nothing}),
      entry(op::ConcatOffset, ShapeOf,
            {.Sizes = sizes::concatOffset, .Type = types::comparedSizes}),
      {.Op = op::DynamicStitch,
       .Sizes = sizes::stitch,
       .Type = types::whole,
       .LocalIndices = types::stitchIndices,
       .ComparedOperands = AllOperands},
      {.Op = op::InvertPermutation,
       .Sizes = sizes::same,
       .Values = values::invertPermutation,
       .Type = types::whole,
       .LocalIndices = types::wholeIndices,
       .SizeOperands = AnyInteger,
       .ComparedOperands = AllOperands},
      {.Op = op::Range,
       .Sizes = sizes::range,
       .Type = types::none,
       .LocalIndices = types::rangeIndices,
       .SizeOperands = operands(0, 1, 2),
       .LengthOperands = operands(0, 1, 2),
       .Elements = ElementsOf::Range},
  };
  return Rules;
}

} // namespace graft
