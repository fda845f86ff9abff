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

/// What is the least size of a part, unless options say otherwise: that of
/// TensorFlow's min_max_variable_partitioner.
inline constexpr uint64_t DefaultMinShardBytes = 256 << 10;
inline constexpr unsigned DefaultMaxShards = 16;

/// Numbers that builders use.
struct BuilderOptions {
  uint64_t Seed = 0;             ///< For random choices.
  uint64_t MinShardBytes = 0;    ///< 0: the default of the builders.
  unsigned MaxShards = 0;        ///< 0: the default of the builders.
  bool LocalReplication = false; ///< Proxies of variables on servers.
  unsigned GroupSize = 128;      ///< Variables of an all-reduce group.
  Synchronizer::SpecType Spec = Synchronizer::Auto;
  Synchronizer::CompressorType Compressor = Synchronizer::None;
};

/// `ps`, `ps-load-balancing`, `partitioned-ps`, `uneven-partitioned-ps`,
/// `all-reduce`, `partitioned-all-reduce`, `random-axis-partition-all-reduce`,
/// `parallax`, and `auto`, which is not a builder
/// of AutoDist's (lib/strategy/Plan.h).
std::vector<std::string> builderNames();

/// Whether the builder \p Name may have variables in parts; false of what is
/// none.
bool builderCuts(llvm::StringRef Name);

/// The record that the builder \p Name, a known one, makes. \p Spec has at
/// least one node.
StrategyRecord buildStrategy(llvm::StringRef Name,
                             llvm::ArrayRef<VariableRow> Variables,
                             const ResourceSpec &Spec,
                             const BuilderOptions &Options);

} // namespace graft

#endif // GRAFT_LIB_STRATEGY_BUILDERS_H
