//===- lib/graph/VerifyTypes.cpp - types of edges ---------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
// TensorFlow refuses a graph in which a node lacks an attribute, or an input
// has another type than the attributes of the node demand. Outputs of the
// user's own ops are not checked.
//
//===----------------------------------------------------------------------===//

#include "lib/graph/Verifier.h"

#include "lib/graph/Graph.h"

#include "llvm/Support/FormatVariadic.h"

using namespace llvm;

namespace graft {
namespace {

/// Sets \p Result to the types of the data inputs by the definition and the
/// attributes of \p N, and to DT_INVALID for unknown types.
void expectedTypes(const Graph &G, NodeId N, const OpDef &Def,
                   SmallVectorImpl<unsigned> &Result) {
  Result.clear();
  for (const ArgDef &A : Def.inputs()) {
    if (*A.TypeListAttr) {
      for (unsigned Type : G.typeListAttr(N, A.TypeListAttr))
        Result.push_back(Type);
      continue;
    }
    unsigned Type = A.Type;
    if (*A.TypeAttr)
      Type = G.typeAttr(N, A.TypeAttr).value_or(DT_INVALID);
    if (Type > RefTypeOffset)
      Type -= RefTypeOffset;
    int64_t Count = *A.NumberAttr ? G.intAttr(N, A.NumberAttr).value_or(0) : 1;
    // Other checks refuse a number that is too large for the graph.
    Count = std::min<int64_t>(Count, G.node(N).NumData);
    Result.append(static_cast<size_t>(std::max<int64_t>(Count, 0)), Type);
  }
}

/// Returns true if \p E is a reference. A take-first merge is not written: its
/// users read copy 0 of its input.
bool isReference(const Graph &G, Endpoint E) {
  for (NodeId Steps = 0; Steps < G.size(); ++Steps) {
    const Node &This = G.node(E.Node);
    if (!(This.Flags & NF_ElidePrimary) || This.Count != Copies::Once ||
        This.NumData == 0)
      break;
    E = G.input(E.Node, 0);
  }
  return G.isRefOutput(E.Node, E.Port);
}

} // namespace

bool verifyTypes(const Graph &G, DiagnosticEngine &Diags) {
  unsigned Before = Diags.errorCount();
  ErrorCap Attrs(Diags, "nodes that lack an attribute");
  ErrorCap Types(Diags, "inputs of a wrong type");
  SmallVector<unsigned, 8> Expected;
  for (NodeId N = 0; N < G.size(); ++N) {
    if (!G.isLive(N))
      continue;
    const OpDef *Def = G.opFacts(G.node(N).Op).Def;
    if (!Def)
      continue;
    for (const AttrDef &A : Def->attrs())
      if (!A.HasDefault && !G.hasAttr(N, A.Name))
        Attrs.error(G.name(N), "has no attribute '" + Twine(A.Name) +
                                   "', which " + G.opName(N) + " needs");
    expectedTypes(G, N, *Def, Expected);
    ArrayRef<Endpoint> Inputs = G.dataInputs(N);
    for (unsigned I = 0; I < Inputs.size() && I < Expected.size(); ++I) {
      if (G.opFacts(G.node(Inputs[I].Node).Op).OfUser)
        continue;
      unsigned Type = G.outputType(Inputs[I].Node, Inputs[I].Port);
      if (Type != DT_INVALID && Expected[I] != DT_INVALID &&
          Type != Expected[I])
        Types.error(G.name(N), formatv("input {0} is '{1}:{2}' of type number "
                                       "{3}, but must have type number {4}",
                                       I, G.name(Inputs[I].Node),
                                       Inputs[I].Port, Type, Expected[I])
                                   .str());
      if (G.isRefInput(N, I) && !isReference(G, Inputs[I]))
        Types.error(G.name(N),
                    formatv("input {0} must be a reference to a variable, but "
                            "'{1}:{2}' is not one",
                            I, G.name(Inputs[I].Node), Inputs[I].Port)
                        .str());
    }
  }
  return Diags.errorCount() == Before;
}

} // namespace graft
