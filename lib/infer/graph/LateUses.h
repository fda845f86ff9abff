//===- lib/infer/graph/LateUses.h - uses after an update --------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
// A read of a reference variable returns the memory of the variable. A node
// that uses this memory after an update sees the new value, even if the read
// ran before. This holds only in the process of the variable: another process
// has a copy of the old value.
//
//     r = Identity(w)                 r = Identity(w)
//     u = ApplyGradientDescent(w..)   u = ApplyGradientDescent(w..)
//     y = Mul(r, 2, ^u)           →   r/late = Identity(w, ^u)
//                                     y = Mul(r/late, 2, ^u)
//
//===----------------------------------------------------------------------===//

#ifndef GRAFT_LIB_INFER_GRAPH_LATEUSES_H
#define GRAFT_LIB_INFER_GRAPH_LATEUSES_H

#include "lib/program/OrderedReads.h"

#include <vector>

namespace graft {

/// Uses of a value of a reference variable that run after an update, although
/// the read ran before the update.
struct LateUses {
  /// Uses that can read the variable again. Each input of an op is listed once.
  std::vector<LateUse> Known;
  /// Other uses, with their variables. Examples: an update inside a loop comes
  /// before the use, or the use reads a slice, which may be a view or a copy.
  std::vector<std::pair<Use, NodeId>> Open;
};

LateUses findLateUses(const Graph &G);

} // namespace graft

#endif // GRAFT_LIB_INFER_GRAPH_LATEUSES_H
