//===- lib/infer/graph/References.h - the memory of variables ---*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#ifndef GRAFT_LIB_INFER_GRAPH_REFERENCES_H
#define GRAFT_LIB_INFER_GRAPH_REFERENCES_H

#include "llvm/ADT/StringRef.h"

namespace graft {

/// Whether \p Op may pass on the memory of its first input.
bool passesMemoryOn(llvm::StringRef Op);

} // namespace graft

#endif // GRAFT_LIB_INFER_GRAPH_REFERENCES_H
