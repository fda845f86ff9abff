//===- passes/SyncBatchNorm.cpp - sync-batch-norm ---------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
// A per-replica fused batch norm computes the statistics of one replica's rows.
// This pass computes the statistics of the whole batch in plain ops, which
// insert-reductions can reduce, and makes users read these:
//
//     m = Squeeze*(Mean*(x, [0,1,2]))
//     v = Squeeze*(Mean*(SquaredDifference*(x, Mean*(x, [0,1,2])), [0,1,2]))
//
// how=exact: users of the variance of the batch (a moving average) read v *
// n/(n-1), where n is the number of values of a channel in the whole batch. The
// mean of the local means is exact already. Activations keep the local
// statistics.
//
//     y, m', v' = FusedBatchNorm*(x, s, o, [], []) training
//   →
//     y = FusedBatchNorm*(x, s, o, m, v)
//     m' = m, v' = v * n/(n-1)
//
// how=sync: the op and its gradient read these statistics too, as in inference.
// This computes the single-device step.
//
//     dx, ds, do = FusedBatchNormGrad*(dy, x, s, r1, r2) training
//   →
//     d, ds, do = FusedBatchNormGrad*(dy, x, s, m, v)
//     c = s * Rsqrt(v + epsilon)
//     dx = d - FusedBatchNorm*(x, c*ds/n, c*do/n, m, v)
//
// FusedBatchNormGrad in inference treats m and v as constants: d = c*dy lacks
// the part of dx through m and v. TensorFlow has this gradient only with
// channels last, so other layouts are transposed. The variance is the mean of
// squared centered values, since a difference of two sums would cancel.
//
// A node whose other outputs (the reserve spaces) have users beside its
// gradient stays as it is, and insert-reductions warns.
//
// The file is long because statistics and gradient are written out op by op.
//
// Relies on: lib/infer/types/Types.h, which finds the nodes with local
// statistics. lib/certify/forms/BatchNormCheck.h certifies the result.
//
//===----------------------------------------------------------------------===//

#include "lib/graph/AttrRun.h"
#include "lib/graph/Walk.h"
#include "lib/infer/facts/ProgramFacts.h"
#include "lib/infer/rules/BatchNormReads.h"
#include "lib/io/Module.h"
#include "lib/ops/Ops.h"
#include "lib/program/Program.h"
#include "passes/Options.h"

#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/STLExtras.h"

using namespace llvm;

namespace graft {
namespace {

class SyncBatchNorm final
    : public PassBase<SyncBatchNorm, SyncBatchNormOptions> {
public:
  static constexpr PassInfo Info = {
      "sync-batch-norm", "Take batch norm statistics of the whole batch",
      "Computes the mean and the variance of a fused batch norm by plain ops,\n"
      "which insert-reductions can reduce. The op, its gradient and the users\n"
      "of its statistics read these values."};

  PassResult run(Module &M, DiagnosticEngine &Diags) override;

private:
  bool take(NodeId N);
  bool findGradients();
  void makeStatistics();
  void correctGradient(NodeId Gradient);
  Endpoint countOfRows();
  Endpoint add(StringRef Suffix, StringRef Op, ArrayRef<Endpoint> Inputs,
               const AttrRun &Attrs);
  Endpoint arithmetic(StringRef Suffix, StringRef Op,
                      ArrayRef<Endpoint> Inputs);
  Endpoint number(StringRef Suffix, double Value);
  void infer(NodeId Node);
  void forgetShapes(NodeId Node);

  Graph *G = nullptr;
  bool Sync = false;
  // About the node at hand:
  NodeId N = NoNode;
  unsigned T = DT_INVALID,
           U = DT_INVALID; ///< Types of activations and statistics.
  SmallVector<int64_t, 4> Axes;
  SmallVector<NodeId, 2> Gradients;
  Endpoint Mean, Variance, Count; ///< Count: made on first use.
};

bool isGradient(StringRef Op) { return Op.starts_with(op::FusedBatchNormGrad); }

Endpoint SyncBatchNorm::add(StringRef Suffix, StringRef Op,
                            ArrayRef<Endpoint> Inputs, const AttrRun &Attrs) {
  NodeId New = G->insertNode((G->name(N) + "/" + Suffix).str(), Op, Inputs, N,
                             Attrs, Inserted::Definition, Copies::PerReplica);
  G->node(New).Device = G->node(N).Device;
  return {New, 0};
}

Endpoint SyncBatchNorm::arithmetic(StringRef Suffix, StringRef Op,
                                   ArrayRef<Endpoint> Inputs) {
  return add(Suffix, Op, Inputs, AttrRun().type("T", U));
}

Endpoint SyncBatchNorm::number(StringRef Suffix, double Value) {
  return add(
      Suffix, op::Const, {},
      AttrRun().type("dtype", U).raw("value", encodeFloatTensor(U, {}, Value)));
}

/// Finds the readers of the reserve spaces, which must be gradients of this
/// node.
bool SyncBatchNorm::findGradients() {
  Gradients.clear();
  for (Use Of : G->uses(N)) {
    if (!G->isData(Of))
      continue;
    uint32_t Port = G->input(Of).Port;
    if (Port < 3 || readsShapeOnly(*G, Of.User, Port))
      continue;
    if (!isGradient(G->opName(Of.User)) || Of.Index != Port ||
        G->input(Of.User, 1) != G->input(N, 0) ||
        G->input(Of.User, 3) != Endpoint{N, 3} ||
        G->input(Of.User, 4) != Endpoint{N, 4} ||
        !G->boolAttr(Of.User, "is_training").value_or(true))
      return false;
    if (!is_contained(Gradients, Of.User))
      Gradients.push_back(Of.User);
  }
  return true;
}

/// Returns true if this pass can change \p Node.
bool SyncBatchNorm::take(NodeId Node) {
  N = Node;
  T = G->outputType(N, 0);
  U = G->outputType(N, 1);
  StringRef Format = G->stringAttr(N, "data_format").value_or("NHWC");
  if (Format == "NHWC")
    Axes = {0, 1, 2};
  else if (Format == "NCHW")
    Axes = {0, 2, 3};
  else if (Format == "NDHWC")
    Axes = {0, 1, 2, 3};
  else if (Format == "NCDHW")
    Axes = {0, 2, 3, 4};
  else
    return false;
  // A factor other than 1 blends the statistics with inputs 3 and 4.
  if (G->floatAttr(N, "exponential_avg_factor").value_or(1) != 1)
    return false;
  if (!findGradients())
    return false;
  return Sync || isVarianceRead(*G, N);
}

void SyncBatchNorm::makeStatistics() {
  Endpoint X = G->input(N, 0);
  int64_t Rank = static_cast<int64_t>(Axes.size());
  Endpoint Along =
      add("axes", op::Const, {},
          AttrRun()
              .type("dtype", DT_INT32)
              .raw("value", encodeIntTensor(DT_INT32, Rank, Axes)));
  if (T != U)
    X = add(
        "cast", op::Cast, X,
        AttrRun().type("SrcT", T).type("DstT", U).boolean("Truncate", false));
  auto Average = [&](StringRef Suffix, Endpoint Of) {
    AttrRun Attrs;
    Attrs.type("T", U).type("Tidx", DT_INT32).boolean("keep_dims", true);
    return add(Suffix, op::Mean, {Of, Along}, Attrs);
  };
  auto PerChannel = [&](StringRef Suffix, Endpoint Of) {
    AttrRun Attrs;
    Attrs.type("T", U).raw("squeeze_dims", encodeIntListAttr(Axes));
    return add(Suffix, op::Squeeze, Of, Attrs);
  };
  Endpoint KeptMean = Average("kept_mean", X);
  Mean = PerChannel("mean", KeptMean);
  Endpoint Squares =
      arithmetic("squares", op::SquaredDifference, {X, KeptMean});
  Variance = PerChannel("variance", Average("kept_variance", Squares));
  Count = {};
}

/// Returns the number of values of one channel.
Endpoint SyncBatchNorm::countOfRows() {
  if (Count.Node != NoNode)
    return Count;
  auto Size = [&](StringRef Suffix, Endpoint Of, unsigned Type) {
    AttrRun Attrs, Cast;
    Attrs.type("T", Type).type("out_type", DT_INT64);
    Cast.type("SrcT", DT_INT64).type("DstT", U).boolean("Truncate", false);
    Endpoint E = add(Suffix, op::Size, Of, Attrs);
    return add((Suffix + "_number").str(), op::Cast, E, Cast);
  };
  Endpoint All = Size("size", G->input(N, 0), T);
  Endpoint Channels = Size("channels", G->input(N, 1), U);
  return Count = arithmetic("count", op::RealDiv, {All, Channels});
}

/// Sets \p Node, the op or its gradient, to inference: it reads the statistics.
void SyncBatchNorm::infer(NodeId Node) {
  G->setInput(Node, 3, Mean);
  G->setInput(Node, 4, Variance);
  G->setBoolAttr(Node, "is_training", false);
  forgetShapes(Node);
}

/// Drops `_output_shapes` of the reserve spaces of \p Node, and of values that
/// depend on them. These shapes changed, and TensorFlow checks `_output_shapes`
/// at import.
void SyncBatchNorm::forgetShapes(NodeId Node) {
  DenseSet<NodeId> Seen;
  walkFrom({Node}, Seen, [&](NodeId At, std::vector<NodeId> &Next) {
    G->removeAttr(At, "_output_shapes");
    G->forEachUse(At, [&](Use Of) {
      if (G->isData(Of) && (At != Node || G->input(Of).Port >= 3) &&
          !is_contained(Gradients, Of.User))
        Next.push_back(Of.User);
    });
  });
}

void SyncBatchNorm::correctGradient(NodeId Gradient) {
  NodeId Forward = N;
  Endpoint X = G->input(N, 0), Scale = G->input(Gradient, 2);
  Endpoint Rows = countOfRows();
  infer(Gradient);
  N = Gradient;
  SmallVector<Use, 8> Users = G->uses(N);
  auto Transposed = [&](StringRef Suffix, Endpoint Of,
                        ArrayRef<int64_t> Order) {
    AttrRun Const, Attrs;
    Const.type("dtype", DT_INT32)
        .raw("value", encodeIntTensor(DT_INT32, int64_t(Order.size()), Order));
    Endpoint By = add((Suffix + "_order").str(), op::Const, {}, Const);
    Attrs.type("T", T).type("Tperm", DT_INT32);
    return add(Suffix, op::Transpose, {Of, By}, Attrs);
  };
  Endpoint D{N, 0};
  // TensorFlow has the gradient in inference only with channels last.
  if (Axes[1] != 1) {
    SmallVector<int64_t, 5> Last(Axes.begin(), Axes.end()), Back = Last;
    Last.push_back(1);
    for (int64_t &Axis : MutableArrayRef(Back).drop_front())
      --Axis;
    Back.insert(Back.begin() + 1, int64_t(Axes.size()));
    G->setInput(N, 0, Transposed("dy_last", G->input(N, 0), Last));
    G->setInput(N, 1, Transposed("x_last", X, Last));
    G->setStringAttr(N, "data_format", Axes.size() == 3 ? "NHWC" : "NDHWC");
    D = Transposed("d_back", D, Back);
  }
  Endpoint Small = number("epsilon", *G->floatAttr(N, "epsilon"));
  Endpoint Sum = arithmetic("shifted", op::AddV2, {Variance, Small});
  Endpoint Factor = arithmetic("factor", op::Mul,
                               {Scale, arithmetic("rsqrt", op::Rsqrt, Sum)});
  // In-place updates of the scales wait for this gradient, and so for Factor.
  G->addControlInput(N, Factor.Node);
  auto Part = [&](StringRef Suffix, uint32_t Port) {
    Endpoint Mean =
        arithmetic((Suffix + "_mean").str(), op::RealDiv, {{N, Port}, Rows});
    return arithmetic(Suffix, op::Mul, {Factor, Mean});
  };
  Endpoint S = Part("of_scale", 1), O = Part("of_offset", 2);
  AttrRun Attrs;
  for (StringRef Key : {"T", "U", "epsilon", "data_format"})
    if (auto Value = G->attr(Forward, Key))
      Attrs.raw(Key, *Value);
  Attrs.boolean("is_training", false);
  Endpoint Through = add("through_statistics", G->opName(Forward),
                         {X, S, O, Mean, Variance}, Attrs);
  Endpoint Whole =
      add("x_backprop", op::Sub, {D, Through}, AttrRun().type("T", T));
  for (Use Of : Users)
    if (G->input(Of) == Endpoint{N, 0})
      G->setInput(Of.User, Of.Index, Whole);
  N = Forward;
}

PassResult SyncBatchNorm::run(Module &M, DiagnosticEngine &) {
  G = &M.graph();
  Sync = Options.How == SyncedStatistics::Sync;
  // One replica has all rows.
  if (readMesh(*G).replicas() < 2)
    return PassResult::Unchanged;
  SmallVector<NodeId, 16> Local;
  for (auto [Node, Bits] : programFacts(M).Types.assumptions())
    if (Bits & AssumesLocalBatchNorm)
      Local.push_back(Node);
  bool Changed = false;
  for (NodeId Node : Local) {
    if (!take(Node))
      continue;
    SmallVector<Use, 8> Users = G->uses(N);
    makeStatistics();
    auto Replace = [&](uint32_t Port, Endpoint By) {
      for (Use Of : Users)
        if (G->input(Of) == Endpoint{N, Port})
          G->setInput(Of.User, Of.Index, By);
    };
    if (isVarianceRead(*G, N)) {
      Endpoint One = number("one", 1);
      Endpoint Less = arithmetic("count_less", op::Sub, {countOfRows(), One});
      Less = arithmetic("count_rest", op::Maximum, {Less, One});
      Endpoint Bessel = arithmetic("bessel", op::RealDiv, {Count, Less});
      Replace(2, arithmetic("batch_variance", op::Mul, {Variance, Bessel}));
    }
    if (Sync) {
      Replace(1, Mean);
      for (NodeId Gradient : Gradients)
        correctGradient(Gradient);
      infer(N);
    }
    ++Statistics["batch norms"];
    Changed = true;
  }
  return Changed ? PassResult::Changed : PassResult::Unchanged;
}

} // namespace

GRAFT_DEFINE_PASS_WITH_OPTIONS(SyncBatchNorm)

} // namespace graft
