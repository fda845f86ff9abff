//===- lib/io/write/Print.cpp - graphs for people ---------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "lib/io/write/Print.h"

#include "lib/graph/ProgramAttrs.h"
#include "lib/ops/ProgramOps.h"
#include "lib/support/Diagnostics.h"

#include "tensorflow/core/framework/attr_value.pb.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

using namespace llvm;

namespace graft {
namespace {

using tensorflow::TensorProto;

/// Tensors with more elements are printed as their type and shape.
constexpr int64_t MaxElements = 8;

std::string typeText(int Type) {
  std::string Name =
      tensorflow::DataType_IsValid(Type)
          ? tensorflow::DataType_Name(static_cast<tensorflow::DataType>(Type))
          : fmt::format("type{}", Type);
  StringRef Short(Name);
  Short.consume_front("DT_");
  return Short.lower();
}

std::string quoted(StringRef Text, size_t Limit = 80) {
  std::string Out = "\"";
  for (char C : Text.take_front(Limit)) {
    if (C == '"' || C == '\\')
      Out += '\\';
    if (C == '\n')
      Out += "\\n";
    else if (isPrint(C) || static_cast<uint8_t>(C) >= 0x80)
      Out += C;
    else
      Out += fmt::format("\\{:03o}", static_cast<uint8_t>(C));
  }
  Out += Text.size() > Limit ? "\"..." : "\"";
  return Out;
}

std::string shapeText(const tensorflow::TensorShapeProto &Shape) {
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

template <typename T> T element(StringRef Bytes, size_t I) {
  T Value;
  std::memcpy(&Value, Bytes.data() + I * sizeof(T), sizeof(T));
  return Value;
}

/// Returns the elements of a small tensor as text, or nothing if its type is
/// not printed or it is malformed.
std::vector<std::string> elements(const TensorProto &T, int64_t Count) {
  std::vector<std::string> Out;
  StringRef Raw(T.tensor_content());
  // A repeated field shorter than the tensor repeats its last element.
  auto Add = [&](const auto &Values) {
    for (const auto &V : Values)
      Out.push_back(fmt::format("{}", V));
    if (Out.empty())
      Out.push_back(fmt::format("{}", std::decay_t<decltype(Values[0])>()));
  };
  auto AddRaw = [&](auto Zero) {
    using Element = decltype(Zero);
    for (size_t I = 0; I < Raw.size() / sizeof(Element); ++I)
      Out.push_back(fmt::format("{}", element<Element>(Raw, I)));
  };
  bool IsRaw = !Raw.empty();
  switch (T.dtype()) {
  case tensorflow::DT_FLOAT:
    IsRaw ? AddRaw(0.0f) : Add(T.float_val());
    break;
  case tensorflow::DT_DOUBLE:
    IsRaw ? AddRaw(0.0) : Add(T.double_val());
    break;
  case tensorflow::DT_INT32:
    IsRaw ? AddRaw(int32_t(0)) : Add(T.int_val());
    break;
  case tensorflow::DT_INT64:
    IsRaw ? AddRaw(int64_t(0)) : Add(T.int64_val());
    break;
  case tensorflow::DT_BOOL:
    if (IsRaw)
      for (char C : Raw)
        Out.push_back(C ? "true" : "false");
    else
      Add(T.bool_val());
    break;
  case tensorflow::DT_STRING:
    for (const std::string &S : T.string_val())
      Out.push_back(quoted(S));
    break;
  default:
    return {};
  }
  if (Out.empty())
    return {};
  Out.resize(static_cast<size_t>(Count), Out.back());
  return Out;
}

/// Returns \p Values in nested brackets, from dimension \p Dim on.
std::string nested(const tensorflow::TensorShapeProto &Shape, int Dim,
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

std::string tensorText(const TensorProto &T) {
  int64_t Count = 1;
  bool Small = !T.tensor_shape().unknown_rank();
  for (const auto &D : T.tensor_shape().dim()) {
    Small &= D.size() >= 0 && D.size() <= MaxElements;
    Count = Small ? Count * D.size() : Count;
    Small &= Count <= MaxElements;
  }
  if (Small && Count > 0)
    if (auto Values = elements(T, Count); !Values.empty())
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

std::string funcText(const tensorflow::NameAttrList &F) { return F.name(); }

std::string listText(const tensorflow::AttrValue::ListValue &L) {
  auto Plain = [](auto V) { return fmt::format("{}", V); };
  if (L.s_size())
    return joined(L.s(), [](const std::string &S) { return quoted(S); });
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
    return joined(L.tensor(), tensorText);
  return joined(L.func(), funcText);
}

/// Returns all attributes and the program state; the op shows the copies.
std::vector<std::pair<std::string, std::string>> attrTexts(const Graph &G,
                                                           NodeId N) {
  SmallVector<ProgramAttr, 4> Program = programAttrs(G.node(N));
  std::vector<std::pair<std::string, std::string>> All;
  for (const AttrEntry &A : G.attrs(N))
    All.emplace_back(A.Key.str(), attrText(A.Value));
  for (const ProgramAttr &A : Program)
    if (A.Key != CopiesAttr)
      All.emplace_back(A.Key.str(), attrText(A.Value));
  llvm::stable_sort(All, less_first());
  return All;
}

std::string endpointText(const Graph &G, Endpoint E) {
  std::string Name = G.name(E.Node).str();
  return E.Port == 0 ? Name : Name + ":" + utostr(E.Port);
}

/// Returns "*4" if the program's mesh has the number of replicas, else "*".
std::string copiesMark(const Graph &G) {
  for (NodeId N = 0; N < G.size(); ++N)
    if (G.isLive(N) && G.isOp(N, MeshOp))
      if (auto Replicas = G.intAttr(N, "replicas"))
        return "*" + itostr(*Replicas);
  return "*";
}

} // namespace

std::string attrText(StringRef Value) {
  tensorflow::AttrValue A;
  if (!A.ParseFromArray(Value.data(), static_cast<int>(Value.size())))
    return "<malformed>";
  using tensorflow::AttrValue;
  switch (A.value_case()) {
  case AttrValue::kS:
    return quoted(A.s());
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
  case AttrValue::kTensor:
    return tensorText(A.tensor());
  case AttrValue::kList:
    return listText(A.list());
  case AttrValue::kFunc:
    return funcText(A.func());
  case AttrValue::kPlaceholder:
    return "$" + A.placeholder();
  case AttrValue::VALUE_NOT_SET:
    break;
  }
  return "<none>";
}

std::string NodeText::str() const {
  std::string Line = Name + " = " + Op + "(";
  ListSeparator Comma;
  for (const std::string &Each : Inputs)
    Line += StringRef(Comma).str() + Each;
  for (const std::string &Each : Controls)
    Line += StringRef(Comma).str() + "^" + Each;
  Line += ')';
  if (!Device.empty())
    Line += " @" + Device;
  for (const auto &[Key, Value] : Attrs)
    Line.append(" ").append(Key).append("=").append(Value);
  return Line;
}

static NodeText nodeText(const Graph &G, NodeId N, StringRef Mark) {
  NodeText Text;
  Text.Name = G.name(N).str();
  Text.Op = G.opName(N).str();
  if (G.isPerReplica(N))
    Text.Op += Mark;
  for (Endpoint E : G.dataInputs(N))
    Text.Inputs.push_back(endpointText(G, E));
  for (Endpoint E : G.controlInputs(N))
    Text.Controls.push_back(G.name(E.Node).str());
  Text.Device = G.device(N).str();
  Text.Attrs = attrTexts(G, N);
  return Text;
}

std::vector<NodeText> nodeTexts(const Graph &G) {
  std::vector<NodeText> All;
  std::string Mark = copiesMark(G);
  All.reserve(G.numLive());
  for (NodeId N : G.order())
    All.push_back(nodeText(G, N, Mark));
  return All;
}

std::string summaryText(const Graph &G) {
  std::string Out, Mark = copiesMark(G);
  for (NodeId N : G.order())
    Out += escapeControls(nodeText(G, N, Mark).str()) + "\n";
  return Out;
}

} // namespace graft
