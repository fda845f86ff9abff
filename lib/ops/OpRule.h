//===- lib/ops/OpRule.h - what graft knows of an op -------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
// One entry for each op, at the end of the file of its family in
// lib/infer/rules: how the sizes, the small integers and the replication types
// of its outputs follow from its operands, and what else passes and analyses
// have to know of it.
//
//===----------------------------------------------------------------------===//

#ifndef GRAFT_LIB_OPS_OPRULE_H
#define GRAFT_LIB_OPS_OPRULE_H

#include "llvm/ADT/StringRef.h"

#include <cstdint>

namespace graft {

class SizeContext;
class TypeContext;

/// What holds of an op (a bit mask).
namespace trait {
enum : uint32_t {
  /// It may say of a result that it is all zeros because operands are: where it
  /// is no function that gives zeros of zeros, it sees to that itself. The
  /// results of all others lose the mark.
  KeepsZeros = 1 << 0,
  /// Its result is more than a function of true values.
  NotOfTrue = 1 << 1,
  /// Its operands may have different numbers of rows: it broadcasts none.
  TakesUnequalRows = 1 << 2,
  /// Its rule is asked although it has no result.
  ForEffect = 1 << 3,
  /// Its rule is asked whatever the operands are.
  TakesAnything = 1 << 4,
  /// It draws random numbers.
  Draws = 1 << 5,
  /// Its rule knows draws with a row for each example.
  DrawsRows = 1 << 6,
  /// Equal operands prove nothing of the results on several replicas.
  Opaque = 1 << 7,

  // A demand to reduce moves up through it, from a result to the operand that
  // the result is linear in.
  LinearInFirst = 1 << 8,   ///< Operand 0.
  LinearInSame = 1 << 9,    ///< The operand of the number of the result.
  LinearInEach = 1 << 10,   ///< Each one.
  LinearOfFloats = 1 << 11, ///< Operand 0, if both are floating-point numbers.

  // Where rows were concatenated along the batch, in another order.
  JoinsRows = 1 << 12,     ///< It did that.
  KeepsRowOrder = 1 << 13, ///< Rows stay those of the one operand that has any.
  OrdersRows = 1 << 14,    ///< Its rule looks at the orders itself.
  NeedsOrder = 1 << 15,    ///< It takes rows in the order of the true value.
  /// A row of the result may be several of operand 0, or a part of one.
  RegroupsRows = 1 << 16,

  // A number of rows that values determine.
  FindsRows = 1 << 17, ///< It gives the indices of rows.
  SendsRows = 1 << 18, ///< It sends rows to parts.

  // Of a variable with a policy of its own.
  ReadsVariable = 1 << 19, ///< It gives the value.
  AsksVariable = 1 << 20,  ///< It asks for no value.

  /// Its size and value rules ask if two sizes are the same one. Others look
  /// only at what is known of a size.
  ComparesSizes = 1 << 21,
  /// It may exist only once in a step, whatever it reads: summaries, prints,
  /// files, python functions. It reads merged values.
  Once = 1 << 22,
  /// A tensor array or a stack: its elements go where no edge leads.
  Handle = 1 << 23,
  ReadsSource = 1 << 24, ///< It takes an element of a queue or an iterator.

  // Of what replicas compute by themselves (LocalRuns).
  ReadsSizes = 1 << 25, ///< It reads sizes of its operands, no elements.
  /// Element by element on operands that are aligned: their sizes have to fit,
  /// and its output has as many elements.
  Elementwise = 1 << 26,
  /// Its output has as many elements for each row as its operands, or more.
  KeepsRows = 1 << 27,
  /// Sizes that values determine have to be equal.
  ComparesLengths = 1 << 28,
  /// What SizeOperands give is compared with ComparedOperands.
  ComparesWithSizes = 1 << 29,
  /// Operand 0 gives the sizes of the rows in the last operand.
  SizesOfRows = 1 << 30,
  /// Its output has some of the rows of operand 0, or others beside them: how
  /// many are claimed need not be how many one replica's rows give.
  AltersRows = 1u << 31,
};
} // namespace trait

/// Operands, as a mask.
template <typename... Index> constexpr uint16_t operands(Index... I) {
  return static_cast<uint16_t>(((1u << I) | ...));
}
inline constexpr uint16_t AllOperands = 0xffff;
/// Of SizeOperands: every one that is an integer.
inline constexpr uint16_t AnyInteger = AllOperands;
constexpr bool isOperand(uint16_t Mask, unsigned I) {
  return Mask == AllOperands || (I < 16 && (Mask >> I & 1) != 0);
}

/// What the elements of outputs are made of, if they are integers.
enum class ElementsOf : uint8_t {
  Operands,       ///< The elements of all operands.
  First,          ///< Those of operand 0.
  SamePort,       ///< Those of the operand with the output's number.
  Nothing,        ///< No number of rows.
  SizesOfFirst,   ///< The sizes of operand 0.
  SizesOfPort,    ///< The sizes of the operand with the output's number.
  FirstThenSizes, ///< Output 0: elements of operand 0; others: its sizes.
  Counts,         ///< Elements of operand 0, and how many there are.
  Range,          ///< All operands: their elements and how many there are.
};

/// An operand that says where elements of another tensor are.
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
  /// The sizes of its outputs; null: nothing but the attribute
  /// `_output_shapes`.
  void (*Sizes)(SizeContext &) = nullptr;
  /// The elements of its outputs, small integers; null: they are not known.
  void (*Values)(SizeContext &) = nullptr;
  /// Numbers of rows that are equal, whether the sizes have a rule or are what
  /// the file says.
  void (*Rows)(SizeContext &) = nullptr;
  /// The replication types of its outputs; null: there is no rule, they are
  /// Varying unless everything that it reads is equal on all replicas.
  void (*Type)(TypeContext &) = nullptr;
  /// What makes indices of the rows of one replica of local sizes, or takes
  /// such indices: row numbers, accidental hits. True if it gave the outputs
  /// their types. Null: it knows nothing of these.
  bool (*LocalIndices)(TypeContext &) = nullptr;
  /// In a graph with loops: whether what it reads besides its operands has a
  /// type. Null: it reads nothing else.
  bool (*IsReady)(const TypeContext &) = nullptr;
  uint32_t Is = 0; ///< Traits.
  /// Operands that all results are linear in, each by itself: where one of them
  /// is all zeros, so are the results.
  uint16_t ZerosOf = 0;

  // Of what replicas compute by themselves, with rows of their own (LocalRuns).

  /// Operands with integers that are sizes of outputs, or say where parts
  /// begin.
  uint16_t SizeOperands = 0;
  /// Those whose values say how many elements there are.
  uint16_t LengthOperands = 0;
  /// Those whose sizes have to fit.
  uint16_t ComparedOperands = 0;
  ElementsOf Elements = ElementsOf::Operands;
  IndexUse Looks = {};

  /// Of what works on rows one by one: a letter for each operand and each
  /// output, see RowOps.cpp.
  llvm::StringLiteral Inputs = "";
  llvm::StringLiteral Outputs = "";
};

/// The entry of \p Op, or one that says nothing.
const OpRule &ruleOf(llvm::StringRef Op);

/// The traits of \p Op: those of its entry, and what TensorFlow's registry
/// says.
uint32_t traitsOf(llvm::StringRef Op);

/// Ops that may exist only once in a step, whatever they read: summaries,
/// prints, file writes, queues, tables, readers, python functions. They read
/// merged values.
bool isOnceOp(llvm::StringRef Op);

/// Ops that draw random numbers (and so differ from copy to copy).
bool isRandomOp(llvm::StringRef Op);

} // namespace graft

#endif // GRAFT_LIB_OPS_OPRULE_H
