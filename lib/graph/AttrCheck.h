//===- lib/graph/AttrCheck.h - values of attributes, checked ----*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#ifndef GRAFT_LIB_GRAPH_ATTRCHECK_H
#define GRAFT_LIB_GRAPH_ATTRCHECK_H

#include "lib/graph/AttrWire.h"
#include "lib/ops/Ops.h"

#include "tensorflow/core/framework/attr_value.pb.h"

#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringRef.h"

#include <cstdint>
#include <optional>
#include <string>

namespace graft {

/// The kinds of values, by their fields in AttrValue. AttrValue.ListValue has
/// the same numbers, except for tensors and functions.
enum class AttrKind : uint8_t {
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

/// An attribute of the definition of an op.
struct WantedAttr {
  llvm::StringRef Name;
  const AttrDef *Def;
  const AttrLimit *Limit;
  AttrKind Is;
  bool IsList;

  explicit WantedAttr(const AttrDef &A);
};

/// The value of an attribute that types of arguments depend on.
struct AttrSlot {
  int64_t Number = 0;                 ///< A type or a number.
  llvm::SmallVector<uint8_t, 4> List; ///< Types.
};

/// Checks values of one attribute. Checks the usual encoding on the bytes.
/// Protobuf parses any other encoding.
class AttrCheck {
public:
  /// Stores the value in \p Kept unless \p Kept is null.
  AttrCheck(const WantedAttr &W, AttrSlot *Kept) : W(W), Kept(Kept) {}

  /// Returns true if \p Value has a usual encoding and is good.
  bool isGood(llvm::StringRef Value) const;
  /// Returns the fault of \p Value in any encoding, or "".
  std::string fault(llvm::StringRef Value) const;
  /// Returns the bytes of the tensor in \p Value if it has the usual encoding.
  static std::optional<llvm::StringRef> tensor(llvm::StringRef Value);

private:
  bool isGoodList(llvm::StringRef Value) const;
  void keep(const tensorflow::AttrValue &V) const;
  std::string typeFault(int Type) const;
  std::string stringFault(llvm::StringRef Text) const;
  std::string scalarFault(const tensorflow::AttrValue &V) const;
  std::string listFault(const tensorflow::AttrValue::ListValue &L) const;

  const WantedAttr &W;
  AttrSlot *Kept;
};

bool isUtf8(llvm::StringRef Text);

/// Returns the fault of the TensorProto \p Tensor, or "". \p Type is the type
/// that it must have, or 0 for any type. \p Strict is set for the value of a
/// Const.
std::string tensorFault(llvm::StringRef Tensor, unsigned Type, bool Strict);

/// Returns true if \p Value is empty or a list of strings.
bool isStringList(llvm::StringRef Value);

/// Returns true if \p Value, of an attribute that no op defines, is an
/// AttrValue.
bool isReadable(llvm::StringRef Value);

} // namespace graft

#endif // GRAFT_LIB_GRAPH_ATTRCHECK_H
