//===- passes/WeighRows.cpp - weigh-rows ------------------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
// Lets workers feed different numbers of rows. The mean over all rows is the
// mean of the replicas' means only if these numbers are equal. No worker sees
// the feeds of the others. So a replica multiplies its term of a mean by its
// number of rows, and the sum is divided by the number of all rows. That number
// is the sum of the replicas' numbers:
//
//     s = _FromReplicas(g) sum        t = Mul*(g, rows)
//     u = _Scale(s) power=-1      →   s = _FromReplicas(t) sum
//                                     u = RealDiv(s, all, ^each has rows)
//     p = _FromReplicas(b) pick   →   p = _FromReplicas(b) sum
//     n = _Scale(p) power=1           n = Identity(p)
//
// In a vector of sizes, each number of rows is added up by itself:
//
//     v = Shape*(x)                   rows = _FromReplicas(v[0]) sum
//     p = _FromReplicas(v) pick   →   size = _FromReplicas(v[1]) pick
//     n = _Scale(p) powers=[1,0]      n = Pack(rows, size)
//
// No op may show that two feeds of a mean have equally many rows. The mean is
// then weighed by the rows of one feed, and waits for a check on both: either
// each replica has as many rows of one feed as of the other, or all replicas
// have equally many rows of each feed, so that all weights are equal.
//
// If a mean cannot be weighed, such as one of half precision, it waits for a
// check that all replicas have equally many rows. N numbers are equal exactly
// if N times the sum of their squares is the square of their sum:
//
//     s = _FromReplicas(g) sum   →   r = Pack*(rows of x/split, their square)
//                                    t = _FromReplicas(r) sum
//                                    a = Assert(t[1] * N == t[0] * t[0])
//                                    graft/check_rows/x = NoOp(^a)
//                                    s = _FromReplicas(g, ^graft/check_rows/x)
//
// Relies on: lowered reductions, lib/program/forms/RowWeight.h.
//
//===----------------------------------------------------------------------===//

#include "lib/graph/AttrRun.h"
#include "lib/graph/Walk.h"
#include "lib/infer/facts/RepeatedRows.h"
#include "lib/infer/facts/RowsRead.h"
#include "lib/io/Module.h"
#include "lib/ops/Ops.h"
#include "lib/ops/ProgramOps.h"
#include "lib/pass/Pass.h"
#include "lib/program/Program.h"
#include "lib/program/forms/RowWeight.h"
#include "lib/rewrite/Assertions.h"

#include <map>

using namespace llvm;

namespace graft {
namespace {

class WeighRows final : public PassBase<WeighRows> {
public:
  static constexpr PassInfo Info = {
      "weigh-rows", "Let workers feed different numbers of rows",
      "Weighs the terms of a mean over all replicas by their numbers of rows, "
      "and\n"
      "adds up these numbers. A mean that cannot be weighed waits for an\n"
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
    SizeOrigins::Origin Origin; ///< The origin of the number of rows.
    std::string Feed;
  };
  /// Sums over all replicas, as one vector.
  struct Sums {
    std::string Name;
    Endpoint All;
  };
  Endpoint rowsOf(const Twine &Name, Endpoint Local, int64_t Along);
  Sums addUp(const Twine &Name, ArrayRef<Endpoint> Numbers);
  Endpoint take(const Twine &Name, Endpoint Vector, Endpoint At, Endpoint Axis);
  Endpoint element(const Twine &Name, Endpoint Vector, size_t I);
  Endpoint element(const Sums &Of, unsigned I) {
    return element(Of.Name + "/sum_" + Twine(I), Of.All, I);
  }
  Endpoint isEven(const Sums &Of, unsigned I);
  Endpoint square(const Twine &Name, Endpoint Of);
  std::vector<Rows> findRows(const ProgramFacts &Facts) const;
  bool isMean(const ProgramFacts &Facts, NodeId N) const;
  bool isScaledNumber(NodeId N) const;
  bool splitsComputed(const ProgramFacts &Facts, NodeId N) const;
  NodeId check(const Rows &Of);
  void letWait(NodeId N, NodeId Gate);

  /// The numbers of rows by which some of the means are weighed.
  struct Weights {
    Endpoint Rows, All;   ///< The number of a replica, and of all.
    NodeId Gate = NoNode; ///< Waits for a check that each replica has rows.
    std::map<std::pair<unsigned, int64_t>, Endpoint> Powers; ///< See power().
  };
  /// A combination of replicas whose results are scaled.
  struct Mean {
    SmallVector<NodeId, 2> Scales;
    int64_t Power = 0; ///< The power of all scales.
  };
  using Sources = SmallVector<const RowsRead::Source *, 4>;
  NodeId combinationOf(NodeId Scale) const;
  bool findScales(NodeId N, Mean &Of) const;
  bool weigh(const ProgramFacts &Facts, RowsRead &Read, NodeId Merge);
  bool addUpSizes(const ProgramFacts &Facts, RowsRead &Read, NodeId Scale);
  std::string feedOf(NodeId Source) const;
  Endpoint countOf(const RowsRead::Source &Of);
  Weights &weightsOf(const RowsRead::Source &Of, NodeId Merge);
  Endpoint power(Weights &W, unsigned Type, int64_t Power, bool OfAll);
  NodeId multiply(NodeId Merge, Weights &W, int64_t Power);
  void waitForEqual(NodeId Term, const Sources &Of);
  NodeId relate(const RowsRead::Source &One, const RowsRead::Source &Two);

  Graph *G = nullptr;
  unsigned Replicas = 0;
  std::map<std::pair<NodeId, NodeId>, Weights> Made; ///< See weightsOf().
  std::map<NodeId, Endpoint> Counts; ///< By source: its rows on a replica.
  /// By two sources: the gate of a check that they have equally many rows.
  std::map<std::pair<NodeId, NodeId>, NodeId> Equal;
  std::map<std::pair<NodeId, NodeId>, NodeId> Related; ///< See relate().
};

constexpr StringLiteral RowsCheckName = "graft/check_rows";
constexpr StringLiteral WeightsName = "graft/weigh_rows";

Endpoint WeighRows::add(const Twine &Name, StringRef Op,
                        ArrayRef<Endpoint> Inputs, NodeId After,
                        const AttrRun &Attrs, Inserted Kind, Copies Count) {
  return {G->insertNode(Name.str(), Op, Inputs, After, Attrs, Kind, Count), 0};
}

Endpoint WeighRows::constant(const Twine &Name, NodeId After, unsigned Type,
                             StringRef Value) {
  return add(Name, op::Const, {}, After,
             AttrRun().type("dtype", Type).raw("value", Value));
}

/// Returns the nodes that split an unknown number of rows, and per-replica
/// placeholders with defaults in the place of such rows. A run that feeds such
/// a placeholder needs no other feed, so the rows of the placeholder are
/// counted too.
std::vector<WeighRows::Rows>
WeighRows::findRows(const ProgramFacts &Facts) const {
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

/// Adds the nodes that read the size of \p Local along axis \p Along on each
/// replica.
Endpoint WeighRows::rowsOf(const Twine &Name, Endpoint Local, int64_t Along) {
  constexpr unsigned Type = DT_INT64;
  auto Number = [&](const Twine &Suffix, int64_t Value) {
    return constant(Name + Suffix, Local.Node, DT_INT32,
                    encodeIntTensor(DT_INT32, {}, Value));
  };
  Endpoint Zero = Number("/zero", 0), Axis = Number("/axis", Along);
  Endpoint Shape =
      add(Name + "/shape", op::Shape, Local, Local.Node,
          AttrRun().type("T", G->outputType(Local)).type("out_type", Type),
          Inserted::Check, Copies::PerReplica);
  return take(Name + "/rows", Shape, Axis, Zero);
}

/// Adds the sums over all replicas of numbers of each replica.
WeighRows::Sums WeighRows::addUp(const Twine &Name,
                                 ArrayRef<Endpoint> Numbers) {
  AttrRun T;
  T.type("T", DT_INT64);
  Endpoint Packed =
      add(Name + "/numbers", op::Pack, Numbers, Numbers.back().Node,
          AttrRun(T)
              .integer("N", static_cast<int64_t>(Numbers.size()))
              .integer("axis", 0),
          Inserted::Check, Copies::PerReplica);
  return {Name.str(),
          add(Name + "/sums", FromReplicasOp, Packed, Packed.Node,
              AttrRun(T).string(CombineAttr, combine::Sum), Inserted::Merge)};
}

/// Adds the node that takes the element \p At of \p Vector. \p Axis is 0.
Endpoint WeighRows::take(const Twine &Name, Endpoint Vector, Endpoint At,
                         Endpoint Axis) {
  return add(Name, op::GatherV2, {Vector, At, Axis}, Vector.Node,
             AttrRun()
                 .type("Tparams", G->outputType(Vector))
                 .type("Tindices", DT_INT32)
                 .type("Taxis", DT_INT32),
             Inserted::Check, G->node(Vector.Node).Count);
}

/// Returns element \p I of \p Vector.
Endpoint WeighRows::element(const Twine &Name, Endpoint Vector, size_t I) {
  auto Number = [&](const Twine &Suffix, size_t Value) {
    return constant(Name + Suffix, Vector.Node, DT_INT32,
                    encodeIntTensor(DT_INT32, {}, static_cast<int64_t>(Value)));
  };
  Endpoint At = Number("/at", I), Axis = Number("/axis", 0);
  return take(Name, Vector, At, Axis);
}

/// Returns true if all replicas have the same number. Element \p I of \p Of is
/// the sum of these numbers, and the next element the sum of their squares.
Endpoint WeighRows::isEven(const Sums &Of, unsigned I) {
  std::string Name = Of.Name + "/even_" + std::to_string(I);
  AttrRun T;
  T.type("T", DT_INT64);
  Endpoint Sum = element(Of, I), Squares = element(Of, I + 1);
  Endpoint Count = constant(Name + "/replicas", Squares.Node, DT_INT64,
                            encodeIntTensor(DT_INT64, {}, int64_t(Replicas)));
  Endpoint Left =
      add(Name + "/left", op::Mul, {Squares, Count}, Squares.Node, T);
  Endpoint Right = add(Name + "/right", op::Mul, {Sum, Sum}, Left.Node, T);
  return add(Name, op::Equal, {Left, Right}, Right.Node, T);
}

/// Returns the square of a number of each replica.
Endpoint WeighRows::square(const Twine &Name, Endpoint Of) {
  return add(Name, op::Mul, {Of, Of}, Of.Node, AttrRun().type("T", DT_INT64),
             Inserted::Check, Copies::PerReplica);
}

/// Adds the check of the rows of \p Of. Returns the gate.
NodeId WeighRows::check(const Rows &Of) {
  std::string Name = (RowsCheckName + "/" + Of.Feed).str();
  Endpoint Rows = rowsOf(Name, {Of.Node, 0}, Of.Axis);
  Sums All = addUp(Name, {Rows, square(Name + "/square", Rows)});
  return insertAssertion(*G, Name, isEven(All, 0),
                         "workers feed different numbers of rows to '" +
                             Of.Feed + "': feed as many rows on each");
}

/// Returns true if \p N is the sum for a mean.
bool WeighRows::isMean(const ProgramFacts &Facts, NodeId N) const {
  if (!G->isOp(N, FromReplicasOp) || G->node(N).NumData == 0 ||
      G->stringAttr(N, CombineAttr) != combine::Sum)
    return false;
  ReplicationType Type = Facts.Types.type(G->input(N, 0));
  return Type.L == Layout::Partial && Type.K != 0;
}

/// Returns true if \p N scales a value that is no sum over replicas, such as
/// the number of rows of one replica.
bool WeighRows::isScaledNumber(NodeId N) const {
  return G->isOp(N, ScaleOp) &&
         any_of(statedPowers(*G, N),
                [](int64_t Power) { return Power != 0; }) &&
         !(G->isOp(G->input(N, 0).Node, FromReplicasOp) &&
           G->stringAttr(G->input(N, 0).Node, CombineAttr) == combine::Sum);
}

/// Returns true if \p N splits a computed tensor of an unknown number of rows
/// into equal shards, which do not fit if the workers' numbers of rows differ.
bool WeighRows::splitsComputed(const ProgramFacts &Facts, NodeId N) const {
  if (!G->isOp(N, ToReplicasOp) || G->dataInputs(G->input(N, 0).Node).empty())
    return false;
  auto Shape = Facts.Dims.shape({N, 0});
  auto Axis = static_cast<size_t>(G->intAttr(N, "axis").value_or(0));
  return Shape && Axis < Shape->size() &&
         Facts.Dims.table().number((*Shape)[Axis]) == UnknownSize;
}

/// Makes the mean \p N wait for \p Gate. If only scales read the sum, the
/// scales wait instead, so that the numbers of rows come in the message of the
/// terms.
void WeighRows::letWait(NodeId N, NodeId Gate) {
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

//===----------------------------------------------------------------------===//
// Weights
//===----------------------------------------------------------------------===//

/// Returns the combination of replicas whose result \p Scale scales; NoNode if
/// there is none.
NodeId WeighRows::combinationOf(NodeId Scale) const {
  NodeId N = G->input(Scale, 0).Node;
  while (passesWeightsOn(*G, N))
    N = G->input(N, 0).Node;
  return G->isOp(N, FromReplicasOp) ? N : NoNode;
}

/// Adds the scales of the results of \p N to \p Of. Returns false if another
/// node reads a result, or if the scales have different powers.
bool WeighRows::findScales(NodeId N, Mean &Of) const {
  return !G->anyUse(N, [&](Use U) {
    if (!G->isData(U))
      return false;
    if (passesWeightsOn(*G, U.User))
      return U.Index != 0 || !findScales(U.User, Of);
    auto Power =
        G->isOp(U.User, ScaleOp) ? G->intAttr(U.User, PowerAttr) : std::nullopt;
    if (!Power || G->node(U.User).NumData != 1 ||
        (!Of.Scales.empty() && Of.Power != *Power))
      return true;
    Of.Power = *Power;
    Of.Scales.push_back(U.User);
    return false;
  });
}

/// Returns the name of the feed from which \p Source has its rows.
std::string WeighRows::feedOf(NodeId Source) const {
  bool IsSplit = G->isOp(Source, ToReplicasOp);
  return originName(*G, IsSplit ? G->input(Source, 0).Node : Source).str();
}

/// Returns the number of rows of \p Of on a replica.
Endpoint WeighRows::countOf(const RowsRead::Source &Of) {
  auto [It, New] = Counts.try_emplace(Of.Node);
  if (New)
    It->second =
        rowsOf(WeightsName + "/" + feedOf(Of.Node), {Of.Node, 0}, Of.Axis);
  return It->second;
}

/// Returns the weights of the combination \p Merge, from the rows of \p Of. The
/// numbers of rows of a fetched value come in the message of its terms. All
/// other combinations share one message.
WeighRows::Weights &WeighRows::weightsOf(const RowsRead::Source &Of,
                                         NodeId Merge) {
  NodeId Own = G->node(Merge).Kind == Inserted::Merge ? Merge : NoNode;
  auto [It, New] = Made.try_emplace({Of.Node, Own});
  Weights &W = It->second;
  if (!New)
    return W;
  constexpr unsigned Type = DT_INT64;
  std::string Feed = feedOf(Of.Node);
  std::string Name = (WeightsName + "/" + Feed).str();
  W.Rows = countOf(Of);
  AttrRun T;
  T.type("T", Type);
  W.All = add(Name + "/all", FromReplicasOp, W.Rows, W.Rows.Node,
              AttrRun(T).string(CombineAttr, combine::Sum), Inserted::Merge);
  // A replica without rows has no mean.
  Endpoint Least =
      add(Name + "/least", FromReplicasOp, W.Rows, W.Rows.Node,
          AttrRun(T).string(CombineAttr, combine::Min), Inserted::Merge);
  Endpoint All = add(Name + "/all_have_rows", op::Greater,
                     {Least, constant(Name + "/none", Least.Node, Type,
                                      encodeIntTensor(Type, {}, int64_t(0)))},
                     Least.Node, T);
  W.Gate = insertAssertion(*G, Name, All,
                           "a worker feeds no rows to '" + Feed +
                               "': feed at least one row on each");
  return W;
}

/// Returns the \p Power-th power of the number of rows of a replica, or of all
/// replicas.
Endpoint WeighRows::power(Weights &W, unsigned Type, int64_t Power,
                          bool OfAll) {
  auto [It, New] = W.Powers.try_emplace({Type, OfAll ? -Power : Power});
  if (!New)
    return It->second;
  Copies Count = OfAll ? Copies::Once : Copies::PerReplica;
  Endpoint Of = OfAll ? W.All : W.Rows;
  std::string Name = (G->name(Of.Node) + "/type_" + Twine(Type)).str();
  if (Power == 1)
    return It->second = add(Name, op::Cast, Of, Of.Node,
                            AttrRun()
                                .type("SrcT", DT_INT64)
                                .type("DstT", Type)
                                .boolean("Truncate", false),
                            Inserted::Check, Count);
  Endpoint Less = power(W, Type, Power - 1, OfAll);
  return It->second = add(Name + "/power_" + Twine(Power), op::Mul,
                          {Less, power(W, Type, 1, OfAll)}, Less.Node,
                          AttrRun().type("T", Type), Inserted::Check, Count);
}

/// Makes \p Merge combine its terms, each times the \p Power-th power of the
/// replica's number of rows. Returns the product.
NodeId WeighRows::multiply(NodeId Merge, Weights &W, int64_t Power) {
  Endpoint Term = G->input(Merge, 0);
  unsigned Type = G->outputType(Term);
  Endpoint Product =
      add(originName(*G, Term.Node) + "/weighed", op::Mul,
          {Term, power(W, Type, Power, /*OfAll=*/false)}, Term.Node,
          AttrRun().type("T", Type).integer(WeightAttr, Power),
          Inserted::Weight, Copies::PerReplica);
  G->setInput(Merge, 0, Product);
  return Product.Node;
}

/// Makes \p Term wait for checks that the sources \p Of have equally many rows
/// on each replica, where an op needs that. Row counts of one origin are equal
/// without a check.
void WeighRows::waitForEqual(NodeId Term, const Sources &Of) {
  for (const RowsRead::Source *Other : ArrayRef(Of).drop_front()) {
    if (Other->Origin == Of[0]->Origin || Other->Rows != Of[0]->Rows)
      continue;
    std::string Names[] = {feedOf(Of[0]->Node), feedOf(Other->Node)};
    std::string Name = (WeightsName + "/" + Names[0] + "/as_" + Names[1]).str();
    auto [It, New] = Equal.try_emplace({Of[0]->Node, Other->Node}, NoNode);
    if (New) {
      Endpoint Two = countOf(*Other);
      Endpoint Same = add(Name + "/same", op::Equal, {countOf(*Of[0]), Two},
                          Two.Node, AttrRun().type("T", DT_INT64),
                          Inserted::Check, Copies::PerReplica);
      It->second = insertAssertion(*G, Name, Same,
                                   "'" + Names[0] + "' and '" + Names[1] +
                                       "' have different numbers of rows");
    }
    G->addControlInput(Term, It->second);
  }
}

/// Returns the gate of a check that each replica has as many rows of \p One as
/// of \p Two, or that all replicas have equally many rows of each.
NodeId WeighRows::relate(const RowsRead::Source &One,
                         const RowsRead::Source &Two) {
  auto [It, New] = Related.try_emplace({One.Node, Two.Node}, NoNode);
  if (!New)
    return It->second;
  std::string Names[] = {feedOf(One.Node), feedOf(Two.Node)};
  std::string Name = (WeightsName + "/" + Names[0] + "/with_" + Names[1]).str();
  AttrRun T;
  T.type("T", DT_INT64);
  Endpoint A = countOf(One), B = countOf(Two);
  Endpoint Apart = add(Name + "/apart", op::Sub, {A, B}, B.Node, T,
                       Inserted::Check, Copies::PerReplica);
  Sums All = addUp(Name, {A, square(Name + "/square", A), B,
                          square(Name + "/other_square", B),
                          square(Name + "/distance", Apart)});
  Endpoint EvenA = isEven(All, 0), EvenB = isEven(All, 2),
           Distance = element(All, 4);
  Endpoint Even = add(Name + "/even", op::LogicalAnd, {EvenA, EvenB},
                      EvenB.Node, AttrRun());
  Endpoint Zero = constant(Name + "/none", Distance.Node, DT_INT64,
                           encodeIntTensor(DT_INT64, {}, int64_t(0)));
  Endpoint Same =
      add(Name + "/same", op::Equal, {Distance, Zero}, Distance.Node, T);
  Endpoint Either =
      add(Name + "/either", op::LogicalOr, {Even, Same}, Same.Node, AttrRun());
  return It->second = insertAssertion(
             *G, Name, Either,
             "workers feed different numbers of rows to '" + Names[0] +
                 "' and '" + Names[1] +
                 "': on each worker, feed as many rows to one as to the other");
}

/// Makes the result of \p Merge right for any numbers of rows. Returns false if
/// no weight is known to be right.
bool WeighRows::weigh(const ProgramFacts &Facts, RowsRead &Read, NodeId Merge) {
  Endpoint Term = G->input(Merge, 0);
  Sources Of = Read.of(Term.Node);
  if (Of.empty() || G->hasAttr(Merge, AssumedAttr) ||
      G->node(Merge).NumData != 1 ||
      !all_of(Of, [](const RowsRead::Source *S) { return S->IsFed; }))
    return false;
  StringRef How = G->stringAttr(Merge, CombineAttr).value_or("");
  ReplicationType Type = Facts.Types.number(Term);
  Mean Result;
  if (!findScales(Merge, Result) || Result.Scales.empty())
    return false;
  bool IsSum =
      How == combine::Sum && Type.isPartial() && Type.Op == Combine::Sum;
  bool IsNumber = How == combine::Pick && Type.isReplicated();
  bool IsConcat = How == combine::Concat && Type.isSharded();
  if (Type.K != -Result.Power || (!IsSum && !IsNumber && !IsConcat))
    return false;
  SmallVector<const RowsRead::Source *, 4> Unrelated;
  copy_if(Of, std::back_inserter(Unrelated),
          [&](const RowsRead::Source *S) { return S->Rows != Of[0]->Rows; });
  if (IsNumber && Result.Power == 1 && Unrelated.empty()) {
    G->setStringAttr(Merge, CombineAttr, combine::Sum);
    G->node(Merge).Flags &= static_cast<uint16_t>(~NF_ElidePrimary);
    for (NodeId Scale : Result.Scales) {
      G->setOp(Scale, op::Identity);
      G->removeAttr(Scale, PowerAttr);
      G->node(Scale).Kind = Inserted::Identity;
    }
    return true;
  }
  unsigned OfType = G->outputType(Term);
  if (Result.Power >= 0 || (OfType != DT_FLOAT && OfType != DT_DOUBLE))
    return false;
  Weights &W = weightsOf(*Of[0], Merge);
  waitForEqual(multiply(Merge, W, -Result.Power), Of);
  for (NodeId Scale : Result.Scales) {
    SmallVector<Endpoint, 4> Inputs(G->inputs(Scale));
    Inputs.insert(Inputs.begin() + 1,
                  power(W, OfType, -Result.Power, /*OfAll=*/true));
    G->setInputs(Scale, Inputs);
    G->setOp(Scale, op::RealDiv);
    G->removeAttr(Scale, PowerAttr);
    G->setIntAttr(Scale, WeightAttr, -Result.Power);
    G->node(Scale).Kind = Inserted::Weight;
    G->addControlInput(Scale, W.Gate);
    for (const RowsRead::Source *Other : Unrelated)
      G->addControlInput(Scale, relate(*Of[0], *Other));
  }
  return true;
}

/// Makes the result of \p Scale, sizes times powers of N, right for any numbers
/// of rows. Returns false if that is impossible.
bool WeighRows::addUpSizes(const ProgramFacts &Facts, RowsRead &Read,
                           NodeId Scale) {
  auto Powers = G->intListAttr(Scale, PowersAttr);
  unsigned Type = G->outputType(Scale, 0);
  if (!Powers || G->node(Scale).NumData != 1 || G->isPerReplica(Scale) ||
      (Type != DT_INT32 && Type != DT_INT64) ||
      !all_of(*Powers, [](int64_t P) { return P == 0 || P == 1; }))
    return false;
  NodeId Merge = G->input(Scale, 0).Node;
  if (!G->isOp(Merge, FromReplicasOp) || G->node(Merge).NumData != 1 ||
      G->stringAttr(Merge, CombineAttr) != combine::Pick)
    return false;
  Endpoint Sizes = G->input(Merge, 0);
  Sources Of = Read.of(Sizes.Node);
  if (Of.empty() || Facts.Types.sizePowers(Sizes) != Powers ||
      !all_of(Of, [&](const RowsRead::Source *S) {
        return S->IsFed && S->Rows == Of[0]->Rows;
      }))
    return false;
  std::string Name = originName(*G, Sizes.Node).str();
  AttrRun T;
  T.type("T", Type);
  SmallVector<Endpoint, 4> Elements;
  for (auto [I, Power] : enumerate(*Powers)) {
    std::string Own = Name + "/size_" + std::to_string(I);
    Endpoint Element = element(Own, Sizes, I);
    Elements.push_back(
        add(Own + "/all", FromReplicasOp, Element, Element.Node,
            AttrRun(T).string(CombineAttr,
                              Power == 1 ? combine::Sum : combine::Pick),
            Inserted::Merge));
  }
  size_t Count = Elements.size();
  append_range(Elements, G->controlInputs(Scale));
  G->setInputs(Scale, Elements);
  G->setOp(Scale, op::Pack);
  G->removeAttr(Scale, PowersAttr);
  G->setIntAttr(Scale, "N", static_cast<int64_t>(Count));
  G->setIntAttr(Scale, "axis", 0);
  G->setIntAttr(Scale, WeightAttr, 0);
  G->node(Scale).Kind = Inserted::Weight;
  if (!G->hasUses(Merge))
    G->remove(Merge);
  return true;
}

PassResult WeighRows::run(Module &M, DiagnosticEngine & /*Diags*/) {
  G = &M.graph();
  Replicas = readMesh(*G).replicas();
  if (Replicas < 2)
    return PassResult::Unchanged;
  const ProgramFacts &Facts = programFacts(M);
  std::vector<Rows> Counted = findRows(Facts);
  RowsRead Read(*G, Facts);
  // For each combination: true if it is weighed.
  DenseMap<NodeId, bool> Weighed;
  auto IsWeighed = [&](NodeId Merge) {
    auto [It, New] = Weighed.try_emplace(Merge, false);
    if (New)
      It->second = weigh(Facts, Read, Merge);
    return It->second;
  };
  std::vector<NodeId> Means, Sizes;
  for (NodeId N : Facts.Order) {
    if (Weighed.lookup(N) || (!isMean(Facts, N) && !isScaledNumber(N)))
      continue;
    if (isScaledNumber(N) && G->hasAttr(N, PowersAttr)) {
      Sizes.push_back(N);
      continue;
    }
    NodeId Merge = G->isOp(N, ScaleOp) ? combinationOf(N) : N;
    if (Merge == NoNode || !IsWeighed(Merge))
      Means.push_back(N);
  }
  // A step that fails must change no variable. So if a mean waits for a check,
  // vectors of sizes wait as well. They also wait if shards may not fit.
  bool Fails = !Means.empty() || any_of(Facts.Order, [&](NodeId N) {
    return splitsComputed(Facts, N);
  });
  for (NodeId N : Sizes)
    if (Fails || !addUpSizes(Facts, Read, N))
      Means.push_back(N);
  DenseSet<NodeId> Nodes;
  for (const Rows &Of : Counted)
    Nodes.insert(Of.Node);
  // Feeds whose numbers of rows have one origin need only one check.
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
  return Means.empty() && Weighed.empty() && Sizes.empty()
             ? PassResult::Unchanged
             : PassResult::Changed;
}

} // namespace

GRAFT_DEFINE_PASS(WeighRows)

} // namespace graft
