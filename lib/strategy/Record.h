//===- lib/strategy/Record.h - a strategy, variable by variable -*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
// The contents of AutoDist's `Strategy` message (autodist/proto/strategy.proto)
// as plain values, and the attributes that hold them on the variables of a
// program.
//
//===----------------------------------------------------------------------===//

#ifndef GRAFT_LIB_STRATEGY_RECORD_H
#define GRAFT_LIB_STRATEGY_RECORD_H

#include "lib/graph/Graph.h"

#include <optional>
#include <string>
#include <vector>

namespace graft {

/// The maximum number of parts of a variable: each part has its own nodes.
inline constexpr unsigned MaxParts = 65536;

/// How the gradients of one variable, or of one part of it, are combined.
struct Synchronizer {
  enum KindType : uint8_t { AllReduce, PS };
  enum SpecType : uint8_t { Auto, Nccl, Ring };
  enum CompressorType : uint8_t { None, Fp16, Fp16EF, BF16, BF16EF };

  KindType Kind = AllReduce;

  /// PS: the device that has the variable, by its full name in TensorFlow;
  /// empty: the first replica's device.
  std::string Destination;
  /// PS: replicas read a nearby copy ("local replication").
  bool Proxy = false;
  bool Sync = true;  ///< PS: false: workers do not wait for each other.
  int Staleness = 0; ///< PS: steps that a worker may be ahead.

  SpecType Spec = Auto;             ///< AllReduce: `communication_hint`.
  CompressorType Compressor = None; ///< AllReduce.
  int Group = 0;                    ///< AllReduce: its fusion group.

  bool operator==(const Synchronizer &) const = default;
};

/// The partition of one variable: the sizes of its parts along `Axis`.
struct Partition {
  unsigned Axis = 0;
  std::vector<int64_t> Sizes;
  bool operator==(const Partition &) const = default;
};

/// The strategy of one variable.
struct VariableStrategy {
  std::string Variable;
  Synchronizer Sync;
  /// The number of parts along each axis, `{1, 2, 1}`; empty: whole. At most
  /// one entry is more than 1.
  std::vector<unsigned> Partitioner;
  std::vector<Synchronizer> Parts; ///< One for each part.
  std::string Why;                 ///< The reason, for remarks; in no file.
  std::string Place; ///< The place of its entry in a text file, `:LINE:COLUMN`.

  /// Returns the number of parts: 1 for a whole variable.
  unsigned numParts() const;
};

/// Returns the sizes of \p Parts parts of \p Size. The first parts are larger
/// by one if needed, as in TensorFlow's partitioners: 3, 3, 2.
std::vector<int64_t> partSizes(int64_t Size, unsigned Parts);

/// The strategy of all variables.
struct StrategyRecord {
  std::string Id;
  std::string Path;
  std::vector<VariableStrategy> Variables;
  std::vector<std::string> Replicas; ///< Devices.
};

//===----------------------------------------------------------------------===//
// Attributes on the variables of a program. assign-strategy writes them, all
// other passes only read them, and the lowering removes them.
//===----------------------------------------------------------------------===//

/// `ps[,destination=DEVICE][,proxy][,async][,staleness=N]` or
/// `all-reduce[,spec=nccl|ring][,compressor=NAME][,group=N]`.
inline constexpr llvm::StringRef SynchronizerAttr = "_graft_synchronizer";
/// `AXIS:SIZE,SIZE,...`.
inline constexpr llvm::StringRef PartitionAttr = "_graft_partition";
/// A list of strings: the synchronizer of each part.
inline constexpr llvm::StringRef PartSynchronizersAttr =
    "_graft_part_synchronizers";

/// Returns "fp16", "fp16-ef", "bf16", "bf16-ef"; "" for None.
llvm::StringRef compressorName(Synchronizer::CompressorType Compressor);
/// Return the values that an option accepts.
constexpr llvm::StringLiteral wordsOf(Synchronizer::CompressorType) {
  return "none|fp16|fp16-ef|bf16|bf16-ef";
}
constexpr llvm::StringLiteral wordsOf(Synchronizer::SpecType) {
  return "auto|nccl|ring";
}

std::string printSynchronizer(const Synchronizer &S);
/// Parses a synchronizer. Returns nothing if \p Text is not one.
std::optional<Synchronizer> parseSynchronizer(llvm::StringRef Text);

std::string printPartition(const Partition &P);
/// Parses a partition with at least one part, none of them empty.
std::optional<Partition> parsePartition(llvm::StringRef Text);

/// Return the attributes that assign-strategy wrote on \p Var, if any.
std::optional<Synchronizer> synchronizerOf(const Graph &G, NodeId Var);
std::optional<Partition> partitionOf(const Graph &G, NodeId Var);

} // namespace graft

#endif // GRAFT_LIB_STRATEGY_RECORD_H
