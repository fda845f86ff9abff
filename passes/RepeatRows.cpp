//===- passes/RepeatRows.cpp - repeat-rows ----------------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
// Lets a step have any number of rows. If N does not divide the rows, the batch
// is repeated. Then only n = gcd(N, rows) replicas have different shards, and
// the other replicas repeat their work:
//
//     x/split = _ToReplicas(x)        x/split = _ToReplicas(x, times)
//     s = _FromReplicas(g) sum    →   s = _Scale(_FromReplicas(g) sum, n/N)
//     y = _FromReplicas(p) concat     y = _FromReplicas(p, upto) concat
//     y = Identity*(member)           y = StridedSlice*(member, 0, upto, 1)
//
// The mean over all replicas stays as it is: each shard is in it equally often.
// So a step of a loss that is a mean costs nothing more. If N divides the rows,
// all added ops forward their input.
//
// Relies on: lib/program/forms/RowRepeat.h, lowered reductions, and
// lib/infer/facts/RepeatedRows.h, which finds the nodes that must know n. If no
// n is right for a node, the program stays as it is. Then a step fails in the
// split if N does not divide its rows.
//
//===----------------------------------------------------------------------===//

#include "lib/infer/facts/RepeatedRows.h"

#include "lib/graph/AttrRun.h"
#include "lib/io/Module.h"
#include "lib/ops/Ops.h"
#include "lib/ops/ProgramOps.h"
#include "lib/pass/Pass.h"
#include "lib/program/Program.h"
#include "lib/rewrite/Assertions.h"

#include "llvm/ADT/StringMap.h"
#include "llvm/Support/FormatVariadic.h"

using namespace llvm;

namespace graft {
namespace {

class RepeatRows final : public PassBase<RepeatRows> {
public:
  static constexpr PassInfo Info = {
      "repeat-rows", "Let a step have any number of rows",
      "Repeats the batch if the number of replicas does not divide its rows,\n"
      "and corrects the sums and the concatenations of all replicas."};

  PassResult run(Module &M, DiagnosticEngine &Diags) override;

private:
  using Source = RepeatedRows::Source;
  Endpoint add(const Twine &Name, StringRef Op, ArrayRef<Endpoint> Inputs,
               NodeId After, const AttrRun &Attrs,
               Inserted Kind = Inserted::Check, Copies Count = Copies::Once);
  Endpoint constant(const Twine &Name, unsigned Type, StringRef Value);
  Endpoint number(int64_t Value, unsigned Type = DT_INT32);
  Endpoint allShards(unsigned Type);
  Endpoint numbers(int64_t Value, int64_t Count);
  Endpoint lookup(const Twine &Name, unsigned S, unsigned Type,
                  const Twine &TableName, StringRef Table);
  void addOperand(NodeId N, Endpoint E);
  Endpoint gather(const Twine &Name, unsigned Type, Endpoint Values,
                  Endpoint Index, NodeId After, Copies Count);
  Endpoint rowsOf(const Twine &Name, Endpoint E, int64_t Axis);
  void count(unsigned S);
  Endpoint factor(unsigned S, unsigned Type, ArrayRef<int64_t> Powers,
                  int64_t Share);
  void repeat(NodeId N, unsigned S);
  void keep(NodeId N, unsigned S, const RepeatedRows &Rows);
  void scale(NodeId N, unsigned S);
  void share(const RepeatedRows::Need &Need);
  void number(NodeId N, unsigned S);
  void check(NodeId N, unsigned S, unsigned Other);
  void checkAny(NodeId N, unsigned S);
  bool checkGathers();
  Endpoint keptRows(NodeId N, unsigned S, int64_t Axis,
                    std::optional<int64_t> Times);
  bool isPossible(const RepeatedRows::Need &Need) const;
  void dropCheck(NodeId Share);

  Graph *G = nullptr;
  const ProgramFacts *Facts = nullptr;
  unsigned Replicas = 0;
  NodeId MeshNode = NoNode;
  std::vector<Source> Sources;
  StringMap<Endpoint> Made; ///< Shared nodes, by name.
};

Endpoint RepeatRows::add(const Twine &Name, StringRef Op,
                         ArrayRef<Endpoint> Inputs, NodeId After,
                         const AttrRun &Attrs, Inserted Kind, Copies Count) {
  return {G->insertNode(Name.str(), Op, Inputs, After, Attrs, Kind, Count), 0};
}

Endpoint RepeatRows::constant(const Twine &Name, unsigned Type,
                              StringRef Value) {
  std::string Key = ("graft/rows/" + Name).str();
  auto [It, New] = Made.try_emplace(Key);
  if (New)
    It->second = add(Key, op::Const, {}, MeshNode,
                     AttrRun().type("dtype", Type).raw("value", Value));
  return It->second;
}

Endpoint RepeatRows::number(int64_t Value, unsigned Type) {
  return constant(
      (Type == DT_INT32 ? "" : "type_" + std::to_string(Type) + "/") +
          std::to_string(Value),
      Type, encodeIntTensor(Type, {}, Value));
}

/// Returns a vector of \p Count times \p Value.
Endpoint RepeatRows::numbers(int64_t Value, int64_t Count) {
  SmallVector<int64_t, 8> Values(static_cast<size_t>(Count), Value);
  return constant("vector_" + std::to_string(Count) + "/" +
                      std::to_string(Value),
                  DT_INT32, encodeIntTensor(DT_INT32, Count, Values));
}

/// Returns N, the number of shards if N divides the number of rows.
Endpoint RepeatRows::allShards(unsigned Type) {
  return constant(Type == DT_INT32 ? "replicas" : "replicas/int64", Type,
                  encodeIntTensor(Type, {}, int64_t(Replicas)));
}

/// Makes \p E input 1 of \p N.
void RepeatRows::addOperand(NodeId N, Endpoint E) {
  SmallVector<Endpoint, 4> Inputs(G->inputs(N));
  Inputs.insert(Inputs.begin() + 1, E);
  G->setInputs(N, Inputs);
}

/// Adds the lookup of \p Values, of type \p Type, at \p Index.
Endpoint RepeatRows::gather(const Twine &Name, unsigned Type, Endpoint Values,
                            Endpoint Index, NodeId After, Copies Count) {
  return add(Name, op::GatherV2, {Values, Index, number(0)}, After,
             AttrRun()
                 .type("Tparams", Type)
                 .type("Tindices", G->outputType(Index))
                 .type("Taxis", DT_INT32),
             Inserted::Check, Count);
}

/// Adds the nodes that read the size of \p E along \p Axis.
Endpoint RepeatRows::rowsOf(const Twine &Name, Endpoint E, int64_t Axis) {
  Copies Count = G->node(E.Node).Count;
  Endpoint Shape =
      add(Name + "/shape", op::Shape, E, E.Node,
          AttrRun().type("T", G->outputType(E)).type("out_type", DT_INT32),
          Inserted::Check, Count);
  return gather(Name + "/rows", DT_INT32, Shape, number(Axis), Shape.Node,
                Count);
}

/// Adds the nodes that compute the number of rows, or of groups of rows, of
/// source \p S modulo N.
void RepeatRows::count(unsigned S) {
  Source &Of = Sources[S];
  if (Of.RestAt.Node != NoNode)
    return;
  std::string Name = G->name(Of.Node).str();
  unsigned Type = DT_INT32;
  Endpoint Rows = Of.Rest.Of;
  if (Of.Rest.Axis >= 0) {
    Rows = rowsOf(Name, Rows, Of.Rest.Axis);
  } else {
    Type = G->outputType(Rows);
  }
  AttrRun T;
  T.type("T", Type);
  if (Of.Rest.Unit != 1)
    Rows = add(Name + "/groups", op::FloorDiv,
               {Rows, number(Of.Rest.Unit, Type)}, Rows.Node, T);
  Of.Rest.Units = Rows;
  Of.RestAt =
      add(Name + "/rest", op::FloorMod, {Rows, allShards(Type)}, Rows.Node, T);
}

Endpoint RepeatRows::lookup(const Twine &Name, unsigned S, unsigned Type,
                            const Twine &TableName, StringRef Table) {
  count(S);
  std::string Key = (G->name(Sources[S].Node) + "/" + Name).str();
  auto [It, New] = Made.try_emplace(Key);
  if (!New)
    return It->second;
  Endpoint Rest = Sources[S].RestAt;
  Endpoint Values = constant(TableName, Type, Table);
  Endpoint Result = gather(Key, Type, Values, Rest, Rest.Node, Copies::Once);
  return Made[Key] = Result;
}

Endpoint RepeatRows::factor(unsigned S, unsigned Type, ArrayRef<int64_t> Powers,
                            int64_t Share) {
  std::string Name = Share == 0 ? "shards" : "share_" + std::to_string(Share);
  for (int64_t Power : Powers)
    if (Share == 0)
      Name += "_" + std::to_string(Power);
  Name += "/type_" + std::to_string(Type);
  return lookup(Name, S, Type, Name, scaleTable(Replicas, Type, Powers, Share));
}

void RepeatRows::repeat(NodeId N, unsigned S) {
  auto Rank = static_cast<unsigned>(Facts->Dims.shape({N, 0})->size());
  auto Axis = static_cast<unsigned>(G->intAttr(N, "axis").value_or(0));
  std::string Name =
      "times_" + std::to_string(Rank) + "_" + std::to_string(Axis);
  Endpoint Times = lookup(N == Sources[S].Node ? "times" : Name, S, DT_INT32,
                          Name, timesTable(Replicas, Rank, Axis));
  addOperand(N, Times);
}

/// Returns a vector with one element for each axis up to \p Axis. Each element
/// is the number of rows of the concatenation \p N in the single-device step.
Endpoint RepeatRows::keptRows(NodeId N, unsigned S, int64_t Axis,
                              std::optional<int64_t> Times) {
  count(S);
  const Source &Of = Sources[S];
  auto Repeated = [&](const Twine &Name, Endpoint Number) {
    return add(Name, op::Fill, {numbers(Axis + 1, 1), Number}, Number.Node,
               AttrRun().type("T", DT_INT32).type("index_type", DT_INT32));
  };
  if (Times) {
    std::string Key =
        (G->name(Of.Node) + "/kept_" + Twine(*Times) + "_" + Twine(Axis)).str();
    auto [It, New] = Made.try_emplace(Key);
    if (!New)
      return It->second;
    Endpoint Number = Of.Rest.Units;
    if (*Times != 1)
      Number = add(Key + "/rows", op::Mul, {Number, number(*Times)},
                   Number.Node, AttrRun().type("T", DT_INT32));
    Endpoint Result = Repeated(Key, Number);
    return Made[Key] = Result;
  }
  // Adds up the rows of all replicas, and divides by N/n.
  Endpoint E = G->input(N, 0);
  std::string Name = G->name(N).str();
  Endpoint All = add(
      Name + "/counted", FromReplicasOp, rowsOf(Name + "/local", E, Axis),
      E.Node, AttrRun().type("T", DT_INT32).string(CombineAttr, combine::Sum),
      Inserted::Merge);
  Endpoint Kept =
      add(Name + "/kept", op::FloorDiv, {All, factor(S, DT_INT32, 0, 1)},
          All.Node, AttrRun().type("T", DT_INT32));
  return Repeated(Name + "/upto", Kept);
}

void RepeatRows::keep(NodeId N, unsigned S, const RepeatedRows &Rows) {
  int64_t Axis = G->intAttr(N, "axis").value_or(0);
  Endpoint Upto = keptRows(N, S, Axis, Rows.rowsOf(N, S, Axis));
  if (G->isOp(N, FromReplicasOp))
    return addOperand(N, Upto);
  if (G->isOp(N, op::CollectiveGather))
    checkAny(N, S);
  // The users of a gather read it behind a barrier.
  SmallVector<NodeId, 1> Barriers;
  G->forEachUse(N, [&](Use U) {
    if (G->isData(U))
      Barriers.push_back(U.User);
  });
  for (NodeId Barrier : Barriers) {
    if (G->node(Barrier).Kind != Inserted::Gather)
      continue;
    addOperand(Barrier, numbers(1, 1));
    addOperand(Barrier, Upto);
    addOperand(Barrier, numbers(0, 1));
    G->setOp(Barrier, op::StridedSlice);
    G->setTypeAttr(Barrier, "Index", DT_INT32);
  }
}

/// Removes the assertion that the fed number of rows is a multiple of N.
void RepeatRows::dropCheck(NodeId Share) {
  SmallVector<NodeId, 8> Unused;
  for (Endpoint E : SmallVector<Endpoint, 2>(G->controlInputs(Share)))
    if (G->node(E.Node).Kind == Inserted::Gate)
      Unused.push_back(E.Node);
  SmallVector<Endpoint, 2> Inputs(G->dataInputs(Share));
  for (Endpoint E : G->controlInputs(Share))
    if (!is_contained(Unused, E.Node))
      Inputs.push_back(E);
  G->setInputs(Share, Inputs);
  while (!Unused.empty()) {
    NodeId N = Unused.pop_back_val();
    if (!G->isLive(N) || G->hasUses(N) || G->node(N).Kind == Inserted::No)
      continue;
    for (Endpoint E : G->inputs(N))
      Unused.push_back(E.Node);
    G->remove(N);
  }
}

void RepeatRows::scale(NodeId N, unsigned S) {
  if (Sources[S].Rest.Axis < 0 && Sources[S].Node == N)
    dropCheck(N);
  Endpoint Factor = factor(S, G->outputType(G->input(N, 0)),
                           statedPowers(*G, N), /*Share=*/0);
  addOperand(N, Factor);
}

void RepeatRows::share(const RepeatedRows::Need &Need) {
  NodeId N = Need.Node;
  Endpoint E = Need.Index < 0 ? Endpoint{N, 0}
                              : G->input(N, static_cast<unsigned>(Need.Index));
  unsigned Type = G->outputType(E);
  Endpoint Factor = factor(Need.Source, Type, 0, Need.Power);
  AttrRun Attrs;
  Attrs.type("T", Type).integer(PowerAttr, 0).integer(ShareAttr, Need.Power);
  if (Need.Index >= 0) {
    Endpoint Term = add(G->name(E.Node) + "/term", ScaleOp, {E, Factor}, E.Node,
                        Attrs, Inserted::Scale, Copies::PerReplica);
    G->setInput(N, static_cast<unsigned>(Need.Index), Term);
    return;
  }
  // Runs fetch a merged value by its name, so the scaled value takes this name.
  std::string Name = G->name(N).str();
  bool IsNamed = G->node(N).Kind == Inserted::Merge ||
                 G->node(N).Kind == Inserted::Accumulate;
  if (IsNamed)
    G->rename(N, G->uniqueName(Name + "/all"));
  NodeId Term =
      G->insertNode(IsNamed ? Name : Name + "/share", ScaleOp, {E, Factor}, N,
                    Attrs, Inserted::Scale, G->node(N).Count);
  G->replaceUses(E, {Term, 0}, Term);
}

/// Makes \p N multiply by the index of a replica's shard instead of the index
/// of the replica.
void RepeatRows::number(NodeId N, unsigned S) {
  Endpoint Replica = G->input(N, 1);
  unsigned Type = G->outputType(Replica);
  Endpoint Shard =
      add(G->name(Replica.Node) + "/shard", op::FloorMod,
          {Replica, factor(S, Type, 1, 0)}, Replica.Node,
          AttrRun().type("T", Type), Inserted::Check, Copies::PerReplica);
  G->setInput(N, 1, Shard);
}

/// Makes \p N wait for a check that sources \p S and \p Other have equally many
/// shards. If \p Other is AllShards, the check is that each replica has its own
/// shard of \p S.
void RepeatRows::check(NodeId N, unsigned S, unsigned Other) {
  bool OfAll = Other == RepeatedRows::AllShards;
  std::string Key =
      (G->name(Sources[S].Node) + "/equal" + (OfAll ? "" : "_" + Twine(Other)))
          .str();
  auto [It, New] = Made.try_emplace(Key);
  if (!New)
    return G->addControlInput(N, It->second.Node);
  Endpoint One = factor(S, DT_INT32, 1, 0),
           Two = OfAll ? allShards(DT_INT32) : factor(Other, DT_INT32, 1, 0);
  auto NameOf = [&](unsigned Of) {
    return G->name(Sources[Of].Rest.Of.Node).str();
  };
  Endpoint Same =
      add(Key + "/same", op::Equal, {One, Two}, OfAll ? One.Node : Two.Node,
          AttrRun().type("T", DT_INT32));
  NodeId Gate = insertAssertion(
      *G, Key, Same,
      OfAll ? "'" + NameOf(S) + "' is combined with a multiple of " +
                  std::to_string(Replicas) + " rows: feed a multiple of " +
                  std::to_string(Replicas) + " rows"
            : "'" + NameOf(S) + "' and '" + NameOf(Other) +
                  "' have different numbers of rows");
  Made[Key] = {Gate, 0};
  G->addControlInput(N, Gate);
}

/// Makes \p N, a CollectiveGather, wait for a check that source \p S has rows:
/// the kernel crashes on a tensor without rows.
void RepeatRows::checkAny(NodeId N, unsigned S) {
  count(S);
  const Source &Of = Sources[S];
  std::string Key = (G->name(Of.Node) + "/any").str();
  auto [It, New] = Made.try_emplace(Key);
  if (New) {
    unsigned Type = G->outputType(Of.Rest.Units);
    Endpoint Any = add(Key + "/more", op::Greater,
                       {Of.Rest.Units, number(int64_t(0), Type)},
                       Of.Rest.Units.Node, AttrRun().type("T", Type));
    std::string Why = "'" + G->name(Of.Rest.Of.Node).str() +
                      "' has no rows, and a collective gathers no tensor "
                      "without rows: feed at least one row";
    NodeId Gate = insertAssertion(*G, Key, Any, Why);
    It = Made.find(Key);
    It->second = {Gate, 0};
  }
  G->addControlInput(N, It->second.Node);
}

/// Calls checkAny() for each CollectiveGather whose row count follows a source.
/// Returns true if there is one.
bool RepeatRows::checkGathers() {
  bool Any = false;
  for (NodeId N : Facts->Order) {
    auto Shape = G->isOp(N, op::CollectiveGather)
                     ? Facts->Dims.shape(G->input(N, 0))
                     : std::nullopt;
    auto Rows = Shape && !Shape->empty()
                    ? Facts->Dims.table().sym(Shape->front())
                    : std::nullopt;
    if (!Rows || Rows->B == 0 || Rows->Ragged != 0)
      continue;
    auto It = find_if(Sources, [&](const Source &S) {
      return S.Rest.Axis >= 0 && S.Rows == Rows->Rows;
    });
    if (It == Sources.end())
      continue;
    checkAny(N, static_cast<unsigned>(It - Sources.begin()));
    Any = true;
  }
  return Any;
}

/// Returns true if the ops that this pass adds for \p Need support the type of
/// the tensor. Some of them also need a known rank.
bool RepeatRows::isPossible(const RepeatedRows::Need &Need) const {
  Endpoint Of =
      G->input(Need.Node, static_cast<unsigned>(std::max(Need.Index, 0)));
  switch (Need.Kind) {
  case RepeatedRows::Need::Repeat: // Tile
    return Facts->Dims.shape(Of) && G->outputType(Of) != DT_VARIANT &&
           G->outputType(Of) != DT_RESOURCE && G->outputType(Of) != DT_UINT16;
  case RepeatedRows::Need::Keep:
    return Facts->Dims.shape(Of) && G->outputType(Of) != DT_VARIANT;
  case RepeatedRows::Need::Share:
    return Need.Index < 0 || isFloating(G->outputType(Of)) ||
           isComplex(G->outputType(Of));
  default:
    return true;
  }
}

PassResult RepeatRows::run(Module &M, DiagnosticEngine &Diags) {
  G = &M.graph();
  Mesh Devices = readMesh(*G);
  Replicas = Devices.replicas();
  MeshNode = Devices.Node;
  if (Replicas < 2)
    return PassResult::Unchanged;
  Facts = &programFacts(M);
  RepeatedRows Rows(*G, *Facts, /*Plan=*/true);
  if (Rows.sources().empty())
    return PassResult::Unchanged;
  std::vector<RepeatedRows::Obstacle> Obstacles(Rows.obstacles());
  for (const RepeatedRows::Need &Need : Rows.needs())
    if (!isPossible(Need))
      Obstacles.push_back({Need.Node, "has a type or a rank for which "
                                      "TensorFlow has no such op"});
  auto NeedsEven = [&](NodeId N, StringRef Why) {
    Diags
        .remark("even-rows", originName(*G, N),
                formatv("fails in a step whose number of rows is not a "
                        "multiple of {0}: it {1}; feed a multiple of {0} rows",
                        Replicas, Why)
                    .str())
        .shown();
  };
  Sources = Rows.sources();
  if (!Obstacles.empty()) {
    NeedsEven(Obstacles.front().Node, Obstacles.front().Why);
    return checkGathers() ? PassResult::Changed : PassResult::Unchanged;
  }
  // If the number of rows of a source is known, a run with any other number
  // fails anyway.
  if (auto *It = find_if(Rows.needs(),
                         [&](const RepeatedRows::Need &Need) {
                           return Need.Other == RepeatedRows::AllShards &&
                                  !Rows.hasNumber(Need.Source);
                         });
      It != Rows.needs().end())
    NeedsEven(It->Node, "combines values of feeds that may have different "
                        "numbers of rows");
  for (const RepeatedRows::Need &Need : Rows.needs()) {
    switch (Need.Kind) {
    case RepeatedRows::Need::Repeat:
      repeat(Need.Node, Need.Source);
      break;
    case RepeatedRows::Need::Keep:
      keep(Need.Node, Need.Source, Rows);
      break;
    case RepeatedRows::Need::Factor:
      scale(Need.Node, Need.Source);
      break;
    case RepeatedRows::Need::Share:
      share(Need);
      break;
    case RepeatedRows::Need::Modulo:
      number(Need.Node, Need.Source);
      break;
    case RepeatedRows::Need::Equal:
      check(Need.Node, Need.Source, Need.Other);
      break;
    }
  }
  return PassResult::Changed;
}

} // namespace

GRAFT_DEFINE_PASS(RepeatRows)

} // namespace graft
