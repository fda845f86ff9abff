//===- passes/InsertCollectives.cpp - insert-collectives --------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
// Lowers every `_Reduce` and `_Gather` to ops of TensorFlow.
//
//   add          s = _FromReplicas(g) combine=sum     one AddN
//                s/scale = _Scale(s) power=-1
//                r = Identity*(s/scale)               one on every replica
//
//   collective   c = CollectiveReduce*(g) final_op=Id members on their devices
//                gate = NoOp(^c)                      waits for all members
//                r = Identity*(c, ^gate)              what users read
//
// Adding works in any order and cannot hang. `auto` adds unless a variable asks
// for NCCL on GPUs. A collective blocks if only some members run, so the gate
// makes a run of one member run all members. A collective also blocks if
// TensorFlow puts several members on one device because a device is missing
// (soft placement). Then the step fails after `collective-timeout` seconds, in
// TensorFlow 2.4 or later. The keys of collectives follow the order of names,
// so they do not depend on the order of nodes.
//
//   workers      c = CollectiveReduce*(g), gate and r as above, also for
//                m = _FromReplicas(g) combine=sum     a value that exists once:
//                m = _FromReplicas(r) combine=pick    each worker has it
//
// If the order of the mesh's devices differs from the order of TensorFlow's
// group members, rows are concatenated instead of gathered.
//
// `workers` is for one graph in each process, where no replica can add the
// values of other replicas. Rows that are only fetched are still concatenated.
//
// The file is long because all lowerings share the code that reads a reduction.
//
// Relies on: shapes that are equal on all replicas, which the types prove. If
// shards have different row counts, the row counts are gathered before the rows
// (lib/program/forms/LengthGather.h), or the `add` lowering is used.
//
//===----------------------------------------------------------------------===//

#include "lib/graph/AttrRun.h"
#include "lib/graph/PerOp.h"
#include "lib/infer/facts/ProgramFacts.h"
#include "lib/infer/graph/Loops.h"
#include "lib/io/Module.h"
#include "lib/ops/Ops.h"
#include "lib/program/Program.h"
#include "lib/rewrite/Reductions.h"
#include "lib/rewrite/UnevenGather.h"
#include "lib/strategy/Cluster.h"
#include "passes/Options.h"

#include "tensorflow/core/framework/attr_value.pb.h"
#include "tensorflow/core/framework/versions.pb.h"

#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/STLExtras.h"

using namespace llvm;

namespace graft {
namespace {

constexpr int64_t GroupKey = 1;

/// Returns true if collectives of all kinds take \p Type.
bool hasKernel(unsigned Type) {
  return Type == DT_FLOAT || Type == DT_DOUBLE || Type == DT_HALF ||
         Type == DT_INT32 || Type == DT_INT64;
}

class InsertCollectives final
    : public PassBase<InsertCollectives, InsertCollectivesOptions> {
public:
  static constexpr PassInfo Info = {
      "insert-collectives", "Turn reductions into AddN or collectives",
      "Replaces `_Reduce` and `_Gather` by an addition and identities, or by\n"
      "members of a collective behind a gate."};

  PassResult run(Module &M, DiagnosticEngine &Diags) override;

private:
  /// The attributes of a reduction.
  struct Form {
    bool Gather = false;
    unsigned Type = DT_INVALID;
    int64_t Power = 0;
    int64_t Axis = 0;
    StringRef Combine;
    std::optional<int64_t> Assumed;
    StringRef Hint;             ///< Empty: none.
    bool HasCollective = false; ///< Set if collectives can compute it.
  };

  void read(NodeId N);
  void becomeIdentity(NodeId N, ArrayRef<Endpoint> Inputs);
  void add(NodeId N);
  bool divides() const {
    return !This.Gather && This.Power == -1 && isFloating(This.Type);
  }
  std::array<Endpoint, 2> member(NodeId N, int64_t InstanceKey);
  void gatherUneven(NodeId N, int64_t Rank, int64_t &InstanceKey);
  void scale(NodeId N);
  void collective(NodeId N, int64_t InstanceKey);
  void pick(NodeId N, int64_t InstanceKey);
  bool merges(NodeId N) const;
  std::vector<NodeId> findExchanges() const;
  void giveForm(NodeId N, bool Add, int64_t Rank, int64_t &InstanceKey);
  void findHints(Module &M, ArrayRef<NodeId> Found);
  DenseMap<NodeId, int64_t> findUneven(Module &M, ArrayRef<NodeId> Found);
  std::string timeoutAttr() const;
  StringRef nameOf(NodeId N, StringRef Suffix);

  Graph *G = nullptr;
  unsigned Replicas = 0;
  bool Workers = false, GathersInOrder = false;
  /// The attributes of the last reduction, before and after stripping. Most
  /// reductions have equal attributes, which are parsed only once.
  StringRef LastAttrs, Stripped;
  Form This;
  SmallString<128> Name;
  std::string Offsets, Timeout;
  uint64_t *Added = nullptr, *Collectives = nullptr;
};

void InsertCollectives::read(NodeId N) {
  StringRef Run(G->node(N).AttrData, G->node(N).AttrSize);
  bool Gather = G->isOp(N, GatherOp);
  if (!Run.empty() && Run.data() == LastAttrs.data() &&
      Run.size() == LastAttrs.size() && Gather == This.Gather)
    return;
  LastAttrs = Run;
  Stripped = {};
  This.Gather = Gather;
  This.Type = G->typeAttr(N, "T").value_or(DT_INVALID);
  This.Power = G->intAttr(N, PowerAttr).value_or(0);
  This.Axis = G->intAttr(N, "axis").value_or(0);
  This.Combine = G->stringAttr(N, CombineAttr).value_or("");
  This.Assumed = G->intAttr(N, AssumedAttr);
  This.Hint = G->stringAttr(N, HintAttr).value_or("");
  bool Common = hasKernel(This.Type);
  This.Gather |= This.Combine == combine::Concat;
  bool Combines = This.Combine == combine::Sum ||
                  (Workers && (This.Combine == combine::Min ||
                               This.Combine == combine::Max));
  bool Uneven = G->boolAttr(N, "uneven").value_or(false);
  This.HasCollective =
      This.Gather ? Common && This.Axis == 0 && !Uneven && GathersInOrder
                  : (Common || This.Type == DT_BFLOAT16) && Combines;
}

StringRef InsertCollectives::nameOf(NodeId N, StringRef Suffix) {
  Name = G->name(N);
  Name += Suffix;
  return Name;
}

/// Turns the reduction \p N into an Identity that its users still read.
void InsertCollectives::becomeIdentity(NodeId N, ArrayRef<Endpoint> Inputs) {
  Node &Reduction = G->node(N);
  if (Stripped.empty()) {
    for (StringRef Key :
         {CombineAttr, PowerAttr, StringRef("axis"), StringRef("uneven")})
      G->removeAttr(N, Key);
    G->removeAttr(N, HintAttr);
    G->removeAttr(N, AssumedAttr);
    Stripped = {Reduction.AttrData, Reduction.AttrSize};
  } else {
    Reduction.AttrData = Stripped.data();
    Reduction.AttrSize = static_cast<uint32_t>(Stripped.size());
  }
  G->setOp(N, op::Identity);
  G->setInputs(N, Inputs);
}

void InsertCollectives::add(NodeId N) {
  Inserted Kind = G->node(N).Kind;
  Endpoint Source = G->input(N, 0);
  AttrRun Merge;
  Merge.type("T", This.Type);
  Merge.string(CombineAttr,
               This.Gather ? StringRef(combine::Concat) : This.Combine);
  if (This.Gather)
    Merge.integer("axis", This.Axis);
  if (This.Assumed)
    Merge.integer(AssumedAttr, *This.Assumed);
  NodeId Result = G->insertNode(nameOf(N, "/all"), FromReplicasOp, Source,
                                Source.Node, Merge, Kind);
  if (This.Power != 0) {
    AttrRun Scale;
    Scale.type("T", This.Type).integer("power", This.Power);
    Result = G->insertNode(nameOf(N, "/scale"), ScaleOp, Endpoint{Result, 0},
                           Result, Scale, Inserted::Scale);
  }
  becomeIdentity(N, Endpoint{Result, 0});
}

/// Adds the member for the input of \p N, and the gate. Returns the inputs of
/// the Identity that \p N becomes.
std::array<Endpoint, 2> InsertCollectives::member(NodeId N,
                                                  int64_t InstanceKey) {
  Endpoint Source = G->input(N, 0);
  AttrRun Attrs;
  Attrs.type("T", This.Type);
  Attrs.integer("group_size", Replicas);
  Attrs.integer("group_key", GroupKey);
  Attrs.integer("instance_key", InstanceKey);
  if (This.Gather) {
    // The kernel reads the row count at run time. For an unknown shape,
    // TensorFlow's own callers set [0].
    ShapeValue Shape;
    Shape.Dims.push_back(0);
    Attrs.raw("shape", encodeShapeAttr(Shape));
  } else {
    Attrs.string("merge_op", This.Combine == combine::Min   ? op::Min
                             : This.Combine == combine::Max ? op::Max
                                                            : op::Add);
    Attrs.string("final_op", divides() ? op::Div : "Id");
    Attrs.raw("subdiv_offsets", Offsets);
  }
  if (!This.Hint.empty())
    Attrs.string("communication_hint", This.Hint);
  if (!Timeout.empty())
    Attrs.raw("timeout_seconds", Timeout);
  if (This.Assumed)
    Attrs.integer(AssumedAttr, *This.Assumed);
  NodeId Member =
      G->insertNode(nameOf(N, "/member"),
                    This.Gather ? op::CollectiveGather : op::CollectiveReduce,
                    Source, Source.Node, Attrs);
  // A merged value is a reduction of its source.
  Inserted Kind = G->node(N).Kind;
  if (Kind == Inserted::Merge)
    Kind = This.Gather ? Inserted::Gather : Inserted::Reduce;
  G->node(Member).Kind = Kind;
  G->node(Member).Count = Copies::PerReplica;
  G->node(Member).Flags |= NF_LocalName;
  NodeId Gate =
      G->insertNode(nameOf(N, "/gate"), op::NoOp, Endpoint{Member, ControlPort},
                    Member, {}, Inserted::Gate);
  return {Endpoint{Member, 0}, Endpoint{Gate, ControlPort}};
}

/// Scales the value that users of \p N read, unless the members divide it.
void InsertCollectives::scale(NodeId N) {
  if (This.Power == 0 || divides())
    return;
  AttrRun Power;
  Power.type("T", This.Type).integer(PowerAttr, This.Power);
  NodeId Scale =
      G->insertNode(nameOf(N, "/scale"), ScaleOp, Endpoint{N, 0}, N, Power);
  G->replaceUses({N, 0}, {Scale, 0}, Scale);
  G->node(Scale).Kind = Inserted::Scale;
  G->node(Scale).Count = G->node(N).Count;
}

void InsertCollectives::collective(NodeId N, int64_t InstanceKey) {
  becomeIdentity(N, member(N, InstanceKey));
  scale(N);
}

/// Gathers the number of rows and then the rows, with one key for each.
void InsertCollectives::gatherUneven(NodeId N, int64_t Rank,
                                     int64_t &InstanceKey) {
  gatherByLengths(*G, N, Rank, [&](Endpoint E, StringRef Suffix) {
    This.Type = G->outputType(E);
    NodeId Place = G->insertNode(nameOf(N, Suffix), op::Identity, E, E.Node,
                                 AttrRun().type("T", This.Type),
                                 Inserted::Gather, Copies::PerReplica);
    G->setInputs(Place, member(Place, InstanceKey++));
    return Endpoint{Place, 0};
  });
  LastAttrs = {};
}

/// Makes the unreplicated \p N read the local result of a collective, which
/// every worker has.
void InsertCollectives::pick(NodeId N, int64_t InstanceKey) {
  std::array<Endpoint, 2> Inputs = member(N, InstanceKey);
  NodeId Result =
      G->insertNode(nameOf(N, "/local"), op::Identity, Inputs, Inputs[0].Node,
                    AttrRun().type("T", This.Type),
                    G->node(Inputs[0].Node).Kind, Copies::PerReplica);
  for (StringRef Key : {StringRef("power"), StringRef("axis"), AssumedAttr})
    G->removeAttr(N, Key);
  G->setOp(N, FromReplicasOp);
  G->setStringAttr(N, CombineAttr, combine::Pick);
  G->setInput(N, 0, {Result, 0});
  scale(N);
}

/// Returns true if the merged value \p N needs a collective between workers.
/// Equal values need none, and neither do rows that are fetched or split again.
/// split-workers lowers the merges without a collective.
bool InsertCollectives::merges(NodeId N) const {
  StringRef Combine = G->stringAttr(N, CombineAttr).value_or(combine::Pick);
  if (Combine == combine::Pick)
    return false;
  if (Combine == combine::Sum || Combine == combine::Min ||
      Combine == combine::Max)
    return true;
  return G->anyUse(
      N, [&](Use U) { return G->isData(U) && !G->isOp(U.User, ToReplicasOp); });
}

/// Returns the encoded timeout of a member, or "" for no timeout. Members in
/// several processes have no timeout, since they wait until all processes have
/// started. TensorFlow before 2.4 lacks the attribute, so its graphs have no
/// timeout.
std::string InsertCollectives::timeoutAttr() const {
  constexpr unsigned VersionsField = 4;
  constexpr int Since = 561;
  tensorflow::VersionDef Versions;
  if (Workers || Options.Timeout == 0 ||
      !Versions.ParseFromString(G->otherField(VersionsField)) ||
      Versions.producer() < Since)
    return "";
  tensorflow::AttrValue Seconds;
  Seconds.set_f(static_cast<float>(*Options.Timeout));
  return Seconds.SerializeAsString();
}

/// Sets the hint of the variable on each reduction in \p Found.
void InsertCollectives::findHints(Module &M, ArrayRef<NodeId> Found) {
  const ProgramFacts &Facts = programFacts(M);
  for (NodeId N : Found) {
    if (!G->isOp(N, ReduceOp) || G->hasAttr(N, HintAttr))
      continue;
    ReductionUse Its = useOfReduction(*G, Facts, {N, 0});
    if (Its.Sync && Its.Sync->Spec != Synchronizer::Auto)
      G->setStringAttr(N, HintAttr, specName(Its.Sync->Spec));
  }
}

/// Returns the rank of each tensor whose row count differs between replicas, if
/// collectives can gather the tensor.
DenseMap<NodeId, int64_t>
InsertCollectives::findUneven(Module &M, ArrayRef<NodeId> Found) {
  DenseMap<NodeId, int64_t> Result;
  for (NodeId N : Found) {
    if (!G->isOp(N, GatherOp) || G->intAttr(N, "axis").value_or(0) != 0 ||
        !G->boolAttr(N, "uneven").value_or(false) || !G->isPerReplica(N))
      continue;
    const ProgramFacts &Facts = programFacts(M);
    unsigned Type = G->typeAttr(N, "T").value_or(DT_INVALID);
    auto Shape = Facts.Dims.shape(G->input(N, 0));
    // A gather of different row counts (lib/program/forms/LengthGather.h) is
    // not proved in a graph with loops.
    if (Shape && !Shape->empty() && Shape->size() <= 16 && hasKernel(Type) &&
        !LoopInfo::find(*G, Facts.Order))
      Result[N] = static_cast<int64_t>(Shape->size());
  }
  return Result;
}

/// Returns the reductions, the gathers and, for `workers`, the merges, sorted
/// by name.
std::vector<NodeId> InsertCollectives::findExchanges() const {
  enum : uint8_t { Other, Exchange, Merge };
  PerOp Roles(*G, [&](StringRef Op, const OpDef *) {
    return Op == ReduceOp || Op == GatherOp  ? Exchange
           : Workers && Op == FromReplicasOp ? Merge
                                             : Other;
  });
  std::vector<NodeId> Found;
  for (NodeId N = 0; N < G->size(); ++N) {
    uint8_t Role = Roles[G->node(N)];
    if (Role != Other && G->isLive(N) && (Role == Exchange || merges(N)))
      Found.push_back(N);
  }
  llvm::sort(Found,
             [&](NodeId A, NodeId B) { return G->name(A) < G->name(B); });
  return Found;
}

/// Lowers the reduction or gather \p N, after read(N). \p Rank is the rank of a
/// tensor whose row count differs between replicas, else 0.
void InsertCollectives::giveForm(NodeId N, bool Add, int64_t Rank,
                                 int64_t &InstanceKey) {
  // An unreplicated reduction is no collective: its result is on one device.
  bool IsOnce = G->node(N).Count == Copies::Once;
  if (Rank == 0 && !Workers && (Add || !This.HasCollective || IsOnce)) {
    add(N);
    count(Added, "added");
    return;
  }
  if (Rank != 0)
    gatherUneven(N, Rank, InstanceKey);
  else if (IsOnce)
    pick(N, InstanceKey++);
  else
    collective(N, InstanceKey++);
  count(Collectives, "collectives");
}

PassResult InsertCollectives::run(Module &M, DiagnosticEngine &Diags) {
  G = &M.graph();
  bool HasFacts = hasFacts(M);
  ReductionKind How = Options.How;
  Workers = How == ReductionKind::Workers;
  Mesh Devices = readMesh(*G);
  Replicas = Devices.replicas();
  // A single worker exchanges nothing.
  Workers &= Replicas > 1;
  std::vector<NodeId> Found = findExchanges();
  if (Found.empty())
    return PassResult::Unchanged;
  bool Asked = all_of(Devices.Devices,
                      [](const std::string &D) {
                        return StringRef(D).contains_insensitive("gpu:");
                      }) &&
               !areOfSeveralTasks(Devices.Devices) &&
               anySynchronizer(*G, [](NodeId, const Synchronizer &S) {
                 return S.Spec == Synchronizer::Nccl;
               });
  bool Add = How == ReductionKind::Add ||
             (How == ReductionKind::Auto && !Asked) ||
             (How == ReductionKind::Workers && !Workers);
  int64_t InstanceKey = 1;
  if (!Add && anySynchronizer(*G, [](NodeId, const Synchronizer &S) {
        return S.Spec != Synchronizer::Auto;
      }))
    findHints(M, Found);
  DenseMap<NodeId, int64_t> Uneven;
  GathersInOrder = Workers || gathersInOrder(Devices.Devices);
  if (!Add && !Workers && GathersInOrder)
    Uneven = findUneven(M, Found);
  LastAttrs = Stripped = {};
  Offsets = encodeIntListAttr(int64_t(0));
  Timeout = timeoutAttr();
  for (NodeId N : Found) {
    if (Workers)
      LastAttrs = {}; // merges have attributes of their own
    read(N);
    if (Workers && !This.HasCollective) {
      Diags.error(G->name(N),
                  "TensorFlow has no collective that combines the values of "
                  "the workers by '" +
                      (This.Gather ? "concat" : This.Combine.str()) + "'" +
                      (This.Gather ? ", except along axis 0" : "") +
                      "; move the readers of this value out of the step");
      return PassResult::Failure;
    }
    giveForm(N, Add, Uneven.lookup(N), InstanceKey);
  }
  if (HasFacts && Uneven.empty() && !Workers)
    adoptFacts(M);
  return PassResult::Changed;
}

} // namespace

GRAFT_DEFINE_PASS_WITH_OPTIONS(InsertCollectives)

} // namespace graft
