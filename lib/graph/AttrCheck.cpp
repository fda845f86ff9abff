//===- lib/graph/AttrCheck.cpp - values of attributes, checked --*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "lib/graph/AttrCheck.h"

#include "lib/graph/Axis.h"
#include "lib/support/Bytes.h"

#include "tensorflow/core/framework/tensor.pb.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSwitch.h"
#include "llvm/Support/ConvertUTF.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/MathExtras.h"

using namespace llvm;

namespace graft {
namespace {

AttrKind kindCalled(StringRef Name) {
  return StringSwitch<AttrKind>(Name)
      .Case("string", AttrKind::String)
      .Case("int", AttrKind::Int)
      .Case("float", AttrKind::Float)
      .Case("bool", AttrKind::Bool)
      .Case("type", AttrKind::Type)
      .Case("shape", AttrKind::Shape)
      .Case("tensor", AttrKind::Tensor)
      .Case("func", AttrKind::Function)
      .Default(AttrKind::Unknown);
}

/// Returns the fault of the TensorShapeProto \p Shape, or "". Sets \p Elements
/// to the number of elements, or to -1 if it is not known.
std::string shapeFault(StringRef Shape, int64_t &Elements) {
  unsigned Rank = 0;
  bool UnknownRank = false;
  Elements = 1;
  // Most dimensions have one byte: tag and length, tag and size.
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
        return "has a dimension whose name is not UTF-8";
    }
    if (D.failed())
      return "cannot be read";
    if (Size < -1)
      return formatv("has a shape with dimension {0}; a dimension must be -1, "
                     "for an unknown size, or more",
                     Size);
    if (Size == -1 || Elements == -1)
      Elements = -1;
    else if (MulOverflow(Elements, Size, Elements))
      return "has a shape with more than 2^63 - 1 elements";
  }
  if (R.failed())
    return "cannot be read";
  if (UnknownRank && Rank != 0)
    return "has a shape of unknown rank with dimensions";
  if (UnknownRank)
    Elements = -1;
  if (Rank > MaxRank)
    return formatv("has a shape of {0} dimensions, but TensorFlow allows at "
                   "most {1}",
                   Rank, MaxRank);
  return "";
}

/// Returns the bytes of an element in tensor_content, or 0 if they vary.
unsigned elementSize(unsigned Type) {
  switch (Type) {
  case DT_FLOAT:
  case DT_INT32:
  case DT_UINT32:
    return 4;
  case DT_DOUBLE:
  case DT_INT64:
  case DT_UINT64:
  case DT_COMPLEX64:
    return 8;
  case DT_HALF:
  case DT_BFLOAT16:
  case DT_INT16:
  case DT_UINT16:
    return 2;
  case DT_UINT8:
  case DT_INT8:
  case DT_BOOL:
    return 1;
  case DT_COMPLEX128:
    return 16;
  default:
    return 0;
  }
}

/// Calls \p F with each varint of \p Packed. Returns false if one is truncated.
template <typename Fn> bool eachPacked(StringRef Packed, Fn F) {
  wire::Reader R(Packed);
  for (uint64_t V; R.position() != Packed.end();) {
    if (!R.varint(V))
      return false;
    F(static_cast<int64_t>(V));
  }
  return true;
}

/// Returns true if the packed field \p F of a TensorProto has whole elements.
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

/// Returns the contents of \p Value if field \p Number is its only field.
std::optional<StringRef> only(StringRef Value, unsigned Number) {
  const char *P = Value.begin();
  StringRef Contents;
  if (wire::takeBytes(P, Value.end(), wire::bytesTag(Number), Contents) &&
      P == Value.end())
    return Contents;
  // The length may be encoded in more than two bytes.
  wire::Reader R(Value);
  wire::Field F;
  if (R.next(F) && F.Number == Number && F.WireType == wire::Type::Bytes &&
      F.Whole.size() == Value.size())
    return F.Bytes;
  return std::nullopt;
}

/// Returns "int", "list(type)", ..., "list" for an empty list, "" for no value.
std::string kindOf(const tensorflow::AttrValue &V) {
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

} // namespace

WantedAttr::WantedAttr(const AttrDef &A)
    : Name(A.Name), Def(&A), Limit(&A.limit()) {
  StringRef Type(A.Type);
  IsList = Type.consume_front("list(") && Type.consume_back(")");
  Is = kindCalled(Type);
}

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
      // Protobuf merges a message field that occurs twice.
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
    return "has a tensor of type " + typeName(Has) +
           ", but attribute 'dtype' is " + typeName(Type);
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

bool AttrCheck::isGood(StringRef Value) const {
  if (W.IsList)
    return isGoodList(Value);
  if (Value.size() < 2)
    return false;
  auto First = static_cast<uint8_t>(Value[1]);
  switch (W.Is) {
  case AttrKind::Type:
    if (Value.size() != 2 || Value[0] != AttrType << 3 || First >= 64 ||
        !(W.Limit->Types >> First & 1))
      return false;
    if (Kept)
      Kept->Number = First;
    return true;
  case AttrKind::Bool:
    return Value.size() == 2 && Value[0] == AttrBool << 3 && First < 0x80;
  case AttrKind::Int: {
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
  case AttrKind::Float:
    return Value.size() == 5 && Value[0] == (AttrFloat << 3 | 5);
  case AttrKind::String: {
    auto Text = only(Value, AttrString);
    return Text && (!*W.Limit->Strings || W.Limit->allowsString(*Text));
  }
  case AttrKind::Shape: {
    auto Shape = only(Value, AttrShape);
    int64_t Elements;
    return Shape && shapeFault(*Shape, Elements).empty();
  }
  case AttrKind::Tensor: {
    auto Tensor = only(Value, AttrTensor);
    return Tensor && tensorFault(*Tensor, 0, false).empty();
  }
  case AttrKind::Function:
  case AttrKind::Unknown:
    return false;
  }
  return false;
}

std::optional<StringRef> AttrCheck::tensor(StringRef Value) {
  return only(Value, AttrTensor);
}

std::string AttrCheck::fault(StringRef Value) const {
  tensorflow::AttrValue V;
  if (!V.ParseFromArray(Value.data(), static_cast<int>(Value.size())))
    return "cannot be read";
  std::string Has = kindOf(V);
  if (Has != W.Def->Type && !(W.IsList && Has == "list"))
    return Has.empty()
               ? formatv("has no value, and {0} is expected", W.Def->Type).str()
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

bool AttrCheck::isGoodList(StringRef Value) const {
  auto List = only(Value, AttrList);
  if (!List || W.Is >= AttrKind::Tensor)
    return false;
  int64_t Count = 0;
  bool Good = true;
  if (Kept)
    Kept->List.clear();
  auto See = [&](int64_t V) {
    ++Count;
    if (W.Is != AttrKind::Type)
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
    case AttrKind::String:
      Good &= Bytes && (!*W.Limit->Strings || W.Limit->allowsString(F.Bytes));
      ++Count;
      break;
    case AttrKind::Shape: {
      int64_t Elements;
      Good &= Bytes && shapeFault(F.Bytes, Elements).empty();
      ++Count;
      break;
    }
    case AttrKind::Float:
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

void AttrCheck::keep(const tensorflow::AttrValue &V) const {
  Kept->Number = W.Is == AttrKind::Type ? int64_t(V.type()) : V.i();
  Kept->List.clear();
  for (int Type : V.list().type())
    Kept->List.push_back(static_cast<uint8_t>(Type));
}

std::string AttrCheck::typeFault(int Type) const {
  if (Type > 0 && Type < 64 && W.Limit->Types >> Type & 1)
    return "";
  return "has type " + typeName(static_cast<unsigned>(Type)) +
         ", which is not in the list of allowed values";
}

std::string AttrCheck::stringFault(StringRef Text) const {
  if (W.Limit->allowsString(Text))
    return "";
  return formatv("is \"{0}\", which is not in the list of allowed values: "
                 "{1}",
                 Text, join(split(W.Limit->Strings, '|'), ", "));
}

std::string AttrCheck::scalarFault(const tensorflow::AttrValue &V) const {
  if (W.Is == AttrKind::Type)
    return typeFault(V.type());
  if (W.Is == AttrKind::String)
    return stringFault(V.s());
  if (W.Is == AttrKind::Int && W.Limit->HasMinimum && V.i() < W.Limit->Minimum)
    return formatv("is {0}, and must be at least minimum {1}", V.i(),
                   int(W.Limit->Minimum));
  return "";
}

std::string
AttrCheck::listFault(const tensorflow::AttrValue::ListValue &L) const {
  for (int Type : L.type())
    if (std::string Fault = typeFault(Type); !Fault.empty())
      return Fault;
  for (const std::string &Text : L.s())
    if (std::string Fault = stringFault(Text); !Fault.empty())
      return Fault;
  int Length = L.s_size() + L.i_size() + L.f_size() + L.b_size() +
               L.type_size() + L.shape_size() + L.tensor_size() + L.func_size();
  if (W.Limit->HasMinimum && Length < W.Limit->Minimum)
    return formatv("has length {0}, and must have at least minimum {1}", Length,
                   int(W.Limit->Minimum));
  return "";
}

bool isStringList(StringRef Value) {
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

} // namespace graft
