//===- lib/graph/AttrWire.h - attributes on the wire (private) --*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#ifndef GRAFT_LIB_GRAPH_ATTRWIRE_H
#define GRAFT_LIB_GRAPH_ATTRWIRE_H

#include "lib/graph/Graph.h"
#include "lib/support/Wire.h"

namespace graft {

/// Field numbers of tensorflow/core/framework/attr_value.proto.
enum : unsigned {
  AttrList = 1,
  AttrString = 2,
  AttrInt = 3,
  AttrFloat = 4,
  AttrBool = 5,
  AttrType = 6,
  AttrShape = 7,
  AttrTensor = 8,
  ListString = 2,
  ListInt = 3,
  ListType = 6,
  ListShape = 7,
  NodeAttrField = 5,
};

constexpr char NodeAttrTag = '\x2a';

/// The last field \p Number of \p Message.
inline std::optional<wire::Field> findField(llvm::StringRef Message,
                                            unsigned Number, wire::Type Type) {
  wire::Reader R(Message);
  wire::Field F;
  std::optional<wire::Field> Found;
  while (R.next(F))
    if (F.Number == Number && F.WireType == Type)
      Found = F;
  return Found;
}

/// Key and value of one map entry.
inline bool parseEntry(const wire::Field &F, AttrEntry &Entry) {
  if (F.Number != NodeAttrField || F.WireType != wire::Type::Bytes)
    return false;
  Entry = {};
  Entry.Whole = F.Whole;
  wire::Reader R(F.Bytes);
  wire::Field Part;
  while (R.next(Part)) {
    if (Part.Number == 1)
      Entry.Key = Part.Bytes;
    else if (Part.Number == 2)
      Entry.Value = Part.Bytes;
  }
  return !R.failed();
}

inline std::string encodeEntry(llvm::StringRef Key, llvm::StringRef Value) {
  std::string Entry;
  wire::appendBytes(Entry, 1, Key);
  wire::appendBytes(Entry, 2, Value);
  std::string Result;
  wire::appendBytes(Result, NodeAttrField, Entry);
  return Result;
}

inline ShapeValue parseShape(llvm::StringRef Bytes) {
  ShapeValue Shape;
  wire::Reader R(Bytes);
  wire::Field F;
  while (R.next(F)) {
    if (F.Number == 2 && F.WireType == wire::Type::Bytes) {
      auto Size = findField(F.Bytes, 1, wire::Type::Varint);
      Shape.Dims.push_back(Size ? static_cast<int64_t>(Size->Varint) : 0);
    } else if (F.Number == 3) {
      Shape.UnknownRank = F.Varint != 0;
    }
  }
  return Shape;
}

inline std::string encodeShape(const ShapeValue &Shape) {
  std::string Bytes;
  for (int64_t D : Shape.Dims) {
    std::string Dim;
    if (D != 0)
      wire::appendInt(Dim, 1, static_cast<uint64_t>(D));
    wire::appendBytes(Bytes, 2, Dim);
  }
  if (Shape.UnknownRank)
    wire::appendInt(Bytes, 3, 1);
  return Bytes;
}

} // namespace graft

#endif // GRAFT_LIB_GRAPH_ATTRWIRE_H
