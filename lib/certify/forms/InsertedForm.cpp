//===- lib/certify/forms/InsertedForm.cpp - the forms of all kinds --------===//
//
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "lib/certify/forms/InsertedForm.h"

#include "lib/graph/ProgramAttrs.h"
#include "lib/ops/Ops.h"
#include "lib/program/forms/SeedOffset.h"

#include "llvm/ADT/StringSwitch.h"

using namespace llvm;

namespace graft {

static constexpr InsertedForm NoForm;

/// By kind.
static constexpr const InsertedForm *Forms[] = {
    &NoForm,
#define GRAFT_INSERTED(Kind, Name, Is, StandsFor) &Kind##Form,
#include "lib/graph/Inserted.def"
#include "lib/ops/ProgramOps.h"
};

const InsertedForm &formOf(Inserted Kind) {
  return *Forms[static_cast<size_t>(Kind)];
}

Inserted recognizeInserted(const LoweredFile &File, NodeId N) {
  const auto *It = find_if(Forms, [&](const InsertedForm *Form) {
    return Form->Recognize && Form->Recognize(File, N);
  });
  return It == std::end(Forms) ? Inserted::No
                               : static_cast<Inserted>(It - std::begin(Forms));
}

static OpKind opKindOf(StringRef Op) {
  return StringSwitch<OpKind>(Op)
      .Case(ToReplicasOp, OpKind::ToReplicas)
      .Case(FromReplicasOp, OpKind::FromReplicas)
      .Case(ReduceOp, OpKind::Reduce)
      .Case(GatherOp, OpKind::Gather)
      .Case(ScaleOp, OpKind::Scale)
      .Case(op::CollectiveReduce, OpKind::CollectiveReduce)
      .Case(op::CollectiveGather, OpKind::CollectiveGather)
      .Case(op::Identity, OpKind::Identity)
      .Case(op::IdentityN, OpKind::IdentityN)
      .Case(op::NoOp, OpKind::NoOp)
      .Case(MeshOp, OpKind::Mesh)
      .Case(op::SparseSlice, OpKind::SparseSlice)
      .Case(op::StridedSlice, OpKind::StridedSlice)
      .Default(isSeededDraw(Op) ? OpKind::SeededDraw : OpKind::Other);
}

Comparison::Comparison(const InputGraph &Input, const Graph &Program,
                       DiagnosticEngine &Diags)
    : In(Input), G(Program), Diags(Diags),
      Replicas(std::max(1u, readMesh(Program).replicas())),
      GathersInOrder(gathersInOrder(readMesh(Program).Devices)) {
  for (uint32_t Op = 0; Op < G.numOps(); ++Op)
    Kinds.push_back(opKindOf(G.opNameOf(Op)));
}

void Comparison::error(NodeId N, const Twine &Message, NodeId Because) {
  if (++Errors > 12)
    return;
  Diagnostic &D =
      Diags.error(N == NoNode ? StringRef() : originName(G, N), Message.str());
  if (Because != NoNode)
    D.Notes.push_back({originName(G, Because).str(), "because of this node"});
}

void Comparison::mismatch(NodeId N) {
  error(N, "op " + G.opName(N) + " does not match its inserted kind '" +
               insertedName(G.node(N).Kind) + "'");
}

Endpoint Comparison::strip(Endpoint E) const {
  for (unsigned Steps = 0; InputOf[E.Node] == NoNode; ++Steps) {
    const InsertedForm &Form = formOf(G.node(E.Node).Kind);
    Endpoint To = Form.StandsFor && Steps <= G.size() ? Form.StandsFor(*this, E)
                                                      : Endpoint();
    if (To.Node == NoNode || To == E)
      return To;
    E = To;
  }
  return E;
}

Endpoint Comparison::erase(Endpoint E) const {
  E = strip(E);
  return E.Node != NoNode && InputOf[E.Node] != NoNode ? E : Endpoint();
}

} // namespace graft
