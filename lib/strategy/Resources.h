//===- lib/strategy/Resources.h - machines and variables --------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
// The input of strategy builders: the machines of a resource_spec.yml
// (AutoDist's format) and the known properties of the variables of a graph.
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
  std::string Address; ///< The name of its task if only that is known.
  bool Chief = false;
  std::vector<unsigned> Gpus; ///< Indices, in order.
  std::vector<unsigned> Cpus; ///< {0} unless the file lists others.
  double Bandwidth = 1;       ///< Network bandwidth in Gbit/s.
};

/// The machines: the chief, then the other machines in the order of the file.
struct ResourceSpec {
  std::vector<ResourceNode> Nodes;

  /// Returns one device per replica: the GPUs of each node, or its CPUs if it
  /// has no GPUs. `/device:GPU:0`, or with several nodes
  /// `/job:worker/task:1/device:GPU:0`, where the task is the index in Nodes.
  std::vector<std::string> replicaDevices() const;
  /// Returns the devices that builders use as reduction destinations: the CPUs
  /// of each node.
  std::vector<std::string> hostDevices() const;
  /// Returns the device that \p Name means: `ADDRESS:GPU:0` as AutoDist writes
  /// it, or a TensorFlow name. Returns nothing if there is none.
  std::optional<std::string> resolve(llvm::StringRef Name) const;
  /// Returns \p Device, a TensorFlow name, as AutoDist writes it.
  std::string autodistName(llvm::StringRef Device) const;
};

/// Parses the spec in \p Text. Errors are `FILE:LINE:COL: ...`; notes about
/// ignored parts go to \p Notes in the same form.
llvm::Expected<ResourceSpec> parseResources(llvm::StringRef Text,
                                            llvm::StringRef File,
                                            std::vector<std::string> &Notes);

/// Reads the spec in the file \p File.
llvm::Expected<ResourceSpec> readResources(llvm::StringRef File,
                                           std::vector<std::string> &Notes);

/// Returns a spec for replicas on \p Devices, full names or as AutoDist writes
/// them: one node for each task or address.
ResourceSpec resourcesOf(llvm::ArrayRef<std::string> Devices);

/// Returns the bytes of an element of \p Type, or 0 if they are not known.
unsigned bytesOf(unsigned Type);

/// The properties of a trainable variable that a strategy needs.
struct VariableRow {
  NodeId Node = NoNode;
  std::string Name;
  unsigned Type = DT_INVALID;
  std::vector<int64_t> Shape; ///< Fully known, or empty with Bytes 0.
  uint64_t Bytes = 0;
  bool Sparse = false; ///< Every update in the step has row indices.
  /// Sparse: the number of indices in a step, if shapes determine it; else 0.
  uint64_t RowsPerStep = 0;
};

/// Returns the trainable variables of \p G in node order: the variables in \p
/// Declared (the collection `trainable_variables`). If \p Declared is empty,
/// returns each variable that is the first operand of an optimizer's op. If
/// there is none, returns all floating-point variables of a known shape that
/// the graph updates.
std::vector<VariableRow> listVariables(const Graph &G,
                                       const VariableIndex &Vars,
                                       llvm::ArrayRef<NodeId> Declared);

/// Returns the variables for which a GraphItem names gradients, and the
/// variables of the collection `trainable_variables` if \p M is a MetaGraphDef
/// that has it.
std::vector<NodeId> declaredVariables(const Module &M);

} // namespace graft

#endif // GRAFT_LIB_STRATEGY_RESOURCES_H
