//===- lib/graph/GraphAttrs.cpp - attributes --------------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "lib/graph/AttrWire.h"

using namespace llvm;

namespace graft {

//===----------------------------------------------------------------------===//
// Reading
//===----------------------------------------------------------------------===//

std::optional<StringRef> Graph::attr(NodeId N, StringRef Key) const {
  const char *P = Nodes[N].AttrData, *End = P + Nodes[N].AttrSize;
  // The form that every writer gives: tag, length, tag of the key, its length,
  // the key, tag of the value, its length. Anything else goes the long way.
  while (End - P > 4 && *P == NodeAttrTag) {
    const char *Body = P + 1;
    uint64_t Length = static_cast<uint8_t>(*Body++);
    for (unsigned Shift = 7; Length >> Shift & 1 && Shift < 35 && Body != End;
         Shift += 7) {
      Length ^= uint64_t(1) << Shift;
      Length |= uint64_t(static_cast<uint8_t>(*Body++)) << Shift;
    }
    if (Length < 2 || Length > static_cast<uint64_t>(End - Body) ||
        *Body != '\x0a' || static_cast<uint8_t>(Body[1]) >= 0x80)
      break;
    P = Body + Length;
    size_t KeySize = static_cast<uint8_t>(Body[1]);
    if (KeySize != Key.size() || KeySize + 2 > Length ||
        std::memcmp(Body + 2, Key.data(), KeySize) != 0)
      continue;
    AttrEntry Entry;
    wire::Field F;
    F.Number = NodeAttrField;
    F.WireType = wire::Type::Bytes;
    F.Bytes = StringRef(Body, Length);
    if (parseEntry(F, Entry))
      return Entry.Value;
    break;
  }
  wire::Reader R({P, static_cast<size_t>(End - P)});
  wire::Field F;
  while (R.next(F)) {
    AttrEntry Entry;
    if (parseEntry(F, Entry) && Entry.Key == Key)
      return Entry.Value;
  }
  return std::nullopt;
}

SmallVector<AttrEntry, 8> Graph::attrs(NodeId N) const {
  SmallVector<AttrEntry, 8> Result;
  wire::Reader R({Nodes[N].AttrData, Nodes[N].AttrSize});
  wire::Field F;
  AttrEntry Entry;
  while (R.next(F))
    if (parseEntry(F, Entry))
      Result.push_back(Entry);
  return Result;
}

/// The text after `key: ` of a default in text form.
static std::optional<StringRef> defaultText(const OpDef *Def, StringRef Key,
                                            StringRef Field) {
  const AttrDef *A = Def ? Def->attr(Key) : nullptr;
  if (!A || !A->HasDefault)
    return std::nullopt;
  StringRef Text(A->Default);
  Text = Text.trim();
  if (!Text.consume_front(Field) || !Text.consume_front(":"))
    return std::nullopt;
  return Text.trim();
}

std::optional<int64_t> Graph::intAttr(NodeId N, StringRef Key) const {
  if (auto Value = attr(N, Key)) {
    if (auto F = findField(*Value, AttrInt, wire::Type::Varint))
      return static_cast<int64_t>(F->Varint);
    return std::nullopt;
  }
  int64_t Result;
  auto Text = defaultText(opDef(N), Key, "i");
  if (Text && !Text->getAsInteger(10, Result))
    return Result;
  return std::nullopt;
}

std::optional<bool> Graph::boolAttr(NodeId N, StringRef Key) const {
  if (auto Value = attr(N, Key)) {
    if (auto F = findField(*Value, AttrBool, wire::Type::Varint))
      return F->Varint != 0;
    return std::nullopt;
  }
  if (auto Text = defaultText(opDef(N), Key, "b"))
    return *Text == "true";
  return std::nullopt;
}

std::optional<unsigned> Graph::typeAttr(NodeId N, StringRef Key) const {
  static constexpr std::pair<const char *, unsigned> Names[] = {
      {"DT_FLOAT", DT_FLOAT},       {"DT_DOUBLE", DT_DOUBLE},
      {"DT_INT32", DT_INT32},       {"DT_INT64", DT_INT64},
      {"DT_BOOL", DT_BOOL},         {"DT_STRING", DT_STRING},
      {"DT_UINT8", DT_UINT8},       {"DT_HALF", DT_HALF},
      {"DT_BFLOAT16", DT_BFLOAT16}, {"DT_VARIANT", DT_VARIANT},
  };
  if (auto Value = attr(N, Key)) {
    if (auto F = findField(*Value, AttrType, wire::Type::Varint))
      return static_cast<unsigned>(F->Varint);
    return std::nullopt;
  }
  if (auto Text = defaultText(opDef(N), Key, "type"))
    for (auto [Name, Type] : Names)
      if (*Text == Name)
        return Type;
  return std::nullopt;
}

std::optional<StringRef> Graph::stringAttr(NodeId N, StringRef Key) const {
  if (auto Value = attr(N, Key)) {
    if (auto F = findField(*Value, AttrString, wire::Type::Bytes))
      return F->Bytes;
    return std::nullopt;
  }
  if (auto Text = defaultText(opDef(N), Key, "s")) {
    Text->consume_front("\"");
    Text->consume_back("\"");
    return Text;
  }
  return std::nullopt;
}

std::optional<ShapeValue> Graph::shapeAttr(NodeId N, StringRef Key) const {
  auto Value = attr(N, Key);
  if (!Value)
    return std::nullopt;
  if (auto F = findField(*Value, AttrShape, wire::Type::Bytes))
    return parseShape(F->Bytes);
  return std::nullopt;
}

/// Calls \p F with each field \p Number of a list attribute; false when there
/// is no list.
template <typename Fn>
static bool forEachListField(const Graph &G, NodeId N, StringRef Key,
                             unsigned Number, Fn F) {
  auto Value = G.attr(N, Key);
  auto List =
      Value ? findField(*Value, AttrList, wire::Type::Bytes) : std::nullopt;
  if (!List)
    return false;
  wire::Reader R(List->Bytes);
  wire::Field Item;
  while (R.next(Item))
    if (Item.Number == Number)
      F(Item);
  return true;
}

/// Calls \p F with each integer of a list attribute, packed or not.
template <typename Fn>
static bool forEachListInt(const Graph &G, NodeId N, StringRef Key,
                           unsigned Number, Fn F) {
  return forEachListField(G, N, Key, Number, [&](const wire::Field &Item) {
    if (Item.WireType == wire::Type::Varint) {
      F(Item.Varint);
      return;
    }
    wire::Reader Packed(Item.Bytes);
    uint64_t V;
    while (Packed.position() != Item.Bytes.end() && Packed.varint(V))
      F(V);
  });
}

std::optional<SmallVector<int64_t, 4>> Graph::intListAttr(NodeId N,
                                                          StringRef Key) const {
  SmallVector<int64_t, 4> Result;
  if (!forEachListInt(*this, N, Key, ListInt, [&](uint64_t V) {
        Result.push_back(static_cast<int64_t>(V));
      }))
    return std::nullopt;
  return Result;
}

std::optional<SmallVector<ShapeValue, 2>>
Graph::shapeListAttr(NodeId N, StringRef Key) const {
  SmallVector<ShapeValue, 2> Result;
  if (!forEachListField(*this, N, Key, ListShape, [&](const wire::Field &F) {
        Result.push_back(parseShape(F.Bytes));
      }))
    return std::nullopt;
  return Result;
}

std::optional<SmallVector<StringRef, 2>>
Graph::stringListAttr(NodeId N, StringRef Key) const {
  SmallVector<StringRef, 2> Result;
  if (!forEachListField(*this, N, Key, ListString, [&](const wire::Field &F) {
        Result.push_back(F.Bytes);
      }))
    return std::nullopt;
  return Result;
}

//===----------------------------------------------------------------------===//
// Outputs by the op's definition
//===----------------------------------------------------------------------===//

/// Types of a list(type) attribute.
static SmallVector<unsigned, 4> typeList(const Graph &G, NodeId N,
                                         StringRef Key) {
  SmallVector<unsigned, 4> Result;
  forEachListInt(G, N, Key, ListType, [&](uint64_t V) {
    Result.push_back(static_cast<unsigned>(V));
  });
  return Result;
}

static unsigned argWidth(const Graph &G, NodeId N, const ArgDef &A) {
  if (*A.TypeListAttr)
    return typeList(G, N, A.TypeListAttr).size();
  if (*A.NumberAttr)
    return static_cast<unsigned>(
        std::max<int64_t>(0, G.intAttr(N, A.NumberAttr).value_or(0)));
  return 1;
}

std::optional<unsigned> Graph::numOutputs(NodeId N) const {
  const OpDef *Def = opDef(N);
  if (!Def)
    return std::nullopt;
  unsigned Count = 0;
  for (const ArgDef &A : Def->outputs()) {
    const char *Width = *A.TypeListAttr ? A.TypeListAttr : A.NumberAttr;
    if (*Width && !hasAttr(N, Width) && !Def->attr(Width)->HasDefault)
      return std::nullopt;
    Count += argWidth(*this, N, A);
  }
  return Count;
}

unsigned Graph::outputType(NodeId N, uint32_t Port) const {
  const OpDef *Def = opDef(N);
  if (!Def) {
    // Ops of the program have one type, in attribute T.
    auto Type = typeAttr(N, "T");
    return Type ? *Type : unsigned(DT_INVALID);
  }
  for (const ArgDef &A : Def->outputs()) {
    unsigned Width = argWidth(*this, N, A);
    if (Port >= Width) {
      Port -= Width;
      continue;
    }
    unsigned Type = A.Type;
    if (*A.TypeListAttr)
      Type = typeList(*this, N, A.TypeListAttr)[Port];
    else if (*A.TypeAttr)
      Type = typeAttr(N, A.TypeAttr).value_or(DT_INVALID);
    return Type > RefTypeOffset ? Type - RefTypeOffset : Type;
  }
  return DT_INVALID;
}

/// The argument that number \p Index of \p Args belongs to, or null.
static const ArgDef *argAt(const Graph &G, NodeId N, ArrayRef<ArgDef> Args,
                           unsigned Index) {
  for (const ArgDef &A : Args) {
    unsigned Width = argWidth(G, N, A);
    if (Index < Width)
      return &A;
    Index -= Width;
  }
  return nullptr;
}

bool Graph::isRefOutput(NodeId N, uint32_t Port) const {
  const OpDef *Def = opDef(N);
  const ArgDef *A = Def ? argAt(*this, N, Def->outputs(), Port) : nullptr;
  return A && A->IsRef;
}

bool Graph::isRefInput(NodeId N, unsigned Index) const {
  const OpDef *Def = opDef(N);
  const ArgDef *A = Def ? argAt(*this, N, Def->inputs(), Index) : nullptr;
  return A && A->IsRef;
}

//===----------------------------------------------------------------------===//
// Writing
//===----------------------------------------------------------------------===//

void Graph::setAttr(NodeId N, StringRef Key, StringRef Value) {
  std::string Entry = encodeEntry(Key, Value);
  std::string Run;
  Run.reserve(Nodes[N].AttrSize + Entry.size());
  bool Done = false;
  wire::Reader R({Nodes[N].AttrData, Nodes[N].AttrSize});
  wire::Field F;
  AttrEntry Old;
  while (R.next(F)) {
    if (parseEntry(F, Old) && Old.Key == Key) {
      if (!Done)
        Run += Entry;
      Done = true;
      continue;
    }
    Run.append(F.Whole.data(), F.Whole.size());
  }
  if (!Done)
    Run += Entry;
  StringRef Saved = save(Run);
  Nodes[N].AttrData = Saved.data();
  Nodes[N].AttrSize = static_cast<uint32_t>(Saved.size());
  Nodes[N].Flags |= attrFlags(Key);
  touch(N);
}

void Graph::removeAttr(NodeId N, StringRef Key) {
  std::string Run;
  wire::Reader R({Nodes[N].AttrData, Nodes[N].AttrSize});
  wire::Field F;
  AttrEntry Old;
  bool Found = false;
  while (R.next(F)) {
    if (parseEntry(F, Old) && Old.Key == Key)
      Found = true;
    else
      Run.append(F.Whole.data(), F.Whole.size());
  }
  if (!Found)
    return;
  StringRef Saved = save(Run);
  Nodes[N].AttrData = Saved.data();
  Nodes[N].AttrSize = static_cast<uint32_t>(Saved.size());
  touch(N);
}

void Graph::setIntAttr(NodeId N, StringRef Key, int64_t Value) {
  setAttr(N, Key, encodeIntAttr(Value));
}
void Graph::setBoolAttr(NodeId N, StringRef Key, bool Value) {
  setAttr(N, Key, encodeBoolAttr(Value));
}
void Graph::setTypeAttr(NodeId N, StringRef Key, unsigned Type) {
  setAttr(N, Key, encodeTypeAttr(Type));
}
void Graph::setStringAttr(NodeId N, StringRef Key, StringRef Value) {
  setAttr(N, Key, encodeStringAttr(Value));
}

static std::string encodeVarintAttr(unsigned Field, uint64_t Value) {
  std::string Bytes;
  wire::appendInt(Bytes, Field, Value);
  return Bytes;
}

std::string encodeIntAttr(int64_t Value) {
  return encodeVarintAttr(AttrInt, static_cast<uint64_t>(Value));
}
std::string encodeBoolAttr(bool Value) {
  return encodeVarintAttr(AttrBool, Value);
}
std::string encodeTypeAttr(unsigned Type) {
  return encodeVarintAttr(AttrType, Type);
}

std::string encodeStringAttr(StringRef Value) {
  std::string Bytes;
  wire::appendBytes(Bytes, AttrString, Value);
  return Bytes;
}

std::string encodeStringListAttr(ArrayRef<StringRef> Values) {
  std::string List;
  for (StringRef V : Values)
    wire::appendBytes(List, ListString, V);
  std::string Bytes;
  wire::appendBytes(Bytes, AttrList, List);
  return Bytes;
}

std::string encodeShapeAttr(const ShapeValue &Shape) {
  std::string Bytes;
  wire::appendBytes(Bytes, AttrShape, encodeShape(Shape));
  return Bytes;
}

std::string encodeIntListAttr(ArrayRef<int64_t> Values) {
  std::string Packed, List, Bytes;
  for (int64_t V : Values)
    wire::appendVarint(Packed, static_cast<uint64_t>(V));
  wire::appendBytes(List, ListInt, Packed);
  wire::appendBytes(Bytes, AttrList, List);
  return Bytes;
}

std::string encodeTypeListAttr(StringRef Types) {
  std::string List, Bytes;
  wire::appendBytes(List, ListType, Types);
  wire::appendBytes(Bytes, AttrList, List);
  return Bytes;
}

} // namespace graft
