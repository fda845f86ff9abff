//===- passes/CheckRows.cpp - check-rows ------------------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
// Makes a step of several workers fail if their feeds have different numbers of
// rows. A mean over all rows is the mean of the replicas' means only if these
// numbers are equal, the number of all rows is N times the number of one worker
// only then, and no worker sees the feeds of the others:
//
//     s = _FromReplicas(g) sum   →   r = Pack*(rows of x/split, their square)
//                                    t = _FromReplicas(r) sum
//                                    a = Assert(t[1] * N == t[0] * t[0])
//                                    graft/check_rows/x = NoOp(^a)
//                                    s = _FromReplicas(g, ^graft/check_rows/x)
//
// N numbers are equal exactly if N times the sum of their squares is the square
// of their sum. Every sum for a mean and every scaled number that a split feed
// reaches waits for a check of the feed.
//
// Relies on: lowered reductions, and equally many rows of feeds that an op
// relates.
//
//===----------------------------------------------------------------------===//

#include "lib/graph/AttrRun.h"
#include "lib/graph/Walk.h"
#include "lib/infer/facts/RepeatedRows.h"
#include "lib/io/Module.h"
#include "lib/ops/Ops.h"
#include "lib/ops/ProgramOps.h"
#include "lib/pass/Pass.h"
#include "lib/program/Program.h"
#include "lib/program/forms/RowRepeat.h"
#include "lib/rewrite/Assertions.h"

#include <map>

using namespace llvm;

namespace graft {
namespace {

class CheckRows final : public PassBase<CheckRows> {
public:
  static constexpr PassInfo Info = {
      "check-rows", "Fail the step if workers feed different numbers of rows",
      "Lets the means over all replicas and the numbers of all rows wait for "
      "an\n"
      "assertion that all replicas have equally many rows."};

  PassResult run(Module &M, DiagnosticEngine &Diags) override;

private:
  Endpoint add(const Twine &Name, StringRef Op, ArrayRef<Endpoint> Inputs,
               NodeId After, const AttrRun &Attrs,
               Inserted Kind = Inserted::Check, Copies Count = Copies::Once);
  Endpoint constant(const Twine &Name, NodeId After, unsigned Type,
                    StringRef Value);
  /// A tensor of each replica whose rows are counted.
  struct Rows {
    NodeId Node;
    int64_t Axis;
    SizeOrigins::Origin Origin; ///< That of the number of rows.
    std::string Feed;
  };
  std::vector<Rows> findRows(const ProgramFacts &Facts) const;
  bool isMean(const ProgramFacts &Facts, NodeId N) const;
  bool isScaledNumber(NodeId N) const;
  NodeId check(const Rows &Of);
  void letWait(NodeId N, NodeId Gate);

  Graph *G = nullptr;
  unsigned Replicas = 0;
};

constexpr StringLiteral RowsCheckName = "graft/check_rows";

Endpoint CheckRows::add(const Twine &Name, StringRef Op,
                        ArrayRef<Endpoint> Inputs, NodeId After,
                        const AttrRun &Attrs, Inserted Kind, Copies Count) {
  return {G->insertNode(Name.str(), Op, Inputs, After, Attrs, Kind, Count), 0};
}

Endpoint CheckRows::constant(const Twine &Name, NodeId After, unsigned Type,
                             StringRef Value) {
  return add(Name, op::Const, {}, After,
             AttrRun().type("dtype", Type).raw("value", Value));
}

/// Returns the splits of an unknown number of rows. A run that feeds a
/// placeholder with a default in the place of rows needs no other feed, so the
/// rows of the nodes behind it are counted there.
std::vector<CheckRows::Rows>
CheckRows::findRows(const ProgramFacts &Facts) const {
  std::vector<Rows> Result;
  RepeatedRows Plan(*G, Facts, /*Plan=*/true);
  for (const RepeatedRows::Source &S : Plan.sources())
    if (S.Rest.Axis >= 0)
      Result.push_back({S.Node, S.Rest.Axis, S.Origin,
                        originName(*G, S.Rest.Of.Node).str()});
  const DimTable &Table = Facts.Dims.table();
  for (NodeId N : Facts.Order) {
    if (!G->isOp(N, op::PlaceholderWithDefault) || !G->isPerReplica(N))
      continue;
    ReplicationType Type = Facts.Types.type({N, 0});
    auto Shape = Facts.Dims.shape({N, 0});
    if (!Type.isSharded() || !Shape || Type.Axis >= Shape->size() ||
        Table.number((*Shape)[Type.Axis]) != UnknownSize)
      continue;
    Result.push_back({N, Type.Axis,
                      Facts.Dims.origins().of((*Shape)[Type.Axis]),
                      originName(*G, N).str()});
  }
  return Result;
}

/// Adds the check of the rows of \p Of. Returns the gate.
NodeId CheckRows::check(const Rows &Of) {
  constexpr unsigned Type = DT_INT64;
  Endpoint Local{Of.Node, 0};
  std::string Name = (RowsCheckName + "/" + Of.Feed).str();
  AttrRun T, Take;
  T.type("T", Type);
  Take.type("Tparams", Type).type("Tindices", DT_INT32).type("Taxis", DT_INT32);
  auto Number = [&](const Twine &Suffix, unsigned Is, int64_t Value) {
    return constant(Name + "/" + Suffix, Of.Node, Is,
                    encodeIntTensor(Is, {}, Value));
  };
  Endpoint Zero = Number("zero", DT_INT32, 0), One = Number("one", DT_INT32, 1),
           Axis = Number("axis", DT_INT32, Of.Axis),
           Count = Number("replicas", Type, Replicas);
  Copies Each = Copies::PerReplica;
  Endpoint Shape =
      add(Name + "/shape", op::Shape, Local, Of.Node,
          AttrRun().type("T", G->outputType(Local)).type("out_type", Type),
          Inserted::Check, Each);
  Endpoint Rows = add(Name + "/rows", op::GatherV2, {Shape, Axis, Zero},
                      Shape.Node, Take, Inserted::Check, Each);
  Endpoint Square = add(Name + "/square", op::Mul, {Rows, Rows}, Rows.Node, T,
                        Inserted::Check, Each);
  Endpoint Both =
      add(Name + "/both", op::Pack, {Rows, Square}, Square.Node,
          AttrRun().type("T", Type).integer("N", 2).integer("axis", 0),
          Inserted::Check, Each);
  Endpoint Sums =
      add(Name + "/sums", FromReplicasOp, Both, Both.Node,
          AttrRun().type("T", Type).string(CombineAttr, combine::Sum),
          Inserted::Merge);
  Endpoint OfRows =
      add(Name + "/all", op::GatherV2, {Sums, Zero, Zero}, Sums.Node, Take);
  Endpoint OfSquares = add(Name + "/squares", op::GatherV2, {Sums, One, Zero},
                           OfRows.Node, Take);
  Endpoint Left =
      add(Name + "/left", op::Mul, {OfSquares, Count}, OfSquares.Node, T);
  Endpoint Right =
      add(Name + "/right", op::Mul, {OfRows, OfRows}, Left.Node, T);
  Endpoint Same = add(Name + "/same", op::Equal, {Left, Right}, Right.Node, T);
  return insertAssertion(*G, Name, Same,
                         "workers feed different numbers of rows to '" +
                             Of.Feed + "': feed as many rows on each");
}

/// Returns true if \p N is the sum for a mean.
bool CheckRows::isMean(const ProgramFacts &Facts, NodeId N) const {
  if (!G->isOp(N, FromReplicasOp) || G->node(N).NumData == 0 ||
      G->stringAttr(N, CombineAttr) != combine::Sum)
    return false;
  ReplicationType Type = Facts.Types.type(G->input(N, 0));
  return Type.L == Layout::Partial && Type.K != 0;
}

/// Returns true if \p N multiplies a number of one replica, such as its number
/// of rows.
bool CheckRows::isScaledNumber(NodeId N) const {
  return G->isOp(N, ScaleOp) &&
         any_of(statedPowers(*G, N),
                [](int64_t Power) { return Power != 0; }) &&
         !(G->isOp(G->input(N, 0).Node, FromReplicasOp) &&
           G->stringAttr(G->input(N, 0).Node, CombineAttr) == combine::Sum);
}

/// Makes the mean \p N wait for \p Gate. If only scales read the sum, they
/// wait: the numbers of rows then come in the message of the terms.
void CheckRows::letWait(NodeId N, NodeId Gate) {
  SmallVector<NodeId, 4> Scales;
  bool Others = false;
  G->forEachUse(N, [&](Use U) {
    if (G->isOp(U.User, ScaleOp) && !G->isPerReplica(U.User))
      Scales.push_back(U.User);
    else
      Others = true;
  });
  if (Others || Scales.empty())
    Scales = {N};
  for (NodeId Scale : Scales)
    G->addControlInput(Scale, Gate);
}

PassResult CheckRows::run(Module &M, DiagnosticEngine & /*Diags*/) {
  G = &M.graph();
  Replicas = readMesh(*G).replicas();
  if (Replicas < 2)
    return PassResult::Unchanged;
  const ProgramFacts &Facts = programFacts(M);
  std::vector<NodeId> Means;
  for (NodeId N : Facts.Order)
    if (isMean(Facts, N) || isScaledNumber(N))
      Means.push_back(N);
  std::vector<Rows> Counted = findRows(Facts);
  DenseSet<NodeId> Nodes;
  for (const Rows &Of : Counted)
    Nodes.insert(Of.Node);
  // Feeds of one number of rows need one check.
  std::vector<std::map<SizeOrigins::Origin, unsigned>> Waits(Means.size());
  for (auto [I, Of] : enumerate(Counted)) {
    std::vector<bool> Seen(G->size());
    NodeId Start = Of.Node;
    walkUsers(*G, {Start}, Along::Data, Seen,
              [&](NodeId N) { return N == Start || !Nodes.contains(N); });
    for (auto [N, Its] : zip(Means, Waits))
      if (Seen[N])
        Its.try_emplace(Of.Origin, I);
  }
  // A fetched mean has a check of its own, whose numbers come in the message of
  // its terms. The sums of gradients share one check.
  std::map<unsigned, NodeId> Shared;
  for (auto [N, Its] : zip(Means, Waits))
    for (const auto &[Origin, I] : Its) {
      const Rows &Of = Counted[I];
      NodeId Own = G->node(N).Kind == Inserted::Merge ? check(Of) : NoNode;
      if (Own == NoNode)
        if (auto [It, New] = Shared.try_emplace(I, NoNode); New)
          It->second = check(Of);
      letWait(N, Own == NoNode ? Shared[I] : Own);
    }
  return Means.empty() ? PassResult::Unchanged : PassResult::Changed;
}

} // namespace

GRAFT_DEFINE_PASS(CheckRows)

} // namespace graft
