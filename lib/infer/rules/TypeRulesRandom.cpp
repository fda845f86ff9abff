//===- lib/infer/rules/TypeRulesRandom.cpp - draws of random numbers ------===//
//
// SPDX-License-Identifier: Apache-2.0
//
// A draw with a row for each example is equal in distribution to the rows of
// the single-device draw, provided that replicas draw from different streams:
// ops with a state do, and ops that are a function of a seed do when each
// replica has a seed of its own. Without such rows a function of a seed gives
// the true value, and anything else differs from replica to replica.
//
//===----------------------------------------------------------------------===//

#include "lib/infer/types/TypeRules.h"
#include "lib/program/forms/SeedOffset.h"

using namespace llvm;

namespace graft {

RType TypeRules::draw() {
  DrawOperands Of = drawOperands(G.opName(N));
  int Axis = D.batchAxis(out());
  if (Of.Sizes >= 0 && (!isSize(Of.Sizes) || localAxis(out()) != Axis))
    return varying("draws random numbers of a per-replica size");
  bool AllTrue = true, OwnSeed = Of.Seed < 0 || D.replicas() == 1;
  for (unsigned I = 0; I < numData(); ++I) {
    int Index = static_cast<int>(I);
    // A shape has the sizes of one replica.
    if (Index == Of.Sizes) {
      RType Sizes = operand(I);
      if (Sizes.isVarying() && Axis < 0)
        return varyingLike(Sizes);
      AllTrue &= Sizes.isTrue();
      continue;
    }
    if (Index == Of.Seed && offsetsSeed(G, G.input(N, I).Node, D.replicas())) {
      RType Seed = T.type(G.input(G.input(N, I).Node, 0));
      if (!Seed.isTrue())
        return Seed.isVarying()
                   ? varyingLike(Seed)
                   : varying(
                         "has a seed that depends on the rows of the batch");
      OwnSeed = true;
      AllTrue = false;
      continue;
    }
    RType X = plain(I);
    if (X.isVarying())
      return varyingLike(X);
    AllTrue &= operand(I).isTrue();
    if (!X.isSharded())
      continue;
    if (Index != Of.Rows)
      return varying("draws with per-row parameters, which has no rule");
    auto Sizes = Of.Sizes < 0 ? std::nullopt : D.shape(G.input(N, Of.Sizes));
    if (Of.Sizes < 0)
      Axis = X.Axis;
    else if (auto Lead = Sizes && Sizes->size() == 1
                             ? D.table().number((*Sizes)[0])
                             : UnknownSize;
             Axis < 0 && Lead != UnknownSize)
      Axis = static_cast<int>(Lead) + X.Axis;
    else
      return varying("draws with per-row parameters, which has no rule");
  }
  if (Axis < 0)
    return AllTrue && Of.Seed >= 0
               ? RType::replicated()
               : varying("draws different random numbers on each replica");
  if (!OwnSeed)
    return varying("draws the same numbers for the rows of every replica");
  Assumes |= AssumesRandomDraw;
  T.Sources.push_back({N, AssumesRandomDraw});
  return RType::sharded(Axis);
}

} // namespace graft
