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

/// Numbers that builders use.
struct BuilderOptions {
  uint64_t Seed = 0; ///< Of random choices.
  /// The least size of a part: that of TensorFlow's
  /// min_max_variable_partitioner.
  uint64_t MinShardBytes = 256 << 10;
  unsigned MaxShards = 16;
  bool LocalReplication = false; ///< Proxies of variables on servers.
  unsigned GroupSize = 128;      ///< Variables of an all-reduce group.
  Synchronizer::SpecType Spec = Synchronizer::Auto;
  Synchronizer::CompressorType Compressor = Synchronizer::None;
  /// The devices of parameter servers; empty: the hosts of the replicas.
  std::vector<std::string> Servers;
};

/// What is known of a strategy before it sees a variable.
struct StrategyTraits {
  llvm::StringLiteral Name;
  /// It may have variables in parts.
  bool Cuts;
  /// The one policy of all variables, if it says no more without options.
  Policy ForAll = Policy::None;
};

/// `ps`, `ps-load-balancing`, `partitioned-ps`, `uneven-partitioned-ps`,
/// `all-reduce`, `partitioned-all-reduce`, `random-axis-partition-all-reduce`,
/// `parallax`, and `auto`, which is not a builder
/// of AutoDist's (lib/strategy/Plan.h).
std::vector<std::string> builderNames();

/// The traits of the builder \p Name; null: there is none.
const StrategyTraits *findBuilder(llvm::StringRef Name);

/// The record that the builder \p Name, a known one, makes. \p Spec has at
/// least one node.
StrategyRecord buildStrategy(llvm::StringRef Name,
                             llvm::ArrayRef<VariableRow> Variables,
                             const ResourceSpec &Spec,
                             const BuilderOptions &Options);

} // namespace graft

#endif // GRAFT_LIB_STRATEGY_BUILDERS_H
