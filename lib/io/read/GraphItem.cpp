//===- lib/io/read/GraphItem.cpp - AutoDist's graphs ------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "lib/io/read/GraphItem.h"

#include "lib/support/Failure.h"
#include "lib/support/Wire.h"

#include "llvm/ADT/STLExtras.h"

using namespace llvm;

namespace graft {
namespace {

constexpr StringLiteral GraphType = "/tensorflow.GraphDef";

/// Returns fields 1 and 2 of a message, both strings: an `Any` or a map entry.
std::optional<std::pair<StringRef, StringRef>> twoStrings(StringRef Body) {
  std::pair<StringRef, StringRef> Result;
  wire::Field F;
  wire::Reader R(Body);
  while (R.next(F)) {
    if (F.WireType != wire::Type::Bytes || F.Number > 2)
      return std::nullopt;
    (F.Number == 1 ? Result.first : Result.second) = F.Bytes;
  }
  if (R.failed())
    return std::nullopt;
  return Result;
}

} // namespace

bool looksLikeGraphItem(StringRef Body) {
  auto Any = twoStrings(Body);
  return Any && Any->first.ends_with(GraphType);
}

Expected<GraphItemParts> openGraphItem(StringRef Bytes) {
  GraphItemParts Parts;
  bool HasGraph = false;
  wire::Field F;
  wire::Reader R(Bytes);
  while (R.next(F)) {
    if (F.WireType != wire::Type::Bytes || F.Number > 2)
      continue;
    auto Two = twoStrings(F.Bytes);
    if (!Two)
      return failure("is malformed: field " + Twine(F.Number) +
                     " is not that of a GraphItem");
    if (F.Number == 1) {
      if (HasGraph)
        return failure("has more than one graph_def");
      if (!Two->first.ends_with(GraphType))
        return failure("has a graph_def of type '" + Two->first +
                       "', not tensorflow.GraphDef");
      Parts.Graph = Two->second;
      HasGraph = true;
    } else {
      Parts.Gradients.push_back({Two->first.str(), Two->second.str()});
    }
  }
  if (R.failed())
    return failure("is truncated or malformed");
  if (!HasGraph)
    return failure("has no graph_def");
  // A map has no order.
  llvm::sort(Parts.Gradients,
             [](const NamedGradient &A, const NamedGradient &B) {
               return A.Tensors < B.Tensors;
             });
  return Parts;
}

Error checkGradients(const Graph &G, ArrayRef<NamedGradient> Gradients) {
  for (const NamedGradient &P : Gradients) {
    auto Var = G.findEndpoint(P.Variable);
    if (!Var || Var->isControl() || !isVariableOp(G.opName(Var->Node)))
      return failure("grad_target_pairs: the graph has no variable '" +
                     Twine(P.Variable) + "'");
    // A gradient of rows has indices, values and a shape.
    SmallVector<StringRef, 3> Names;
    StringRef(P.Tensors).split(Names, ';');
    for (StringRef Name : Names) {
      auto Tensor = G.findEndpoint(Name);
      if (!Tensor || Tensor->isControl())
        return failure("grad_target_pairs: the graph has no tensor '" + Name +
                       "', the gradient of '" + P.Variable + "'");
    }
  }
  return Error::success();
}

} // namespace graft
