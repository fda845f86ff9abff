//===- lib/infer/graph/LateUses.h - uses after an update --------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
// A read of a reference variable returns the variable's own memory. A node that
// uses it after an update sees the new value, even if the read came before.
// This holds only if the read and the node are in the process of the variable:
// another process has a copy of the old value.
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

/// Uses of values read from reference variables that come after an update,
/// while the read does not.
struct LateUses {
  /// Uses that can read the variable again. Each input of an op is listed once.
  std::vector<LateUse> Known;
  /// Other uses, with their variables: inside loops that write, or of slices,
  /// which may be the memory of the variable or copies.
  std::vector<std::pair<Use, NodeId>> Open;
};

LateUses findLateUses(const Graph &G);

} // namespace graft

#endif // GRAFT_LIB_INFER_GRAPH_LATEUSES_H
