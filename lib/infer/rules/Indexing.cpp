//===- lib/infer/rules/Indexing.cpp - rows by index -------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
// Gathers, scatters and what finds indices.
//
//===----------------------------------------------------------------------===//

#include "lib/infer/rules/Rules.h"

using namespace llvm;

namespace graft {

namespace sizes {

static void gather(SizeContext &C) {
  Dims X = C.in(0), Rows = C.in(1);
  if (!X || !Rows)
    return;
  int64_t Axis = 0;
  if (C.isOp(op::GatherV2)) {
    auto At = C.num(2);
    if (!At)
      return;
    Axis = *At < 0 ? *At + int64_t(X->size()) : *At;
  }
  int64_t Lead = C.intAttr("batch_dims").value_or(0);
  for (int64_t I = 0;
       I < Lead && I < int64_t(std::min(X->size(), Rows->size())); ++I)
    C.same((*C.in(0))[I], (*C.in(1))[I]);
  if (Lead != 0 || Axis < 0 || Axis >= int64_t(X->size()))
    return;
  DimList List(X->begin(), X->begin() + Axis);
  List.append(Rows->begin(), Rows->end());
  List.append(X->begin() + Axis + 1, X->end());
  C.setShape(0, List);
}

/// The last axis of the indices says which element, the others where it goes.
static void gatherNd(SizeContext &C) {
  Dims X = C.in(0), Index = C.in(1);
  if (!X || !Index || Index->empty())
    return;
  int64_t Depth = C.Table.number(Index->back());
  if (Depth < 0 || Depth > int64_t(X->size()) || C.Table.hasSym(Index->back()))
    return;
  DimList List(Index->begin(), Index->end() - 1);
  List.append(X->begin() + Depth, X->end());
  C.setShape(0, List);
}

/// The result is as large as the tensor; what is put has the axes of the
/// indices but the last, and those of the tensor that no index goes through.
static void tensorScatter(SizeContext &C) {
  C.passShape(0, C.inRun(0));
  Dims X = C.in(0), Index = C.in(1), Rows = C.in(2);
  if (!X || !Index || !Rows || Index->empty())
    return;
  int64_t Depth = C.Table.number(Index->back());
  if (C.Table.hasSym(Index->back()) || Depth < 0 || Depth > int64_t(X->size()))
    return;
  DimList List(Index->begin(), Index->end() - 1);
  List.append(X->begin() + Depth, X->end());
  C.sameShapes(*Rows, List);
}

void unsortedSegment(SizeContext &C) {
  Dims Data = C.in(0), Ids = C.in(1), Count = C.val(2);
  if (!Data || !Ids || Data->size() < Ids->size())
    return;
  C.sameShapes(Data->take_front(Ids->size()), *Ids);
  DimList List{Count && Count->size() == 1 ? (*Count)[0] : C.slot(0)};
  List.append(Data->begin() + Ids->size(), Data->end());
  C.setShape(0, List);
}

static void oneHot(SizeContext &C) {
  Dims X = C.in(0), Depth = C.val(1);
  if (!X || C.intAttr("axis").value_or(-1) != -1)
    return;
  DimList List(X->begin(), X->end());
  List.push_back(Depth && Depth->size() == 1 ? (*Depth)[0] : C.slot(0));
  C.setShape(0, List);
}

static void topK(SizeContext &C) {
  Dims X = C.in(0), K = C.val(1);
  if (!X || X->empty())
    return;
  DimList List(X->begin(), X->end());
  if (auto Count = C.num(1);
      Count && C.Known.localNumber(List.back()) != UnknownSize)
    C.require(*Count <= C.Known.localNumber(List.back()), List.back(),
              "selects more rows than a replica has");
  List.back() = K && K->size() == 1 ? (*K)[0] : C.slot(0);
  C.setShape(0, List);
  C.setShape(1, List);
}

static void unique(SizeContext &C) {
  C.setShape(0, C.slot(0));
  if (Dims X = C.in(0))
    C.setShape(1, *X);
}

} // namespace sizes

namespace values {

static void gather(SizeContext &C) {
  Dims X = C.val(0);
  if (!X)
    return;
  auto Rows = C.nums(1);
  if (!Rows)
    return;
  DimList List;
  for (int64_t R : *Rows) {
    if (R < 0 || R >= int64_t(X->size()))
      return;
    List.push_back((*X)[R]);
  }
  C.setValue(0, List);
}

} // namespace values

ArrayRef<OpRule> families::indexing() {
  static constexpr OpRule Rules[] = {
      // Rows by index.
      {.Op = op::Gather,
       .Sizes = sizes::gather,
       .Values = values::gather,
       .Type = TypeRule::Gather},
      {.Op = op::GatherV2,
       .Sizes = sizes::gather,
       .Values = values::gather,
       .Type = TypeRule::Gather},
      {.Op = op::ResourceGather,
       .Sizes = sizes::gather,
       .Type = TypeRule::Gather},
      {.Op = op::GatherNd,
       .Sizes = sizes::gatherNd,
       .Type = TypeRule::GatherNd},
      {.Op = op::ResourceGatherNd,
       .Sizes = sizes::gatherNd,
       .Type = TypeRule::GatherNd},
      {.Op = op::ScatterNd,
       .Sizes = sizes::fromSizes<2>,
       .Type = TypeRule::ScatterNd},
      {.Op = op::TensorScatterAdd,
       .Sizes = sizes::tensorScatter,
       .Type = TypeRule::TensorScatter},
      {.Op = op::TensorScatterMax,
       .Sizes = sizes::tensorScatter,
       .Type = TypeRule::TensorScatter},
      {.Op = op::TensorScatterMin,
       .Sizes = sizes::tensorScatter,
       .Type = TypeRule::TensorScatter},
      {.Op = op::TensorScatterSub,
       .Sizes = sizes::tensorScatter,
       .Type = TypeRule::TensorScatter},
      {.Op = op::TensorScatterUpdate,
       .Sizes = sizes::tensorScatter,
       .Type = TypeRule::TensorScatter},
      {.Op = op::Unique, .Sizes = sizes::unique, .Type = TypeRule::Unique},
      {.Op = op::UnsortedSegmentSum,
       .Sizes = sizes::unsortedSegment,
       .Type = TypeRule::UnsortedSegmentSum},
      {.Op = op::UnsortedSegmentMax,
       .Sizes = sizes::unsortedSegment,
       .Type = TypeRule::UnsortedSegmentMax},
      {.Op = op::UnsortedSegmentMin,
       .Sizes = sizes::unsortedSegment,
       .Type = TypeRule::UnsortedSegmentMin},
      {.Op = op::OneHot, .Sizes = sizes::oneHot, .Type = TypeRule::OneHot},
      {.Op = op::TopKV2, .Sizes = sizes::topK, .Type = TypeRule::TopK},
  };
  return Rules;
}

} // namespace graft
