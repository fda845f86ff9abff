//===- lib/graph/VerifyDefinitions.cpp - nodes as their ops say -*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
// What TensorFlow looks at when it imports a graph: that the attributes of a
// node are of the kinds that the definition of its op wants, that it has them
// all, and that its inputs have the types that follow from them. One walk over
// the attributes finds the types of inputs and outputs of each node, kept once
// for all nodes that have the same; one over the edges compares. The forms that
// every writer gives a value go a short way; anything else goes through
// protobuf's own message.
//
//===----------------------------------------------------------------------===//

#include "lib/graph/Verifier.h"

#include "lib/graph/AttrWire.h"
#include "lib/graph/FileWalk.h"
#include "lib/graph/InputGraph.h"
#include "lib/ops/Ops.h"
#include "lib/support/Bytes.h"

#include "tensorflow/core/framework/attr_value.pb.h"
#include "tensorflow/core/framework/node_def.pb.h"
#include "tensorflow/core/framework/versions.pb.h"

#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSwitch.h"
#include "llvm/Support/ConvertUTF.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/MathExtras.h"

#include <algorithm>
#include <array>

using namespace llvm;

namespace graft {
namespace {

//===----------------------------------------------------------------------===//
// Values
//===----------------------------------------------------------------------===//

/// The kinds of values, by their fields in AttrValue; in AttrValue.ListValue
/// the numbers are the same, but for tensors and functions.
enum class Kind : uint8_t {
  String = AttrString,
  Int = AttrInt,
  Float = AttrFloat,
  Bool = AttrBool,
  Type = AttrType,
  Shape = AttrShape,
  Tensor = AttrTensor,
  Function,
  Unknown,
};

Kind kindCalled(StringRef Name) {
  return StringSwitch<Kind>(Name)
      .Case("string", Kind::String)
      .Case("int", Kind::Int)
      .Case("float", Kind::Float)
      .Case("bool", Kind::Bool)
      .Case("type", Kind::Type)
      .Case("shape", Kind::Shape)
      .Case("tensor", Kind::Tensor)
      .Case("func", Kind::Function)
      .Default(Kind::Unknown);
}

/// An entry that was found to be good, as bytes. What has the same is good,
/// too: most nodes have the attributes of one before.
class GoodEntry {
public:
  /// Whether the bytes at \p P, which go up to \p End, begin with it.
  bool isAt(const char *P, const char *End) const {
    return Size != 0 && Size <= static_cast<size_t>(End - P) &&
           equalBytes(P, Data, Size);
  }
  const char *begin() const { return Data; }
  size_t size() const { return Size; }
  /// Keeps \p Whole unless it is so long that to compare it is no gain. False
  /// if it was not kept.
  bool keep(StringRef Whole) {
    constexpr size_t MaxSize = 128;
    if (Whole.size() > MaxSize)
      return false;
    Data = Whole.data();
    Size = Whole.size();
    return true;
  }
  /// Of equal bytes the latest are those that are in memory.
  void moveTo(const char *P) { Data = P; }

private:
  const char *Data = nullptr;
  size_t Size = 0;
};

/// One that the definition does not have.
struct GoodForeign {
  GoodEntry Entry;
  StringRef Key;
};

/// An attribute that a definition has.
struct Wanted {
  StringRef Name;
  const AttrDef *Def;
  const AttrLimit *Limit;
  Kind Is;
  bool IsList;
  uint8_t Slot;        ///< Where its value is kept, if types depend on it.
  GoodEntry Good = {}; ///< Not of lists of types that are kept.
  int64_t Number = 0;  ///< What the slot has with it.
};
constexpr uint8_t NoSlot = UINT8_MAX;

/// The value of an attribute that types of arguments depend on.
struct Slot {
  int64_t Number = 0;           ///< A type or a number.
  SmallVector<uint8_t, 4> List; ///< Types.
};

bool isUtf8(StringRef Text) {
  constexpr uint64_t HighBits = 0x8080808080808080;
  StringRef Rest = Text;
  for (; Rest.size() >= 8; Rest = Rest.drop_front(8))
    if (load64(Rest.begin()) & HighBits)
      break;
  if (Rest.size() < 8 && all_of(Rest, [](char C) { return isASCII(C); }))
    return true;
  const UTF8 *Begin = Text.bytes_begin();
  return isLegalUTF8String(&Begin, Text.bytes_end());
}

/// Why \p Shape, a TensorShapeProto, is none, or "". Sets \p Elements to the
/// number of elements, -1 where that is not known.
std::string shapeFault(StringRef Shape, int64_t &Elements) {
  constexpr unsigned MaxRank = 254;
  unsigned Rank = 0;
  bool UnknownRank = false;
  Elements = 1;
  // Dimensions of one byte, as most are: tag and length, tag and size.
  while (Shape.size() >= 4 && Shape.starts_with("\x12\x02\x08") &&
         static_cast<uint8_t>(Shape[3]) < 0x80 && Rank < 8) {
    Elements *= Shape[3];
    ++Rank;
    Shape = Shape.drop_front(4);
  }
  wire::Reader R(Shape);
  for (wire::Field F; R.next(F);) {
    if (F.Number == 3) {
      if (F.WireType == wire::Type::Varint)
        UnknownRank = F.Varint != 0;
      continue;
    }
    if (F.Number != 2 || F.WireType != wire::Type::Bytes)
      continue;
    ++Rank;
    int64_t Size = 0;
    wire::Reader D(F.Bytes);
    for (wire::Field Part; D.next(Part);) {
      if (Part.Number == 1 && Part.WireType == wire::Type::Varint)
        Size = static_cast<int64_t>(Part.Varint);
      else if (Part.Number == 2 && Part.WireType == wire::Type::Bytes &&
               !isUtf8(Part.Bytes))
        return "the name of a dimension is not UTF-8";
    }
    if (D.failed())
      return "cannot be read";
    if (Size < -1)
      return formatv("shape has dimension {0}, and the least is -1, for one "
                     "that is not known",
                     Size);
    if (Size == -1 || Elements == -1)
      Elements = -1;
    else if (MulOverflow(Elements, Size, Elements))
      return "shape has more than 2^63 - 1 elements";
  }
  if (R.failed())
    return "cannot be read";
  if (UnknownRank && Rank != 0)
    return "a shape of unknown rank has dimensions";
  if (UnknownRank)
    Elements = -1;
  if (Rank > MaxRank)
    return formatv("has a shape of {0} dimensions, and TensorFlow takes {1} at "
                   "most",
                   Rank, MaxRank);
  return "";
}

/// Bytes of an element in tensor_content; 0: not of one size.
unsigned elementSize(unsigned Type) {
  switch (Type) {
  case DT_FLOAT:
  case DT_INT32:
  case 22: // uint32
    return 4;
  case DT_DOUBLE:
  case DT_INT64:
  case 23: // uint64
  case 8:  // complex64
    return 8;
  case DT_HALF:
  case DT_BFLOAT16:
  case DT_INT16:
  case 17: // uint16
    return 2;
  case DT_UINT8:
  case DT_INT8:
  case DT_BOOL:
    return 1;
  case 18: // complex128
    return 16;
  default:
    return 0;
  }
}

/// Calls \p F with each varint of \p Packed; false when the last one is cut
/// off.
template <typename Fn> bool eachPacked(StringRef Packed, Fn F) {
  wire::Reader R(Packed);
  for (uint64_t V; R.position() != Packed.end();) {
    if (!R.varint(V))
      return false;
    F(static_cast<int64_t>(V));
  }
  return true;
}

/// Whether the elements of a TensorProto in \p F, of a field of bytes, can be
/// told apart.
bool isPacked(const wire::Field &F) {
  switch (F.Number) {
  case 5: // float_val
  case 9: // scomplex_val
    return F.Bytes.size() % 4 == 0;
  case 6:  // double_val
  case 12: // dcomplex_val
    return F.Bytes.size() % 8 == 0;
  case 7:  // int_val
  case 10: // int64_val
  case 11: // bool_val
  case 13: // half_val
    return eachPacked(F.Bytes, [](int64_t) {});
  default:
    return true;
  }
}

/// Why \p Tensor, a TensorProto, is none, or "". \p Type is the one that it has
/// to have, 0: any. \p Strict: it is the value of a constant.
std::string tensorFault(StringRef Tensor, unsigned Type, bool Strict) {
  constexpr unsigned Handles = 14;
  StringRef Shape, Content;
  unsigned Has = DT_INVALID;
  bool HasContent = false, Unusual = false;
  wire::Reader R(Tensor);
  for (wire::Field F; R.next(F);) {
    bool Bytes = F.WireType == wire::Type::Bytes;
    if (F.Number == 1 && !Bytes)
      Has = static_cast<unsigned>(F.Varint);
    else if (F.Number == 2 && Bytes) {
      // Protobuf joins the parts of a message that is there twice.
      Unusual |= Shape.data() != nullptr;
      Shape = F.Bytes;
    } else if (F.Number == 4 && Bytes) {
      HasContent = true;
      Content = F.Bytes;
    } else if (F.Number >= Handles) {
      Unusual = true;
    } else if (Bytes && !isPacked(F)) {
      return "cannot be read";
    }
  }
  if (R.failed())
    return "cannot be read";
  if (Unusual) {
    tensorflow::TensorProto Parsed;
    if (!Parsed.ParseFromArray(Tensor.data(), static_cast<int>(Tensor.size())))
      return "cannot be read";
    return "";
  }
  int64_t Elements;
  if (std::string Fault = shapeFault(Shape, Elements); !Fault.empty())
    return Fault;
  if (!Strict)
    return "";
  if (Has != Type && Type != 0)
    return "has a tensor of type " + typeName(Has) + ", and its dtype is " +
           typeName(Type);
  if (Elements < 0)
    return "has a tensor whose shape is not known";
  if (unsigned Size = elementSize(Has);
      HasContent && !Content.empty() && Size != 0 &&
      (Content.size() % Size != 0 ||
       Content.size() / Size != static_cast<uint64_t>(Elements)))
    return formatv("has a tensor of {0} elements of type {1} with {2} bytes of "
                   "content",
                   Elements, typeName(Has), Content.size());
  return "";
}

/// Looks at values of attributes.
class ValueCheck {
public:
  ValueCheck(const Wanted &W, Slot *Kept) : W(W), Kept(Kept) {}

  /// Whether \p Value, of a usual form, is good.
  bool isGood(StringRef Value) const {
    if (W.IsList)
      return isGoodList(Value);
    if (Value.size() < 2)
      return false;
    auto First = static_cast<uint8_t>(Value[1]);
    switch (W.Is) {
    case Kind::Type:
      if (Value.size() != 2 || Value[0] != AttrType << 3 || First >= 64 ||
          !(W.Limit->Types >> First & 1))
        return false;
      if (Kept)
        Kept->Number = First;
      return true;
    case Kind::Bool:
      return Value.size() == 2 && Value[0] == AttrBool << 3 && First < 0x80;
    case Kind::Int: {
      if (Value[0] != AttrInt << 3)
        return false;
      uint64_t Number = First;
      if (First >= 0x80 || Value.size() != 2) {
        wire::Reader R(Value.drop_front());
        if (!R.varint(Number) || R.position() != Value.end())
          return false;
      }
      auto Signed = static_cast<int64_t>(Number);
      if (Kept)
        Kept->Number = Signed;
      return !W.Limit->HasMinimum || Signed >= W.Limit->Minimum;
    }
    case Kind::Float:
      return Value.size() == 5 && Value[0] == (AttrFloat << 3 | 5);
    case Kind::String: {
      auto Text = only(Value, AttrString);
      return Text && (!*W.Limit->Strings || W.Limit->allowsString(*Text));
    }
    case Kind::Shape: {
      auto Shape = only(Value, AttrShape);
      int64_t Elements;
      return Shape && shapeFault(*Shape, Elements).empty();
    }
    case Kind::Tensor: {
      auto Tensor = only(Value, AttrTensor);
      return Tensor && tensorFault(*Tensor, 0, false).empty();
    }
    case Kind::Function:
    case Kind::Unknown:
      return false;
    }
    return false;
  }

  /// The bytes of the tensor that \p Value is, if it has the usual form.
  static std::optional<StringRef> tensor(StringRef Value) {
    return only(Value, AttrTensor);
  }

  /// What is wrong with \p Value, of any form; "" if nothing is.
  std::string fault(StringRef Value) const {
    tensorflow::AttrValue V;
    if (!V.ParseFromArray(Value.data(), static_cast<int>(Value.size())))
      return "cannot be read";
    std::string Has = kindOf(V);
    if (Has != W.Def->Type && !(W.IsList && Has == "list"))
      return Has.empty()
                 ? formatv("has no value, and {0} is expected", W.Def->Type)
                       .str()
                 : formatv("has a value of kind {0} where {1} is "
                           "expected",
                           Has, W.Def->Type)
                       .str();
    if (Kept)
      keep(V);
    std::string Fault = W.IsList ? listFault(V.list()) : scalarFault(V);
    if (!Fault.empty())
      return Fault;
    if (auto Shape = bytesField(Value, AttrShape)) {
      int64_t Elements;
      return shapeFault(*Shape, Elements);
    }
    if (auto Tensor = bytesField(Value, AttrTensor))
      return tensorFault(*Tensor, 0, false);
    if (auto List = bytesField(Value, AttrList))
      for (auto [R, F] = std::pair(wire::Reader(*List), wire::Field());
           R.next(F);) {
        int64_t Elements;
        if (F.Number == ListShape && F.WireType == wire::Type::Bytes)
          if (Fault = shapeFault(F.Bytes, Elements); !Fault.empty())
            return Fault;
      }
    return "";
  }

private:
  /// The contents of \p Value, if field \p Number is all that it has.
  static std::optional<StringRef> only(StringRef Value, unsigned Number) {
    const char *P = Value.begin();
    StringRef Contents;
    if (wire::takeBytes(P, Value.end(), wire::bytesTag(Number), Contents) &&
        P == Value.end())
      return Contents;
    // The length may have more bytes than two.
    wire::Reader R(Value);
    wire::Field F;
    if (R.next(F) && F.Number == Number && F.WireType == wire::Type::Bytes &&
        F.Whole.size() == Value.size())
      return F.Bytes;
    return std::nullopt;
  }

  bool isGoodList(StringRef Value) const {
    auto List = only(Value, AttrList);
    if (!List || W.Is >= Kind::Tensor)
      return false;
    int64_t Count = 0;
    bool Good = true;
    if (Kept)
      Kept->List.clear();
    auto See = [&](int64_t V) {
      ++Count;
      if (W.Is != Kind::Type)
        return;
      Good &= V >= 0 && V < 64 && W.Limit->Types >> V & 1;
      if (Kept)
        Kept->List.push_back(static_cast<uint8_t>(V));
    };
    wire::Reader R(*List);
    for (wire::Field F; R.next(F);) {
      if (F.Number != static_cast<unsigned>(W.Is))
        return false;
      bool Bytes = F.WireType == wire::Type::Bytes;
      switch (W.Is) {
      case Kind::String:
        Good &= Bytes && (!*W.Limit->Strings || W.Limit->allowsString(F.Bytes));
        ++Count;
        break;
      case Kind::Shape: {
        int64_t Elements;
        Good &= Bytes && shapeFault(F.Bytes, Elements).empty();
        ++Count;
        break;
      }
      case Kind::Float:
        Good &= Bytes && F.Bytes.size() % 4 == 0;
        Count += static_cast<int64_t>(F.Bytes.size() / 4);
        break;
      default:
        if (Bytes)
          Good &= eachPacked(F.Bytes, See);
        else if (F.WireType == wire::Type::Varint)
          See(static_cast<int64_t>(F.Varint));
        else
          return false;
        break;
      }
    }
    return Good && !R.failed() &&
           (!W.Limit->HasMinimum || Count >= W.Limit->Minimum);
  }

  /// "int", "list(type)", "list" for an empty one, "" for nothing.
  static std::string kindOf(const tensorflow::AttrValue &V) {
    switch (V.value_case()) {
    case tensorflow::AttrValue::kS:
      return "string";
    case tensorflow::AttrValue::kI:
      return "int";
    case tensorflow::AttrValue::kF:
      return "float";
    case tensorflow::AttrValue::kB:
      return "bool";
    case tensorflow::AttrValue::kType:
      return "type";
    case tensorflow::AttrValue::kShape:
      return "shape";
    case tensorflow::AttrValue::kTensor:
      return "tensor";
    case tensorflow::AttrValue::kFunc:
      return "func";
    case tensorflow::AttrValue::kPlaceholder:
      return "placeholder";
    case tensorflow::AttrValue::kList:
      break;
    case tensorflow::AttrValue::VALUE_NOT_SET:
      return "";
    }
    const auto &L = V.list();
    SmallVector<StringRef, 2> Kinds;
    if (L.s_size())
      Kinds.push_back("list(string)");
    if (L.i_size())
      Kinds.push_back("list(int)");
    if (L.f_size())
      Kinds.push_back("list(float)");
    if (L.b_size())
      Kinds.push_back("list(bool)");
    if (L.type_size())
      Kinds.push_back("list(type)");
    if (L.shape_size())
      Kinds.push_back("list(shape)");
    if (L.tensor_size())
      Kinds.push_back("list(tensor)");
    if (L.func_size())
      Kinds.push_back("list(func)");
    return Kinds.empty() ? "list" : join(Kinds, " and ");
  }

  void keep(const tensorflow::AttrValue &V) const {
    Kept->Number = W.Is == Kind::Type ? int64_t(V.type()) : V.i();
    Kept->List.clear();
    for (int Type : V.list().type())
      Kept->List.push_back(static_cast<uint8_t>(Type));
  }

  std::string typeFault(int Type) const {
    if (Type > 0 && Type < 64 && W.Limit->Types >> Type & 1)
      return "";
    return "has type " + typeName(static_cast<unsigned>(Type)) +
           ", which is not in the list of allowed values";
  }

  std::string stringFault(StringRef Text) const {
    if (W.Limit->allowsString(Text))
      return "";
    return formatv("is \"{0}\", which is not in the list of allowed values: "
                   "{1}",
                   Text, join(split(W.Limit->Strings, '|'), ", "));
  }

  std::string scalarFault(const tensorflow::AttrValue &V) const {
    if (W.Is == Kind::Type)
      return typeFault(V.type());
    if (W.Is == Kind::String)
      return stringFault(V.s());
    if (W.Is == Kind::Int && W.Limit->HasMinimum && V.i() < W.Limit->Minimum)
      return formatv("is {0}, and must be at least minimum {1}", V.i(),
                     int(W.Limit->Minimum));
    return "";
  }

  std::string listFault(const tensorflow::AttrValue::ListValue &L) const {
    for (int Type : L.type())
      if (std::string Fault = typeFault(Type); !Fault.empty())
        return Fault;
    for (const std::string &Text : L.s())
      if (std::string Fault = stringFault(Text); !Fault.empty())
        return Fault;
    int Length = L.s_size() + L.i_size() + L.f_size() + L.b_size() +
                 L.type_size() + L.shape_size() + L.tensor_size() +
                 L.func_size();
    if (W.Limit->HasMinimum && Length < W.Limit->Minimum)
      return formatv("has length {0}, and must have at least minimum {1}",
                     Length, int(W.Limit->Minimum));
    return "";
  }

  const Wanted &W;
  Slot *Kept;
};

/// Whether \p Value is empty or a list of strings.
bool isStrings(StringRef Value) {
  if (Value.empty())
    return true;
  const char *P = Value.begin();
  StringRef List;
  if (!wire::takeBytes(P, Value.end(), wire::bytesTag(AttrList), List) ||
      P != Value.end()) {
    tensorflow::AttrValue V;
    return V.ParseFromArray(Value.data(), static_cast<int>(Value.size())) &&
           V.has_list() && V.list().s_size() != 0;
  }
  wire::Reader R(List);
  for (wire::Field F; R.next(F);)
    if (F.Number != ListString)
      return false;
  return !R.failed();
}

/// Whether \p Value, of an attribute that no definition knows, is an AttrValue.
bool isReadable(StringRef Value) {
  const char *P = Value.begin();
  StringRef Contents;
  if (wire::takeBytes(P, Value.end(), wire::bytesTag(AttrString), Contents) &&
      P == Value.end())
    return true;
  if (Value.size() == 2 && static_cast<uint8_t>(Value[1]) < 0x80 &&
      (Value[0] == AttrInt << 3 || Value[0] == AttrBool << 3 ||
       Value[0] == AttrType << 3))
    return true;
  if (wire::takeBytes(P, Value.end(), wire::bytesTag(AttrList), Contents) &&
      P == Value.end()) {
    wire::Reader R(Contents);
    bool Known = true;
    for (wire::Field F; Known && R.next(F);) {
      int64_t Elements;
      Known =
          F.WireType == wire::Type::Bytes &&
          (F.Number == ListString ||
           (F.Number == ListShape && shapeFault(F.Bytes, Elements).empty()));
    }
    if (Known && !R.failed())
      return true;
  }
  tensorflow::AttrValue V;
  return V.ParseFromArray(Value.data(), static_cast<int>(Value.size()));
}

//===----------------------------------------------------------------------===//
// Ops
//===----------------------------------------------------------------------===//

/// An argument, with slots in place of attributes.
struct Arg {
  uint8_t Type;
  uint8_t TypeSlot, NumberSlot, ListSlot;
  bool IsRef;
};

/// The types of inputs and outputs of nodes, as numbers in a pool.
struct Signature {
  uint32_t First;
  uint32_t NumInputs;
  uint32_t NumOutputs;
};
constexpr uint32_t NoSignature = ~uint32_t(0);

/// What the definition of an op asks of its nodes, taken apart once.
struct OpCheck {
  std::vector<Wanted> Attrs; ///< By name.
  SmallVector<Arg, 4> Inputs, Outputs;
  SmallVector<Slot, 2> Slots;
  SmallVector<Slot, 2> Defaults;
  uint64_t Required = 0; ///< Bit I: attribute I has no default.
  bool Usual = true;     ///< No lists of types, few attributes and slots.
  bool Removed = false;
  bool IsConst = false;
  /// Attributes that the definition does not have, by their place among those
  /// of a node.
  std::array<GoodForeign, 3> Foreign;
  /// Whether the name of an attribute begins with `_`, as no definition of
  /// TensorFlow has it.
  bool HasHidden = false;
  unsigned ConstType = DT_INVALID; ///< With the good value of a constant.
  uint64_t LastKey = 0;
  uint32_t LastSignature = NoSignature;
};

uint8_t slotOf(OpCheck &C, const char *Name) {
  if (!*Name)
    return NoSlot;
  auto It = find_if(C.Attrs, [&](const Wanted &W) { return W.Name == Name; });
  if (It == C.Attrs.end())
    return NoSlot;
  if (It->Slot == NoSlot) {
    It->Slot = static_cast<uint8_t>(C.Slots.size());
    C.Slots.emplace_back();
    Slot &Default = C.Defaults.emplace_back();
    if (It->Def->HasDefault) {
      StringRef Text(It->Def->Default);
      int64_t Number;
      if (Text.consume_front("i: ") && !Text.getAsInteger(10, Number))
        Default.Number = Number;
      else if (It->Is == Kind::Type || It->IsList)
        while (Text.contains("DT_")) {
          StringRef Name = Text.substr(Text.find("DT_") + 3);
          Name = Name.take_while([](char C) { return isAlnum(C) || C == '_'; });
          Text = Text.substr(Text.find("DT_") + 3);
          for (unsigned Type = 1; Type < 64; ++Type)
            if (Name.lower() == typeName(Type)) {
              Default.Number = Type;
              Default.List.push_back(static_cast<uint8_t>(Type));
            }
        }
    }
  }
  return It->Slot;
}

Wanted wantedBy(const AttrDef &A) {
  StringRef Type(A.Type);
  bool IsList = Type.consume_front("list(") && Type.consume_back(")");
  return {A.Name, &A, &A.limit(), kindCalled(Type), IsList, NoSlot};
}

OpCheck takeApart(const OpDef &Def, int Producer) {
  OpCheck C;
  for (const AttrDef &A : Def.attrs())
    C.Attrs.push_back(wantedBy(A));
  llvm::sort(C.Attrs,
             [](const Wanted &A, const Wanted &B) { return A.Name < B.Name; });
  for (size_t I = 0; I < C.Attrs.size() && I < 64; ++I)
    C.Required |= uint64_t(!C.Attrs[I].Def->HasDefault) << I;
  C.HasHidden =
      any_of(C.Attrs, [](const Wanted &W) { return W.Name.starts_with("_"); });
  auto Add = [&](ArrayRef<ArgDef> Args, SmallVectorImpl<Arg> &To) {
    for (const ArgDef &A : Args) {
      Arg X = {A.Type, slotOf(C, A.TypeAttr), slotOf(C, A.NumberAttr),
               slotOf(C, A.TypeListAttr), A.IsRef};
      if (X.Type > RefTypeOffset)
        X.Type -= RefTypeOffset;
      C.Usual &= X.ListSlot == NoSlot;
      To.push_back(X);
    }
  };
  Add(Def.inputs(), C.Inputs);
  Add(Def.outputs(), C.Outputs);
  C.Usual &= C.Slots.size() <= 7;
  C.IsConst = StringRef(Def.Name) == op::Const;
  C.Removed = Def.RemovedIn != 0 && Producer >= Def.RemovedIn;
  return C;
}

//===----------------------------------------------------------------------===//
// Nodes
//===----------------------------------------------------------------------===//

class DefinitionCheck {
public:
  DefinitionCheck(const Graph &G, DiagnosticEngine &Diags)
      : G(G), Attrs(Diags, "attributes that are not as the op says"),
        Edges(Diags, "inputs that are not as the op says"),
        Others(Diags, "nodes that cannot be read"), Ops(G.numOps()),
        Signatures(G.size(), NoSignature) {}

  void run(int Producer) {
    bool BadOp = false;
    for (uint32_t Op = 0; Op < G.numOps(); ++Op) {
      if (const OpDef *Def = G.opDefOf(Op))
        Ops[Op] = takeApart(*Def, Producer);
      else
        BadOp |= !isUtf8(G.opNameOf(Op));
    }
    for (NodeId N = 0; BadOp && N < G.size(); ++N)
      if (G.isLive(N) && !isUtf8(G.opName(N)))
        Others.error(G.name(N), "the name of its op is not UTF-8");
    FileWalk Walk(G);
    constexpr NodeId Ahead = 6;
    for (NodeId N = 0, End = G.size(); N < End; ++N) {
      if (N + Ahead < End)
        G.prefetchAttrs(N + Ahead);
      Walk.at(N);
      if (G.isLive(N))
        node(N);
    }
    for (NodeId N = 0, End = G.size(); N < End; ++N)
      if (Signatures[N] != NoSignature)
        edges(N);
  }

private:
  /// The attribute of \p C called \p Key, by its number. Writers sort them, so
  /// it most often is the one at \p Next.
  static size_t findAttr(const OpCheck &C, StringRef Key, size_t Next) {
    if (Next < C.Attrs.size() && equalBytes(C.Attrs[Next].Name, Key))
      return Next;
    if (!C.HasHidden && Key.starts_with("_"))
      return C.Attrs.size();
    auto It = llvm::lower_bound(
        C.Attrs, Key, [](const Wanted &W, StringRef K) { return W.Name < K; });
    return It != C.Attrs.end() && It->Name == Key ? It - C.Attrs.begin()
                                                  : C.Attrs.size();
  }

  void wrong(NodeId N, StringRef Key, const Twine &Fault) {
    Attrs.error(G.name(N), "attribute '" + Key + "' " + Fault);
  }

  void node(NodeId N) {
    const Node &This = G.node(N);
    OpCheck &C = Ops[This.Op];
    bool Known = G.opDefOf(This.Op) != nullptr;
    if (C.Removed)
      Others.error(G.name(N),
                   formatv("op {0} was removed from TensorFlow in version {1} "
                           "of graphs, and this graph has a later one",
                           G.opName(N), G.opDef(N)->RemovedIn)
                       .str());
    for (size_t I = 0; I < C.Slots.size(); ++I) {
      C.Slots[I].Number = C.Defaults[I].Number;
      if (!C.Usual)
        C.Slots[I].List = C.Defaults[I].List;
    }
    uint64_t Seen = 0;
    bool Good = true;
    size_t Next = 0;
    Few.clear();
    if (!Foreign.empty())
      Foreign.clear();
    StringRef Run(This.AttrData, This.AttrSize);
    StringRef Entry, Value; // Of the tensor of a constant.
    std::optional<StringRef> Tensor;
    Wanted *ValueAttr = nullptr;
    bool IsSame = false; // It is that of a constant before.
    size_t NumFast = std::min<size_t>(C.Attrs.size(), 64);
    AttrEntry A;
    while (!Run.empty()) {
      if (Next < NumFast && !(Seen >> Next & 1))
        if (Wanted &W = C.Attrs[Next]; W.Good.isAt(Run.begin(), Run.end())) {
          W.Good.moveTo(Run.begin());
          Run = Run.drop_front(W.Good.size());
          Seen |= uint64_t(1) << Next++;
          if (W.Slot != NoSlot)
            C.Slots[W.Slot].Number = W.Number;
          IsSame |= W.Is == Kind::Tensor;
          continue;
        }
      if (Few.size() < C.Foreign.size())
        if (GoodForeign &X = C.Foreign[Few.size()];
            X.Entry.isAt(Run.begin(), Run.end())) {
          X.Key = {Run.begin() + (X.Key.begin() - X.Entry.begin()),
                   X.Key.size()};
          X.Entry.moveTo(Run.begin());
          Run = Run.drop_front(X.Entry.size());
          addForeign(N, X.Key);
          continue;
        }
      wire::Reader R(Run);
      wire::Field F;
      if (!R.next(F))
        break;
      Run = Run.drop_front(F.Whole.size());
      if (!parseEntry(F, A)) {
        Good &= otherField(N, F);
        continue;
      }
      size_t I = Known ? findAttr(C, A.Key, Next) : 0;
      if (I == C.Attrs.size()) {
        foreign(N, C, F, A);
        continue;
      }
      Next = I + 1;
      Wanted &W = C.Attrs[I];
      if (I < 64 && Seen >> I & 1)
        wrong(N, A.Key, "is there twice");
      if (I < 64)
        Seen |= uint64_t(1) << I;
      // The tensor of a constant is looked at when its type is known.
      if (C.IsConst && W.Is == Kind::Tensor && !Entry.data()) {
        Tensor = ValueCheck::tensor(A.Value);
        if (Tensor) {
          Entry = F.Whole;
          Value = A.Value;
          ValueAttr = &W;
          continue;
        }
      }
      Slot *Kept = W.Slot == NoSlot ? nullptr : &C.Slots[W.Slot];
      ValueCheck V(W, Kept);
      if (V.isGood(A.Value)) {
        if (I < 64 && !(Kept && W.IsList)) {
          W.Good.keep(F.Whole);
          W.Number = Kept ? Kept->Number : 0;
        }
        continue;
      }
      if (std::string Fault = V.fault(A.Value); !Fault.empty()) {
        wrong(N, A.Key, Fault);
        Good = false;
      }
    }
    if (!Known)
      return;
    uint64_t Missing = C.Required & ~Seen;
    if (Tensor)
      Good &= constant(N, C, *ValueAttr, Entry, Value, *Tensor,
                       Good && Missing == 0);
    if (Missing != 0) {
      for (size_t I = 0; I < C.Attrs.size(); ++I)
        if (Missing >> I & 1)
          Attrs.error(G.name(N), "has no attribute '" + C.Attrs[I].Name +
                                     "', which " + G.opName(N) + " needs");
      return;
    }
    if (!Good)
      return;
    if (C.IsConst && !Tensor &&
        !(IsSame && C.ConstType == static_cast<unsigned>(C.Slots[0].Number)))
      constant(N, static_cast<unsigned>(C.Slots[0].Number));
    Signatures[N] = signature(N, C);
  }

  /// A field of a node that is no attribute.
  bool otherField(NodeId N, const wire::Field &F) {
    if (GoodOther.size() == F.Whole.size() &&
        GoodOther.isAt(F.Whole.begin(), F.Whole.end())) {
      GoodOther.moveTo(F.Whole.begin());
      return true;
    }
    // What protobuf makes of it is all that counts.
    tensorflow::NodeDef Parsed;
    if (Parsed.ParseFromArray(F.Whole.data(),
                              static_cast<int>(F.Whole.size()))) {
      GoodOther.keep(F.Whole);
      return true;
    }
    Others.error(G.name(N),
                 formatv("field {0} cannot be read", F.Number).str());
    return false;
  }

  /// An attribute that the definition does not have.
  void foreign(NodeId N, OpCheck &C, const wire::Field &F, const AttrEntry &A) {
    if (shortClass(F.Bytes).empty() && isGoodForeign(N, A) &&
        Few.size() < C.Foreign.size() &&
        C.Foreign[Few.size()].Entry.keep(F.Whole))
      C.Foreign[Few.size()].Key = A.Key;
    addForeign(N, A.Key);
  }

  /// Readers of protobuf take the last of two, and passes the first.
  void addForeign(NodeId N, StringRef Key) {
    bool IsNew = none_of(Few, [&](StringRef K) { return equalBytes(K, Key); });
    if (Few.size() < MaxFew)
      Few.push_back(Key);
    else
      IsNew &= Foreign.insert(Key).second;
    if (!IsNew)
      wrong(N, Key, "is there twice");
  }

  bool isGoodForeign(NodeId N, const AttrEntry &A) {
    if (!isUtf8(A.Key))
      Others.error(G.name(N), "the name of an attribute is not UTF-8");
    else if (!isReadable(A.Value))
      wrong(N, A.Key, "cannot be read");
    else if (A.Key == ClassKey && !isStrings(A.Value))
      wrong(N, A.Key, "must be a list of strings");
    else
      return true;
    return false;
  }

  /// False if \p Tensor, in \p Value of \p Entry, is none; that it is none for
  /// the type of the constant does not count, and is told if \p Strict.
  bool constant(NodeId N, OpCheck &C, Wanted &W, StringRef Entry,
                StringRef Value, StringRef Tensor, bool Strict) {
    auto Type = static_cast<unsigned>(C.Slots[0].Number);
    std::string Fault = tensorFault(Tensor, Type, Strict);
    if (Fault.empty()) {
      if (Strict && W.Good.keep(Entry))
        C.ConstType = Type;
      return true;
    }
    std::string OfAny = ValueCheck(W, nullptr).fault(Value);
    wrong(N, W.Name, OfAny.empty() ? Fault : OfAny);
    return OfAny.empty();
  }

  void constant(NodeId N, unsigned Type) {
    auto Value = G.attr(N, "value");
    auto Tensor = Value ? bytesField(*Value, AttrTensor) : std::nullopt;
    if (!Tensor)
      return;
    if (std::string Fault = tensorFault(*Tensor, Type, true); !Fault.empty())
      wrong(N, "value", Fault);
  }

  /// Adds the types of \p Args to the pool. False when they cannot be as many.
  bool addTypes(NodeId N, const OpCheck &C, ArrayRef<Arg> Args) {
    for (const Arg &A : Args) {
      size_t Begin = Pool.size();
      if (A.ListSlot != NoSlot) {
        Pool.append(C.Slots[A.ListSlot].List.begin(),
                    C.Slots[A.ListSlot].List.end());
      } else {
        int64_t Count =
            A.NumberSlot == NoSlot ? 1 : C.Slots[A.NumberSlot].Number;
        if (Count < 0 || Count > INT32_MAX) {
          Attrs.error(G.name(N),
                      formatv("has {0} inputs or outputs", Count).str());
          return false;
        }
        int64_t Type =
            A.TypeSlot == NoSlot ? A.Type : C.Slots[A.TypeSlot].Number;
        Pool.append(static_cast<size_t>(Count), static_cast<uint8_t>(Type));
      }
      if (A.IsRef)
        for (size_t I = Begin; I < Pool.size(); ++I)
          Pool[I] += RefTypeOffset;
    }
    return true;
  }

  uint32_t signature(NodeId N, OpCheck &C) {
    uint64_t Key = 1;
    bool Usual = C.Usual;
    for (const Slot &S : C.Slots) {
      Usual &= S.Number >= 0 && S.Number < 256;
      Key = Key << 8 | (S.Number & 0xff);
    }
    if (Usual && Key == C.LastKey)
      return C.LastSignature;
    if (Usual)
      if (auto It = ByKey.find({G.node(N).Op, Key}); It != ByKey.end()) {
        C.LastKey = Key;
        return C.LastSignature = It->second;
      }
    // As many inputs as the node has, or there is no room for what a few digits
    // say; the number of outputs was looked at before.
    uint64_t Inputs = 0;
    for (const Arg &A : C.Inputs)
      Inputs += A.ListSlot != NoSlot ? C.Slots[A.ListSlot].List.size()
                : A.NumberSlot != NoSlot
                    ? std::max<int64_t>(0, C.Slots[A.NumberSlot].Number)
                    : 1;
    if (Inputs != G.node(N).NumData) {
      Edges.error(G.name(N), formatv("{0} takes {1} data input{2} and has {3}",
                                     G.opName(N), Inputs,
                                     Inputs == 1 ? "" : "s", G.node(N).NumData)
                                 .str());
      return NoSignature;
    }
    size_t First = Pool.size();
    if (!addTypes(N, C, C.Inputs))
      return NoSignature;
    size_t Middle = Pool.size();
    if (!addTypes(N, C, C.Outputs))
      return NoSignature;
    auto Id = static_cast<uint32_t>(All.size());
    All.push_back({static_cast<uint32_t>(First),
                   static_cast<uint32_t>(Middle - First),
                   static_cast<uint32_t>(Pool.size() - Middle)});
    if (Usual) {
      ByKey[{G.node(N).Op, Key}] = Id;
      C.LastKey = Key;
      C.LastSignature = Id;
    }
    return Id;
  }

  void edges(NodeId N) {
    const Signature &To = All[Signatures[N]];
    ArrayRef<Endpoint> Inputs = G.dataInputs(N);
    if (Inputs.size() != To.NumInputs) {
      Edges.error(G.name(N),
                  formatv("{0} takes {1} data input{2} and has {3}",
                          G.opName(N), To.NumInputs,
                          To.NumInputs == 1 ? "" : "s", Inputs.size())
                      .str());
      return;
    }
    for (size_t I = 0; I < Inputs.size(); ++I) {
      uint32_t Source = Signatures[Inputs[I].Node];
      if (Source == NoSignature)
        continue;
      const Signature &From = All[Source];
      if (Inputs[I].Port >= From.NumOutputs) {
        Edges.error(G.name(N),
                    formatv("input '{0}:{1}' does not exist: {2} "
                            "has {3} output{4}",
                            G.name(Inputs[I].Node), Inputs[I].Port,
                            G.opName(Inputs[I].Node), From.NumOutputs,
                            From.NumOutputs == 1 ? "" : "s")
                        .str());
        continue;
      }
      auto Passed = static_cast<uint8_t>(
          Pool[From.First + From.NumInputs + Inputs[I].Port]);
      auto Expected = static_cast<uint8_t>(Pool[To.First + I]);
      if (Passed == Expected || Passed == Expected + RefTypeOffset)
        continue;
      // A pick of an equal value is not written: see verifyTypes.
      if (G.node(Inputs[I].Node).Flags & NF_ElidePrimary)
        continue;
      Edges.error(G.name(N),
                  formatv("input {0} was passed {1} from '{2}:{3}', "
                          "incompatible with expected {4}",
                          I, typeName(Passed), G.name(Inputs[I].Node),
                          Inputs[I].Port, typeName(Expected))
                      .str());
    }
  }

  const Graph &G;
  ErrorCap Attrs, Edges, Others;
  std::vector<OpCheck> Ops;
  std::vector<uint32_t> Signatures; ///< By node.
  std::vector<Signature> All;
  SmallString<0> Pool;
  DenseMap<std::pair<uint32_t, uint64_t>, uint32_t> ByKey;
  /// Keys that the definition does not have: the first ones, and all others.
  static constexpr size_t MaxFew = 8;
  SmallVector<StringRef, MaxFew> Few;
  DenseSet<StringRef> Foreign;
  GoodEntry GoodOther; ///< A field that is no attribute.
};

//===----------------------------------------------------------------------===//
// Versions
//===----------------------------------------------------------------------===//

/// Checks the versions of the graph, and returns that of its producer.
int verifyVersions(const Graph &G, DiagnosticEngine &Diags) {
  constexpr unsigned Versions = 4;
  std::string Bytes;
  for (StringRef Field : G.otherFields()) {
    wire::Reader R(Field);
    wire::Field F;
    if (R.next(F) && F.Number == Versions && F.WireType == wire::Type::Bytes)
      Bytes += F.Bytes;
  }
  tensorflow::VersionDef V;
  if (!V.ParseFromString(Bytes)) {
    Diags.error("", "the versions of the graph cannot be read");
    return 0;
  }
  if (V.producer() < 0)
    Diags.error("", formatv("the graph has producer version {0}, and the least "
                            "that TensorFlow takes is 0",
                            V.producer())
                        .str());
  if (V.min_consumer() > GraphVersion)
    Diags.error("", formatv("the graph has min consumer version {0}, above "
                            "version {1} of TensorFlow",
                            V.min_consumer(), GraphVersion)
                        .str());
  if (is_contained(V.bad_consumers(), GraphVersion))
    Diags.error("", formatv("the graph disallows consumer version {0}, which "
                            "TensorFlow has",
                            GraphVersion)
                        .str());
  return V.producer();
}

} // namespace

std::string attrFault(const AttrDef &Def, StringRef Value) {
  Wanted W = wantedBy(Def);
  ValueCheck V(W, nullptr);
  return V.isGood(Value) ? "" : V.fault(Value);
}

bool verifyDefinitions(const Graph &G, DiagnosticEngine &Diags) {
  unsigned Before = Diags.errorCount();
  int Producer = verifyVersions(G, Diags);
  DefinitionCheck(G, Diags).run(Producer);
  return Diags.errorCount() == Before;
}

} // namespace graft
