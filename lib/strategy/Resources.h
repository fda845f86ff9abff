//===- lib/strategy/Resources.h - what a strategy may use -------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
// The machines of a resource_spec.yml (AutoDist's format), and what is known of
// the variables of a graph: all that a strategy builder reads.
//
//===----------------------------------------------------------------------===//

#ifndef GRAFT_LIB_STRATEGY_RESOURCES_H
#define GRAFT_LIB_STRATEGY_RESOURCES_H

#include "lib/infer/graph/Variables.h"
#include "lib/io/Module.h"

#include "llvm/Support/Error.h"

#include <string>
#include <vector>

namespace graft {

/// One machine.
struct ResourceNode {
  std::string Address; ///< Or, if only that is known, the name of its task.
  bool Chief = false;
  std::vector<unsigned> Gpus; ///< Indices, in order.
  std::vector<unsigned> Cpus; ///< {0} unless the file says otherwise.
  double Bandwidth = 1;       ///< That of its network, Gbit/s.
};

/// The machines, the chief first and the others in the order of the file.
struct ResourceSpec {
  std::vector<ResourceNode> Nodes;

  /// One for each replica: the GPUs of each node, or its CPUs where it has
  /// none. `/device:GPU:0`, or with several nodes
  /// `/job:worker/task:1/device:GPU:0`, the task being the place in Nodes.
  std::vector<std::string> replicaDevices() const;
  /// The devices that builders take as reduction destinations: the CPUs of each
  /// node.
  std::vector<std::string> hostDevices() const;
  /// The device that \p Name is: `ADDRESS:GPU:0` as AutoDist writes it, or a
  /// name of TensorFlow's. Nothing if there is none.
  std::optional<std::string> resolve(llvm::StringRef Name) const;
  /// \p Device, a name of TensorFlow's, as AutoDist writes it.
  std::string autodistName(llvm::StringRef Device) const;
};

/// The spec in \p Text. Errors are `FILE:LINE:COL: ...`; notes (what is
/// ignored) go to \p Notes in the same form.
llvm::Expected<ResourceSpec> parseResources(llvm::StringRef Text,
                                            llvm::StringRef File,
                                            std::vector<std::string> &Notes);

/// The spec in the file \p File.
llvm::Expected<ResourceSpec> readResources(llvm::StringRef File,
                                           std::vector<std::string> &Notes);

/// A spec for replicas on \p Devices, full names or as AutoDist writes them:
/// one node for each task or address.
ResourceSpec resourcesOf(llvm::ArrayRef<std::string> Devices);

/// The bytes of an element of \p Type; 0 if they are not known.
unsigned bytesOf(unsigned Type);

/// What a strategy needs to know of a trainable variable.
struct VariableRow {
  NodeId Node = NoNode;
  std::string Name;
  unsigned Type = DT_INVALID;
  std::vector<int64_t> Shape; ///< Fully known, or empty with Bytes 0.
  uint64_t Bytes = 0;
  bool Sparse = false; ///< Every update in the step takes rows (indices).
  /// Sparse: the indices of a step of the graph, if shapes tell; else 0.
  uint64_t RowsPerStep = 0;
};

/// The trainable variables of \p G in the order of their nodes: those that
/// \p Declared names (the collection `trainable_variables`), or, if it is
/// empty, those that an optimizer's op updates as its first variable; with none
/// of these either, all floating-point variables of a known shape that the
/// graph updates.
std::vector<VariableRow> listVariables(const Graph &G,
                                       const VariableIndex &Vars,
                                       llvm::ArrayRef<NodeId> Declared);

/// The variables of the collection `trainable_variables` of \p M, if it is a
/// MetaGraphDef that has one, or those of which a GraphItem names gradients.
std::vector<NodeId> declaredVariables(const Module &M);

} // namespace graft

#endif // GRAFT_LIB_STRATEGY_RESOURCES_H
