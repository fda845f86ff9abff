//===- lib/rewrite/LocalInit.cpp - session initialization -------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "lib/rewrite/LocalInit.h"

#include "tensorflow/core/protobuf/meta_graph.pb.h"

#include "llvm/ADT/STLExtras.h"

using namespace llvm;

namespace graft {

static constexpr StringLiteral Key = "local_init_op";

void forEachVariable(const Module &M, StringRef Key,
                     function_ref<void(const tensorflow::VariableDef &)> F) {
  const auto &Collections = M.metaGraph()->collection_def();
  auto It = Collections.find(Key.str());
  if (It == Collections.end())
    return;
  for (const std::string &Bytes : It->second.bytes_list().value()) {
    tensorflow::VariableDef V;
    if (V.ParseFromString(Bytes))
      F(V);
  }
}

std::optional<SmallVector<NodeId, 8>> localInit(const Module &M) {
  const Graph &G = M.graph();
  const auto &Collections = M.metaGraph()->collection_def();
  SmallVector<NodeId, 8> Runs;
  auto Run = [&](StringRef Name) {
    auto E = G.findEndpoint(Name);
    if (E && !is_contained(Runs, E->Node))
      Runs.push_back(E->Node);
  };
  auto It = Collections.find(Key.str());
  int Named = It == Collections.end() ? 0 : It->second.node_list().value_size();
  if (Named > 1)
    return std::nullopt;
  if (Named == 1) {
    Run(It->second.node_list().value(0));
    return Runs;
  }
  forEachVariable(M, "local_variables", [&](const tensorflow::VariableDef &V) {
    Run(V.initializer_name());
  });
  It = Collections.find("table_initializer");
  if (It != Collections.end())
    for (const std::string &Name : It->second.node_list().value())
      Run(Name);
  return Runs;
}

static void set(Module &M, NodeId N, bool Alone) {
  const auto &Collections = M.metaGraph()->collection_def();
  tensorflow::CollectionDef Collection;
  if (auto It = Collections.find(Key.str()); It != Collections.end())
    Collection = It->second;
  if (Alone)
    Collection.mutable_node_list()->clear_value();
  Collection.mutable_node_list()->add_value(M.graph().name(N).str());
  M.setCollection(Key, Collection);
}

void setLocalInit(Module &M, NodeId N) { set(M, N, /*Alone=*/true); }
void addLocalInit(Module &M, NodeId N) { set(M, N, /*Alone=*/false); }

} // namespace graft
