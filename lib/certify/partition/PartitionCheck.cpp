//===- lib/certify/partition/PartitionCheck.cpp - certify partitions ------===//
//
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "lib/certify/partition/PartitionCheck.h"

#include "lib/certify/partition/PartitionTerms.h"
#include "lib/graph/AttrWire.h"
#include "lib/graph/Walk.h"
#include "lib/ops/Ops.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SmallBitVector.h"

using namespace llvm;

namespace graft {

namespace {

class PartitionChecker : private PartitionTerms {
public:
  using PartitionTerms::PartitionTerms;
  bool run();

private:
  llvm::ArrayRef<Endpoint> updatesOf(NodeId P) const;
  void findUpdates();
  void checkMissing(NodeId I);
  void compare(NodeId I, NodeId P);
  bool isSame(NodeId I, NodeId P);
  bool reads(NodeId P, unsigned K, Endpoint Want);
  bool isInTime(NodeId I, unsigned K, uint32_t Waits);
  bool isLateRead(NodeId I, unsigned K, const PartTerm &X);
  bool isRead(NodeId I, NodeId P);
  bool isLookup(NodeId I, NodeId P);
  bool isShape(NodeId P, Endpoint Handle, NodeId I);
  bool isDenseLookup(NodeId I, NodeId P);
  bool isInitialized(NodeId I, NodeId P);
  bool isForEach(NodeId I, NodeId P);
  bool hasShape(Endpoint E, const PartedVariable &C) const;
  void checkUpdate(NodeId I, NodeId P);
  bool checkPartUpdate(NodeId I, NodeId U, const PartedVariable &C,
                       unsigned Index);
  /// Returns the handle or reference that \p E of the input reads, if \p E is a
  /// read of a partitioned variable; otherwise no node.
  Endpoint readHandle(Endpoint E) const;

  /// By variable: the nodes of the input that update it or depend on an update
  /// of it. isInTime() needs them.
  DenseMap<NodeId, std::vector<bool>> Updated;
  std::vector<SmallVector<NodeId, 2>> Users; ///< By node of the input.
};

/// Returns the updates of parts that \p P replaces: the control inputs of a
/// NoOp, or the references whose concatenation an Identity forwards.
ArrayRef<Endpoint> PartitionChecker::updatesOf(NodeId P) const {
  if (G.isOp(P, op::NoOp))
    return G.controlInputs(P);
  if (!G.isOp(P, op::Identity) || G.node(P).NumInputs != 1)
    return {};
  NodeId Join = G.input(P, 0).Node;
  bool Joins = G.isOp(Join, op::ConcatV2) && InputOf[Join] == NoNode &&
               G.node(Join).NumData == G.node(Join).NumInputs;
  return Joins ? G.dataInputs(Join).drop_back() : ArrayRef<Endpoint>();
}

/// Maps each update of a part to the update of the whole variable in the input.
void PartitionChecker::findUpdates() {
  for (NodeId P = 0; P < G.size(); ++P) {
    NodeId I = InputOf[P];
    if (I == NoNode || In.numData(I) == 0)
      continue;
    const OpDef *Def = findOp(inputOp(I));
    if (Def && Def->update().Kind != UpdateKind::None && cutOf(In.inputs(I)[0]))
      for (Endpoint E : updatesOf(P))
        if (InputOf[E.Node] == NoNode && G.opName(E.Node) == inputOp(I))
          UpdateOf[E.Node] = I;
  }
}

void PartitionChecker::checkMissing(NodeId I) {
  // The partition may remove a variable, the nodes that passed it on, and
  // Identities of restored tensors.
  Endpoint From = resolve({I, 0});
  if (cutOf({I, 0}) || (From.Node != I && inputOp(From.Node) == op::RestoreV2))
    return;
  error(In.name(I), "this node of the input is missing");
}

Endpoint PartitionChecker::readHandle(Endpoint E) const {
  if (E.isControl() || E.Port != 0 || In.numData(E.Node) == 0)
    return {};
  Endpoint From = In.inputs(E.Node)[0];
  const PartedVariable *C = cutOf(From);
  bool Reads = C && inputOp(E.Node) ==
                        (isHandle(*C) ? op::ReadVariableOp : op::Identity);
  return Reads && !cutOf(E) ? From : Endpoint();
}

/// Returns true if data input \p K of \p P is \p Want, a tensor of the input.
bool PartitionChecker::reads(NodeId P, unsigned K, Endpoint Want) {
  const PartTerm &X = term(G.input(P, K));
  if (X.Kind == PartTerm::WholeRead)
    return X.E == firstAlias(Want) ? isInTime(InputOf[P], K, X.Waits)
                                   : isLateRead(InputOf[P], K, X);
  return X.Kind == PartTerm::Same && X.E == resolve(Want);
}

/// Returns true if a read that waits for \p Waits has the value that \p I reads
/// through the reference at its data input \p K. If the read does not wait for
/// the other data inputs of \p I, none of them may depend on an update.
bool PartitionChecker::isInTime(NodeId I, unsigned K, uint32_t Waits) {
  if (Waits == inputsBeside(I, K))
    return true;
  if (Waits != waitsOfInput(I))
    return false;
  NodeId Var = cutOf(In.inputs(I)[K])->Var;
  auto [It, New] = Updated.try_emplace(Var);
  std::vector<bool> &After = It->second;
  if (New) {
    if (Users.empty()) {
      Users.resize(In.size());
      for (NodeId N = 0; N < In.size(); ++N)
        for (Endpoint E : In.inputs(N))
          Users[E.Node].push_back(N);
    }
    After.resize(In.size());
    std::vector<NodeId> Updates;
    for (NodeId N = 0; N < In.size(); ++N) {
      const OpDef *Def =
          In.isLive(N) && In.numData(N) > 0 ? findOp(inputOp(N)) : nullptr;
      for (unsigned J = 0; Def && J < Def->update().NumVars; ++J)
        if (const PartedVariable *C = cutOf(In.inputs(N)[J]);
            C && C->Var == Var)
          Updates.push_back(N);
    }
    walkFrom(Updates, After, [&](NodeId N, std::vector<NodeId> &Next) {
      append_range(Next, Users[N]);
    });
  }
  for (unsigned J = 0; J < In.numData(I); ++J)
    if (J != K && After[In.inputs(I)[J].Node])
      return false;
  return true;
}

/// Returns true if \p X is the value of data input \p K of \p I at the time
/// when \p I runs. That input is an Identity of a reference: it forwards the
/// memory of the variable and not a value.
bool PartitionChecker::isLateRead(NodeId I, unsigned K, const PartTerm &X) {
  Endpoint From = readHandle(In.inputs(I)[K]);
  return From.Node != NoNode && !isHandle(*cutOf(From)) &&
         X.E == firstAlias(From) && isLate(I, K, X.Waits);
}

bool PartitionChecker::isRead(NodeId I, NodeId P) {
  const PartTerm &X = term(G.input(P, 0));
  return G.isOp(P, op::Identity) && G.node(P).NumInputs == 1 &&
         X.Kind == PartTerm::WholeRead && X.E == firstAlias(In.inputs(I)[0]) &&
         X.Waits == waitsOfInput(I);
}

/// Returns true if \p P is the lookup \p I, whose table is a handle or a read.
bool PartitionChecker::isLookup(NodeId I, NodeId P) {
  if (G.node(P).NumData == 0 || In.numData(I) < 2)
    return false;
  // The last node of a lookup has the name of the whole lookup.
  const PartTerm *X = nullptr;
  if (G.isOp(P, op::Identity) && G.node(P).NumInputs == 1) {
    X = &term(G.input(P, 0));
  } else if (G.isOp(P, op::Reshape) && G.node(P).NumInputs == 2) {
    const PartTerm &Rows = term(G.input(P, 0)), &To = term(G.input(P, 1));
    const PartedVariable *C =
        Rows.Kind == PartTerm::FlatLookup ? cutOf(Rows.E) : nullptr;
    ArrayRef<int64_t> Row = C ? ArrayRef(C->Shape).drop_front() : std::nullopt;
    if (!C || To.E != Rows.By ||
        !(To.Kind == PartTerm::RowsShape
              ? ArrayRef<int64_t>(To.List) == Row
              : To.Kind == PartTerm::Shape && Row.empty()))
      return false;
    X = &Rows;
  }
  if (!X || (X->Kind != PartTerm::Lookup && X->Kind != PartTerm::FlatLookup) ||
      X->By != resolve(In.inputs(I)[1]) || X->RunsAfter != waitsOfInput(I))
    return false;
  Endpoint Table = firstAlias(In.inputs(I)[0]);
  if (inputOp(I) == op::ResourceGather) {
    auto Batch = In.attr(I, "batch_dims");
    return !X->OfValue && X->E == Table &&
           (!Batch || varintField(*Batch, AttrInt).value_or(0) == 0);
  }
  Endpoint From = readHandle(Table);
  if (!X->OfValue || From.Node == NoNode || X->E != firstAlias(From) ||
      (X->Waits != waitsOfInput(Table.Node) && !isLateRead(I, 0, *X)))
    return false;
  if (inputOp(I) == op::Gather)
    return true;
  auto Batch = In.attr(I, "batch_dims");
  Endpoint AxisFrom = In.inputs(I).size() > 2 ? In.inputs(I)[2] : Endpoint();
  NodeId Axis = AxisFrom.Node == NoNode ? NoNode : PartsOf[AxisFrom.Node];
  auto At = Axis == NoNode ? std::nullopt : ints({Axis, 0});
  return inputOp(I) == op::GatherV2 && At && *At == ArrayRef<int64_t>{0} &&
         (!Batch || varintField(*Batch, AttrInt).value_or(0) == 0);
}

/// Returns true if \p P is a constant with the shape of a variable.
bool PartitionChecker::isShape(NodeId P, Endpoint Handle, NodeId I) {
  Handle = firstAlias(Handle);
  const PartedVariable *C = cutOf(Handle);
  auto Value = ints({P, 0});
  if (!C || !Value || *Value != C->Shape)
    return false;
  // The constant must run when the shape op of the input does.
  SmallVector<NodeId, 4> Waits;
  bool Context = Handle.Node == C->Var;
  auto AsksAfter = [&](NodeId Alias) {
    return any_of(In.inputs(I).drop_front(In.numData(I)), [&](Endpoint E) {
      return firstAlias({E.Node, 0}).Node == Alias;
    });
  };
  for (Endpoint E : G.controlInputs(P)) {
    NodeId Its = InputOf[E.Node];
    const PartTerm &X = term({E.Node, 0});
    const PartTerm *From = Its == NoNode && G.node(E.Node).NumInputs == 1 &&
                                   (G.isOp(E.Node, op::Identity) ||
                                    G.isOp(E.Node, op::RefIdentity))
                               ? &term(G.input(E.Node, 0))
                               : nullptr;
    if (Its != NoNode) {
      Waits.push_back(Its);
    } else if (X.Kind == PartTerm::Handle && AsksAfter(X.E.Node)) {
      // A clone replaces a node that the partition removed. So a wait for the
      // clone counts as a wait for the removed node.
      Waits.push_back(X.E.Node);
      Context |= X.E.Node == Handle.Node ||
                 firstAlias(In.inputs(X.E.Node)[0]) == Handle;
    } else if (X.Kind == PartTerm::Handle && X.E.Node == Handle.Node) {
      Context = true;
    } else if (From && From->Kind == PartTerm::Handle && From->E == Handle) {
      Context = Explained[E.Node] = true;
    } else {
      return false;
    }
  }
  return Context && idOf(std::move(Waits)) == waitsOfInput(I);
}

/// Returns true if \p P is the lookup \p I in the concatenated value of all
/// parts.
bool PartitionChecker::isDenseLookup(NodeId I, NodeId P) {
  bool Nd = inputOp(I) == op::ResourceGatherNd;
  if (!G.isOp(P, Nd ? op::GatherNd : op::GatherV2) || G.node(P).NumData < 2)
    return false;
  const PartTerm &X = term(G.input(P, 0));
  if (X.Kind != PartTerm::WholeRead || X.E != firstAlias(In.inputs(I)[0]) ||
      X.Waits != waitsOfInput(I) || waitsOf(P) != waitsOfInput(I) ||
      !reads(P, 1, In.inputs(I)[1]))
    return false;
  if (Nd)
    return true;
  auto Batch = In.attr(I, "batch_dims");
  int64_t Lead =
      Batch ? static_cast<int64_t>(varintField(*Batch, AttrInt).value_or(0))
            : 0;
  auto Axis = ints(G.input(P, 2));
  return Axis && *Axis == ArrayRef<int64_t>{Lead} &&
         G.intAttr(P, "batch_dims").value_or(0) == Lead;
}

bool PartitionChecker::isInitialized(NodeId I, NodeId P) {
  const PartedVariable *C = cutOf(In.inputs(I)[0]);
  if (!G.isOp(P, op::LogicalAnd) || G.node(P).NumInputs != 2)
    return false;
  const PartTerm &X = term(G.input(P, 0)), &Y = term(G.input(P, 1));
  SmallBitVector Has(C->Parts.size());
  for (const PartTerm *One : {&X, &Y}) {
    if (One->Kind != PartTerm::Initialized ||
        One->E != firstAlias(In.inputs(I)[0]) || One->Waits != waitsOfInput(I))
      return false;
    for (int64_t Part : One->List)
      Has.set(static_cast<unsigned>(Part));
  }
  return Has.all();
}

/// Returns true if \p P waits for the op of \p I on each part.
bool PartitionChecker::isForEach(NodeId I, NodeId P) {
  const PartedVariable *C = cutOf(In.inputs(I)[0]);
  if (!G.isOp(P, op::NoOp))
    return false;
  SmallBitVector Has(C->Parts.size());
  for (Endpoint E : G.controlInputs(P)) {
    if (InputOf[E.Node] != NoNode || G.opName(E.Node) != inputOp(I))
      return false;
    const PartTerm &X = term(G.input(E.Node, 0));
    if (X.Kind != PartTerm::Handle || X.E != firstAlias(In.inputs(I)[0]) ||
        waitsOf(E.Node) != waitsOfInput(I) ||
        !sameAttrs(In.attrBytes(I), E.Node))
      return false;
    Explained[E.Node] = true;
    Has.set(X.Index);
  }
  return Has.all();
}

/// Checks that \p P, which replaces the update \p I, waits for one update of
/// each part.
void PartitionChecker::checkUpdate(NodeId I, NodeId P) {
  const PartedVariable &C = *cutOf(In.inputs(I)[0]);
  ArrayRef<Endpoint> Updates = updatesOf(P);
  // The concatenated references of all parts count as the reference of the
  // variable.
  bool Joins = !G.isOp(P, op::NoOp);
  auto Axis = Joins && !Updates.empty()
                  ? ints(G.input(G.input(P, 0).Node, Updates.size()))
                  : std::nullopt;
  if (Joins && (!Axis || Axis->size() != 1 ||
                (*Axis)[0] != static_cast<int64_t>(C.Axis)))
    return error(P, "does not concatenate the updated parts of '" +
                        In.name(C.Var) + "' along its partitioned axis");
  SmallBitVector Has(C.Parts.size());
  bool Good = true;
  for (Endpoint E : Updates) {
    auto It = UpdateOf.find(E.Node);
    const PartTerm *X = It != UpdateOf.end() && It->second == I
                            ? &term(G.input(E.Node, 0))
                            : nullptr;
    if (!X || X->Kind != PartTerm::Handle ||
        X->E != firstAlias(In.inputs(I)[0]) || Has.test(X->Index) ||
        (Joins && X->Index != Has.count())) {
      error(E.Node, "must be the only op that replaces '" + In.name(I) +
                        "' for its part of the variable");
      continue;
    }
    Has.set(X->Index);
    Explained[E.Node] = true;
    // The other parts would repeat the error, so only one part reports it.
    Good = Good && checkPartUpdate(I, E.Node, C, X->Index);
  }
  for (unsigned Part = 0; Part < Has.size() && Good; ++Part)
    if (!Has.test(Part)) {
      error(P, "does not update '" + G.name(C.Parts[Part]) + "'");
      Good = false;
    }
}

/// Returns true if \p E has the shape of \p C: it is a Reshape to that shape,
/// or a restored tensor.
bool PartitionChecker::hasShape(Endpoint E, const PartedVariable &C) const {
  if (inputOp(E.Node) == op::RestoreV2)
    return true;
  NodeId To = inputOp(E.Node) == op::Reshape
                  ? PartsOf[In.inputs(E.Node)[1].Node]
                  : NoNode;
  auto Shape = To == NoNode ? std::nullopt : ints({To, 0});
  return Shape && *Shape == C.Shape;
}

/// Returns true if \p U updates part \p Index of \p C as \p I updates \p C.
/// Reports the first difference.
bool PartitionChecker::checkPartUpdate(NodeId I, NodeId U,
                                       const PartedVariable &C,
                                       unsigned Index) {
  auto Fail = [&](const Twine &Why) {
    error(U, Why);
    return false;
  };
  UpdateDef Def = findOp(inputOp(I))->update();
  StringRef Op = inputOp(I);
  bool Known = Def.Grad >= 0 && Def.Kind != UpdateKind::Count &&
               Def.Kind != UpdateKind::StridedSliceAssign &&
               !Op.contains(op::ScatterNd);
  if (!Known || G.node(U).NumData != In.numData(I))
    return Fail("is an update that cannot be split into updates of parts");
  if (auto Validates = In.attr(I, "validate_shape");
      Op == op::Assign && Validates &&
      varintField(*Validates, AttrBool).value_or(0) == 0 &&
      !hasShape(resolve(In.inputs(I)[Def.Grad]), C))
    return Fail("may change the shape of a part");
  if (!sameAttrs(In.attrBytes(I), U))
    return Fail("its attributes are not those of '" + In.name(I) + "'");
  if (waitsOf(U) != waitsOfInput(I))
    return Fail("does not have the control dependencies of '" + In.name(I) +
                "'");
  ArrayRef<Endpoint> Was = In.inputs(I);
  Endpoint Ids = Def.Indices >= 0 ? resolve(Was[Def.Indices]) : Endpoint();
  for (unsigned K = 0; K < In.numData(I); ++K) {
    const PartTerm &X = term(G.input(U, K));
    Endpoint Want = resolve(Was[K]);
    bool Good = X.Kind == PartTerm::Same && X.E == Want;
    if (K < Def.NumVars) {
      const PartedVariable *Its = cutOf(Was[K]);
      Good = Its && Its->isLike(C) && X.Kind == PartTerm::Handle &&
             X.E == firstAlias(Was[K]) && X.Index == Index;
    } else if (int(K) == Def.Indices && C.Axis == 0) {
      Good = X.Kind == PartTerm::SentLocal && X.By == Ids && X.Index == Index &&
             ArrayRef<int64_t>(X.List) == ArrayRef<int64_t>(C.Offsets);
    } else if (int(K) == Def.Grad && Def.Indices >= 0 && C.Axis == 0 &&
               X.Kind == PartTerm::SentRows) {
      Good = X.E == Want && X.By == Ids && X.Index == Index &&
             ArrayRef<int64_t>(X.List) == ArrayRef<int64_t>(C.Offsets);
    } else if (int(K) == Def.Grad && Good) {
      // A scalar updates all elements, so each part reads it unsliced.
      NodeId From = PartsOf[Want.Node];
      auto Value = From != NoNode && G.isOp(From, op::Const)
                       ? constValue(G, From)
                       : std::nullopt;
      Good = Def.Kind == UpdateKind::Scatter && Value &&
             !Value->Shape.UnknownRank && Value->Shape.Dims.empty();
    } else if (int(K) == Def.Grad) {
      // The updates of a scatter may have more leading axes than the variable,
      // so their axis is counted from the last axis.
      int64_t FromEnd = int64_t(C.Axis) - int64_t(C.Shape.size());
      bool Along = X.Axis == FromEnd || (X.Axis == int64_t(C.Axis) &&
                                         Def.Kind != UpdateKind::Scatter);
      bool Its = !X.OfValue                  ? X.E == Want
                 : X.E == firstAlias(Was[K]) ? isInTime(I, K, X.Waits)
                                             : isLateRead(I, K, X);
      Good = X.Kind == PartTerm::Slice && Its && Along &&
             X.Offset == C.Offsets[Index] && X.Size == C.Sizes[Index] &&
             X.Total == C.Shape[C.Axis] && (Def.Indices < 0 || C.Axis != 0);
    }
    if (!Good)
      return Fail("its input " + Twine(K) + " is not the value that part " +
                  Twine(Index) + " of '" + In.name(C.Var) +
                  "' needs for the update '" + In.name(I) + "'");
  }
  return true;
}

bool PartitionChecker::isSame(NodeId I, NodeId P) {
  if (G.opName(P) != inputOp(I) || G.node(P).NumData != In.numData(I) ||
      waitsOf(P) != waitsOfInput(I)) {
    error(P, "has a different op or different inputs than in the input graph");
    return false;
  }
  for (unsigned K = 0; K < In.numData(I); ++K)
    if (!reads(P, K, In.inputs(I)[K]))
      error(P, "its input " + Twine(K) + " is not that of the input graph");
  if (SaverConsts.contains(P))
    return true;
  if (In.attrBytes(I) != StringRef(G.node(P).AttrData, G.node(P).AttrSize) &&
      !sameAttrs(In.attrBytes(I), P))
    error(P, "its attributes are not those of the input graph");
  return true;
}

void PartitionChecker::compare(NodeId I, NodeId P) {
  StringRef Op = inputOp(I);
  if (In.numData(I) == 0) {
    isSame(I, P);
    return;
  }
  Endpoint First = In.inputs(I)[0];
  const PartedVariable *C = cutOf(First);
  const OpDef *Def = findOp(Op);
  auto Must = [&](bool Good) {
    if (!Good)
      error(P, "does not have the value of this node in the input");
  };
  if (C && Def && Def->update().NumVars > 0)
    return checkUpdate(I, P);
  if (C && readHandle({I, 0}).Node != NoNode)
    return Must(isRead(I, P));
  if (C && Op == op::ResourceGather)
    return Must(isLookup(I, P) || isDenseLookup(I, P));
  if (C && Op == op::ResourceGatherNd)
    return Must(isDenseLookup(I, P));
  if (C && Op == op::VariableShape)
    return Must(isShape(P, First, I));
  if (C && (Op == op::VarIsInitializedOp || Op == op::IsVariableInitialized))
    return Must(isInitialized(I, P));
  if (C && (Op == op::DestroyResourceOp || Op == op::DisableCopyOnRead))
    return Must(isForEach(I, P));
  if (Endpoint From = readHandle(First);
      From.Node != NoNode && G.opName(P) != Op)
    return Must(Op == op::Shape ? isShape(P, From, I) : isLookup(I, P));
  if (Op == op::SaveV2 || Op == op::RestoreV2)
    return;
  isSame(I, P);
}

bool PartitionChecker::run() {
  if (!match())
    return false;
  findUpdates();
  // Restores come first: they define the terms of restored tensors.
  for (bool Saves : {false, true})
    for (NodeId P = 0; P < G.size(); ++P)
      if (NodeId I = InputOf[P];
          I != NoNode && inputOp(I) == (Saves ? op::SaveV2 : op::RestoreV2))
        checkSaver(*this, I, P);
  for (NodeId I = 0; I < In.size(); ++I) {
    if (!In.isLive(I))
      continue;
    if (PartsOf[I] == NoNode)
      checkMissing(I);
    else
      compare(I, PartsOf[I]);
  }
  // A new node that is part of no term may only read: it must not change state.
  for (NodeId P = 0; P < G.size(); ++P) {
    if (!G.isLive(P) || InputOf[P] != NoNode || Explained[P])
      continue;
    const OpDef *Def = G.opDef(P);
    bool Looks = Def && Def->update().Kind == UpdateKind::None &&
                 (!Def->isStateful() || Def->readsVariable()) &&
                 !isVariableOp(G.opName(P));
    if (!Looks)
      error(P, "is neither a node of the input nor part of the replacement of "
               "such a node");
  }
  return Errors == 0;
}

} // namespace

bool checkPartition(const InputGraph &Whole, const Graph &Parts,
                    DiagnosticEngine &Diags) {
  return PartitionChecker(Whole, Parts, Diags).run();
}

std::vector<NewPartition> newPartitions(const Graph &Whole,
                                        const Graph &Parts) {
  std::map<StringRef, std::map<int64_t, SliceSpec>> Slices;
  for (NodeId N = 0; N < Parts.size(); ++N) {
    if (!Parts.isLive(N) || !(Parts.node(N).Flags & NF_MayHaveGraft) ||
        !isVariableOp(Parts.opName(N)))
      continue;
    auto Text = Parts.stringAttr(N, SliceAttr);
    if (!Text || Whole.find(Parts.name(N)) != NoNode)
      continue;
    auto [Name, Rest] = Text->split(' ');
    auto Spec = SliceSpec::parse(Rest);
    if (!Spec || Whole.find(Name) == NoNode)
      continue;
    // The offset of the part among all elements of the variable. Copies of a
    // part have equal offsets.
    int64_t At = 0;
    for (auto [Offset, Size] : zip_equal(Spec->Offsets, Spec->Shape))
      At = At * Size + Offset;
    Slices[Name].try_emplace(At, std::move(*Spec));
  }
  std::vector<NewPartition> Result;
  for (auto &[Name, Specs] : Slices) {
    NewPartition &P = Result.emplace_back();
    P.Variable = Whole.find(Name);
    const SliceSpec &First = Specs.begin()->second;
    while (P.Axis + 1 < First.Shape.size() &&
           First.Sizes[P.Axis] == First.Shape[P.Axis])
      ++P.Axis;
    for (auto &[At, Spec] : Specs)
      P.Sizes.push_back(P.Axis < Spec.Sizes.size() ? Spec.Sizes[P.Axis] : 0);
  }
  llvm::sort(Result, [](const NewPartition &A, const NewPartition &B) {
    return A.Variable < B.Variable;
  });
  return Result;
}

} // namespace graft
