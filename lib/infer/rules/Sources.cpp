//===- lib/infer/rules/Sources.cpp - sources of values ----------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
// Constants, feeds, and elements of queues and iterators.
//
//===----------------------------------------------------------------------===//

#include "lib/infer/rules/Rules.h"

#include "lib/infer/graph/BatchSources.h"
#include "lib/program/Program.h"

#include "llvm/ADT/Sequence.h"

using namespace llvm;

namespace graft {

namespace sizes {

static void constant(SizeContext &C) {
  if (C.isKnown(0))
    return;
  auto Tensor = constValue(C.G, C.N);
  if (!Tensor)
    return;
  C.setZero(Tensor->AllZero);
  // If the constant was changed to local sizes, use its original values.
  std::optional<TensorValue> Was;
  if (auto Bytes = C.G.node(C.N).Flags & NF_MayHaveGraft
                       ? C.G.attr(C.N, OriginalAttr)
                       : std::nullopt)
    Was = tensorValue(*Bytes);
  if (Was && (Was->Shape.Dims.size() != Tensor->Shape.Dims.size() ||
              Was->Ints.size() != Tensor->Ints.size()))
    Was.reset();
  DimList Shape;
  for (size_t I = 0; I < Tensor->Shape.Dims.size(); ++I) {
    int64_t Size = Tensor->Shape.Dims[I];
    Shape.push_back(Was && Was->Shape.Dims[I] != Size
                        ? C.changedNumber(I, Was->Shape.Dims[I], Size)
                        : C.number(I, Size));
  }
  C.setShape(0, Shape);
  if (!Tensor->HasInts || Shape.size() > 1)
    return;
  // Each element gets a separate size variable, even an element that is 1.
  DimList Elements;
  for (size_t I = 0; I < Tensor->Ints.size(); ++I)
    Elements.push_back(C.changedNumber(
        64 + I, Was ? Was->Ints[I] : Tensor->Ints[I], Tensor->Ints[I]));
  C.setValue(0, Elements);
}

/// Returns true if each replica reads the whole feed, because its rank is
/// unknown and it may be a scalar. The feed is then assumed to be a scalar.
static bool isWhole(SizeContext &C) {
  auto TakesAnyRank = [&](NodeId User) {
    return is_contained({&same, &broadcast, &select, &shape},
                        ruleOf(C.G.opName(User)).Sizes);
  };
  bool HasMesh = any_of(seq(0u, C.G.numOps()), [&](uint32_t Op) {
    return C.G.opNameOf(Op) == MeshOp;
  });
  return HasMesh && !C.isSupposed() &&
         C.opName().starts_with(op::Placeholder) &&
         !C.G.anyUse(C.N, [&](Use U) {
           if (U.Index >= C.G.node(U.User).NumData || TakesAnyRank(U.User))
             return false;
           const OpDef *Def = C.G.opDefOf(C.G.node(U.User).Op);
           return !Def || Def->update().Kind == UpdateKind::None;
         });
}

void fromAttr(SizeContext &C) {
  auto Shape = C.shapeAttr("shape");
  if (!Shape || Shape->UnknownRank) {
    if (isWhole(C))
      C.setShape(0, {});
    return;
  }
  DimList List;
  C.sizesFrom("shape", List);
  C.setShape(0, List);
}

/// Infers the shape of a feed. A scalar integer may be a size that all replicas
/// share.
static void feed(SizeContext &C) {
  fromAttr(C);
  unsigned Type = C.G.outputType(C.N, 0);
  if (Dims X = C.out(0); X && X->empty() &&
                         (Type == DT_INT32 || Type == DT_INT64) &&
                         !C.isVariant(SizeContext::AnyAxis))
    C.setFed(C.slot(64));
}

/// Makes a size variable for each undeclared size. In particular, the row count
/// of a DequeueMany is not unified with the constant that requests it. The
/// constant does not change, because the queue returns the global batch.
void source(SizeContext &C) {
  auto Axes = ownBatchAxes(C.G, C.N);
  if (Axes)
    C.setOwnRows();
  // A DequeueMany returns equally many rows of each component.
  std::optional<DimId> Many;
  bool TakesMany = C.opName().starts_with(op::QueueDequeueMany) ||
                   C.opName().starts_with(op::QueueDequeueUpTo);
  for (unsigned Port = 0; Port < C.numOutputs(); ++Port) {
    auto Shape = sourceShape(C.G, {C.N, Port});
    if (!Shape || Shape->UnknownRank)
      continue;
    DimList List;
    for (size_t I = 0; I < Shape->Dims.size(); ++I) {
      unsigned Slot = 0x8000 + Port * 32 + I;
      List.push_back(Shape->Dims[I] < 0 ? C.slot(Slot)
                                        : C.number(Slot, Shape->Dims[I]));
    }
    if (TakesMany && !List.empty()) {
      if (!Many)
        Many = List[0];
      List[0] = *Many;
    }
    if (Axes && Port < Axes->size() && (*Axes)[Port] >= 0 &&
        size_t((*Axes)[Port]) < List.size())
      C.splitRows(List[(*Axes)[Port]], Port, {C.N, Port}, /*Own=*/true);
    C.setShape(Port, List);
  }
}

} // namespace sizes

namespace types {

static void constant(TypeContext &C) {
  if (auto Value = C.D.value(C.out()))
    return C.setAll(C.sizes(*Value));
  // A constant with local rows repeats one value per row (the certificate
  // checks it).
  int Axis = C.isPerReplica() ? C.D.batchAxis(C.out()) : -1;
  ReplicationType Type = Axis >= 0 ? ReplicationType::sharded(Axis)
                                   : ReplicationType::replicated();
  Type.Zero = C.D.isZero(C.N);
  C.setAll(Type);
}

/// Types a source of elements. An unreplicated source returns the global value.
/// If each replica reads a separate batch, the single-device step reads all
/// these batches, concatenated.
void source(TypeContext &C) {
  if (C.node().Count == Copies::Once)
    return C.setAll(ReplicationType::replicated());
  auto Axes = ownBatchAxes(C.G, C.N);
  for (unsigned Port = 0; Port < C.numResults(); ++Port)
    C.set(Port, Axes && Port < Axes->size() && (*Axes)[Port] >= 0
                    ? ReplicationType::sharded(static_cast<int>((*Axes)[Port]))
                    : C.varying("reads a different element on each replica"));
}

} // namespace types

namespace {

using namespace trait;

constexpr OpRule Source = {.Sizes = sizes::source,
                           .Type = types::source,
                           .Is = NotOfTrue | ReadsSource};

} // namespace

ArrayRef<OpRule> families::sources() {
  static const OpRule Rules[] = {
      // The value itself.
      {.Op = op::PlaceholderWithDefault,
       .Sizes = sizes::feed,
       .Type = types::pass,
       .LocalIndices = types::passIndices,
       .Is = TakesUnequalRows | KeepsRowOrder | LinearInSame,
       .Elements = ElementsOf::SamePort},

      // Sources.
      {.Op = op::Const,
       .Sizes = sizes::constant,
       .Type = types::constant,
       .Is = KeepsZeros | NotOfTrue},
      {.Op = op::Placeholder, .Sizes = sizes::feed},
      {.Op = op::PlaceholderV2, .Sizes = sizes::feed},
      entry(op::IteratorGetNext, Source),
      entry(op::IteratorGetNextSync, Source),
      entry(op::QueueDequeue, Source),
      entry(op::QueueDequeueMany, Source),
      entry(op::QueueDequeueManyV2, Source),
      entry(op::QueueDequeueUpTo, Source),
      entry(op::QueueDequeueUpToV2, Source),
      entry(op::QueueDequeueV2, Source),
  };
  return Rules;
}

} // namespace graft
