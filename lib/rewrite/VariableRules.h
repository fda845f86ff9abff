//===- lib/rewrite/VariableRules.h - policies of variables ------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
// Applies the rules of `--variable=GLOB=POLICY[,AGGREGATION]`, and the rules
// that the VariableDefs of a MetaGraphDef declare.
//
//===----------------------------------------------------------------------===//

#ifndef GRAFT_LIB_REWRITE_VARIABLERULES_H
#define GRAFT_LIB_REWRITE_VARIABLERULES_H

#include "lib/infer/graph/Variables.h"
#include "lib/io/Module.h"
#include "lib/support/Diagnostics.h"

namespace graft {

/// Sets policy and aggregation of the variables of \p G by \p Rules:
/// `GLOB=POLICY[,AGGREGATION]`, separated by `;`. The first rule whose GLOB
/// (fnmatch) matches the name of a variable applies. A slot, which an op
/// updates together with a variable, gets the rule of the variable unless a
/// rule matches the slot. Adds all these variables to \p Named. Returns false
/// after an error.
bool applyVariableRules(Graph &G, const VariableIndex &Vars,
                        llvm::ArrayRef<std::string> Rules,
                        llvm::DenseSet<NodeId> &Named, DiagnosticEngine &Diags);

/// Returns "; did you mean 'X'?" if a variable has a name like \p Name.
std::string similarVariable(const Graph &G, const VariableIndex &Vars,
                            llvm::StringRef Name);

/// Sets policy and aggregation of variables as VariableDefs of \p M declare
/// them: a synchronization other than AUTO, or an aggregation other than NONE.
/// A variable with an aggregation alone gets the policy \p Default.
bool applyDeclaredRules(Module &M, Policy Default, DiagnosticEngine &Diags);

/// Returns true if \p Update writes a per-replica value. Replicas then run \p
/// Update in their step.
bool writesOwnValue(const Graph &G, const VariableIndex &Vars, NodeId Update);

/// Returns true if replicas run \p Update in their step: it reads or waits for
/// a per-replica node.
bool isInStep(const Graph &G, const VariableIndex &Vars, NodeId Update);

/// Reports writes to \p Var that TensorFlow refuses for its policy and
/// aggregation, in the words of TensorFlow. Returns false after an error.
bool checkWrites(const Graph &G, const VariableIndex &Vars, NodeId Var,
                 DiagnosticEngine &Diags);

} // namespace graft

#endif // GRAFT_LIB_REWRITE_VARIABLERULES_H
