//===- lib/lower/expand/FastNodeWriter.h - copy 0 and copy 1 at once ------===//
//
// SPDX-License-Identifier: Apache-2.0
//
// Writes nodes whose copies differ only in the device and in the replica's
// number, which are most nodes. Copy 0 and one other copy are written in one
// walk, without computing sizes first. NodeRenderer writes all other nodes, and
// would write the same bytes for these.
//
//===----------------------------------------------------------------------===//

#ifndef GRAFT_LIB_LOWER_EXPAND_FASTNODEWRITER_H
#define GRAFT_LIB_LOWER_EXPAND_FASTNODEWRITER_H

#include "lib/lower/expand/Expand.h"

namespace graft {

struct CopyNaming;

class FastNodeWriter {
public:
  explicit FastNodeWriter(const ReplicaExpander &E)
      : E(E), G(E.G), Count(static_cast<unsigned>(E.Devices.size())) {}

  /// Renders copy 0 and copy \p Replica of \p N, or the one node if \p N is
  /// unreplicated. Returns false if \p N needs NodeRenderer, for this and every
  /// other \p Replica.
  bool render(NodeId N, unsigned Replica);

  /// Return the rendered copies. An unreplicated node has no other copy.
  llvm::StringRef first() const { return {FirstBegin, FirstSize}; }
  llvm::StringRef other() const { return {OtherBegin, OtherSize}; }
  /// Return the offsets of the replica's number and device in the body of
  /// other(). The body begins headSize() bytes after the begin of other().
  llvm::ArrayRef<uint32_t> numbers() const { return {Numbers, NumNumbers}; }
  llvm::ArrayRef<uint32_t> devices() const {
    return {&Device, HasDevice ? size_t(1) : size_t(0)};
  }
  size_t headSize() const { return Other + Head - OtherBegin; }

  struct DualCursor;

private:
  /// Upper bounds: the bytes of a node's names and attributes, the bytes of a
  /// device, the fields of a node, the bytes of a field without its text, and
  /// the bytes of a node's head.
  static constexpr size_t MaxText = 8 << 10, MaxDevice = 1 << 10;
  static constexpr size_t MaxFields = 64, FieldExtra = 64, Head = 8;
  static constexpr size_t BufferSize =
      Head + MaxText + MaxDevice + (MaxFields + 8) * FieldExtra;

  template <bool WithOther> bool input(DualCursor &P, Endpoint Input) const;
  template <bool WithOther> bool control(DualCursor &P, NodeId Source) const;
  void others(DualCursor &P, const CopyNaming &F) const;
  template <bool WithOther> bool attributes(DualCursor &P, NodeId N) const;
  template <bool WithOther> bool renderAs(NodeId N, unsigned Replica);

  const ReplicaExpander &E;
  const Graph &G;
  unsigned Count; ///< The number of replicas.
  char *FirstBegin = nullptr, *OtherBegin = nullptr;
  size_t FirstSize = 0, OtherSize = 0, NumNumbers = 0;
  uint32_t Device = 0;
  bool HasDevice = false;
  char First[BufferSize];
  char Other[BufferSize];
  uint32_t Numbers[MaxFields + 8];
};

} // namespace graft

#endif // GRAFT_LIB_LOWER_EXPAND_FASTNODEWRITER_H
