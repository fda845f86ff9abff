//===- lib/infer/rules/OpRules.h - families of ops --------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
// Which rule gives the shapes of an op's outputs, and which rule gives their
// replication types. The table is OpRules.def; an op that it does not list has
// no rule, and its result is Varying unless everything that it reads is equal
// on all replicas.
//
//===----------------------------------------------------------------------===//

#ifndef GRAFT_LIB_INFER_RULES_OPRULES_H
#define GRAFT_LIB_INFER_RULES_OPRULES_H

#include "lib/graph/Graph.h"

#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringRef.h"

#include <cstdint>
#include <optional>

namespace graft {

enum class ShapeRule : uint8_t {
  None, ///< Nothing but the attribute `_output_shapes`.
#define GRAFT_SHAPE_RULE(Name) Name,
#include "lib/infer/rules/RuleFamilies.def"
};

/// How the elements of a small integer tensor follow from those of its inputs.
enum class ValueRule : uint8_t {
  None, ///< They are not known.
#define GRAFT_VALUE_RULE(Name) Name,
#include "lib/infer/rules/RuleFamilies.def"
};

enum class TypeRule : uint8_t {
  None, ///< Varying, unless all inputs are Replicated.
#define GRAFT_TYPE_RULE(Name, Traits) Name,
#include "lib/infer/rules/RuleFamilies.def"
};

/// What holds of all ops of a TypeRule (a bit mask).
namespace trait {
enum : uint8_t {
  Plain = 0,
  /// It may say of a result that it is all zeros because operands are: where it
  /// is no function that gives zeros of zeros, it sees to that itself. The
  /// results of all others lose the mark.
  KeepsZeros = 1,
  /// Its result is more than a function of true values.
  NotOfTrue = 2,
  /// Its operands may have different numbers of rows: it broadcasts none.
  TakesUnequalRows = 4,
};
} // namespace trait

/// The traits of \p Rule.
uint8_t traitsOf(TypeRule Rule);

struct OpRules {
  ShapeRule Shape = ShapeRule::None;
  TypeRule Type = TypeRule::None;
  /// Of TypeRule::Rows: a letter for each operand and each result.
  const char *Inputs = nullptr;
  const char *Outputs = nullptr;
  ValueRule Values = ValueRule::None;
  /// Whether its size and value rules ask if two sizes are the same one. Others
  /// look only at what is known of a size.
  bool ComparesSizes = false;
};

/// The rules of \p Op.
OpRules rulesOf(llvm::StringRef Op);

/// The letter of number \p I in \p Letters, which are those of TypeRule::Rows:
/// the last one for all that follow; and the digit after it.
std::pair<char, int> letterOf(llvm::StringRef Letters, unsigned I);

/// How many of its last axes an op of TypeRule::PerVector mixes: the diagonals
/// of a band are a matrix.
unsigned mixedAxes(const Graph &G, NodeId N);

/// Ops that may exist only once in a step, whatever they read: summaries,
/// prints, file writes, queues, tables, readers, python functions. They read
/// merged values.
bool isOnceOp(llvm::StringRef Op);

/// Ops that draw random numbers (and so differ from copy to copy).
bool isRandomOp(llvm::StringRef Op);

/// An equation of Einsum, "ab,bc->ac": one letter for each axis.
struct Equation {
  llvm::SmallVector<llvm::StringRef, 2> Inputs;
  llvm::StringRef Output;
};

/// Reads \p Text, which stays in use. None for what is not simple: an ellipsis,
/// an axis that one tensor has twice, a letter that only the result has.
std::optional<Equation> parseEquation(llvm::StringRef Text, unsigned NumInputs);

} // namespace graft

#endif // GRAFT_LIB_INFER_RULES_OPRULES_H
