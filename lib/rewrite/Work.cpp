//===- lib/rewrite/Work.cpp - counts the work of an op --------------------===//
//
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "lib/rewrite/Work.h"

#include "lib/ops/Ops.h"
#include "lib/strategy/Resources.h"

#include <algorithm>

using namespace llvm;

namespace graft {

double WorkCounter::size(DimId D) const {
  const DimTable &Table = Dims.table();
  int64_t Number = Table.number(D);
  if (Table.hasSym(D) && (Of == OneRow || Number == UnknownSize))
    if (auto S = Table.sym(D))
      return static_cast<double>(std::max<int64_t>(1, S->C));
  return Number == UnknownSize ? 1 : static_cast<double>(Number);
}

double WorkCounter::elements(Endpoint E) const {
  double Count = 1;
  if (auto Shape = Dims.shape(E))
    for (DimId D : *Shape)
      Count *= size(D);
  return Count;
}

double WorkCounter::axis(Endpoint E, int FromEnd) const {
  auto Shape = Dims.shape(E);
  return Shape && Shape->size() >= static_cast<size_t>(FromEnd)
             ? size((*Shape)[Shape->size() - FromEnd])
             : 1;
}

double WorkCounter::bytes(Endpoint E) const {
  // A guess for strings and handles.
  constexpr double Unknown = 16;
  unsigned Bytes = bytesOf(G.outputType(E));
  return elements(E) * (Bytes == 0 ? Unknown : Bytes);
}

double WorkCounter::operations(NodeId N) const {
  StringRef Op = G.opName(N);
  double Count = 0;
  for (uint32_t Port = 0; Port < Dims.numOutputs(N); ++Port)
    Count += elements({N, Port});
  auto Flag = [&](StringRef Key) { return G.boolAttr(N, Key).value_or(false); };
  if (G.node(N).NumData < 2)
    return Count;
  if (Op == op::MatMul)
    return Count * axis(G.input(N, 0), Flag("transpose_a") ? 2 : 1);
  if (Op.starts_with(op::BatchMatMul))
    return Count * axis(G.input(N, 0), Flag("adj_x") ? 2 : 1);
  // The last axis of a filter is its output channels.
  auto Taps = [&](Endpoint Filter) {
    return elements(Filter) / axis(Filter, 1);
  };
  if (Op == op::Conv2D || Op == op::Conv3D)
    return Count * Taps(G.input(N, 1));
  if (G.node(N).NumData > 2 &&
      (Op == op::Conv2DBackpropInput || Op.starts_with("Conv3DBackpropInput")))
    return elements(G.input(N, 2)) * Taps(G.input(N, 1));
  if (G.node(N).NumData > 2 && (Op == op::Conv2DBackpropFilter ||
                                Op.starts_with("Conv3DBackpropFilter")))
    return elements(G.input(N, 2)) * Taps({N, 0});
  return Count;
}

} // namespace graft
