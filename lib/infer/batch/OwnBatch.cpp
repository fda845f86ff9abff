//===- lib/infer/batch/OwnBatch.cpp - a batch for each replica --*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
// If each of N replicas reads a batch, the step is the single-device step on
// the N batches, concatenated. Sizes that the graph reads from shapes are
// per-replica, as after a split. Constant shapes stay right. A number that is
// the batch size does not. For example, the gradient of a mean over a static
// batch contains that number, but the step on N batches has N times as many
// rows. The graph does not show which numbers are batch sizes. So graft refuses
// every number that may be one: a factor, a divisor, or a number that is added
// to a variable, such as a row count. Adding 1 is allowed, because such a
// variable counts steps.
//
//===----------------------------------------------------------------------===//

#include "lib/infer/batch/OwnBatch.h"

#include "lib/infer/batch/SpreadCopies.h"
#include "lib/infer/graph/BatchSources.h"
#include "lib/infer/graph/Conditions.h"
#include "lib/infer/graph/Loops.h"
#include "lib/infer/graph/Topology.h"
#include "lib/infer/sizes/Dims.h"
#include "lib/ops/OpTable.h"
#include "lib/ops/Ops.h"
#include "lib/program/JoinedBatches.h"

#include "llvm/Support/FormatVariadic.h"

#include <cmath>
#include <map>

using namespace llvm;

namespace graft {

std::optional<std::vector<NodeId>>
giveOwnBatches(Graph &G, std::vector<Feed> &Feeds, DiagnosticEngine &Diags) {
  std::map<NodeId, SmallVector<int64_t, 4>> Axes;
  auto IsRead = [&](const Feed &F) {
    return F.Axis >= 0 && isBatchRead(G.opName(F.At.Node));
  };
  for (const Feed &F : Feeds) {
    if (!IsRead(F))
      continue;
    SmallVector<int64_t, 4> &List = Axes[F.At.Node];
    List.resize(std::max<size_t>(List.size(), F.At.Port + 1), -1);
    List[F.At.Port] = F.Axis;
    // An unknown size may differ between replicas, unless it is the number of
    // rows that a QueueDequeueMany takes.
    auto Shape = sourceShape(G, F.At);
    bool Many = G.opName(F.At.Node).starts_with(op::QueueDequeueMany);
    for (size_t I = 0; Shape && I < Shape->Dims.size(); ++I)
      if (Shape->Dims[I] < 0 && !(Many && I == 0))
        Diags.unproved("batch", feedName(G, F.At),
                       formatv("axis {0} is not known to have the same size on "
                               "every replica; read a fixed number of rows, or "
                               "drop the remainder of the dataset",
                               I)
                           .str());
    if (!Shape || Shape->UnknownRank)
      Diags.unproved("batch", feedName(G, F.At),
                     "is not known to have the same shape on every replica");
  }
  if (Axes.empty() && none_of(Feeds, [&](const Feed &F) {
        return isJoinedBatch(G, F.At.Node);
      })) {
    Diags.error("",
                "--batch=per-replica: the step reads no batch from a queue or "
                "an iterator; use --batch=global for a batch that is fed");
    return std::nullopt;
  }
  std::vector<NodeId> Reads, Order;
  std::unique_ptr<const Conditions> When;
  if (Conditions::any(G)) {
    Order = topologicalOrder(G);
    When = std::make_unique<Conditions>(G, Order);
  }
  auto Loops = LoopInfo::find(G, Order);
  for (auto &[N, List] : Axes) {
    G.setAttr(N, BatchAttr, encodeIntListAttr(List));
    G.node(N).Count = Copies::PerReplica;
    // The queue is on one device, and so are the nodes that read it.
    G.node(N).Flags |= NF_FixedDevice;
    // If a run needs the batch of one replica, for example its row count, it
    // also dequeues the batches of the other replicas. So each step dequeues
    // one batch per replica.
    if (!(When && !When->of(N).empty()) && !(Loops && Loops->givesInside(N)))
      G.node(N).Flags |= NF_Led;
    else
      Diags.unproved("batch", G.name(N),
                     "is in a branch or a loop, so a run may read a batch for "
                     "one replica and none for the others; read the batch "
                     "outside of the branch or loop");
    Reads.push_back(N);
    if (Diags.wantsRemarks())
      Diags.remark(
          "batch", G.name(N),
          "each replica reads its own batch: the step is the single-device "
          "step on the batches of all replicas together, so a mean over the "
          "batch is over N times as many rows");
  }
  // A replica may read element 0 of one source and element 1 of another.
  if (Reads.size() > 1)
    Diags.unproved("batch", G.name(Reads[1]),
                   "--batch=per-replica: a replica may combine an element of "
                   "this queue or iterator with an element of '" +
                       G.name(Reads[0]).str() +
                       "' that does not belong to it; read both from one queue "
                       "or iterator if their elements belong together");
  G.markModified();
  erase_if(Feeds, IsRead);
  return Reads;
}

/// Returns the number that all elements of \p E are equal to, if constants
/// determine it. Sets \p At to the first of these constants.
static std::optional<double> numberAt(const Graph &G, Endpoint E, NodeId &At,
                                      unsigned Depth = 8) {
  StringRef Op = G.opName(E.Node);
  if (Op == op::Const) {
    At = E.Node;
    return constScalar(G, E.Node);
  }
  bool IsProduct = Op == op::Mul,
       IsQuotient = Op == op::RealDiv || Op == op::Div;
  if (Depth == 0 || G.node(E.Node).NumData == 0)
    return std::nullopt;
  if (Op == op::Fill)
    return numberAt(G, G.input(E.Node, 1), At, Depth - 1);
  if (Op == op::Cast || Op == op::Identity || Op == op::Reshape ||
      Op == op::Tile || Op == op::ExpandDims || Op == op::BroadcastTo)
    return numberAt(G, G.input(E.Node, 0), At, Depth - 1);
  if (!IsProduct && !IsQuotient)
    return std::nullopt;
  auto Y = numberAt(G, G.input(E.Node, 1), At, Depth - 1);
  auto X = Y ? numberAt(G, G.input(E.Node, 0), At, Depth - 1) : std::nullopt;
  if (!X)
    return std::nullopt;
  return IsProduct ? *X * *Y : *X / *Y;
}

bool checkOwnBatches(Graph &G, const VariableIndex &Vars,
                     ArrayRef<NodeId> Reads, DiagnosticEngine &Diags) {
  int64_t Rows = UnknownSize;
  for (NodeId N : Reads)
    for (auto [Port, Axis] : enumerate(*ownBatchAxes(G, N))) {
      auto Shape = sourceShape(G, {N, static_cast<uint32_t>(Port)});
      if (Axis >= 0 && Shape && size_t(Axis) < Shape->Dims.size() &&
          Shape->Dims[Axis] >= 0)
        Rows = Shape->Dims[Axis];
    }
  if (Rows == UnknownSize)
    return true;
  std::vector<NodeId> Order = topologicalOrder(G);
  DimAnalysis Dims(G, Order, {});
  for (const DimAnalysis::Conflict &C : Dims.conflicts()) {
    Diags.error(
        G.name(C.Node),
        "two sizes that must be equal here scale differently with the batch (" +
            Dims.describe(C.A) + " and " + Dims.describe(C.B) + ")");
    return false;
  }
  std::vector<NodeId> Sizes;
  for (NodeId N : Order) {
    bool IsConst = G.isOp(N, op::Const);
    if ((IsConst || isVariableOp(G.opName(N))) && Dims.batchAxis({N, 0}) >= 0) {
      Diags.error(
          G.name(N),
          "--batch=per-replica: this constant or variable has a row for each "
          "example of one batch, but the step reads the batches of all "
          "replicas; give it a shape that does not depend on the batch size");
      return false;
    }
    if (IsConst && Dims.isLocal({N, 0})) {
      G.node(N).Count = Copies::PerReplica;
      Sizes.push_back(N);
    }
  }
  spreadCopies(G, Vars, std::move(Sizes));
  // A number may be the batch size or, if it counts all elements of the batch,
  // a multiple of the batch size.
  auto MayBeSize = [&](double Number) {
    double Times = Number / static_cast<double>(Rows);
    return Times >= 0.5 && std::abs(Times - std::round(Times)) <= 1e-5 * Times;
  };
  auto Refuse = [&](NodeId At) {
    Diags.error(G.name(At),
                formatv("--batch=per-replica: this number may be the batch "
                        "size {0}, but the batches of all replicas together "
                        "have more rows; export the graph with an unknown "
                        "batch size, or use --batch=global with larger batches",
                        Rows)
                    .str());
    return false;
  };
  for (NodeId N : Order) {
    StringRef Op = G.opName(N);
    if (const OpDef *Def = G.opDef(N);
        Def && Def->update().Kind == UpdateKind::AssignAdd) {
      Endpoint Added = G.input(N, Def->update().Grad);
      NodeId At = Added.Node;
      auto Number = numberAt(G, Added, At);
      if (auto Elements = Dims.numbers(Added);
          !Number && Elements && Elements->size() == 1)
        Number = Elements->front();
      if (Number && !Dims.isLocal(Added) && std::abs(*Number) != 1 &&
          MayBeSize(std::abs(*Number)))
        return Refuse(At);
    }
    if (G.node(N).Count != Copies::PerReplica || Dims.value({N, 0}) ||
        (Op != op::Mul && Op != op::MulNoNan && Op != op::DivNoNan &&
         !Op.ends_with(op::Div)))
      continue;
    for (Endpoint E : G.dataInputs(N)) {
      NodeId At = NoNode;
      auto Number = numberAt(G, E, At);
      // The reciprocal of the batch size depends on the batch size, too.
      if (Number && *Number != 0 &&
          (MayBeSize(std::abs(*Number)) || MayBeSize(1 / std::abs(*Number))))
        return Refuse(At);
    }
  }
  return true;
}

} // namespace graft
