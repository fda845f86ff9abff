//===- lib/certify/forms/PackCheck.cpp - tensors that travel as one -------===//
//
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "lib/certify/forms/PackCheck.h"

#include "lib/ops/Ops.h"

using namespace llvm;

namespace graft {

static bool isPack(const Graph &G, NodeId N, StringRef Op) {
  return G.node(N).Kind == Inserted::Pack && G.isOp(N, Op);
}

/// The ConcatV2 whose tensors \p Split takes apart.
static NodeId packOf(const Graph &G, NodeId Split,
                     function_ref<bool(NodeId)> Passes) {
  Endpoint E = G.input(Split, 0);
  for (unsigned Steps = 0; !isPack(G, E.Node, op::ConcatV2); ++Steps) {
    if (!Passes(E.Node) || G.node(E.Node).NumData == 0 || E.Port != 0 ||
        Steps > G.size())
      return NoNode;
    E = G.input(E.Node, 0);
  }
  return E.Node;
}

PackedTensor unpacked(const Graph &G, NodeId N,
                      function_ref<bool(NodeId)> Passes) {
  PackedTensor Result;
  if (!isPack(G, N, op::Reshape))
    return {};
  Endpoint Part = G.input(N, 0);
  if (!isPack(G, Part.Node, op::SplitV))
    return {};
  Result.Split = Part.Node;
  Result.Concat = packOf(G, Part.Node, Passes);
  if (Result.Concat == NoNode || Part.Port + 1 >= G.node(Result.Concat).NumData)
    return {};
  Endpoint Flat = G.input(Result.Concat, Part.Port);
  if (isPack(G, Flat.Node, op::Reshape) &&
      !isPack(G, G.input(Flat.Node, 0).Node, op::SplitV))
    Result.Source = G.input(Flat.Node, 0);
  return Result;
}

static bool isAxisZero(const Graph &G, NodeId N) {
  NodeId Axis = G.input(N, G.node(N).NumData - 1).Node;
  auto Value = G.isOp(Axis, op::Const) ? constValue(G, Axis) : std::nullopt;
  return Value && Value->Shape.Dims.empty() && Value->HasInts &&
         Value->Ints[0] == 0;
}

/// The vector that input \p I of \p N is, a constant of any length.
static std::optional<TensorValue> vectorAt(const Graph &G, NodeId N,
                                           unsigned I) {
  if (I >= G.node(N).NumData || !G.isOp(G.input(N, I).Node, op::Const))
    return std::nullopt;
  auto Value = constValue(G, G.input(N, I).Node, INT32_MAX);
  if (!Value || !Value->HasInts || Value->Shape.Dims.size() != 1)
    return std::nullopt;
  return Value;
}

static StringRef splitFault(const Graph &G, const DimAnalysis &Dims, NodeId N,
                            function_ref<bool(NodeId)> Passes) {
  NodeId Concat = packOf(G, N, Passes);
  if (Concat == NoNode)
    return "unpacks a tensor that was not packed";
  auto Sizes = vectorAt(G, N, 1);
  size_t Count = G.node(Concat).NumData - 1;
  if (!Sizes || Sizes->Ints.size() != Count || !isAxisZero(G, N) ||
      G.numOutputs(N) != Count)
    return "does not unpack as many tensors as were packed";
  for (unsigned I = 0; I < Count; ++I) {
    Endpoint Flat = G.input(Concat, I);
    Endpoint Source =
        isPack(G, Flat.Node, op::Reshape) ? G.input(Flat.Node, 0) : Flat;
    if (staticElements(Dims, Source) != Sizes->Ints[I])
      return "has different sizes than what was packed";
  }
  return "";
}

/// Whether \p N gives what it takes the shape of \p Source.
static bool restoresShape(const Graph &G, const DimAnalysis &Dims, NodeId N,
                          Endpoint Source) {
  auto Was = Dims.shape(Source);
  auto Now = vectorAt(G, N, 1);
  if (!Was || !Now || Was->size() != Now->Ints.size() ||
      !staticElements(Dims, Source))
    return false;
  for (size_t I = 0; I < Was->size(); ++I)
    if (Dims.table().number((*Was)[I]) != Now->Ints[I])
      return false;
  return true;
}

StringRef packFault(const Graph &G, const DimAnalysis &Dims, NodeId N,
                    function_ref<bool(NodeId)> Passes) {
  if (isPack(G, N, op::Const))
    return "";
  if (isPack(G, N, op::SplitV))
    return splitFault(G, Dims, N, Passes);
  if (isPack(G, N, op::ConcatV2))
    return isAxisZero(G, N) ? "" : "does not pack along axis 0";
  if (!isPack(G, N, op::Reshape))
    return "is not part of a pack";
  if (!isPack(G, G.input(N, 0).Node, op::SplitV)) {
    auto Shape = vectorAt(G, N, 1);
    return Shape && Shape->Ints == ArrayRef<int64_t>{-1}
               ? ""
               : "does not flatten what is packed";
  }
  PackedTensor From = unpacked(G, N, Passes);
  if (!From)
    return "unpacks a tensor that was not packed";
  return restoresShape(G, Dims, N, From.Source)
             ? ""
             : "has a different shape than what was packed";
}

} // namespace graft
