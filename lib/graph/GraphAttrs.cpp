//===- lib/graph/GraphAttrs.cpp - attributes and constants ------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "lib/graph/Graph.h"

#include "lib/support/Wire.h"

#include "llvm/ADT/bit.h"
#include "llvm/Support/MathExtras.h"

#include <cmath>

using namespace llvm;

namespace graft {
namespace {

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
std::optional<wire::Field> findField(StringRef Message, unsigned Number,
                                     wire::Type Type) {
  wire::Reader R(Message);
  wire::Field F;
  std::optional<wire::Field> Found;
  while (R.next(F))
    if (F.Number == Number && F.WireType == Type)
      Found = F;
  return Found;
}

/// Key and value of one map entry.
bool parseEntry(const wire::Field &F, AttrEntry &Entry) {
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

std::string encodeEntry(StringRef Key, StringRef Value) {
  std::string Entry;
  wire::appendBytes(Entry, 1, Key);
  wire::appendBytes(Entry, 2, Value);
  std::string Result;
  wire::appendBytes(Result, NodeAttrField, Entry);
  return Result;
}

ShapeValue parseShape(StringRef Bytes) {
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

std::string encodeShape(const ShapeValue &Shape) {
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

} // namespace

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

std::optional<SmallVector<int64_t, 4>> Graph::intListAttr(NodeId N,
                                                          StringRef Key) const {
  auto Value = attr(N, Key);
  if (!Value)
    return std::nullopt;
  auto List = findField(*Value, AttrList, wire::Type::Bytes);
  if (!List)
    return std::nullopt;
  SmallVector<int64_t, 4> Result;
  wire::Reader R(List->Bytes);
  wire::Field F;
  while (R.next(F)) {
    if (F.Number != ListInt)
      continue;
    if (F.WireType == wire::Type::Varint) {
      Result.push_back(static_cast<int64_t>(F.Varint));
    } else if (F.WireType == wire::Type::Bytes) {
      wire::Reader Packed(F.Bytes);
      uint64_t V;
      while (Packed.position() != F.Bytes.end() && Packed.varint(V))
        Result.push_back(static_cast<int64_t>(V));
    }
  }
  return Result;
}

std::optional<SmallVector<ShapeValue, 2>>
Graph::shapeListAttr(NodeId N, StringRef Key) const {
  auto Value = attr(N, Key);
  if (!Value)
    return std::nullopt;
  auto List = findField(*Value, AttrList, wire::Type::Bytes);
  if (!List)
    return std::nullopt;
  SmallVector<ShapeValue, 2> Result;
  wire::Reader R(List->Bytes);
  wire::Field F;
  while (R.next(F))
    if (F.Number == ListShape && F.WireType == wire::Type::Bytes)
      Result.push_back(parseShape(F.Bytes));
  return Result;
}

std::optional<SmallVector<StringRef, 2>>
Graph::stringListAttr(NodeId N, StringRef Key) const {
  auto Value = attr(N, Key);
  if (!Value)
    return std::nullopt;
  auto List = findField(*Value, AttrList, wire::Type::Bytes);
  if (!List)
    return std::nullopt;
  SmallVector<StringRef, 2> Result;
  wire::Reader R(List->Bytes);
  wire::Field F;
  while (R.next(F))
    if (F.Number == ListString && F.WireType == wire::Type::Bytes)
      Result.push_back(F.Bytes);
  return Result;
}

//===----------------------------------------------------------------------===//
// Outputs by the op's definition
//===----------------------------------------------------------------------===//

/// Types of a list(type) attribute, packed or not.
static SmallVector<unsigned, 4> typeList(const Graph &G, NodeId N,
                                         StringRef Key) {
  SmallVector<unsigned, 4> Result;
  auto Value = G.attr(N, Key);
  if (!Value)
    return Result;
  auto List = findField(*Value, AttrList, wire::Type::Bytes);
  if (!List)
    return Result;
  wire::Reader R(List->Bytes);
  wire::Field F;
  while (R.next(F)) {
    if (F.Number != ListType)
      continue;
    if (F.WireType == wire::Type::Varint) {
      Result.push_back(static_cast<unsigned>(F.Varint));
      continue;
    }
    wire::Reader Packed(F.Bytes);
    uint64_t V;
    while (Packed.position() != F.Bytes.end() && Packed.varint(V))
      Result.push_back(static_cast<unsigned>(V));
  }
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

//===----------------------------------------------------------------------===//
// Constants
//===----------------------------------------------------------------------===//

namespace {

/// Field numbers of tensorflow/core/framework/tensor.proto.
enum : unsigned {
  TensorType = 1,
  TensorShape = 2,
  TensorContent = 4,
  TensorFloat = 5,
  TensorDouble = 6,
  TensorInt = 7,
  TensorString = 8,
  TensorInt64 = 10,
  TensorHalf = 13,
};

constexpr int64_t MaxInts = 64;

unsigned integerSize(unsigned Type) {
  return Type == DT_INT64 ? 8 : Type == DT_INT32 ? 4 : 0;
}

} // namespace

std::optional<TensorValue> constValue(const Graph &G, NodeId N) {
  auto Value = G.attr(N, "value");
  if (!Value)
    return std::nullopt;
  auto Tensor = findField(*Value, AttrTensor, wire::Type::Bytes);
  if (!Tensor)
    return std::nullopt;
  TensorValue T;
  StringRef Content;
  T.AllZero = true;
  wire::Reader R(Tensor->Bytes);
  wire::Field F;
  while (R.next(F)) {
    switch (F.Number) {
    case TensorType:
      T.Type = static_cast<unsigned>(F.Varint);
      break;
    case TensorShape:
      T.Shape = parseShape(F.Bytes);
      break;
    case TensorContent:
      Content = F.Bytes;
      T.AllZero &= llvm::all_of(Content, [](char C) { return C == 0; });
      break;
    case TensorString:
      T.AllZero = false;
      break;
    case TensorInt:
    case TensorInt64: {
      SmallVector<int64_t, 8> Values;
      if (F.WireType == wire::Type::Varint) {
        Values.push_back(static_cast<int64_t>(F.Varint));
      } else {
        wire::Reader Packed(F.Bytes);
        uint64_t V;
        while (Packed.position() != F.Bytes.end() && Packed.varint(V) &&
               T.Ints.size() + Values.size() <= MaxInts)
          Values.push_back(static_cast<int64_t>(V));
      }
      T.AllZero &= llvm::all_of(Values, [](int64_t V) { return V == 0; });
      T.Ints.append(Values.begin(), Values.end());
      break;
    }
    default:
      // The other value fields, packed or not: zero when all bytes are.
      if (F.WireType == wire::Type::Bytes)
        T.AllZero &= llvm::all_of(F.Bytes, [](char C) { return C == 0; });
      else if (F.Number >= TensorFloat)
        T.AllZero &= F.Varint == 0;
      break;
    }
  }
  if (R.failed())
    return std::nullopt;
  T.NumElements = 1;
  for (int64_t D : T.Shape.Dims) {
    if (D < 0 || MulOverflow(T.NumElements, D, T.NumElements))
      return std::nullopt;
  }
  unsigned Size = integerSize(T.Type);
  if (Size == 0 || T.NumElements > MaxInts)
    return T;
  if (!Content.empty()) {
    if (Content.size() != static_cast<size_t>(T.NumElements) * Size)
      return std::nullopt;
    T.Ints.clear();
    for (int64_t I = 0; I < T.NumElements; ++I) {
      int64_t V = 0;
      int32_t V32 = 0;
      if (Size == 4) {
        std::memcpy(&V32, Content.data() + I * 4, 4);
        V = V32;
      } else {
        std::memcpy(&V, Content.data() + I * 8, 8);
      }
      T.Ints.push_back(V);
    }
  }
  // Fewer values than elements: the last one repeats, none means zeros
  // (tensorflow/core/framework/tensor.cc).
  if (static_cast<int64_t>(T.Ints.size()) > T.NumElements)
    return std::nullopt;
  T.Ints.resize(T.NumElements, T.Ints.empty() ? 0 : T.Ints.back());
  T.HasInts = true;
  return T;
}

std::optional<double> constScalar(const Graph &G, NodeId N) {
  auto Tensor = constValue(G, N);
  if (!Tensor || Tensor->NumElements != 1)
    return std::nullopt;
  if (Tensor->HasInts)
    return static_cast<double>(Tensor->Ints[0]);
  auto Value = findField(*G.attr(N, "value"), AttrTensor, wire::Type::Bytes);
  wire::Reader R(Value->Bytes);
  wire::Field F;
  while (R.next(F)) {
    if (F.Number != TensorFloat && F.Number != TensorDouble &&
        F.Number != TensorHalf && F.Number != TensorContent)
      continue;
    bool Packed = F.WireType == wire::Type::Bytes;
    uint64_t Bits = F.Varint;
    if (Packed && F.Number == TensorHalf) {
      wire::Reader Values(F.Bytes);
      if (!Values.varint(Bits))
        return std::nullopt;
    } else if (Packed) {
      Bits = 0;
      std::memcpy(&Bits, F.Bytes.data(), std::min<size_t>(F.Bytes.size(), 8));
    }
    switch (Tensor->Type) {
    case DT_DOUBLE:
      return llvm::bit_cast<double>(Bits);
    case DT_FLOAT:
      return llvm::bit_cast<float>(static_cast<uint32_t>(Bits));
    case DT_BFLOAT16:
      return llvm::bit_cast<float>(static_cast<uint32_t>(Bits << 16));
    case DT_HALF: {
      double Mantissa = static_cast<double>(Bits & 0x3ff) / 1024;
      int Exponent = static_cast<int>(Bits >> 10 & 0x1f);
      double Magnitude = Exponent == 0
                             ? std::ldexp(Mantissa, -14)
                             : std::ldexp(1 + Mantissa, Exponent - 15);
      return Bits & 0x8000 ? -Magnitude : Magnitude;
    }
    default:
      return std::nullopt;
    }
  }
  return 0;
}

static std::string encodeTensor(unsigned Type, ArrayRef<int64_t> Shape,
                                StringRef Values) {
  ShapeValue S;
  S.Dims.assign(Shape.begin(), Shape.end());
  std::string Tensor;
  wire::appendInt(Tensor, TensorType, Type);
  wire::appendBytes(Tensor, TensorShape, encodeShape(S));
  Tensor += Values;
  std::string Bytes;
  wire::appendBytes(Bytes, AttrTensor, Tensor);
  return Bytes;
}

std::string encodeIntTensor(unsigned Type, ArrayRef<int64_t> Shape,
                            ArrayRef<int64_t> Values) {
  std::string Packed;
  for (int64_t V : Values)
    wire::appendVarint(Packed, static_cast<uint64_t>(V));
  std::string Field;
  wire::appendBytes(Field, Type == DT_INT64 ? TensorInt64 : TensorInt, Packed);
  return encodeTensor(Type, Shape, Field);
}

std::string encodeFloatTensor(unsigned Type, ArrayRef<int64_t> Shape,
                              ArrayRef<double> Values) {
  std::string Packed, Field;
  unsigned Number = TensorFloat;
  for (double V : Values) {
    auto Single = static_cast<float>(V);
    switch (Type) {
    case DT_DOUBLE:
      Number = TensorDouble;
      Packed.append(reinterpret_cast<const char *>(&V), sizeof V);
      break;
    case DT_HALF:
    case DT_BFLOAT16: {
      // Only powers of the replica count and small numbers come here; bf16 is
      // the upper half of a float, fp16 is rebiased with round to nearest.
      Number = TensorHalf;
      uint32_t Bits;
      std::memcpy(&Bits, &Single, 4);
      uint32_t Half;
      if (Type == DT_BFLOAT16) {
        Half = (Bits + 0x7fff + ((Bits >> 16) & 1)) >> 16;
      } else {
        uint32_t Rounded = Bits + 0xfff + ((Bits >> 13) & 1);
        int Exponent = static_cast<int>((Rounded >> 23) & 0xff) - 112;
        Half = (Rounded >> 16 & 0x8000) |
               (Exponent <= 0
                    ? 0
                    : uint32_t(Exponent) << 10 | (Rounded >> 13 & 0x3ff));
      }
      wire::appendVarint(Packed, Half & 0xffff);
      break;
    }
    default:
      Packed.append(reinterpret_cast<const char *>(&Single), sizeof Single);
      break;
    }
  }
  wire::appendBytes(Field, Number, Packed);
  return encodeTensor(Type, Shape, Field);
}

NodeId Graph::addIntConst(StringRef Name, unsigned Type,
                          ArrayRef<int64_t> Values, bool Scalar, NodeId After) {
  NodeId N = addNode(Name, "Const", {}, After);
  SmallVector<int64_t, 1> Shape;
  if (!Scalar)
    Shape.push_back(static_cast<int64_t>(Values.size()));
  setTypeAttr(N, "dtype", Type);
  setAttr(N, "value", encodeIntTensor(Type, Shape, Values));
  return N;
}

NodeId Graph::addFloatConst(StringRef Name, unsigned Type, double Value,
                            NodeId After) {
  NodeId N = addNode(Name, "Const", {}, After);
  setTypeAttr(N, "dtype", Type);
  setAttr(N, "value", encodeFloatTensor(Type, {}, Value));
  return N;
}

} // namespace graft
