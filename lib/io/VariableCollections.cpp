//===- lib/io/VariableCollections.cpp - collections of variables ----------===//
//
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "lib/io/VariableCollections.h"

#include "lib/ops/Ops.h"
#include "lib/support/Wire.h"

#include "tensorflow/core/protobuf/meta_graph.pb.h"

#include "llvm/ADT/STLExtras.h"

using namespace llvm;

namespace graft {

std::vector<NodeId> variablesOf(const Module &M, StringRef Key) {
  const Graph &G = M.graph();
  std::vector<NodeId> Vars;
  if (!M.metaGraph())
    return Vars;
  const auto &Collections = M.metaGraph()->collection_def();
  auto It = Collections.find(Key.str());
  if (It == Collections.end())
    return Vars;
  for (const std::string &Bytes : It->second.bytes_list().value()) {
    wire::Field F;
    for (wire::Reader R(Bytes); R.next(F);) {
      // VariableDef.variable_name.
      if (F.Number != 1 || F.WireType != wire::Type::Bytes)
        continue;
      auto E = G.findEndpoint(F.Bytes);
      if (E && !E->isControl() && isVariableOp(G.opName(E->Node)))
        Vars.push_back(E->Node);
    }
  }
  return Vars;
}

std::vector<NodeId> localVariablesOf(const Module &M) {
  std::vector<NodeId> Local = variablesOf(M, "local_variables");
  for (NodeId Var : variablesOf(M, "variables"))
    erase(Local, Var);
  return Local;
}

} // namespace graft
