//===- passes/MergeFetches.cpp - merge-fetches ------------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
// What leaves the replicas becomes the value of the single-device step under
// its original name: fetches, results that nothing reads, and what ops that
// exist once take from a replica.
//
//     loss = Mean*(x/split, i)         replica/loss = Mean*(x/split, i)
//     ScalarSummary(tag, loss)    →    loss/merged =
//     _FromReplicas(replica/loss)
//                                      loss = _Scale(loss/merged) power=-1
//                                      ScalarSummary(tag, loss)
//
// Equal values are picked from replica 0, partial ones are combined, rows are
// concatenated. A node whose local value is not the true one loses its name:
// copy i is `replica_<i>/<name>`, so that asking for an undeclared name fails
// instead of giving a shard.
//
// Relies on: replication types; reductions inserted.
//
//===----------------------------------------------------------------------===//

#include "lib/graph/AttrRun.h"
#include "lib/infer/facts/ProgramFacts.h"
#include "lib/infer/graph/Loops.h"
#include "lib/ops/OpRule.h"
#include "lib/io/Module.h"
#include "lib/io/ModuleVerifier.h"
#include "lib/ops/Ops.h"
#include "lib/pass/Pass.h"
#include "lib/program/Program.h"

#include "tensorflow/core/framework/variable.pb.h"
#include "tensorflow/core/protobuf/meta_graph.pb.h"

#include "llvm/ADT/BitVector.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/Sequence.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FormatVariadic.h"

#include <map>
#include <set>

using namespace llvm;

namespace graft {
namespace {

constexpr PassOption Options[] = {
    {"fetch", "Further tensors that are fetched, separated by ;", ""},
    {"pick",
     "Whether fetches that are equal on all replicas are merged, too, "
     "for where no copy of a replica can be fetched",
     "false"},
    {"heads",
     "Whether what is computed between the last variable and a loss is "
     "merged, too",
     "false"},
};

class MergeFetches final : public PassBase<MergeFetches> {
public:
  static constexpr PassInfo Info = {
      "merge-fetches", "Give fetches and unreplicated ops the global value",
      "Inserts `_FromReplicas` wherever a value leaves the replicas and moves\n"
      "the original name to the merged value.",
      Options};

  PassResult run(Module &M, DiagnosticEngine &Diags) override;

private:
  using Tensor = std::pair<NodeId, uint32_t>;

  bool collectFetches(const Module &M);
  void collectSinks();
  void collectHeads();
  bool isScalar(Endpoint E) const;
  bool sumsUpBatch(Endpoint E) const;
  bool hasStaticBatch() const;
  std::vector<bool> findLost() const;
  void warnLost(NodeId N);
  bool isGlobalName(NodeId N) const;
  bool isWorthPicking(NodeId N) const;
  bool hasNoAggregate(Endpoint E) const;
  Endpoint merge(Endpoint E);
  bool isNamedPick(Endpoint E) const {
    return Picks && Fetched.count({E.Node, E.Port}) &&
           Facts->Vars.variableOf(E) == NoNode;
  }
  void nameMerged(NodeId N);
  NodeId insert(StringRef Op, StringRef Base, StringRef Suffix, Endpoint Source,
                Inserted Kind, const AttrRun &Attrs);
  void warnVarying(Endpoint E, StringRef What);

  Graph *G = nullptr;
  DiagnosticEngine *Diags = nullptr;
  const ProgramFacts *Facts = nullptr;
  std::unique_ptr<LoopInfo> Loops;   ///< Null without.
  DenseMap<Tensor, Endpoint> Merged; ///< Asked and never walked.
  std::set<NodeId> Causes;           ///< Of values that were warned of.
  std::vector<NodeId> Lost;       ///< Results that lost the size of the batch.
  std::map<Tensor, bool> Fetched; ///< To whether the user named it.
  bool Picks = false;             ///< The option.
  std::string Scope;              ///< See copyScope.
  uint64_t *MergedCount = nullptr;
};

/// Tensors of collections and signatures, initial values, and those named with
/// --fetch.
bool MergeFetches::collectFetches(const Module &M) {
  SmallVector<StringRef, 4> Names;
  option("fetch").split(Names, ';', -1, false);
  for (StringRef Name : Names) {
    auto E = G->findEndpoint(Name);
    if (!E || E->isControl()) {
      std::vector<std::string> Known;
      Known.reserve(G->numInputNodes());
      for (NodeId N = 0; N < G->numInputNodes(); ++N)
        Known.push_back(G->name(N).str());
      std::string Near = nearest(Name, Known);
      Diags->error("",
                   "--fetch: the graph has no tensor '" + Name.str() + "'" +
                       (Near.empty() ? "" : "; did you mean '" + Near + "'?"));
      return false;
    }
    // An operation without outputs is run, not read.
    if (E->Port == 0 && Facts->Dims.numOutputs(E->Node) == 0)
      continue;
    if (!Facts->Dims.validPort(*E)) {
      Diags->error(G->name(E->Node),
                   "--fetch: there is no output " + std::to_string(E->Port));
      return false;
    }
    if (Loops && Loops->givesInside(E->Node)) {
      Diags->error(G->name(E->Node),
                   "--fetch: this tensor is in a loop, where it has a "
                   "different value in each iteration");
      return false;
    }
    Fetched[{E->Node, E->Port}] = true;
  }
  const tensorflow::MetaGraphDef *Meta = M.metaGraph();
  if (!Meta)
    return true;
  auto Add = [&](StringRef Name) {
    auto E = G->findEndpoint(Name);
    if (E && !E->isControl() && Facts->Dims.validPort(*E) &&
        !(Loops && Loops->givesInside(E->Node)))
      Fetched.try_emplace({E->Node, E->Port}, false);
  };
  // Hash-ordered maps of protobuf only fill the sorted map above.
  for (const auto &[Key, Collection] : Meta->collection_def()) {
    for (const std::string &Name : Collection.node_list().value())
      if (Name.find(':') != std::string::npos)
        Add(Name);
    // Who asks for a variable's initial value means that of all replicas.
    tensorflow::VariableDef Variable;
    if (!Picks && holdsVariables(Key))
      for (const std::string &Bytes : Collection.bytes_list().value())
        if (Variable.ParseFromString(Bytes))
          Add(Variable.initial_value_name());
  }
  for (const auto &[Key, Signature] : Meta->signature_def())
    for (const auto &[Output, Info] : Signature.outputs())
      Add(Info.name());
  return true;
}

/// Whether the equal numbers of \p N are picked although nobody named them. A
/// variable is read without a replica.
bool MergeFetches::isWorthPicking(NodeId N) const {
  return Picks && isScalar({N, 0}) &&
         none_of(G->dataInputs(N), [&](Endpoint E) {
           return Facts->Vars.variableOf(E) != NoNode;
         });
}

bool MergeFetches::isScalar(Endpoint E) const {
  auto Shape = Facts->Dims.shape(E);
  return Shape && Shape->empty();
}

/// Whether \p E is a scalar over all rows, as a loss is.
bool MergeFetches::sumsUpBatch(Endpoint E) const {
  return Facts->Types.natural(E).isPartial() && isScalar(E);
}

/// Whether a feed of a known number of rows is split.
bool MergeFetches::hasStaticBatch() const {
  return any_of(Facts->Order, [&](NodeId N) {
    if (!G->isOp(N, "_ToReplicas"))
      return false;
    auto Shape = Facts->Dims.shape({N, 0});
    auto Axis = static_cast<size_t>(G->intAttr(N, "axis").value_or(0));
    return Shape && Axis < Shape->size() &&
           Facts->Dims.table().number((*Shape)[Axis]) != UnknownSize;
  });
}

/// The nodes to which the batch was lost on the way, nothing being known of
/// their values or shapes, and where that met tensors that all replicas read.
std::vector<bool> MergeFetches::findLost() const {
  std::vector<bool> Lost(G->size());
  if (!hasStaticBatch())
    return Lost;
  auto IsOpen = [&](Endpoint E) {
    return Facts->Types.number(E).isVarying() && !Facts->Dims.shape(E) &&
           G->outputType(E.Node, E.Port) != DT_VARIANT;
  };
  auto MaySay = [&](Endpoint E) {
    auto Shape = Facts->Dims.shape(E);
    return Lost[E.Node] ||
           (Facts->Types.type(E).isReplicated() && (!Shape || !Shape->empty()));
  };
  for (NodeId N : Facts->Order) {
    bool Open = G->node(N).Count == Copies::PerReplica &&
                any_of(seq(0u, Facts->Dims.numOutputs(N)),
                       [&](unsigned Port) { return IsOpen({N, Port}); });
    // A rule of its own knows what an op takes.
    if (Open && (ruleOf(G->opName(N)).Type == TypeRule::None ||
                 any_of(G->dataInputs(N), IsOpen)))
      Lost[N] = any_of(G->dataInputs(N), MaySay) || G->isOp(N, op::EnsureShape);
  }
  return Lost;
}

/// A constant with the size of the batch may meet rows of one replica where
/// nobody sees to it, not even in what is never run.
void MergeFetches::warnLost(NodeId N) {
  RType Type = Facts->Types.number({N, 0});
  if (Type.Cause != NoNode && !Causes.insert(Type.Cause).second)
    return;
  Diagnostic &D = Diags->unproved(
      "size", originName(*G, N),
      "nothing reads this result, and its size is not known: if constants give "
      "it the size of the whole batch, TensorFlow does not load the graph; "
      "export it without this node, or with a batch of unknown size");
  if (Type.Cause != NoNode)
    D.Notes.push_back(
        {originName(*G, Type.Cause).str(), Facts->Types.reason(Type.Cause)});
}

/// Results that nothing reads, or only ops that exist once read, and scalars
/// that sum up the batch.
void MergeFetches::collectSinks() {
  std::vector<bool> IsLost = findLost();
  for (NodeId N : Facts->Order) {
    // Nobody can fetch what is in a loop.
    if (Loops && Loops->givesInside(N))
      continue;
    if (G->node(N).Count != Copies::PerReplica ||
        G->node(N).Kind != Inserted::No || G->node(N).Flags & NF_LocalName ||
        Facts->Vars.isUpdate(*G, N))
      continue;
    bool Read = G->anyUse(N, [&](Use U) {
      return U.Index < G->node(U.User).NumData &&
             G->node(U.User).Count == Copies::PerReplica;
    });
    if (Read && Facts->Types.usesState(N) && !hasNoAggregate({N, 0})) {
      // Who asks for the variable, as a VariableDef does, means all copies.
      Fetched.try_emplace({N, 0}, false);
      continue;
    }
    if (Read) {
      // A scalar over all rows, such as a loss to which a penalty is added, is
      // what people fetch. Merged, it costs nothing unless they do.
      if (sumsUpBatch({N, 0}) && Facts->Dims.numOutputs(N) == 1 &&
          G->outputType(N, 0) != DT_VARIANT)
        Fetched.try_emplace({N, 0}, false);
      continue;
    }
    if (Facts->Vars.variableOf({N, 0}) != NoNode || G->isOp(N, op::Const) ||
        hasNoAggregate({N, 0}))
      continue;
    if (IsLost[N])
      Lost.push_back(N);
    for (uint32_t Port = 0; Port < Facts->Dims.numOutputs(N); ++Port)
      // A shape vector that is part batch, or rows that no rule relates, or a
      // tensor of which not even the rank is known, or that others only wait
      // for, has no value to give: it loses its name, and whoever asks for it
      // is told.
      if ((isWorthPicking(N) || !Facts->Types.number({N, Port}).isTrue()) &&
          G->outputType(N, Port) != DT_VARIANT &&
          (!Facts->Types.number({N, Port}).isVarying() ||
           (!Facts->Types.type({N, Port}).Symbolic &&
            Facts->Dims.shape({N, Port}) &&
            Facts->Dims.batchAxis({N, Port}) < 0 && !G->hasUses(N))))
        Fetched.try_emplace({N, Port}, false);
  }
}

/// What is computed between the last variable and a loss (predictions, errors
/// of each example), as far as it is proved: who trains fetches it. A loss is
/// what sums up the batch in a scalar; gradients lead to none but through a
/// reduction. What only has the size of the batch (the zero state of a
/// recurrent network) is fed as often as it is fetched, and nobody reads a
/// merged value: it has no name.
void MergeFetches::collectHeads() {
  enum : uint8_t { LeadsToLoss = 1, MeetsVariable = 2 };
  std::vector<uint8_t> Marks(G->size());
  for (const auto &[Tensor, Named] : Fetched) {
    Endpoint E{Tensor.first, Tensor.second};
    if (sumsUpBatch(E))
      Marks[E.Node] = LeadsToLoss;
  }
  // Weights and what is made of them are numbers that every replica has.
  BitVector Seen(G->size()), OfVariable(G->size());
  auto IsWeight = [&](Endpoint E) {
    if (!Facts->Types.number(E).isTrue() || isScalar(E))
      return false;
    SmallVector<NodeId, 8> Path = {E.Node};
    while (!Path.empty()) {
      NodeId N = Path.back();
      bool First = !Seen[N];
      Seen.set(N);
      if (First && Facts->Vars.variableOf({N, 0}) != NoNode)
        OfVariable.set(N);
      else if (First)
        for (Endpoint From : G->dataInputs(N))
          if (!Seen[From.Node] && Facts->Types.number(From).isTrue())
            Path.push_back(From.Node);
      if (Path.back() != N)
        continue;
      Path.pop_back();
      if (any_of(G->dataInputs(N),
                 [&](Endpoint From) { return OfVariable[From.Node]; }))
        OfVariable.set(N);
    }
    return bool(OfVariable[E.Node]);
  };
  for (NodeId N : reverse(Facts->Order)) {
    if (Marks[N] == 0 || G->node(N).Count != Copies::PerReplica)
      continue;
    uint8_t Leads = Marks[N];
    if (any_of(G->dataInputs(N), IsWeight))
      Leads |= MeetsVariable;
    for (Endpoint E : G->dataInputs(N))
      Marks[E.Node] |= Leads;
    if (Marks[N] != LeadsToLoss || G->node(N).Kind != Inserted::No ||
        G->node(N).Flags & NF_LocalName || Facts->Vars.isUpdate(*G, N) ||
        Facts->Types.usesState(N) || Facts->Dims.numOutputs(N) != 1 ||
        (Loops && Loops->givesInside(N)))
      continue;
    RType Type = Facts->Types.number({N, 0});
    unsigned DataType = G->outputType(N, 0);
    bool HoldsRows = !Type.Zero && Type.Order != RType::AnyOrder;
    if (HoldsRows && !Type.isTrue() && !Type.isVarying() && !Type.Symbolic &&
        DataType != DT_VARIANT && DataType != DT_RESOURCE &&
        Facts->Dims.shape({N, 0}))
      Fetched.try_emplace({N, 0}, false);
  }
}

/// Whether \p E is read from a sync-on-read variable without aggregation.
bool MergeFetches::hasNoAggregate(Endpoint E) const {
  if (!Facts->Types.anyStates())
    return false;
  RType Type = Facts->Types.number(E);
  return Type.isVarying() && Type.Cause != NoNode &&
         G->node(Type.Cause).Plan == Policy::SyncOnRead;
}

/// Whether all outputs of copy 0 are true values.
bool MergeFetches::isGlobalName(NodeId N) const {
  for (uint32_t Port = 0; Port < Facts->Dims.numOutputs(N); ++Port)
    if (!Facts->Types.number({N, Port}).isTrue())
      return false;
  return true;
}

NodeId MergeFetches::insert(StringRef Op, StringRef Base, StringRef Suffix,
                            Endpoint Source, Inserted Kind,
                            const AttrRun &Attrs) {
  SmallString<128> Name(Base);
  Name += Suffix;
  NodeId N = G->insertNode(Name, Op, Source, Source.Node, Attrs);
  G->node(N).Kind = Kind;
  return N;
}

void MergeFetches::warnVarying(Endpoint E, StringRef What) {
  RType Type = Facts->Types.number(E);
  if (hasNoAggregate(E)) {
    if (Causes.insert(Type.Cause).second)
      Diags->error(G->name(Type.Cause),
                   ("Could not convert from `tf.VariableAggregation` "
                    "VariableAggregation.NONE to `tf.distribute.ReduceOp` "
                    "type: " +
                    What + " reads this variable outside of the step")
                       .str());
    return;
  }
  if (Type.Cause != NoNode && !Causes.insert(Type.Cause).second)
    return;
  Diagnostic &D = Diags->unproved(
      "fetch", originName(*G, E.Node),
      (What + " gets the value of replica 0, which is not proved to be the "
              "value of the single-device step")
          .str());
  if (Type.Cause != NoNode)
    D.Notes.push_back(
        {originName(*G, Type.Cause).str(), Facts->Types.reason(Type.Cause)});
}

/// The true value of a per-replica tensor, as a node that exists once.
Endpoint MergeFetches::merge(Endpoint E) {
  auto [It, New] = Merged.try_emplace({E.Node, E.Port});
  if (!New)
    return It->second;
  RType Type = Facts->Types.number(E);
  StringRef Base = originName(*G, E.Node);
  static constexpr const char *Names[] = {"sum", "min", "max", "and", "or"};
  StringRef Combine = "pick";
  if (Type.isPartial())
    Combine = Names[static_cast<int>(Type.Op)];
  else if (Type.isSharded())
    Combine = "concat";
  unsigned DataType = G->outputType(E.Node, E.Port);
  AttrRun Attrs;
  Attrs.type("T", DataType).string("combine", Combine);
  if (Type.isSharded())
    Attrs.integer("axis", Type.Axis);
  NodeId N =
      insert("_FromReplicas", Base, Combine == "pick" ? "/pick" : "/merged", E,
             Inserted::Merge, Attrs);
  // An equal value, or a handle, is read from copy 0 without a node between.
  if (Combine == "pick" && !Type.isVarying() && !isNamedPick(E))
    G->node(N).Flags |= NF_ElidePrimary;
  if (!Type.isVarying() && Type.K != 0) {
    AttrRun Power;
    Power.type("T", DataType).integer("power", -Type.K);
    N = insert("_Scale", Base, "/scale", {N, 0}, Inserted::Scale, Power);
  }
  count(MergedCount, "merged");
  return It->second = {N, 0};
}

/// Moves the name of \p N to the merged values of its outputs.
void MergeFetches::nameMerged(NodeId N) {
  std::string Name = G->name(N).str();
  SmallVector<Endpoint, 2> Values;
  for (uint32_t Port = 0; Port < Facts->Dims.numOutputs(N); ++Port) {
    auto It = Merged.find({N, Port});
    if (It == Merged.end())
      break;
    Values.push_back(It->second);
  }
  G->setStringAttr(N, OriginAttr, Name);
  // What is called after a variable is called after its copy.
  size_t Split = G->node(N).NameSplit;
  if (G->node(N).Plan == Policy::Replicated || Split >= Name.size())
    Split = 0;
  std::string Local = Name;
  Local.insert(Split, Split == 0 ? Scope + "/" : "/" + Scope);
  Split += Scope.size() + (Split == 0 ? 0 : 1);
  G->node(N).Plan = Policy::None;
  G->rename(N, G->uniqueName(Local));
  G->node(N).NameSplit = static_cast<uint32_t>(Split);
  G->node(N).Flags |= NF_LocalName;
  if (Values.size() == 1 && Facts->Dims.numOutputs(N) == 1) {
    G->rename(Values[0].Node, Name);
    return;
  }
  if (Values.empty())
    return;
  NodeId All = G->addNode(Name, op::IdentityN, Values, N);
  std::string Types;
  for (Endpoint E : Values)
    Types += static_cast<char>(G->outputType(E.Node, E.Port));
  G->setAttr(All, "T", encodeTypeListAttr(Types));
  G->node(All).Kind = Inserted::Identity;
}

PassResult MergeFetches::run(Module &M, DiagnosticEngine &D) {
  G = &M.graph();
  Diags = &D;
  Mesh Devices = readMesh(*G);
  if (Devices.Node == NoNode)
    return PassResult::Unchanged;
  Scope = copyScope(Devices.Word).str();
  Picks = option("pick") == "true";
  unsigned Errors = D.errorCount();
  Facts = &programFacts(M);
  Loops = LoopInfo::find(*G, Facts->Order);
  if (!collectFetches(M))
    return PassResult::Failure;
  collectSinks();
  if (option("heads") == "true")
    collectHeads();
  NodeId Size = G->size();
  bool Changed = false;
  // A step that writes what depends on the batch is worth running whatever is
  // fetched.
  bool Reached = any_of(Facts->Order, [&](NodeId N) {
    return Facts->Vars.isUpdate(*G, N) &&
           (G->node(N).Count == Copies::PerReplica ||
            any_of(G->dataInputs(N), [&](Endpoint E) {
              return G->node(E.Node).Count == Copies::PerReplica;
            }));
  });
  // Values that ops take which exist once.
  for (NodeId User : Facts->Order) {
    if (G->node(User).Count != Copies::Once || combinesReplicas(*G, User))
      continue;
    for (unsigned I = 0; I < G->node(User).NumData; ++I) {
      Endpoint E = G->input(User, I);
      if (G->node(E.Node).Count != Copies::PerReplica)
        continue;
      if (Facts->Types.number(E).isVarying())
        warnVarying(E, ("'" + G->name(User) + "'").str());
      if (D.wantsRemarks() && Facts->Vars.isUpdate(*G, User) &&
          Facts->Types.number(E).isPartial())
        D.remark("reduction", originName(*G, E.Node),
                 formatv("{0} is reduced: {1} over the replicas, for '{2}'",
                         Facts->Types.number(E).str(),
                         Facts->Types.number(E).K == 1 ? "mean" : "sum",
                         G->name(User)))
            .Facts = {{"type", Facts->Types.number(E).str()},
                      {"scale", std::to_string(-Facts->Types.number(E).K)},
                      {"for", G->name(User).str()}};
      G->setInput(User, I, merge(E));
      Changed = true;
    }
  }
  for (const auto &[Tensor, Named] : Fetched) {
    Endpoint E{Tensor.first, Tensor.second};
    if (G->node(E.Node).Count != Copies::PerReplica) {
      continue;
    }
    Reached = true;
    RType Type = Facts->Types.number(E);
    if (Facts->Vars.variableOf(E) != NoNode || (Type.isTrue() && !Picks))
      continue;
    if (Type.isVarying())
      warnVarying(E, "this fetch");
    merge(E);
    if (!Type.isVarying() && D.wantsRemarks())
      D.remark("fetch", G->name(E.Node), Type.str() + " is merged");
    Changed = true;
  }
  for (NodeId N : Lost)
    warnLost(N);
  if (D.errorCount() != Errors)
    return PassResult::Failure;
  for (const auto &[Tensor, Named] : Fetched)
    if (Named && !Reached) {
      D.error(G->name(Tensor.first),
              "no fetch depends on a feed that is split");
      return PassResult::Failure;
    }
  std::vector<StringRef> Gone;
  for (NodeId N = 0; N < Size; ++N) {
    if (!G->isLive(N) || G->node(N).Count != Copies::PerReplica ||
        G->node(N).Flags & NF_LocalName || G->node(N).Kind == Inserted::Split ||
        Facts->Types.readsUnaggregated(N) ||
        (isGlobalName(N) && !(Merged.count({N, 0}) && isNamedPick({N, 0}))))
      continue;
    if (G->node(N).Kind == Inserted::No && Merged.count({N, 0}))
      nameMerged(N);
    else
      G->node(N).Flags |= NF_LocalName;
    if (D.wantsRemarks() && G->node(N).Kind == Inserted::No &&
        !Merged.count({N, 0}))
      Gone.push_back(G->name(N));
    G->markModified();
    Changed = true;
  }
  if (!Gone.empty())
    D.remark("local", Gone.front(),
             formatv("is local to a replica and does not exist in the output; "
                     "the same holds for {0} more of the input: name those "
                     "that are wanted with --fetch=NAME",
                     Gone.size() - 1))
        .Facts = {{"names", join(Gone, " ")}};
  return Changed ? PassResult::Changed : PassResult::Unchanged;
}

} // namespace

GRAFT_DEFINE_PASS(MergeFetches)

} // namespace graft
