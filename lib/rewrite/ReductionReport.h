//===- lib/rewrite/ReductionReport.h - diagnostics of reductions ----------===//
//
// SPDX-License-Identifier: Apache-2.0
//
// The diagnostics of insert-reductions: a remark for each reduction, and a
// warning or error for each cause of writes that are not proved.
//
//===----------------------------------------------------------------------===//

#ifndef GRAFT_LIB_REWRITE_REDUCTIONREPORT_H
#define GRAFT_LIB_REWRITE_REDUCTIONREPORT_H

#include "lib/infer/facts/LocalRuns.h"
#include "lib/infer/facts/ProgramFacts.h"
#include "lib/rewrite/Spread.h"
#include "lib/support/Diagnostics.h"

#include "llvm/ADT/DenseMap.h"

namespace graft {

struct Repair;

class ReductionReport {
public:
  /// \p Before has the facts before any write is repaired. \p Fetched has the
  /// names of fetched tensors.
  ReductionReport(const Graph &G, const ProgramFacts &Before,
                  llvm::ArrayRef<std::string> Fetched, DiagnosticEngine &Diags);

  void warnRepair(const ProgramFacts &Facts, const Repair &R) const;
  /// Reports writes that would make the copies of a variable differ: one error
  /// for each cause.
  void refuseDrifts(const ProgramFacts &Facts) const;
  /// Remarks on each reduction or gather and the variables that need it.
  void remarkDemands(const ProgramFacts &Facts, bool OnlyGathers = false) const;
  /// Remarks on the reductions; warns of values that are not proved.
  void report(const ProgramFacts &Facts, unsigned Replicas) const;
  /// Reports the distributed share of the work if it is below 100 %: as a
  /// remark that is always shown, a warning below 50 %, or an error below \p
  /// MinPercent. \p Causes are nodes of unknown type and reasons. Returns false
  /// after an error.
  bool sayOfSpread(const Spread &Work,
                   llvm::ArrayRef<std::pair<std::string, std::string>> Causes,
                   unsigned MinPercent) const;
  /// Warns if no variable is updated with a value that depends on the batch.
  void warnNoGradient(const ProgramFacts &Facts) const;

private:
  void note(Diagnostic &D, const ProgramFacts &Facts, NodeId Cause,
            bool HowMany = false) const;
  void warnWrites(const ProgramFacts &Facts) const;
  void warnAsked(const ProgramFacts &Facts, NodeId N, unsigned I) const;
  void sayOfGroups(const ProgramFacts &Facts, unsigned Replicas) const;
  void warnAssumptions(const TypeAnalysis &Types) const;

  const Graph &G;
  DiagnosticEngine &Diags;
  llvm::DenseMap<NodeId, Spoils> Spoiled; ///< By cause.
};

} // namespace graft

#endif // GRAFT_LIB_REWRITE_REDUCTIONREPORT_H
