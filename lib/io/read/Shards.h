//===- lib/io/read/Shards.h - one graph in several files --------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
// A GraphDef that is too large for one file is written to several files, each
// with some of its fields: `model-00000-of-00003.pb` to
// `model-00002-of-00003.pb`. In protobuf's wire format the bytes of all shards,
// one after the other, are the whole message.
//
//===----------------------------------------------------------------------===//

#ifndef GRAFT_LIB_IO_READ_SHARDS_H
#define GRAFT_LIB_IO_READ_SHARDS_H

#include "llvm/ADT/StringRef.h"

#include <optional>
#include <string>

namespace graft {

/// The parsed name of a shard: `STEM-00001-of-00003.EXT`.
struct ShardName {
  llvm::StringRef Stem; ///< The part before the numbers, a slice of the name.
  llvm::StringRef Extension; ///< With its dot, or empty.
  unsigned Index = 0;
  unsigned Count = 0; ///< Two or more.

  /// Returns nothing if \p File is not the name of a shard.
  static std::optional<ShardName> parse(llvm::StringRef File);
  /// Returns the name of shard \p I of the same graph.
  std::string name(unsigned I) const;
};

} // namespace graft

#endif // GRAFT_LIB_IO_READ_SHARDS_H
