//===- lib/ops/OpTable.h - TensorFlow's op registry -------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
// A read-only table of TensorFlow's ops, generated from its registry by
// tools/scripts/gen_op_table.py. Nothing in it is written by hand. An op that
// is not in the table is legal in a graph; it only has no rules.
//
//===----------------------------------------------------------------------===//

#ifndef GRAFT_LIB_OPS_OPTABLE_H
#define GRAFT_LIB_OPS_OPTABLE_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"

#include <cstdint>
#include <string>

namespace graft {

/// TensorFlow's DataType numbers (tensorflow/core/framework/types.proto).
enum DataType : uint8_t {
  DT_INVALID = 0,
  DT_FLOAT = 1,
  DT_DOUBLE = 2,
  DT_INT32 = 3,
  DT_UINT8 = 4,
  DT_INT16 = 5,
  DT_INT8 = 6,
  DT_STRING = 7,
  DT_COMPLEX64 = 8,
  DT_INT64 = 9,
  DT_BOOL = 10,
  DT_BFLOAT16 = 14,
  DT_UINT16 = 17,
  DT_COMPLEX128 = 18,
  DT_HALF = 19,
  DT_RESOURCE = 20,
  DT_VARIANT = 21,
  DT_UINT32 = 22,
  DT_UINT64 = 23,
};

/// Adding this to a DataType gives the type of a reference to it.
inline constexpr unsigned RefTypeOffset = 100;

/// The newest version of graphs that TensorFlow reads.
extern const int GraphVersion;

/// Returns `float` for DT_FLOAT, `float ref` for a reference to one.
std::string typeName(unsigned Type);

bool isFloating(unsigned Type);
bool isComplex(unsigned Type);

/// Returns true if \p Op creates a variable.
bool isVariableOp(llvm::StringRef Op);

/// Returns true if \p Op reads elements from a queue or an iterator.
bool isBatchRead(llvm::StringRef Op);

/// One input or output of an op (OpDef.ArgDef).
struct ArgDef {
  const char *Name;
  uint8_t Type;             ///< DataType; 0: an attribute has the type.
  const char *TypeAttr;     ///< Attr that holds the type, or "".
  const char *NumberAttr;   ///< Attr that holds a repeat count, or "".
  const char *TypeListAttr; ///< Attr that holds a list of types, or "".
  bool IsRef;
};

/// The values that an attribute may have.
struct AttrLimit {
  bool HasMinimum;
  int8_t Minimum;      ///< The least int, or the least length of a list.
  uint64_t Types;      ///< Bit T: DataType T is allowed.
  const char *Strings; ///< Allowed strings, separated by |. "": all.

  bool allowsString(llvm::StringRef Value) const;
};

/// One attribute of an op (OpDef.AttrDef).
struct AttrDef {
  const char *Name;
  const char *Type; ///< "type", "int", "list(type)", ...
  bool HasDefault;
  uint8_t Limit;       ///< See limit().
  const char *Default; ///< The default in text form.

  const AttrLimit &limit() const;
};

/// The way in which an op changes a variable in place.
enum class UpdateKind : uint8_t {
  None,
  Apply,
  Assign,
  AssignAdd,
  Scatter,
  StridedSliceAssign,
  Count,
};

/// The inputs of an op that changes variables. Inputs 0..NumVars-1 are the
/// variables.
struct UpdateDef {
  UpdateKind Kind = UpdateKind::None;
  uint8_t NumVars = 0;
  int8_t Grad = -1;    ///< The value or gradient that is written, or -1.
  int8_t Indices = -1; ///< Row indices of a sparse update, or -1.
};

struct OpDef {
  enum : uint8_t {
    Stateful = 1,
    Commutative = 2,
    Aggregate = 4,
    AllowsUninitialized = 8,
    Deprecated = 16,
  };

  const char *Name;
  uint32_t FirstArg;
  uint16_t NumInputs;
  uint16_t NumOutputs;
  uint32_t FirstAttr;
  uint16_t NumAttrs;
  uint8_t Flags;
  uint16_t RemovedIn; ///< Graphs of this version or later cannot have it; or 0.

  bool isStateful() const { return Flags & Stateful; }
  llvm::ArrayRef<ArgDef> inputs() const;
  llvm::ArrayRef<ArgDef> outputs() const;
  llvm::ArrayRef<AttrDef> attrs() const;
  const AttrDef *attr(llvm::StringRef Name) const;
  /// Returns how this op changes variables, or kind None.
  UpdateDef update() const;
  /// Returns true if this op reads a variable without changing it
  /// (ReadVariableOp, ResourceGather, VarIsInitializedOp, ...).
  bool readsVariable() const;
  bool hasSharedName() const;
};

/// All ops, sorted by name.
llvm::ArrayRef<OpDef> allOps();

/// Returns the op called \p Name, or null.
const OpDef *findOp(llvm::StringRef Name);

} // namespace graft

#endif // GRAFT_LIB_OPS_OPTABLE_H
