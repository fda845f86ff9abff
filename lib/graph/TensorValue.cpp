//===- lib/graph/TensorValue.cpp - constants --------------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "lib/graph/AttrWire.h"

#include "llvm/ADT/bit.h"
#include "llvm/Support/MathExtras.h"

#include <cmath>

using namespace llvm;

namespace graft {
namespace {

unsigned integerSize(unsigned Type) {
  return Type == DT_INT64 ? 8 : Type == DT_INT32 ? 4 : 0;
}

/// Returns true if all bytes are zero: the first byte is zero, and all bytes
/// are equal.
bool isZero(StringRef Bytes) {
  return Bytes.empty() ||
         (Bytes[0] == 0 && Bytes.drop_front() == Bytes.drop_back());
}

} // namespace

std::optional<TensorValue> constValue(const Graph &G, NodeId N,
                                      int64_t MaxInts) {
  auto Value = G.attr(N, "value");
  return Value ? tensorValue(*Value, MaxInts) : std::nullopt;
}

std::optional<TensorValue> tensorValue(StringRef Value, int64_t MaxInts) {
  auto Tensor = bytesField(Value, AttrTensor);
  if (!Tensor)
    return std::nullopt;
  TensorValue T;
  StringRef Content;
  T.AllZero = true;
  wire::Reader R(*Tensor);
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
      T.AllZero &= isZero(Content);
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
               static_cast<int64_t>(T.Ints.size() + Values.size()) <= MaxInts)
          Values.push_back(static_cast<int64_t>(V));
      }
      T.AllZero &= llvm::all_of(Values, [](int64_t V) { return V == 0; });
      T.Ints.append(Values.begin(), Values.end());
      break;
    }
    default:
      // The other value fields, packed or not, are zero if all their bytes are
      // zero.
      if (F.WireType == wire::Type::Bytes)
        T.AllZero &= isZero(F.Bytes);
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
  // With fewer values than elements, the last value repeats. Without values all
  // elements are zero (tensorflow/core/framework/tensor.cc).
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
  auto Value = bytesField(*G.attr(N, "value"), AttrTensor);
  wire::Reader R(*Value);
  wire::Field F;
  while (R.next(F)) {
    if (F.Number != TensorFloat && F.Number != TensorDouble &&
        F.Number != TensorHalf && F.Number != TensorContent &&
        F.Number != TensorComplex && F.Number != TensorDoubleComplex)
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
    // A complex number has a value only if its imaginary part is 0.
    case DT_COMPLEX64:
      if (Bits >> 32 != 0)
        return std::nullopt;
      return llvm::bit_cast<float>(static_cast<uint32_t>(Bits));
    case DT_COMPLEX128:
      if (!isZero(F.Bytes.drop_front(std::min<size_t>(F.Bytes.size(), 8))))
        return std::nullopt;
      return llvm::bit_cast<double>(Bits);
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

std::string encodeStringTensor(StringRef Value) {
  std::string Field;
  wire::appendBytes(Field, TensorString, Value);
  return encodeTensor(DT_STRING, {}, Field);
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
    case DT_COMPLEX64: {
      Number = TensorComplex;
      const float Parts[] = {Single, 0.0F};
      Packed.append(reinterpret_cast<const char *>(Parts), sizeof Parts);
      break;
    }
    case DT_COMPLEX128: {
      Number = TensorDoubleComplex;
      const double Parts[] = {V, 0.0};
      Packed.append(reinterpret_cast<const char *>(Parts), sizeof Parts);
      break;
    }
    case DT_HALF:
    case DT_BFLOAT16: {
      // Values are powers of the replica count and small numbers; bf16 is the
      // upper half of a float, fp16 is rebiased with round to nearest.
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

} // namespace graft
