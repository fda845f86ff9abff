//===- lib/program/forms/StepCount.cpp - steps that are counted -*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "lib/program/forms/StepCount.h"

#include "lib/ops/Ops.h"
#include "lib/program/forms/WorkerParts.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FormatVariadic.h"

#include <limits>

using namespace llvm;

namespace graft {

/// Returns \p Name, with the first number that makes it free if needed. A name
/// is free if no node has it, and if no attribute \p Key is that name or a name
/// beneath it.
static std::string freeFor(const Graph &G, StringRef Name, StringRef Key) {
  auto IsTaken = [&](StringRef Text) {
    if (G.find(Text) != NoNode)
      return true;
    for (NodeId N = 0; N < G.size(); ++N)
      if (G.isLive(N))
        if (auto Value = G.stringAttr(N, Key))
          if (StringRef Rest = *Value;
              Rest.consume_front(Text) && (Rest.empty() || Rest[0] == '/'))
            return true;
    return false;
  };
  std::string Free = Name.str();
  for (unsigned I = 1; IsTaken(Free); ++I)
    Free = (Name + "_" + utostr(I)).str();
  return Free;
}

std::string StepCount::freeName(const Graph &G) {
  return freeFor(G, "graft/steps", "shared_name");
}

std::string StepCount::freeFrame(const Graph &G) {
  return freeFor(G, "graft/ahead", "frame_name");
}

StepCount::StepCount(Graph &G, Place P, NodeId After)
    : G(G), P(std::move(P)), After(After) {
  countFromZero();
  waitForOthers();
}

NodeId StepCount::add(const Twine &Name, StringRef Op,
                      ArrayRef<Endpoint> Inputs, const AttrRun &Attrs) {
  After = G.insertNode(Name.str(), Op, Inputs, After, Attrs);
  G.setDevice(After, P.Server);
  return After;
}

NodeId StepCount::constant(const Twine &Name, unsigned Type,
                           ArrayRef<int64_t> Shape, ArrayRef<int64_t> Values,
                           NodeId Control) {
  SmallVector<Endpoint, 1> Inputs;
  if (Control != NoNode)
    Inputs.push_back({Control, ControlPort});
  AttrRun Attrs;
  Attrs.type("dtype", Type).raw("value", encodeIntTensor(Type, Shape, Values));
  return add(Name, op::Const, Inputs, Attrs);
}

/// Adds the accumulator on which worker \p Worker sleeps.
NodeId StepCount::wakeUp(unsigned Worker, StringRef Name, NodeId Control) {
  AttrRun Attrs;
  Attrs.type("dtype", DT_FLOAT)
      .raw("shape", encodeShapeAttr(ShapeValue()))
      .string("container", "")
      .string("shared_name", formatv("{0}/wake_{1}", P.Name, Worker).str())
      .string("reduction_type", "SUM");
  SmallVector<Endpoint, 1> Inputs;
  if (Control != NoNode)
    Inputs.push_back({Control, ControlPort});
  return add(Name, op::ConditionalAccumulator, Inputs, Attrs);
}

void StepCount::countFromZero() {
  ShapeValue Shape;
  Shape.Dims.push_back(P.Workers);
  AttrRun Handle;
  Handle.string("container", "")
      .type("dtype", DT_INT64)
      .raw("shape", encodeShapeAttr(Shape))
      .string("shared_name", P.Name)
      .string(PartAttr, part::Steps);
  Steps = add(P.Name, op::VarHandleOp, {}, Handle);
  NodeId Zero = constant(P.Name + "/zeros", DT_INT64, Shape.Dims,
                         std::vector<int64_t>(P.Workers));
  AttrRun Assign;
  Assign.type("dtype", DT_INT64).string(PartAttr, part::Zeros);
  Zeros = add(P.Name + "/Assign", op::AssignVariableOp, {{Steps, 0}, {Zero, 0}},
              Assign);
}

void StepCount::waitForOthers() {
  std::string Name = P.Frame;
  auto Of = [](unsigned Type) { return AttrRun().type("T", Type); };
  auto Enter = [&](Endpoint E, unsigned Type, bool Constant) {
    AttrRun Attrs;
    Attrs.type("T", Type)
        .string("frame_name", P.Frame)
        .boolean("is_constant", Constant)
        .integer("parallel_iterations", 1);
    return add(Name + (Constant ? "/steps" : "/enter"), op::Enter, E, Attrs);
  };
  NodeId Token = constant(Name + "/token", DT_BOOL, {}, 0);
  NodeId First = Enter({Token, 0}, DT_BOOL, false);
  NodeId Handle = Enter({Steps, 0}, DT_RESOURCE, true);
  AttrRun Merge;
  Merge.type("T", DT_BOOL).integer("N", 2);
  NodeId Turn = add(Name, op::Merge, {{First, 0}, {First, 0}}, Merge);
  AttrRun Read;
  Read.type("dtype", DT_INT64);
  NodeId All = add(Name + "/read", op::ReadVariableOp,
                   {{Handle, 0}, {Turn, ControlPort}}, Read);
  NodeId Axis = constant(Name + "/axis", DT_INT32, {}, 0, Turn);
  NodeId Number = constant(Name + "/worker", DT_INT32, {}, P.Mine, Turn);
  AttrRun Gather;
  Gather.type("Tparams", DT_INT64)
      .type("Tindices", DT_INT32)
      .type("Taxis", DT_INT32);
  NodeId Own = add(Name + "/own", op::GatherV2,
                   {{All, 0}, {Number, 0}, {Axis, 0}}, Gather);
  AttrRun Min;
  Min.type("T", DT_INT64).type("Tidx", DT_INT32);
  NodeId Least = add(Name + "/least", op::Min, {{All, 0}, {Axis, 0}}, Min);
  NodeId Lead =
      add(Name + "/lead", op::Sub, {{Own, 0}, {Least, 0}}, Of(DT_INT64));
  NodeId Most = constant(Name + "/most", DT_INT64, {}, P.Ahead, Turn);
  NodeId Waits = add(Name + "/waits", op::GreaterEqual, {{Lead, 0}, {Most, 0}},
                     Of(DT_INT64));
  NodeId Cond = add(Name + "/cond", op::LoopCond, Endpoint{Waits, 0}, {});
  NodeId Switch =
      add(Name + "/switch", op::Switch, {{Turn, 0}, {Cond, 0}}, Of(DT_BOOL));
  NodeId Body =
      add(Name + "/body", op::Identity, Endpoint{Switch, 1}, Of(DT_BOOL));
  NodeId Wake = wakeUp(P.Mine, Name + "/wake", Body);
  NodeId One = constant(Name + "/one", DT_INT32, {}, 1, Body);
  AttrRun Take;
  Take.type("dtype", DT_FLOAT);
  NodeId Sleep = add(Name + "/sleep", op::AccumulatorTakeGradient,
                     {{Wake, 0}, {One, 0}}, Take);
  NodeId Awake = add(Name + "/awake", op::Identity,
                     {{Body, 0}, {Sleep, ControlPort}}, Of(DT_BOOL));
  NodeId Next =
      add(Name + "/next", op::NextIteration, Endpoint{Awake, 0}, Of(DT_BOOL));
  G.setInput(Turn, 1, {Next, 0});
  Gate = add(Name + "/exit", op::Exit, Endpoint{Switch, 0},
             Of(DT_BOOL).string(PartAttr, part::Gate));
}

NodeId StepCount::end(NodeId N) {
  std::string Name = G.name(N).str(), Device = G.device(N).str();
  After = N;
  std::vector<int64_t> Own(P.Workers);
  Own[P.Mine] = 1;
  AttrRun Type;
  Type.type("dtype", DT_INT64);
  NodeId One =
      constant(Name + "/one", DT_INT64, static_cast<int64_t>(Own.size()), Own);
  NodeId Count =
      add(Name + "/count", op::AssignAddVariableOp,
          {{Steps, 0}, {One, 0}, {N, ControlPort}, {Gate, ControlPort}}, Type);
  SmallVector<Endpoint, 8> Inputs;
  SmallVector<NodeId, 8> Ends{Count};
  AttrRun Float;
  Float.type("dtype", DT_FLOAT)
      .raw("value", encodeFloatTensor(DT_FLOAT, {}, 1.0));
  NodeId Call = add(Name + "/call", op::Const, {}, Float);
  NodeId Always = constant(Name + "/always", DT_INT64, {},
                           std::numeric_limits<int64_t>::max());
  AttrRun Put;
  Put.type("dtype", DT_FLOAT);
  for (unsigned Other = 0; Other < P.Workers; ++Other) {
    if (Other == P.Mine)
      continue;
    std::string To = formatv("{0}/wake_{1}", Name, Other);
    NodeId Wake = wakeUp(Other, To, NoNode);
    Ends.push_back(
        add(To + "/put", op::AccumulatorApplyGradient,
            {{Wake, 0}, {Always, 0}, {Call, 0}, {Count, ControlPort}}, Put));
  }
  AttrRun Attrs;
  unsigned Outputs = G.numOutputs(N).value_or(0);
  std::string Types;
  for (unsigned Port = 0; Port < Outputs; ++Port) {
    Types += static_cast<char>(G.outputType(N, Port));
    Inputs.push_back({N, Port});
  }
  if (Outputs == 1)
    Attrs.type("T", static_cast<unsigned char>(Types[0]));
  else if (Outputs > 1)
    Attrs.raw("T", encodeTypeListAttr(Types));
  Attrs.string(PartAttr, part::Name);
  for (NodeId End : Ends)
    Inputs.push_back({End, ControlPort});
  G.rename(N, G.uniqueName(Name + "/step"));
  NodeId End = add(Name,
                   Outputs == 0   ? op::NoOp
                   : Outputs == 1 ? op::Identity
                                  : op::IdentityN,
                   Inputs, Attrs);
  G.setDevice(End, Device);
  return End;
}

} // namespace graft
