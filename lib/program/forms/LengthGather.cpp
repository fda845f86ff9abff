//===- lib/program/forms/LengthGather.cpp - rows of any number --*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "lib/program/forms/LengthGather.h"

#include "lib/ops/Ops.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSwitch.h"
#include "llvm/Support/FormatVariadic.h"

using namespace llvm;

namespace graft {

static bool isPartOp(StringRef Op) {
  return StringSwitch<bool>(Op)
      .Cases(op::Const, op::Shape, op::Slice, op::Maximum, op::Max, op::Sub,
             true)
      .Cases(op::ConcatV2, op::Reshape, op::Pad, op::Range, op::Less, op::Where,
             true)
      .Case(op::GatherV2, true)
      .Default(false);
}

bool isLengthGatherOp(const Graph &G, NodeId N) {
  return G.node(N).Kind == Inserted::Gather && isPartOp(G.opName(N));
}

/// Returns a constant as text: its elements and its rank, 0 or 1.
static std::string literal(const Graph &G, NodeId N) {
  auto Value = constValue(G, N);
  if (!Value || !Value->HasInts || Value->Shape.Dims.size() > 1)
    return "?";
  std::string Text = Value->Shape.Dims.empty() ? "s" : "v";
  for (int64_t V : Value->Ints)
    Text += itostr(V) + ";";
  return Text;
}

/// Returns the text of the term that computes \p E from \p Source (`x`).
static std::string term(const Graph &G, Endpoint E, Endpoint Source,
                        unsigned Depth = 0) {
  const Node &This = G.node(E.Node);
  if (E == Source)
    return "x";
  bool IsPlace =
      G.isOp(E.Node, op::Identity) &&
      (This.Kind == Inserted::Gather || This.Kind == Inserted::Identity);
  bool IsMember =
      G.isOp(E.Node, op::CollectiveGather) && This.Kind == Inserted::Gather;
  if (E.Port != 0 || Depth > 16 ||
      !(IsPlace || IsMember || isLengthGatherOp(G, E.Node)))
    return "?";
  if (IsPlace)
    return term(G, G.input(E.Node, 0), Source, Depth + 1);
  if (G.isOp(E.Node, op::Const))
    return literal(G, E.Node);
  std::string Text = G.opName(E.Node).str();
  if (G.isOp(E.Node, op::Max))
    Text += G.boolAttr(E.Node, "keep_dims") == true ? "<kept>" : "";
  if (G.isOp(E.Node, op::GatherV2) &&
      G.intAttr(E.Node, "batch_dims").value_or(0) != 0)
    return "?";
  Text += "(";
  for (Endpoint In : G.dataInputs(E.Node))
    Text += term(G, In, Source, Depth + 1) + ",";
  return Text + ")";
}

/// Returns the text of the term for `y` if `x` has \p Rank axes.
static std::string definition(int64_t Rank) {
  std::string Len = "Slice(Shape(x,),v0;,v1;,)";
  std::string Lens = "CollectiveGather(" + Len + ",)";
  std::string Most = "Maximum(Max<kept>(" + Lens + ",v0;,),v1;,)";
  std::string Others = "v";
  for (int64_t I = 2; I < 2 * Rank; ++I)
    Others += "0;";
  std::string Before = formatv("Reshape(ConcatV2(v0;,Sub({0},{1},),{2},s0;,),"
                               "v{3};2;,)",
                               Most, Len, Others, Rank);
  return formatv("GatherV2(CollectiveGather(Pad(x,{0},),),Reshape(Where("
                 "Reshape(Less(Range(s0;,Reshape({1},v,),s1;,),Reshape({2},"
                 "v-1;1;,),),v-1;,),),v-1;,),s0;,)",
                 Before, Most, Lens);
}

Endpoint lengthGatherSource(const Graph &G, NodeId N) {
  if (!isLengthGatherOp(G, N) || !G.isOp(N, op::GatherV2))
    return {};
  NodeId From = N;
  while (!G.isOp(From, op::Pad)) {
    StringRef Op = G.opName(From);
    if (G.node(From).NumData == 0 || G.node(From).Kind == Inserted::No ||
        (From != N && Op != op::Identity && Op != op::CollectiveGather))
      return {};
    From = G.input(From, 0).Node;
  }
  Endpoint Source = G.input(From, 0);
  NodeId Paddings = G.node(From).NumData == 2 ? G.input(From, 1).Node : NoNode;
  if (Paddings == NoNode || !G.isOp(Paddings, op::Reshape))
    return {};
  auto Shape = constValue(G, G.input(Paddings, 1).Node);
  if (!Shape || Shape->Ints.size() != 2 || Shape->Ints[0] < 1 ||
      Shape->Ints[0] > 16)
    return {};
  return term(G, {N, 0}, Source) == definition(Shape->Ints[0]) ? Source
                                                               : Endpoint();
}

} // namespace graft
