//===- lib/driver/Picture.h - --emit=dot ------------------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#ifndef GRAFT_LIB_DRIVER_PICTURE_H
#define GRAFT_LIB_DRIVER_PICTURE_H

#include "lib/io/Module.h"
#include "lib/report/Drawing.h"

namespace graft {

/// Returns the graph that is written for \p M in the language of Graphviz.
llvm::Expected<std::string> pictureText(const Module &M,
                                        const DrawingOptions &O);

} // namespace graft

#endif // GRAFT_LIB_DRIVER_PICTURE_H
