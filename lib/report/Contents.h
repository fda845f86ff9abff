//===- lib/report/Contents.h - the contents of a file -----------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#ifndef GRAFT_LIB_REPORT_CONTENTS_H
#define GRAFT_LIB_REPORT_CONTENTS_H

#include "lib/io/Module.h"

#include <map>
#include <string>
#include <vector>

namespace graft {

/// A feed, or an element of a queue or an iterator.
struct ContentsInput {
  std::string Name;
  std::string Type;
  std::string Shape; ///< `[?, 4]`, or "" if the rank is unknown.
};

/// The contents of a file, as far as users ask for them.
struct Contents {
  std::string Kind;
  uint64_t Nodes = 0;
  uint64_t Bytes = 0; ///< The size of the graph.
  std::vector<ContentsInput> Inputs;
  uint64_t Variables = 0;
  uint64_t VariableBytes = 0;
  uint64_t Trained = 0;
  uint64_t TrainedBytes = 0;
  std::map<std::string, uint64_t> Updates; ///< By op.
  bool Changes = false;                    ///< An op updates a variable.
  std::vector<std::string> TrainOps;
  std::vector<std::string> Losses;
  std::vector<std::string> Functions;
  std::vector<std::string> Signatures;
  std::map<std::string, uint64_t> ControlFlow; ///< By kind.
  std::map<std::string, uint64_t> WithoutRule; ///< By op.
};

/// Returns the contents of \p M, a graph as it was read.
Contents contentsOf(const Module &M);

} // namespace graft

#endif // GRAFT_LIB_REPORT_CONTENTS_H
