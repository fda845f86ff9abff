//===- lib/infer/rules/BatchNormReads.cpp - readers of statistics ---------===//
//
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "lib/infer/rules/BatchNormReads.h"

#include "lib/ops/OpRule.h"
#include "lib/ops/Ops.h"

using namespace llvm;

namespace graft {

bool readsShapeOnly(const Graph &G, NodeId User, uint32_t Port) {
  return (ruleOf(G.opName(User)).Is & trait::ReadsSizes ||
          G.isOp(User, op::ZerosLike)) &&
         (Port < 5 || !G.hasUses(User));
}

bool isVarianceRead(const Graph &G, NodeId N) {
  return G.anyUse(N, [&](Use Of) {
    return G.input(Of.User, Of.Index).Port == 2 &&
           !readsShapeOnly(G, Of.User, 2);
  });
}

} // namespace graft
