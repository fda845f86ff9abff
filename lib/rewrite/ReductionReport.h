//===- lib/rewrite/ReductionReport.h - what is told of reductions ---------===//
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
  /// \p Before: of the program before any of its writes is repaired;
  /// \p Fetched: names of tensors whose value is wanted.
  ReductionReport(const Graph &G, const ProgramFacts &Before,
                  llvm::ArrayRef<std::string> Fetched, DiagnosticEngine &Diags);

  void warnRepair(const ProgramFacts &Facts, const Repair &R) const;
  /// Writes that would leave the copies of a variable other than each other,
  /// one error for a cause.
  void refuseDrifts(const ProgramFacts &Facts) const;
  /// What is reduced or gathered, and which variables need it.
  void remarkDemands(const ProgramFacts &Facts, bool OnlyGathers = false) const;
  /// What is reduced, and what is not proved.
  void report(const ProgramFacts &Facts, unsigned Replicas) const;
  /// Warns if the step takes nothing from the batch to a variable.
  /// How much of the work is spread, if not all is: a remark that is always
  /// shown, or a warning below half, or an error below \p MinPercent. \p Causes
  /// are nodes that no rule relates, and why. False after an error.
  bool sayOfSpread(const Spread &Work,
                   llvm::ArrayRef<std::pair<std::string, std::string>> Causes,
                   unsigned MinPercent) const;
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
