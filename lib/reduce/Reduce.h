//===- lib/reduce/Reduce.h - the smallest interesting graph -----*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
// Delta debugging (Zeller, Hildebrandt 2002) for one kind of parts after the
// other. Reduction leaves out all parts, then halves, then quarters, down to
// single parts. It continues with each interesting graph that it finds, and
// tries all kinds again as long as one of them makes the graph smaller.
//
//===----------------------------------------------------------------------===//

#ifndef GRAFT_LIB_REDUCE_REDUCE_H
#define GRAFT_LIB_REDUCE_REDUCE_H

#include "lib/reduce/Trials.h"

#include "llvm/Support/raw_ostream.h"

#include <string>

namespace graft {

struct ReduceOptions {
  std::string Folder; ///< The folder for graphs to try.
  bool Text = false;  ///< Write these graphs as text.
  /// A stream for the progress, in one line that is overwritten; or null.
  llvm::raw_ostream *Progress = nullptr;
  llvm::function_ref<bool()> Stop; ///< Returns true to stop early.
};

struct Reduced {
  std::string Bytes; ///< The graph file.
  size_t NodesBefore = 0, Nodes = 0;
};

/// Returns the smallest graph found that is interesting by \p Test. Begins with
/// the graph file \p Bytes, which must be interesting, too.
llvm::Expected<Reduced> reduce(llvm::StringRef Bytes, Trials &Test,
                               const ReduceOptions &O);

/// Writes the graph file \p Bytes to \p Path, as text if that ends in .pbtxt.
llvm::Error writeReduced(llvm::StringRef Bytes, llvm::StringRef Path);

} // namespace graft

#endif // GRAFT_LIB_REDUCE_REDUCE_H
