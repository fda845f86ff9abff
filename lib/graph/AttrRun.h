//===- lib/graph/AttrRun.h - the attributes of a new node -------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#ifndef GRAFT_LIB_GRAPH_ATTRRUN_H
#define GRAFT_LIB_GRAPH_ATTRRUN_H

#include "lib/graph/AttrWire.h"

#include "llvm/ADT/SmallString.h"

namespace graft {

/// Attributes in wire form, one after the other, as Graph::setAttr writes them
/// on a node without attributes. Keys must differ.
class AttrRun {
public:
  AttrRun &integer(llvm::StringRef Key, int64_t Value) {
    return number(Key, AttrInt, static_cast<uint64_t>(Value));
  }
  AttrRun &boolean(llvm::StringRef Key, bool Value) {
    return number(Key, AttrBool, Value);
  }
  AttrRun &type(llvm::StringRef Key, unsigned Value) {
    return number(Key, AttrType, Value);
  }
  AttrRun &string(llvm::StringRef Key, llvm::StringRef Value) {
    return bytes(Key, AttrString, Value);
  }
  /// A list of one string.
  AttrRun &strings(llvm::StringRef Key, llvm::StringRef Value) {
    uint64_t List = wire::bytesFieldSize(Value.size());
    char *P = entry(Key, wire::bytesFieldSize(List));
    *P++ = wire::bytesTag(AttrList);
    P = wire::putVarint(P, List);
    putBytes(P, ListString, Value);
    return *this;
  }
  /// \p Value is the wire form of an AttrValue.
  AttrRun &raw(llvm::StringRef Key, llvm::StringRef Value) {
    put(entry(Key, Value.size()), Value);
    return *this;
  }

  llvm::StringRef str() const { return Bytes; }
  /// The NF_MayHave flags of the attributes.
  uint8_t flags() const { return Flags; }

private:
  static char *put(char *P, llvm::StringRef Text) {
    if (!Text.empty())
      std::memcpy(P, Text.data(), Text.size());
    return P + Text.size();
  }
  static char *putBytes(char *P, unsigned Field, llvm::StringRef Text) {
    *P++ = wire::bytesTag(Field);
    return put(wire::putVarint(P, Text.size()), Text);
  }

  /// Writes an entry up to its value of \p Size bytes. Returns the address at
  /// which the caller must write the value.
  char *entry(llvm::StringRef Key, uint64_t Size) {
    Flags |= Graph::attrFlags(Key);
    uint64_t Body =
        wire::bytesFieldSize(Key.size()) + wire::bytesFieldSize(Size);
    size_t Old = Bytes.size();
    Bytes.resize_for_overwrite(Old + wire::bytesFieldSize(Body));
    char *P = Bytes.data() + Old;
    *P++ = NodeAttrTag;
    P = putBytes(wire::putVarint(P, Body), 1, Key);
    *P++ = wire::bytesTag(2);
    return wire::putVarint(P, Size);
  }
  AttrRun &number(llvm::StringRef Key, unsigned Field, uint64_t Value) {
    char *P = entry(Key, 1 + wire::varintSize(Value));
    *P++ = static_cast<char>(Field << 3 | unsigned(wire::Type::Varint));
    wire::putVarint(P, Value);
    return *this;
  }
  AttrRun &bytes(llvm::StringRef Key, unsigned Field, llvm::StringRef Value) {
    putBytes(entry(Key, wire::bytesFieldSize(Value.size())), Field, Value);
    return *this;
  }

  llvm::SmallString<256> Bytes;
  uint8_t Flags = 0;
};

} // namespace graft

#endif // GRAFT_LIB_GRAPH_ATTRRUN_H
