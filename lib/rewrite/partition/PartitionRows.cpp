//===- lib/rewrite/partition/PartitionRows.cpp - rows of variables in parts -=//
//
// SPDX-License-Identifier: Apache-2.0
//
// An index determines the part that has its row, and the row in that part:
//
//     flat = Reshape(ids, [-1])
//     part = flat / size, or the number of parts other than part 0 that begin
//            at or before it
//     local = flat - offsets[part]
//
// DynamicPartition keeps the order of the rows of a part, so repeated indices
// stay in order. Positions in `flat` are partitioned in the same way. They are
// the positions of the rows of each part in the result.
//
//===----------------------------------------------------------------------===//

#include "lib/ops/Ops.h"
#include "lib/rewrite/partition/PartitionEdit.h"

#include "llvm/ADT/STLExtras.h"

using namespace llvm;

namespace graft {

PartitionEditor::Route PartitionEditor::route(NodeId N, Endpoint Ids,
                                              const PartitionedVariable &Of) {
  unsigned Type = G.outputType(Ids);
  Route R;
  R.Type = Type;
  AttrRun Flat, Plain, ToPart;
  Flat.type("T", Type).type("Tshape", DT_INT32);
  Plain.type("T", Type);
  R.Flat = {add(N, "flat", op::Reshape,
                {Ids, Endpoint{vector(N, "flat/shape", -1), 0}}, Flat),
            0};
  ToPart.type("SrcT", Type).type("DstT", DT_INT32);
  if (all_equal(Of.Cut.Sizes)) {
    R.Part = {add(N, "part", op::FloorDiv,
                  {R.Flat,
                   Endpoint{scalar(N, "part/size", Of.Cut.Sizes[0], Type), 0}},
                  Plain),
              0};
    if (Type != DT_INT32)
      R.Part = {add(N, "part/number", op::Cast, R.Part, ToPart), 0};
  } else {
    SmallVector<Endpoint, 8> Later;
    AttrRun FromBool;
    FromBool.type("SrcT", DT_BOOL).type("DstT", DT_INT32);
    for (unsigned I = 1; I < Of.parts(); ++I) {
      Endpoint Begin{scalar(N, "part/begin_" + Twine(I), Of.Offsets[I], Type),
                     0};
      Endpoint Is{add(N, "part/is_in_" + Twine(I), op::GreaterEqual,
                      {R.Flat, Begin}, Plain),
                  0};
      Later.push_back(
          {add(N, "part/from_" + Twine(I), op::Cast, Is, FromBool), 0});
    }
    AttrRun Sum;
    Sum.integer("N", static_cast<int64_t>(Later.size())).type("T", DT_INT32);
    R.Part = Later.size() == 1
                 ? Later[0]
                 : Endpoint{add(N, "part", op::AddN, Later, Sum), 0};
  }
  AttrRun Gather;
  Gather.integer("batch_dims", 0);
  Gather.type("Taxis", DT_INT32).type("Tindices", DT_INT32);
  Gather.type("Tparams", Type);
  Endpoint Begins{vector(N, "offsets", Of.Offsets, Type), 0};
  Endpoint Begin{add(N, "offset", op::GatherV2,
                     {Begins, R.Part, Endpoint{scalar(N, "offset/axis", 0), 0}},
                     Gather),
                 0};
  R.Local = {add(N, "local", op::Sub, {R.Flat, Begin}, Plain), 0};
  return R;
}

Endpoint PartitionEditor::partition(NodeId N, const Twine &Suffix,
                                    Endpoint Data, Endpoint Part, unsigned Type,
                                    const PartitionedVariable &Of) {
  AttrRun Attrs;
  Attrs.type("T", Type).integer("num_partitions", Of.parts());
  return {add(N, Suffix, op::DynamicPartition, {Data, Part}, Attrs), 0};
}

void PartitionEditor::rewriteLookup(NodeId N, const PartitionedVariable &Of,
                                    ArrayRef<Endpoint> Params) {
  Endpoint Ids = G.input(N, 1);
  auto LookUp = [&](unsigned I, Endpoint Where) {
    SmallVector<Endpoint, 4> Inputs(G.inputs(N));
    Inputs[0] = Params[I];
    Inputs[1] = Where;
    return Endpoint{clone(N, G.name(N) + "/part_" + Twine(I), I, Inputs), 0};
  };
  SmallVector<Endpoint, 8> Rows, Places;
  if (Of.Cut.Axis != 0) {
    for (unsigned I = 0; I < Of.parts(); ++I)
      Rows.push_back(LookUp(I, Ids));
    return becomeIdentity(N, {concat(N, Rows, Of.Type, Of.axisFromEnd()), 0},
                          Of.Type);
  }
  Route R = route(N, Ids, Of);
  Endpoint Local = partition(N, "rows", R.Local, R.Part, R.Type, Of);
  AttrRun SizeOf, Range, Stitch;
  SizeOf.type("T", R.Type).type("out_type", DT_INT32);
  Range.type("Tidx", DT_INT32);
  Endpoint Size{add(N, "size", op::Size, R.Flat, SizeOf), 0};
  Endpoint First{scalar(N, "range/start", 0), 0};
  Endpoint Step{scalar(N, "range/delta", 1), 0};
  Endpoint Numbers{add(N, "range", op::Range, {First, Size, Step}, Range), 0};
  Endpoint Place = partition(N, "places", Numbers, R.Part, DT_INT32, Of);
  for (unsigned I = 0; I < Of.parts(); ++I) {
    Rows.push_back(LookUp(I, {Local.Node, I}));
    Places.push_back({Place.Node, I});
  }
  Stitch.integer("N", Of.parts()).type("T", Of.Type);
  SmallVector<Endpoint, 16> Inputs(ArrayRef<Endpoint>{Places});
  append_range(Inputs, Rows);
  Endpoint All{add(N, "stitch", op::ParallelDynamicStitch, Inputs, Stitch), 0};
  AttrRun ShapeOf, Reshape;
  ShapeOf.type("T", R.Type).type("out_type", DT_INT32);
  Endpoint Shape{add(N, "shape", op::Shape, Ids, ShapeOf), 0};
  if (Of.rank() > 1) {
    NodeId Row = vector(N, "row_shape", ArrayRef(Of.Shape).drop_front());
    Shape = {concat(N, {Shape, {Row, 0}}, DT_INT32, 0), 0};
  }
  Reshape.type("T", Of.Type).type("Tshape", DT_INT32);
  become(N, op::Reshape, {All, Shape}, Reshape);
}

void PartitionEditor::splitRows(NodeId N, const PartitionedVariable &Of,
                                SmallVectorImpl<Endpoint> &Values,
                                SmallVectorImpl<Endpoint> &Ids) {
  UpdateDef Def = Vars.update(G, N);
  Endpoint Value = G.input(N, static_cast<unsigned>(Def.Grad));
  Endpoint Index = G.input(N, static_cast<unsigned>(Def.Indices));
  bool IsScatter = Def.Kind == UpdateKind::Scatter;
  // A scatter may write one scalar to all elements of all rows.
  auto Constant = constValue(G, Value.Node);
  bool IsScalar = IsScatter && Constant && !Constant->Shape.UnknownRank &&
                  Constant->Shape.Dims.empty();
  if (Of.Cut.Axis != 0) {
    NodeId Cut = IsScalar ? NoNode
                          : split(N, Value, Of.Type, Of.Cut.Sizes,
                                  IsScatter ? Of.axisFromEnd() : Of.Cut.Axis);
    for (unsigned I = 0; I < Of.parts(); ++I) {
      Values.push_back(IsScalar ? Value : Endpoint{Cut, I});
      Ids.push_back(Index);
    }
    return;
  }
  Route R = route(N, Index, Of);
  Endpoint Local = partition(N, "rows", R.Local, R.Part, R.Type, Of);
  Endpoint Cut = Value;
  if (!IsScalar) {
    // Indices of a scatter may have any shape.
    if (IsScatter) {
      SmallVector<int64_t, 4> Rows(Of.Shape);
      Rows[0] = -1;
      AttrRun Reshape;
      Reshape.type("T", Of.Type).type("Tshape", DT_INT32);
      Endpoint Shape{vector(N, "values/shape", Rows), 0};
      Value = {add(N, "values", op::Reshape, {Value, Shape}, Reshape), 0};
    }
    Cut = partition(N, "values/parts", Value, R.Part, Of.Type, Of);
  }
  for (unsigned I = 0; I < Of.parts(); ++I) {
    Values.push_back(IsScalar ? Value : Endpoint{Cut.Node, I});
    Ids.push_back({Local.Node, I});
  }
}

bool PartitionEditor::isLookup(Use U, const PartitionedVariable &Of) const {
  StringRef Op = G.opName(U.User);
  if (Of.Cut.Axis != 0 || U.Index != 0 ||
      (Op != op::Gather && Op != op::GatherV2))
    return false;
  Endpoint Ids = G.input(U.User, 1);
  unsigned Type = G.outputType(Ids);
  if ((Type != DT_INT32 && Type != DT_INT64) ||
      Ids.Node == G.input(U.User, 0).Node)
    return false;
  if (Op == op::Gather)
    return true;
  auto Axis = constValue(G, G.input(U.User, 2).Node);
  return G.intAttr(U.User, "batch_dims").value_or(0) == 0 && Axis &&
         Axis->HasInts && Axis->Ints.size() == 1 && Axis->Ints[0] == 0;
}

SmallVector<NodeId, 4>
PartitionEditor::lookupsOf(NodeId N, const PartitionedVariable &Of) const {
  SmallVector<NodeId, 4> Found;
  bool Looks = false;
  for (Use U : G.uses(N)) {
    if (!G.isData(U) || isSaved(U.User))
      continue;
    bool IsLookup = isLookup(U, Of);
    if (!IsLookup && !G.isOp(U.User, op::Shape))
      return {};
    Looks |= IsLookup;
    Found.push_back(U.User);
  }
  // A read of the shape alone needs no rewrite.
  if (!Looks)
    Found.clear();
  return Found;
}

} // namespace graft
