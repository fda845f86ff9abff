//===- lib/infer/facts/ProgramFacts.h - facts about a program ---*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#ifndef GRAFT_LIB_INFER_FACTS_PROGRAMFACTS_H
#define GRAFT_LIB_INFER_FACTS_PROGRAMFACTS_H

#include "lib/infer/facts/SizeUses.h"
#include "lib/infer/graph/Topology.h"
#include "lib/infer/types/Types.h"
#include "lib/io/Module.h"

#include <memory>
#include <string>
#include <vector>

namespace graft {

/// Returns the options of a replicated program, with the replicas of its mesh.
DimOptions optionsOf(const Graph &G);

/// All analyses of a program. Each one reads only the results of earlier ones.
struct ProgramFacts {
  explicit ProgramFacts(const Graph &G, DimOptions Options);
  /// Infers the facts with optionsOf(G).
  explicit ProgramFacts(const Graph &G);

  /// Updates the facts after nodes were inserted to meet the demands of Types.
  /// The rules of these nodes infer their types.
  void adoptInserted(const Graph &G);

  std::vector<NodeId> Order;
  VariableIndex Vars;

private:
  struct Analyses {
    Analyses(const Graph &G, llvm::ArrayRef<NodeId> Order,
             const VariableIndex &Vars, const DimOptions &Options)
        : Dims(G, Order, Options), Types(G, Order, Dims, Vars),
          Uses(findSizeUses(G, Order, Dims, Types)) {}
    DimAnalysis Dims;
    TypeAnalysis Types;
    SizeUses Uses;
  };
  static std::unique_ptr<Analyses> settled(const Graph &G,
                                           llvm::ArrayRef<NodeId> Order,
                                           const VariableIndex &Vars,
                                           DimOptions Options);
  std::unique_ptr<Analyses> Of;

public:
  DimAnalysis &Dims;
  TypeAnalysis &Types;
  /// Returns the uses of size facts that Dims and Types rely on.
  llvm::ArrayRef<SizeUse> sizeUses() const { return Of->Uses.Founded; }
};

/// Returns the facts of \p M's program. Infers them unless they are known.
ProgramFacts &programFacts(Module &M);

/// Returns true if the facts of \p M are known.
bool hasFacts(const Module &M);

/// Lets the next programFacts() update the known facts of \p M, in which a pass
/// inserted nodes or lowered collective requests (ProgramFacts::adoptInserted).
void adoptFacts(Module &M);

/// Marks the facts of \p M as valid after an edit that does not change them.
void keepFacts(Module &M);

} // namespace graft

#endif // GRAFT_LIB_INFER_FACTS_PROGRAMFACTS_H
