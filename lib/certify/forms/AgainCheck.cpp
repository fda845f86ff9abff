//===- lib/certify/forms/AgainCheck.cpp - is it that node again? ----------===//
//
// SPDX-License-Identifier: Apache-2.0
//
// A node that says of which one of the input it is once more is compared with
// it as the node itself is: op, attributes, and inputs, of which those that
// were computed again stand for what they say. Round a loop this is a claim of
// each turn that rests on the turn before, and on what comes in, so it holds
// for all if the types of what comes in do. What has a state, or draws, would
// not do the same once more.
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
    C.error(N, "does not say which node of the input it is once more");
}

static bool recognizeAgain(const LoweredFile &File, NodeId N) {
  return File.G.hasAttr(N, AgainAttr);
}

const InsertedForm AgainForm = {.StandsFor = standsForAgain,
                                .Check = checkAgain,
                                .Recognize = recognizeAgain};

} // namespace graft
