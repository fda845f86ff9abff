//===- lib/lower/tpu/TpuProgram.h - the step as one computation -*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
// Finds the part of a replicated program that is one TPU computation. Brings
// the program into a form in which the computation can be written once: nodes
// outside read only the results of the computation, and no path leaves the
// computation and comes back.
//
//===----------------------------------------------------------------------===//

#ifndef GRAFT_LIB_LOWER_TPU_TPUPROGRAM_H
#define GRAFT_LIB_LOWER_TPU_TPUPROGRAM_H

#include "lib/infer/facts/ProgramFacts.h"
#include "lib/lower/tpu/TpuForm.h"
#include "lib/program/Program.h"
#include "lib/support/Diagnostics.h"

#include "llvm/ADT/StringSet.h"

#include <optional>
#include <vector>

namespace graft {

/// The step of a replicated program. Its members are per-replica nodes and
/// unreplicated constants; each is written once in the TPU form.
struct TpuStep {
  std::vector<bool> Members; ///< By node.
  /// Per-replica tensors from outside that members read, mostly splits of
  /// feeds, in the order of their first readers.
  std::vector<Endpoint> Inputs;
  /// Variables with a copy per replica that members use.
  std::vector<NodeId> Variables;
  /// Tensors of members that nodes outside read.
  std::vector<Endpoint> Results;
  /// Members that nodes outside wait for, or that have an effect and no user.
  std::vector<NodeId> Effects;
  /// By node, for members on the host: how often a path to the node has come
  /// back from the host to the TPU. -1 for all other nodes. Nodes with the same
  /// number are one cluster.
  std::vector<int> HostCluster;

  bool isMember(NodeId N) const { return N < Members.size() && Members[N]; }
};

/// Finds the step of \p G and edits \p G so that the step can be written once.
/// A constant that members and nodes outside use gets a second node. So does a
/// read of a variable that nodes outside use or that is in \p Reads. Returns
/// nothing after an error.
std::optional<TpuStep> findTpuStep(Graph &G, const ProgramFacts &Facts,
                                   const llvm::StringSet<> &Reads,
                                   DiagnosticEngine &Diags);

/// Lowers the exchanges among the members of \p Step to ops that a TPU runs. A
/// sum is one CrossReplicaSum, and all other exchanges are built from it:
///
///     gather   r = CrossReplicaSum(Select(i == [0 .. N-1], N times x, 0)),
///              its parts joined
///     or, and  the sum of 0s and 1s is more than 0, or is N
///
/// Returns false after an error.
bool lowerTpuExchanges(Graph &G, TpuStep &Step, const Mesh &Devices,
                       DiagnosticEngine &Diags);

/// Lowers the program of \p M: its step becomes a TPU computation with the
/// properties of \p Options, the rest is expanded. Tensors in \p Fetches or
/// declared by the MetaGraphDef stay results. Returns false after an error.
bool lowerStepToTpu(Module &M, const TpuComputation &Options,
                    llvm::ArrayRef<llvm::StringRef> Fetches,
                    DiagnosticEngine &Diags);

} // namespace graft

#endif // GRAFT_LIB_LOWER_TPU_TPUPROGRAM_H
