//===- passes/CompressReductions.cpp - compress-reductions ------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
// Sends gradients in 16 bits, at half the cost. The values between devices, and
// their sum, are 16 bits wide. All other values keep their type.
//
//     g/reduce = _Reduce*(g)       g/reduce/scale = _Scale*(g) power=-1
//         power=-1                 g/reduce/narrow = Cast*(g/reduce/scale)
//                             →    g/reduce/sum = _Reduce*(g/reduce/narrow)
//                                  g/reduce = Cast*(g/reduce/sum)
//
// A mean is divided before it is narrowed, so that the sum of values that fit
// into fp16 fits too. With error feedback each replica keeps its rounding
// error, and adds it to its next gradient:
//
//     sum = AddV2*(g/reduce/scale, ReadVariableOp*(residual))
//     g/reduce/narrow = Cast*(sum)
//     keep = AssignVariableOp*(residual, Sub*(sum, Cast*(g/reduce/narrow)))
//     g/reduce = Cast*(g/reduce/sum, ^keep)
//
// A residual is reset to zero when its variable is initialized or restored. It
// is in no checkpoint. Its policy is sync-on-read, with the aggregation sum.
//
// The rounding changes the step, so the pass warns for each variable.
//
// Relies on: insert-reductions and mirrored variables. fuse-reductions and
// insert-collectives run later.
//
//===----------------------------------------------------------------------===//

#include "lib/graph/AttrRun.h"
#include "lib/io/Module.h"
#include "lib/ops/Ops.h"
#include "lib/pass/Pass.h"
#include "lib/program/Program.h"
#include "lib/program/forms/Compression.h"
#include "lib/rewrite/Reductions.h"

#include "llvm/Support/FormatVariadic.h"

using namespace llvm;

namespace graft {
namespace {

struct CompressReductionsOptions : PassOptions {
  Option<Synchronizer::CompressorType> How{
      *this, "compressor",
      "none, fp16, fp16-ef, bf16 or bf16-ef, for variables without a "
      "synchronizer"};
};

class CompressReductions final
    : public PassBase<CompressReductions, CompressReductionsOptions> {
public:
  static constexpr PassInfo Info = {
      "compress-reductions", "Reduce gradients in 16 bits",
      "Narrows what `_Reduce` sends for variables whose synchronizer has a\n"
      "compressor, and widens what comes back; `-ef` feeds the rounding error\n"
      "back into the next step."};

  PassResult run(Module &M, DiagnosticEngine &Diags) override;

private:
  using Compressor = Synchronizer::CompressorType;

  void compress(const ProgramFacts &Facts, NodeId N, Compressor How,
                const ReductionUse &Its);
  NodeId add(const Twine &Suffix, StringRef Op, ArrayRef<Endpoint> Inputs,
             AttrRun &Attrs);
  NodeId cast(const Twine &Suffix, Endpoint From, unsigned Type, unsigned To);
  NodeId makeResidual(const ProgramFacts &Facts, unsigned Type);
  SmallVector<NodeId, 4> initializers(const ProgramFacts &Facts,
                                      ArrayRef<NodeId> Variables) const;

  Graph *G = nullptr;
  DiagnosticEngine *Diags = nullptr;
  NodeId This = NoNode; ///< The reduction at hand.
};

NodeId CompressReductions::add(const Twine &Suffix, StringRef Op,
                               ArrayRef<Endpoint> Inputs, AttrRun &Attrs) {
  Attrs.boolean(CompressAttr, true);
  NodeId N = G->insertNode((G->name(This) + Suffix).str(), Op, Inputs, This,
                           Attrs, Inserted::Compress, Copies::PerReplica);
  G->node(N).Flags |= NF_LocalName;
  return N;
}

NodeId CompressReductions::cast(const Twine &Suffix, Endpoint From,
                                unsigned Type, unsigned To) {
  AttrRun Attrs;
  Attrs.type("SrcT", Type).type("DstT", To);
  return add(Suffix, op::Cast, From, Attrs);
}

/// Returns true if \p N is a value restored from a checkpoint.
static bool isRestored(const Graph &G, NodeId N) {
  while (G.node(N).NumData == 1 &&
         (G.isOp(N, op::Identity) || G.node(N).Kind == Inserted::Identity))
    N = G.input(N, 0).Node;
  return G.isOp(N, op::RestoreV2) || G.isOp(N, op::Restore) ||
         G.isOp(N, op::RestoreSlice);
}

/// Returns the nodes that assign \p Variables initial or restored values, or no
/// node if one of them has no initial value.
SmallVector<NodeId, 4>
CompressReductions::initializers(const ProgramFacts &Facts,
                                 ArrayRef<NodeId> Variables) const {
  SmallVector<NodeId, 4> Result;
  for (NodeId Var : Variables) {
    NodeId Initial = Facts.Vars.initialAssign(*G, Var);
    if (Initial == NoNode)
      return {};
    Result.push_back(Initial);
    Facts.Vars.forEachUse(*G, Var, [&](Use U) {
      if (Facts.Vars.update(*G, U.User).Kind == UpdateKind::Assign &&
          U.Index == 0 && U.User != Initial && G->isPerReplica(U.User) &&
          isRestored(*G, G->input(U.User, 1).Node))
        Result.push_back(U.User);
    });
  }
  return Result;
}

/// Returns true if \p N computes statistics of a batch norm, which are no
/// gradient.
static bool isStatistics(const Graph &G, NodeId N) {
  return G.node(N).Kind == Inserted::Definition ||
         (G.opName(N).starts_with(op::FusedBatchNorm) &&
          !G.opName(N).contains("Grad"));
}

/// Adds the residual of the current reduction and its reset to zero, but not
/// its assignment in the step.
NodeId CompressReductions::makeResidual(const ProgramFacts &Facts,
                                        unsigned Type) {
  // If the shape is not known, the first value is a scalar.
  ShapeValue Shape;
  Shape.UnknownRank = !staticElements(Facts.Dims, {This, 0});
  auto Sizes = Facts.Dims.shape({This, 0});
  for (DimId D : Shape.UnknownRank ? ArrayRef<DimId>() : *Sizes)
    Shape.Dims.push_back(Facts.Dims.table().number(D));
  AttrRun Attrs, Zero, Clear;
  Attrs.type("dtype", Type).raw("shape", encodeShapeAttr(Shape));
  Attrs.string(AggregationAttr, aggregationName(Aggregation::Sum));
  // Without a shared name all handles would be one variable.
  std::string Name = G->uniqueName((G->name(This) + "/residual").str());
  Attrs.string("shared_name", Name);
  NodeId Var = add("/residual", op::VarHandleOp, {}, Attrs);
  G->node(Var).Plan = Policy::SyncOnRead;
  Zero.type("dtype", Type);
  Zero.raw("value", encodeFloatTensor(Type, Shape.Dims, 0.0));
  Endpoint Inputs[] = {{Var, 0},
                       {add("/residual/zeros", op::Const, {}, Zero), 0}};
  add("/residual/clear", op::AssignVariableOp, Inputs,
      Clear.type("dtype", Type));
  return Var;
}

void CompressReductions::compress(const ProgramFacts &Facts, NodeId N,
                                  Compressor How, const ReductionUse &Its) {
  This = N;
  unsigned Type = G->typeAttr(N, "T").value_or(DT_INVALID);
  bool Half = How == Synchronizer::Fp16 || How == Synchronizer::Fp16EF;
  unsigned Narrow = Half ? DT_HALF : DT_BFLOAT16;
  Endpoint From = G->input(N, 0);
  int64_t Power = G->intAttr(N, PowerAttr).value_or(0);
  auto Assumed = G->intAttr(N, AssumedAttr);
  if (Power != 0) {
    NodeId Scale =
        G->insertNode((G->name(N) + "/scale").str(), ScaleOp, From, From.Node,
                      AttrRun().type("T", Type).integer("power", Power),
                      Inserted::Scale, Copies::PerReplica);
    G->node(Scale).Flags |= NF_LocalName;
    From = {Scale, 0};
  }
  SmallVector<NodeId, 4> Initial;
  if (How == Synchronizer::Fp16EF || How == Synchronizer::BF16EF)
    Initial = initializers(Facts, Its.Variables);
  NodeId Var = NoNode, Clear = NoNode;
  if (!Initial.empty()) {
    Var = makeResidual(Facts, Type);
    Clear = G->size() - 1;
    AttrRun Read, Sum;
    NodeId Kept = add("/residual/read", op::ReadVariableOp, Endpoint{Var, 0},
                      Read.type("dtype", Type));
    Endpoint Inputs[] = {From, {Kept, 0}};
    From = {add("/residual/sum", op::AddV2, Inputs, Sum.type("T", Type)), 0};
  }
  Endpoint Sent{cast("/narrow", From, Type, Narrow), 0};
  AttrRun Sum;
  Sum.type("T", Narrow).string(CombineAttr, combine::Sum);
  // The assumed scale exponent of the source, plus the power of the scaling.
  if (Assumed)
    Sum.integer(AssumedAttr, *Assumed + Power);
  NodeId All = G->insertNode((G->name(N) + "/sum").str(), ReduceOp, Sent, N,
                             Sum, Inserted::Reduce, Copies::PerReplica);
  SmallVector<Endpoint, 2> Inputs{{All, 0}};
  if (Var != NoNode) {
    Endpoint Lost[] = {From, {cast("/residual/sent", Sent, Narrow, Type), 0}};
    AttrRun Less, Keep;
    Endpoint Kept[] = {
        {Var, 0},
        {add("/residual/lost", op::Sub, Lost, Less.type("T", Type)), 0}};
    Inputs.push_back({add("/residual/keep", op::AssignVariableOp, Kept,
                          Keep.type("dtype", Type)),
                      ControlPort});
    for (NodeId Assign : Initial)
      G->addControlInput(Assign, Clear);
  }
  for (StringRef Key : {StringRef("T"), CombineAttr, PowerAttr, AssumedAttr})
    G->removeAttr(N, Key);
  G->setOp(N, op::Cast);
  G->setTypeAttr(N, "SrcT", Narrow);
  G->setTypeAttr(N, "DstT", Type);
  G->setBoolAttr(N, CompressAttr, true);
  G->setInputs(N, Inputs);
  G->node(N).Kind = Inserted::Compress;
  ++Statistics["compressed"];
  bool LacksInitializer = Var == NoNode && (How == Synchronizer::Fp16EF ||
                                            How == Synchronizer::BF16EF);
  Diags->unproved(
      "compressor", G->name(Its.Variables.front()),
      formatv("its gradient is reduced in 16 bits ({0}), so the step differs "
              "from the single-device step by rounding errors{1}{2}",
              compressorName(How), Half ? " and overflows beyond 65504" : "",
              LacksInitializer ? "; without error feedback, since nothing in "
                                 "the graph initializes the variable"
                               : ""));
}

PassResult CompressReductions::run(Module &M, DiagnosticEngine &D) {
  G = &M.graph();
  Diags = &D;
  Synchronizer Given;
  Given.Compressor = Options.How;
  if (readMesh(*G).replicas() < 2 ||
      (Given.Compressor == Synchronizer::None &&
       !anySynchronizer(*G, [](NodeId, const Synchronizer &S) {
         return S.Compressor != Synchronizer::None;
       })))
    return PassResult::Unchanged;
  const ProgramFacts &Facts = programFacts(M);
  std::vector<std::pair<NodeId, ReductionUse>> Found;
  for (NodeId N : Facts.Order) {
    if (!G->isOp(N, ReduceOp) || G->node(N).NumInputs != 1 ||
        G->stringAttr(N, CombineAttr) != combine::Sum ||
        isStatistics(*G, G->input(N, 0).Node))
      continue;
    unsigned Type = G->typeAttr(N, "T").value_or(DT_INVALID);
    ReductionUse Its = useOfReduction(*G, Facts, {N, 0});
    if ((Type == DT_FLOAT || Type == DT_DOUBLE) && !Its.Variables.empty())
      Found.push_back({N, std::move(Its)});
  }
  // Warnings are in the order of names, not of nodes.
  sort(Found, [&](const auto &A, const auto &B) {
    return G->name(A.first) < G->name(B.first);
  });
  bool Changed = false;
  for (const auto &[N, Its] : Found) {
    Synchronizer Sync = Its.Sync.value_or(Given);
    if (Sync.Kind != Synchronizer::AllReduce ||
        Sync.Compressor == Synchronizer::None)
      continue;
    compress(Facts, N, Sync.Compressor, Its);
    Changed = true;
  }
  return Changed ? PassResult::Changed : PassResult::Unchanged;
}

} // namespace

GRAFT_DEFINE_PASS(CompressReductions)

} // namespace graft
