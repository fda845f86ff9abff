//===- lib/lower/tpu/TpuPadding.cpp - inputs of several shapes --*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
// A TPU program has static shapes. So an input with shapes that may differ by
// replica is padded. The true size of each padded axis is a new input:
//
//     input0 = TPUReplicatedInput(x, x:1)
//       →
//     input0 = TPUReplicatedInput(Pad(x, [0, 8 - size(x)]), Pad_1)
//     input1 = TPUReplicatedInput(size(x), size(x:1))
//     XlaSetDynamicDimensionSize(input0, 0, input1)
//
// The nodes are those of TensorFlow's _pad_all_input (python/tpu/tpu.py),
// unread ones included.
//
//===----------------------------------------------------------------------===//

#include "lib/graph/AttrRun.h"
#include "lib/infer/graph/BatchSources.h"
#include "lib/infer/graph/Topology.h"
#include "lib/infer/sizes/Dims.h"
#include "lib/lower/tpu/TpuForm.h"
#include "lib/ops/Ops.h"

#include "llvm/Support/FormatVariadic.h"

#include <memory>

using namespace llvm;

namespace graft {
namespace {

class Padder {
public:
  Padder(Graph &G, TpuComputation &C, DiagnosticEngine &Diags)
      : G(G), C(C), Diags(Diags) {}

  bool run();

private:
  using Shape = SmallVector<int64_t, 4>; ///< -1: not known.

  std::optional<Shape> shapeOf(Endpoint E);
  bool findShapes();
  bool check(size_t Input);
  NodeId insert(StringRef Name, StringRef Op, ArrayRef<Endpoint> Inputs,
                const AttrRun &Attrs = {}) {
    NodeId N = G.insertNode(Name, Op, Inputs, After, Attrs);
    G.setDevice(N, C.Device);
    return N;
  }
  Endpoint ints(StringRef Name, ArrayRef<int64_t> Dims,
                ArrayRef<int64_t> Values) {
    return {insert(Name, op::Const, {},
                   AttrRun()
                       .type("dtype", DT_INT32)
                       .raw("value", encodeIntTensor(DT_INT32, Dims, Values))),
            0};
  }
  Endpoint pack(StringRef Name, ArrayRef<Endpoint> Values) {
    return {insert(Name, op::Pack, Values,
                   AttrRun()
                       .integer("N", static_cast<int64_t>(Values.size()))
                       .type("T", DT_INT32)),
            0};
  }
  Endpoint element(Endpoint Vector, int64_t I);
  void addShapes();
  Endpoint pad(size_t Input, unsigned Replica);

  Graph &G;
  TpuComputation &C;
  DiagnosticEngine &Diags;
  std::unique_ptr<DimAnalysis> Dims;
  NodeId After = NoNode;
  std::vector<std::vector<Shape>> Shapes;     ///< By input and replica.
  std::vector<std::vector<Endpoint>> Sizes;   ///< The same, as tensors.
  std::vector<Endpoint> Largest;              ///< By input.
  std::vector<std::vector<unsigned>> Differs; ///< Axes, by input.
};

/// Returns the static shape that TensorFlow knows: of a placeholder, of a part
/// of one, or as inferred through the ops.
std::optional<Padder::Shape> Padder::shapeOf(Endpoint E) {
  if (G.isOp(E.Node, op::Split)) {
    auto Parts = G.intAttr(E.Node, "num_split");
    auto Axis = constValue(G, G.input(E.Node, 0).Node);
    auto Whole = shapeOf(G.input(E.Node, 1));
    if (!Parts || *Parts <= 0 || !Axis || Axis->Ints.size() != 1 || !Whole ||
        Axis->Ints[0] < 0 || size_t(Axis->Ints[0]) >= Whole->size())
      return std::nullopt;
    int64_t &Size = (*Whole)[Axis->Ints[0]];
    Size = Size < 0 ? -1 : Size / *Parts;
    return Whole;
  }
  if (auto Source = sourceShape(G, E))
    return Source->UnknownRank ? std::nullopt : std::optional(Source->Dims);
  if (!Dims)
    Dims = std::make_unique<DimAnalysis>(G, topologicalOrder(G),
                                         DimOptions{.Unpatched = true});
  auto Known = Dims->shape(E);
  if (!Known)
    return std::nullopt;
  Shape Result;
  for (DimId D : *Known)
    Result.push_back(std::max<int64_t>(Dims->table().number(D), -1));
  return Result;
}

bool Padder::findShapes() {
  for (const TpuInput &I : C.Inputs) {
    auto &Of = Shapes.emplace_back();
    auto &Axes = Differs.emplace_back();
    for (Endpoint E : I.Values) {
      auto S = shapeOf(E);
      if (!S || (!Of.empty() && S->size() != Of[0].size())) {
        Diags.error(G.name(I.Read.Node),
                    "maximum-shapes: the tensors of this input must have "
                    "the same known rank on all replicas");
        return false;
      }
      Of.push_back(std::move(*S));
    }
    for (unsigned Axis = 0; Axis < Of[0].size(); ++Axis)
      if (any_of(ArrayRef(Of).drop_front(), [&](const Shape &S) {
            return S[Axis] < 0 || S[Axis] != Of[0][Axis];
          }))
        Axes.push_back(Axis);
  }
  return true;
}

/// Returns true if input number \p Input can be padded as requested.
bool Padder::check(size_t Input) {
  const TpuInput &I = C.Inputs[Input];
  if (!I.Maximum || Differs[Input].empty())
    return true;
  if (I.Maximum->Dims.size() != Shapes[Input][0].size()) {
    Diags.error(
        G.name(I.Read.Node),
        formatv(
            "maximum-shapes: the number of sizes is {0}, but this input has "
            "{1} axes",
            I.Maximum->Dims.size(), Shapes[Input][0].size()));
    return false;
  }
  if (any_of(Shapes[Input],
             [](const Shape &S) { return !is_contained(S, -1); })) {
    Diags.error(G.name(I.Read.Node),
                "maximum-shapes: a tensor with a static shape is not padded; "
                "export the graph with an unknown size");
    return false;
  }
  return true;
}

Endpoint Padder::element(Endpoint Vector, int64_t I) {
  Endpoint Begin = ints("strided_slice/stack", 1, I);
  Endpoint End = ints("strided_slice/stack_1", 1, I + 1);
  Endpoint Stride = ints("strided_slice/stack_2", 1, 1);
  return {insert("strided_slice", op::StridedSlice,
                 {Vector, Begin, End, Stride},
                 AttrRun()
                     .type("T", DT_INT32)
                     .type("Index", DT_INT32)
                     .integer("shrink_axis_mask", 1)),
          0};
}

void Padder::addShapes() {
  for (size_t I = 0; I < Shapes.size(); ++I) {
    auto &Of = Sizes.emplace_back();
    for (unsigned R = 0; R < C.Replicas; ++R) {
      const Shape &S = Shapes[I][R];
      Endpoint E = C.Inputs[I].Values[R];
      if (!is_contained(S, -1))
        Of.push_back(ints(op::Shape, static_cast<int64_t>(S.size()), S));
      else
        Of.push_back({insert(op::Shape, op::Shape, E,
                             AttrRun()
                                 .type("T", G.outputType(E))
                                 .type("out_type", DT_INT32)),
                      0});
      G.setBoolAttr(Of.back().Node, "_post_device_rewrite", true);
    }
  }
  for (const auto &Of : Sizes) {
    Endpoint Stack = pack("stack", Of);
    Endpoint Axis = ints("Max/reduction_indices", {}, 0);
    Largest.push_back(
        {insert(op::Max, op::Max, {Stack, Axis},
                AttrRun().type("T", DT_INT32).type("Tidx", DT_INT32)),
         0});
  }
}

/// Pads the value of input number \p Input on \p Replica.
Endpoint Padder::pad(size_t Input, unsigned Replica) {
  constexpr int64_t LeastDynamic = 2; // XLA has no dynamic size of 1.
  Endpoint Value = C.Inputs[Input].Values[Replica];
  const SmallVector<int64_t, 4> &Maximum = C.Inputs[Input].Maximum->Dims;
  std::vector<Endpoint> Less(Maximum.size());
  for (unsigned Axis : Differs[Input]) {
    Endpoint Most;
    if (Maximum[Axis] >= 0) {
      Most = ints("sub/x", {}, std::max(Maximum[Axis], LeastDynamic));
    } else {
      Endpoint Of = element(Largest[Input], Axis);
      Most = {insert(op::Maximum, op::Maximum,
                     {Of, ints("Maximum/y", {}, LeastDynamic)},
                     AttrRun().type("T", DT_INT32)),
              0};
    }
    Endpoint Size = element(Sizes[Input][Replica], Axis);
    Less[Axis] = {
        insert("sub", op::Sub, {Most, Size}, AttrRun().type("T", DT_INT32)), 0};
  }
  SmallVector<Endpoint, 4> Paddings;
  for (Endpoint L : Less)
    Paddings.push_back(
        L.Node == NoNode
            ? ints("Pad/paddings/none", 2, {0, 0})
            : pack("Pad/paddings/some", {ints("Pad/paddings/zero", {}, 0), L}));
  Endpoint All = pack("Pad/paddings", Paddings);
  return {insert(op::Pad, op::Pad, {Value, All},
                 AttrRun()
                     .type("T", G.outputType(Value))
                     .type("Tpaddings", DT_INT32)
                     .boolean("_post_device_rewrite", true)),
          0};
}

bool Padder::run() {
  if (none_of(C.Inputs,
              [](const TpuInput &I) { return I.Maximum.has_value(); }))
    return true;
  // buildTpuForm refuses a wrong number of tensors.
  if (any_of(C.Inputs,
             [&](const TpuInput &I) { return I.Values.size() != C.Replicas; }))
    return true;
  if (!findShapes())
    return false;
  size_t Count = C.Inputs.size();
  for (size_t I = 0; I < Count; ++I) {
    if (!check(I))
      return false;
    for (Endpoint E : C.Inputs[I].Values)
      After = After == NoNode ? E.Node : std::max(After, E.Node);
  }
  addShapes();
  for (size_t I = 0; I < Count; ++I) {
    if (!C.Inputs[I].Maximum)
      continue;
    for (unsigned Axis : Differs[I]) {
      TpuInput Size;
      for (unsigned R = 0; R < C.Replicas; ++R)
        Size.Values.push_back(element(Sizes[I][R], Axis));
      C.Paddings.push_back({static_cast<unsigned>(I), Axis,
                            static_cast<unsigned>(C.Inputs.size())});
      C.Inputs.push_back(std::move(Size));
    }
    if (Differs[I].empty())
      continue;
    for (unsigned R = 0; R < C.Replicas; ++R)
      C.Inputs[I].Values[R] = pad(I, R);
  }
  return true;
}

} // namespace

bool padTpuInputs(Graph &G, TpuComputation &C, DiagnosticEngine &Diags) {
  return Padder(G, C, Diags).run();
}

} // namespace graft
