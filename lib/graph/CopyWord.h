//===- lib/graph/CopyWord.h - names of copies -------------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
// Copies are called `<word><i>/<name>` and `<v>/<word><i>`. The word is
// `replica_`. If the input has such names, graft chooses another word of the
// same length, so that no name of the user changes. The mesh of a program and
// the marked nodes of an output record the word.
//
//===----------------------------------------------------------------------===//

#ifndef GRAFT_LIB_GRAPH_COPYWORD_H
#define GRAFT_LIB_GRAPH_COPYWORD_H

#include "lib/graph/Graph.h"

#include <string>

namespace graft {

inline constexpr llvm::StringLiteral UsualCopyWord = "replica_";
/// The number of letters of every word: name sizes do not depend on the word.
inline constexpr size_t CopyWordSize = UsualCopyWord.size();
/// The marker attribute of an output, with the number of replicas.
inline constexpr llvm::StringLiteral StampAttr = "_graft_replicas";
/// The word on meshes and marked nodes, if it is not the usual one.
inline constexpr llvm::StringLiteral CopyWordAttr = "_graft_word";

/// Returns the word without its last letter: `replica`. If a merged value takes
/// the name of a node, the node moves to this scope.
inline llvm::StringRef copyScope(llvm::StringRef Word) {
  return Word.take_front(CopyWordSize - 1);
}

/// Returns the word on the mesh \p N.
std::string copyWordOn(const Graph &G, NodeId N);

/// Returns the word on the mesh of \p G or a marked node. Visits every node.
std::string copyWordOf(const Graph &G);

/// Returns the replica in \p Name if \p Name is the name of a copy:
/// `<word><i>/x`, `v/<word><i>` or `v/<word><i>/x`.
std::optional<unsigned> numberOfCopy(llvm::StringRef Name,
                                     llvm::StringRef Word);

/// Returns the name of the node whose copy is called \p Name. Returns \p Name
/// if it is not the name of a copy.
std::string originOfCopy(llvm::StringRef Name, llvm::StringRef Word);

/// Returns the first free word: no name of \p G has `<word><i>` or the scope of
/// the word between slashes.
std::string freeCopyWord(const Graph &G);

} // namespace graft

#endif // GRAFT_LIB_GRAPH_COPYWORD_H
