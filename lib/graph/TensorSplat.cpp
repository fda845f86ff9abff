//===- lib/graph/TensorSplat.cpp - constants of one value -------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "lib/graph/AttrWire.h"

#include "llvm/ADT/STLExtras.h"

using namespace llvm;

namespace graft {
namespace {

/// Returns the bytes of one of \p Count values in \p Bytes if all are equal.
StringRef commonPart(StringRef Bytes, size_t Count) {
  if (Count == 0 || Bytes.size() % Count != 0)
    return {};
  StringRef Part = Bytes.take_front(Bytes.size() / Count);
  return Bytes.drop_front(Part.size()) == Bytes.drop_back(Part.size())
             ? Part
             : StringRef();
}

/// Returns the number of values in a packed field of type \p Type.
size_t packedCount(unsigned Type, StringRef Bytes) {
  switch (Type) {
  case DT_FLOAT:
    return Bytes.size() / 4;
  case DT_DOUBLE:
    return Bytes.size() / 8;
  default: // varints, each of which ends with a byte below 0x80
    return llvm::count_if(
        Bytes, [](char C) { return static_cast<uint8_t>(C) < 0x80; });
  }
}

} // namespace

std::optional<std::string> resizeSplat(StringRef Value,
                                       ArrayRef<int64_t> Shape) {
  auto Old = tensorValue(Value);
  auto Tensor = bytesField(Value, AttrTensor);
  if (!Old || !Tensor || Old->NumElements <= 0)
    return std::nullopt;
  auto OldCount = static_cast<size_t>(Old->NumElements);
  size_t Count = 1;
  for (int64_t D : Shape)
    Count *= static_cast<size_t>(D);
  ShapeValue S;
  S.Dims.assign(Shape.begin(), Shape.end());
  std::string Result, Values;
  wire::appendInt(Result, TensorType, Old->Type);
  wire::appendBytes(Result, TensorShape, encodeShape(S));
  wire::Reader R(*Tensor);
  wire::Field F;
  unsigned Fields = 0;
  while (R.next(F)) {
    if (F.Number < TensorContent)
      continue;
    // One field has the values. A single value is repeated for all elements.
    if (++Fields > 1 || F.WireType != wire::Type::Bytes)
      return std::nullopt;
    if (F.Number == TensorContent) {
      StringRef One = commonPart(F.Bytes, OldCount);
      if (One.empty())
        return std::nullopt;
      for (size_t I = 0; I < Count; ++I)
        Values += One;
    } else {
      size_t Held = packedCount(Old->Type, F.Bytes);
      StringRef One = commonPart(F.Bytes, Held);
      if (One.empty() || (Held != 1 && Held != OldCount))
        return std::nullopt;
      Values = One.str();
    }
    wire::appendBytes(Result, F.Number, Values);
  }
  std::string Bytes;
  wire::appendBytes(Bytes, AttrTensor, Result);
  return Bytes;
}

} // namespace graft
