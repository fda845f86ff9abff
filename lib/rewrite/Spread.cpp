//===- lib/rewrite/Spread.cpp - the distributed share of a step -*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "lib/rewrite/Spread.h"

#include "lib/ops/Ops.h"
#include "lib/ops/ProgramOps.h"
#include "lib/rewrite/Work.h"
#include "lib/strategy/Cost.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FormatVariadic.h"

using namespace llvm;

namespace graft {
namespace {

/// Adds the size of the global value of \p E.
void addRows(const Graph &G, const DimAnalysis &Dims, Joined &To, Endpoint E) {
  double Bytes = bytesOf(G.outputType(E));
  auto Shape = Dims.shape(E);
  bool IsKnown = Shape && Bytes > 0, PerRow = false;
  for (DimId D : Shape.value_or(ArrayRef<DimId>())) {
    const DimTable &Table = Dims.table();
    std::optional<Sym> S = Table.sym(D);
    if (int64_t Number = Table.number(D); Number != UnknownSize) {
      Bytes *= static_cast<double>(Number);
    } else if (S && S->B == 1 && S->Ragged == 0 && !PerRow) {
      Bytes *= static_cast<double>(S->C);
      PerRow = true;
    } else {
      IsKnown = false;
    }
  }
  if (!IsKnown)
    ++To.Unknown;
  else
    (PerRow ? To.RowBytes : To.Bytes) += Bytes;
}

/// Returns true if \p N concatenates rows for an unreplicated node.
bool joinsForOnce(const Graph &G, NodeId N) {
  return G.node(N).Kind == Inserted::Merge &&
         G.stringAttr(N, CombineAttr) == combine::Concat &&
         G.anyUse(N, [&](Use U) {
           return G.isData(U) && (isKeptOnce(G, U.User) ||
                                  (G.node(U.User).Kind == Inserted::Scale &&
                                   G.anyUse(U.User, [&](Use Next) {
                                     return G.isData(Next) &&
                                            isKeptOnce(G, Next.User);
                                   })));
         });
}

} // namespace

std::string Joined::str() const {
  SmallVector<std::string, 3> Parts;
  if (Bytes > 0)
    Parts.push_back(bytesText(Bytes));
  if (RowBytes > 0)
    Parts.push_back(bytesText(RowBytes) + " for each row of the batch");
  if (Unknown != 0)
    Parts.push_back(formatv("{0} tensor{1} of unknown size", Unknown,
                            Unknown == 1 ? "" : "s"));
  return Parts.empty() ? "" : join(Parts, " and ") + " gathered in each step";
}

Spread spreadOf(const Graph &G, const ProgramFacts &Facts, bool IsWanted) {
  if (!IsWanted &&
      none_of(Facts.Order, [&](NodeId N) { return isKeptOnce(G, N); }))
    return {};
  std::vector<bool> IsNeeded(G.size());
  bool Any = false;
  for (NodeId N : Facts.Order)
    if (Facts.Vars.isUpdate(G, N))
      IsNeeded[N] = Any = true;
  WorkCounter Work(G, Facts.Dims);
  Spread Result;
  for (NodeId N : reverse(Facts.Order)) {
    if (!IsNeeded[N] && Any)
      continue;
    for (Endpoint E : G.inputs(N))
      IsNeeded[E.Node] = true;
    const Node &This = G.node(N);
    if (joinsForOnce(G, N))
      addRows(G, Facts.Dims, Result.Rows, G.input(N, 0));
    if (This.Kind != Inserted::No || Facts.Dims.numOutputs(N) == 0)
      continue;
    if (This.Count == Copies::Once) {
      if (isKeptOnce(G, N)) {
        Result.Once += Work.operations(N);
        ++Result.OnceNodes;
      }
      continue;
    }
    ReplicationType Type = Facts.Types.natural({N, 0});
    if (!Type.Symbolic && !Type.isReplicated())
      Result.Split += Work.operations(N);
  }
  return Result;
}

} // namespace graft
