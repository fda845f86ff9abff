//===- lib/certify/forms/AccumulateCheck.cpp - sums in accumulators -------===//
//
// SPDX-License-Identifier: Apache-2.0
//
// A sum over the replicas by a conditional accumulator (all nodes of kind
// `accumulate`). AccumulatorTakeGradient returns the sum of the gradients that
// the replicas apply in the same step.
//
//     acc = ConditionalAccumulator() reduction_type="SUM"
//     ready = NoOp(^g)                     waits for all replicas
//     put = AccumulatorApplyGradient*(acc, 2^63-1, g, ^ready)
//     take = AccumulatorTakeGradient(acc, N, ^put)
//
//===----------------------------------------------------------------------===//

#include "lib/certify/forms/InsertedForm.h"
#include "lib/ops/Ops.h"
#include "lib/program/forms/Accumulator.h"

#include "llvm/ADT/STLExtras.h"

#include <limits>

using namespace llvm;

namespace graft {

/// Returns true if \p E is a constant of type \p Type with the value \p Want.
static bool isNumber(const Graph &G, Endpoint E, unsigned Type, int64_t Want) {
  if (!G.isOp(E.Node, op::Const) || E.Port != 0)
    return false;
  auto Value = constValue(G, E.Node);
  return Value && Value->Type == Type && Value->Shape.Dims.empty() &&
         Value->Ints.size() == 1 && Value->Ints[0] == Want;
}

static void checkAccumulate(Comparison &C, const ProgramFacts & /*Facts*/,
                            NodeId N) {
  const Graph &G = C.G;
  const Node &This = G.node(N);
  StringRef Op = G.opName(N);
  bool Once = This.Count == Copies::Once;
  if (Op == op::ConditionalAccumulator) {
    if (!Once || This.NumInputs != 0 ||
        G.stringAttr(N, "reduction_type") != StringRef("SUM"))
      C.error(N, "is not an unreplicated accumulator of a sum");
    // Two accumulators with the same shared_name are the same resource.
    if (G.stringAttr(N, "shared_name") != G.name(N))
      C.error(N, "is an accumulator whose shared_name is not its own name");
    if (none_of(G.uses(N), [&](Use U) {
          return isAccumulatorPart(G, U.User, op::AccumulatorTakeGradient) &&
                 putOf(G, U.User) != NoNode;
        }))
      C.error(N, "is an accumulator that does not have exactly one "
                 "AccumulatorApplyGradient per replica and one "
                 "AccumulatorTakeGradient");
  } else if (Op == op::AccumulatorTakeGradient) {
    NodeId Put = putOf(G, N);
    if (!Once || Put == NoNode)
      return C.error(
          N, "takes the sum of an accumulator that other nodes also use");
    NodeId Acc = G.input(N, 0).Node;
    if (!isNumber(G, G.input(N, 1), DT_INT32, C.Replicas))
      C.error(N, "has a num_required that is not the number of replicas");
    if (G.controlInputs(N).size() != 1 || G.controlInputs(N)[0].Node != Put)
      C.error(N, "takes the sum of an accumulator but does not wait for the "
                 "AccumulatorApplyGradient of each replica");
    auto Type = G.typeAttr(N, "dtype");
    if (Type != G.typeAttr(Put, "dtype") || Type != G.typeAttr(Acc, "dtype"))
      C.error(N, "takes a type other than that of the applied gradients");
  } else if (Op == op::AccumulatorApplyGradient) {
    if (Once || This.NumData != 3 ||
        G.node(G.input(N, 2).Node).Count != Copies::PerReplica)
      return C.error(N, "does not apply a per-replica gradient");
    // An accumulator drops a value whose step is older than its own.
    if (!isNumber(G, G.input(N, 1), DT_INT64,
                  std::numeric_limits<int64_t>::max()))
      C.error(N, "applies a gradient with a local_step that may be stale");
    for (Endpoint E : G.controlInputs(N))
      if (!isAccumulatorPart(G, E.Node, op::NoOp))
        C.error(N, "applies a gradient and waits for '" + G.name(E.Node) +
                       "', on which its value does not depend");
    // A replica must not apply its gradient before all gradients are computed.
    // Otherwise a failed run could leave gradients of some replicas in the
    // accumulator, and the next run would add them.
    if (none_of(G.controlInputs(N), [&](Endpoint E) {
          return G.node(E.Node).Count == Copies::Once &&
                 is_contained(G.controlInputs(E.Node),
                              Endpoint{G.input(N, 2).Node, ControlPort});
        }))
      C.error(N, "applies its gradient before the gradients of all replicas "
                 "are computed");
  } else if (Op == op::NoOp) {
    for (Endpoint E : G.inputs(N))
      if (!G.anyUse(N, [&](Use U) {
            return isAccumulatorPart(G, U.User, op::AccumulatorApplyGradient) &&
                   G.node(U.User).NumData == 3 &&
                   G.input(U.User, 2).Node == E.Node;
          }))
        C.error(N, "waits for '" + G.name(E.Node) +
                       "', which is not a gradient that is applied");
  } else if (Op != op::Const || !Once || This.NumInputs != 0) {
    C.mismatch(N);
  }
  // No other node may use the parts of an accumulator.
  if (Op != op::AccumulatorTakeGradient)
    G.forEachUse(N, [&](Use U) {
      if (G.node(U.User).Kind != Inserted::Accumulate)
        C.error(U.User, "uses '" + G.name(N) + "', a part of an accumulator");
    });
}

static Endpoint standsForAccumulate(const Comparison &C, Endpoint E) {
  NodeId Put = putOf(C.G, E.Node);
  return Put == NoNode ? Endpoint() : C.G.input(Put, 2);
}

static bool recognizeAccumulate(const LoweredFile &File, NodeId N) {
  const Graph &G = File.G;
  auto IsOp = [&](NodeId Of) {
    return G.opName(Of).starts_with("Accumulator") ||
           G.isOp(Of, op::ConditionalAccumulator);
  };
  // graft does not replicate an input that has accumulators, so all
  // accumulators of a written file are inserted.
  return IsOp(N) || ((G.isOp(N, op::Const) || G.isOp(N, op::NoOp)) &&
                     G.anyUse(N, [&](Use U) { return IsOp(U.User); }));
}

const InsertedForm AccumulateForm = {.StandsFor = standsForAccumulate,
                                     .Check = checkAccumulate,
                                     .Recognize = recognizeAccumulate,
                                     .IsUnseen = true};

} // namespace graft
