//===- lib/infer/facts/LocalRuns.cpp - what replicas do by themselves -----===//
//
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "lib/infer/facts/LocalRuns.h"
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
  // One replica has all rows.
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
    // Draws, what may keep a state; and arrays and stacks, to whose elements no
    // edges lead.
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

/// Whether no rule relates what \p N gives, or what it takes if it gives
/// nothing.
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
// What follows what
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

/// Adds what the sizes \p List follow, as sizes; whether all of them are known.
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

/// Whether replicas have other values of what \p N gives although they have one
/// of all that it takes.
bool LocalRuns::startsToDiffer(NodeId N) const {
  // How many elements an array has is how often the loop ran that filled it.
  if (G.isOp(N, op::TensorArraySizeV3))
    return isOfOwnLoop(G.input(N, 1));
  if (Ops[G.node(N).Op].Starts || G.node(N).Kind == Inserted::Split ||
      Facts.Types.usesState(N))
    return true;
  auto Predicate = Facts.Types.localPredicate(N);
  return Predicate && differs(*Predicate);
}

/// Whether replicas exchange something at \p N, so that all have one value.
static bool exchanges(const Graph &G, NodeId N) {
  Inserted Kind = G.node(N).Kind;
  return (Kind == Inserted::Reduce &&
          (G.isOp(N, ReduceOp) || G.isOp(N, op::CollectiveReduce))) ||
         (Kind == Inserted::Gather &&
          (G.isOp(N, GatherOp) || G.isOp(N, op::CollectiveGather) ||
           (isLengthGatherOp(G, N) &&
            lengthGatherSource(G, N).Node != NoNode)));
}

/// Whether \p N, which takes what \p In says, has the rows of all replicas if
/// it has any, whatever its sizes are: these were found to be the rows of one
/// since something wants them to be, and nothing that it takes has rows of one.
/// Such as a feed that all replicas read, and an element of a list that was
/// made of rows that were gathered.
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
    // Sizes are not values.
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
  // The sizes of a list are those of its elements.
  bool Complete =
      Shape && G.outputType({N, Port}) != DT_VARIANT && ofDims(*Shape, Known);
  if (Complete && Known & OwnSize && !Type.isSharded() && isOfAllRows(N, In))
    Known = AllSize;
  if (!Complete) {
    Known |= sizes(N, In);
    if (Type.isSharded())
      Known |= OwnSize | Rows;
  }
  // Nor is that what rows of one are which something is put beside.
  else if (Type.isVarying() && In & OwnSize && !(Known & OwnSize) &&
           (altersRows(N) || keepsRows(N, Port, In)))
    Known |= OwnSize | Rows;
  // What is compared with a size that all replicas have is taken to have it.
  bool IsOpen = !Shape || any_of(*Shape, [&](DimId D) {
    return !Facts.Dims.table().sym(D);
  });
  if (IsOpen && !Type.isReplicated() && keepsRows(N, Port, In))
    Known |= OwnSize | Rows;
  auto Value = Facts.Dims.value({N, Port});
  uint8_t Elements = 0;
  Complete = Value && ofDims(*Value, Elements);
  Elements = asNumbers(Elements);
  // Numbers up to a size are not told from others once it is a number, too.
  if (!Complete || ruleAt(N).Elements == ElementsOf::Range)
    Elements |= numbers(N, Port, In);
  // What is exchanged is that of all replicas.
  bool Gathers = (This.Kind == Inserted::Gather && Exchanged) ||
                 (G.isOp(N, FromReplicasOp) &&
                  G.stringAttr(N, CombineAttr) == StringRef(combine::Concat));
  if (Gathers && Known & OwnSize)
    Known = AllSize;
  // A share of a size that is fed is known to be that of one replica.
  if (!Complete &&
      (This.Kind == Inserted::Reduce || This.Kind == Inserted::Scale ||
       (This.Kind == Inserted::Merge && !Gathers && !Type.isVarying())) &&
      Elements & OwnNumber)
    Elements = AllNumber;
  return Result | Known | Elements;
}

/// What the operands of \p N that give sizes, or where parts begin, follow.
uint8_t LocalRuns::sizeOperands(NodeId N) const {
  const OpRule &Rule = ruleAt(N);
  // Nothing is known of the operands of an op without a rule.
  uint16_t Mask = Rule.Type ? Rule.SizeOperands : AnyInteger;
  uint8_t Result = 0;
  for (unsigned I = 0; I < G.node(N).NumData; ++I) {
    unsigned Type = G.outputType(G.input(N, I).Node, G.input(N, I).Port);
    if (isOperand(Mask, I) && (Type == DT_INT32 || Type == DT_INT64))
      Result |= asSizes(in(N, I));
  }
  return Result;
}

/// Whether \p Flow comes out of a loop that replicas may run through another
/// number of times.
bool LocalRuns::isOfOwnLoop(Endpoint Flow) const {
  if (!G.isOp(Flow.Node, op::Exit))
    return false;
  NodeId Switch = G.input(Flow.Node, 0).Node;
  return G.isOp(Switch, op::Switch) && differs(G.input(Switch, 1));
}

/// Length if replicas have other values of what gives \p N its sizes.
uint8_t LocalRuns::lengths(NodeId N) const {
  if (G.isOp(N, op::TensorArrayConcatV3))
    return isOfOwnLoop(G.input(N, 1)) ? Length : 0;
  // What is left of an axis that it takes one element of is nothing.
  if (G.isOp(N, op::StridedSlice) &&
      G.intAttr(N, "shrink_axis_mask").value_or(0) != 0)
    return 0;
  for (unsigned I = 0; I < G.node(N).NumData; ++I)
    if (isOperand(ruleAt(N).LengthOperands, I) && in(N, I) & Differs)
      return Length;
  return 0;
}

/// What sizes of the results of \p N follow, where they are not known.
uint8_t LocalRuns::sizes(NodeId N, uint8_t In) const {
  if (G.node(N).Kind == Inserted::Split)
    return OwnSize | Rows;
  return (In & (OwnSize | AllSize | Length)) | sizeOperands(N) | lengths(N);
}

/// What elements of the results of \p N follow, where they are not known.
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

/// Whether the rows of \p N are others than those that it takes.
bool LocalRuns::altersRows(NodeId N) const {
  if (!G.isOp(N, op::StridedSlice))
    return ruleAt(N).Is & (trait::JoinsRows | trait::AltersRows);
  // One row has no rows. Where axes are counted in another way it may have.
  int Axis = Facts.Dims.batchAxis(G.input(N, 0));
  bool Plain = G.intAttr(N, "ellipsis_mask").value_or(0) == 0 &&
               G.intAttr(N, "new_axis_mask").value_or(0) == 0;
  int64_t Shrunk = G.intAttr(N, "shrink_axis_mask").value_or(0);
  return Axis >= 0 && !(Plain && Axis < 64 && (Shrunk >> Axis & 1) != 0);
}

/// Whether the results of \p N have as many elements for each row as what it
/// takes, or more.
bool LocalRuns::keepsRows(NodeId N, unsigned Port, uint8_t In) const {
  const OpRule &Rule = ruleAt(N);
  if (Rule.Elements == ElementsOf::SamePort)
    return in(N, Port) & Rows;
  if (Rule.Is & (trait::Elementwise | trait::KeepsRows))
    return In & Rows;
  if (!G.isOp(N, op::MatMul))
    return false;
  // Rows that are not added up.
  bool Turned = G.boolAttr(N, "transpose_a").value_or(false);
  auto Shape = Facts.Dims.shape(G.input(N, 0));
  uint8_t Contracted = 0;
  return in(N, 0) & Rows && Shape && Shape->size() == 2 &&
         ofDims((*Shape)[Turned ? 0 : 1], Contracted) && Contracted == 0;
}

Spoils LocalRuns::spoiledBy(NodeId N) const {
  DenseSet<NodeId> Seen{N}, Variables;
  std::vector<NodeId> Work{N};
  Spoils Result;
  while (!Work.empty()) {
    NodeId At = Work.back();
    Work.pop_back();
    if (Facts.Vars.isUpdate(G, At)) {
      for (unsigned I = 0; I < Facts.Vars.update(G, At).NumVars; ++I)
        if (NodeId Var = Facts.Vars.variableOf(G.input(At, I));
            Var != NoNode && Variables.insert(Var).second &&
            Result.Variables++ == 0)
          Result.Variable = Var;
      continue;
    }
    if (G.node(At).Kind == Inserted::Merge && !G.hasUses(At) &&
        Result.Fetches++ == 0)
      Result.Fetch = At;
    G.forEachUse(At, [&](Use U) {
      if (U.Index < G.node(U.User).NumData && Seen.insert(U.User).second)
        Work.push_back(U.User);
    });
  }
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
  return All.empty() ? "" : "; spoils " + All;
}

} // namespace graft
