//===- passes/CheckCopies.cpp - check-copies --------------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
// Makes a step on stale copies fail. A Saver that is built after the import, or
// an assignment that a user adds, writes primaries only. So the step compares
// the copies of one small variable, bit for bit, before it updates them:
//
//     Apply*(b, lr, g)   →   graft/check_copies/b/value = pick of a read of b
//                            graft/check_copies/b/same = Equal*(b, .../value)
//                            graft/check_copies/b/assert = Assert*(All of same)
//                            graft/check_copies = NoOp(^.../assert)
//                            Apply*(b, lr, g, ^graft/check_copies)
//
// One variable suffices, since a checkpoint has all variables. The pass chooses
// the smallest variable that the step updates. All writes of this variable must
// depend on the batch. Then they wait for the check, and none runs between the
// reads. Writes of unreplicated values (initial or restored) are exempt. Each
// update must need an initialized variable, because the check fails on an
// uninitialized one.
//
// Relies on: graft/refresh_copies, which the error message names. Relies on a
// program without unproved values, because these could make copies differ, too.
//
//===----------------------------------------------------------------------===//

#include "lib/graph/AttrRun.h"
#include "lib/graph/Walk.h"
#include "lib/infer/facts/Needs.h"
#include "lib/io/Module.h"
#include "lib/ops/Ops.h"
#include "lib/pass/Pass.h"
#include "lib/program/Program.h"

using namespace llvm;

namespace graft {
namespace {

class CheckCopies final : public PassBase<CheckCopies> {
public:
  static constexpr PassInfo Info = {
      "check-copies", "Fail the step if the copies of a variable differ",
      "Lets the updates of one small mirrored variable wait for an assertion\n"
      "that its copies are equal."};

  PassResult run(Module &M, DiagnosticEngine &Diags) override;

private:
  void findRows();
  bool collectUpdates(NodeId Var, std::vector<NodeId> &Result);
  Needs &needs();
  NodeId check(NodeId Var);
  NodeId insert(StringRef Op, StringRef Suffix, ArrayRef<Endpoint> Inputs,
                const AttrRun &Attrs, Copies Count = Copies::PerReplica);
  NodeId constant(StringRef Suffix, unsigned Type, StringRef Value);

  Module *M = nullptr;
  Graph *G = nullptr;
  const VariableIndex *Vars = nullptr;
  std::optional<Needs> NeedSets; ///< Made on first use.
  std::vector<bool> OfBatch;     ///< By node: depends on a split.
  std::string Prefix;
  NodeId Last = NoNode; ///< The node after which nodes are added.
};

constexpr StringLiteral CheckName = "graft/check_copies";

/// Returns the integer type that values of \p Type are compared as, or
/// DT_INVALID.
unsigned bitsOf(unsigned Type) {
  switch (Type) {
  case DT_FLOAT:
  case DT_INT32:
    return DT_INT32;
  case DT_DOUBLE:
  case DT_INT64:
    return DT_INT64;
  case DT_HALF:
  case DT_BFLOAT16:
    return DT_INT16;
  default:
    return DT_INVALID;
  }
}

void CheckCopies::findRows() {
  OfBatch.assign(G->size(), false);
  std::vector<NodeId> Work;
  for (NodeId N = 0; N < G->size(); ++N)
    if (G->isLive(N) && G->node(N).Kind == Inserted::Split)
      Work.push_back(N);
  walkUsers(*G, std::move(Work), Along::Data, OfBatch);
}

Needs &CheckCopies::needs() {
  if (!NeedSets)
    NeedSets.emplace(*G, programFacts(*M));
  return *NeedSets;
}

/// Finds the updates of \p Var that depend on the batch. Returns false if there
/// are none, or if another write may run at the same time.
bool CheckCopies::collectUpdates(NodeId Var, std::vector<NodeId> &Result) {
  bool Fits = true;
  for (Use U : G->uses(Var)) {
    if (!G->isData(U) || G->node(U.User).Kind == Inserted::Refresh)
      continue;
    // An op such as Switch forwards the variable. This search does not find
    // updates behind such an op.
    Fits &= Vars->variableOf({U.User, 0}) == NoNode ||
            Vars->isUpdate(*G, U.User) || G->node(U.User).Kind != Inserted::No;
    if (!Vars->isUpdate(*G, U.User))
      continue;
    // No op may write through the reference that an update returns.
    Fits &= !G->anyUse(U.User, [&](Use Next) {
      return G->isData(Next) && Vars->isUpdate(*G, Next.User);
    });
    UpdateDef Def = Vars->update(*G, U.User);
    ArrayRef<Endpoint> Values = G->dataInputs(U.User).drop_front(Def.NumVars);
    if (OfBatch[U.User] && Def.Indices < 0) {
      // An assignment that initializes the variable would run the check while
      // the variable has no value.
      Fits &=
          Def.Kind != UpdateKind::Assign || needs().hasVariable(U.User, Var);
      Result.push_back(U.User);
    } else
      Fits &= all_of(Values, [&](Endpoint E) {
        return G->node(E.Node).Count == Copies::Once ||
               G->node(E.Node).Kind == Inserted::Identity;
      });
  }
  return Fits && !Result.empty();
}

NodeId CheckCopies::insert(StringRef Op, StringRef Suffix,
                           ArrayRef<Endpoint> Inputs, const AttrRun &Attrs,
                           Copies Count) {
  Last = G->insertNode(Prefix + Suffix.str(), Op, Inputs, Last, Attrs,
                       Inserted::Check, Count);
  return Last;
}

NodeId CheckCopies::constant(StringRef Suffix, unsigned Type, StringRef Value) {
  AttrRun Attrs;
  Attrs.type("dtype", Type).raw("value", Value);
  return insert(op::Const, Suffix, {}, Attrs, Copies::Once);
}

NodeId CheckCopies::check(NodeId Var) {
  bool IsHandle = G->isOp(Var, op::VarHandleOp);
  unsigned Type = *G->typeAttr(Var, "dtype"), Bits = bitsOf(Type);
  Prefix = (CheckName + "/" + G->name(Var)).str();
  Last = Var;
  AttrRun Of, Cast, Compare, Flatten, All, Assert;
  Of.type(IsHandle ? "dtype" : "T", Type);
  Cast.type("T", Type).type("type", Bits);
  Compare.type("T", Bits);
  Flatten.type("T", DT_BOOL).type("Tshape", DT_INT32);
  All.type("Tidx", DT_INT32);
  Assert.raw("T", encodeTypeListAttr(StringRef("\7", 1)));
  auto Bitcast = [&](NodeId N, StringRef Suffix) {
    return Type == Bits ? N : insert(op::Bitcast, Suffix, Endpoint{N, 0}, Cast);
  };
  NodeId Read = insert(IsHandle ? op::ReadVariableOp : op::Identity, "/read",
                       Endpoint{Var, 0}, Of);
  NodeId Value = Last = insertPick(*G, Prefix + "/value", {Read, 0}, Last);
  Read = Bitcast(Read, "/bits");
  Value = Bitcast(Value, "/value_bits");
  NodeId Same = insert(op::Equal, "/same", {{Read, 0}, {Value, 0}}, Compare);
  NodeId Shape = constant("/shape", DT_INT32,
                          encodeIntTensor(DT_INT32, int64_t(1), int64_t(-1)));
  NodeId Axis =
      constant("/axis", DT_INT32, encodeIntTensor(DT_INT32, {}, int64_t(0)));
  NodeId Text =
      constant("/message", DT_STRING,
               encodeStringTensor(
                   ("the copies of variable '" + G->name(Var) +
                    "' are not equal: run graft/refresh_copies after a restore "
                    "or an assignment that was built after the import")
                       .str()));
  Same = insert(op::Reshape, "/flat", {{Same, 0}, {Shape, 0}}, Flatten);
  Same = insert(op::All, "/all", {{Same, 0}, {Axis, 0}}, All);
  return insert(op::Assert, "/assert", {{Same, 0}, {Text, 0}}, Assert);
}

PassResult CheckCopies::run(Module &Of, DiagnosticEngine &Diags) {
  M = &Of;
  G = &Of.graph();
  NeedSets.reset();
  bool Unproved = any_of(Diags.all(), [](const Diagnostic &D) {
    return D.Level == Severity::Warning;
  });
  std::vector<NodeId> Mirrored;
  for (NodeId N = 0; N < G->size(); ++N)
    if (G->isLive(N) && G->node(N).Kind == Inserted::Refresh)
      Mirrored.push_back(G->input(N, 0).Node);
  VariableIndex Index(*G);
  Vars = &Index;
  findRows();
  NodeId Smallest = NoNode;
  int64_t Fewest = 0;
  std::vector<NodeId> Updates;
  for (NodeId Var : Mirrored) {
    auto Shape = G->shapeAttr(Var, "shape");
    auto Type = G->typeAttr(Var, "dtype");
    if (!Shape || Shape->UnknownRank || !Type || bitsOf(*Type) == DT_INVALID)
      continue;
    int64_t Size = 1;
    for (int64_t Dim : Shape->Dims)
      Size = Dim < 0 || Size < 0 ? -1 : Size * Dim;
    std::vector<NodeId> Found;
    if (Size <= 0 || (Smallest != NoNode && Size >= Fewest) ||
        !collectUpdates(Var, Found))
      continue;
    Smallest = Var;
    Fewest = Size;
    Updates = std::move(Found);
  }
  if (Smallest == NoNode || Unproved) {
    Diags.unproved("unchecked-copies", "",
                   Unproved ? "copies of variables are not checked, since "
                              "values that are not proved may make them differ"
                            : "copies of variables are not checked: the step "
                              "updates no variable that the check supports");
    return PassResult::Unchanged;
  }
  NodeId Assert = check(Smallest);
  NodeId Gate =
      G->insertNode(CheckName, op::NoOp, Endpoint{Assert, ControlPort}, Assert,
                    {}, Inserted::Gate);
  for (NodeId Update : Updates)
    G->addControlInput(Update, Gate);
  return PassResult::Changed;
}

} // namespace

GRAFT_DEFINE_PASS(CheckCopies)

} // namespace graft
