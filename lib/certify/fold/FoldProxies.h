//===- lib/certify/fold/FoldProxies.h - proxies in a lowered graph *- C++ -*-=//
//
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#ifndef GRAFT_LIB_CERTIFY_FOLD_FOLDPROXIES_H
#define GRAFT_LIB_CERTIFY_FOLD_FOLDPROXIES_H

#include "lib/graph/Graph.h"

#include <vector>

namespace graft {

/// By node of the lowered graph \p L: whether it belongs to a proxy, as its
/// ops and edges say. Empty if nothing does. \p In is the input; \p Word is in
/// the names of copies.
std::vector<bool> findProxies(const Graph &L, const Graph &In,
                              llvm::StringRef Word);

/// Whether \p N of the lowered graph \p L, which the input does not have, is an
/// accumulator or an operand of one.
bool isOfAccumulator(const Graph &L, NodeId N);

} // namespace graft

#endif // GRAFT_LIB_CERTIFY_FOLD_FOLDPROXIES_H
