//===- lib/rewrite/VariableRules.h - which policy which variable has ------===//
//
// SPDX-License-Identifier: Apache-2.0
//
// The rules of `--variable=GLOB=POLICY[,AGGREGATION]`, and those that a
// MetaGraphDef's variables declare themselves.
//
//===----------------------------------------------------------------------===//

#ifndef GRAFT_LIB_REWRITE_VARIABLERULES_H
#define GRAFT_LIB_REWRITE_VARIABLERULES_H

#include "lib/infer/graph/Variables.h"
#include "lib/io/Module.h"
#include "lib/support/Diagnostics.h"

namespace graft {

/// Gives the variables of \p G that \p Rules name their policy and aggregation:
/// `GLOB=POLICY[,AGGREGATION]`, separated by `;`. The first rule whose GLOB
/// (fnmatch) is the name of a variable holds for it. Slots, that is what an op
/// updates together with a variable, take its rule unless they have one.
/// \p Named gets these variables. False after an error.
bool applyVariableRules(Graph &G, const VariableIndex &Vars,
                        llvm::ArrayRef<std::string> Rules,
                        llvm::DenseSet<NodeId> &Named, DiagnosticEngine &Diags);

/// "; did you mean 'X'?" if a variable has nearly the name \p Name.
std::string similarVariable(const Graph &G, const VariableIndex &Vars,
                            llvm::StringRef Name);

/// The same for what the VariableDefs of \p M declare: a synchronization other
/// than AUTO, or an aggregation other than NONE, which alone leaves the policy
/// to be \p Default.
bool applyDeclaredRules(Module &M, Policy Default, DiagnosticEngine &Diags);

/// Whether \p Update takes a value that each replica has its own of: it is in
/// the step.
bool writesOwnValue(const Graph &G, const VariableIndex &Vars, NodeId Update);

/// Whether replicas run \p Update in their step: it takes what they compute, or
/// waits for it.
bool isInStep(const Graph &G, const VariableIndex &Vars, NodeId Update);

/// Refuses the writes to \p Var that TensorFlow refuses for its policy and
/// aggregation, in its words. False after an error.
bool checkWrites(const Graph &G, const VariableIndex &Vars, NodeId Var,
                 DiagnosticEngine &Diags);

} // namespace graft

#endif // GRAFT_LIB_REWRITE_VARIABLERULES_H
