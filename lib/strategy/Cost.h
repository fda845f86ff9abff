//===- lib/strategy/Cost.h - the cost of a strategy -------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
// Predicts the bytes on each link of a cluster and the seconds of one step
// under a strategy, without running anything. docs/Plan.md has the formulas,
// the assumptions and the sources of the constants.
//
//===----------------------------------------------------------------------===//

#ifndef GRAFT_LIB_STRATEGY_COST_H
#define GRAFT_LIB_STRATEGY_COST_H

#include "lib/strategy/Record.h"
#include "lib/strategy/Resources.h"

#include "llvm/ADT/StringMap.h"

#include <set>

namespace graft {

/// Machine properties that a resource spec does not state.
struct LinkSpeeds {
  /// Bytes per second inside a machine, shared by its devices: a PCIe 3.0 root
  /// of 16 lanes moves 15.75 GB/s less its headers.
  double Inside = 12e9;
  /// Seconds of latency of a message: TCP between machines of a data center.
  double Latency = 50e-6;
  /// Seconds of processor time on a machine for one message of a session.
  double PerMessage = 5e-6;
  /// Seconds of a step without communication, equal for all strategies.
  double Compute = 0;
};

/// The traffic of a machine in one part of a step.
struct NodeTraffic {
  double Out = 0;      ///< Bytes to the network.
  double In = 0;       ///< Bytes from the network.
  double Inside = 0;   ///< Bytes between, to and from its devices.
  double Messages = 0; ///< Sent or received over the network.
};

/// The traffic of a step in three phases that do not overlap. Values of shared
/// variables are sent to replicas, rows are gathered for nodes that run once,
/// and gradients are collected. Transfers within a phase overlap.
struct Traffic {
  std::vector<NodeTraffic> Spread, Collect; ///< By node of the spec.
  /// The rows gathered for nodes that run once, in the middle of the step.
  std::vector<NodeTraffic> Join;
  /// Fused all-reduces, which run sequentially.
  std::set<std::pair<int, unsigned>> Groups;
  double Hops = 0;     ///< Sequential latencies, outside of groups.
  bool Shared = false; ///< Set if a variable is on a parameter server.
};

struct Prediction {
  double Seconds = 0;
  /// The bytes of the slowest link in the whole step.
  double BusiestBytes = 0;
  std::string BusiestLink; ///< "ADDRESS out", "ADDRESS in", "ADDRESS inside".
  double NetworkBytes = 0; ///< Over all machines.
  /// Seconds of the phases in order, and of the latencies between them.
  double Spread = 0, Join = 0, Collect = 0, Latencies = 0;
  std::vector<NodeTraffic> Nodes; ///< For the whole step, by node of the spec.
};

/// Bytes of rows that are gathered from the replicas for nodes that run once.
struct JoinedBytes {
  double PerStep = 0, PerRow = 0; ///< Bytes in all; bytes per batch row.
};

class CostModel {
public:
  explicit CostModel(const ResourceSpec &Spec, LinkSpeeds Speeds = {});

  unsigned replicas() const { return Count; }
  Traffic none() const;
  /// Adds the traffic of the variable \p Row under \p S to \p T.
  void add(Traffic &T, const VariableRow &Row, const VariableStrategy &S) const;
  /// Adds the gather of \p Bytes, summed over replicas, to replica 0.
  void addJoined(Traffic &T, double Bytes) const;
  Prediction predict(const Traffic &T) const;
  Prediction predict(llvm::ArrayRef<VariableRow> Variables,
                     const StrategyRecord &Record, double Joined = 0) const;
  /// Returns the machine of \p Device, a full name; empty: the first replica's.
  size_t nodeOf(llvm::StringRef Device) const;
  /// Returns the seconds that the network of machine \p Node is busy.
  double networkSeconds(const Traffic &T, size_t Node) const;

private:
  void addRing(Traffic &T, double Bytes) const;
  void addGather(Traffic &T, double Bytes) const;
  /// Adds \p Down bytes from the destination to each replica and \p Up bytes
  /// back. If \p Same, all replicas receive the same tensor.
  void addServer(Traffic &T, const Synchronizer &S, double Down, bool Same,
                 double Up) const;

  struct Place {
    size_t Node = 0;
    bool IsReplica = false, IsHost = false;
  };
  Place placeOf(llvm::StringRef Device) const;

  const ResourceSpec &Spec;
  LinkSpeeds Speeds;
  llvm::StringMap<Place> Places;
  std::vector<unsigned> Replicas; ///< By node.
  unsigned Count = 0;             ///< The number of replicas.
};

/// Returns a text such as "1.20 MB".
std::string bytesText(double Bytes);

/// Returns the bytes that one replica sends: the rows of \p Row that its step
/// updates, with indices, or the whole variable if the row count is not known.
double bytesOfRows(const VariableRow &Row, unsigned Replicas);

} // namespace graft

#endif // GRAFT_LIB_STRATEGY_COST_H
