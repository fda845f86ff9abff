//===- lib/certify/forms/ForwardCheck.cpp - nodes that forward inputs -----===//
//
// SPDX-License-Identifier: Apache-2.0
//
// Splits, merges, reductions, gathers, scales and Identities. Each leaves
// global values unchanged if the types of its inputs and outputs are right.
//
//===----------------------------------------------------------------------===//

#include "lib/certify/forms/InsertedForm.h"
#include "lib/ops/Ops.h"
#include "lib/ops/ProgramOps.h"
#include "lib/program/forms/EntrySlice.h"
#include "lib/program/forms/LengthGather.h"
#include "lib/program/forms/RowRepeat.h"

#include "llvm/ADT/StringSwitch.h"

using namespace llvm;

namespace graft {

bool forwards(const Comparison &C, NodeId N) {
  return formOf(C.G.node(N).Kind).Forwards >>
             static_cast<unsigned>(C.opKind(N)) &
         1;
}

static Endpoint input(const Comparison &C, Endpoint E) {
  unsigned From = C.opKind(E.Node) == OpKind::IdentityN ? E.Port : 0;
  return forwards(C, E.Node) && From < C.G.node(E.Node).NumData
             ? C.G.input(E.Node, From)
             : Endpoint();
}

/// Returns true if \p Text is a known value of the combine attribute. The
/// attribute is required, since its readers assume different defaults.
static bool isCombine(StringRef Text) {
  return StringSwitch<bool>(Text)
      .Cases(combine::Sum, combine::Min, combine::Max, combine::And,
             combine::Or, combine::Concat, combine::Pick, true)
      .Default(false);
}

static void checkForward(Comparison &C, const ProgramFacts &Facts, NodeId N) {
  const Graph &G = C.G;
  OpKind Op = C.opKind(N);
  if (!forwards(C, N))
    return C.mismatch(N);
  if (C.isCollective(N) && G.intAttr(N, "group_size") != C.Replicas)
    C.error(N,
            "is a member of a group whose size is not the number of replicas");
  checkWaits(C, N);
  if ((Op == OpKind::FromReplicas || Op == OpKind::Reduce) &&
      !isCombine(G.stringAttr(N, CombineAttr).value_or("")))
    C.error(
        N,
        "does not name the operation that combines the values of the replicas");
  if (Op != OpKind::ToReplicas)
    return;
  auto Shape = Facts.Dims.shape(G.input(N, 0));
  int64_t Axis = G.intAttr(N, "axis").value_or(0);
  if (Axis < 0 || (Shape && static_cast<size_t>(Axis) >= Shape->size()))
    C.error(N, "splits along an axis that does not exist");
}

static Endpoint gathered(const Comparison &C, Endpoint E) {
  return C.opKind(E.Node) == OpKind::Other ? lengthGatherSource(C.G, E.Node)
                                           : input(C, E);
}

static void checkGather(Comparison &C, const ProgramFacts &Facts, NodeId N) {
  if (C.opKind(N) == OpKind::CollectiveGather && !C.GathersInOrder)
    C.error(N, "gathers rows in the order of the devices, which is not that of "
               "the replicas");
  // All nodes of a length gather are erased together, so each one is checked
  // only for its control inputs.
  if (isLengthGatherOp(C.G, N))
    checkWaits(C, N);
  else if (C.opKind(N) == OpKind::StridedSlice && keptMember(C.G, N) == NoNode)
    C.mismatch(N);
  else
    checkForward(C, Facts, N);
}

/// Returns the form of a kind whose valid nodes have one of \p Ops.
static constexpr InsertedForm
form(std::initializer_list<OpKind> Ops, bool IsElementwise,
     decltype(InsertedForm::Recognize) Recognize) {
  InsertedForm Result{.StandsFor = input,
                      .Check = checkForward,
                      .Recognize = Recognize,
                      .IsElementwise = IsElementwise,
                      .IsTyped = true};
  for (OpKind Op : Ops)
    Result.Forwards |= 1u << static_cast<unsigned>(Op);
  return Result;
}

static constexpr InsertedForm gatherForm() {
  InsertedForm Result =
      form({OpKind::Gather, OpKind::CollectiveGather, OpKind::FromReplicas,
            OpKind::Identity, OpKind::StridedSlice},
           false, [](const LoweredFile &File, NodeId N) {
             const Graph &G = File.G;
             return G.hasAttr(N, LengthsAttr) ||
                    G.isOp(N, op::CollectiveGather) ||
                    (G.isOp(N, op::StridedSlice) &&
                     G.isOp(G.input(N, 0).Node, op::CollectiveGather));
           });
  Result.StandsFor = gathered;
  Result.Check = checkGather;
  Result.IsUnseen = true;
  return Result;
}

static constexpr InsertedForm reduceForm() {
  InsertedForm Result = form({OpKind::Reduce, OpKind::CollectiveReduce,
                              OpKind::FromReplicas, OpKind::Identity},
                             true, [](const LoweredFile &File, NodeId N) {
                               return File.G.isOp(N, op::CollectiveReduce);
                             });
  Result.IsUnseen = true;
  return Result;
}

/// Returns the input that output \p E of a split represents. A SparseSlice has
/// the entries in the rows of one replica: each of its outputs represents the
/// input at the same port.
static Endpoint splitInput(const Comparison &C, Endpoint E) {
  if (C.opKind(E.Node) != OpKind::SparseSlice)
    return input(C, E);
  return E.Port < 3 && rowsSliced(C.G, E.Node, C.Replicas) != NoNode
             ? C.G.input(E.Node, E.Port)
             : Endpoint();
}

static void checkSplit(Comparison &C, const ProgramFacts &Facts, NodeId N) {
  if (C.opKind(N) != OpKind::SparseSlice)
    return checkForward(C, Facts, N);
  if (rowsSliced(C.G, N, C.Replicas) == NoNode)
    return C.mismatch(N);
  checkWaits(C, N);
}

static constexpr InsertedForm splitForm() {
  InsertedForm Result =
      form({OpKind::ToReplicas}, false, [](const LoweredFile &File, NodeId N) {
        return File.G.isOp(N, op::SparseSlice);
      });
  Result.StandsFor = splitInput;
  Result.Check = checkSplit;
  return Result;
}

const InsertedForm SplitForm = splitForm();
const InsertedForm MergeForm = form({OpKind::FromReplicas}, true, nullptr);
const InsertedForm ScaleForm = form({OpKind::Scale}, true, nullptr);
const InsertedForm GatherForm = gatherForm();
const InsertedForm ReduceForm = reduceForm();
const InsertedForm IdentityForm =
    form({OpKind::Identity, OpKind::IdentityN}, true,
         [](const LoweredFile &File, NodeId N) {
           return File.G.opName(N).starts_with(op::Identity);
         });

} // namespace graft
