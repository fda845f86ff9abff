//===- lib/certify/forms/PackCheck.cpp - tensors that travel as one -------===//
//
// SPDX-License-Identifier: Apache-2.0
//
// Tensors are packed into one tensor, each in a range of elements, and
// unpacked:
//
//     flat_i = Reshape(x_i, [-1])     pack = ConcatV2(flat_0, ..., flat_n, 0)
//     ... nodes that work on each element by itself, such as a reduction ...
//     parts = SplitV(pack, sizes, 0)   y_i = Reshape(parts:i, shape of x_i)
//
// So y_i equals x_i if sizes and shapes agree. The certificate checks this by
// its own inference.
//
//===----------------------------------------------------------------------===//

#include "lib/certify/forms/InsertedForm.h"
#include "lib/ops/Ops.h"
#include "lib/ops/ProgramOps.h"

using namespace llvm;

namespace graft {

static bool isPack(const Graph &G, NodeId N, StringRef Op) {
  return G.node(N).Kind == Inserted::Pack && G.isOp(N, Op);
}

/// Returns the ConcatV2 whose tensors \p Split takes apart, or NoNode.
static NodeId packOf(const Comparison &C, NodeId Split) {
  const Graph &G = C.G;
  Endpoint E = G.input(Split, 0);
  for (unsigned Steps = 0; !isPack(G, E.Node, op::ConcatV2); ++Steps) {
    if (!formOf(G.node(E.Node).Kind).IsElementwise || !forwards(C, E.Node) ||
        G.node(E.Node).NumData == 0 || E.Port != 0 || Steps > G.size())
      return NoNode;
    E = G.input(E.Node, 0);
  }
  return E.Node;
}

/// Returns operand \p I of \p Concat. If repeat-rows scaled this term by n/N
/// (RowRepeat.h), because another term of the pack needs no such factor,
/// returns the unscaled term. RepeatedRows checks the factor.
static Endpoint termOf(const Graph &G, NodeId Concat, unsigned I) {
  Endpoint Term = G.input(Concat, I);
  return G.node(Term.Node).Kind == Inserted::Scale &&
                 G.intAttr(Term.Node, ShareAttr).value_or(0) != 0
             ? G.input(Term.Node, 0)
             : Term;
}

/// Returns the packed tensor x_i if \p E is the unpacked tensor y_i; otherwise
/// no node.
static Endpoint unpacked(const Comparison &C, Endpoint E) {
  const Graph &G = C.G;
  if (!isPack(G, E.Node, op::Reshape))
    return {};
  Endpoint Part = G.input(E.Node, 0);
  if (!isPack(G, Part.Node, op::SplitV))
    return {};
  NodeId Concat = packOf(C, Part.Node);
  if (Concat == NoNode || Part.Port + 1 >= G.node(Concat).NumData)
    return {};
  NodeId Flat = termOf(G, Concat, Part.Port).Node;
  return isPack(G, Flat, op::Reshape) &&
                 !isPack(G, G.input(Flat, 0).Node, op::SplitV)
             ? G.input(Flat, 0)
             : Endpoint();
}

static bool isAxisZero(const Graph &G, NodeId N) {
  NodeId Axis = G.input(N, G.node(N).NumData - 1).Node;
  auto Value = G.isOp(Axis, op::Const) ? constValue(G, Axis) : std::nullopt;
  return Value && Value->Shape.Dims.empty() && Value->HasInts &&
         Value->Ints[0] == 0;
}

/// Returns input \p I of \p N if it is a constant vector, of any length.
static std::optional<TensorValue> vectorAt(const Graph &G, NodeId N,
                                           unsigned I) {
  if (I >= G.node(N).NumData || !G.isOp(G.input(N, I).Node, op::Const))
    return std::nullopt;
  auto Value = constValue(G, G.input(N, I).Node, INT32_MAX);
  if (!Value || !Value->HasInts || Value->Shape.Dims.size() != 1)
    return std::nullopt;
  return Value;
}

static StringRef splitFault(const Comparison &C, const DimAnalysis &Dims,
                            NodeId N) {
  const Graph &G = C.G;
  NodeId Concat = packOf(C, N);
  if (Concat == NoNode)
    return "unpacks a tensor that was not packed";
  auto Sizes = vectorAt(G, N, 1);
  size_t Count = G.node(Concat).NumData - 1;
  if (!Sizes || Sizes->Ints.size() != Count || !isAxisZero(G, N) ||
      G.numOutputs(N) != Count)
    return "does not unpack as many tensors as were packed";
  for (unsigned I = 0; I < Count; ++I) {
    Endpoint Flat = termOf(G, Concat, I);
    Endpoint Source =
        isPack(G, Flat.Node, op::Reshape) ? G.input(Flat.Node, 0) : Flat;
    if (staticElements(Dims, Source) != Sizes->Ints[I])
      return "has different sizes than the packed tensors";
  }
  return "";
}

/// Returns true if \p N reshapes its input to the shape of \p Source.
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

static StringRef fault(const Comparison &C, const DimAnalysis &Dims, NodeId N) {
  const Graph &G = C.G;
  if (isPack(G, N, op::Const))
    return "";
  if (isPack(G, N, op::SplitV))
    return splitFault(C, Dims, N);
  if (isPack(G, N, op::ConcatV2))
    return isAxisZero(G, N) ? "" : "does not pack along axis 0";
  if (!isPack(G, N, op::Reshape))
    return "is not part of a pack";
  if (!isPack(G, G.input(N, 0).Node, op::SplitV)) {
    auto Shape = vectorAt(G, N, 1);
    return Shape && Shape->Ints == ArrayRef<int64_t>{-1}
               ? ""
               : "does not flatten the tensor to be packed";
  }
  Endpoint Source = unpacked(C, {N, 0});
  if (Source.Node == NoNode)
    return "unpacks a tensor that was not packed";
  return restoresShape(G, Dims, N, Source)
             ? ""
             : "has a different shape than the packed tensor";
}

static void checkPack(Comparison &C, const ProgramFacts &Facts, NodeId N) {
  if (StringRef Fault = fault(C, Facts.Dims, N); !Fault.empty())
    C.error(N, Fault);
  checkWaits(C, N);
}

/// Returns true if \p N packs or unpacks tensors, or is a constant for that.
static bool recognizePack(const LoweredFile &File, NodeId N) {
  const Graph &G = File.G;
  auto IsPart = [&](NodeId Of) {
    if (File.In.find(G.name(Of)) != NoNode)
      return false;
    return G.isOp(Of, op::Reshape) ||
           (!File.isStamped(Of) &&
            (G.isOp(Of, op::ConcatV2) || G.isOp(Of, op::SplitV)));
  };
  return IsPart(N) || (G.isOp(N, op::Const) &&
                       G.anyUse(N, [&](Use U) { return IsPart(U.User); }));
}

const InsertedForm PackForm = {.StandsFor = unpacked,
                               .Check = checkPack,
                               .Recognize = recognizePack,
                               .IsTyped = true};

} // namespace graft
