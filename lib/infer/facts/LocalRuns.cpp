//===- lib/infer/facts/LocalRuns.cpp - replicas by themselves -------------===//
//
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "lib/infer/facts/LocalRuns.h"
#include "lib/graph/Walk.h"
#include "lib/ops/ProgramOps.h"

#include "lib/ops/OpRule.h"
#include "lib/ops/Ops.h"
#include "lib/program/Program.h"
#include "lib/program/forms/LengthGather.h"

#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/MathExtras.h"

using namespace llvm;

namespace graft {

LocalRuns::LocalRuns(const Graph &G, const ProgramFacts &Facts)
    : G(G), Facts(Facts) {
  const TypeAnalysis &Types = Facts.Types;
  // A single replica has all rows.
  if (Facts.Dims.replicas() < 2)
    return;
  if (none_of(Facts.Order,
              [&](NodeId N) {
                return Facts.Dims.numOutputs(N) != 0 && isUnproved(N);
              }) &&
      Types.unprovedWrites().empty())
    return;
  Ops.reserve(G.numOps());
  bool AnyBackEdge = false;
  for (uint32_t Op = 0; Op < G.numOps(); ++Op) {
    StringRef Name = G.opNameOf(Op);
    // Random ops, stateful ops, arrays and stacks. (The elements of arrays and
    // stacks pass along no edge.)
    constexpr uint32_t Starts =
        trait::Draws | trait::Opaque | trait::Handle | trait::ReadsSource;
    AnyBackEdge |= isBackEdgeOp(Name);
    Ops.push_back({ruleOf(Name), (traitsOf(Name) & Starts) != 0});
  }
  const DimTable &Table = Facts.Dims.table();
  for (NodeId N : Facts.Order) {
    if (G.node(N).Kind != Inserted::Split)
      continue;
    auto Axis = static_cast<size_t>(G.intAttr(N, "axis").value_or(0));
    auto Shape = Facts.Dims.shape(G.input(N, 0));
    int64_t Rows = Shape && Axis < Shape->size() ? Table.number((*Shape)[Axis])
                                                 : UnknownSize;
    if (Rows != UnknownSize && !is_contained(Batches, Rows))
      Batches.push_back(Rows);
  }
  IsStatic = !Batches.empty();
  Bits.resize(Facts.Dims.totalOutputs());
  while (sweep() && AnyBackEdge)
    ;
}

/// Returns true if a result of \p N is unrelated. For a node without results,
/// returns true if an operand is unrelated.
bool LocalRuns::isUnproved(NodeId N) const {
  unsigned Outputs = Facts.Dims.numOutputs(N);
  for (unsigned Port = 0; Port < Outputs; ++Port)
    if (ReplicationType X = Facts.Types.natural({N, Port});
        X.isVarying() && !X.isOfEntries())
      return true;
  return Outputs == 0 && any_of(G.dataInputs(N), [&](Endpoint E) {
           return Facts.Types.natural(E).isVarying();
         });
}

bool LocalRuns::differs(Endpoint E) const {
  if (G.node(E.Node).Count != Copies::PerReplica || Facts.Dims.replicas() < 2)
    return false;
  return Bits.empty() ? !Facts.Types.type(E).isReplicated() : bits(E) & Differs;
}

bool LocalRuns::drifts(NodeId N, unsigned I) const {
  if (G.node(N).Count != Copies::PerReplica)
    return false;
  auto Predicate = Facts.Types.localPredicate(N);
  return (Predicate && differs(*Predicate)) || differs(G.input(N, I));
}

//===----------------------------------------------------------------------===//
// Propagation of bits
//===----------------------------------------------------------------------===//

bool LocalRuns::sweep() {
  bool Changed = false;
  for (NodeId N : Facts.Order)
    for (unsigned Port = 0; Port < Facts.Dims.numOutputs(N); ++Port) {
      uint8_t &Mine = Bits[Facts.Dims.outputIndex({N, Port})];
      uint8_t Next = Mine | infer(N, Port);
      Changed |= Next != Mine;
      Mine = Next;
    }
  return Changed;
}

/// Adds the bits of the sizes \p List to \p Result. Returns true if all sizes
/// are known.
bool LocalRuns::ofDims(ArrayRef<DimId> List, uint8_t &Result) const {
  const DimTable &Table = Facts.Dims.table();
  bool Complete = true;
  for (DimId D : List) {
    auto S = Table.sym(D);
    if (!S)
      Complete &= Table.isSame(D);
    else if (S->R > 0)
      Result |= AllSize;
    else if (S->B != 0)
      Result |= OwnSize | Rows | (S->Ragged != 0 ? Length : 0);
  }
  return Complete;
}

/// Returns true if the results of \p N may differ between replicas although its
/// operands are equal.
bool LocalRuns::startsToDiffer(NodeId N) const {
  // The size of an array is the number of iterations of the loop that filled
  // it.
  if (G.isOp(N, op::TensorArraySizeV3))
    return isOfOwnLoop(G.input(N, 1));
  if (Ops[G.node(N).Op].Starts || G.node(N).Kind == Inserted::Split ||
      Facts.Types.usesState(N))
    return true;
  auto Predicate = Facts.Types.localPredicate(N);
  return Predicate && differs(*Predicate);
}

/// Returns true if \p N is a collective and all replicas get the same result.
static bool exchanges(const Graph &G, NodeId N) {
  Inserted Kind = G.node(N).Kind;
  return (Kind == Inserted::Reduce &&
          (G.isOp(N, ReduceOp) || G.isOp(N, op::CollectiveReduce))) ||
         (Kind == Inserted::Gather &&
          (G.isOp(N, GatherOp) || G.isOp(N, op::CollectiveGather) ||
           (isLengthGatherOp(G, N) &&
            lengthGatherSource(G, N).Node != NoNode)));
}

/// Returns true if the rows of \p N, if any, must be those of all replicas,
/// because no operand (bits \p In) has the rows of one replica. The inferred
/// sizes may contradict this: a user of \p N may compare its rows with the rows
/// of one replica. Examples are a feed that all replicas read, and an element
/// of a list of gathered rows.
bool LocalRuns::isOfAllRows(NodeId N, uint8_t In) const {
  return G.node(N).Kind == Inserted::No && !(In & (OwnSize | OwnNumber)) &&
         !Ops[G.node(N).Op].Starts && !G.isOp(N, op::Merge) &&
         !G.hasAttr(N, OriginalAttr);
}

uint8_t LocalRuns::infer(NodeId N, unsigned Port) const {
  const Node &This = G.node(N);
  uint8_t In = 0, Result = 0;
  for (Endpoint E : G.dataInputs(N))
    In |= bits(E);
  bool Exchanged = exchanges(G, N);
  ReplicationType Type = Facts.Types.type({N, Port});
  if (This.Count == Copies::PerReplica && !Exchanged) {
    // If an op reads only sizes, its result differs only if the sizes differ.
    bool Other = In & (ruleAt(N).Is & trait::ReadsSizes ? Length : Differs);
    bool Does = Type.isVarying()      ? Other || startsToDiffer(N)
                : Type.isReplicated() ? Type.Symbolic && Other
                                      : true;
    if (Does)
      Result |= Differs;
  }
  if (In & OfRows || Type.isSharded() || This.Kind == Inserted::Split)
    Result |= OfRows;
  auto Shape = Facts.Dims.shape({N, Port});
  uint8_t Known = 0;
  // The inferred sizes of a list are the sizes of its elements. The list itself
  // has no size.
  bool Complete =
      Shape && G.outputType({N, Port}) != DT_VARIANT && ofDims(*Shape, Known);
  if (Complete && Known & OwnSize && !Type.isSharded() && isOfAllRows(N, In))
    Known = AllSize;
  if (!Complete) {
    Known |= sizes(N, In);
    if (Type.isSharded())
      Known |= OwnSize | Rows;
  }
  // The result of an op that alters or keeps the rows of one replica has
  // per-replica rows, even if the inferred sizes differ.
  else if (Type.isVarying() && In & OwnSize && !(Known & OwnSize) &&
           (altersRows(N) || keepsRows(N, Port, In)))
    Known |= OwnSize | Rows;
  // An unknown size may be inferred as equal on all replicas only because the
  // graph compares it with a size that is. It may still follow the rows of one
  // replica.
  bool IsOpen = !Shape || any_of(*Shape, [&](DimId D) {
    return !Facts.Dims.table().sym(D);
  });
  if (IsOpen && !Type.isReplicated() && keepsRows(N, Port, In))
    Known |= OwnSize | Rows;
  auto Value = Facts.Dims.value({N, Port});
  uint8_t Elements = 0;
  Complete = Value && ofDims(*Value, Elements);
  Elements = asNumbers(Elements);
  // If the limit of a Range is a number, the known elements of the Range do not
  // show that the limit is a size.
  if (!Complete || ruleAt(N).Elements == ElementsOf::Range)
    Elements |= numbers(N, Port, In);
  // The result of a gather has the rows of all replicas.
  bool Gathers = (This.Kind == Inserted::Gather && Exchanged) ||
                 (G.isOp(N, FromReplicasOp) &&
                  G.stringAttr(N, CombineAttr) == StringRef(combine::Concat));
  if (Gathers && Known & OwnSize)
    Known = AllSize;
  // A reduced or scaled row count counts the rows of all replicas. (A fed size
  // may be scaled to the share of a replica. Its elements are known, so
  // Complete is set.)
  if (!Complete &&
      (This.Kind == Inserted::Reduce || This.Kind == Inserted::Scale ||
       (This.Kind == Inserted::Merge && !Gathers && !Type.isVarying())) &&
      Elements & OwnNumber)
    Elements = AllNumber;
  return Result | Known | Elements;
}

/// Returns the bits of the operands of \p N that are sizes or offsets.
uint8_t LocalRuns::sizeOperands(NodeId N) const {
  const OpRule &Rule = ruleAt(N);
  // Any operand of an op without a rule may be a size.
  uint16_t Mask = Rule.Type ? Rule.SizeOperands : AnyInteger;
  uint8_t Result = 0;
  for (unsigned I = 0; I < G.node(N).NumData; ++I) {
    if (!isOperand(Mask, I))
      continue;
    unsigned Type = G.outputType(G.input(N, I).Node, G.input(N, I).Port);
    if (Type == DT_INT32 || Type == DT_INT64)
      Result |= asSizes(in(N, I));
  }
  return Result;
}

/// Returns true if \p Flow leaves a loop whose number of iterations may differ
/// between replicas.
bool LocalRuns::isOfOwnLoop(Endpoint Flow) const {
  if (!G.isOp(Flow.Node, op::Exit))
    return false;
  NodeId Switch = G.input(Flow.Node, 0).Node;
  return G.isOp(Switch, op::Switch) && differs(G.input(Switch, 1));
}

/// Returns Length if the values that determine the sizes of \p N differ between
/// replicas.
uint8_t LocalRuns::lengths(NodeId N) const {
  if (G.isOp(N, op::TensorArrayConcatV3))
    return isOfOwnLoop(G.input(N, 1)) ? Length : 0;
  // A slice of one element along an axis removes the axis.
  if (G.isOp(N, op::StridedSlice) &&
      G.intAttr(N, "shrink_axis_mask").value_or(0) != 0)
    return 0;
  for (unsigned I = 0; I < G.node(N).NumData; ++I)
    if (isOperand(ruleAt(N).LengthOperands, I) && in(N, I) & Differs)
      return Length;
  return 0;
}

/// Returns the bits of the unknown sizes of the results of \p N.
uint8_t LocalRuns::sizes(NodeId N, uint8_t In) const {
  if (G.node(N).Kind == Inserted::Split)
    return OwnSize | Rows;
  return (In & (OwnSize | AllSize | Length)) | sizeOperands(N) | lengths(N);
}

/// Returns the bits of the elements of output \p Port of \p N, computed from
/// the bits of its operands.
uint8_t LocalRuns::numbers(NodeId N, unsigned Port, uint8_t In) const {
  constexpr uint8_t Mask = OwnNumber | AllNumber;
  switch (ruleAt(N).Elements) {
  case ElementsOf::Operands:
    return In & Mask;
  case ElementsOf::First:
    return in(N, 0) & Mask;
  case ElementsOf::SamePort:
    return in(N, Port) & Mask;
  case ElementsOf::Nothing:
    return 0;
  case ElementsOf::SizesOfFirst:
    return asNumbers(in(N, 0));
  case ElementsOf::SizesOfPort:
    return asNumbers(in(N, Port));
  case ElementsOf::FirstThenSizes:
    return Port == 0 ? in(N, 0) & Mask : asNumbers(in(N, 0));
  case ElementsOf::Counts:
    return isFloating(G.outputType(N, 0))
               ? in(N, 0) & Mask
               : (in(N, 0) & Mask) | asNumbers(in(N, 0));
  case ElementsOf::Range:
    break;
  }
  return (In & Mask) | asNumbers(In);
}

/// Returns true if the number of rows of \p N differs from that of its
/// operands.
bool LocalRuns::altersRows(NodeId N) const {
  if (!G.isOp(N, op::StridedSlice))
    return ruleAt(N).Is & (trait::JoinsRows | trait::AltersRows);
  // A slice of a single row has no batch axis, so it alters no row count. With
  // an ellipsis or new axes, the mask does not show the sliced axis.
  int Axis = Facts.Dims.batchAxis(G.input(N, 0));
  bool Plain = G.intAttr(N, "ellipsis_mask").value_or(0) == 0 &&
               G.intAttr(N, "new_axis_mask").value_or(0) == 0;
  int64_t Shrunk = G.intAttr(N, "shrink_axis_mask").value_or(0);
  return Axis >= 0 && !(Plain && Axis < 64 && (Shrunk >> Axis & 1) != 0);
}

/// Returns true if output \p Port of \p N has at least as many elements for
/// each row as the operands.
bool LocalRuns::keepsRows(NodeId N, unsigned Port, uint8_t In) const {
  const OpRule &Rule = ruleAt(N);
  if (Rule.Elements == ElementsOf::SamePort)
    return in(N, Port) & Rows;
  if (Rule.Is & (trait::Elementwise | trait::KeepsRows))
    return In & Rows;
  if (!G.isOp(N, op::MatMul))
    return false;
  // MatMul keeps rows that it does not sum over.
  bool Turned = G.boolAttr(N, "transpose_a").value_or(false);
  auto Shape = Facts.Dims.shape(G.input(N, 0));
  uint8_t Contracted = 0;
  return in(N, 0) & Rows && Shape && Shape->size() == 2 &&
         ofDims((*Shape)[Turned ? 0 : 1], Contracted) && Contracted == 0;
}

Spoils LocalRuns::spoiledBy(NodeId N) const {
  DenseSet<NodeId> Seen, Variables;
  Spoils Result;
  walkFrom({N}, Seen, [&](NodeId At, std::vector<NodeId> &Next) {
    if (Facts.Vars.isUpdate(G, At)) {
      for (unsigned I = 0; I < Facts.Vars.update(G, At).NumVars; ++I)
        if (NodeId Var = Facts.Vars.variableOf(G.input(At, I));
            Var != NoNode && Variables.insert(Var).second &&
            Result.Variables++ == 0)
          Result.Variable = Var;
      return;
    }
    if (G.node(At).Kind == Inserted::Merge && !G.hasUses(At) &&
        Result.Fetches++ == 0)
      Result.Fetch = At;
    G.forEachUse(At, [&](Use U) {
      if (G.isData(U))
        Next.push_back(U.User);
    });
  });
  return Result;
}

std::string Spoils::str(const Graph &G) const {
  auto Text = [&](unsigned Count, StringRef What, NodeId First) {
    return Count == 1
               ? formatv("the {0} '{1}'", What, originName(G, First)).str()
               : formatv("{0} {1}", Count, What).str() +
                     (What.ends_with("h") ? "es" : "s");
  };
  std::string All;
  if (Variables != 0)
    All = Text(Variables, "variable", Variable);
  if (Fetches != 0)
    All += (All.empty() ? "" : " and ") + Text(Fetches, "fetch", Fetch);
  return All.empty() ? "" : "; affects " + All;
}

} // namespace graft
