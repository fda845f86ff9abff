//===- lib/pass/Pipeline.h - passes in their order --------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#ifndef GRAFT_LIB_PASS_PIPELINE_H
#define GRAFT_LIB_PASS_PIPELINE_H

#include "lib/pass/Registry.h"

#include "llvm/Support/Error.h"

namespace graft {

/// Passes with their options, in the order in which they run.
class Pipeline {
public:
  /// The passes of \p Text: `a,b{k=v,k2='v w'}`. An error shows the whole text
  /// with a caret under the place.
  static llvm::Expected<Pipeline> parse(llvm::StringRef Text,
                                        const PassRegistry &Registry);
  /// The text that parse() takes; options at their default are left out.
  std::string str() const;

  void add(std::unique_ptr<Pass> P) { Passes.push_back(std::move(P)); }
  /// The same passes; none has run.
  Pipeline clone() const;
  bool empty() const { return Passes.empty(); }

  std::vector<std::unique_ptr<Pass>> Passes;
};

} // namespace graft

#endif // GRAFT_LIB_PASS_PIPELINE_H
