//===- lib/lower/tpu/TpuForm.h - the TPU form of a computation --*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
// TensorFlow's annotated graph of a computation that is replicated over the
// cores of TPUs: the ops exist once, are marked with the name of their cluster,
// and stand between TPUReplicatedInput and TPUReplicatedOutput.
// `tf.compat.v1.tpu.replicate` builds the same graph, and TensorFlow's own
// passes lower it.
//
//===----------------------------------------------------------------------===//

#ifndef GRAFT_LIB_LOWER_TPU_TPUFORM_H
#define GRAFT_LIB_LOWER_TPU_TPUFORM_H

#include "lib/lower/tpu/HostClusters.h"
#include "lib/support/Diagnostics.h"

#include <optional>
#include <string>
#include <vector>

namespace graft {

/// The device type of a core of a replica, the same for all replicas.
inline constexpr llvm::StringRef TpuCoreType = "TPU_REPLICATED_CORE";

/// An input with a tensor for each replica.
struct TpuInput {
  Endpoint Read;                ///< The tensor that members read; NoNode: none.
  std::vector<Endpoint> Values; ///< The tensor of replica r, for each r.
  /// The sizes to which values of different shapes are padded; -1: the largest
  /// among the replicas.
  std::optional<ShapeValue> Maximum;
};

/// A resource variable with a copy on each replica, or with one packed handle.
struct TpuVariable {
  NodeId Handle = NoNode;     ///< The handle that members read.
  std::vector<NodeId> Copies; ///< The handle of replica r, for each r.
  bool IsMirrored = false;
  bool IsPacked = false; ///< Copies has one handle for all replicas.
};

/// How the values of the replicas are combined.
struct TpuCombine {
  enum How : uint8_t { First, Sum, Mean, Concat };
  How Kind = First;
  unsigned Axis = 0; ///< The axis of Concat.
};

/// A tensor that a computation returns.
struct TpuOutput {
  Endpoint Tensor;
  TpuCombine Combine; ///< See TpuComputation::NameFetches.
};

/// A padded axis of an input. Size is the index of the input that has the true
/// size of the axis.
struct TpuPadding {
  unsigned Input;
  unsigned Axis;
  unsigned Size;
};

/// A computation to replicate, and the options of the replication.
struct TpuComputation {
  unsigned Replicas = 1;
  /// The ops of the computation. Tensors from outside that they read are
  /// captured, unless they are in Inputs or Variables.
  std::vector<NodeId> Members;
  std::vector<TpuInput> Inputs;
  std::vector<TpuPadding> Paddings; ///< See padTpuInputs.
  std::vector<TpuOutput> Outputs;
  std::vector<NodeId> Operations; ///< Members that are run by name.
  std::vector<TpuVariable> Variables;
  std::vector<Endpoint> Sums; ///< Tensors that are summed over replicas.
  /// If set, nodes outside that combine the values of the replicas get the
  /// names of outputs and operations, and members are renamed
  /// `<cluster>/<name>`. If not set, readers outside still read the member, and
  /// the caller connects them to TpuForm::Shards.
  bool NameFetches = true;
  /// Set if the graph is a program that is expanded later
  /// (lib/lower/expand/Expand.h). Each input and variable then has one
  /// per-replica node, and each result has one shard.
  bool Crossing = false;

  std::string Device; ///< The device of added nodes.
  std::string Topology;
  std::vector<int64_t> DeviceAssignment;
  unsigned CoresPerReplica = 1;
  std::string StepMarkerLocation = "STEP_MARK_AT_ENTRY";
  bool AllowSoftPlacement = false;
  bool UseSpmd = true;
  bool UseTpu = true;
};

/// The nodes that buildTpuForm adds for a computation.
struct TpuForm {
  std::string Cluster;
  NodeId Metadata = NoNode;
  /// For each output, its value on each replica.
  std::vector<std::vector<NodeId>> Shards;
  /// If there are no outputs: the nodes that run the computation on each
  /// replica.
  std::vector<NodeId> Runs;
  /// Uses by ops outside: reads of outputs, and control dependencies on ops
  /// that have an output or are operations of the computation.
  std::vector<Use> Readers;
};

/// Splits \p Tensor along \p Axis into one part for each of \p Replicas.
std::vector<Endpoint> splitForReplicas(Graph &G, Endpoint Tensor,
                                       unsigned Replicas, unsigned Axis,
                                       llvm::StringRef Device);

/// Returns true if TensorFlow accepts \p C. Otherwise reports the reason. Part
/// of buildTpuForm.
bool checkTpuComputation(const Graph &G, const TpuComputation &C,
                         const std::vector<bool> &IsMember,
                         DiagnosticEngine &Diags);

/// Brings \p C into TPU form in \p G. Returns nothing after an error, which
/// leaves the graph half edited.
std::optional<TpuForm> buildTpuForm(Graph &G, const TpuComputation &C,
                                    DiagnosticEngine &Diags);

/// Moves the names of the outputs and operations of \p C to nodes outside that
/// combine the values of the replicas, and makes ops outside read these nodes.
/// Part of buildTpuForm, which updates `_class`.
bool nameTpuFetches(Graph &G, const TpuComputation &C, const TpuForm &Form,
                    DiagnosticEngine &Diags);

/// A pattern of names of variables, and how these are copied.
struct TpuVariableRule {
  const char *Option; ///< For messages.
  std::string Pattern;
  bool IsMirrored = false, IsPacked = false;
};

/// Adds the variables that members of \p C use and \p Rules name, and makes
/// their copies. Returns false after an error: a rule matches no variable, or
/// rules of two options match one variable.
bool addTpuVariables(Graph &G, TpuComputation &C,
                     llvm::ArrayRef<TpuVariableRule> Rules,
                     DiagnosticEngine &Diags);

/// Adds copies of the variable \p Handle for replicas 1 and on, each on a TPU
/// of its own. A copy has the name of \p Handle followed by `/<Word><r>` if \p
/// IsMirrored, else by `/<r>`. Ops outside of \p IsMember that assign the
/// variable assign all copies. Existing copies are used. Returns nothing after
/// an error.
std::optional<TpuVariable> copyTpuVariable(Graph &G, NodeId Handle,
                                           unsigned Replicas, bool IsMirrored,
                                           llvm::StringRef Word,
                                           const std::vector<bool> &IsMember,
                                           DiagnosticEngine &Diags);

/// Pads the inputs of \p C that have a maximum shape, and adds inputs for their
/// true sizes. Returns false after an error.
bool padTpuInputs(Graph &G, TpuComputation &C, DiagnosticEngine &Diags);

/// Prepares functional control flow for the cluster \p Cluster: ops in \p
/// Members, and in functions that these call, are not turned into Switch and
/// Merge. Functions that ops outside call too are copied. Returns false after
/// an error.
bool keepTpuControlFlow(Graph &G, llvm::ArrayRef<NodeId> Members,
                        llvm::StringRef Cluster, DiagnosticEngine &Diags);

} // namespace graft

#endif // GRAFT_LIB_LOWER_TPU_TPUFORM_H
