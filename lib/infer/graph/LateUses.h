//===- lib/infer/graph/LateUses.h - what an update shows to -----*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
// A read of a reference variable gives the variable's own memory: what uses it
// after an update has what was written, although the read was before. That is
// so as long as both are where the variable is. Another process has a copy of
// what the variable was.
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

/// Uses of what was read of reference variables that come after an update
/// which the read does not come after.
struct LateUses {
  /// Those that can read again; an input of an op is there once.
  std::vector<LateUse> Known;
  /// Others, with their variables: inside of loops that write, or of slices,
  /// which may be memory of the variable and may be copies.
  std::vector<std::pair<Use, NodeId>> Open;
};

LateUses findLateUses(const Graph &G);

} // namespace graft

#endif // GRAFT_LIB_INFER_GRAPH_LATEUSES_H
