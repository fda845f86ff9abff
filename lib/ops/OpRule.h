//===- lib/ops/OpRule.h - the rules of ops ----------------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
// An OpRule describes one op: how the sizes, small integers and replication
// types of its outputs follow from the operands, and its other properties. The
// entries are at the end of the file of each op family in lib/infer/rules.
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
  /// Its rule decides if all-zero operands make a result all zeros. Results of
  /// all other ops lose the mark "all zeros".
  KeepsZeros = 1 << 0,
  /// Its rule also infers the results of trivially replicated operands. Results
  /// of other ops are then trivially replicated, too.
  NotOfTrue = 1 << 1,
  /// Its operands may have different numbers of rows, as it never broadcasts.
  TakesUnequalRows = 1 << 2,
  /// Its rule is applied although the op has no result.
  ForEffect = 1 << 3,
  /// Its rule is applied before any check of the operands.
  TakesAnything = 1 << 4,
  /// It draws random numbers.
  Draws = 1 << 5,
  /// Its rule handles samples with a row for each example.
  DrawsRows = 1 << 6,
  /// Equal operands do not prove equal results on several replicas.
  Opaque = 1 << 7,

  // A reduction of a result may move up through the op, to the operand in which
  // the result is linear. Each trait names this operand.
  LinearInFirst = 1 << 8,   ///< Operand 0.
  LinearInSame = 1 << 9,    ///< The operand with the number of the result.
  LinearInEach = 1 << 10,   ///< Each operand.
  LinearOfFloats = 1 << 11, ///< Operand 0, if it and the result are floats.

  // Concatenation along the batch axis on each replica permutes the rows.
  JoinsRows = 1 << 12,     ///< The op concatenates rows.
  KeepsRowOrder = 1 << 13, ///< Its result has the row order of its operands.
  OrdersRows = 1 << 14,    ///< Its rule infers the row order of its results.
  NeedsOrder = 1 << 15,    ///< It needs rows in the global order.
  /// It splits or merges rows of operand 0, as Reshape does.
  RegroupsRows = 1 << 16,

  // Data-dependent row counts.
  FindsRows = 1 << 17, ///< It computes indices of rows, as Where does.
  SendsRows = 1 << 18, ///< It routes rows, as DynamicPartition does.

  // Ops on a variable with a policy of its own.
  ReadsVariable = 1 << 19, ///< It reads the value.
  AsksVariable = 1 << 20,  ///< It does not read the value.

  /// Its size and value rules test if two sizes are the same size variable.
  /// Other rules use only the known properties of a size.
  ComparesSizes = 1 << 21,
  /// It may exist only once in a step, whatever it reads: summaries, prints,
  /// files, python functions. It reads merged values.
  Once = 1 << 22,
  /// It uses a tensor array or a stack, whose elements follow no edge.
  Handle = 1 << 23,
  ReadsSource = 1 << 24, ///< It takes an element of a queue or an iterator.

  // For values that each replica computes from its own rows (LocalRuns).
  ReadsSizes = 1 << 25, ///< It reads sizes of its operands, no elements.
  /// It works element by element on aligned operands of compatible sizes. Its
  /// output has the same number of elements.
  Elementwise = 1 << 26,
  /// A row of its output has at least as many elements as a row of its
  /// operands.
  KeepsRows = 1 << 27,
  /// Data-dependent sizes of its operands must be equal.
  ComparesLengths = 1 << 28,
  /// The sizes that SizeOperands hold are compared with the sizes of
  /// ComparedOperands.
  ComparesWithSizes = 1 << 29,
  /// Operand 0 lists the sizes of a tensor, and the last operand has as many
  /// rows as the first of these sizes: Conv2DBackpropInput.
  SizesOfRows = 1 << 30,
  /// It drops or adds rows of operand 0. The row count that the graph declares
  /// may thus differ from the row count of one replica.
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
  Nothing,        ///< No operand: the elements do not depend on row counts.
  SizesOfFirst,   ///< The sizes of operand 0.
  SizesOfPort,    ///< The sizes of the operand with the output's number.
  FirstThenSizes, ///< Output 0: elements of operand 0; others: its sizes.
  Counts,         ///< Elements of operand 0, and the number of them.
  Range,          ///< Elements of all operands, and the number of them.
};

/// An operand that holds indices into another tensor.
struct IndexUse {
  enum ByTy : uint8_t {
    Axis,     ///< Along the axis operand of GatherV2, or along the first axis.
    LastAxis, ///< Along the last axis.
    Columns,  ///< One column for each of the first axes, as in GatherNd.
    /// Along the first axis. The indices are row numbers of another tensor.
    OtherRows,
  };
  int8_t Index = -1; ///< The operand with the indices; -1: none.
  int8_t Table = -1; ///< The operand with the elements; -1: output 0.
  ByTy By = Axis;
};

struct OpRule {
  llvm::StringLiteral Op = "";
  /// Infers the sizes of the outputs. Null: the sizes are known only from the
  /// attribute `_output_shapes`.
  void (*Sizes)(SizeContext &) = nullptr;
  /// Infers the elements of outputs that are small integers. Null: the elements
  /// are not known.
  void (*Values)(SizeContext &) = nullptr;
  /// Unifies equal row counts, whether the sizes come from a rule or from the
  /// file.
  void (*Rows)(SizeContext &) = nullptr;
  /// Infers the replication types of the outputs. Null: the outputs are Varying
  /// unless all values that the op reads are equal on all replicas.
  void (*Type)(TypeContext &) = nullptr;
  /// Infers the types of the outputs if the op makes local row indices from
  /// local sizes, or takes local row indices or accidental hits. Returns true
  /// if it inferred them. Null: the op has no such case.
  bool (*LocalIndices)(TypeContext &) = nullptr;
  /// In a graph with loops: returns true if all values that the rule reads,
  /// besides the operands, have a type. Null: the rule reads only operands.
  bool (*IsReady)(const TypeContext &) = nullptr;
  uint32_t Is = 0; ///< Traits.
  /// Operands such that all results are linear in each of them. If one of these
  /// operands is all zeros, the results are all zeros, too.
  uint16_t ZerosOf = 0;

  // For values that each replica computes from its own rows (LocalRuns).

  /// Integer operands that are sizes of outputs or offsets of slices.
  uint16_t SizeOperands = 0;
  /// Operands whose values determine the number of elements.
  uint16_t LengthOperands = 0;
  /// Operands whose sizes must be compatible.
  uint16_t ComparedOperands = 0;
  ElementsOf Elements = ElementsOf::Operands;
  IndexUse Looks = {};

  /// For ops that work on single rows: a letter for each operand and each
  /// output. RowOps.cpp explains the letters.
  llvm::StringLiteral Inputs = "";
  llvm::StringLiteral Outputs = "";
};

/// Returns the entry of \p Op, or an empty one.
const OpRule &ruleOf(llvm::StringRef Op);

/// Returns the traits of \p Op: the traits of its entry and the traits that
/// TensorFlow's registry implies.
uint32_t traitsOf(llvm::StringRef Op);

/// Returns true for ops that may exist only once in a step, whatever they read:
/// summaries, prints, file writes, queues, tables, readers, python functions.
/// They read merged values.
bool isOnceOp(llvm::StringRef Op);

/// Returns true for ops that draw random numbers and so differ between copies.
bool isRandomOp(llvm::StringRef Op);

} // namespace graft

#endif // GRAFT_LIB_OPS_OPRULE_H
