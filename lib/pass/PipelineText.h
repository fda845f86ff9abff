//===- lib/pass/PipelineText.h - values in pipelines ------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#ifndef GRAFT_LIB_PASS_PIPELINETEXT_H
#define GRAFT_LIB_PASS_PIPELINETEXT_H

#include "llvm/ADT/StringRef.h"

#include <string>

namespace graft {

/// \p Value as the value of an option in a pipeline: in quotes if it must be.
std::string quotePipelineValue(llvm::StringRef Value);

} // namespace graft

#endif // GRAFT_LIB_PASS_PIPELINETEXT_H
