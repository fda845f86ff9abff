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

/// The kinds of values, by their fields in AttrValue; in AttrValue.ListValue
/// the numbers are the same, but for tensors and functions.
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

/// An attribute that a definition has.
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

/// Looks at values of one attribute. What every writer gives is told from the
/// bytes; anything else goes through protobuf's own message.
class AttrCheck {
public:
  /// The value goes to \p Kept if that is not null.
  AttrCheck(const WantedAttr &W, AttrSlot *Kept) : W(W), Kept(Kept) {}

  /// Whether \p Value, of a usual form, is good.
  bool isGood(llvm::StringRef Value) const;
  /// What is wrong with \p Value, of any form; "" if nothing is.
  std::string fault(llvm::StringRef Value) const;
  /// The bytes of the tensor that \p Value is, if it has the usual form.
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

/// Why \p Tensor, a TensorProto, is none, or "". \p Type is the one that it has
/// to have, 0: any. \p Strict: it is the value of a constant.
std::string tensorFault(llvm::StringRef Tensor, unsigned Type, bool Strict);

/// Whether \p Value is empty or a list of strings.
bool isStringList(llvm::StringRef Value);

/// Whether \p Value, of an attribute that no definition knows, is an AttrValue.
bool isReadable(llvm::StringRef Value);

} // namespace graft

#endif // GRAFT_LIB_GRAPH_ATTRCHECK_H
