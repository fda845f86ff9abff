//===- lib/rewrite/LocalInit.h - what prepares a session --------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
// The collection `local_init_op` names what TensorFlow runs in each new
// session, after first values or those of a checkpoint; where it is empty, the
// initializers of local variables and tables.
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

/// What is run in each new session; nothing if the collection names several, of
/// which the user has to choose one.
std::optional<llvm::SmallVector<NodeId, 8>> localInit(const Module &M);

/// Makes \p N all that is run.
void setLocalInit(Module &M, NodeId N);
/// Adds \p N to those of which the user chooses.
void addLocalInit(Module &M, NodeId N);

} // namespace graft

#endif // GRAFT_LIB_REWRITE_LOCALINIT_H
