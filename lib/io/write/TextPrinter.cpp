//===- lib/io/write/TextPrinter.cpp - wire bytes to text --------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "lib/io/write/TextPrinter.h"

#include "google/protobuf/descriptor.pb.h"
#include "google/protobuf/io/coded_stream.h"
#include "google/protobuf/io/zero_copy_stream_impl_lite.h"
#include "google/protobuf/message.h"
#include "google/protobuf/stubs/strutil.h"
#include "google/protobuf/text_format.h"

#include <array>
#include <bit>
#include <charconv>
#include <climits>
#include <cmath>
#include <limits>
#include <type_traits>

using namespace llvm;
using google::protobuf::Descriptor;
using google::protobuf::FieldDescriptor;
using google::protobuf::TextFormat;

namespace graft {
namespace {

/// The depth to which protobuf lets messages nest.
constexpr unsigned MaxDepth = 100;
/// The maximum field number. TextFormat prints messages with larger numbers.
constexpr int MaxFieldNumber = 63;

/// A byte between quotes: itself, or its escape of two or four characters.
struct Escape {
  char Text[4];
  uint8_t Size;
};

constexpr std::array<Escape, 256> makeEscapes() {
  std::array<Escape, 256> Table{};
  for (unsigned C = 0; C < 256; ++C) {
    Escape &E = Table[C];
    char Short = C == '\n'                              ? 'n'
                 : C == '\r'                            ? 'r'
                 : C == '\t'                            ? 't'
                 : (C == '"' || C == '\'' || C == '\\') ? static_cast<char>(C)
                                                        : '\0';
    if (Short)
      E = {{'\\', Short}, 2};
    else if (C < 0x20 || C >= 0x7f)
      E = {{'\\', static_cast<char>('0' + C / 64),
            static_cast<char>('0' + C / 8 % 8), static_cast<char>('0' + C % 8)},
           4};
    else
      E = {{static_cast<char>(C)}, 1};
  }
  return Table;
}
constexpr std::array<Escape, 256> Escapes = makeEscapes();

constexpr uint64_t Ones = 0x0101010101010101;
constexpr uint64_t Tops = Ones << 7;

/// Sets the top bit of the first zero byte of \p V, and perhaps of later bytes.
constexpr uint64_t zeroBytes(uint64_t V) { return (V - Ones) & ~V & Tops; }

/// Returns a value other than 0 if a byte of \p V needs an escape.
uint64_t needsEscape(uint64_t V) {
  uint64_t Below = (V - Ones * 0x20) & ~V;
  uint64_t Above = V + Ones;
  return ((Below | Above | V) & Tops) | zeroBytes(V ^ (Ones * '"')) |
         zeroBytes(V ^ (Ones * '\'')) | zeroBytes(V ^ (Ones * '\\'));
}

/// Writes \p Bytes escaped for quotes. \p P has room for four times as many
/// bytes and eight more. \p All gets the bits that are set in any of the bytes.
char *putEscaped(char *P, StringRef Bytes, uint64_t &All) {
  const char *In = Bytes.begin(), *End = Bytes.end();
  auto Each = [&](const char *Stop) {
    for (; In != Stop; ++In) {
      const Escape &E = Escapes[static_cast<uint8_t>(*In)];
      std::memcpy(P, E.Text, 4);
      P += E.Size;
    }
  };
  while (End - In >= 8) {
    uint64_t V;
    std::memcpy(&V, In, 8);
    All |= V;
    if (needsEscape(V)) {
      Each(In + 8);
    } else {
      std::memcpy(P, &V, 8);
      P += 8;
      In += 8;
    }
  }
  for (const char *C = In; C != End; ++C)
    All |= static_cast<uint8_t>(*C);
  Each(End);
  return P;
}

char *putSpaces(char *P, unsigned Level) {
  std::memset(P, ' ', size_t(2) * Level);
  return P + size_t(2) * Level;
}

char *put(char *P, StringRef Text) {
  std::memcpy(P, Text.data(), Text.size());
  return P + Text.size();
}

/// The maximum length of a number.
constexpr size_t LongestNumber = 32;

template <typename T> char *putInteger(char *P, T Value) {
  return std::to_chars(P, P + LongestNumber, Value).ptr;
}

/// Writes a float as SimpleFtoa and SimpleDtoa do: with the shorter of two
/// precisions if that reads back as the same number.
template <typename T> char *putFloat(char *P, T Value) {
  constexpr bool IsFloat = std::is_same_v<T, float>;
  if (std::isnan(Value))
    return put(P, "nan");
  if (!std::isnormal(Value) && Value != 0) {
    if constexpr (IsFloat)
      return put(P, google::protobuf::SimpleFtoa(Value));
    else
      return put(P, google::protobuf::SimpleDtoa(Value));
  }
  constexpr int Digits = std::numeric_limits<T>::digits10;
  auto Print = [&](int Precision) {
    return std::to_chars(P, P + LongestNumber, Value,
                         std::chars_format::general, Precision)
        .ptr;
  };
  char *End = Print(Digits);
  T Back = 0;
  std::from_chars(P, End, Back);
  return Back == Value ? End : Print(Digits + (IsFloat ? 3 : 2));
}

/// Reads varints, tags and lengths in the encodings that protobuf writes. Any
/// other legal encoding is unusual.
class Cursor {
public:
  explicit Cursor(StringRef Bytes) : P(Bytes.begin()), End(Bytes.end()) {}
  bool atEnd() const { return P == End; }

  bool varint(uint64_t &V, unsigned MaxBytes = 10) {
    V = 0;
    for (unsigned Shift = 0; Shift < 7 * MaxBytes && P != End; Shift += 7) {
      auto Byte = static_cast<uint8_t>(*P++);
      V |= Shift < 64 ? uint64_t(Byte & 0x7f) << Shift : 0;
      if (Byte < 0x80)
        return true;
    }
    return false;
  }
  bool tag(unsigned &Number, unsigned &WireType) {
    uint64_t Tag;
    if (!varint(Tag, 2) || Tag > (MaxFieldNumber << 3 | 7))
      return false;
    Number = static_cast<unsigned>(Tag >> 3);
    WireType = Tag & 7;
    return true;
  }
  bool bytes(StringRef &Bytes) {
    uint64_t Size;
    if (!varint(Size, 5) || Size > static_cast<uint64_t>(End - P) ||
        Size > INT_MAX - 16)
      return false;
    Bytes = {P, static_cast<size_t>(Size)};
    P += Size;
    return true;
  }
  bool fixed(uint64_t &V, unsigned Size) {
    V = 0;
    if (End - P < static_cast<ptrdiff_t>(Size))
      return false;
    std::memcpy(&V, P, Size);
    P += Size;
    return true;
  }

private:
  const char *P;
  const char *End;
};

/// Returns the wire type of a number of \p Type, or -1 if only TextFormat
/// prints the type.
int wireType(FieldDescriptor::Type Type) {
  switch (Type) {
  case FieldDescriptor::TYPE_INT32:
  case FieldDescriptor::TYPE_INT64:
  case FieldDescriptor::TYPE_UINT32:
  case FieldDescriptor::TYPE_UINT64:
  case FieldDescriptor::TYPE_BOOL:
  case FieldDescriptor::TYPE_ENUM:
    return 0;
  case FieldDescriptor::TYPE_DOUBLE:
    return 1;
  case FieldDescriptor::TYPE_STRING:
  case FieldDescriptor::TYPE_BYTES:
  case FieldDescriptor::TYPE_MESSAGE:
    return 2;
  case FieldDescriptor::TYPE_FLOAT:
    return 5;
  default:
    return -1;
  }
}

/// Reads one number of \p Type.
bool readNumber(Cursor &C, int Type, uint64_t &Bits) {
  return Type == 0 ? C.varint(Bits) : C.fixed(Bits, Type == 1 ? 8 : 4);
}

/// Reads the value of a field.
bool readValue(Cursor &C, unsigned WireType, StringRef &Bytes, uint64_t &Bits) {
  switch (WireType) {
  case 0:
  case 1:
  case 5:
    return readNumber(C, static_cast<int>(WireType), Bits);
  case 2:
    return C.bytes(Bytes);
  default:
    return false;
  }
}

} // namespace

const TextPrinter::MessageInfo &TextPrinter::infoOf(const Descriptor *Type) {
  std::unique_ptr<MessageInfo> &Slot = Infos[Type];
  if (Slot)
    return *Slot;
  Slot = std::make_unique<MessageInfo>();
  MessageInfo &Info = *Slot; // Slot moves when other slots are added
  Info.Type = Type;
  for (int I = 0; I < Type->field_count(); ++I) {
    const FieldDescriptor *Field = Type->field(I);
    const auto *OneOf = Field->real_containing_oneof();
    if (Field->number() > MaxFieldNumber || wireType(Field->type()) < 0 ||
        (OneOf && OneOf->index() > 63))
      continue;
    if (Info.Fields.size() <= static_cast<size_t>(Field->number()))
      Info.Fields.resize(Field->number() + 1);
    FieldInfo &F = Info.Fields[Field->number()];
    F.Field = Field;
    F.Value = Field->name() + ": ";
    F.Open = Field->name() + " {\n";
    F.Type = Field->type();
    F.Repeated = Field->is_repeated();
    F.Map = Field->is_map();
    F.Present = Field->is_repeated() || Field->has_presence() ||
                Type->options().map_entry();
    F.OneOf = OneOf ? uint64_t(1) << OneOf->index() : 0;
    if (F.Type == FieldDescriptor::TYPE_MESSAGE)
      F.Message = &infoOf(Field->message_type());
  }
  return Info;
}

bool TextPrinter::message(StringRef Bytes, const MessageInfo &Info,
                          unsigned Level, unsigned Depth) {
  if (Depth > MaxDepth) {
    Invalid = true;
    return false;
  }
  size_t Start = Out.size(), Entries = MapEntries.size();
  if (usual(Bytes, Info, Level, Depth))
    return true;
  MapEntries.resize(Entries);
  if (Invalid)
    return false;
  Out.truncate(Start);
  Invalid = !unusual(Bytes, Info, Level, Depth);
  return !Invalid;
}

/// Prints an unusual message with TextFormat.
bool TextPrinter::unusual(StringRef Bytes, const MessageInfo &Info,
                          unsigned Level, unsigned Depth) {
  namespace pb = google::protobuf;
  if (Bytes.size() > INT_MAX)
    return false;
  pb::io::ArrayInputStream Stream(Bytes.data(), static_cast<int>(Bytes.size()));
  pb::io::CodedInputStream Coded(&Stream);
  Coded.SetRecursionLimit(static_cast<int>(MaxDepth - Depth));
  std::unique_ptr<pb::Message> Message(
      pb::MessageFactory::generated_factory()->GetPrototype(Info.Type)->New());
  if (!Message->ParseFromCodedStream(&Coded) || !Coded.ConsumedEntireMessage())
    return false;
  TextFormat::Printer Printer;
  Printer.SetInitialIndentLevel(static_cast<int>(Level));
  std::string Text;
  if (!Printer.PrintToString(*Message, &Text))
    return false;
  Out.append(Text);
  return true;
}

/// Prints a message whose fields are known and in the order of their numbers,
/// as serializers write them. Returns false for any other message.
bool TextPrinter::usual(StringRef Bytes, const MessageInfo &Info,
                        unsigned Level, unsigned Depth) {
  Cursor C(Bytes);
  unsigned Last = 0;
  uint64_t OneOfs = 0;
  size_t FirstEntry = MapEntries.size();
  auto FlushMap = [&] {
    return MapEntries.size() == FirstEntry ||
           entries(FirstEntry, Info.Fields[Last], Level, Depth);
  };
  while (!C.atEnd()) {
    unsigned Number, WireType;
    if (!C.tag(Number, WireType) || Number < Last ||
        Number >= Info.Fields.size())
      return false;
    const FieldInfo &F = Info.Fields[Number];
    if (!F.Field || (Number == Last && !F.Repeated))
      return false;
    if (Number != Last && !FlushMap())
      return false;
    Last = Number;
    // Protobuf keeps only the last member of a oneof, so there must be only
    // one.
    if (OneOfs & F.OneOf)
      return false;
    OneOfs |= F.OneOf;
    StringRef Value;
    uint64_t Bits = 0;
    if (!readValue(C, WireType, Value, Bits))
      return false;
    bool Good;
    if (static_cast<int>(WireType) != wireType(F.Type)) {
      Good = F.Repeated && WireType == 2 && packed(Value, F, Level);
    } else if (WireType != 2) {
      Good = number(Bits, F, Level);
    } else if (F.Map) {
      MapEntries.emplace_back();
      Good = readEntry(Value, F, MapEntries.back());
    } else if (F.Message) {
      Good = nested(Value, F, Level, Depth);
    } else {
      Good = string(Value, F, Level);
    }
    if (!Good)
      return false;
  }
  return FlushMap();
}

bool TextPrinter::field(StringRef Bytes, const Descriptor *Type,
                        unsigned Number, unsigned Level) {
  return nested(Bytes, infoOf(Type).Fields[Number], Level, Level);
}

bool TextPrinter::nested(StringRef Bytes, const FieldInfo &F, unsigned Level,
                         unsigned Depth) {
  char *P = Out.room(size_t(2) * Level + F.Open.size());
  Out.commit(put(putSpaces(P, Level), F.Open));
  if (!message(Bytes, *F.Message, Level + 1, Depth + 1))
    return false;
  P = putSpaces(Out.room(size_t(2) * Level + 2), Level);
  Out.commit(put(P, "}\n"));
  return true;
}

bool TextPrinter::string(StringRef Bytes, const FieldInfo &F, unsigned Level) {
  if (Bytes.empty() && !F.Present)
    return true;
  char *P =
      Out.room(size_t(2) * Level + F.Value.size() + 4 * Bytes.size() + 16);
  P = put(putSpaces(P, Level), F.Value);
  *P++ = '"';
  uint64_t All = 0;
  P = putEscaped(P, Bytes, All);
  // Protobuf checks UTF-8.
  if (F.Type == FieldDescriptor::TYPE_STRING && (All & Tops))
    return false;
  Out.commit(put(P, "\"\n"));
  return true;
}

bool TextPrinter::number(uint64_t Bits, const FieldInfo &F, unsigned Level) {
  bool Wide = F.Type == FieldDescriptor::TYPE_INT64 ||
              F.Type == FieldDescriptor::TYPE_UINT64 ||
              F.Type == FieldDescriptor::TYPE_BOOL ||
              F.Type == FieldDescriptor::TYPE_DOUBLE;
  if (!Wide)
    Bits = static_cast<uint32_t>(Bits);
  if (Bits == 0 && !F.Present)
    return true;
  StringRef Word;
  if (F.Type == FieldDescriptor::TYPE_ENUM) {
    const auto *Known =
        F.Field->enum_type()->FindValueByNumber(static_cast<int32_t>(Bits));
    if (!Known)
      return false;
    Word = Known->name();
  } else if (F.Type == FieldDescriptor::TYPE_BOOL) {
    Word = Bits != 0 ? "true" : "false";
  }
  char *P = Out.room(size_t(2) * Level + F.Value.size() + LongestNumber +
                     Word.size() + 1);
  P = put(putSpaces(P, Level), F.Value);
  switch (F.Type) {
  case FieldDescriptor::TYPE_INT32:
    P = putInteger(P, static_cast<int32_t>(Bits));
    break;
  case FieldDescriptor::TYPE_INT64:
    P = putInteger(P, static_cast<int64_t>(Bits));
    break;
  case FieldDescriptor::TYPE_UINT32:
  case FieldDescriptor::TYPE_UINT64:
    P = putInteger(P, Bits);
    break;
  case FieldDescriptor::TYPE_FLOAT:
  case FieldDescriptor::TYPE_DOUBLE:
    // A field without presence is omitted if it has its default value. The
    // rules for -0 are subtle, so TextFormat prints such a field.
    if (!F.Present)
      return false;
    P = Wide ? putFloat(P, std::bit_cast<double>(Bits))
             : putFloat(P, std::bit_cast<float>(static_cast<uint32_t>(Bits)));
    break;
  default:
    P = put(P, Word);
    break;
  }
  Out.commit(put(P, "\n"));
  return true;
}

bool TextPrinter::packed(StringRef Bytes, const FieldInfo &F, unsigned Level) {
  Cursor C(Bytes);
  int Type = wireType(F.Type);
  while (!C.atEnd()) {
    uint64_t Bits;
    if (!readNumber(C, Type, Bits) || !number(Bits, F, Level))
      return false;
  }
  return true;
}

/// Reads an entry of a map from strings, in the encoding of serializers.
bool TextPrinter::readEntry(StringRef Bytes, const FieldInfo &Map,
                            Entry &E) const {
  const std::vector<FieldInfo> &Fields = Map.Message->Fields;
  if (Fields.size() != 3 || Fields[1].Type != FieldDescriptor::TYPE_STRING)
    return false;
  Cursor C(Bytes);
  unsigned Number, WireType;
  if (!C.tag(Number, WireType) || Number != 1 || WireType != 2 ||
      !C.bytes(E.Key))
    return false;
  return C.tag(Number, WireType) && Number == 2 &&
         static_cast<int>(WireType) == wireType(Fields[2].Type) &&
         readValue(C, WireType, E.Value, E.Number) && C.atEnd();
}

/// Prints the map entries from \p First on, sorted, and removes them.
bool TextPrinter::entries(size_t First, const FieldInfo &Map, unsigned Level,
                          unsigned Depth) {
  std::vector<Entry> &All = MapEntries;
  std::sort(All.begin() + static_cast<ptrdiff_t>(First), All.end(),
            [](const Entry &A, const Entry &B) { return A.Key < B.Key; });
  const FieldInfo &Key = Map.Message->Fields[1],
                  &Value = Map.Message->Fields[2];
  for (size_t I = First; I < All.size(); ++I) {
    const Entry E = All[I]; // nested maps add entries behind these
    if (I > First && All[I - 1].Key == E.Key)
      return false;
    char *P = Out.room(size_t(2) * Level + Map.Open.size());
    Out.commit(put(putSpaces(P, Level), Map.Open));
    if (Depth + 1 > MaxDepth || !string(E.Key, Key, Level + 1))
      return false;
    bool Good = Value.Message ? nested(E.Value, Value, Level + 1, Depth + 1)
                : wireType(Value.Type) == 2
                    ? string(E.Value, Value, Level + 1)
                    : number(E.Number, Value, Level + 1);
    if (!Good)
      return false;
    P = putSpaces(Out.room(size_t(2) * Level + 2), Level);
    Out.commit(put(P, "}\n"));
  }
  All.resize(First);
  return true;
}

} // namespace graft
