//===- passes/FuseReductions.cpp - fuse-reductions --------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
// Packs reductions into buckets that are reduced as one tensor. Each reduction
// has a latency, so many small ones cost more than a large one:
//
//     a/reduce = _Reduce*(a)      a/reduce/flat = Reshape*(a, [-1])
//     b/reduce = _Reduce*(b)      b/reduce/flat = Reshape*(b, [-1])
//                                 pack = ConcatV2*(a/.../flat, b/.../flat, 0)
//                            →    all = _Reduce*(pack)
//                                 parts = SplitV*(all, [6, 4], 0)
//                                 a/reduce = Reshape*(parts:0, [2, 3])
//                                 b/reduce = Reshape*(parts:1, [4])
//
// Members of a bucket are sums of one dtype, power and hint. The strategy of a
// variable sets the group of its gradient (docs/Reductions.md). An option
// limits the bytes of a bucket. The first bucket has the gradients that the
// backward pass computes first, so that they are reduced while the other
// gradients are computed. Ties are broken by names, not by the order of nodes.
//
// A run of one member of a bucket runs all members. So members have the same
// needs (lib/infer/facts/Needs.h): a run of one train op must not need a feed
// of another train op.
//
// No bucket may wait for itself. So a sum that depends on reduced values is one
// stage after these values, and a bucket has only sums of one stage. Reductions
// under a condition, or with a size that follows the batch, are left alone.
//
// The file is a little long because stages and buckets need each other.
//
// Relies on: insert-reductions. insert-collectives runs later.
//
//===----------------------------------------------------------------------===//

#include "lib/graph/AttrRun.h"
#include "lib/infer/facts/Needs.h"
#include "lib/infer/graph/Conditions.h"
#include "lib/infer/graph/Loops.h"
#include "lib/io/Module.h"
#include "lib/ops/Ops.h"
#include "lib/program/Program.h"
#include "lib/rewrite/Reductions.h"
#include "lib/strategy/Resources.h"
#include "lib/support/InternalError.h"
#include "passes/Options.h"

#include "llvm/ADT/StringExtras.h"

#include <map>

using namespace llvm;

namespace graft {
namespace {

class FuseReductions final
    : public PassBase<FuseReductions, FuseReductionsOptions> {
public:
  static constexpr PassInfo Info = {
      "fuse-reductions", "Reduce many tensors as one",
      "Packs `_Reduce` nodes of one group, dtype and scale into buckets: "
      "their\n"
      "tensors are concatenated, reduced as one, and unpacked again. Tensors\n"
      "that need different feeds, variables, random draws or effects are in\n"
      "different buckets. Without `bucket-bytes` and without groups of\n"
      "variables it does nothing."};

  PassResult run(Module &M, DiagnosticEngine &Diags) override;

private:
  struct Member {
    NodeId Reduce;
    uint32_t Level;
    int64_t Elements;
  };
  /// The properties that members of one bucket share.
  struct Key {
    int64_t Group;
    uint32_t Stage;
    unsigned Type;
    int64_t Power;
    std::optional<int64_t> Assumed;
    Synchronizer::SpecType Spec;
    uint32_t Needs; ///< The id of a set of needs.
    auto operator<=>(const Key &) const = default;
  };

  bool findMembers(Module &M);
  void findStages(const ProgramFacts &Facts);
  void fuse(const Key &K, ArrayRef<Member> Bucket, const DimAnalysis &Dims);
  NodeId add(const Twine &Name, StringRef Op, ArrayRef<Endpoint> Inputs,
             NodeId After, const AttrRun &Attrs, bool IsLocal = false);
  NodeId constant(const Twine &Name, ArrayRef<int64_t> Shape,
                  ArrayRef<int64_t> Values, NodeId After);

  Graph *G = nullptr;
  std::vector<bool> IsMember;  ///< By node.
  std::vector<uint32_t> Level; ///< By node: the longest path to it.
  std::vector<uint32_t> Stage; ///< By node: the most members on a path to it.
  std::map<Key, std::vector<Member>> Found;
  std::map<std::string, NodeId> Constants;
  unsigned Buckets = 0;
};

/// Finds the longest path to each node: levels count nodes, stages count
/// members.
void FuseReductions::findStages(const ProgramFacts &Facts) {
  Level.assign(G->size(), 0);
  Stage.assign(G->size(), 0);
  // A loop feeds values back to its start, whose stage may then change again.
  TurnLimit Limit("the stages of sums", 2 + uint64_t(G->size()));
  for (NodeId Again = 0; Again != NoNode;) {
    Limit.turn([&] { return G->name(Again).str(); });
    Again = NoNode;
    std::vector<bool> Seen(G->size());
    for (NodeId N : Facts.Order) {
      uint32_t Last = 0, Late = Stage[N];
      for (Endpoint E : G->inputs(N)) {
        Late = std::max(Late, Stage[E.Node] + IsMember[E.Node]);
        if (Seen[E.Node])
          Last = std::max(Last, Level[E.Node] + 1);
      }
      Seen[N] = true;
      Level[N] = Last;
      if (Late == Stage[N])
        continue;
      Stage[N] = Late;
      // A user that precedes its source in the order is the start of a loop.
      if (G->anyUse(N, [&](Use U) { return Seen[U.User]; }))
        Again = N;
    }
  }
}

bool FuseReductions::findMembers(Module &M) {
  ProgramFacts &Facts = programFacts(M);
  auto Loops = LoopInfo::find(*G, Facts.Order);
  std::optional<Conditions> When;
  if (Conditions::any(*G))
    When.emplace(*G, Facts.Order);
  std::vector<Member> Members;
  IsMember.assign(G->size(), false);
  for (NodeId N : Facts.Order) {
    const Node &This = G->node(N);
    if (!G->isOp(N, ReduceOp) || This.Kind != Inserted::Reduce ||
        This.Count != Copies::PerReplica || This.NumInputs != 1 ||
        G->stringAttr(N, CombineAttr) != combine::Sum ||
        (Loops && Loops->isInLoop(N)) || (When && !When->of(N).empty()))
      continue;
    auto Elements = staticElements(Facts.Dims, G->input(N, 0));
    if (!Elements || *Elements == 0 || *Elements > INT32_MAX)
      continue;
    Members.push_back({N, 0, *Elements});
    IsMember[N] = true;
  }
  if (Members.size() < 2)
    return false;
  findStages(Facts);
  for (Member &Each : Members)
    Each.Level = Level[Each.Reduce];
  sort(Members, [&](const Member &A, const Member &B) {
    return std::pair(A.Level, G->name(A.Reduce)) <
           std::pair(B.Level, G->name(B.Reduce));
  });
  Needs Sets(*G, Facts);
  DenseMap<uint32_t, uint32_t> Numbers;
  for (const Member &Each : Members) {
    NodeId N = Each.Reduce;
    ReductionUse Its = useOfReduction(*G, Facts, {N, 0});
    Synchronizer Sync = Its.Sync.value_or(Synchronizer());
    if (Sync.Kind != Synchronizer::AllReduce)
      continue;
    uint32_t Set =
        Numbers.try_emplace(Sets.of(N), Numbers.size()).first->second;
    Found[{Sync.Group, Stage[N], G->typeAttr(N, "T").value_or(DT_INVALID),
           G->intAttr(N, PowerAttr).value_or(0), G->intAttr(N, AssumedAttr),
           Sync.Spec, Set}]
        .push_back(Each);
  }
  return true;
}

NodeId FuseReductions::add(const Twine &Name, StringRef Op,
                           ArrayRef<Endpoint> Inputs, NodeId After,
                           const AttrRun &Attrs, bool IsLocal) {
  NodeId N = G->insertNode(Name.str(), Op, Inputs, After, Attrs, Inserted::Pack,
                           Copies::PerReplica);
  if (IsLocal)
    G->node(N).Flags |= NF_LocalName;
  return N;
}

/// Returns the integer constant called \p Name. All calls with one name share a
/// node, so they must have the same value.
NodeId FuseReductions::constant(const Twine &Name, ArrayRef<int64_t> Shape,
                                ArrayRef<int64_t> Values, NodeId After) {
  auto [It, New] = Constants.try_emplace(Name.str(), NoNode);
  if (New)
    It->second =
        add(Name, op::Const, {}, After,
            AttrRun()
                .type("dtype", DT_INT32)
                .raw("value", encodeIntTensor(DT_INT32, Shape, Values)));
  return It->second;
}

void FuseReductions::fuse(const Key &K, ArrayRef<Member> Bucket,
                          const DimAnalysis &Dims) {
  std::string Name = ("graft/bucket_" + Twine(Buckets++)).str();
  NodeId Last = G->input(Bucket.back().Reduce, 0).Node;
  auto Count = static_cast<int64_t>(Bucket.size());
  int64_t One = 1, Open = -1, Zero = 0;
  Endpoint Flat{constant("graft/bucket/flat", One, Open, Last), 0};
  Endpoint Axis{constant("graft/bucket/axis", {}, Zero, Last), 0};
  SmallVector<Endpoint, 16> Flats;
  SmallVector<int64_t, 16> Lengths;
  AttrRun Type;
  Type.type("T", K.Type).type("Tshape", DT_INT32);
  for (const Member &Each : Bucket) {
    Endpoint Inputs[] = {G->input(Each.Reduce, 0), Flat};
    Flats.push_back({add(G->name(Each.Reduce) + "/flat", op::Reshape, Inputs,
                         Inputs[0].Node, Type, true),
                     0});
    Lengths.push_back(Each.Elements);
  }
  Endpoint LengthsAt{constant(Name + "/sizes", Count, Lengths, Last), 0};
  Flats.push_back(Axis);
  NodeId Pack = add(
      Name + "/pack", op::ConcatV2, Flats, Last,
      AttrRun().type("T", K.Type).integer("N", Count).type("Tidx", DT_INT32),
      true);
  AttrRun Reduced;
  Reduced.type("T", K.Type).string(CombineAttr, combine::Sum);
  if (K.Power != 0)
    Reduced.integer(PowerAttr, K.Power);
  if (K.Assumed)
    Reduced.integer(AssumedAttr, *K.Assumed);
  if (K.Spec != Synchronizer::Auto)
    Reduced.string(HintAttr, specName(K.Spec));
  NodeId All =
      add(Name + "/reduce", ReduceOp, Endpoint{Pack, 0}, Pack, Reduced);
  G->node(All).Kind = Inserted::Reduce;
  Endpoint Taken[] = {{All, 0}, LengthsAt, Axis};
  NodeId Parts = add(Name + "/parts", op::SplitV, Taken, All,
                     AttrRun()
                         .type("T", K.Type)
                         .type("Tlen", DT_INT32)
                         .integer("num_split", Count));
  for (auto [I, Each] : enumerate(Bucket)) {
    NodeId N = Each.Reduce;
    SmallVector<int64_t, 4> Shape;
    ArrayRef<DimId> Sizes = *Dims.shape({N, 0});
    for (DimId D : Sizes)
      Shape.push_back(Dims.table().number(D));
    std::string Text = "graft/bucket/shape";
    for (int64_t Size : Shape)
      Text += "_" + itostr(Size);
    auto Rank = static_cast<int64_t>(Shape.size());
    Endpoint Inputs[] = {{Parts, static_cast<uint32_t>(I)},
                         {constant(Text, Rank, Shape, Last), 0}};
    for (StringRef Attr : {CombineAttr, PowerAttr, AssumedAttr, HintAttr})
      G->removeAttr(N, Attr);
    G->setTypeAttr(N, "Tshape", DT_INT32);
    G->setOp(N, op::Reshape);
    G->setInputs(N, Inputs);
    G->node(N).Kind = Inserted::Pack;
  }
  Statistics["fused"] += Bucket.size();
  ++Statistics["buckets"];
}

PassResult FuseReductions::run(Module &M, DiagnosticEngine &) {
  G = &M.graph();
  uint64_t Bytes = Options.BucketBytes;
  // Only all-reduce has groups.
  if (Bytes == 0 && !anySynchronizer(*G, [](NodeId, const Synchronizer &S) {
        return S.Kind == Synchronizer::AllReduce;
      }))
    return PassResult::Unchanged;
  if (!findMembers(M))
    return PassResult::Unchanged;
  const DimAnalysis &Dims = programFacts(M).Dims;
  for (auto &[K, Members] : Found) {
    int64_t Limit = INT32_MAX;
    if (Bytes != 0) {
      // A type of unknown size has at most 16 bytes.
      unsigned Each = bytesOf(K.Type) != 0 ? bytesOf(K.Type) : 16;
      Limit = static_cast<int64_t>(std::min<uint64_t>(Limit, Bytes / Each));
    }
    for (ArrayRef<Member> Rest = Members; !Rest.empty();) {
      size_t Count = 1;
      int64_t Elements = Rest[0].Elements;
      while (Count < Rest.size() && Elements + Rest[Count].Elements <= Limit)
        Elements += Rest[Count++].Elements;
      if (Count > 1)
        fuse(K, Rest.take_front(Count), Dims);
      Rest = Rest.drop_front(Count);
    }
  }
  return Buckets != 0 ? PassResult::Changed : PassResult::Unchanged;
}

} // namespace

GRAFT_DEFINE_PASS_WITH_OPTIONS(FuseReductions)

} // namespace graft
