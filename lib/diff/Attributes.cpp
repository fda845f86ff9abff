//===- lib/diff/Attributes.cpp - attributes that count ----------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "lib/diff/Attributes.h"

#include "lib/support/Bytes.h"

#include "tensorflow/core/framework/attr_value.pb.h"

#include "google/protobuf/text_format.h"
#include "google/protobuf/util/message_differencer.h"

#include "llvm/ADT/Hashing.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/xxhash.h"

using namespace llvm;

namespace graft {

static bool counts(StringRef Key) {
  return Key != "_output_shapes" && Key != "_class" &&
         !Key.starts_with("_graft_");
}

Attributes::Attributes(const Graph &G) : G(G), Defaults(G.numOps()) {
  for (uint32_t Op = 0; Op < G.numOps(); ++Op) {
    const OpDef *Def = G.opDefOf(Op);
    if (!Def)
      continue;
    for (const AttrDef &A : Def->attrs()) {
      tensorflow::AttrValue Value;
      if (A.HasDefault &&
          google::protobuf::TextFormat::ParseFromString(A.Default, &Value))
        Defaults[Op].emplace_back(A.Name, Value.SerializeAsString());
    }
  }
}

bool Attributes::isDefault(NodeId N, const AttrEntry &A) const {
  for (const auto &[Key, Value] : Defaults[G.node(N).Op])
    if (Key == A.Key)
      return Value == A.Value;
  return false;
}

SmallVector<AttrEntry, 8> Attributes::of(NodeId N) const {
  SmallVector<AttrEntry, 8> Result = G.attrs(N);
  erase_if(Result, [&](const AttrEntry &A) {
    return !counts(A.Key) || isDefault(N, A);
  });
  sort(Result,
       [](const AttrEntry &A, const AttrEntry &B) { return A.Key < B.Key; });
  return Result;
}

uint64_t Attributes::hash(NodeId N) const {
  // Add the hashes of the attributes, because a sum does not depend on their
  // order, which is that of a hash table.
  uint64_t Sum = 0;
  for (const AttrEntry &A : G.attrs(N))
    if (counts(A.Key) && !isDefault(N, A))
      Sum += static_cast<uint64_t>(
          hash_combine(xxh3_64bits(A.Key), xxh3_64bits(A.Value)));
  return Sum;
}

/// Returns the elements of \p T, each as bytes or text. Repetitions of the last
/// element are dropped: a TensorProto may leave them out.
static std::vector<std::string> elementsOf(const tensorflow::TensorProto &T) {
  std::vector<std::string> Result;
  auto Put = [&](const auto &Values, auto As) {
    for (const auto &Value : Values) {
      auto Element = static_cast<decltype(As)>(Value);
      Result.emplace_back(reinterpret_cast<const char *>(&Element),
                          sizeof(Element));
    }
  };
  size_t Width = 0;
  unsigned Type = T.dtype();
  switch (Type) {
  case DT_FLOAT:
    Put(T.float_val(), float()), Width = 4;
    break;
  case DT_DOUBLE:
    Put(T.double_val(), double()), Width = 8;
    break;
  case DT_INT32:
  case DT_UINT32:
    Type == DT_INT32 ? Put(T.int_val(), int32_t())
                     : Put(T.uint32_val(), uint32_t());
    Width = 4;
    break;
  case DT_INT64:
  case DT_UINT64:
    Type == DT_INT64 ? Put(T.int64_val(), int64_t())
                     : Put(T.uint64_val(), uint64_t());
    Width = 8;
    break;
  case DT_INT16:
  case DT_UINT16:
    Put(T.int_val(), uint16_t()), Width = 2;
    break;
  case DT_HALF:
  case DT_BFLOAT16:
    Put(T.half_val(), uint16_t()), Width = 2;
    break;
  case DT_INT8:
  case DT_UINT8:
    Put(T.int_val(), uint8_t()), Width = 1;
    break;
  case DT_BOOL:
    Put(T.bool_val(), uint8_t()), Width = 1;
    break;
  case DT_STRING:
    Result.assign(T.string_val().begin(), T.string_val().end());
    break;
  default:
    break;
  }
  StringRef Content = T.tensor_content();
  if (Width != 0 && !Content.empty() && Content.size() % Width == 0) {
    Result.clear();
    for (; !Content.empty(); Content = Content.drop_front(Width))
      Result.push_back(Content.take_front(Width).str());
  }
  while (Result.size() > 1 && Result.back() == Result[Result.size() - 2])
    Result.pop_back();
  return Result;
}

static bool isSameTensor(const tensorflow::TensorProto &A,
                         const tensorflow::TensorProto &B) {
  using google::protobuf::util::MessageDifferencer;
  if (A.dtype() != B.dtype() ||
      !MessageDifferencer::Equals(A.tensor_shape(), B.tensor_shape()))
    return false;
  std::vector<std::string> Of = elementsOf(A);
  return Of.empty() ? MessageDifferencer::Equals(A, B) : Of == elementsOf(B);
}

bool isSameValue(StringRef A, StringRef B) {
  if (A == B)
    return true;
  tensorflow::AttrValue X, Y;
  if (!X.ParseFromArray(A.data(), static_cast<int>(A.size())) ||
      !Y.ParseFromArray(B.data(), static_cast<int>(B.size())))
    return false;
  return X.has_tensor() && Y.has_tensor()
             ? isSameTensor(X.tensor(), Y.tensor())
             : google::protobuf::util::MessageDifferencer::Equals(X, Y);
}

SmallVector<NodeId, 2> colocations(const Graph &G, NodeId N) {
  SmallVector<NodeId, 2> Result;
  auto Classes = G.stringListAttr(N, "_class");
  for (StringRef Class : Classes ? *Classes : SmallVector<StringRef, 2>())
    if (Class.consume_front("loc:@"))
      if (NodeId With = G.find(Class); With != NoNode && With != N)
        Result.push_back(With);
  sort(Result);
  Result.erase(llvm::unique(Result), Result.end());
  return Result;
}

} // namespace graft
