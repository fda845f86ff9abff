//===- lib/strategy/Cost.h - what a strategy costs --------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
// Bytes on each link of a cluster, and seconds, for one step under a strategy,
// without running anything. docs/Plan.md has the formulas, what is assumed and
// where each constant is from.
//
//===----------------------------------------------------------------------===//

#ifndef GRAFT_LIB_STRATEGY_COST_H
#define GRAFT_LIB_STRATEGY_COST_H

#include "lib/strategy/Record.h"
#include "lib/strategy/Resources.h"

#include "llvm/ADT/StringMap.h"

#include <set>

namespace graft {

/// What a resource spec does not say of the machines.
struct LinkSpeeds {
  /// Bytes per second inside a machine, which its devices share: a PCIe 3.0
  /// root of 16 lanes moves 15.75 GB/s less its headers.
  double Inside = 12e9;
  /// Seconds that a message is on its way: TCP between two machines of one
  /// data center.
  double Latency = 50e-6;
  /// Seconds that a machine's processors take for one message of a session.
  double PerMessage = 5e-6;
  /// Seconds of a step that are not communication. No strategy changes them.
  double Compute = 0;
};

/// What passes a machine in one part of a step.
struct NodeTraffic {
  double Out = 0;      ///< Bytes to the network.
  double In = 0;       ///< Bytes from the network.
  double Inside = 0;   ///< Bytes between its devices, and to and from them.
  double Messages = 0; ///< That it sends or receives over the network.
};

/// A step's traffic. Values of shared variables are spread before replicas
/// compute, gradients are collected after; the two do not overlap, all that is
/// in one of them does.
struct Traffic {
  std::vector<NodeTraffic> Spread, Collect; ///< By node of the spec.
  /// Of what is computed once, in the middle of the step.
  std::vector<NodeTraffic> Join;
  /// Fused all-reduces, which run one after the other.
  std::set<std::pair<int, unsigned>> Groups;
  double Hops = 0; ///< Latencies that follow each other and belong to no group.
  bool Shared = false; ///< Some variable is on a parameter server.
};

struct Prediction {
  double Seconds = 0;
  /// The bytes of the slowest link in the whole step.
  double BusiestBytes = 0;
  std::string BusiestLink; ///< "ADDRESS out", "ADDRESS in", "ADDRESS inside".
  double NetworkBytes = 0; ///< Over all machines.
  /// Seconds of the phases, in their order, and of messages between them.
  double Spread = 0, Join = 0, Collect = 0, Latencies = 0;
  std::vector<NodeTraffic> Nodes; ///< Of the whole step, by node of the spec.
};

/// The rows that replicas have and that are joined for what is computed once.
struct JoinedBytes {
  double PerStep = 0, PerRow = 0; ///< Where it is known, and for each row.
};

class CostModel {
public:
  explicit CostModel(const ResourceSpec &Spec, LinkSpeeds Speeds = {});

  unsigned replicas() const { return Count; }
  Traffic none() const;
  /// Adds what \p S does with the variable \p Row to \p T.
  void add(Traffic &T, const VariableRow &Row, const VariableStrategy &S) const;
  /// Adds \p Bytes that all replicas have together and replica 0 needs.
  void addJoined(Traffic &T, double Bytes) const;
  Prediction predict(const Traffic &T) const;
  Prediction predict(llvm::ArrayRef<VariableRow> Variables,
                     const StrategyRecord &Record, double Joined = 0) const;
  /// The machine that \p Device, a full name, belongs to; empty: the first
  /// replica's.
  size_t nodeOf(llvm::StringRef Device) const;
  /// Seconds that the network of machine \p Node is busy.
  double networkSeconds(const Traffic &T, size_t Node) const;

private:
  void addRing(Traffic &T, double Bytes) const;
  void addGather(Traffic &T, double Bytes) const;
  /// \p Down goes from the destination to each replica, \p Up back. With
  /// \p Same all replicas take the same.
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

/// "1.20 MB".
std::string bytesText(double Bytes);

/// How many bytes one replica sends of the rows of \p Row that it touches, with
/// their indices, or all of the variable if that number is not known.
double bytesOfRows(const VariableRow &Row, unsigned Replicas);

} // namespace graft

#endif // GRAFT_LIB_STRATEGY_COST_H
