//===- lib/rewrite/partition/PartitionEdit.cpp - variables in parts -------===//
//
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "lib/rewrite/partition/PartitionEdit.h"

#include "lib/ops/Ops.h"
#include "lib/program/Program.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"

using namespace llvm;

namespace graft {

/// Returns a name and a slice as TensorFlow writes it: `w 10 4 0,5:0,4`.
static std::string sliceText(const Graph &G, const PartitionedVariable &Of,
                             unsigned Part) {
  std::string Text = G.name(Of.Var).str(), Slice;
  for (auto [Axis, Size] : enumerate(Of.Shape)) {
    Text += " " + itostr(Size);
    bool IsCut = Axis == Of.Cut.Axis;
    Slice += (Slice.empty() ? "" : ":") + itostr(IsCut ? Of.Offsets[Part] : 0) +
             "," + itostr(IsCut ? Of.Cut.Sizes[Part] : Size);
  }
  return Text + " " + Slice;
}

void PartitionEditor::makeParts(const PartitionedVariable &Of) {
  StringRef Name = G.name(Of.Var);
  StringRef Shared = G.stringAttr(Of.Var, "shared_name").value_or("");
  bool IsHandle = G.isOp(Of.Var, op::VarHandleOp);
  auto Synchronizers = G.stringListAttr(Of.Leader, PartSynchronizersAttr);
  auto Whole = G.stringAttr(Of.Leader, SynchronizerAttr);
  Nodes Parts;
  for (unsigned I = 0; I < Of.parts(); ++I) {
    std::string Mark = ("/part_" + Twine(I)).str();
    NodeId N = clone(Of.Var, Name + Mark, I,
                     SmallVector<Endpoint, 1>(G.inputs(Of.Var)));
    ShapeValue Shape;
    Shape.Dims.assign(Of.Shape.begin(), Of.Shape.end());
    Shape.Dims[Of.Cut.Axis] = Of.Cut.Sizes[I];
    G.setAttr(N, "shape", encodeShapeAttr(Shape));
    if (IsHandle || !Shared.empty())
      G.setStringAttr(N, "shared_name",
                      ((Shared.empty() ? Name : Shared) + Mark).str());
    G.removeAttr(N, PartitionAttr);
    G.removeAttr(N, PartSynchronizersAttr);
    if (Synchronizers && I < Synchronizers->size())
      G.setStringAttr(N, SynchronizerAttr, (*Synchronizers)[I]);
    else if (Whole)
      G.setStringAttr(N, SynchronizerAttr, *Whole);
    G.setStringAttr(N, SliceAttr, sliceText(G, Of, I));
    G.node(N).Plan = G.node(Of.Var).Plan;
    Parts.push_back(N);
  }
  Clones[Of.Var] = std::move(Parts);
}

/// Marks users of \p Alias as ready if they need no other missing clones.
void PartitionEditor::finish(NodeId Alias) {
  for (Use U : G.uses(Alias)) {
    if (!G.isData(U) || !Plan.find(G.input(U)))
      continue;
    auto [It, New] = Pending.try_emplace(U.User, 0);
    if (New)
      It->second =
          static_cast<unsigned>(count_if(G.dataInputs(U.User), [&](Endpoint E) {
            return Plan.find(E) != nullptr;
          }));
    if (--It->second == 0)
      Ready.push_back(U.User);
  }
}

void PartitionEditor::run() {
  keepNamed();
  for (const PartitionedVariable &Of : Plan.variables()) {
    findSaved(Of);
    findRestored(Of);
    makeParts(Of);
  }
  for (const PartitionedVariable &Of : Plan.variables())
    Gone[G.name(Of.Var)] = Of.Var;
  for (const PartitionedVariable &Of : Plan.variables())
    for (auto [I, Part] : enumerate(Clones[Of.Var]))
      if (auto Class = G.stringListAttr(Part, "_class")) {
        std::vector<std::string> Names;
        for (StringRef Entry : *Class)
          Names.push_back(classFor(Entry, static_cast<unsigned>(I)));
        G.setAttr(Part, "_class",
                  encodeStringListAttr(
                      SmallVector<StringRef, 2>(Names.begin(), Names.end())));
      }
  rewriteRestores();
  for (const PartitionedVariable &Of : Plan.variables()) {
    Old.push_back(Of.Var);
    finish(Of.Var);
  }
  // Rewrites users in node order as soon as the clones that they need exist.
  while (!Ready.empty()) {
    std::vector<NodeId> Now = std::move(Ready);
    Ready.clear();
    llvm::sort(Now);
    for (NodeId N : Now)
      rewriteUser(N);
  }
  rewriteSaves();
  removeOld();
  renameClasses();
  declareParts();
}

void PartitionEditor::rewriteUser(NodeId N) {
  const PartitionedVariable *Of = nullptr;
  PartitionedUse Kind = PartitionedUse::Value;
  for (auto [I, E] : enumerate(G.dataInputs(N))) {
    const PartitionedVariable *Its = Plan.find(E);
    if (!Its)
      continue;
    PartitionedUse This = classifyUse(G, Vars, {N, static_cast<unsigned>(I)});
    if (!Of || This != PartitionedUse::Value) {
      Of = Its;
      Kind = This;
      enterContext(E);
    }
    if (This != PartitionedUse::Value)
      break;
  }
  switch (Kind) {
  case PartitionedUse::Alias:
    return cloneAlias(N, *Of);
  case PartitionedUse::Update:
    return rewriteUpdate(N);
  case PartitionedUse::Read:
    return rewriteRead(N, *Of);
  case PartitionedUse::Lookup: {
    SmallVector<Endpoint, 8> Params;
    for (unsigned I = 0; I < Of->parts(); ++I)
      Params.push_back(partOf(G.input(N, 0), I));
    return rewriteLookup(N, *Of, Params);
  }
  case PartitionedUse::DenseLookup:
    return rewriteDenseLookup(N, *Of);
  case PartitionedUse::Shape:
    return becomeShape(N, *Of, "out_type");
  case PartitionedUse::Initialized:
    return rewriteInitialized(N, *Of);
  case PartitionedUse::Effect:
    return rewriteEffect(N, *Of);
  case PartitionedUse::Value:
    // Entries of a saver read the parts themselves.
    if (!isSaved(N))
      readValues(N);
    return;
  case PartitionedUse::Unknown:
    llvm_unreachable("refused by the plan");
  }
}

void PartitionEditor::cloneAlias(NodeId N, const PartitionedVariable &Of) {
  Nodes Parts;
  for (unsigned I = 0; I < Of.parts(); ++I)
    Parts.push_back(cloneForPart(N, readName(Of, N, I), I));
  Clones[N] = std::move(Parts);
  Gone[G.name(N)] = N;
  Old.push_back(N);
  finish(N);
}

/// Adds reads of the parts that run when \p N would run. \p N reads the value
/// or only its shape.
PartitionEditor::Nodes
PartitionEditor::partReads(NodeId N, const PartitionedVariable &Of) {
  Nodes Parts;
  for (unsigned I = 0; I < Of.parts(); ++I)
    Parts.push_back(cloneForPart(N, readName(Of, N, I), I));
  return Parts;
}

static SmallVector<Endpoint, 8> outputsOf(ArrayRef<NodeId> Nodes) {
  SmallVector<Endpoint, 8> Result;
  for (NodeId N : Nodes)
    Result.push_back({N, 0});
  return Result;
}

void PartitionEditor::rewriteRead(NodeId N, const PartitionedVariable &Of) {
  if (G.isOp(N, op::Identity))
    readLate(N, Of);
  Nodes Parts = partReads(N, Of);
  SmallVector<Endpoint, 8> Values = outputsOf(Parts);
  for (NodeId User : lookupsOf(N, Of))
    if (G.isOp(User, op::Shape))
      becomeShape(User, Of, "out_type");
    else
      rewriteLookup(User, Of, Values);
  NodeId Whole = concat(N, Values, Of.Type, Of.Cut.Axis);
  becomeIdentity(N, {Whole, 0}, Of.Type);
  PartReads[N] = std::move(Parts);
}

/// Returns all inputs of \p N except input \p Index, as control inputs. With
/// these, a read for input \p Index runs when \p N would run.
SmallVector<Endpoint, 8> PartitionEditor::waitsOf(NodeId N,
                                                  unsigned Index) const {
  SmallVector<Endpoint, 8> Waits;
  for (auto [J, E] : enumerate(G.dataInputs(N)))
    if (J != Index && E.Node != G.input(N, Index).Node &&
        !isVariableOp(G.opName(E.Node)))
      Waits.push_back({E.Node, ControlPort});
  append_range(Waits, G.controlInputs(N));
  return Waits;
}

/// Rewrites users of \p N, an Identity of a reference, that run after an update
/// (see PartitionPlan::isAfterUpdate). Such a user then reads the value when
/// the user runs.
void PartitionEditor::readLate(NodeId N, const PartitionedVariable &Of) {
  for (Use U : G.uses(N)) {
    if (!G.isData(U) || !Plan.isAfterUpdate(U.User) ||
        G.isOp(U.User, op::Merge) || isSaved(U.User))
      continue;
    SmallVector<Endpoint, 8> Values, Waits = waitsOf(U.User, U.Index);
    append_range(Waits, G.controlInputs(N));
    AttrRun Attrs;
    Attrs.type("T", Of.Type);
    for (unsigned P = 0; P < Of.parts(); ++P) {
      SmallVector<Endpoint, 8> Inputs{partOf(G.input(N, 0), P)};
      append_range(Inputs, Waits);
      NodeId Read = add(U.User, "read_" + Twine(U.Index) + "/part_" + Twine(P),
                        op::Identity, Inputs, Attrs);
      G.node(Read).Device = G.node(Inputs[0].Node).Device;
      Values.push_back({Read, 0});
    }
    if (isLookup(U, Of))
      rewriteLookup(U.User, Of, Values);
    else
      G.setInput(U.User, U.Index,
                 {concat(U.User, Values, Of.Type, Of.Cut.Axis), 0});
  }
}

/// Makes \p N, which uses references of partitioned variables as values, read
/// the parts when \p N runs.
void PartitionEditor::readValues(NodeId N) {
  for (unsigned I = 0; I < G.node(N).NumData; ++I) {
    Endpoint E = G.input(N, I);
    const PartitionedVariable *Of = Plan.find(E);
    if (!Of || classifyUse(G, Vars, {N, I}) != PartitionedUse::Value)
      continue;
    enterContext(E);
    AttrRun Attrs;
    Attrs.type("T", Of->Type);
    SmallVector<Endpoint, 8> Values, Waits = waitsOf(N, I);
    for (unsigned P = 0; P < Of->parts(); ++P) {
      SmallVector<Endpoint, 8> Inputs{partOf(E, P)};
      append_range(Inputs, Waits);
      NodeId Read = add(N, "read_" + Twine(I) + "/part_" + Twine(P),
                        op::Identity, Inputs, Attrs);
      G.node(Read).Device = G.node(Inputs[0].Node).Device;
      Values.push_back({Read, 0});
    }
    G.setInput(N, I, {concat(N, Values, Of->Type, Of->Cut.Axis), 0});
  }
}

void PartitionEditor::rewriteInitialized(NodeId N,
                                         const PartitionedVariable &Of) {
  Endpoint All;
  for (unsigned I = 0; I < Of.parts(); ++I) {
    Endpoint One{cloneForPart(N, G.name(N) + "/part_" + Twine(I), I), 0};
    if (I == 0)
      All = One;
    else if (I + 1 < Of.parts())
      All = {add(N, "and_" + Twine(I), op::LogicalAnd, {All, One}, {}), 0};
    else
      become(N, op::LogicalAnd, {All, One}, {});
  }
}

void PartitionEditor::rewriteEffect(NodeId N, const PartitionedVariable &Of) {
  SmallVector<Endpoint, 8> Waits;
  for (unsigned I = 0; I < Of.parts(); ++I)
    Waits.push_back(
        {cloneForPart(N, G.name(N) + "/part_" + Twine(I), I), ControlPort});
  become(N, op::NoOp, Waits, {});
}

/// Rewrites the lookup \p N, whose op cannot look up rows in parts. \p N then
/// reads the whole value.
void PartitionEditor::rewriteDenseLookup(NodeId N,
                                         const PartitionedVariable &Of) {
  AttrRun Read;
  Read.type("dtype", Of.Type);
  SmallVector<Endpoint, 8> Values;
  for (unsigned I = 0; I < Of.parts(); ++I) {
    SmallVector<Endpoint, 4> Inputs{partOf(G.input(N, 0), I)};
    append_range(Inputs, G.controlInputs(N));
    Values.push_back(
        {add(N, "read/part_" + Twine(I), op::ReadVariableOp, Inputs, Read), 0});
  }
  Endpoint Whole{concat(N, Values, Of.Type, Of.Cut.Axis), 0};
  Endpoint Ids = G.input(N, 1);
  unsigned Type = G.typeAttr(N, "Tindices").value_or(DT_INT32);
  AttrRun Attrs;
  Attrs.type("Tparams", Of.Type).type("Tindices", Type);
  if (G.isOp(N, op::ResourceGatherNd))
    return become(N, op::GatherNd, {Whole, Ids}, Attrs);
  int64_t Batch = G.intAttr(N, "batch_dims").value_or(0);
  Attrs.type("Taxis", DT_INT32).integer("batch_dims", Batch);
  Endpoint Axis{scalar(N, "axis", Batch), 0};
  become(N, op::GatherV2, {Whole, Ids, Axis}, Attrs);
}

/// Turns \p N, which returns the shape, into a constant.
void PartitionEditor::becomeShape(NodeId N, const PartitionedVariable &Of,
                                  StringRef TypeAttr) {
  unsigned Type = G.typeAttr(N, TypeAttr).value_or(DT_INT32);
  AttrRun Attrs;
  Attrs.type("dtype", Type);
  Attrs.raw(
      "value",
      encodeIntTensor(Type, {static_cast<int64_t>(Of.Shape.size())}, Of.Shape));
  SmallVector<Endpoint, 4> Waits(G.controlInputs(N));
  if (Context != NoNode && !is_contained(Waits, Endpoint{Context, ControlPort}))
    Waits.push_back({Context, ControlPort});
  become(N, op::Const, Waits, Attrs);
}

/// Adds an update of each part. The node with the old name waits for all.
void PartitionEditor::rewriteUpdate(NodeId N) {
  readValues(N);
  const UpdateDef Def = Vars.update(G, N);
  const PartitionedVariable &Of = *Plan.find(G.input(N, 0));
  SmallVector<Endpoint, 8> Values, Ids;
  auto Known = PartValues.find(N);
  auto Grad = static_cast<uint8_t>(Def.Grad);
  Endpoint Value = G.input(N, Grad);
  if (Known != PartValues.end()) {
    Values = Known->second;
  } else if (Def.Indices >= 0) {
    splitRows(N, Of, Values, Ids);
  } else {
    NodeId Split = split(N, Value, Of.Type, Of.Cut.Sizes, Of.Cut.Axis);
    SplitOf[N] = Split;
    for (unsigned I = 0; I < Of.parts(); ++I)
      Values.push_back({Split, I});
  }
  Nodes Parts;
  SmallVector<Endpoint, 8> Waits;
  for (unsigned I = 0; I < Of.parts(); ++I) {
    SmallVector<Endpoint, 12> Inputs(G.inputs(N));
    for (unsigned J = 0; J < Def.NumVars; ++J)
      Inputs[J] = partOf(Inputs[J], I);
    Inputs[Grad] = Values[I];
    if (!Ids.empty())
      Inputs[Def.Indices] = Ids[I];
    Parts.push_back(clone(N, G.name(N) + "/part_" + Twine(I), I, Inputs));
    Waits.push_back({Parts.back(), ControlPort});
  }
  Clones[N] = std::move(Parts);
  // Users of the returned reference use the references of the parts.
  bool IsAlias = Vars.variableOf({N, 0}) != NoNode;
  if (IsAlias)
    finish(N);
  if (IsAlias && Kept.contains(N))
    return becomeIdentity(
        N, {concat(N, outputsOf(Clones[N]), Of.Type, Of.Cut.Axis), 0}, Of.Type);
  become(N, op::NoOp, Waits, {});
}

/// Removes variables and their aliases, which have no data users any more.
void PartitionEditor::removeOld() {
  for (NodeId N : Leftover)
    if (!G.hasUses(N))
      G.remove(N);
  for (NodeId N : reverse(Old)) {
    NodeId First = Clones[N][0];
    for (Use U : G.uses(N))
      G.setInput(U.User, U.Index, {First, ControlPort});
    G.remove(N);
  }
}

} // namespace graft
