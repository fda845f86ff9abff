//===- lib/certify/forms/AgainCheck.cpp - is it that node again? ----------===//
//
// SPDX-License-Identifier: Apache-2.0
//
// A node that repeats a node of the input is compared with it as the original
// itself is: op, attributes and inputs. Inputs that are repetitions, too, stand
// for their originals. In a loop the claim of an iteration rests on the
// iteration before and on the values that enter, so it holds for all if the
// types of these values do. Stateful and random ops are refused: a repetition
// would give another result.
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
