//===- passes/InsertAccumulators.cpp - insert-accumulators ------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
// Sums the gradient of a shared variable in a conditional accumulator on the
// device of the variable, as parameter servers do:
//
//     s = _FromReplicas(g) sum        acc = ConditionalAccumulator() @D
//     m = _Scale(s) power=-1          ready = NoOp(^g)
//     step = ApplyGradient..(w, m) →  put = AccumulatorApplyGradient*(acc,
//                                         2^63-1, g, ^ready) @D
//                                     s = AccumulatorTakeGradient(acc, N,
//                                         ^put) @D
//                                     m = _Scale(s) power=-1
//
// The accumulator sums, and a scale follows. The accumulator's mean would
// divide by the number of puts. Each put has the largest step number, since an
// accumulator silently drops older values. `ready` makes each put wait until
// all replicas have a gradient. So a run that fails earlier leaves no gradient
// in the accumulator for the sum of the next run.
//
// The kernels exist only for CPUs, and for half, float and double. If the
// variable is on a GPU, the kernels run on the host of the GPU. Gradients of
// other types are still added by AddN. IndexedSlices are still concatenated: a
// SparseConditionalAccumulator merges only sorted and unique indices.
//
// Relies on: merged gradients (merge-fetches).
//
//===----------------------------------------------------------------------===//

#include "lib/graph/AttrRun.h"
#include "lib/graph/DeviceName.h"
#include "lib/graph/PerOp.h"
#include "lib/infer/graph/Variables.h"
#include "lib/io/Module.h"
#include "lib/ops/Ops.h"
#include "lib/pass/Pass.h"
#include "lib/program/Program.h"

#include <limits>

using namespace llvm;

namespace graft {
namespace {

class InsertAccumulators final : public PassBase<InsertAccumulators> {
public:
  static constexpr PassInfo Info = {
      "insert-accumulators", "Sum gradients in conditional accumulators",
      "Replaces the addition of the gradients of a shared variable by a\n"
      "conditional accumulator on the device of the variable."};

  PassResult run(Module &M, DiagnosticEngine &Diags) override;

private:
  NodeId variableFor(NodeId Sum) const;
  NodeId insert(const Twine &Name, StringRef Op, ArrayRef<Endpoint> Inputs,
                NodeId After, const AttrRun &Attrs);
  void accumulate(NodeId Sum, NodeId Var);

  Graph *G = nullptr;
  const VariableIndex *Vars = nullptr;
  unsigned Replicas = 0;
  std::string Device;
};

/// Returns the shared variable whose gradient is \p Sum, or \p Sum scaled by a
/// power of N.
NodeId InsertAccumulators::variableFor(NodeId Sum) const {
  NodeId Found = NoNode;
  G->anyUse(Sum, [&](Use U) {
    UpdateDef Def = Vars->update(*G, U.User);
    if (G->node(U.User).Kind == Inserted::Scale && U.Index == 0)
      Found = variableFor(U.User);
    else if (Def.Kind != UpdateKind::None && Def.Indices < 0 &&
             static_cast<int>(U.Index) == Def.Grad)
      Found = Vars->variableOf(G->input(U.User, 0));
    if (Found != NoNode && G->node(Found).Plan != Policy::Shared)
      Found = NoNode;
    return Found != NoNode;
  });
  return Found;
}

NodeId InsertAccumulators::insert(const Twine &Name, StringRef Op,
                                  ArrayRef<Endpoint> Inputs, NodeId After,
                                  const AttrRun &Attrs) {
  NodeId N =
      G->insertNode(Name.str(), Op, Inputs, After, Attrs, Inserted::Accumulate);
  G->setDevice(N, Device);
  return N;
}

void InsertAccumulators::accumulate(NodeId Sum, NodeId Var) {
  Endpoint Value = G->input(Sum, 0);
  unsigned Type = G->outputType(Value);
  std::string Name = G->name(Sum).str();
  Device = hostDevice(G->device(Var));
  if (auto Of = DeviceName::parse(Device); Of && Of->Type == "GPU") {
    Of->Type = "CPU";
    Of->Index = 0;
    Device = Of->str();
  }
  std::string Own = G->uniqueName(Name + "/accumulator");
  AttrRun Attrs;
  Attrs.type("dtype", Type);
  Attrs.raw("shape", G->attr(Var, "shape").value_or(""));
  Attrs.string("container", "").string("shared_name", Own);
  Attrs.string("reduction_type", "SUM");
  NodeId Acc = insert(Own, op::ConditionalAccumulator, {}, Value.Node, Attrs);
  auto Constant = [&](StringRef Suffix, unsigned Of, int64_t Number) {
    AttrRun Const;
    Const.type("dtype", Of).raw("value", encodeIntTensor(Of, {}, Number));
    return insert(Own + Suffix, op::Const, {}, Acc, Const);
  };
  NodeId Step =
      Constant("/step", DT_INT64, std::numeric_limits<int64_t>::max());
  NodeId Number = Constant("/required", DT_INT32, Replicas);
  NodeId Ready = insert(Own + "/ready", op::NoOp,
                        Endpoint{Value.Node, ControlPort}, Acc, {});
  AttrRun DType;
  DType.type("dtype", Type);
  NodeId Put =
      insert(Own + "/put", op::AccumulatorApplyGradient,
             {{Acc, 0}, {Step, 0}, Value, {Ready, ControlPort}}, Acc, DType);
  G->node(Put).Count = Copies::PerReplica;
  G->node(Put).Flags |= NF_LocalName | NF_FixedDevice;
  for (StringRef Key : {StringRef("T"), CombineAttr, StringRef("axis")})
    G->removeAttr(Sum, Key);
  G->setOp(Sum, op::AccumulatorTakeGradient);
  G->setTypeAttr(Sum, "dtype", Type);
  G->setInputs(
      Sum, {Endpoint{Acc, 0}, Endpoint{Number, 0}, Endpoint{Put, ControlPort}});
  G->setDevice(Sum, Device);
  G->node(Sum).Kind = Inserted::Accumulate;
  ++Statistics["accumulators"];
}

PassResult InsertAccumulators::run(Module &M, DiagnosticEngine &Diags) {
  G = &M.graph();
  Replicas = readMesh(*G).replicas();
  PerOp IsMerge(
      *G, [](StringRef Op, const OpDef *) { return Op == FromReplicasOp; });
  if (Replicas < 2 || !IsMerge.any())
    return PassResult::Unchanged;
  VariableIndex Index(*G);
  Vars = &Index;
  bool Changed = false;
  for (NodeId N = 0, End = G->size(); N < End; ++N) {
    const Node &This = G->node(N);
    if (!IsMerge[This] || This.isDead() || This.Kind != Inserted::Merge ||
        This.NumInputs != 1 || This.Count != Copies::Once ||
        G->stringAttr(N, CombineAttr) != combine::Sum)
      continue;
    Endpoint Value = G->input(N, 0);
    unsigned Type = G->outputType(Value);
    if ((Type != DT_HALF && Type != DT_FLOAT && Type != DT_DOUBLE) ||
        !G->isPerReplica(Value.Node) ||
        G->node(Value.Node).Kind == Inserted::Split ||
        G->node(Value.Node).Flags & NF_ElidePrimary)
      continue;
    NodeId Var = variableFor(N);
    if (Var == NoNode)
      continue;
    accumulate(N, Var);
    Changed = true;
    if (Diags.wantsRemarks())
      Diags.remark("accumulator", G->name(Var),
                   "its gradients are summed in an accumulator on " + Device);
  }
  return Changed ? PassResult::Changed : PassResult::Unchanged;
}

} // namespace

GRAFT_DEFINE_PASS(InsertAccumulators)

} // namespace graft
