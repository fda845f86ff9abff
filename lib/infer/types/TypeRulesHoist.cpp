//===- lib/infer/types/TypeRulesHoist.cpp - where to reduce -----*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "lib/infer/types/TypeRules.h"
#include "lib/ops/Ops.h"

using namespace llvm;

namespace graft {

/// Linear ops with one interesting operand are passed on the way up: reducing
/// there serves every user of the raw tensor.
Endpoint TypeRules::hoist(Endpoint E) const {
  for (;;) {
    const Node &P = G.node(E.Node);
    if (P.Count != Copies::PerReplica ||
        (P.Kind != Inserted::No && P.Kind != Inserted::Definition))
      return E;
    int Partial = -1;
    bool Others = true;
    for (unsigned I = 0; I < P.NumData; ++I) {
      RType In = T.type(G.input(E.Node, I));
      if (In.isPartial()) {
        if (Partial >= 0)
          return E;
        Partial = static_cast<int>(I);
      } else if (!In.isReplicated()) {
        Others = false;
      }
    }
    if (Partial < 0 || !Others)
      return E;
    switch (Ops[P.Op].Rule) {
    case TypeRule::Switch:
      // Outside of the conditional it serves both sides, and every run.
    case TypeRule::Pass:
    case TypeRule::Linear:
    case TypeRule::Relayout:
      if (Partial != int(G.isOp(E.Node, op::IdentityN) ? E.Port : 0))
        return E;
      break;
    case TypeRule::Cast:
      if (!isFloating(G.outputType(E.Node, 0)) ||
          !isFloating(
              G.outputType(G.input(E.Node, 0).Node, G.input(E.Node, 0).Port)))
        return E;
      break;
    case TypeRule::Mul:
    case TypeRule::Add:
      break;
    case TypeRule::Div:
      if (Partial != 0)
        return E;
      break;
    default:
      return E;
    }
    // Out of a loop, and not into one.
    Endpoint Up = G.input(E.Node, Partial);
    if (Loops && Loops->givesInside(Up.Node) && !Loops->givesInside(E.Node))
      return E;
    E = Up;
  }
}

} // namespace graft
