//===- lib/certify/forms/AgainCheck.cpp - recomputed nodes ------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
// A recomputed node repeats a node of the input. The certificate compares its
// op, attributes and inputs with those of the original. A recomputed input
// counts as its original. In a loop, the proof of an iteration uses the
// previous iteration and the values that enter the loop. So all iterations are
// proved if the types of the entering values are proved. Stateful and random
// ops are refused: a repetition would give another result.
//
//===----------------------------------------------------------------------===//

#include "lib/certify/forms/InsertedForm.h"
#include "lib/infer/graph/Loops.h"
#include "lib/ops/OpRule.h"

using namespace llvm;

namespace graft {

static Endpoint standsForAgain(const Comparison &C, Endpoint E) {
  auto It = C.AgainOf.find(E.Node);
  return It == C.AgainOf.end() ? Endpoint()
                               : Endpoint{C.ProgramOf[It->second], E.Port};
}

static void checkAgain(Comparison &C, const ProgramFacts & /*Facts*/,
                       NodeId N) {
  StringRef Op = C.G.opName(N);
  const OpDef *Def = C.G.opDef(N);
  if (!Def || Def->isStateful() || isLocalHandleOp(Op) ||
      traitsOf(Op) & (trait::Draws | trait::Opaque))
    return C.mismatch(N);
  if (!C.AgainOf.contains(N))
    C.error(N, "does not name the node of the input that it recomputes");
}

static bool recognizeAgain(const LoweredFile &File, NodeId N) {
  return File.G.hasAttr(N, AgainAttr);
}

const InsertedForm AgainForm = {.StandsFor = standsForAgain,
                                .Check = checkAgain,
                                .Recognize = recognizeAgain};

} // namespace graft
