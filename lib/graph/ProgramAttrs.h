//===- lib/graph/ProgramAttrs.h - program state as attributes ---*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
// The fields of Node that exist only between passes are written as attributes
// when a program is printed; Graph::parse turns them into fields again.
//
//===----------------------------------------------------------------------===//

#ifndef GRAFT_LIB_GRAPH_PROGRAMATTRS_H
#define GRAFT_LIB_GRAPH_PROGRAMATTRS_H

#include "lib/graph/Graph.h"

namespace graft {

/// `per-replica`, or absent.
inline constexpr llvm::StringLiteral CopiesAttr = "_graft_copies";
inline constexpr llvm::StringLiteral InsertedAttr = "_graft_inserted";
inline constexpr llvm::StringLiteral NameSplitAttr = "_graft_name_split";
inline constexpr llvm::StringLiteral LocalNameAttr = "_graft_local_name";
inline constexpr llvm::StringLiteral LedAttr = "_graft_led";
inline constexpr llvm::StringLiteral ElidePrimaryAttr = "_graft_elide_primary";
inline constexpr llvm::StringLiteral FixedDeviceAttr = "_graft_fixed_device";

/// One attribute: its key and its AttrValue in wire form.
struct ProgramAttr {
  llvm::StringRef Key;
  std::string Value;
};

/// Returns true if \p N has state that nodes of a plain graph do not have.
bool hasProgramState(const Node &N);

/// Returns the attributes of the program state of \p N: first the policy, which
/// passes set first, then all others, sorted by key.
llvm::SmallVector<ProgramAttr, 4> programAttrs(const Node &N);

/// Returns "split", "merge", ...; "" for Inserted::No.
llvm::StringRef insertedName(Inserted Kind);

} // namespace graft

#endif // GRAFT_LIB_GRAPH_PROGRAMATTRS_H
