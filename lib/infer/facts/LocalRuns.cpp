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
    if (Facts.Types.natural({N, Port}).isVarying())
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
  if (!Complete) {
    Known |= sizes(N, In);
    if (Type.isSharded())
      Known |= OwnSize | Rows;
  }
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
  if ((This.Kind == Inserted::Reduce || This.Kind == Inserted::Scale ||
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

//===----------------------------------------------------------------------===//
// What may fail
//===----------------------------------------------------------------------===//

/// The size along \p Axis if it is known.
std::optional<Sym> LocalRuns::size(Endpoint E, unsigned Axis) const {
  auto Shape = Facts.Dims.shape(E);
  return Shape && Axis < Shape->size() ? Facts.Dims.table().sym((*Shape)[Axis])
                                       : std::nullopt;
}

/// How many rows a replica has along \p Axis, if the graph says so.
int64_t LocalRuns::knownRows(Endpoint E, unsigned Axis) const {
  auto Shape = Facts.Dims.shape(E);
  return IsStatic && Shape && Axis < Shape->size()
             ? Facts.Dims.localNumber((*Shape)[Axis])
             : UnknownSize;
}

/// Whether axis \p Axis of \p E, or one that is not known (-1), may be as long
/// as the rows of one replica.
bool LocalRuns::hasOwnAxis(Endpoint E, int Axis) const {
  if (auto Shape = Facts.Dims.shape(E); Shape && Axis >= 0) {
    uint8_t Known = 0;
    if (static_cast<size_t>(Axis) >= Shape->size())
      return false;
    if (ofDims((*Shape)[Axis], Known))
      return Known & OwnSize;
  }
  return hasOwnSize(E);
}

/// Whether \p Index finds elements along \p Axis of \p Table on every replica
/// if it does so in the single-device step.
bool LocalRuns::isOfRows(Endpoint Index, Endpoint Table, int Axis) const {
  if (!hasOwnAxis(Table, Axis) || Facts.Types.type(Index).Zero)
    return true;
  if (auto Numbers = Facts.Dims.numbers(Index)) {
    int64_t Known =
        Axis < 0 ? UnknownSize : knownRows(Table, static_cast<unsigned>(Axis));
    return all_of(*Numbers, [&](int64_t I) {
      return I == 0 || (Known != UnknownSize && I > 0 && I < Known);
    });
  }
  return (bits(Index) & (OwnNumber | AllNumber)) == OwnNumber;
}

/// Lookups, and what goes to rows by number.
std::string LocalRuns::faultOfLookup(NodeId N) const {
  const IndexUse &Use = ruleAt(N).Looks;
  if (Use.Index < 0 || G.intAttr(N, "batch_dims").value_or(0) != 0)
    return "";
  auto Input = [&](unsigned I) { return G.input(N, I); };
  // Along the first axes, as many as the indices have columns.
  auto IsOfAll = [&](Endpoint Index, Endpoint Table) {
    auto Shape = Facts.Dims.shape(Index);
    auto Depth = Shape && !Shape->empty()
                     ? Facts.Dims.table().sym(Shape->back())
                     : std::nullopt;
    if (!Depth || !Depth->isNumber())
      return isOfRows(Index, Table, -1);
    for (int Axis = 0; Axis < Depth->C; ++Axis)
      if (!isOfRows(Index, Table, Axis))
        return false;
    return true;
  };
  auto Axis = [&](Endpoint Table) {
    auto Shape = Facts.Dims.shape(Table);
    if (Use.By == IndexUse::LastAxis)
      return Shape ? static_cast<int>(Shape->size()) - 1 : -1;
    if (!G.isOp(N, op::GatherV2))
      return 0;
    auto V = Facts.Dims.numbers(Input(2));
    int At = V && V->size() == 1 ? static_cast<int>(V->front()) : -1;
    return V && At < 0 && Shape ? At + static_cast<int>(Shape->size()) : At;
  };
  Endpoint Index = Input(static_cast<unsigned>(Use.Index)),
           Table = Use.Table < 0 ? Endpoint{N, 0}
                                 : Input(static_cast<unsigned>(Use.Table));
  bool Fits = Use.By == IndexUse::Columns ? IsOfAll(Index, Table)
                                          : isOfRows(Index, Table, Axis(Table));
  return Fits ? ""
              : "looks up rows in a per-replica shard by indices that may be "
                "out of its range at run time";
}

/// Whether elements \p Begin to \p Begin + \p Size are there along an axis of
/// what \p N takes, as many rows as one replica has.
bool LocalRuns::fitsInto(NodeId N, unsigned Axis, int64_t Begin,
                         int64_t Size) const {
  int64_t Known = knownRows(G.input(N, 0), Axis);
  return Known == UnknownSize ? Begin + Size <= 1 : Begin + Size <= Known;
}

/// Parts of rows.
std::string LocalRuns::faultOfPart(NodeId N) const {
  auto Number = [&](unsigned I) -> std::optional<int64_t> {
    auto V = Facts.Dims.numbers(G.input(N, I));
    return V && V->size() == 1 ? std::optional(V->front()) : std::nullopt;
  };
  const DimTable &Table = Facts.Dims.table();
  constexpr StringRef TooShort =
      "takes a fixed number of rows, and a replica may have fewer";
  if (G.isOp(N, op::Split) || G.isOp(N, op::Unpack)) {
    bool Even = G.isOp(N, op::Split);
    Endpoint X = G.input(N, Even ? 1 : 0);
    auto Shape = Facts.Dims.shape(X);
    auto At =
        Even ? Number(0) : std::optional(G.intAttr(N, "axis").value_or(0));
    if (!Shape || !At)
      return "";
    int64_t Axis = *At < 0 ? *At + int64_t(Shape->size()) : *At;
    auto S = Axis < 0 ? std::nullopt : size(X, static_cast<unsigned>(Axis));
    if (!S || !S->isLocal())
      return "";
    int64_t Parts = Facts.Dims.numOutputs(N),
            Known = knownRows(X, static_cast<unsigned>(Axis));
    if (Even ? S->C % Parts == 0 || (Known != UnknownSize && Known % Parts == 0)
             : Known == Parts)
      return "";
    return "splits a per-replica shard, whose rows may not be a multiple of "
           "the number of parts";
  }
  auto Shape = Facts.Dims.shape(G.input(N, 0));
  if (!Shape)
    return "";
  if (G.isOp(N, op::Slice)) {
    auto Begin = Facts.Dims.value(G.input(N, 1)),
         Size = Facts.Dims.value(G.input(N, 2));
    for (unsigned I = 0; I < Shape->size() && Size && I < Size->size(); ++I) {
      auto Dim = Table.sym((*Shape)[I]), Count = Table.sym((*Size)[I]);
      if (!Dim || !Dim->isLocal() || !Count || !Count->isNumber())
        continue;
      auto From =
          Begin && I < Begin->size() ? Table.sym((*Begin)[I]) : std::nullopt;
      if (From && !From->isNumber())
        continue;
      int64_t First = From ? From->C : 0;
      if (Count->C == -1 ? First > 0 && !fitsInto(N, I, First, 0)
                         : !fitsInto(N, I, First, Count->C))
        return TooShort.str();
    }
  }
  if (G.isOp(N, op::StridedSlice) &&
      G.intAttr(N, "ellipsis_mask").value_or(0) == 0 &&
      G.intAttr(N, "new_axis_mask").value_or(0) == 0) {
    int64_t Shrink = G.intAttr(N, "shrink_axis_mask").value_or(0);
    auto Begin = Facts.Dims.value(G.input(N, 1));
    for (unsigned I = 0; I < Shape->size() && Begin && I < Begin->size(); ++I) {
      auto Dim = Table.sym((*Shape)[I]), From = Table.sym((*Begin)[I]);
      if (!(Shrink >> I & 1) || !Dim || !Dim->isLocal() || !From ||
          !From->isNumber())
        continue;
      if (!fitsInto(N, I, 0, From->C < 0 ? -From->C : From->C + 1))
        return TooShort.str();
    }
  }
  return "";
}

/// Whether what a replica has of \p E may be whole rows of \p Target, one size
/// of which is open.
bool LocalRuns::fillsRows(Endpoint E, ArrayRef<DimId> Target) const {
  auto Shape = Facts.Dims.shape(E);
  // Rows of rows are fewer by more than the number of replicas.
  if (Shape && count_if(*Shape, [&](DimId D) {
                 auto S = Facts.Dims.table().sym(D);
                 return S && S->isLocal();
               }) > 1)
    return false;
  int64_t Elements = 1, Row = 1;
  for (DimId D : Shape ? *Shape : ArrayRef<DimId>())
    if (int64_t Size = Facts.Dims.localNumber(D);
        Size < 0 || MulOverflow(Elements, Size, Elements))
      return true;
  for (DimId D : Target)
    if (int64_t Size = Facts.Dims.localNumber(D);
        Size != -1 && (Size <= 0 || MulOverflow(Row, Size, Row)))
      return true;
  return !Shape || Elements % Row == 0;
}

/// Sizes that are given beside a tensor that must have them.
std::string LocalRuns::faultOfShape(NodeId N) const {
  const DimTable &Table = Facts.Dims.table();
  constexpr StringRef Fixed = "applies a size that does not scale with the "
                              "batch to a per-replica shard";
  if (IsStatic && takesListOfAll(N))
    return Fixed.str();
  if (G.isOp(N, op::Reshape) || G.isOp(N, op::BroadcastTo)) {
    auto Target = Facts.Dims.value(G.input(N, 1));
    bool Open = Target &&
                any_of(*Target, [&](DimId D) { return Table.number(D) == -1; });
    uint8_t To = in(N, 1) & (OwnNumber | AllNumber);
    // A vector that is not tracked may have a -1.
    if (in(N, 0) & Rows && Target && To == 0 &&
        (!Open || !fillsRows(G.input(N, 0), *Target)))
      return Fixed.str();
  }
  // What gives the sizes of the rows in its last operand.
  if (ruleAt(N).Is & trait::SizesOfRows) {
    auto Sizes = Facts.Dims.value(G.input(N, 0));
    auto Dy = size(G.input(N, G.node(N).NumData - 1), 0);
    auto Batch =
        Sizes && !Sizes->empty() ? Table.sym(Sizes->front()) : std::nullopt;
    if (Dy && Batch && !(*Dy == *Batch) && (Dy->isLocal() || Batch->isLocal()))
      return Fixed.str();
  }
  return "";
}

/// Whether \p N, a loop or the begin of one, fills an empty list whose elements
/// have a fixed size, which may be that of a static batch.
bool LocalRuns::takesListOfAll(NodeId N) const {
  if (ruleAt(N).Type && !G.isOp(N, op::Merge))
    return false;
  return any_of(G.dataInputs(N), [&](Endpoint E) {
    while (G.isOp(E.Node, op::Enter) || G.isOp(E.Node, op::Identity))
      E = G.input(E.Node, 0);
    if (!G.isOp(E.Node, op::EmptyTensorList) &&
        !G.isOp(E.Node, op::TensorListReserve))
      return false;
    auto Element = Facts.Dims.numbers(G.input(E.Node, 0));
    return Element && any_of(*Element, [&](int64_t Size) {
             return is_contained(Batches, Size);
           });
  });
}

/// What sizes follow that \p N compares with each other.
uint8_t LocalRuns::comparedSizes(NodeId N) const {
  const OpRule &Rule = ruleAt(N);
  bool OfAll = !Rule.Type || Rule.Is & trait::Elementwise;
  uint16_t Mask = OfAll ? AllOperands : Rule.ComparedOperands;
  bool WithSizes = Rule.Is & trait::ComparesWithSizes;
  if (Mask == AllOperands && !WithSizes && G.node(N).NumData < 2)
    return 0;
  uint8_t Result = WithSizes ? sizeOperands(N) : 0;
  for (unsigned I = 0; I < G.node(N).NumData; ++I)
    if (isOperand(Mask, I))
      Result |= in(N, I) & (OwnSize | AllSize);
  return Result;
}

/// Whether \p N compares the rows of one replica with a size of a tensor that
/// is not made of any.
bool LocalRuns::comparesUnknown(NodeId N) const {
  const OpRule &Rule = ruleAt(N);
  bool Aligned = Rule.Is & trait::Elementwise;
  uint16_t Mask = Aligned ? AllOperands : Rule.ComparedOperands;
  const DimTable &Table = Facts.Dims.table();
  auto Operands = G.dataInputs(N);
  // All sizes but those that are added up.
  int64_t Joined = -1;
  if (Rule.Is & trait::JoinsRows && !G.isOp(N, op::Pack)) {
    unsigned Axis = G.isOp(N, op::Concat) ? 0 : G.node(N).NumData - 1;
    if (auto V = Facts.Dims.numbers(Operands[Axis]); V && V->size() == 1)
      Joined = V->front();
  } else if (Mask == AllOperands && !Aligned) {
    return false;
  }
  auto IsOther = [&](unsigned I, size_t Rank, size_t Axis) {
    if (!isOperand(Mask, I) || in(N, I) & (OfRows | AllSize))
      return false;
    auto Shape = Facts.Dims.shape(Operands[I]);
    if (!Shape)
      return true;
    // The last axes go together.
    size_t At = Aligned ? Axis + Shape->size() - Rank : Axis;
    return At < Shape->size() && Table.number((*Shape)[At]) != 1;
  };
  for (unsigned I = 0; I < Operands.size(); ++I) {
    auto Shape = isOperand(Mask, I) && in(N, I) & OwnSize
                     ? Facts.Dims.shape(Operands[I])
                     : std::nullopt;
    for (size_t Axis = 0; Shape && Axis < Shape->size(); ++Axis) {
      uint8_t Known = 0;
      bool IsJoined = int64_t(Axis) == Joined ||
                      int64_t(Axis) == Joined + int64_t(Shape->size());
      if (IsJoined || !ofDims((*Shape)[Axis], Known) || !(Known & OwnSize))
        continue;
      for (unsigned J = 0; J < Operands.size(); ++J)
        if (IsOther(J, Shape->size(), Axis))
          return true;
    }
  }
  return false;
}

/// Whether \p N works element by element on a tensor with a size that follows
/// the values of one replica, and on one with other sizes.
bool LocalRuns::comparesLengths(NodeId N) const {
  if (!(ruleAt(N).Is & (trait::Elementwise | trait::ComparesLengths)))
    return false;
  bool Any = false, Others = false;
  for (Endpoint E : G.dataInputs(N)) {
    if (bits(E) & Length) {
      Any = true;
      continue;
    }
    // A scalar, or a parameter that is broadcast.
    auto Shape = Facts.Dims.shape(E);
    Others |= !Shape || any_of(*Shape, [&](DimId D) {
      auto S = Facts.Dims.table().sym(D);
      return !S || !S->isNumber();
    });
  }
  return Any && Others;
}

std::string LocalRuns::fault(NodeId N) const {
  if (G.node(N).Kind != Inserted::No || Facts.Vars.isUpdate(G, N))
    return "";
  if (comparedSizes(N) == (OwnSize | AllSize))
    return "mixes a per-replica shard with rows of the whole batch, whose "
           "number differs";
  if (comparesUnknown(N))
    return "mixes a per-replica shard with a tensor that may have the rows of "
           "the whole batch";
  if (comparesLengths(N))
    return "mixes a number of elements that depends on the values of one "
           "replica with a number that is equal on all replicas";
  if (std::string Why = faultOfLookup(N); !Why.empty())
    return Why;
  if (std::string Why = faultOfPart(N); !Why.empty())
    return Why;
  return faultOfShape(N);
}

std::vector<LocalRuns::Fault> LocalRuns::faults() const {
  std::vector<Fault> Result;
  if (Bits.empty())
    return Result;
  std::vector<bool> Fails(G.size());
  for (NodeId N : Facts.Order) {
    if (any_of(G.inputs(N), [&](Endpoint E) { return Fails[E.Node]; })) {
      Fails[N] = true;
      continue;
    }
    if (!isUnproved(N))
      continue;
    if (std::string Why = fault(N); !Why.empty()) {
      Fails[N] = true;
      Result.push_back({N, std::move(Why)});
    }
  }
  return Result;
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
