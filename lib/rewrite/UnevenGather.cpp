//===- lib/rewrite/UnevenGather.cpp - rows of any number --------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "lib/rewrite/UnevenGather.h"

#include "lib/graph/AttrRun.h"
#include "lib/ops/Ops.h"
#include "lib/program/forms/LengthGather.h"

using namespace llvm;

namespace graft {

void gatherByLengths(Graph &G, NodeId N, int64_t Rank,
                     function_ref<Endpoint(Endpoint, StringRef)> Gather) {
  Endpoint X = G.input(N, 0);
  unsigned Type = G.outputType(X);
  auto Int = [](StringRef Key) { return AttrRun().type(Key, DT_INT32); };
  auto Add = [&](StringRef Suffix, StringRef Op, ArrayRef<Endpoint> Inputs,
                 AttrRun Attrs) {
    Attrs.boolean(LengthsAttr, true);
    NodeId New = G.insertNode((G.name(N) + Suffix).str(), Op, Inputs, X.Node,
                              Attrs, Inserted::Gather, Copies::PerReplica);
    G.node(New).Flags |= NF_LocalName;
    return Endpoint{New, 0};
  };
  auto Vector = [&](StringRef Suffix, ArrayRef<int64_t> Values) {
    auto Size = static_cast<int64_t>(Values.size());
    return Add(
        Suffix, op::Const, {},
        Int("dtype").raw("value", encodeIntTensor(DT_INT32, Size, Values)));
  };
  auto Scalar = [&](StringRef Suffix, int64_t Value) {
    return Add(Suffix, op::Const, {},
               Int("dtype").raw("value", encodeIntTensor(DT_INT32, {}, Value)));
  };
  auto Reshape = [&](StringRef Suffix, Endpoint E, Endpoint Shape,
                     unsigned Of) {
    Endpoint In[] = {E, Shape};
    return Add(Suffix, op::Reshape, In,
               AttrRun().type("T", Of).type("Tshape", DT_INT32));
  };
  int64_t PairsOfRows[] = {Rank, 2}, Column[] = {-1, 1};
  Endpoint Zero = Scalar("/zero", 0), One = Scalar("/one", 1);
  Endpoint Zeros = Vector("/zeros", int64_t(0));
  Endpoint Ones = Vector("/ones", int64_t(1));
  Endpoint Flat = Vector("/flat", int64_t(-1));
  Endpoint Shape = Add("/shape", op::Shape, X,
                       AttrRun().type("T", Type).type("out_type", DT_INT32));
  Endpoint First[] = {Shape, Zeros, Ones};
  Endpoint Length =
      Add("/length", op::Slice, First, Int("T").type("Index", DT_INT32));
  Endpoint Lengths = Gather(Length, "/lengths");
  Endpoint Along[] = {Lengths, Zeros};
  Endpoint Longest[] = {
      Add("/longest", op::Max, Along,
          Int("T").type("Tidx", DT_INT32).boolean("keep_dims", true)),
      Ones};
  Endpoint Most = Add("/most", op::Maximum, Longest, Int("T"));
  Endpoint Missing[] = {Most, Length};
  SmallVector<int64_t, 8> Others(2 * Rank - 2);
  Endpoint Pads[] = {Zeros, Add("/missing", op::Sub, Missing, Int("T")),
                     Vector("/others", Others), Zero};
  Endpoint Padded[] = {
      X, Reshape("/paddings",
                 Add("/ends", op::ConcatV2, Pads,
                     Int("T").integer("N", 3).type("Tidx", DT_INT32)),
                 Vector("/pairs", PairsOfRows), DT_INT32)};
  Endpoint All =
      Gather(Add("/padded", op::Pad, Padded,
                 AttrRun().type("T", Type).type("Tpaddings", DT_INT32)),
             "/all");
  Endpoint Numbers[] = {
      Zero, Reshape("/limit", Most, Vector("/none", {}), DT_INT32), One};
  Endpoint Compared[] = {
      Add("/numbers", op::Range, Numbers, Int("Tidx")),
      Reshape("/column", Lengths, Vector("/column_shape", Column), DT_INT32)};
  Endpoint IsRow = Reshape(
      "/is_row", Add("/below", op::Less, Compared, Int("T")), Flat, DT_BOOL);
  Endpoint Rows = Reshape(
      "/rows", Add("/where", op::Where, IsRow, AttrRun().type("T", DT_BOOL)),
      Flat, DT_INT64);
  for (StringRef Key : {"T", "axis", "uneven"})
    G.removeAttr(N, Key);
  G.setOp(N, op::GatherV2);
  Endpoint Taken[] = {All, Rows, Zero};
  G.setInputs(N, Taken);
  G.setTypeAttr(N, "Tparams", Type);
  G.setTypeAttr(N, "Tindices", DT_INT64);
  G.setTypeAttr(N, "Taxis", DT_INT32);
  G.setBoolAttr(N, LengthsAttr, true);
}

} // namespace graft
