//===- lib/certify/partition/PartitionTerms.cpp - terms over parts --------===//
//
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "lib/certify/partition/PartitionTerms.h"

#include "lib/ops/Ops.h"

#include "llvm/ADT/STLExtras.h"

using namespace llvm;

namespace graft {

const PartTerm &PartitionTerms::term(Endpoint E) {
  static const PartTerm Nothing;
  if (E.isControl())
    return Nothing;
  // A cycle of new nodes has no term.
  auto [It, New] = Known.try_emplace({E.Node, E.Port});
  if (New && Depth < MaxDepth) {
    ++Depth;
    PartTerm X = evaluate(E);
    --Depth;
    if (X.Kind != PartTerm::None)
      Explained[E.Node] = true;
    It->second = std::move(X);
  }
  return It->second;
}

PartTerm PartitionTerms::evaluate(Endpoint E) {
  NodeId I = InputOf[E.Node];
  if (I == NoNode)
    return evaluateNew(E);
  PartTerm X;
  if (G.isOp(E.Node, op::RestoreV2)) {
    auto It = RestoredTerms.find({E.Node, E.Port});
    return It == RestoredTerms.end() ? X : It->second;
  }
  if (SaverConsts.contains(E.Node))
    return X;
  X.Kind = PartTerm::Same;
  X.E = {I, E.Port};
  return X;
}

/// Returns true if \p Number assigns elements to the parts that begin at the
/// offsets \p At.
static bool isRoute(const PartTerm &Number, ArrayRef<int64_t> At) {
  if (At.empty() || At[0] != 0)
    return false;
  if (!Number.Even)
    return ArrayRef<int64_t>(Number.List) == At.drop_front();
  for (auto [I, Begin] : enumerate(At))
    if (Begin != static_cast<int64_t>(I) * Number.List[0])
      return false;
  return Number.List[0] > 0;
}

PartTerm PartitionTerms::alias(Endpoint E, const PartTerm &X) {
  NodeId N = E.Node;
  PartTerm R;
  bool IsRef = G.isRefOutput(X.Kind == PartTerm::Handle ? in(N, 0).Node : N,
                             in(N, 0).Port);
  if (IsRef && G.isOp(N, op::Identity)) {
    R = X;
    R.Kind = PartTerm::PartRead;
    R.Waits = waitsOf(N, /*IsRead=*/true);
    return R;
  }
  auto It = GoneAliases.find(X.E.Node);
  if (It == GoneAliases.end())
    return R;
  for (NodeId A : It->second) {
    ArrayRef<Endpoint> Was = In.inputs(A);
    bool Is = inputOp(A) == G.opName(N) && firstAlias(Was[0]) == X.E &&
              In.numData(A) == G.node(N).NumData &&
              waitsOfInput(A) == waitsOf(N) && sameAttrs(In.attrBytes(A), N);
    for (unsigned K = 1; Is && K < In.numData(A); ++K) {
      const PartTerm &Y = term(in(N, K));
      Is = Y.Kind == PartTerm::Same && Y.E == Was[K];
    }
    if (!Is)
      continue;
    R = X;
    R.E = {A, E.Port};
    return R;
  }
  return R;
}

PartTerm PartitionTerms::slice(Endpoint E) {
  PartTerm R;
  const PartTerm &Of = term(in(E.Node, 0));
  auto Sizes = ints(in(E.Node, 1)), Axis = ints(in(E.Node, 2));
  if ((Of.Kind != PartTerm::Same && Of.Kind != PartTerm::WholeRead) || !Sizes ||
      !Axis || Axis->size() != 1 || E.Port >= Sizes->size() ||
      !waitsForContext(E.Node))
    return R;
  R = Of;
  R.Kind = PartTerm::Slice;
  R.OfValue = Of.Kind == PartTerm::WholeRead;
  R.Axis = (*Axis)[0];
  for (auto [I, Size] : enumerate(*Sizes)) {
    if (Size < 0)
      return {};
    if (I < E.Port)
      R.Offset += Size;
    R.Total += Size;
  }
  R.Size = (*Sizes)[E.Port];
  return R;
}

PartTerm PartitionTerms::concat(NodeId N) {
  unsigned Count = G.node(N).NumData - 1;
  auto Axis = ints(in(N, Count));
  PartTerm R;
  if (!Axis || Axis->size() != 1 || !waitsForContext(N))
    return R;
  const PartTerm &First = term(in(N, 0));
  if (First.Kind == PartTerm::Shape && Count == 2 && (*Axis)[0] == 0) {
    auto Row = ints(in(N, 1));
    if (!Row)
      return R;
    R = First;
    R.Kind = PartTerm::RowsShape;
    R.List = *Row;
    return R;
  }
  if (First.Kind == PartTerm::Slice) {
    int64_t Next = 0;
    for (unsigned I = 0; I < Count; ++I) {
      const PartTerm &X = term(in(N, I));
      if (X.Kind != PartTerm::Slice || X.E != First.E || X.OfValue ||
          X.Axis != (*Axis)[0] || X.Offset != Next || X.Total != First.Total)
        return R;
      Next += X.Size;
    }
    if (Next != First.Total)
      return R;
    R.Kind = PartTerm::Same;
    R.E = First.E;
    return R;
  }
  bool Reads = First.Kind == PartTerm::PartRead;
  const PartedVariable *C =
      Reads || First.Kind == PartTerm::Found ? cutOf(First.E) : nullptr;
  if (!C || Count != C->Parts.size())
    return R;
  for (unsigned I = 0; I < Count; ++I) {
    const PartTerm &X = term(in(N, I));
    if (X.Kind != First.Kind || X.E != First.E || X.By != First.By ||
        X.Index != I || X.Waits != First.Waits || !X.List.empty() ||
        X.OfValue != First.OfValue || X.RunsAfter != First.RunsAfter)
      return R;
  }
  int64_t FromEnd = int64_t(C->Axis) - int64_t(C->Shape.size());
  if ((*Axis)[0] != FromEnd && (!Reads || (*Axis)[0] != int64_t(C->Axis)))
    return R;
  // Lookups in parts along axis 0 are stitched, not concatenated.
  if (!Reads && C->Axis == 0)
    return R;
  R = First;
  R.Kind = Reads ? PartTerm::WholeRead : PartTerm::Lookup;
  R.Index = 0;
  return R;
}

PartTerm PartitionTerms::partNumbers(NodeId N) {
  PartTerm R;
  StringRef Op = G.opName(N);
  if (Op == op::Cast)
    return term(in(N, 0)).Kind == PartTerm::PartNumber ? term(in(N, 0)) : R;
  if (Op == op::FloorDiv || Op == op::GreaterEqual) {
    const PartTerm &X = term(in(N, 0));
    auto By = ints(in(N, 1));
    if (X.Kind != PartTerm::Flat || !By || By->size() != 1)
      return R;
    R.Kind = PartTerm::PartNumber;
    R.E = X.E;
    R.Even = Op == op::FloorDiv;
    R.List = *By;
    return R;
  }
  for (Endpoint E : G.dataInputs(N)) {
    const PartTerm &X = term(E);
    if (X.Kind != PartTerm::PartNumber || X.Even ||
        (R.Kind != PartTerm::None && R.E != X.E))
      return {};
    R.Kind = PartTerm::PartNumber;
    R.E = X.E;
    append_range(R.List, X.List);
  }
  llvm::sort(R.List);
  return R;
}

PartTerm PartitionTerms::sent(Endpoint E) {
  PartTerm R;
  const PartTerm &What = term(in(E.Node, 0)), &To = term(in(E.Node, 1));
  int64_t Count = G.intAttr(E.Node, "num_partitions").value_or(0);
  if (To.Kind != PartTerm::PartNumber || Count <= 0 || !waitsForContext(E.Node))
    return R;
  SmallVector<int64_t, 4> Begins;
  if (To.Even) {
    for (int64_t I = 0; I < Count; ++I)
      Begins.push_back(I * To.List[0]);
  } else {
    Begins.push_back(0);
    append_range(Begins, To.List);
  }
  bool Fits = isRoute(To, Begins) && int64_t(Begins.size()) == Count;
  // The rows of a vector are reshaped to [-1], as indices are.
  bool IsOfOtherShape =
      What.Kind == PartTerm::Reshaped || What.Kind == PartTerm::Flat;
  if (What.Kind == PartTerm::Local)
    Fits &= What.E == To.E && What.List == Begins;
  else if (What.Kind == PartTerm::Numbers)
    Fits &= What.E == To.E;
  else
    Fits &= What.Kind == PartTerm::Same || IsOfOtherShape;
  if (!Fits)
    return R;
  R.Kind = What.Kind == PartTerm::Local     ? PartTerm::SentLocal
           : What.Kind == PartTerm::Numbers ? PartTerm::SentNumbers
                                            : PartTerm::SentRows;
  R.E = What.E;
  R.By = To.E;
  R.Index = E.Port;
  R.List = Begins;
  // Reshaped rows: the op that reads them determines the shape of a row.
  R.OfValue = IsOfOtherShape;
  return R;
}

PartTerm PartitionTerms::lookup(NodeId N) {
  PartTerm R;
  const PartTerm &Table = term(in(N, 0)), &Ids = term(in(N, 1));
  bool OfHandle = G.isOp(N, op::ResourceGather);
  if (Table.Kind != (OfHandle ? PartTerm::Handle : PartTerm::PartRead) ||
      G.intAttr(N, "batch_dims").value_or(0) != 0)
    return R;
  if (G.isOp(N, op::GatherV2))
    if (auto Axis = ints(in(N, 2)); !Axis || *Axis != ArrayRef<int64_t>{0})
      return R;
  const PartedVariable *C = cutOf(Table.E);
  bool Direct = Ids.Kind == PartTerm::Same && C && C->Axis != 0;
  bool Sent = Ids.Kind == PartTerm::SentLocal && C && C->Axis == 0 &&
              Ids.Index == Table.Index &&
              ArrayRef<int64_t>(Ids.List) == ArrayRef<int64_t>(C->Offsets);
  if (!Direct && !Sent)
    return R;
  R.Kind = PartTerm::Found;
  R.OfValue = !OfHandle;
  R.E = Table.E;
  R.By = Ids.E;
  R.Index = Table.Index;
  R.Waits = OfHandle ? 0 : Table.Waits;
  R.RunsAfter = waitsOf(N);
  if (Sent)
    R.List = Ids.List;
  return R;
}

PartTerm PartitionTerms::stitch(NodeId N) {
  PartTerm R;
  unsigned Count = G.node(N).NumData / 2;
  const PartTerm &First = term(in(N, Count));
  const PartedVariable *C =
      First.Kind == PartTerm::Found ? cutOf(First.E) : nullptr;
  if (!C || C->Axis != 0 || Count != C->Parts.size() || !waitsForContext(N))
    return R;
  for (unsigned I = 0; I < Count; ++I) {
    const PartTerm &Place = term(in(N, I)), &Rows = term(in(N, Count + I));
    if (Place.Kind != PartTerm::SentNumbers || Place.By != First.By ||
        Place.Index != I || Place.List != First.List ||
        Rows.Kind != PartTerm::Found || Rows.E != First.E ||
        Rows.By != First.By || Rows.Index != I || Rows.Waits != First.Waits ||
        Rows.RunsAfter != First.RunsAfter || Rows.OfValue != First.OfValue)
      return R;
  }
  R = First;
  R.Kind = PartTerm::FlatLookup;
  R.Index = 0;
  return R;
}

PartTerm PartitionTerms::reshape(NodeId N) {
  PartTerm R;
  const PartTerm &X = term(in(N, 0)), &To = term(in(N, 1));
  if (X.Kind == PartTerm::FlatLookup) {
    const PartedVariable *C = cutOf(X.E);
    ArrayRef<int64_t> Row = ArrayRef(C->Shape).drop_front();
    bool Fits =
        To.E == X.By && (To.Kind == PartTerm::RowsShape
                             ? ArrayRef<int64_t>(To.List) == Row
                             : To.Kind == PartTerm::Shape && Row.empty());
    if (!Fits)
      return R;
    R = X;
    R.Kind = PartTerm::Lookup;
    R.List.clear();
    return R;
  }
  auto Shape = ints(in(N, 1));
  if (X.Kind != PartTerm::Same || !Shape || !waitsForContext(N))
    return R;
  R.E = X.E;
  R.Kind = Shape->size() == 1 && (*Shape)[0] == -1 ? PartTerm::Flat
                                                   : PartTerm::Reshaped;
  R.List = *Shape;
  return R;
}

PartTerm PartitionTerms::evaluateNew(Endpoint E) {
  NodeId N = E.Node;
  PartTerm R;
  StringRef Op = G.opName(N);
  if (auto It = PartIndex.find(N); It != PartIndex.end()) {
    R.Kind = PartTerm::Handle;
    R.E = {Cuts[It->second.first].Var, 0};
    R.Index = It->second.second;
    return R;
  }
  if (auto It = UpdateOf.find(N); It != UpdateOf.end()) {
    if (E.Port == 0 && cutOf({It->second, 0}))
      R = term(in(N, 0));
    if (R.Kind == PartTerm::Handle)
      R.E = {It->second, 0};
    return R;
  }
  if (G.node(N).NumData == 0)
    return R;
  const PartTerm &X = term(in(N, 0));
  if (X.Kind == PartTerm::Handle) {
    if (Op == op::ReadVariableOp) {
      R = X;
      R.Kind = PartTerm::PartRead;
      R.Waits = waitsOf(N);
      return R;
    }
    if (Op == op::VarIsInitializedOp || Op == op::IsVariableInitialized) {
      R = X;
      R.Kind = PartTerm::Initialized;
      R.List = {int64_t(X.Index)};
      R.Waits = waitsOf(N);
      return R;
    }
    return Op == op::ResourceGather ? lookup(N) : alias(E, X);
  }
  if (Op == op::Gather || (Op == op::GatherV2 && X.Kind == PartTerm::PartRead))
    return lookup(N);
  if (!waitsForContext(N))
    return R;
  if (Op == op::SplitV)
    return slice(E);
  if (Op == op::ConcatV2)
    return concat(N);
  if (Op == op::Reshape)
    return reshape(N);
  if (Op == op::Cast || Op == op::FloorDiv || Op == op::GreaterEqual ||
      Op == op::AddN || Op == op::AddV2 || Op == op::Add)
    return partNumbers(N);
  if (Op == op::DynamicPartition)
    return sent(E);
  if (Op == op::ParallelDynamicStitch || Op == op::DynamicStitch)
    return stitch(N);
  if (Op == op::LogicalAnd) {
    const PartTerm &Y = term(in(N, 1));
    if (X.Kind != PartTerm::Initialized || Y.Kind != X.Kind || X.E != Y.E ||
        X.Waits != Y.Waits)
      return R;
    R = X;
    append_range(R.List, Y.List);
    return R;
  }
  bool OfSame = X.Kind == PartTerm::Same;
  if ((Op == op::Size && (OfSame || X.Kind == PartTerm::Flat)) ||
      (Op == op::Shape && OfSame)) {
    R.Kind = Op == op::Size ? PartTerm::Count : PartTerm::Shape;
    R.E = X.E;
    return R;
  }
  if (Op == op::Range) {
    auto Start = ints(in(N, 0)), Delta = ints(in(N, 2));
    const PartTerm &End = term(in(N, 1));
    if (Start && Delta && *Start == ArrayRef<int64_t>{0} &&
        *Delta == ArrayRef<int64_t>{1} && End.Kind == PartTerm::Count) {
      R.Kind = PartTerm::Numbers;
      R.E = End.E;
    }
    return R;
  }
  if (Op == op::Sub) {
    const PartTerm &Begin = term(in(N, 1));
    if (X.Kind == PartTerm::Flat && Begin.Kind == PartTerm::Begin &&
        Begin.E == X.E) {
      R = Begin;
      R.Kind = PartTerm::Local;
    }
    return R;
  }
  if (Op == op::GatherV2) {
    auto At = ints(in(N, 0)), Axis = ints(in(N, 2));
    const PartTerm &Number = term(in(N, 1));
    if (At && Axis && *Axis == ArrayRef<int64_t>{0} &&
        Number.Kind == PartTerm::PartNumber && isRoute(Number, *At) &&
        G.intAttr(N, "batch_dims").value_or(0) == 0) {
      R.Kind = PartTerm::Begin;
      R.E = Number.E;
      R.List = *At;
    }
  }
  return R;
}

} // namespace graft
