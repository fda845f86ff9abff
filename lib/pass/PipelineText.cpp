//===- lib/pass/PipelineText.cpp - values in pipelines ----------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "lib/pass/PipelineText.h"

using namespace llvm;

namespace graft {

std::string quotePipelineValue(StringRef Value) {
  if (!Value.empty() && Value.find_first_of(",{}' \t\n") == StringRef::npos)
    return Value.str();
  std::string Out = "'";
  for (char C : Value) {
    Out += C;
    if (C == '\'')
      Out += C;
  }
  return Out + "'";
}

} // namespace graft
