//===- lib/infer/rules/Rules.h - rules that families share ------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
// A rule infers properties of the outputs of one node. The entries of ops are
// at the end of each family's file; Families.def lists the files.
//
//===----------------------------------------------------------------------===//

#ifndef GRAFT_LIB_INFER_RULES_RULES_H
#define GRAFT_LIB_INFER_RULES_RULES_H

#include "lib/infer/sizes/SizeContext.h"
#include "lib/infer/types/TypeContext.h"
#include "lib/ops/OpRule.h"
#include "lib/ops/Ops.h"

#include "llvm/ADT/ArrayRef.h"

namespace graft {

namespace families {
#define GRAFT_FAMILY(Name) llvm::ArrayRef<OpRule> Name();
#include "lib/infer/rules/Families.def"
} // namespace families

/// Returns the entry of \p Op: the fields that \p Own sets, the other fields of
/// \p Like, and the traits of both.
constexpr OpRule entry(llvm::StringLiteral Op, OpRule Like, OpRule Own = {}) {
  auto Take = [](auto &Mine, auto Its, auto None) {
    if (Its != None)
      Mine = Its;
  };
  Like.Op = Op;
  Like.Is |= Own.Is;
  Take(Like.Sizes, Own.Sizes, nullptr);
  Take(Like.Values, Own.Values, nullptr);
  Take(Like.Rows, Own.Rows, nullptr);
  Take(Like.Type, Own.Type, nullptr);
  Take(Like.LocalIndices, Own.LocalIndices, nullptr);
  Take(Like.IsReady, Own.IsReady, nullptr);
  Take(Like.ZerosOf, Own.ZerosOf, 0);
  Take(Like.SizeOperands, Own.SizeOperands, 0);
  Take(Like.LengthOperands, Own.LengthOperands, 0);
  Take(Like.ComparedOperands, Own.ComparedOperands, 0);
  Take(Like.Elements, Own.Elements, ElementsOf::Operands);
  if (Own.Looks.Index >= 0)
    Like.Looks = Own.Looks;
  if (!Own.Inputs.empty())
    Like.Inputs = Own.Inputs;
  if (!Own.Outputs.empty())
    Like.Outputs = Own.Outputs;
  return Like;
}

constexpr IndexUse indexes(int Index, int Table,
                           IndexUse::ByTy By = IndexUse::Axis) {
  return {static_cast<int8_t>(Index), static_cast<int8_t>(Table), By};
}

/// Returns letter \p I of \p Letters (see RowOps.cpp) and the digit after it.
/// Returns the last letter if there are fewer.
std::pair<char, int> letterOf(llvm::StringRef Letters, unsigned I);

/// Returns the number of last axes that \p N, an op on vectors, mixes. This is
/// 2 if a MatrixDiag may read several diagonals as a matrix, otherwise 1.
unsigned mixedAxes(const Graph &G, NodeId N);

/// An equation of Einsum, "ab,bc->ac": one letter for each axis. The axes of an
/// ellipsis are '0', '1', ... from the last one; they are broadcast.
struct Equation {
  llvm::SmallVector<std::string, 2> Inputs;
  std::string Output;

  static bool isBroadcast(char Letter) {
    return Letter >= '0' && Letter <= '9';
  }
};

/// Parses the equation of an Einsum whose operands have \p Ranks (-1: unknown).
/// Returns none if a tensor has a letter twice, a letter is only in the result,
/// or the result lacks the ellipsis.
std::optional<Equation> parseEquation(llvm::StringRef Text,
                                      llvm::ArrayRef<int> Ranks);

namespace sizes {

/// Every output has the shape of operand 0.
void same(SizeContext &C);
/// All operands and output 0 have the same shape.
void sameAll(SizeContext &C);
/// The result has the shape of operand 0. For a list, the result is a list with
/// elements of the same shape.
void zerosLike(SizeContext &C);
/// Output 0 has the shape of operand 1.
void sameAsSecond(SizeContext &C);
void scalar(SizeContext &C);
void broadcast(SizeContext &C);
/// Output 0 has the shape of the values between which a condition selects.
void select(SizeContext &C);
/// The outputs are the shapes of the operands, as values.
void shape(SizeContext &C);
/// Operand \p I is the shape of output 0.
template <unsigned I> void fromSizes(SizeContext &C) {
  if (Dims V = C.val(I))
    C.setShape(0, *V);
}
/// The attribute `shape` is the shape of output 0.
void fromAttr(SizeContext &C);
void pool(SizeContext &C);
/// Infers the shape of a stitch of all rows that a DynamicPartition sent to
/// parts, or the elements of a stitch of integers.
void stitch(SizeContext &C);
void unsortedSegment(SizeContext &C);
/// Infers the shapes of an element of a queue or an iterator.
void source(SizeContext &C);

// Elements of arrays, stacks and lists (Loops.cpp).

/// Sets the shape of output 0: size \p First, followed by sizes \p Rest.
void setRows(SizeContext &C, DimId First, llvm::ArrayRef<DimId> Rest);
/// Sets the shape of output 0, the elements of operand 0 with the indices in
/// operand 1.
void gatherElements(SizeContext &C);
/// Sets the value of output \p Port to the integers that operand 0 holds.
void setHeld(SizeContext &C, unsigned Port);

/// Returns the axis of the channels in a tensor of rank \p Rank.
size_t channelAxis(const SizeContext &C, size_t Rank);

// Rules for OpRule::Rows.

/// Operand 0 and each output have equally many rows along axis 0.
void sameRows(SizeContext &C);
/// Outputs have the axes of operand 0, except for the last \p Mixed ones.
void sameLead(SizeContext &C, size_t Mixed);
template <unsigned Mixed> void sameLead(SizeContext &C) { sameLead(C, Mixed); }

} // namespace sizes

namespace values {

/// Outputs have the elements of operand 0, in their order.
void same(SizeContext &C);
/// The result is a number that may be equal on all replicas, such as a greatest
/// length.
void shared(SizeContext &C);
/// Returns one element of the result of \p Op on two integers.
DimId arithmeticElement(SizeContext &C, llvm::StringRef Op, unsigned Slot,
                        DimId X, DimId Y);

} // namespace values

namespace types {

/// For OpRule::IsReady: returns true if the elements of the array, the stack or
/// the list in operand 0 have a type.
bool isElementReady(const TypeContext &C);

/// Returns the type of operand \p I, such as a length. Returns Varying with the
/// reason \p Why if the operand may differ between replicas.
ReplicationType equalOnReplicas(TypeContext &C, unsigned I,
                                const llvm::Twine &Why);
/// Returns the type of operand \p I, which holds one or several indices of
/// elements of an array or a list. Returns Varying if replicas may access
/// different elements.
ReplicationType indexOfElement(TypeContext &C, unsigned I);
/// Returns the type of tensors of type \p X stacked along a new axis 0.
ReplicationType behindNewAxis(ReplicationType X);

/// Returns true if node \p Sum reduces the unknown axes along which an operand
/// was broadcast (BroadcastGradientArgs), and axis 0 is not one of these.
bool keepsFirstAxis(const TypeContext &C, NodeId Sum);
/// Returns true if the lookup at hand selects rows of operand 0 along axis 0,
/// each by one index.
bool takesRows(const TypeContext &C);

/// Sets the types of the results of the node at hand.
using Rule = void(TypeContext &C);
/// Sets the types of the results of a node that makes or reads local row
/// indices. Returns false for any other node.
using IndexRule = bool(TypeContext &C);
/// Returns true if all tensors that a rule reads besides operands have types.
using ReadyRule = bool(const TypeContext &C);

Rule source, pass, l2Loss, ensureShape, alongAxes, alongAxesNonLinear,
    reverseSequence, toBlocks, fromBlocks, whole, zeros, ones, fill, tile,
    random, hits, perExample, linearRows, gradSecond, perVector, perMatrix,
    perVolume;
IndexRule passIndices, rangeIndices, gatherIndices, gatherNdIndices,
    scatterNdIndices, unsortedSegmentSumIndices, stitchIndices, tileIndices,
    wholeIndices, sparseToDenseIndices, entryValues, entryProducts, entrySums,
    entryAxes, entryMatrices, entryColumns, entryLookups, gatherDistinct,
    sumsOfDistinct, reshapeDistinct;

/// Returns the type of the sum of \p Operands; Varying if they cannot be added.
ReplicationType sumOf(TypeContext &C, llvm::ArrayRef<unsigned> Operands);
/// Returns the type of the product of operands \p I and \p J, which have types
/// \p X and \p Y. If \p Sign is -1, returns the type of the quotient.
ReplicationType productOf(TypeContext &C, unsigned I, ReplicationType X,
                          unsigned J, ReplicationType Y, int Sign = 1);
/// Returns the type \p Rows for a tensor whose shape is operand 0. Returns
/// Varying if Rows is sharded and the shape is not local, or if Rows is not
/// sharded and the shape is not global.
ReplicationType ofSizes(TypeContext &C, ReplicationType Rows);
/// Returns the type of a function of the rows of all replicas.
ReplicationType ofAllRows(TypeContext &C);
/// Returns the tensor to whose rows the row numbers of \p N refer.
Endpoint rowsNumbered(const TypeContext &C, NodeId N);
/// Returns true if the row numbers \p Numbers refer to \p Rows local rows.
bool numbersRows(const TypeContext &C, const ReplicationType &Numbers,
                 std::optional<Sym> Rows);
/// Returns the type of \p X gathered from all replicas. \p X has the distinct
/// values of each replica, or their sums. Returns Varying for any other X.
ReplicationType gatheredDistinct(TypeContext &C, const ReplicationType &X);
/// Returns true if operands \p Indices, \p Values and \p Shape are a sparse
/// tensor with the entries of local rows. Sets \p Rows to a tensor with these
/// rows.
bool isOfEntries(const TypeContext &C, unsigned Indices, unsigned Values,
                 unsigned Shape, Endpoint &Rows);
/// Types a node that rearranges the row numbers in operand 0, such as a
/// Reshape. \p Move infers the type of the result for a sharded operand 0.
/// Returns false if operand 0 has no row numbers, or another operand is
/// Varying.
bool moveNumbers(TypeContext &C, ReplicationType (*Move)(TypeContext &));

} // namespace types

/// Ops that forward a value under another name or to another device.
inline constexpr OpRule Pass = {
    .Sizes = sizes::same,
    .Type = types::pass,
    .LocalIndices = types::passIndices,
    .Is = trait::KeepsZeros | trait::TakesUnequalRows | trait::KeepsRowOrder |
          trait::LinearInSame,
    .Elements = ElementsOf::SamePort};

/// Ops that need the rows of all replicas, which are gathered.
inline constexpr OpRule Whole = {.Type = types::whole,
                                 .LocalIndices = types::wholeIndices,
                                 .Is = trait::ComparesWithSizes,
                                 .SizeOperands = AnyInteger,
                                 .ComparedOperands = AllOperands};

} // namespace graft

#endif // GRAFT_LIB_INFER_RULES_RULES_H
