//===- lib/certify/compare/LoopCheck.cpp - check of loops -------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "lib/certify/compare/LoopCheck.h"

#include "lib/graph/AttrWire.h"
#include "lib/infer/batch/LocalSizes.h"

#include "llvm/ADT/STLExtras.h"

using namespace llvm;

namespace graft {

void checkLoops(const Graph &G, const LoopInfo &Loops,
                function_ref<void(NodeId, const Twine &)> Error) {
  auto IsPerReplica = [&](NodeId N) {
    return G.node(N).Count == Copies::PerReplica;
  };
  for (NodeId First : Loops.nests()) {
    bool AnyCopies = any_of(Loops.nest(First), IsPerReplica);
    for (NodeId N : Loops.nest(First)) {
      if (AnyCopies && !IsPerReplica(N))
        Error(N, "is unreplicated but in a loop that every replica runs by "
                 "itself; move op " +
                     G.opName(N) + " out of the loop");
      if (Inserted Kind = G.node(N).Kind;
          Kind != Inserted::No && Kind != Inserted::Again)
        Error(
            N,
            "was inserted into a loop, where replicas cannot exchange values");
    }
  }
  for (NodeId Handle : Loops.handles())
    for (NodeId User : Loops.usersOf(Handle))
      if (isLocalHandleOp(G.opName(Handle)) && IsPerReplica(User) &&
          !IsPerReplica(Handle))
        Error(User, "every replica uses '" + G.name(Handle) +
                        "', which is unreplicated");
}

/// Returns true if \p Now equals \p Was, except that a size that depends on the
/// batch is a per-replica size. \p Sizes has the inferred sizes of the shape.
static bool isLocalShape(const DimAnalysis &Dims, ArrayRef<DimId> Sizes,
                         ArrayRef<int64_t> Was, ArrayRef<int64_t> Now,
                         unsigned Replicas) {
  if (Was.size() != Now.size() || Sizes.size() != Now.size())
    return false;
  for (size_t I = 0; I < Now.size(); ++I) {
    int64_t Times =
        Now[I] > 0 ? timesLarger(Dims.table(), Sizes[I], Replicas) : 1;
    if (Now[I] * Times != Was[I])
      return false;
  }
  return true;
}

bool isLocalStatedShape(const Graph &G, const DimAnalysis &Dims, NodeId N,
                        StringRef Was, std::optional<StringRef> Now,
                        unsigned Replicas) {
  auto Sizes = statedSizes(G, Dims, N);
  if (!Sizes)
    return Now == Was;
  auto OldBytes = bytesField(Was, AttrShape),
       NewBytes = Now ? bytesField(*Now, AttrShape) : std::nullopt;
  if (!OldBytes || !NewBytes)
    return false;
  ShapeValue Old = parseShape(*OldBytes), New = parseShape(*NewBytes);
  if (Old.UnknownRank)
    return Now == Was;
  return !New.UnknownRank &&
         isLocalShape(Dims, *Sizes, Old.Dims, New.Dims, Replicas);
}

bool isLocalSplat(const Graph &G, const DimAnalysis &Dims, NodeId N,
                  StringRef Was, unsigned Replicas) {
  auto Value = G.attr(N, "value");
  auto Old = tensorValue(Was), New = constValue(G, N);
  auto Shape = Dims.shape({N, 0});
  if (!Value || !Old || !New || !Shape ||
      !isLocalShape(Dims, *Shape, Old->Shape.Dims, New->Shape.Dims, Replicas))
    return false;
  auto Resized = resizeSplat(Was, New->Shape.Dims);
  return Resized && Resized == resizeSplat(*Value, New->Shape.Dims);
}

} // namespace graft
