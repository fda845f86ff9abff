//===- lib/certify/fold/FoldProxies.cpp - proxies in a lowered graph ------===//
//
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "lib/certify/fold/FoldProxies.h"

#include "lib/certify/fold/Copies.h"
#include "lib/ops/Ops.h"

using namespace llvm;

namespace graft {

std::vector<bool> findProxies(const Graph &L, const Graph &In, StringRef Word) {
  std::vector<bool> Found(L.size());
  auto IsNew = [&](NodeId N) {
    NodeId I = In.find(copyNameIn(In, Word, L.name(N)).Base);
    return I == NoNode || In.opName(I) != L.opName(N);
  };
  for (NodeId P = 0; P < L.size(); ++P) {
    if (!L.isLive(P) || !L.isOp(P, op::VarHandleOp) || !IsNew(P))
      continue;
    Found[P] = true;
    L.forEachUse(P, [&](Use U) {
      if (L.isOp(U.User, op::ReadVariableOp) && IsNew(U.User))
        Found[U.User] = true;
      if (U.Index != 0 || !L.isOp(U.User, op::AssignVariableOp) ||
          !IsNew(U.User) || !IsNew(L.input(U.User, 1).Node))
        return;
      Found[U.User] = Found[L.input(U.User, 1).Node] = true;
      L.forEachUse(U.User, [&](Use Gate) {
        if ((L.isOp(Gate.User, op::NoOp) || L.isOp(Gate.User, op::Identity)) &&
            IsNew(Gate.User))
          Found[Gate.User] = true;
      });
    });
  }
  return Found;
}

bool isOfAccumulator(const Graph &L, NodeId N) {
  auto IsOp = [&](NodeId Of) {
    return L.opName(Of).starts_with("Accumulator") ||
           L.isOp(Of, op::ConditionalAccumulator);
  };
  // A graph that has accumulators is not replicated.
  return IsOp(N) || ((L.isOp(N, op::Const) || L.isOp(N, op::NoOp)) &&
                     L.anyUse(N, [&](Use U) { return IsOp(U.User); }));
}

} // namespace graft
