//===- lib/strategy/Builders.h - strategies by name -------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#ifndef GRAFT_LIB_STRATEGY_BUILDERS_H
#define GRAFT_LIB_STRATEGY_BUILDERS_H

#include "lib/strategy/Record.h"
#include "lib/strategy/Resources.h"

namespace graft {

/// The options of builders.
struct BuilderOptions {
  uint64_t Seed = 0; ///< The seed of random choices.
  /// The minimum size of a part, as in TensorFlow's
  /// min_max_variable_partitioner.
  uint64_t MinShardBytes = 256 << 10;
  unsigned MaxShards = 16;
  bool LocalReplication = false; ///< Read variables on servers through proxies.
  unsigned GroupSize = 128;      ///< Variables of an all-reduce group.
  Synchronizer::SpecType Spec = Synchronizer::Auto;
  Synchronizer::CompressorType Compressor = Synchronizer::None;
  /// The devices of parameter servers; empty: the hosts of the replicas.
  std::vector<std::string> Servers;
};

/// The properties of a strategy that hold for all variables.
struct StrategyTraits {
  llvm::StringLiteral Name;
  /// Set if the strategy may partition variables.
  bool Cuts;
  /// The policy that the strategy without options gives to all variables. None
  /// if the strategy sets anything else.
  Policy ForAll = Policy::None;
};

/// Returns `ps`, `ps-load-balancing`, `partitioned-ps`,
/// `uneven-partitioned-ps`, `all-reduce`, `partitioned-all-reduce`,
/// `random-axis-partition-all-reduce`, `parallax`, and `auto`, which AutoDist
/// does not have (lib/strategy/Plan.h).
std::vector<std::string> builderNames();

/// Returns the traits of the builder \p Name, or null if there is none.
const StrategyTraits *findBuilder(llvm::StringRef Name);

/// Returns the record of the builder \p Name, which must exist. \p Spec has at
/// least one node.
StrategyRecord buildStrategy(llvm::StringRef Name,
                             llvm::ArrayRef<VariableRow> Variables,
                             const ResourceSpec &Spec,
                             const BuilderOptions &Options);

} // namespace graft

#endif // GRAFT_LIB_STRATEGY_BUILDERS_H
