//===- lib/ops/OpRule.h - the rules of ops ----------------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
// One entry per op, at the end of the file of its family in lib/infer/rules:
// how the sizes, small integers and replication types of the outputs follow
// from the operands, and what else passes and analyses need to know.
//
//===----------------------------------------------------------------------===//

#ifndef GRAFT_LIB_OPS_OPRULE_H
#define GRAFT_LIB_OPS_OPRULE_H

#include "llvm/ADT/StringRef.h"

#include <cstdint>

namespace graft {

class SizeContext;
class TypeContext;

/// Properties of an op (a bit mask).
namespace trait {
enum : uint32_t {
  /// Its rule may mark a result as all zeros because operands are. If the op
  /// does not map zeros to zeros, the rule accounts for that. Results of all
  /// other ops lose the mark.
  KeepsZeros = 1 << 0,
  /// Trivially replicated operands do not make its results so.
  NotOfTrue = 1 << 1,
  /// Its operands may have different numbers of rows, as it never broadcasts.
  TakesUnequalRows = 1 << 2,
  /// Its rule is asked although it has no result.
  ForEffect = 1 << 3,
  /// Its rule is asked whatever the operands are.
  TakesAnything = 1 << 4,
  /// It draws random numbers.
  Draws = 1 << 5,
  /// Its rule handles samples with a row for each example.
  DrawsRows = 1 << 6,
  /// Equal operands do not prove equal results on several replicas.
  Opaque = 1 << 7,

  // A request to reduce moves up through the op, from a result to the operand
  // in which the result is linear.
  LinearInFirst = 1 << 8,   ///< Operand 0.
  LinearInSame = 1 << 9,    ///< The operand with the number of the result.
  LinearInEach = 1 << 10,   ///< Each operand.
  LinearOfFloats = 1 << 11, ///< Operand 0, if both are floating-point numbers.

  // Rows that were concatenated along the batch axis, and so have another
  // order.
  JoinsRows = 1 << 12,     ///< It concatenates them.
  KeepsRowOrder = 1 << 13, ///< Its rows have the order of its operands.
  OrdersRows = 1 << 14,    ///< Its rule looks at the orders itself.
  NeedsOrder = 1 << 15,    ///< It needs rows in the global order.
  /// A row of the result may be several of operand 0, or a part of one.
  RegroupsRows = 1 << 16,

  // Data-dependent row counts.
  FindsRows = 1 << 17, ///< It gives the indices of rows.
  SendsRows = 1 << 18, ///< It sends rows to parts.

  // Ops on a variable with a policy of its own.
  ReadsVariable = 1 << 19, ///< It reads the value.
  AsksVariable = 1 << 20,  ///< It does not read the value.

  /// Its size and value rules ask if two sizes are one size variable. Other
  /// rules look only at what is known of a size.
  ComparesSizes = 1 << 21,
  /// It may exist only once in a step, whatever it reads: summaries, prints,
  /// files, python functions. It reads merged values.
  Once = 1 << 22,
  /// A tensor array or a stack: no edge shows where its elements go.
  Handle = 1 << 23,
  ReadsSource = 1 << 24, ///< It takes an element of a queue or an iterator.

  // For values that each replica computes from its own rows (LocalRuns).
  ReadsSizes = 1 << 25, ///< It reads sizes of its operands, no elements.
  /// It works element by element on aligned operands: their sizes must be
  /// compatible, and its output has as many elements.
  Elementwise = 1 << 26,
  /// Its output has as many elements for each row as its operands, or more.
  KeepsRows = 1 << 27,
  /// Data-dependent sizes of its operands must be equal.
  ComparesLengths = 1 << 28,
  /// The sizes in SizeOperands are compared with those of ComparedOperands.
  ComparesWithSizes = 1 << 29,
  /// Operand 0 gives the sizes of the rows in the last operand.
  SizesOfRows = 1 << 30,
  /// It drops or adds rows of operand 0, so its declared row count need not be
  /// the one that follows from the rows of one replica.
  AltersRows = 1u << 31,
};
} // namespace trait

/// Returns a mask of operands.
template <typename... Index> constexpr uint16_t operands(Index... I) {
  return static_cast<uint16_t>(((1u << I) | ...));
}
inline constexpr uint16_t AllOperands = 0xffff;
/// For SizeOperands: each operand that is an integer.
inline constexpr uint16_t AnyInteger = AllOperands;
constexpr bool isOperand(uint16_t Mask, unsigned I) {
  return Mask == AllOperands || (I < 16 && (Mask >> I & 1) != 0);
}

/// The source of the elements of outputs, if they are integers.
enum class ElementsOf : uint8_t {
  Operands,       ///< The elements of all operands.
  First,          ///< The elements of operand 0.
  SamePort,       ///< The elements of the operand with the output's number.
  Nothing,        ///< Nothing that counts rows.
  SizesOfFirst,   ///< The sizes of operand 0.
  SizesOfPort,    ///< The sizes of the operand with the output's number.
  FirstThenSizes, ///< Output 0: elements of operand 0; others: its sizes.
  Counts,         ///< Elements of operand 0, and the number of them.
  Range,          ///< Elements of all operands, and the number of them.
};

/// An operand that holds places of elements in another tensor.
struct IndexUse {
  enum ByTy : uint8_t {
    Axis,     ///< Along one axis: that of GatherV2, else the first.
    LastAxis, ///< Along the last axis.
    Columns,  ///< A column for each of the first axes.
    /// Along the first axis, by numbers that count rows of another tensor.
    OtherRows,
  };
  int8_t Index = -1; ///< The operand with the indices; -1: none.
  int8_t Table = -1; ///< The operand with the elements; -1: output 0.
  ByTy By = Axis;
};

struct OpRule {
  llvm::StringLiteral Op = "";
  /// Infers the sizes of the outputs; null: only the attribute `_output_shapes`
  /// says them.
  void (*Sizes)(SizeContext &) = nullptr;
  /// Infers the elements of the outputs, small integers; null: they are not
  /// known.
  void (*Values)(SizeContext &) = nullptr;
  /// Unifies row counts that are equal, whether the sizes have a rule or come
  /// from the file.
  void (*Rows)(SizeContext &) = nullptr;
  /// Infers the replication types of the outputs; null: there is no rule, they
  /// are Varying unless everything that the op reads is equal on all replicas.
  void (*Type)(TypeContext &) = nullptr;
  /// Infers the types of the outputs if the op makes local row indices of local
  /// sizes, or takes local indices: row numbers, accidental hits. Returns true
  /// if it did. Null: the op knows none.
  bool (*LocalIndices)(TypeContext &) = nullptr;
  /// In a graph with loops: returns true if everything that the rule reads
  /// besides the operands has a type. Null: it reads nothing else.
  bool (*IsReady)(const TypeContext &) = nullptr;
  uint32_t Is = 0; ///< Traits.
  /// Operands in which all results are linear, each by itself: if one of them
  /// is all zeros, so are the results.
  uint16_t ZerosOf = 0;

  // For values that each replica computes from its own rows (LocalRuns).

  /// Integer operands that are sizes of outputs or begins of parts.
  uint16_t SizeOperands = 0;
  /// Operands whose values determine the number of elements.
  uint16_t LengthOperands = 0;
  /// Operands whose sizes must be compatible.
  uint16_t ComparedOperands = 0;
  ElementsOf Elements = ElementsOf::Operands;
  IndexUse Looks = {};

  /// For ops that work on rows one by one: a letter for each operand and each
  /// output, see RowOps.cpp.
  llvm::StringLiteral Inputs = "";
  llvm::StringLiteral Outputs = "";
};

/// Returns the entry of \p Op, or an empty one.
const OpRule &ruleOf(llvm::StringRef Op);

/// Returns the traits of \p Op: those of its entry, and those that TensorFlow's
/// registry implies.
uint32_t traitsOf(llvm::StringRef Op);

/// Returns true for ops that may exist only once in a step, whatever they read:
/// summaries, prints, file writes, queues, tables, readers, python functions.
/// They read merged values.
bool isOnceOp(llvm::StringRef Op);

/// Returns true for ops that draw random numbers and so differ between copies.
bool isRandomOp(llvm::StringRef Op);

} // namespace graft

#endif // GRAFT_LIB_OPS_OPRULE_H
