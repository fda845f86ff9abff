//===- lib/io/ControlContexts.h - collections of control flow ---*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
// CondContextDef and WhileContextDef: the tensors of a branch or a body.
//
//===----------------------------------------------------------------------===//

#ifndef GRAFT_LIB_IO_CONTROLCONTEXTS_H
#define GRAFT_LIB_IO_CONTROLCONTEXTS_H

#include "lib/io/Module.h"
#include "lib/io/Serialize.h"

#include "tensorflow/core/protobuf/control_flow.pb.h"
#include "tensorflow/core/protobuf/meta_graph.pb.h"

namespace graft {

/// Parses and edits each element of the collection, and removes the elements
/// that \p Edit drops.
template <typename Context, typename How>
void editCollection(Module &M, llvm::StringRef Key, How &Edit) {
  auto It = M.metaGraph()->collection_def().find(Key.str());
  if (It == M.metaGraph()->collection_def().end())
    return;
  tensorflow::CollectionDef Collection = It->second;
  auto &All = *Collection.mutable_bytes_list()->mutable_value();
  int Kept = 0;
  for (std::string &Bytes : All) {
    Context C;
    if (C.ParseFromString(Bytes)) {
      if (Edit.drops(C))
        continue;
      Edit.lower(C);
      Bytes = serialize(C);
    }
    All[Kept++].swap(Bytes);
  }
  All.DeleteSubrange(Kept, All.size() - Kept);
  M.setCollection(Key, Collection);
}

/// Calls How::lower() to edit each context of version 1 conditionals and loops.
template <typename How, typename... Args>
void editContexts(Module &M, Args... More) {
  const tensorflow::MetaGraphDef *Meta = M.metaGraph();
  if (!Meta || (Meta->collection_def().count("cond_context") == 0 &&
                Meta->collection_def().count("while_context") == 0))
    return;
  How Edit(M.graph(), More...);
  editCollection<tensorflow::CondContextDef>(M, "cond_context", Edit);
  editCollection<tensorflow::WhileContextDef>(M, "while_context", Edit);
}

/// Removes from contexts the names of nodes that are no longer in the graph,
/// because they were inlined, partitioned or are on another worker. Removes
/// contexts without names.
void pruneContexts(Module &M);

} // namespace graft

#endif // GRAFT_LIB_IO_CONTROLCONTEXTS_H
