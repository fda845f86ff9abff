//===- lib/infer/rules/Rules.h - rules that families share ------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
// A rule says of one node what follows for its outputs. The entries of ops are
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

/// The entry of \p Op, which has all of \p Like that \p Own does not say, and
/// the traits of both.
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

/// The letter of number \p I in \p Letters (see RowOps.cpp): the last one for
/// all that follow; and the digit after it.
std::pair<char, int> letterOf(llvm::StringRef Letters, unsigned I);

/// How many of its last axes an op mixes that works on vectors: the diagonals
/// of a band are a matrix.
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

/// Reads the equation of an Einsum whose operands have \p Ranks, -1 for one
/// that is not known. None for what is not simple: an axis that one tensor has
/// twice, a letter that only the result has, an ellipsis that it has not.
std::optional<Equation> parseEquation(llvm::StringRef Text,
                                      llvm::ArrayRef<int> Ranks);

namespace sizes {

/// Output i has the shape of operand 0.
void same(SizeContext &C);
/// Every output and operand has one shape.
void sameAll(SizeContext &C);
/// Output 0 has the shape of operand 1.
void sameAsSecond(SizeContext &C);
void scalar(SizeContext &C);
void broadcast(SizeContext &C);
/// Of two branches by a condition.
void select(SizeContext &C);
/// The shapes of operands, as values.
void shape(SizeContext &C);
/// Operand \p I is the shape.
template <unsigned I> void fromSizes(SizeContext &C) {
  if (Dims V = C.val(I))
    C.setShape(0, *V);
}
/// Attribute `shape` is.
void fromAttr(SizeContext &C);
void pool(SizeContext &C);
/// A stitch of all the rows that were sent to parts, or of numbers.
void stitch(SizeContext &C);
void unsortedSegment(SizeContext &C);

/// Where channels are in a tensor of rank \p Rank.
size_t channelAxis(const SizeContext &C, size_t Rank);

// Of OpRule::Rows.

/// Axis 0 of operand 0 and of each output.
void sameRows(SizeContext &C);
/// Outputs have the axes of operand 0, but for the last ones, \p Mixed many.
void sameLead(SizeContext &C, size_t Mixed);
template <unsigned Mixed> void sameLead(SizeContext &C) { sameLead(C, Mixed); }

} // namespace sizes

namespace values {

/// The elements of operand 0, in their order.
void same(SizeContext &C);
/// A number that all replicas may share, such as the greatest of lengths.
void shared(SizeContext &C);
/// One element of the result of \p Op, of two integers.
DimId arithmeticElement(SizeContext &C, llvm::StringRef Op, unsigned Slot,
                        DimId X, DimId Y);

} // namespace values

namespace types {

/// Whether node \p Sum adds up axes, which are not known, along which an
/// operand was repeated (BroadcastGradientArgs), and axis 0 is none of them.
bool keepsFirstAxis(const TypeContext &C, NodeId Sum);
/// Whether the node at hand, a lookup, takes rows of its first operand, by one
/// number each.
bool takesRows(const TypeContext &C);

/// Gives the results of the node at hand their types.
using Rule = void(TypeContext &C);
/// The same where local indices are made or taken; false if they are not.
using IndexRule = bool(TypeContext &C);
/// Whether what a rule reads besides operands has a type.
using ReadyRule = bool(const TypeContext &C);

Rule pass, l2Loss, ensureShape, alongAxes, alongAxesNonLinear, reverseSequence,
    toBlocks, fromBlocks, whole, zeros, ones, fill, tile, random, hits,
    perExample, linearRows, gradSecond, perVector, perMatrix, perVolume;
IndexRule passIndices, rangeIndices, gatherIndices, gatherNdIndices,
    scatterNdIndices, unsortedSegmentSumIndices, stitchIndices, tileIndices,
    wholeIndices, sparseToDenseIndices, entryValues, entryProducts, entrySums,
    entryAxes, entryMatrices, entryColumns, entryLookups, gatherDistinct,
    sumsOfDistinct, reshapeDistinct;

/// The sum of these operands: what is added must have one relation.
ReplicationType sumOf(TypeContext &C, llvm::ArrayRef<unsigned> Operands);
/// The product of operands \p I and \p J, which have types \p X and \p Y; with
/// \p Sign -1 the quotient.
ReplicationType productOf(TypeContext &C, unsigned I, ReplicationType X,
                          unsigned J, ReplicationType Y, int Sign = 1);
/// \p Rows, those that operand 0 gives the sizes of: it must be the sizes of
/// the rows of one replica, or of true values.
ReplicationType ofSizes(TypeContext &C, ReplicationType Rows);
/// A function of the rows of all replicas.
ReplicationType ofAllRows(TypeContext &C);
/// What has the rows along axis 0 that the row numbers of \p N number.
Endpoint rowsNumbered(const TypeContext &C, NodeId N);
/// Whether \p Numbers number as many rows of one replica as \p Rows.
bool numbersRows(const TypeContext &C, const ReplicationType &Numbers,
                 std::optional<Sym> Rows);
/// What is distinct on each replica, \p X, of all replicas; else Varying.
ReplicationType gatheredDistinct(TypeContext &C, const ReplicationType &X);
/// Whether operands \p Indices, \p Values and \p Shape are the entries of a
/// sparse tensor in the rows of the replica; \p Rows has as many along axis 0.
bool isOfEntries(const TypeContext &C, unsigned Indices, unsigned Values,
                 unsigned Shape, Endpoint &Rows);
/// Gives row numbers that \p Move moves as if they were rows of operand 0 their
/// types; false if they are none, or other operands vary too.
bool moveNumbers(TypeContext &C, ReplicationType (*Move)(TypeContext &));

} // namespace types

/// Ops that give the value itself, under another name or in another place.
inline constexpr OpRule Pass = {
    .Sizes = sizes::same,
    .Type = types::pass,
    .LocalIndices = types::passIndices,
    .Is = trait::KeepsZeros | trait::TakesUnequalRows | trait::KeepsRowOrder |
          trait::LinearInSame,
    .Elements = ElementsOf::SamePort};

/// What needs the rows of all replicas: they are gathered.
inline constexpr OpRule Whole = {.Type = types::whole,
                                 .LocalIndices = types::wholeIndices,
                                 .Is = trait::ComparesWithSizes,
                                 .SizeOperands = AnyInteger,
                                 .ComparedOperands = AllOperands};

} // namespace graft

#endif // GRAFT_LIB_INFER_RULES_RULES_H
