//===- lib/certify/compare/Certificate.cpp - check of a program -*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "lib/certify/compare/Certificate.h"

#include "lib/certify/compare/LoopCheck.h"
#include "lib/certify/compare/NodeChecks.h"
#include "lib/certify/compare/RepeatCheck.h"
#include "lib/certify/compare/RunsApart.h"
#include "lib/certify/compare/SizeFactCheck.h"
#include "lib/certify/forms/InsertedForm.h"
#include "lib/certify/forms/WeightCheck.h"
#include "lib/graph/AttrWire.h"
#include "lib/graph/FileWalk.h"
#include "lib/graph/Verifier.h"
#include "lib/infer/batch/LocalSizes.h"
#include "lib/infer/facts/LocalRuns.h"
#include "lib/infer/facts/ProgramFacts.h"
#include "lib/infer/graph/BatchSources.h"
#include "lib/infer/rules/BatchNormReads.h"
#include "lib/ops/OpTable.h"
#include "lib/ops/Ops.h"
#include "lib/program/Program.h"
#include "lib/program/forms/Compression.h"
#include "lib/program/forms/LengthGather.h"
#include "lib/program/forms/SeedOffset.h"
#include "lib/support/Bytes.h"

#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/Sequence.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/Support/FormatVariadic.h"

using namespace llvm;

namespace graft {

namespace {

class Checker : public Comparison {
public:
  Checker(const InputGraph &Input, const Graph &Program,
          DiagnosticEngine &Diags);

  bool run();

private:
  bool matchNodes();
  NodeId findInput(StringRef Name);
  void compareNode(NodeId I, NodeId P);
  /// Returns true if tensor \p E of the program is tensor \p Want of the input,
  /// or an equal read of a variable that has a proxy.
  bool reads(Endpoint E, Endpoint Want) const {
    if (E.Node == NoNode)
      return false;
    Endpoint Is{InputOf[E.Node], E.Port};
    return Is == Want ||
           (Proxies && Is.Node != NoNode && Proxies->areSameRead(Is, Want));
  }
  bool readsDefined(NodeId I, NodeId P, unsigned K) const;
  void compareAttrs(NodeId I, NodeId P);
  bool mayChange(NodeId I, StringRef Key) const {
    return BatchNorms && BatchNorms->mayChange(I, Key);
  }
  bool isOpenFeed(NodeId I) const;
  bool mayNameAxes(NodeId I, NodeId P, StringRef Key);
  bool isOfWholeBatch(const ProgramFacts &Facts, NodeId N) const;
  void checkDemands(const ProgramFacts &Facts);
  void checkLocalRuns(const ProgramFacts &Facts);
  void checkForeignOps(const ProgramFacts &Facts);
  void checkConstant(const ProgramFacts &Facts, NodeId P);

  bool ReadsBatches = false;  ///< The program reads a queue or an iterator.
  std::vector<uint32_t> OpOf; ///< By op of the input: the op of the program.
  uint32_t ConstOp = ~0u;     ///< The op Const of the program.
  /// Nodes with an attribute that states a shape: run() compares it with the
  /// inferred sizes.
  std::vector<std::pair<NodeId, StringRef>> StatedShapes;
  std::vector<NodeId> NamedAxes; ///< Squeezes that name the axes they drop.
  /// The nodes of the input by name, for when ids do not match.
  DenseMap<StringRef, NodeId> ByName;
};

Checker::Checker(const InputGraph &Input, const Graph &Program,
                 DiagnosticEngine &Diags)
    : Comparison(Input, Program, Diags) {
  StringMap<uint32_t> Ids;
  for (uint32_t Op = 0; Op < G.numOps(); ++Op) {
    Ids[G.opNameOf(Op)] = Op;
    if (G.opNameOf(Op) == op::Const)
      ConstOp = Op;
    ReadsBatches |= isBatchRead(G.opNameOf(Op));
  }
  for (StringRef Name : In.opNames()) {
    auto It = Ids.find(Name);
    OpOf.push_back(It == Ids.end() ? ~0u : It->second);
  }
}

NodeId Checker::findInput(StringRef Name) {
  if (ByName.empty())
    for (NodeId I = 0; I < In.size(); ++I)
      if (In.isLive(I))
        ByName[In.name(I)] = I;
  auto It = ByName.find(Name);
  return It == ByName.end() ? NoNode : It->second;
}

/// Matches nodes by name. Each node of the input must be in the program exactly
/// once. All other nodes of the program must be inserted nodes.
bool Checker::matchNodes() {
  ProgramOf.assign(In.size(), NoNode);
  InputOf.assign(G.size(), NoNode);
  bool Defines = false, HasProxies = false;
  for (NodeId P = 0; P < G.size(); ++P) {
    const Node &This = G.node(P);
    if (This.isDead() || This.Kind != Inserted::No) {
      Defines |= This.Kind == Inserted::Definition;
      HasProxies |= !This.isDead() && This.Kind == Inserted::Proxy;
      if (!This.isDead() && This.Kind == Inserted::Again)
        if (NodeId I = findInput(G.stringAttr(P, AgainAttr).value_or(""));
            I != NoNode)
          AgainOf[P] = I;
      continue;
    }
    // Most nodes have the id that they have in the input, but names decide.
    StringRef Origin = originName(G, P);
    NodeId I = P;
    if (P >= In.size() || !isSameText(In.name(P), Origin))
      I = findInput(Origin);
    if (I == NoNode) {
      error(P, "this node does not come from the input");
    } else if (ProgramOf[I] != NoNode) {
      error(P, "this node of the input is in the program twice");
    } else {
      ProgramOf[I] = P;
      InputOf[P] = I;
      // If the node was renamed, another node may now have its old name.
      if (!isSameText(Origin, G.name(P)))
        if (NodeId N = G.find(Origin); N != NoNode)
          NamedAfter[N] = I;
    }
  }
  for (NodeId I = 0; I < In.size(); ++I)
    if (In.isLive(I) && ProgramOf[I] == NoNode && ++Errors <= 12)
      Diags.error(In.name(I), "this node of the input is missing");
  if (Defines)
    BatchNorms.emplace(*this);
  if (HasProxies)
    Proxies.emplace(*this);
  return Errors == 0;
}

/// Returns true for attributes that do not affect values and may be changed.
static bool isIgnored(StringRef Key) {
  return Key.starts_with("_graft_") || Key == "_class" ||
         Key == "_output_shapes";
}

/// Returns true if the attributes \p Now equal \p Was, in order, apart from
/// ignored ones. False means that a closer look is needed.
static bool sameAttrs(StringRef Was, StringRef Now) {
  AttrReader Old(Was), New(Now);
  AttrEntry A, B;
  while (Old.next(A)) {
    // If the bytes are equal, the field is equal; comparing is cheaper than
    // parsing.
    if (New.rest().starts_with(A.Whole) && A.Key != OriginalAttr) {
      New.skip(A.Whole.size());
      continue;
    }
    if (isIgnored(A.Key))
      continue;
    do
      if (!New.next(B) || B.Key == OriginalAttr)
        return false;
    while (isIgnored(B.Key));
    if (B.Key != A.Key || B.Value != A.Value)
      return false;
  }
  while (New.next(B))
    if (!isIgnored(B.Key) || B.Key == OriginalAttr)
      return false;
  return true;
}

/// Returns true for the attributes that keep XLA away from a host variable.
static bool isOffXla(const AttrEntry &A) {
  return (A.Key == "_XlaCompile" && A.Value == encodeBoolAttr(false)) ||
         (A.Key == "_XlaScope" && A.Value == encodeStringAttr(""));
}

/// Returns true if the attribute \p Value is a shape that states only the
/// number of axes.
static bool isRank(StringRef Value) {
  auto Bytes = bytesField(Value, AttrShape);
  if (!Bytes)
    return false;
  ShapeValue Shape = parseShape(*Bytes);
  return !Shape.UnknownRank &&
         all_of(Shape.Dims, [](int64_t Size) { return Size < 0; }) &&
         Value == encodeShapeAttr(Shape);
}

void Checker::compareAttrs(NodeId I, NodeId P) {
  const Node &New = G.node(P);
  StringRef Was = In.attrBytes(I), Now(New.AttrData, New.AttrSize);
  if (isSameText(Was, Now) || sameAttrs(Was, Now))
    return;
  AttrReader Old(Was);
  for (AttrEntry A; Old.next(A);) {
    if (isIgnored(A.Key))
      continue;
    if (A.Key.ends_with("shape") && A.Key == statedShape(G.opName(P)) &&
        !isOpenFeed(I)) {
      StatedShapes.push_back({P, A.Key});
      continue;
    }
    auto Value = A.Key == "value" && G.hasAttr(P, OriginalAttr)
                     ? G.attr(P, OriginalAttr)
                     : G.attr(P, A.Key);
    if (Value != A.Value && !mayChange(I, A.Key) &&
        !(Value && isOffXla({A.Key, *Value, ""})) &&
        !(A.Key == "shape" && isOpenFeed(I) && Value && isRank(*Value)) &&
        !mayNameAxes(I, P, A.Key))
      error(P, "attribute '" + A.Key + "' differs from the input graph");
  }
  for (const AttrEntry &A : G.attrs(P))
    if (!isIgnored(A.Key) && !In.attr(I, A.Key) && !mayChange(I, A.Key) &&
        !isOffXla(A) && !mayNameAxes(I, P, A.Key))
      error(P, "attribute '" + A.Key + "' is not in the input graph");
}

/// Returns true if \p Key is squeeze_dims and the Squeeze \p I lists no axes in
/// the input. The op then drops all axes of size 1, and a program may list
/// them. Records \p P, so that run() checks the listed axes.
bool Checker::mayNameAxes(NodeId I, NodeId P, StringRef Key) {
  if (Key != "squeeze_dims" || !G.isOp(P, op::Squeeze))
    return false;
  auto Was = In.attr(I, Key);
  auto List = Was ? bytesField(*Was, AttrList) : std::nullopt;
  if (Was && !(List && List->empty()))
    return false;
  NamedAxes.push_back(P);
  return true;
}

/// Returns true if \p I is a feed of unknown rank in the input. A program may
/// state the rank of such a feed, because TensorFlow checks the rank of a fed
/// value.
bool Checker::isOpenFeed(NodeId I) const {
  auto Shape = In.attr(I, "shape");
  auto Bytes = Shape ? bytesField(*Shape, AttrShape) : std::nullopt;
  return In.opNames()[In.op(I)].starts_with(op::Placeholder) && Bytes &&
         parseShape(*Bytes).UnknownRank;
}

/// Returns true if input \p K of node \p P is input \p K of node \p I, or
/// equals it by the definition of a batch norm.
bool Checker::readsDefined(NodeId I, NodeId P, unsigned K) const {
  Endpoint Want = In.inputs(I)[K], E = G.input(P, K);
  if (BatchNorms->means(E, Want) ||
      (BatchNorms->isRewritten(I) && BatchNorms->givesStatistics(I, K, E)))
    return true;
  if (BatchNorms->isHollow(Want) && !readsShapeOnly(G, P, Want.Port))
    return false;
  // A seed plus an offset for each replica counts as the seed.
  E = withoutOffset(G, P, K, strip(E), Replicas);
  return E.Node != NoNode && reads(erase(E), Want);
}

void Checker::compareNode(NodeId I, NodeId P) {
  if (OpOf[In.op(I)] != G.node(P).Op)
    error(P, "the op is " + G.opName(P) + ", but " + In.opNames()[In.op(I)] +
                 " in the input graph");
  compareAttrs(I, P);
  ArrayRef<Endpoint> Was = In.inputs(I), Now = G.inputs(P);
  uint32_t NumData = In.numData(I);
  if (NumData != G.node(P).NumData) {
    error(P, "has a different number of inputs than in the input graph");
    return;
  }
  for (uint32_t K = 0; K < NumData; ++K) {
    Endpoint Want = Was[K], E = Now[K];
    IsRead[Want.Node] = true;
    if (BatchNorms ? readsDefined(I, P, K)
                   : reads(E, Want) || reads(erase(E), Want))
      continue;
    error(P, formatv("input {0} must be '{1}:{2}', as in the input graph", K,
                     In.name(Want.Node), Want.Port)
                 .str());
  }
  size_t Next = NumData;
  bool Same = true;
  for (Endpoint E : Now.drop_front(NumData)) {
    // A node may also wait for checks of copies and resets of residuals.
    if (InputOf[E.Node] == NoNode &&
        (runsChecks(G, E.Node) || clearsResidual(G, E.Node)))
      continue;
    // Nodes that define the statistics of a batch norm have no effect, so a
    // wait for them is harmless.
    if (BatchNorms && G.node(E.Node).Kind == Inserted::Definition &&
        BatchNorms->isRewritten(I))
      continue;
    NodeId Source = InputOf[E.Node];
    if (NodeId U = Proxies ? Proxies->updateOf(E.Node) : NoNode; U != NoNode)
      Source = InputOf[U];
    bool IsWas = Next < Was.size() && Was[Next].Node == Source;
    if (!IsWas && Proxies && Proxies->isReadOf(E.Node, P))
      continue;
    Same &= IsWas;
    ++Next;
  }
  if (!Same || Next != Was.size())
    error(P, "has different control inputs than in the input graph");
}

/// Returns true if \p N is unreplicated and takes global values only. Its
/// operands then have the sizes of the single-device step. A conflict of these
/// sizes is also in the input, so it is no error.
bool Checker::isOfWholeBatch(const ProgramFacts &Facts, NodeId N) const {
  return G.node(N).Count == Copies::Once &&
         all_of(G.dataInputs(N), [&](Endpoint E) {
           return G.node(E.Node).Count == Copies::Once &&
                  Facts.Types.number(E).isTrue();
         });
}

/// Reports open collective requests, conflicts of sizes and unproved writes.
void Checker::checkDemands(const ProgramFacts &Facts) {
  for (const Demand &D : Facts.Types.demands()) {
    const char *What = D.Kind == Demand::Reduce   ? "reduced"
                       : D.Kind == Demand::Gather ? "gathered"
                       : D.Kind == Demand::Count  ? "added up"
                                                  : "scaled";
    error(D.Source.Node,
          formatv("output {0} is {1} and must be {2} for '{3}'", D.Source.Port,
                  Facts.Types.natural(D.Source).str(), What,
                  originName(G, D.Because))
              .str());
  }
  for (const DimAnalysis::Conflict &C : Facts.Dims.conflicts()) {
    if (isOfWholeBatch(Facts, C.Node))
      continue;
    if (C.Why)
      error(
          C.Node,
          formatv("{0}: each replica has {1}, so TensorFlow would not load "
                  "the graph; export it without this node, or with a batch of "
                  "unknown size",
                  C.Why, Facts.Dims.localNumber(C.A))
              .str());
    else
      error(C.Node, "two sizes that must be equal are not: " +
                        Facts.Dims.describe(C.A) + " and " +
                        Facts.Dims.describe(C.B));
  }
  for (auto [N, I] : Facts.Types.unprovedWrites()) {
    NodeId Cause = Facts.Types.type(G.input(N, I)).Cause;
    // If the type became unknown at a node of the input, a pass has warned of
    // it. If it became unknown at an inserted node, that is an error.
    if (Facts.Types.usesState(N, I))
      continue;
    if (IsComputation || Cause == NoNode || G.node(Cause).Kind != Inserted::No)
      error(N,
            formatv("input {0} does not have the value of the single-device "
                    "step",
                    I)
                .str(),
            Cause);
  }
  checkLocalRuns(Facts);
  checkForeignOps(Facts);
}

/// Checks that each replica may run the nodes for which no rule relates local
/// and global values. Does not check that these nodes leave copies of variables
/// equal: a written file does not state the policies by which copies may
/// differ. The pass insert-reductions checks that.
void Checker::checkLocalRuns(const ProgramFacts &Facts) {
  LocalRuns Local(G, Facts);
  auto IsTold = [&](NodeId N) {
    return any_of(Facts.Dims.conflicts(),
                  [&](const DimAnalysis::Conflict &C) { return C.Node == N; });
  };
  for (const LocalRuns::Fault &F : Local.faults())
    if (!IsTold(F.Node))
      error(F.Node, F.Why + Local.spoiledBy(F.Node).str(G));
}

/// Reports per-replica nodes with a variable as input and an op that is not
/// part of TensorFlow. The effect of the op is unknown. Each copy would apply
/// it to the shard of its replica, and an unreplicated variable would change N
/// times.
void Checker::checkForeignOps(const ProgramFacts &Facts) {
  auto IsForeign = [&](uint32_t Op) {
    return !G.opDefOf(Op) && !G.opNameOf(Op).starts_with("_");
  };
  if (none_of(seq(0u, G.numOps()), IsForeign))
    return;
  for (NodeId N : Facts.Order) {
    if (G.node(N).Count != Copies::PerReplica || !IsForeign(G.node(N).Op))
      continue;
    for (unsigned I = 0; I < G.node(N).NumData; ++I)
      if (Facts.Vars.usesInPlace(G, N, I)) {
        error(N,
              ("op " + G.opName(N) +
               " is not an op of TensorFlow, so its effect on the variable '" +
               originName(G, Facts.Vars.variableOf(G.input(N, I))) +
               "' on each replica is unknown; apply the gradient with an op of "
               "TensorFlow")
                  .str());
        break;
      }
  }
}

/// Checks that a constant differs from its original only in the batch size.
void Checker::checkConstant(const ProgramFacts &Facts, NodeId P) {
  NodeId I = InputOf[P];
  if (Facts.Dims.batchAxis({P, 0}) >= 0) {
    auto Was = In.attr(I, "value");
    if (G.node(P).Count == Copies::Once || !Was ||
        !isLocalSplat(G, Facts.Dims, P, *Was, Replicas))
      error(P, "this constant has the size of a shard, but is no shard of the "
               "input's constant");
    return;
  }
  // An unchanged constant is right if no element is a per-replica size.
  if (In.attrBytes(I).data() == G.node(P).AttrData &&
      !Facts.Dims.isSymbolic({P, 0}))
    return;
  // If each replica reads its own batch, sizes are those of the input.
  if (OwnBatch) {
    if (In.attr(I, "value") != G.attr(P, "value"))
      error(P, "has a different value than in the input graph");
    return;
  }
  auto Value = Facts.Dims.value({P, 0});
  auto Bytes = In.attr(I, "value"), NowBytes = G.attr(P, "value");
  auto Now = constValue(G, P), Was = Bytes ? tensorValue(*Bytes) : std::nullopt;
  if (!Value || !Now || !Was || Now->Shape.Dims != Was->Shape.Dims ||
      Now->Ints.size() != Was->Ints.size() ||
      Now->Ints.size() != Value->size()) {
    // Only sizes change with the number of replicas.
    if (Bytes != NowBytes && G.hasAttr(P, OriginalAttr))
      error(P, "has a different value than in the input graph, although it "
               "holds no sizes");
    return;
  }
  for (size_t K = 0; K < Value->size(); ++K) {
    auto S = Facts.Dims.table().sym((*Value)[K]);
    if (Now->Ints[K] * timesLarger(Facts.Dims.table(), (*Value)[K], Replicas) ==
        Was->Ints[K])
      continue;
    bool Batch = S && Facts.Dims.table().isOfSplit(*S) &&
                 S->globalPower() > 0 && Was->Ints[K] % Replicas == 0;
    error(P, Batch ? formatv("element {0} is the batch size: it is {2} in the "
                             "input and must be {3} here, but is {1}",
                             K, Now->Ints[K], Was->Ints[K],
                             Was->Ints[K] / Replicas)
                         .str()
                   : formatv("element {0} is {1}, but {2} in the input; the "
                             "element is not the batch size",
                             K, Now->Ints[K], Was->Ints[K])
                         .str());
  }
}

bool Checker::run() {
  if (!matchNodes())
    return false;
  IsRead.resize(In.size());
  for (NodeId I = 0; I < In.size(); ++I)
    if (In.isLive(I))
      compareNode(I, ProgramOf[I]);
  // A recomputed node must have the op, attributes and inputs of its original.
  for (NodeId P = 0; P < G.size() && !AgainOf.empty(); ++P)
    if (auto It = AgainOf.find(P); It != AgainOf.end())
      compareNode(It->second, P);
  // The certificate infers from scratch and uses no result of a pass. An
  // unpacked tensor is assumed to have the sizes of the tensor that was packed.
  // PackCheck then compares these with the sizes that the pack states.
  DimOptions Options = optionsOf(G);
  for (NodeId N = 0; N < G.size(); ++N)
    if (G.isLive(N) && G.node(N).Kind == Inserted::Pack)
      if (Endpoint Of = formOf(Inserted::Pack).StandsFor(*this, {N, 0});
          Of.Node != NoNode)
        Options.Like.push_back({N, Of});
  ProgramFacts Facts(G, std::move(Options));
  OwnBatch = ReadsBatches && any_of(Facts.Order, [&](NodeId N) {
               return ownBatchAxes(G, N).has_value();
             });
  checkDemands(Facts);
  checkSizeFacts(G, Facts.Order, Facts.sizeUses(),
                 [&](NodeId N, const Twine &Text) { error(N, Text); });
  for (auto &[P, Key] : StatedShapes)
    if (!isLocalStatedShape(G, Facts.Dims, P, *In.attr(InputOf[P], Key),
                            G.attr(P, Key), Replicas))
      error(P, "attribute '" + Key + "' differs from the input graph");
  for (NodeId P : NamedAxes)
    if (auto Named = G.intListAttr(P, "squeeze_dims");
        !Named || Named->empty() ||
        Facts.Dims.axesOfOne(G.input(P, 0)) != SmallVector<int64_t, 4>(*Named))
      error(P, "drops other axes than those of size 1");
  if (auto Loops = LoopInfo::find(G, Facts.Order)) {
    checkLoops(G, *Loops, [&](NodeId N, const Twine &Text) { error(N, Text); });
    IsInside.resize(G.size());
    for (NodeId N : Facts.Order)
      IsInside[N] = Loops->givesInside(N);
  }
  for (FileWalk Walk(G); NodeId N : Facts.Order)
    if (InputOf[N] != NoNode && G.node(N).Op == ConstOp) {
      Walk.at(N);
      checkConstant(Facts, N);
    }
  if (Proxies)
    Proxies->check(Facts);
  checkNodes(*this, Facts);
  checkRunsApart(*this, Facts);
  checkRepeats(*this, Facts);
  checkWeights(*this, Facts);
  return Errors == 0;
}

} // namespace

bool certifyProgram(const InputGraph &Input, const Graph &Program,
                    DiagnosticEngine &Diags) {
  return Checker(Input, Program, Diags).run();
}

/// Checks the types of inserted nodes. Passes copy them, but a program that was
/// read from a file may state any type.
static bool checkTypes(const Graph &G, DiagnosticEngine &Diags) {
  unsigned Before = Diags.errorCount();
  for (NodeId N = 0; N < G.size(); ++N) {
    const Node &This = G.node(N);
    if (This.isDead() || This.NumData == 0 || !formOf(This.Kind).IsTyped ||
        isLengthGatherOp(G, N) || G.opName(N) == op::IdentityN ||
        G.opName(N) == op::SparseSlice)
      continue;
    Endpoint E = G.input(N, 0);
    if (G.typeAttr(N, "T").value_or(DT_INVALID) != G.outputType(E.Node, E.Port))
      Diags.error(G.name(N), "attribute 'T' is not the type of its input");
  }
  return Diags.errorCount() == Before && verifyTypes(G, Diags);
}

bool certifyProgram(const Graph &Input, const Graph &Program,
                    DiagnosticEngine &Diags, bool IsComputation) {
  if (!checkTypes(Program, Diags))
    return false;
  InputGraph Picture(Input);
  Checker Check(Picture, Program, Diags);
  Check.IsComputation = IsComputation;
  return Check.run();
}

} // namespace graft
