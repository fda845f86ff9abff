//===- lib/rewrite/LocalInit.h - session initialization ---------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
// The collection `local_init_op` names the op that TensorFlow runs in each new
// session, after it initializes or restores variables. If it is empty,
// TensorFlow runs the initializers of local variables and tables.
//
//===----------------------------------------------------------------------===//

#ifndef GRAFT_LIB_REWRITE_LOCALINIT_H
#define GRAFT_LIB_REWRITE_LOCALINIT_H

#include "lib/io/Module.h"

#include "tensorflow/core/framework/variable.pb.h"

#include "llvm/ADT/SmallVector.h"

#include <optional>

namespace graft {

/// Calls \p F for each variable of the collection \p Key of a MetaGraphDef.
void forEachVariable(
    const Module &M, llvm::StringRef Key,
    llvm::function_ref<void(const tensorflow::VariableDef &)> F);

/// Returns the nodes that run in each new session; nullopt if the collection
/// names several, because the user then chooses one.
std::optional<llvm::SmallVector<NodeId, 8>> localInit(const Module &M);

/// Makes \p N the only op of the collection.
void setLocalInit(Module &M, NodeId N);
/// Adds \p N to the ops of the collection, among which the user chooses.
void addLocalInit(Module &M, NodeId N);

} // namespace graft

#endif // GRAFT_LIB_REWRITE_LOCALINIT_H
