//===- lib/strategy/Record.h - a strategy, variable by variable -*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
// What AutoDist's `Strategy` message says (autodist/proto/strategy.proto), as
// plain values, and the form in which it is on the variables of a program.
//
//===----------------------------------------------------------------------===//

#ifndef GRAFT_LIB_STRATEGY_RECORD_H
#define GRAFT_LIB_STRATEGY_RECORD_H

#include "lib/graph/Graph.h"

#include <optional>
#include <string>
#include <vector>

namespace graft {

/// The most parts of a variable: each has nodes of its own.
inline constexpr unsigned MaxParts = 65536;

/// How the gradients of one variable, or of one part of it, meet.
struct Synchronizer {
  enum KindType : uint8_t { AllReduce, PS };
  enum SpecType : uint8_t { Auto, Nccl, Ring };
  enum CompressorType : uint8_t { None, Fp16, Fp16EF, BF16, BF16EF };

  KindType Kind = AllReduce;

  /// PS: the device that has the variable, by its full name in TensorFlow;
  /// empty: the first replica's.
  std::string Destination;
  /// PS: replicas read a copy near them ("local replication").
  bool Proxy = false;
  bool Sync = true;  ///< PS: false: workers do not wait for each other.
  int Staleness = 0; ///< PS: steps that a worker may be ahead.

  SpecType Spec = Auto;             ///< AllReduce: `communication_hint`.
  CompressorType Compressor = None; ///< AllReduce.
  int Group = 0;                    ///< AllReduce: members of one are fused.

  bool operator==(const Synchronizer &) const = default;
};

/// One variable in parts: `Sizes` along `Axis`, which add up to its size.
struct Partition {
  unsigned Axis = 0;
  std::vector<int64_t> Sizes;
  bool operator==(const Partition &) const = default;
};

/// What happens to one variable.
struct VariableStrategy {
  std::string Variable;
  Synchronizer Sync;
  /// Parts along each axis, `{1, 2, 1}`; empty: whole. One entry at most is
  /// more than 1.
  std::vector<unsigned> Partitioner;
  std::vector<Synchronizer> Parts; ///< One for each part.
  std::string Why;                 ///< For the remark; no file has it.
  std::string Place; ///< Of its entry in a text file: `:LINE:COLUMN`.

  /// The number of parts: 1 if it is whole.
  unsigned numParts() const;
};

/// The sizes of \p Parts parts of \p Size: the first ones have one more where
/// it does not divide, as in TensorFlow's partitioners.
std::vector<int64_t> partSizes(int64_t Size, unsigned Parts);

/// What happens to all variables.
struct StrategyRecord {
  std::string Id;
  std::string Path;
  std::vector<VariableStrategy> Variables;
  std::vector<std::string> Replicas; ///< Devices.
};

//===----------------------------------------------------------------------===//
// On the variables of a program. assign-strategy writes these attributes, every
// other pass only reads them, and the lowering removes them.
//===----------------------------------------------------------------------===//

/// `ps[,destination=DEVICE][,proxy][,async][,staleness=N]` or
/// `all-reduce[,spec=nccl|ring][,compressor=NAME][,group=N]`.
inline constexpr llvm::StringRef SynchronizerAttr = "_graft_synchronizer";
/// `AXIS:SIZE,SIZE,...`.
inline constexpr llvm::StringRef PartitionAttr = "_graft_partition";
/// A list of strings: the synchronizer of each part.
inline constexpr llvm::StringRef PartSynchronizersAttr =
    "_graft_part_synchronizers";

/// "fp16", "fp16-ef", "bf16", "bf16-ef"; empty for None.
llvm::StringRef compressorName(Synchronizer::CompressorType Compressor);
/// The values of options.
constexpr llvm::StringLiteral wordsOf(Synchronizer::CompressorType) {
  return "none|fp16|fp16-ef|bf16|bf16-ef";
}
constexpr llvm::StringLiteral wordsOf(Synchronizer::SpecType) {
  return "auto|nccl|ring";
}

std::string printSynchronizer(const Synchronizer &S);
/// The synchronizer that \p Text is, or nothing.
std::optional<Synchronizer> parseSynchronizer(llvm::StringRef Text);

std::string printPartition(const Partition &P);
/// The partition that \p Text is: at least one part, none of them empty.
std::optional<Partition> parsePartition(llvm::StringRef Text);

/// What assign-strategy wrote on \p Var, if it did.
std::optional<Synchronizer> synchronizerOf(const Graph &G, NodeId Var);
std::optional<Partition> partitionOf(const Graph &G, NodeId Var);

} // namespace graft

#endif // GRAFT_LIB_STRATEGY_RECORD_H
