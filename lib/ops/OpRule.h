//===- lib/ops/OpRule.h - what graft knows of an op -------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
// One entry for each op, in the file of its family in lib/infer/rules: how the
// sizes, the small integers and the replication types of its outputs follow
// from its operands, and what else passes and analyses have to know of it. An
// op without an entry has no rule: its result is Varying unless everything that
// it reads is equal on all replicas.
//
//===----------------------------------------------------------------------===//

#ifndef GRAFT_LIB_OPS_OPRULE_H
#define GRAFT_LIB_OPS_OPRULE_H

#include "llvm/ADT/StringRef.h"

#include <cstdint>

namespace graft {

class SizeContext;
class TypeContext;

enum class TypeRule : uint8_t {
  None, ///< Varying, unless all inputs are Replicated.
#define GRAFT_TYPE_RULE(Name, Traits) Name,
#include "lib/infer/rules/RuleFamilies.def"
};

/// What holds of an op (a bit mask).
namespace trait {
enum : uint16_t {
  Plain = 0,
  /// It may say of a result that it is all zeros because operands are: where it
  /// is no function that gives zeros of zeros, it sees to that itself. The
  /// results of all others lose the mark.
  KeepsZeros = 1,
  /// Its result is more than a function of true values.
  NotOfTrue = 2,
  /// Its operands may have different numbers of rows: it broadcasts none.
  TakesUnequalRows = 4,
  /// Its size and value rules ask if two sizes are the same one. Others look
  /// only at what is known of a size.
  ComparesSizes = 8,
  /// It may exist only once in a step, whatever it reads: summaries, prints,
  /// files, python functions. It reads merged values.
  Once = 16,
};
} // namespace trait

struct OpRule {
  llvm::StringLiteral Op = "";
  /// The sizes of its outputs; null: nothing but the attribute
  /// `_output_shapes`.
  void (*Sizes)(SizeContext &) = nullptr;
  /// The elements of its outputs, small integers; null: they are not known.
  void (*Values)(SizeContext &) = nullptr;
  /// Numbers of rows that are equal, whether the sizes have a rule or are what
  /// the file says.
  void (*Rows)(SizeContext &) = nullptr;
  TypeRule Type = TypeRule::None;
  uint16_t Is = trait::Plain;
  /// Of what works on rows one by one: a letter for each operand and each
  /// result, see RowOps.cpp.
  llvm::StringLiteral Inputs = "";
  llvm::StringLiteral Outputs = "";
};

/// The entry of \p Op, or one that says nothing.
const OpRule &ruleOf(llvm::StringRef Op);

/// Ops that may exist only once in a step, whatever they read: summaries,
/// prints, file writes, queues, tables, readers, python functions. They read
/// merged values.
bool isOnceOp(llvm::StringRef Op);

/// Ops that draw random numbers (and so differ from copy to copy).
bool isRandomOp(llvm::StringRef Op);

/// The traits of \p Rule.
uint8_t traitsOf(TypeRule Rule);

} // namespace graft

#endif // GRAFT_LIB_OPS_OPRULE_H
