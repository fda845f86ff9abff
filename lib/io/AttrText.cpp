//===- lib/io/AttrText.cpp - attributes as text -----------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "lib/io/AttrText.h"

#include "lib/io/Serialize.h"
#include "lib/ops/OpTable.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/MathExtras.h"

#include <fmt/format.h>

#include <cmath>
#include <cstring>
#include <limits>

using namespace llvm;

namespace graft {

using tensorflow::AttrValue;
using tensorflow::TensorProto;
using tensorflow::TensorShapeProto;

namespace {

/// Tensors with more elements are shown as their type and shape.
constexpr int64_t MaxElements = 8;
/// Strings that are longer are shown in part.
constexpr size_t MaxString = 80;
/// The maximum depth of the brackets of a tensor, and of functions in
/// attributes of functions.
constexpr unsigned MaxDepth = 64;

//===----------------------------------------------------------------------===//
// Printing
//===----------------------------------------------------------------------===//

std::string typeText(int Type) {
  std::string Name =
      tensorflow::DataType_IsValid(Type)
          ? tensorflow::DataType_Name(static_cast<tensorflow::DataType>(Type))
          : fmt::format("type{}", Type);
  StringRef Short(Name);
  Short.consume_front("DT_");
  return Short.lower();
}

std::string shapeText(const TensorShapeProto &Shape) {
  if (Shape.unknown_rank())
    return "?";
  std::string Out = "[";
  for (int I = 0; I < Shape.dim_size(); ++I) {
    Out += I ? "," : "";
    int64_t Size = Shape.dim(I).size();
    Out += Size < 0 ? "?" : fmt::format("{}", Size);
  }
  return Out + "]";
}

/// Calls \p F with a zero of the element type of \p T and with the repeated
/// field for elements of this type. The zero has the size of an element in
/// tensor_content. Does nothing if the elements have no text.
template <typename Fn> void withElements(const TensorProto &T, Fn F) {
  switch (T.dtype()) {
  case tensorflow::DT_FLOAT:
    return F(0.0f, T.float_val());
  case tensorflow::DT_DOUBLE:
    return F(0.0, T.double_val());
  case tensorflow::DT_INT8:
    return F(int8_t(0), T.int_val());
  case tensorflow::DT_UINT8:
    return F(uint8_t(0), T.int_val());
  case tensorflow::DT_INT16:
    return F(int16_t(0), T.int_val());
  case tensorflow::DT_UINT16:
    return F(uint16_t(0), T.int_val());
  case tensorflow::DT_INT32:
    return F(int32_t(0), T.int_val());
  case tensorflow::DT_UINT32:
    return F(uint32_t(0), T.uint32_val());
  case tensorflow::DT_INT64:
    return F(int64_t(0), T.int64_val());
  case tensorflow::DT_UINT64:
    return F(uint64_t(0), T.uint64_val());
  case tensorflow::DT_BOOL:
    return F(false, T.bool_val());
  default:
    return;
  }
}

/// Returns the text of each element in the repeated field for the type of \p T.
std::vector<std::string> fieldTexts(const TensorProto &T) {
  std::vector<std::string> Out;
  withElements(T, [&](auto, const auto &Values) {
    for (const auto &V : Values)
      Out.push_back(fmt::format("{}", V));
  });
  return Out;
}

std::vector<std::string> contentTexts(const TensorProto &T) {
  std::vector<std::string> Out;
  StringRef Raw(T.tensor_content());
  withElements(T, [&](auto Value, const auto &) {
    for (; Raw.size() >= sizeof(Value); Raw = Raw.drop_front(sizeof(Value))) {
      // Any byte but 0 is true.
      if constexpr (std::is_same_v<decltype(Value), bool>)
        Value = Raw[0] != 0;
      else
        std::memcpy(&Value, Raw.bytes_begin(), sizeof(Value));
      Out.push_back(fmt::format("{}", Value));
    }
  });
  return Out;
}

std::vector<std::string> stringTexts(const TensorProto &T, size_t Limit) {
  std::vector<std::string> Out;
  for (const std::string &S : T.string_val())
    Out.push_back(quoted(S, Limit));
  return Out;
}

/// Returns the elements of a small tensor as text, or nothing if its type is
/// not printed or it is malformed.
std::vector<std::string> elements(const TensorProto &T, int64_t Count,
                                  size_t Limit) {
  std::vector<std::string> Out;
  if (T.dtype() == tensorflow::DT_STRING)
    Out = stringTexts(T, Limit);
  else
    Out = T.tensor_content().empty() ? fieldTexts(T) : contentTexts(T);
  if (Out.empty())
    withElements(T, [&](auto Zero, const auto &) {
      Out.push_back(fmt::format("{}", Zero));
    });
  if (Out.empty())
    return {};
  // A repeated field shorter than the tensor repeats its last element.
  Out.resize(static_cast<size_t>(Count), Out.back());
  return Out;
}

/// Returns \p Values in nested brackets, from dimension \p Dim on. The rank is
/// at most MaxDepth.
std::string nested(const TensorShapeProto &Shape, int Dim,
                   ArrayRef<std::string> Values) {
  if (Dim == Shape.dim_size())
    return Values.empty() ? "" : Values[0];
  size_t Rows = static_cast<size_t>(Shape.dim(Dim).size());
  std::string Out = "[";
  for (size_t I = 0; I < Rows; ++I) {
    size_t Width = Values.size() / Rows;
    Out += I ? "," : "";
    Out += nested(Shape, Dim + 1, Values.slice(I * Width, Width));
  }
  return Out + "]";
}

/// Returns the number of elements, or -1 if it is unknown or above \p Most.
int64_t countOf(const TensorShapeProto &Shape, int64_t Most) {
  int64_t Count = 1;
  if (Shape.unknown_rank())
    return -1;
  for (const auto &D : Shape.dim())
    if (D.size() < 0 || D.size() > Most ||
        MulOverflow(Count, D.size(), Count) || Count > Most)
      return -1;
  return Count;
}

/// Returns the number of elements if nested() may print them, else -1.
int64_t nestedCount(const TensorShapeProto &Shape, int64_t Most) {
  return Shape.dim_size() <= int(MaxDepth) ? countOf(Shape, Most) : -1;
}

std::string tensorText(const TensorProto &T) {
  if (int64_t Count = nestedCount(T.tensor_shape(), MaxElements); Count > 0)
    if (auto Values = elements(T, Count, MaxString); !Values.empty())
      return nested(T.tensor_shape(), 0, Values);
  return "<" + typeText(T.dtype()) + shapeText(T.tensor_shape()) + ">";
}

template <typename List, typename Fn>
std::string joined(const List &Values, Fn Text) {
  std::string Out = "[";
  for (int I = 0; I < Values.size(); ++I)
    Out += (I ? "," : "") + Text(Values[I]);
  return Out + "]";
}

/// Returns the text of \p L; \p Tensor and \p Function print their values.
template <typename TensorFn, typename FunctionFn>
std::string listText(const AttrValue::ListValue &L, size_t Limit,
                     TensorFn Tensor, FunctionFn Function) {
  auto Plain = [](auto V) { return fmt::format("{}", V); };
  if (L.s_size())
    return joined(L.s(),
                  [&](const std::string &S) { return quoted(S, Limit); });
  if (L.i_size())
    return joined(L.i(), Plain);
  if (L.f_size())
    return joined(L.f(), Plain);
  if (L.b_size())
    return joined(L.b(), Plain);
  if (L.type_size())
    return joined(L.type(), typeText);
  if (L.shape_size())
    return joined(L.shape(), shapeText);
  if (L.tensor_size())
    return joined(L.tensor(), Tensor);
  return joined(L.func(), Function);
}

std::string plainText(const AttrValue &A, size_t Limit) {
  switch (A.value_case()) {
  case AttrValue::kS:
    return quoted(A.s(), Limit);
  case AttrValue::kI:
    return fmt::format("{}", A.i());
  case AttrValue::kF:
    return fmt::format("{}", A.f());
  case AttrValue::kB:
    return A.b() ? "true" : "false";
  case AttrValue::kType:
    return typeText(A.type());
  case AttrValue::kShape:
    return shapeText(A.shape());
  case AttrValue::kPlaceholder:
    return "$" + A.placeholder();
  default:
    return "<none>";
  }
}

/// Returns a function without its attributes.
std::string nameOf(const tensorflow::NameAttrList &F) {
  return F.name() + (F.attr_size() == 0 ? "" : "{...}");
}

/// Returns a tensor with its type. An element of a list has this form, too.
std::string typedTensorText(const TensorProto &T) {
  std::string Type = "<" + typeText(T.dtype()) + shapeText(T.tensor_shape());
  if (!T.tensor_content().empty())
    return Type + "=" + quoted(T.tensor_content()) + ">";
  std::vector<std::string> Values = T.dtype() == tensorflow::DT_STRING
                                        ? stringTexts(T, SIZE_MAX)
                                        : fieldTexts(T);
  return Values.empty() ? Type + ">" : Type + "=" + join(Values, ",") + ">";
}

/// Returns possible texts of the tensor \p T, shortest first. The reader may
/// read a short text as another tensor.
std::vector<std::string> tensorForms(const TensorProto &T) {
  std::vector<std::string> Forms;
  if (int64_t Count = nestedCount(T.tensor_shape(), MaxElements * MaxElements);
      Count > 0)
    if (auto Values = elements(T, Count, SIZE_MAX); !Values.empty())
      Forms.push_back(nested(T.tensor_shape(), 0, Values));
  Forms.push_back(typedTensorText(T));
  return Forms;
}

std::string wholeText(const AttrValue &A, const AttrPlace &Place,
                      unsigned Depth);

std::string functionText(const tensorflow::NameAttrList &F, unsigned Depth) {
  std::string Out = F.name() + "{";
  std::vector<std::pair<std::string, const AttrValue *>> Attrs;
  for (const auto &[Key, Value] : F.attr())
    Attrs.emplace_back(Key, &Value);
  llvm::sort(Attrs);
  ListSeparator Comma(",");
  for (const auto &[Key, Value] : Attrs)
    Out += StringRef(Comma).str() + Key + "=" +
           wholeText(*Value, {"", Key}, Depth + 1);
  Out += '}';
  return F.attr_size() == 0 ? F.name() : Out;
}

/// Returns possible texts of \p A, shortest first. AttrTextReader may read a
/// short text as another value.
std::vector<std::string> forms(const AttrValue &A, unsigned Depth) {
  switch (A.value_case()) {
  case AttrValue::kF:
    return {plainText(A, SIZE_MAX), plainText(A, SIZE_MAX) + ".0"};
  case AttrValue::kShape:
    return {plainText(A, SIZE_MAX), "shape" + plainText(A, SIZE_MAX)};
  case AttrValue::kTensor:
    return tensorForms(A.tensor());
  case AttrValue::kFunc:
    return {functionText(A.func(), Depth)};
  case AttrValue::kList: {
    std::string Text = listText(A.list(), SIZE_MAX, typedTensorText,
                                [&](const tensorflow::NameAttrList &F) {
                                  return functionText(F, Depth);
                                });
    // The first element shows the kind of a list.
    std::string Floats = Text;
    if (A.list().f_size())
      Floats.insert(std::min(Text.find(','), Text.size() - 1), ".0");
    return {std::move(Text), std::move(Floats)};
  }
  default:
    return {plainText(A, SIZE_MAX)};
  }
}

std::string wholeText(const AttrValue &A, const AttrPlace &Place,
                      unsigned Depth) {
  std::string Bytes = serialize(A);
  if (Depth < MaxDepth)
    for (std::string &Text : forms(A, Depth)) {
      AttrTextReader Reader(Text);
      AttrValue Read;
      if (Reader.read(Read, Place) && Reader.rest().empty() &&
          serialize(Read) == Bytes)
        return std::move(Text);
    }
  return "!" + quoted(Bytes);
}

} // namespace

std::string quoted(StringRef Text, size_t Limit) {
  std::string Out = "\"";
  for (char C : Text.take_front(Limit)) {
    if (C == '"' || C == '\\')
      Out += '\\';
    if (C == '\n')
      Out += "\\n";
    else if (isPrint(C) ||
             (Limit != SIZE_MAX && static_cast<uint8_t>(C) >= 128))
      Out += C;
    else
      Out += fmt::format("\\{:03o}", static_cast<uint8_t>(C));
  }
  Out += Text.size() > Limit ? "\"..." : "\"";
  return Out;
}

std::string attrText(const AttrValue &A) {
  if (A.has_tensor())
    return tensorText(A.tensor());
  if (A.has_func())
    return nameOf(A.func());
  if (A.has_list())
    return listText(A.list(), MaxString, tensorText, nameOf);
  return plainText(A, MaxString);
}

std::string wholeAttrText(const AttrValue &Value, const AttrPlace &Place) {
  return wholeText(Value, Place, 0);
}

//===----------------------------------------------------------------------===//
// Reading
//===----------------------------------------------------------------------===//

/// Returns the DataType of that name, or nothing.
static std::optional<int> parseType(StringRef Name) {
  int Number;
  StringRef Digits = Name;
  if (Digits.consume_front("type") && !Digits.getAsInteger(10, Number))
    return Number;
  tensorflow::DataType Type;
  if (Name.lower() == Name &&
      tensorflow::DataType_Parse("DT_" + Name.upper(), &Type))
    return Type;
  return std::nullopt;
}

bool AttrTextReader::fail(std::string Message) {
  if (Fault.empty())
    Fault = std::move(Message);
  return false;
}

/// Consumes a comma and the blanks after it.
bool AttrTextReader::comma() {
  if (!consume(','))
    return false;
  Rest = Rest.ltrim(" \t");
  return true;
}

bool AttrTextReader::consume(char C) {
  if (!Rest.starts_with(StringRef(&C, 1)))
    return false;
  Rest = Rest.drop_front();
  return true;
}

/// Returns the characters up to the next one that ends a number or a name.
StringRef AttrTextReader::word() const {
  return Rest.take_until([](char C) {
    return isSpace(C) || StringRef("[](){}<>,=\"").contains(C) ||
           (!isPrint(C) && static_cast<uint8_t>(C) < 128);
  });
}

/// Returns the kind of the value at the front, by its form alone.
StringRef AttrTextReader::kindOf(bool InList) const {
  StringRef Word = word();
  if (Rest.starts_with("\""))
    return "string";
  if (Rest.starts_with("<"))
    return "tensor";
  if (Rest.starts_with("?") || (InList && Rest.starts_with("[")) ||
      (Word == "shape" && Rest.drop_front(5).starts_with("[")) ||
      Word == "shape?")
    return "shape";
  if (Rest.starts_with("["))
    return "list";
  if (Word == "true" || Word == "false")
    return "bool";
  StringRef Number = Word;
  Number.consume_front("-");
  if (Number == "inf" || Number == "nan")
    return "float";
  if (!Number.empty() && (isDigit(Number[0]) || Number[0] == '.'))
    return Number.find_first_not_of("0123456789") == StringRef::npos ? "int"
                                                                     : "float";
  if (Word.empty() || !(isAlpha(Word[0]) || Word[0] == '_'))
    return "";
  return !Rest.drop_front(Word.size()).starts_with("{") && parseType(Word)
             ? "type"
             : "func";
}

bool AttrTextReader::readQuoted(std::string &Text) {
  if (!consume('"'))
    return fail("expected a text in quotes");
  while (!Rest.empty() && Rest[0] != '"' && Rest[0] != '\n') {
    char C = Rest[0];
    Rest = Rest.drop_front();
    if (C != '\\') {
      Text += C;
      continue;
    }
    StringRef Octal = Rest.take_front(3);
    unsigned Code;
    if (Octal.size() == 3 && !Octal.getAsInteger(8, Code) && Code < 256) {
      Text += static_cast<char>(Code);
      Rest = Rest.drop_front(3);
      continue;
    }
    C = Rest.empty() ? '\0' : Rest[0];
    if (C != 'n' && C != '"' && C != '\\')
      return fail("expected \\n, \\\", \\\\ or three octal digits");
    Text += C == 'n' ? '\n' : C;
    Rest = Rest.drop_front();
  }
  if (!consume('"'))
    return fail("the text in quotes has no end");
  if (Rest.starts_with("..."))
    return fail("the end of the text was left out; print the graph with "
                "--emit=lines");
  return true;
}

bool AttrTextReader::readInteger(int64_t &Value) {
  StringRef Word = word();
  if (Word.getAsInteger(10, Value))
    return fail("expected an integer");
  Rest = Rest.drop_front(Word.size());
  return true;
}

/// Reads a number with the precision of \p T, as the writer prints it.
template <typename T> static bool parseFloat(StringRef Word, T &Value) {
  StringRef Digits = Word;
  Digits.consume_front("-");
  bool IsInfinite = Digits == "inf";
  if (!IsInfinite && Digits != "nan" &&
      (Digits.empty() ||
       Digits.find_first_not_of("0123456789.eE+-") != StringRef::npos))
    return false;
  std::string Text = Word.str();
  char *End = nullptr;
  if constexpr (std::is_same_v<T, float>)
    Value = std::strtof(Text.c_str(), &End);
  else
    Value = std::strtod(Text.c_str(), &End);
  return End == Text.c_str() + Text.size() && std::isinf(Value) == IsInfinite;
}

bool AttrTextReader::readFloat(float &Value) {
  StringRef Word = word();
  if (!parseFloat(Word, Value))
    return fail("expected a number");
  Rest = Rest.drop_front(Word.size());
  return true;
}

bool AttrTextReader::readShape(TensorShapeProto &Shape) {
  Rest.consume_front("shape");
  if (consume('?')) {
    Shape.set_unknown_rank(true);
    return true;
  }
  if (!consume('['))
    return fail("expected a shape such as [?,4]");
  if (consume(']'))
    return true;
  do {
    int64_t Size = -1;
    if (!consume('?') && !readInteger(Size))
      return false;
    Shape.add_dim()->set_size(Size);
  } while (comma());
  return consume(']') || fail("expected ',' or ']'");
}

bool AttrTextReader::readFunction(tensorflow::NameAttrList &Function) {
  StringRef Word = word();
  if (Word.empty())
    return fail("expected a value");
  Function.set_name(Word.str());
  Rest = Rest.drop_front(Word.size());
  if (!consume('{'))
    return true;
  if (consume('}'))
    return true;
  if (Rest.starts_with("..."))
    return fail("the attributes of the function were left out; print the "
                "graph with --emit=lines");
  if (++Depth > MaxDepth)
    return fail("too many brackets");
  do {
    StringRef Key = word();
    Rest = Rest.drop_front(Key.size());
    if (Key.empty() || !consume('='))
      return fail("expected an attribute of the function: key=value");
    if (Function.attr().contains(Key.str()))
      return fail("the attribute '" + Key.str() + "' is given twice");
    if (!read((*Function.mutable_attr())[Key.str()], {"", Key}))
      return false;
  } while (comma());
  --Depth;
  return consume('}') || fail("expected ',' or '}'");
}

/// Reads an element, and adds it to the repeated field of its type.
bool AttrTextReader::readElement(TensorProto &Tensor) {
  if (Tensor.dtype() == tensorflow::DT_STRING)
    return readQuoted(*Tensor.add_string_val());
  StringRef Word = word();
  int64_t Integer = 0;
  uint64_t Unsigned = 0;
  double Double = 0;
  float Float = 0;
  auto IsInteger = [&](int64_t Least, int64_t Most) {
    return !Word.getAsInteger(10, Integer) && Integer >= Least &&
           Integer <= Most;
  };
  bool Valid = false;
  switch (Tensor.dtype()) {
  case tensorflow::DT_FLOAT:
    Valid = parseFloat(Word, Float);
    Tensor.add_float_val(Float);
    break;
  case tensorflow::DT_DOUBLE:
    Valid = parseFloat(Word, Double);
    Tensor.add_double_val(Double);
    break;
  case tensorflow::DT_INT8:
  case tensorflow::DT_UINT8:
  case tensorflow::DT_INT16:
  case tensorflow::DT_UINT16:
  case tensorflow::DT_INT32: {
    withElements(Tensor, [&](auto Zero, const auto &) {
      using Limits = std::numeric_limits<decltype(Zero)>;
      if constexpr (sizeof(Zero) <= sizeof(int32_t))
        Valid = IsInteger(static_cast<int64_t>(Limits::min()),
                          static_cast<int64_t>(Limits::max()));
    });
    Tensor.add_int_val(static_cast<int32_t>(Integer));
    break;
  }
  case tensorflow::DT_INT64:
    Valid = IsInteger(INT64_MIN, INT64_MAX);
    Tensor.add_int64_val(Integer);
    break;
  case tensorflow::DT_UINT32:
    Valid = IsInteger(0, UINT32_MAX);
    Tensor.add_uint32_val(static_cast<uint32_t>(Integer));
    break;
  case tensorflow::DT_UINT64:
    Valid = !Word.getAsInteger(10, Unsigned);
    Tensor.add_uint64_val(Unsigned);
    break;
  case tensorflow::DT_BOOL:
    Valid = Word == "true" || Word == "false";
    Tensor.add_bool_val(Word == "true");
    break;
  default:
    return fail("elements of the type " + typeText(Tensor.dtype()) +
                " have no text; write their bytes, such as <half[1]=\"..\">");
  }
  if (!Valid)
    return fail("expected an element of the type " + typeText(Tensor.dtype()));
  Rest = Rest.drop_front(Word.size());
  return true;
}

/// Reads a number, or equally long lists in brackets. \p Count gets the number
/// of elements.
bool AttrTextReader::readNested(TensorProto &Tensor, unsigned Depth,
                                unsigned &Count) {
  if (!consume('[')) {
    if (Depth != unsigned(Tensor.tensor_shape().dim_size()))
      return fail("expected '['");
    ++Count;
    return readElement(Tensor);
  }
  if (Depth >= MaxDepth)
    return fail("too many brackets");
  TensorShapeProto &Shape = *Tensor.mutable_tensor_shape();
  bool IsFirst = Depth == unsigned(Shape.dim_size());
  if (IsFirst && Count != 0)
    return fail("expected an element");
  if (IsFirst)
    Shape.add_dim();
  int64_t Rows = 0;
  do {
    if (!readNested(Tensor, Depth + 1, Count))
      return false;
    ++Rows;
  } while (comma());
  auto *Dim = Shape.mutable_dim(static_cast<int>(Depth));
  if (Dim->size() == 0)
    Dim->set_size(Rows);
  if (Dim->size() != Rows)
    return fail("the lists in brackets are not equally long");
  return consume(']') || fail("expected ',' or ']'");
}

/// Moves the elements of \p T to tensor_content, where TensorFlow has them.
static void packElements(TensorProto &T) {
  std::string Bytes;
  withElements(T, [&](auto Element, const auto &Values) {
    for (auto Value : Values) {
      Element = static_cast<decltype(Element)>(Value);
      Bytes.append(reinterpret_cast<const char *>(&Element), sizeof(Element));
    }
  });
  TensorProto Packed;
  Packed.set_dtype(T.dtype());
  *Packed.mutable_tensor_shape() = T.tensor_shape();
  Packed.set_tensor_content(std::move(Bytes));
  T = std::move(Packed);
}

/// Reads <type[shape]>, <type[shape]=element,element> or <type[shape]="bytes">.
bool AttrTextReader::readTypedTensor(TensorProto &Tensor) {
  consume('<');
  StringRef Word = word().take_until([](char C) { return C == '?'; });
  auto Type = parseType(Word);
  if (!Type)
    return fail("expected the type of a tensor, such as <float[2]=1,2>");
  Rest = Rest.drop_front(Word.size());
  Tensor.set_dtype(static_cast<tensorflow::DataType>(*Type));
  if (!readShape(*Tensor.mutable_tensor_shape()))
    return false;
  if (consume('=')) {
    if (Rest.starts_with("\"") && *Type != tensorflow::DT_STRING) {
      if (!readQuoted(*Tensor.mutable_tensor_content()))
        return false;
    } else if (!Rest.starts_with(">")) {
      do
        if (!readElement(Tensor))
          return false;
      while (comma());
    }
  } else if (countOf(Tensor.tensor_shape(), INT64_MAX) != 0) {
    return fail("the elements of the tensor were left out; print the graph "
                "with --emit=lines");
  }
  return consume('>') || fail("expected '>'");
}

bool AttrTextReader::readTensor(TensorProto &Tensor, int Type) {
  if (Rest.starts_with("<"))
    return readTypedTensor(Tensor);
  if (!tensorflow::DataType_IsValid(Type) || Type == 0)
    return fail("expected the type of a tensor, such as <float[2]=1,2>");
  Tensor.set_dtype(static_cast<tensorflow::DataType>(Type));
  Tensor.mutable_tensor_shape();
  unsigned Count = 0;
  if (!readNested(Tensor, 0, Count))
    return false;
  if (Count > 1 && Type != tensorflow::DT_STRING)
    packElements(Tensor);
  return true;
}

/// Reads the elements of a list, after its '['.
bool AttrTextReader::readList(AttrValue::ListValue &List, StringRef Kind,
                              int TensorType) {
  if (consume(']'))
    return true;
  if (Kind.empty()) {
    Kind = kindOf(/*InList=*/true);
    if (Kind.empty())
      return fail("expected a value");
    // [1,2.5] is a list of floats.
    if (Kind == "int" && Rest.take_until([](char C) {
                               return C == ']';
                             }).find_first_of(".en") != StringRef::npos)
      Kind = "float";
  }
  do {
    AttrValue Each;
    if (!readKind(Each, Kind, TensorType))
      return false;
    switch (Each.value_case()) {
    case AttrValue::kS:
      List.add_s(Each.s());
      break;
    case AttrValue::kI:
      List.add_i(Each.i());
      break;
    case AttrValue::kF:
      List.add_f(Each.f());
      break;
    case AttrValue::kB:
      List.add_b(Each.b());
      break;
    case AttrValue::kType:
      List.add_type(Each.type());
      break;
    case AttrValue::kShape:
      *List.add_shape() = Each.shape();
      break;
    case AttrValue::kTensor:
      *List.add_tensor() = Each.tensor();
      break;
    case AttrValue::kFunc:
      *List.add_func() = Each.func();
      break;
    default:
      return fail("expected an element of a list");
    }
  } while (comma());
  return consume(']') || fail("expected ',' or ']'");
}

bool AttrTextReader::readKind(AttrValue &Value, StringRef Kind,
                              int TensorType) {
  if (Kind.consume_front("list")) {
    Kind.consume_front("(");
    Kind.consume_back(")");
    return consume('[') ? readList(*Value.mutable_list(), Kind, TensorType)
                        : fail("expected '['");
  }
  if (Kind == "string")
    return readQuoted(*Value.mutable_s());
  if (Kind == "shape")
    return readShape(*Value.mutable_shape());
  if (Kind == "tensor")
    return readTensor(*Value.mutable_tensor(), TensorType);
  if (Kind == "func")
    return readFunction(*Value.mutable_func());
  if (Kind == "int") {
    int64_t Integer = 0;
    bool Valid = readInteger(Integer);
    Value.set_i(Integer);
    return Valid;
  }
  if (Kind == "float") {
    float Float = 0;
    bool Valid = readFloat(Float);
    Value.set_f(Float);
    return Valid;
  }
  StringRef Word = word();
  if (Kind == "bool") {
    if (Word != "true" && Word != "false")
      return fail("expected true or false");
    Value.set_b(Word == "true");
  } else {
    auto Type = parseType(Word);
    if (!Type)
      return fail("expected a type such as float");
    Value.set_type(static_cast<tensorflow::DataType>(*Type));
  }
  Rest = Rest.drop_front(Word.size());
  return true;
}

bool AttrTextReader::read(AttrValue &Value, const AttrPlace &Place) {
  if (consume('!')) {
    std::string Bytes;
    return readQuoted(Bytes) &&
           (Value.ParseFromString(Bytes) ||
            fail("these are not the bytes of an AttrValue"));
  }
  if (consume('$')) {
    StringRef Word = word();
    Value.set_placeholder(Word.str());
    Rest = Rest.drop_front(Word.size());
    return true;
  }
  if (Rest.consume_front("<none>"))
    return true;
  StringRef Kind;
  if (const OpDef *Def = findOp(Place.Op))
    for (const AttrDef &A : Def->attrs())
      if (Place.Key == A.Name)
        Kind = A.Type;
  if (Kind.empty())
    Kind = kindOf(/*InList=*/false);
  if (Kind.empty())
    return fail("expected a value");
  return readKind(Value, Kind, Place.TensorType);
}

} // namespace graft
