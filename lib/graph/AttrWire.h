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

/// Field numbers of tensorflow/core/framework/tensor.proto.
enum : unsigned {
  TensorType = 1,
  TensorShape = 2,
  TensorContent = 4,
  TensorFloat = 5,
  TensorDouble = 6,
  TensorInt = 7,
  TensorString = 8,
  TensorComplex = 9,
  TensorInt64 = 10,
  TensorDoubleComplex = 12,
  TensorHalf = 13,
};

constexpr char NodeAttrTag = wire::bytesTag(NodeAttrField);
constexpr char EntryKeyTag = wire::bytesTag(1);
constexpr char EntryValueTag = wire::bytesTag(2);

constexpr llvm::StringLiteral ClassKey = "_class", ClassPrefix = "loc:@";
/// The key field of a `_class` entry.
constexpr llvm::StringLiteral ClassField = "\x0a\x06_class";

/// Returns the last field \p Number of \p Message.
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

/// Returns the contents of the last field \p Number of \p Message.
inline std::optional<llvm::StringRef> bytesField(llvm::StringRef Message,
                                                 unsigned Number) {
  // Most messages have only this field.
  const char *P = Message.begin();
  llvm::StringRef Contents;
  if (wire::takeBytes(P, Message.end(), wire::bytesTag(Number), Contents) &&
      P == Message.end())
    return Contents;
  if (auto F = findField(Message, Number, wire::Type::Bytes))
    return F->Bytes;
  return std::nullopt;
}

/// Returns the value of the last varint field \p Number of \p Message.
inline std::optional<uint64_t> varintField(llvm::StringRef Message,
                                           unsigned Number) {
  if (Message.size() == 2 && Message[0] == static_cast<char>(Number << 3) &&
      static_cast<uint8_t>(Message[1]) < 0x80)
    return static_cast<uint8_t>(Message[1]);
  if (auto F = findField(Message, Number, wire::Type::Varint))
    return F->Varint;
  return std::nullopt;
}

/// Parses the key and the value of one map entry.
inline bool parseEntry(const wire::Field &F, AttrEntry &Entry) {
  if (F.Number != NodeAttrField || F.WireType != wire::Type::Bytes)
    return false;
  Entry = {};
  Entry.Whole = F.Whole;
  const char *P = F.Bytes.begin(), *End = F.Bytes.end();
  if (wire::takeBytes(P, End, EntryKeyTag, Entry.Key) &&
      wire::takeBytes(P, End, EntryValueTag, Entry.Value) && P == End)
    return true;
  Entry.Key = Entry.Value = {};
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

/// Returns the name in a `_class` entry with one short name, or "" if the entry
/// has another form.
inline llvm::StringRef shortClass(llvm::StringRef Entry) {
  // The tag and the length of the value, of its list and of the name.
  constexpr size_t Key = ClassKey.size() + 2, Heads = Key + 6;
  auto Holds = [&](size_t At, unsigned Field) {
    return Entry[At] == wire::bytesTag(Field) &&
           static_cast<size_t>(Entry[At + 1]) == Entry.size() - At - 2;
  };
  if (Entry.size() <= Heads || Entry.size() >= 128 ||
      !Entry.starts_with(ClassField) || !Holds(Key, 2) || !Holds(Key + 2, 1) ||
      !Holds(Key + 4, 2))
    return {};
  return Entry.drop_front(Heads);
}

inline ShapeValue parseShape(llvm::StringRef Bytes) {
  ShapeValue Shape;
  wire::Reader R(Bytes);
  wire::Field F;
  while (R.next(F)) {
    if (F.Number == 2 && F.WireType == wire::Type::Bytes) {
      auto Size = varintField(F.Bytes, 1);
      Shape.Dims.push_back(static_cast<int64_t>(Size.value_or(0)));
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
