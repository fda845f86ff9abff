//===- lib/reduce/Reduce.h - the smallest interesting graph -----*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
// Delta debugging (Zeller, Hildebrandt 2002), one kind of parts after the
// other: half of them are left out, then quarters, and so on to single parts;
// what is interesting without them is the graph to go on with. Kinds are tried
// again as long as one of them finds something.
//
//===----------------------------------------------------------------------===//

#ifndef GRAFT_LIB_REDUCE_REDUCE_H
#define GRAFT_LIB_REDUCE_REDUCE_H

#include "lib/reduce/Trials.h"

#include "llvm/Support/raw_ostream.h"

#include <string>

namespace graft {

struct ReduceOptions {
  std::string Folder; ///< For the graphs that are tried.
  bool Text = false;  ///< These are text.
  /// How far it is, in one line that is written again and again; or null.
  llvm::raw_ostream *Progress = nullptr;
  llvm::function_ref<bool()> Stop; ///< Keep the best so far, and come back.
};

struct Reduced {
  std::string Bytes; ///< The graph file.
  size_t NodesBefore = 0, Nodes = 0;
};

/// The smallest graph that \p Test finds interesting that was found, of \p
/// Bytes, a graph file, which it has to find interesting.
llvm::Expected<Reduced> reduce(llvm::StringRef Bytes, Trials &Test,
                               const ReduceOptions &O);

/// Writes the graph file \p Bytes to \p Path, as text if that ends in .pbtxt.
llvm::Error writeReduced(llvm::StringRef Bytes, llvm::StringRef Path);

} // namespace graft

#endif // GRAFT_LIB_REDUCE_REDUCE_H
