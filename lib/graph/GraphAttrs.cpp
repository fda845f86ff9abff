//===- lib/graph/GraphAttrs.cpp - attributes --------------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "lib/graph/AttrWire.h"

#include "llvm/Support/Endian.h"

using namespace llvm;

namespace graft {

//===----------------------------------------------------------------------===//
// Reading
//===----------------------------------------------------------------------===//

/// Finds the value of \p Key in the run of attributes from \p P to \p End, in
/// any legal encoding.
static LLVM_ATTRIBUTE_NOINLINE std::optional<StringRef>
searchAttr(const char *P, const char *End, StringRef Key) {
  wire::Reader R({P, static_cast<size_t>(End - P)});
  wire::Field F;
  AttrEntry Entry;
  while (R.next(F))
    if (parseEntry(F, Entry) && Entry.Key == Key)
      return Entry.Value;
  return std::nullopt;
}

std::optional<StringRef> Graph::attr(NodeId N, StringRef Key) const {
  const char *P = Nodes[N].AttrData, *End = P + Nodes[N].AttrSize;
  // The usual encoding: tag and length of the entry, tag and length of the key,
  // the key, tag and length of the value. Each length has one byte.
  constexpr uint32_t Mask = 0x80ff80ff, Usual = 0x000a002a;
  while (End - P >= 4) {
    uint32_t Head = support::endian::read32le(P);
    StringRef Body(P + 2, Head >> 8 & 0x7f);
    if ((Head & Mask) == Usual) {
      if (Body.size() > static_cast<size_t>(End - Body.data()))
        break;
    } else {
      // Longer entries: shapes of many outputs, constants.
      const char *Next = P;
      if (!wire::takeBytes(Next, End, NodeAttrTag, Body) || Body.size() < 2 ||
          Body[0] != EntryKeyTag || static_cast<uint8_t>(Body[1]) >= 0x80)
        break;
      Head = uint32_t(static_cast<uint8_t>(Body[1])) << 24;
    }
    size_t Size = Head >> 24;
    if (Size == Key.size() && Size + 2 <= Body.size() &&
        equalBytes(Body.begin() + 2, Key.begin(), Size)) {
      const char *Rest = Body.data() + 2 + Size;
      StringRef Value;
      if (wire::takeBytes(Rest, Body.end(), EntryValueTag, Value) &&
          Rest == Body.end())
        return Value;
      break;
    }
    P = Body.end();
  }
  return P == End ? std::nullopt : searchAttr(P, End, Key);
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

/// Returns the text after `key: ` of a default in text form.
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
  if (auto Value = attr(N, Key))
    return varintField(*Value, AttrInt);
  int64_t Result;
  auto Text = defaultText(opDef(N), Key, "i");
  if (Text && !Text->getAsInteger(10, Result))
    return Result;
  return std::nullopt;
}

std::optional<bool> Graph::boolAttr(NodeId N, StringRef Key) const {
  if (auto Value = attr(N, Key)) {
    if (auto V = varintField(*Value, AttrBool))
      return *V != 0;
    return std::nullopt;
  }
  if (auto Text = defaultText(opDef(N), Key, "b"))
    return *Text == "true";
  return std::nullopt;
}

std::optional<float> Graph::floatAttr(NodeId N, StringRef Key) const {
  if (auto Value = attr(N, Key)) {
    if (auto F = findField(*Value, AttrFloat, wire::Type::Fixed32))
      return llvm::bit_cast<float>(static_cast<uint32_t>(F->Varint));
    return std::nullopt;
  }
  double Result;
  auto Text = defaultText(opDef(N), Key, "f");
  if (Text && !Text->getAsDouble(Result))
    return static_cast<float>(Result);
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
    if (auto V = varintField(*Value, AttrType))
      return static_cast<unsigned>(*V);
    return std::nullopt;
  }
  if (auto Text = defaultText(opDef(N), Key, "type"))
    for (auto [Name, Type] : Names)
      if (*Text == Name)
        return Type;
  return std::nullopt;
}

std::optional<StringRef> Graph::stringAttr(NodeId N, StringRef Key) const {
  if (auto Value = attr(N, Key))
    return bytesField(*Value, AttrString);
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
  if (auto Shape = bytesField(*Value, AttrShape))
    return parseShape(*Shape);
  return std::nullopt;
}

/// Calls \p F with each field \p Number of a list attribute. Returns false if
/// there is no list.
template <typename Fn>
static bool forEachListField(const Graph &G, NodeId N, StringRef Key,
                             unsigned Number, Fn F) {
  auto Value = G.attr(N, Key);
  auto List = Value ? bytesField(*Value, AttrList) : std::nullopt;
  if (!List)
    return false;
  wire::Reader R(*List);
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

SmallVector<unsigned, 4> Graph::typeListAttr(NodeId N, StringRef Key) const {
  SmallVector<unsigned, 4> Result;
  forEachListInt(*this, N, Key, ListType, [&](uint64_t V) {
    Result.push_back(static_cast<unsigned>(V));
  });
  return Result;
}

static unsigned argWidth(const Graph &G, NodeId N, const ArgDef &A) {
  if (*A.TypeListAttr)
    return G.typeListAttr(N, A.TypeListAttr).size();
  if (*A.NumberAttr)
    return static_cast<unsigned>(
        std::max<int64_t>(0, G.intAttr(N, A.NumberAttr).value_or(0)));
  return 1;
}

std::optional<unsigned> Graph::numOutputs(NodeId N) const {
  const OpFacts &Facts = Ops[Nodes[N].Op];
  if (Facts.Outputs != OpFacts::Open)
    return Facts.Outputs;
  const OpDef *Def = Facts.Def;
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

/// Returns the type of argument \p A, which is no type list. For a reference
/// this is the type of the variable.
static unsigned typeOfArg(const Graph &G, NodeId N, const ArgDef &A) {
  unsigned Type = A.Type;
  if (*A.TypeAttr)
    Type = G.typeAttr(N, A.TypeAttr).value_or(DT_INVALID);
  return Type > RefTypeOffset ? Type - RefTypeOffset : Type;
}

/// Returns the type of tensor \p Index of \p Args, where an argument may have
/// several tensors.
static unsigned typeAt(const Graph &G, NodeId N, ArrayRef<ArgDef> Args,
                       unsigned Index) {
  for (const ArgDef &A : Args) {
    if (*A.TypeListAttr) {
      SmallVector<unsigned, 4> List = G.typeListAttr(N, A.TypeListAttr);
      if (Index < List.size())
        return List[Index];
      Index -= static_cast<unsigned>(List.size());
    } else {
      unsigned Width = argWidth(G, N, A);
      if (Index < Width)
        return typeOfArg(G, N, A);
      Index -= Width;
    }
  }
  return DT_INVALID;
}

SmallVector<unsigned, 4> Graph::outputTypes(NodeId N) const {
  SmallVector<unsigned, 4> Result;
  const OpDef *Def = opDef(N);
  if (!Def)
    return Result;
  for (const ArgDef &A : Def->outputs()) {
    if (*A.TypeListAttr)
      Result.append(typeListAttr(N, A.TypeListAttr));
    else
      Result.append(argWidth(*this, N, A), typeOfArg(*this, N, A));
  }
  return Result;
}

unsigned Graph::inputType(NodeId N, unsigned Index) const {
  const OpFacts &Facts = Ops[Nodes[N].Op];
  if (Facts.Def)
    return typeAt(*this, N, Facts.Def->inputs(), Index);
  if (Facts.OfUser)
    return DT_INVALID;
  // Ops of the program have one type, in the attribute T.
  return typeAttr(N, "T").value_or(DT_INVALID);
}

unsigned Graph::outputType(NodeId N, uint32_t Port) const {
  const OpFacts &Facts = Ops[Nodes[N].Op];
  if (Facts.OfUser) {
    // All readers expect the same type (verifyDefinitions). The number of
    // visits is limited, because a caller may call this for every use.
    constexpr unsigned MaxUses = 64;
    unsigned Uses = 0, Type = DT_INVALID;
    anyUse(N, [&](Use U) {
      if (isData(U) && input(U).Port == Port)
        Type = inputType(U.User, U.Index);
      return Type != DT_INVALID || ++Uses == MaxUses;
    });
    return Type;
  }
  if (!Facts.Def)
    return typeAttr(N, "T").value_or(DT_INVALID);
  ArrayRef<ArgDef> Outputs = Facts.Def->outputs();
  // If no argument is a list, port numbers are argument numbers.
  if (Facts.Outputs != OpFacts::Open) {
    if (Port >= Outputs.size())
      return DT_INVALID;
    Outputs = Outputs.drop_front(std::exchange(Port, 0));
  }
  return typeAt(*this, N, Outputs, Port);
}

/// Returns the argument of \p Args to which tensor \p Index belongs, or null.
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
  const OpFacts &Facts = Ops[Nodes[N].Op];
  const ArgDef *A =
      Facts.RefOutputs ? argAt(*this, N, Facts.Def->outputs(), Port) : nullptr;
  return A && A->IsRef;
}

bool Graph::isRefInput(NodeId N, unsigned Index) const {
  const OpFacts &Facts = Ops[Nodes[N].Op];
  const ArgDef *A =
      Facts.RefInputs ? argAt(*this, N, Facts.Def->inputs(), Index) : nullptr;
  return A && A->IsRef;
}

//===----------------------------------------------------------------------===//
// Writing
//===----------------------------------------------------------------------===//

/// Adds or replaces an attribute. Returns where its value of \p ValueSize bytes
/// must be written.
char *Graph::putAttr(NodeId N, StringRef Key, uint64_t ValueSize) {
  Node &This = Nodes[N];
  StringRef Old(This.AttrData, This.AttrSize);
  uint64_t Size =
      wire::bytesFieldSize(Key.size()) + wire::bytesFieldSize(ValueSize);
  uint64_t Room = Old.size() + wire::bytesFieldSize(Size);
  auto *Run = static_cast<char *>(Arena.Allocate(Room, Align(1)));
  char *Out = Run, *Value = nullptr;
  const char *Kept = Old.begin();
  auto Keep = [&](const char *Until) { Out = std::copy(Kept, Until, Out); };
  auto Put = [&] {
    *Out++ = NodeAttrTag;
    Out = wire::putVarint(Out, Size);
    *Out++ = EntryKeyTag;
    Out = wire::putVarint(Out, Key.size());
    Out = std::copy(Key.begin(), Key.end(), Out);
    *Out++ = EntryValueTag;
    Value = Out = wire::putVarint(Out, ValueSize);
    Out += ValueSize;
  };
  wire::Reader R(Old);
  wire::Field F;
  AttrEntry Entry;
  while (R.next(F)) {
    if (!parseEntry(F, Entry) || Entry.Key != Key)
      continue;
    Keep(F.Whole.begin());
    Kept = F.Whole.end();
    if (!Value)
      Put();
  }
  Keep(Old.end());
  if (!Value)
    Put();
  This.AttrData = Run;
  This.AttrSize = static_cast<uint32_t>(Out - Run);
  This.Flags |= attrFlags(Key);
  forgetColocation(N, Key);
  touch(N);
  return Value;
}

void Graph::setAttr(NodeId N, StringRef Key, StringRef Value) {
  // Value may alias the run that is replaced; old runs are never freed.
  std::copy(Value.begin(), Value.end(), putAttr(N, Key, Value.size()));
}

void Graph::removeAttr(NodeId N, StringRef Key) {
  Node &This = Nodes[N];
  StringRef Old(This.AttrData, This.AttrSize);
  char *Run = nullptr, *Out = nullptr;
  const char *Kept = Old.begin();
  wire::Reader R(Old);
  wire::Field F;
  AttrEntry Entry;
  while (R.next(F)) {
    if (!parseEntry(F, Entry) || Entry.Key != Key)
      continue;
    if (!Run)
      Run = Out = static_cast<char *>(Arena.Allocate(Old.size(), Align(1)));
    Out = std::copy(Kept, F.Whole.begin(), Out);
    Kept = F.Whole.end();
  }
  if (!Run)
    return;
  Out = std::copy(Kept, Old.end(), Out);
  This.AttrData = Run;
  This.AttrSize = static_cast<uint32_t>(Out - Run);
  forgetColocation(N, Key);
  touch(N);
}

/// Encodes a number as an AttrValue.
static StringRef varintValue(char (&Buffer)[11], unsigned Field,
                             uint64_t Value) {
  Buffer[0] = static_cast<char>(Field << 3);
  return {Buffer,
          static_cast<size_t>(wire::putVarint(Buffer + 1, Value) - Buffer)};
}

void Graph::setIntAttr(NodeId N, StringRef Key, int64_t Value) {
  char Buffer[11];
  setAttr(N, Key, varintValue(Buffer, AttrInt, static_cast<uint64_t>(Value)));
}
void Graph::setBoolAttr(NodeId N, StringRef Key, bool Value) {
  char Buffer[11];
  setAttr(N, Key, varintValue(Buffer, AttrBool, Value));
}
void Graph::setTypeAttr(NodeId N, StringRef Key, unsigned Type) {
  char Buffer[11];
  setAttr(N, Key, varintValue(Buffer, AttrType, Type));
}
void Graph::setStringAttr(NodeId N, StringRef Key, StringRef Value) {
  char *Out = putAttr(N, Key, wire::bytesFieldSize(Value.size()));
  *Out++ = wire::bytesTag(AttrString);
  Out = wire::putVarint(Out, Value.size());
  std::copy(Value.begin(), Value.end(), Out);
}

static std::string encodeVarintAttr(unsigned Field, uint64_t Value) {
  char Buffer[11];
  return varintValue(Buffer, Field, Value).str();
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
