//===- lib/io/LineForm.h - words of the text form of graphs -----*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
// The words that the reader and the writer of lines share:
//
//     name = Op*2(input, input:1, ^control) @device attr=value
//     --- GraphDef
//     versions { producer: 1087 }
//
//===----------------------------------------------------------------------===//

#ifndef GRAFT_LIB_IO_LINEFORM_H
#define GRAFT_LIB_IO_LINEFORM_H

#include "lib/ops/ProgramOps.h"

#include "tensorflow/core/framework/graph.pb.h"

#include "llvm/ADT/StringExtras.h"

#include <optional>

namespace graft {

struct LineForm {
  /// The beginning of the line after the nodes. The other fields of the message
  /// follow that line.
  static constexpr const char *Rest = "--- ";
  /// Returns true if a name without quotes cannot contain \p C.
  static bool endsName(char C) {
    return !llvm::isPrint(C) || C == ' ' ||
           llvm::StringRef("\"(),=*{}[]<>@^#!").contains(C);
  }
};

/// Returns true if \p Name needs no quotes.
inline bool isBareName(llvm::StringRef Name) {
  return !Name.empty() && !Name.starts_with("---") &&
         llvm::none_of(Name, LineForm::endsName);
}

/// Returns the number of replicas of the mesh, which the mark of a per-replica
/// node repeats.
inline std::optional<int64_t> meshReplicas(const tensorflow::GraphDef &Graph) {
  for (const tensorflow::NodeDef &Node : Graph.node())
    if (Node.op() == MeshOp)
      if (auto It = Node.attr().find("replicas"); It != Node.attr().end())
        return It->second.i();
  return std::nullopt;
}

} // namespace graft

#endif // GRAFT_LIB_IO_LINEFORM_H
