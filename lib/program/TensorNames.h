//===- lib/program/TensorNames.h - tensors by patterns ----------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#ifndef GRAFT_LIB_PROGRAM_TENSORNAMES_H
#define GRAFT_LIB_PROGRAM_TENSORNAMES_H

#include "lib/graph/Graph.h"

#include <string>
#include <vector>

namespace graft {

/// Returns true if \p Name is a pattern and does not name a node of \p G.
bool isPattern(const Graph &G, llvm::StringRef Name);

/// Returns the names of tensors of the input that match \p Pattern, in node
/// order. A pattern of node names may end in an output number: `layer*:1`.
std::vector<std::string> tensorsLike(const Graph &G, llvm::StringRef Pattern);

/// Returns \p Names, with each pattern replaced by the names that it matches.
std::vector<std::string> withoutPatterns(const Graph &G,
                                         llvm::ArrayRef<std::string> Names);

} // namespace graft

#endif // GRAFT_LIB_PROGRAM_TENSORNAMES_H
