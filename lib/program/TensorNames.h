//===- lib/program/TensorNames.h - tensors by patterns ------------*- C++
//-*-===//
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

/// Whether \p Name is no tensor or operation of \p G, but a pattern for them.
bool isPattern(const Graph &G, llvm::StringRef Name);

/// The tensors of the input that \p Pattern stands for, by name and in order: a
/// pattern of nodes, and `:1` after it for another output than the first.
std::vector<std::string> tensorsLike(const Graph &G, llvm::StringRef Pattern);

/// \p Names, with what patterns among them stand for in their place.
std::vector<std::string> withoutPatterns(const Graph &G,
                                         llvm::ArrayRef<std::string> Names);

} // namespace graft

#endif // GRAFT_LIB_PROGRAM_TENSORNAMES_H
