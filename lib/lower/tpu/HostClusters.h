//===- lib/lower/tpu/HostClusters.h - host ops of TPU computations *- C++ -*-=//
//
// SPDX-License-Identifier: Apache-2.0
//
// Ops of a TPU computation that run on the host, which TensorFlow calls outside
// compilation. Ops with one id in `_xla_outside_compilation` are one host
// cluster of the computation that `_tpu_replicate` names. Before tpu-replicate,
// no op has that attribute, and the whole graph counts as one computation.
//
//===----------------------------------------------------------------------===//

#ifndef GRAFT_LIB_LOWER_TPU_HOSTCLUSTERS_H
#define GRAFT_LIB_LOWER_TPU_HOSTCLUSTERS_H

#include "lib/graph/Graph.h"

#include <vector>

namespace tensorflow {
class FunctionDef;
} // namespace tensorflow

namespace graft {

class DiagnosticEngine;

inline constexpr llvm::StringRef TpuClusterAttr = "_tpu_replicate";
inline constexpr llvm::StringRef HostClusterAttr = "_xla_outside_compilation";

/// The TPU computations of a graph and the host clusters in them. Nodes that
/// are added later are not covered.
class HostClusters {
public:
  explicit HostClusters(Graph &G);

  /// Returns the number of the computation that contains \p N; 0: none does.
  uint32_t of(NodeId N) const { return Of[N]; }
  /// Returns a number that is greater than the first number of each id in
  /// computation \p C.
  unsigned nextId(uint32_t C) const { return Computations[C].NextId; }
  /// Records that computation \p C has a host cluster \p Id.
  void count(uint32_t C, llvm::StringRef Id);

  /// Returns the name of \p N in the input graph. tpu-replicate renames an
  /// output of a computation to `<computation>/<name>`.
  llvm::StringRef inputName(NodeId N) const;
  /// Returns true if \p N is no op of the input graph but was added for the TPU
  /// form of a computation.
  bool isScaffold(NodeId N) const;

  /// Puts \p N into host cluster \p Id, with each Identity that reads an
  /// outside tensor only for a control edge to \p N.
  void mark(NodeId N, llvm::StringRef Id);
  /// Marks the gradients of host ops: ops in a scope `S/gradients` or
  /// `S/gradients_<k>` that are colocated with a host op. The gradient of an op
  /// in host cluster `r` or `r.*` gets the id `r.S/gradients/uid`. If a name
  /// has several such scopes, the id has the outermost one. \p Chained ids have
  /// all of them, the innermost one first.
  void markGradients(bool Chained);
  /// Moves the core of host ops from the device field `TPU_REPLICATED_CORE:k`
  /// to an entry `<id>:<k>` in `host_compute_core` of the computation's
  /// metadata: host ops are on no core, but send to one. Reports a host cluster
  /// on two cores. Returns false after an error.
  bool moveCores(DiagnosticEngine &Diags);

private:
  struct Computation {
    llvm::StringRef Name;
    NodeId Metadata = NoNode;
    unsigned NextId = 0;
  };

  Graph &G;
  std::vector<Computation> Computations; ///< Entry 0 is for ops in none.
  std::vector<uint32_t> Of;              ///< By node.
};

/// Reports a path that leaves a host cluster and comes back. TensorFlow makes
/// one node of the cluster, which would wait for itself. Returns false after an
/// error.
bool checkHostCycles(const Graph &G, DiagnosticEngine &Diags);
bool checkHostCycles(const tensorflow::FunctionDef &Body,
                     DiagnosticEngine &Diags);

/// Adds one warning that names up to five ops that no TPU runs, such as
/// summaries and Print, if they are in a computation but not on the host.
void warnUnsupportedOps(const Graph &G, DiagnosticEngine &Diags);

} // namespace graft

#endif // GRAFT_LIB_LOWER_TPU_HOSTCLUSTERS_H
