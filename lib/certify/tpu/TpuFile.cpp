//===- lib/certify/tpu/TpuFile.cpp - a file of TPU form -------------------===//
//
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "lib/certify/tpu/TpuFile.h"

#include "lib/certify/tpu/Spread.h"
#include "lib/graph/DeviceName.h"
#include "lib/graph/Walk.h"
#include "lib/infer/graph/Conditions.h"
#include "lib/infer/graph/Topology.h"
#include "lib/ops/OpRule.h"
#include "lib/ops/Ops.h"
#include "lib/program/Program.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringSwitch.h"

#include <numeric>

using namespace llvm;

namespace graft {

static constexpr StringLiteral ClusterAttr = "_tpu_replicate";
static constexpr StringLiteral HostAttr = "_xla_outside_compilation";
static constexpr StringLiteral PivotAttr = "_pivot_for_cluster";
static constexpr StringLiteral StatusAttr = "_tpu_compilation_status";

bool isTpuForm(const Graph &G) {
  for (NodeId N = 0; N < G.size(); ++N)
    if (G.isLive(N) && G.isOp(N, op::TPUReplicateMetadata))
      return true;
  return false;
}

StringRef TpuFile::base(NodeId N) const {
  StringRef Name = originName(G, N), Rest = Name;
  if (isMember(N) && In.find(Name) == NoNode && Rest.consume_front(Cluster) &&
      Rest.consume_front("/") && In.find(Rest) != NoNode)
    return Rest;
  return Name;
}

bool TpuFile::findMetadata() {
  for (NodeId N = 0; N < G.size(); ++N) {
    if (!G.isLive(N) || !G.isOp(N, op::TPUReplicateMetadata))
      continue;
    if (Metadata != NoNode)
      return error(N, "is a second TPU computation; only a graph of one TPU "
                      "computation is certified");
    Metadata = N;
  }
  return checkMetadata();
}

/// Checks the number of replicas, and that all other attributes of the metadata
/// concern only placement and compilation.
bool TpuFile::checkMetadata() {
  for (const AttrEntry &A : G.attrs(Metadata)) {
    bool Known =
        StringSwitch<bool>(A.Key)
            .Cases("num_replicas", "num_cores_per_replica", true)
            .Cases("topology", "device_assignment", "use_tpu", true)
            .Cases("step_marker_location", "allow_soft_placement", true)
            .Cases("use_spmd_for_xla_partitioning", "host_compute_core",
                   ClusterAttr, true)
            .Default(false);
    if (!Known)
      return error(Metadata, "attribute '" + A.Key + "' is not understood");
  }
  int64_t Number = G.intAttr(Metadata, "num_replicas").value_or(0);
  if (Number < 1 || Number > G.size())
    return error(Metadata, "has a num_replicas that is less than 1 or more "
                           "than the nodes of the graph");
  if (G.intAttr(Metadata, "num_cores_per_replica").value_or(1) != 1)
    return error(
        Metadata,
        "has a num_cores_per_replica other than 1, which is not certified");
  if (!G.dataInputs(Metadata).empty() || G.inputs(Metadata).size() != 1)
    return error(Metadata, "does not have the control dependency on the pivot "
                           "of its computation as its only input");
  Replicas = static_cast<unsigned>(Number);
  Pivot = G.input(Metadata, 0).Node;
  Cluster = G.stringAttr(Metadata, ClusterAttr).value_or("");
  if (Cluster.empty())
    return error(
        Metadata,
        "has no attribute _tpu_replicate with the name of its computation");
  if (!G.isOp(Pivot, op::NoOp) || G.stringAttr(Pivot, PivotAttr) != Cluster ||
      !G.inputs(Pivot).empty())
    return error(Pivot, "is the control input of the TPUReplicateMetadata, but "
                        "not the pivot of the computation");
  return true;
}

bool TpuFile::findRoles() {
  Roles.assign(G.size(), TpuRole::Outside);
  for (NodeId N = 0; N < G.size(); ++N) {
    if (!G.isLive(N))
      continue;
    auto Its = G.stringAttr(N, ClusterAttr);
    if (N == Metadata)
      Roles[N] = TpuRole::Metadata;
    else if (N == Pivot)
      Roles[N] = TpuRole::Pivot;
    else if (G.isOp(N, op::TPUReplicatedInput))
      Roles[N] = TpuRole::Input;
    else if (G.isOp(N, op::TPUReplicatedOutput))
      Roles[N] = TpuRole::Output;
    else if (auto Status = G.stringAttr(N, StatusAttr)) {
      if (*Status != Cluster || G.hasUses(N) ||
          !(G.isOp(N, op::TPUCompilationResult) || G.isOp(N, op::NoOp)))
        return error(N, "has a _tpu_compilation_status but is not the "
                        "compilation status of the computation");
      Roles[N] = TpuRole::Status;
    } else if (Its) {
      if (*Its != Cluster)
        return error(N, "is in another computation, '" + *Its + "'");
      bool Starts = G.isOp(N, op::NoOp) && !isOfInput(N) &&
                    G.node(N).NumInputs == 1 && G.input(N, 0).Node == Pivot;
      Roles[N] = G.isOp(N, op::CrossReplicaSum) ? TpuRole::Sum
                 : Starts                       ? TpuRole::Start
                                                : TpuRole::Member;
    } else if (G.hasAttr(N, HostAttr) || G.hasAttr(N, PivotAttr) ||
               G.opName(N).starts_with("TPU") || G.isOp(N, op::CrossReplicaSum))
      return error(N, "belongs to a TPU computation, but has no attribute "
                      "_tpu_replicate with its name");
  }
  return true;
}

/// Finds nodes that were inserted to wait for the computation or to pass on its
/// results.
void TpuFile::findRuns() {
  for (bool Changed = true; Changed;) {
    Changed = false;
    for (NodeId N = 0; N < G.size(); ++N) {
      if (!G.isLive(N) || Roles[N] != TpuRole::Outside || G.inputs(N).empty() ||
          G.hasAttr(N, StampAttr) ||
          !all_of(G.controlInputs(N),
                  [&](Endpoint E) { return runsComputation(E.Node); }))
        continue;
      // A NoOp that runs the computation may have the name of one of its ops.
      NodeId Was = In.find(G.name(N));
      if (G.isOp(N, op::NoOp) && (Was == NoNode || !In.isOp(Was, op::NoOp))) {
        Roles[N] = TpuRole::Run;
        Changed = true;
      } else if (G.isOp(N, op::Identity) && Was == NoNode &&
                 G.node(N).NumData == 1 &&
                 Roles[G.input(N, 0).Node] == TpuRole::Output) {
        Roles[N] = TpuRole::Shard;
        Changed = true;
      }
    }
  }
}

bool TpuFile::waitsOnlyFor(NodeId N, NodeId For) {
  for (Endpoint E : G.controlInputs(N))
    if (E.Node != For)
      return error(N, "waits for '" + G.name(E.Node) +
                          "', for which an op of its kind must not wait");
  return true;
}

bool TpuFile::checkInput(NodeId N) {
  unsigned Count = G.node(N).NumData;
  bool Packed = G.boolAttr(N, "is_packed").value_or(false);
  for (const AttrEntry &A : G.attrs(N))
    if (!StringSwitch<bool>(A.Key)
             .Cases("N", "T", "index", "is_packed", "is_mirrored_variable",
                    true)
             .Default(false))
      return error(N, "attribute '" + A.Key + "' is not understood");
  if (Packed)
    return error(N, "has a packed input, whose copies are not known");
  if (Count != Replicas || G.intAttr(N, "N") != Replicas)
    return error(N, "does not have one input for each replica");
  if (G.boolAttr(N, "is_mirrored_variable").value_or(false) !=
      (G.typeAttr(N, "T") == DT_RESOURCE))
    return error(N, "has an is_mirrored_variable that does not match the type "
                    "of its inputs");
  if (G.anyUse(N, [&](Use U) { return !isMember(U.User) || !G.isData(U); }))
    return error(N, "is used outside of the computation");
  return waitsOnlyFor(N, Metadata);
}

bool TpuFile::checkOutput(NodeId N) {
  if (G.intAttr(N, "num_replicas") != Replicas)
    return error(N, "does not have one output for each replica");
  if (G.node(N).NumData != 1 || !isMember(G.input(N, 0).Node))
    return error(N, "does not take exactly one tensor of the computation");
  if (G.anyUse(N, [&](Use U) {
        return !G.isData(U) || isMember(U.User) || G.input(U).Port >= Replicas;
      }))
    return error(N, "is used in the computation, as a control input, or at an "
                    "output for a replica that does not exist");
  return waitsOnlyFor(N, NoNode);
}

/// Checks that each replica gets the sum over all replicas.
bool TpuFile::checkSum(NodeId N) {
  if (G.node(N).NumData != 2)
    return error(N, "does not have two inputs");
  NodeId Groups = G.input(N, 1).Node;
  auto Value = constValue(G, Groups, Replicas);
  SmallVector<int64_t, 8> All(Replicas);
  std::iota(All.begin(), All.end(), 0);
  if (!Value || !Value->HasInts || ArrayRef(Value->Ints) != ArrayRef(All) ||
      Value->Shape.Dims != SmallVector<int64_t, 4>{1, int64_t(Replicas)})
    return error(N, "does not sum over one group of all replicas in order");
  return true;
}

bool TpuFile::checkMember(NodeId N) {
  for (Endpoint E : G.inputs(N)) {
    TpuRole From = Roles[E.Node];
    bool Data = !E.isControl();
    if (From == TpuRole::Output || From == TpuRole::Run ||
        From == TpuRole::Shard || From == TpuRole::Status ||
        From == TpuRole::Start ||
        (Data && (From == TpuRole::Metadata || From == TpuRole::Pivot)) ||
        (!Data && From == TpuRole::Input))
      return error(N, "is in the computation but depends on '" +
                          G.name(E.Node) +
                          "', which follows or wraps the computation");
  }
  // A stateless op has the same value wherever it runs.
  auto Device = DeviceName::parse(G.device(N));
  const OpDef *Def = G.opDef(N);
  if ((!Def || Def->isStateful()) &&
      (!Device || !(Device->Type.empty() || Device->Type == "CPU" ||
                    Device->Type == "TPU_REPLICATED_CORE")))
    return error(N, "is in the computation but on the device " + G.device(N));
  if (Replicas > 1 && isRandomOp(G.opName(N)) &&
      (G.intAttr(N, "seed").value_or(0) != 0 ||
       G.intAttr(N, "seed2").value_or(0) != 0))
    return error(N, "draws random numbers with a seed, and the replicas of a "
                    "TPU may draw the same numbers with it");
  return Roles[N] != TpuRole::Sum || checkSum(N);
}

bool TpuFile::checkOutside(NodeId N) {
  for (Endpoint E : G.inputs(N)) {
    TpuRole From = Roles[E.Node];
    if (E.isControl() ? From == TpuRole::Pivot || From == TpuRole::Metadata ||
                            From == TpuRole::Status
                      : isMember(E.Node))
      return error(N, "is outside of the computation but depends on '" +
                          G.name(E.Node) + "', a node inside it");
  }
  return true;
}

bool TpuFile::checkNode(NodeId N) {
  switch (Roles[N]) {
  case TpuRole::Metadata:
  case TpuRole::Pivot:
  case TpuRole::Start:
    return true;
  case TpuRole::Status:
    return waitsOnlyFor(N, Metadata);
  case TpuRole::Input:
    return checkInput(N);
  case TpuRole::Output:
    return checkOutput(N);
  case TpuRole::Member:
  case TpuRole::Sum:
    return checkMember(N);
  case TpuRole::Outside:
  case TpuRole::Run:
  case TpuRole::Shard:
    return checkOutside(N);
  }
  return false;
}

/// Checks that the computation runs as a whole: no path leaves the computation
/// and comes back.
bool TpuFile::isWhole() {
  // The nodes before the computation, from its inputs on.
  std::vector<bool> Before(G.size());
  std::vector<NodeId> First;
  for (NodeId N = 0; N < G.size(); ++N)
    if (G.isLive(N) && isMember(N))
      for (Endpoint E : G.inputs(N))
        if (!isMember(E.Node))
          First.push_back(E.Node);
  NodeId Between = NoNode;
  walkInputs(G, std::move(First), Along::All, Before, [&](NodeId N) {
    if (Between == NoNode && any_of(G.inputs(N), [&](Endpoint E) {
          return isMember(E.Node) || Roles[E.Node] == TpuRole::Output;
        }))
      Between = N;
    return Between == NoNode;
  });
  return Between == NoNode ||
         error(Between, "is outside of the computation and between two of its "
                        "ops, but the computation runs as a whole");
}

/// Checks that no operand or result of the computation is in a branch: a
/// computation returns all of its results or none.
bool TpuFile::isInNoBranch() {
  if (!Conditions::any(G))
    return true;
  Conditions Branches(G, topologicalOrder(G));
  for (NodeId N = 0; N < G.size(); ++N) {
    if (!G.isLive(N) || !(isMember(N) || Roles[N] == TpuRole::Input ||
                          Roles[N] == TpuRole::Output))
      continue;
    for (Endpoint E : G.inputs(N))
      if ((!isMember(E.Node) || Roles[N] == TpuRole::Output) &&
          !(E.isControl() ? Branches.of(E.Node) : Branches.choices(E)).empty())
        return error(N, "depends across the border of the computation on '" +
                            G.name(E.Node) +
                            "', which has no value if its branch is not taken");
  }
  return true;
}

bool TpuFile::read() {
  if (!findMetadata() || !findRoles())
    return false;
  findRuns();
  for (NodeId N = 0; N < G.size(); ++N)
    if (G.isLive(N) && !checkNode(N))
      return false;
  // Without an input, all replicas would compute the same.
  if (Replicas > 1 && !is_contained(Roles, TpuRole::Input))
    return error(Metadata, "has several replicas but no TPUReplicatedInput, so "
                           "all replicas compute the same");
  return isWhole() && isInNoBranch();
}

} // namespace graft
