//===- lib/io/read/GraphItem.h - AutoDist's graphs --------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
// A GraphItem (proto/autodist/graphitem.proto) is a GraphDef and the names of
// its gradients. It is read as that GraphDef.
//
//===----------------------------------------------------------------------===//

#ifndef GRAFT_LIB_IO_READ_GRAPHITEM_H
#define GRAFT_LIB_IO_READ_GRAPHITEM_H

#include "lib/io/Module.h"

namespace graft {

/// The used parts of a GraphItem: the bytes of its GraphDef, and its pairs of
/// gradient and variable, sorted by gradient.
struct GraphItemParts {
  llvm::StringRef Graph;
  std::vector<NamedGradient> Gradients;
};

llvm::Expected<GraphItemParts> openGraphItem(llvm::StringRef Bytes);

/// Returns true if \p Body, field 1 of a file, is the `Any` with the GraphDef
/// of a GraphItem, and not a node or a MetaInfoDef.
bool looksLikeGraphItem(llvm::StringRef Body);

/// Finds the tensors and variables of \p Gradients in \p G.
llvm::Error checkGradients(const Graph &G,
                           llvm::ArrayRef<NamedGradient> Gradients);

} // namespace graft

#endif // GRAFT_LIB_IO_READ_GRAPHITEM_H
