//===- lib/graph/CopyWord.h - what copies are called ------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
// Copies are called `<word><i>/<name>` and `<v>/<word><i>`. The word is
// `replica_` unless the input has such names: what is added gives way to the
// names of the user, and then the word is another of the same length. The mesh
// of a program says which, and the stamps of an output.
//
//===----------------------------------------------------------------------===//

#ifndef GRAFT_LIB_GRAPH_COPYWORD_H
#define GRAFT_LIB_GRAPH_COPYWORD_H

#include "lib/graph/Graph.h"

#include <string>

namespace graft {

inline constexpr llvm::StringLiteral UsualCopyWord = "replica_";
/// Letters of every word: sizes and places in names do not depend on it.
inline constexpr size_t CopyWordSize = UsualCopyWord.size();
/// What an output of graft carries, with the number of replicas.
inline constexpr llvm::StringLiteral StampAttr = "_graft_replicas";
/// On meshes and stamped nodes, where the word is another.
inline constexpr llvm::StringLiteral CopyWordAttr = "_graft_word";

/// The word without its last letter, `replica`: the scope of a node that lost
/// its name to its merged value.
inline llvm::StringRef copyScope(llvm::StringRef Word) {
  return Word.take_front(CopyWordSize - 1);
}

/// The word that the mesh \p N says.
std::string copyWordOn(const Graph &G, NodeId N);

/// The word that the mesh of \p G or a stamped node says. Looks at every node.
std::string copyWordOf(const Graph &G);

/// The replica that a node called \p Name is a copy for, if it is called like a
/// copy: `<word><i>/x`, `v/<word><i>` or `v/<word><i>/x`.
std::optional<unsigned> numberOfCopy(llvm::StringRef Name,
                                     llvm::StringRef Word);

/// The name of what a node called \p Name is a copy of, for a replica that the
/// name says; else \p Name.
std::string originOfCopy(llvm::StringRef Name, llvm::StringRef Word);

/// The first word, `replica_` or another, that no name of \p G begins with or
/// has behind a `/` before digits, nor the scope of it as a scope.
std::string freeCopyWord(const Graph &G);

} // namespace graft

#endif // GRAFT_LIB_GRAPH_COPYWORD_H
