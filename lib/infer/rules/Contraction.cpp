//===- lib/infer/rules/Contraction.cpp - products of matrices ---*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
// Matrix products, Einsum, and sums over the rows.
//
//===----------------------------------------------------------------------===//

#include "lib/infer/rules/Rules.h"

#include "lib/program/forms/EntrySlice.h"

#include "llvm/ADT/DenseMap.h"

using namespace llvm;

namespace graft {

namespace sizes {

static void matMul(SizeContext &C, bool Batched) {
  Dims X = C.in(0), Y = C.in(1);
  if (!X || !Y || X->size() < 2 || Y->size() < 2)
    return;
  bool TX = C.flag(Batched ? "adj_x" : "transpose_a");
  bool TY = C.flag(Batched ? "adj_y" : "transpose_b");
  size_t RX = X->size(), RY = Y->size();
  C.same((*X)[RX - (TX ? 2 : 1)], (*Y)[RY - (TY ? 1 : 2)]);
  DimList List;
  size_t Lead = std::max(RX, RY) - 2;
  for (size_t I = 0; I < Lead; ++I) {
    size_t FromEnd = Lead - I + 2;
    bool InX = FromEnd <= RX, InY = FromEnd <= RY;
    List.push_back(InX && InY
                       ? C.broadcast((*X)[RX - FromEnd], (*Y)[RY - FromEnd])
                   : InX ? (*X)[RX - FromEnd]
                         : (*Y)[RY - FromEnd]);
  }
  List.push_back((*X)[RX - (TX ? 1 : 2)]);
  List.push_back((*Y)[RY - (TY ? 2 : 1)]);
  C.setShape(0, List);
}

static void matMul(SizeContext &C) { matMul(C, false); }

static void batchMatMul(SizeContext &C) { matMul(C, true); }

static void biasAddGrad(SizeContext &C) {
  if (Dims X = C.in(0); X && X->size() >= 2)
    C.setShape(0, (*X)[channelAxis(C, X->size())]);
}

/// Infers a shape with the rows of the sparse operand and the columns of the
/// dense operand.
static void sparseMatMul(SizeContext &C) {
  Dims B = C.in(3);
  if (!B || B->size() != 2)
    return;
  bool Turned = C.flag("adjoint_b"), Adjoint = C.flag("adjoint_a");
  DimId Columns = (*B)[Turned ? 0 : 1], Inner = (*B)[Turned ? 1 : 0];
  DimId Rows = C.slot(0);
  // If the sparse operand holds only the entries of a replica's rows, its shape
  // (operand 2) holds the number of these rows.
  if (entriesSliced(C.G, C.Inputs[0], 0, C.replicas()) != NoNode) {
    if (Dims I = C.in(0); I && I->size() == 2)
      C.same((*I)[1], C.number(1, 2));
    if (Dims Of = C.val(2); Of && Of->size() == 2) {
      Rows = (*Of)[Adjoint ? 1 : 0];
      C.same((*Of)[Adjoint ? 0 : 1], Inner);
    }
  }
  C.setShape(0, {Rows, Columns});
}

static void einsum(SizeContext &C) {
  SmallVector<int, 2> Ranks;
  for (unsigned I = 0; I < C.numData(); ++I) {
    Dims X = C.in(I);
    Ranks.push_back(X ? static_cast<int>(X->size()) : -1);
  }
  auto E = parseEquation(C.stringAttr("equation").value_or(""), Ranks);
  if (!E)
    return;
  // The size of each letter: operands that share a letter share its size.
  DenseMap<char, DimId> Sizes;
  for (unsigned I = 0; I < C.numData(); ++I) {
    Dims X = C.in(I);
    if (!X)
      continue;
    if (X->size() != E->Inputs[I].size())
      return;
    for (size_t D = 0; D < X->size(); ++D) {
      char Letter = E->Inputs[I][D];
      auto [It, New] = Sizes.try_emplace(Letter, (*C.in(I))[D]);
      if (!New && Equation::isBroadcast(Letter))
        It->second = C.broadcast(It->second, (*C.in(I))[D]);
      else if (!New)
        C.same(It->second, (*C.in(I))[D]);
    }
  }
  DimList List;
  for (char Letter : E->Output) {
    auto It = Sizes.find(Letter);
    if (It == Sizes.end())
      return;
    List.push_back(It->second);
  }
  C.setShape(0, List);
}

} // namespace sizes

namespace {

/// Infers the type of a product of matrices if \p X or \p Y is sharded.
ReplicationType productOfRows(TypeContext &C, ReplicationType X,
                              ReplicationType Y, bool Batched) {
  int RX = C.rank(0), RY = C.rank(1), Out = C.rank(C.out());
  if (RX < 2 || RY < 2 || Out < 2)
    return C.varying("has an operand of unknown rank");
  if (X.isPartial())
    X = C.reduced(0);
  if (Y.isPartial())
    Y = C.reduced(1);
  bool TX = C.flag(Batched ? "adj_x" : "transpose_a");
  bool TY = C.flag(Batched ? "adj_y" : "transpose_b");
  int ContractX = RX - (TX ? 2 : 1), ContractY = RY - (TY ? 1 : 2);
  bool InX = X.isSharded() && X.Axis == ContractX;
  bool InY = Y.isSharded() && Y.Axis == ContractY;
  int K = X.K + Y.K;
  if (InX && InY)
    return ReplicationType::partial(K);
  if (InX || InY)
    return C.varying("contracts the batch axis with a value that is not split");
  bool LeadX = X.isSharded() && X.Axis < RX - 2;
  bool LeadY = Y.isSharded() && Y.Axis < RY - 2;
  if (X.isSharded() && Y.isSharded()) {
    int AX = X.Axis + Out - RX, AY = Y.Axis + Out - RY;
    if (LeadX && LeadY && AX == AY)
      return ReplicationType::sharded(AX, K);
    return C.varying("multiplies every row of the batch with every other row");
  }
  if (X.isSharded())
    return LeadX ? (C.broadcastsAlong(1, X.Axis + Out - RX)
                        ? ReplicationType::sharded(X.Axis + Out - RX, K)
                        : C.varying("multiplies a per-replica shard with a "
                                    "replicated value along the batch axis"))
                 : ReplicationType::sharded(Out - 2, K);
  return LeadY ? (C.broadcastsAlong(0, Y.Axis + Out - RY)
                      ? ReplicationType::sharded(Y.Axis + Out - RY, K)
                      : C.varying("multiplies a per-replica shard with a "
                                  "replicated value along the batch axis"))
               : ReplicationType::sharded(Out - 1, K);
}

ReplicationType matMulType(TypeContext &C, bool Batched) {
  ReplicationType X = C.numeric(0), Y = C.numeric(1);
  if (X.isVarying())
    return C.varyingLike(X);
  if (Y.isVarying())
    return C.varyingLike(Y);
  if (!X.isSharded() && !Y.isSharded())
    return types::productOf(C, 0, X, 1, Y, 1);
  return productOfRows(C, X, Y, Batched);
}

/// Infers the type of an Einsum. If an operand is sharded and the result has
/// the letter of the batch axis, the result is sharded. Without that letter, it
/// is a partial sum.
ReplicationType einsumType(TypeContext &C) {
  SmallVector<ReplicationType, 2> Types;
  SmallVector<int, 2> Ranks;
  bool AnySharded = false;
  for (unsigned I = 0; I < C.numData(); ++I) {
    Types.push_back(C.numeric(I));
    Ranks.push_back(C.rank(I));
    if (Types.back().isVarying())
      return C.varyingLike(Types.back());
    AnySharded |= Types.back().isSharded();
  }
  if (!AnySharded && Types.size() == 1)
    return Types[0];
  if (!AnySharded && Types.size() == 2)
    return types::productOf(C, 0, Types[0], 1, Types[1], 1);
  auto E = parseEquation(C.stringAttr("equation").value_or(""), Ranks);
  if (!E)
    return C.varying("has an unsupported einsum equation");
  char Batch = 0;
  unsigned First = 0;
  int K = 0;
  for (unsigned I = 0; I < Types.size(); ++I) {
    ReplicationType &X = Types[I];
    if (X.isPartial())
      X = C.reduced(I);
    K += X.K;
    if (!X.isSharded())
      continue;
    if (X.Axis >= E->Inputs[I].size())
      return C.varying("has an operand of unknown rank");
    char Letter = E->Inputs[I][X.Axis];
    if (Batch && Batch != Letter)
      return C.varying(
          "multiplies every row of the batch with every other row");
    if (Batch && Equation::isBroadcast(Batch) &&
        !C.isSameSize(C.input(First), E->Inputs[First].find(Batch), C.input(I),
                      X.Axis))
      return C.varying("multiplies tensors whose numbers of rows may differ");
    First = Batch ? First : I;
    Batch = Letter;
  }
  for (unsigned I = 0; Batch && I < Types.size(); ++I) {
    size_t Axis = E->Inputs[I].find(Batch);
    if (Types[I].isSharded() || Axis == std::string::npos)
      continue;
    if (!Equation::isBroadcast(Batch))
      return C.varying(
          "contracts the batch axis with a value that is not split");
    if (auto Shape = C.shape(I); !Shape || !C.D.table().isOne((*Shape)[Axis]))
      return C.varying("multiplies a per-replica shard with a replicated value "
                       "along the batch axis");
  }
  if (!Batch)
    return ReplicationType::replicated(K);
  size_t Kept = E->Output.find(Batch);
  return Kept == std::string::npos
             ? ReplicationType::partial(K)
             : ReplicationType::sharded(static_cast<int>(Kept), K);
}

} // namespace

namespace types {

static void matMul(TypeContext &C) {
  C.setAll(matMulType(C, /*Batched=*/false));
}
static void batchMatMul(TypeContext &C) {
  C.setAll(matMulType(C, /*Batched=*/true));
}
static void einsum(TypeContext &C) { C.setAll(einsumType(C)); }

/// Types the product of a sparse matrix, which has the rows of one replica, and
/// a dense matrix. The product is sharded. A product with the adjoint of the
/// sparse matrix is a partial sum.
static bool sparseMatMulIndices(TypeContext &C) {
  Endpoint Rows;
  if (!isOfEntries(C, 0, 1, 2, Rows))
    return wholeIndices(C);
  ReplicationType X = C.operand(3);
  if (!C.flag("adjoint_a")) {
    if (X.isVarying() || X.isSharded())
      return wholeIndices(C);
    X = C.reduced(3);
    C.setAll(ReplicationType::sharded(0, X.K));
    return true;
  }
  int Axis = C.flag("adjoint_b") ? 1 : 0;
  if (!X.isSharded() || X.isJoined() || X.Axis != Axis ||
      !C.isSameSize(C.input(3), Axis, Rows, 0))
    return wholeIndices(C);
  X = C.numeric(3);
  C.setAll(ReplicationType::partial(X.K));
  return true;
}

/// Infers the type of a product of a replicated sparse matrix and a dense
/// matrix with sharded columns.
static void sparseMatMul(TypeContext &C) {
  ReplicationType X = C.operand(3);
  bool HaveMatrix =
      C.operand(0).isTrue() && C.operand(1).isTrue() && C.operand(2).isTrue();
  if (!HaveMatrix || !X.isSharded() || X.Axis != (C.flag("adjoint_b") ? 0 : 1))
    return whole(C);
  X = C.numeric(3);
  X.Axis = 1;
  C.setAll(X);
}

/// Types a product that is fused with a bias and an activation. The op works
/// row by row, unless operand 0 is transposed.
static void fusedMatMul(TypeContext &C) {
  C.flag("transpose_a") ? whole(C) : perExample(C);
}

static void biasAddGrad(TypeContext &C) {
  ReplicationType X = C.numeric(0);
  if (X.isSharded()) {
    int Rank = C.rank(0);
    bool First = Rank != 2 && C.stringAttr("data_format") == StringRef("NCHW");
    int Channel = First ? 1 : Rank - 1;
    bool Zero = X.Zero;
    X = Channel <= 0        ? C.varying("has an operand of unknown rank")
        : X.Axis == Channel ? ReplicationType::sharded(0, X.K)
                            : ReplicationType::partial(X.K);
    X.Zero = Zero && !X.isVarying();
  }
  C.setAll(X);
}

} // namespace types

namespace {

using namespace trait;

constexpr OpRule BatchMatMul = {.Sizes = sizes::batchMatMul,
                                .Type = types::batchMatMul,
                                .LocalIndices = types::entryMatrices,
                                .ZerosOf = operands(0, 1),
                                .ComparedOperands = AllOperands};

} // namespace

ArrayRef<OpRule> families::contraction() {
  static const OpRule Rules[] = {
      // Products with a sparse matrix.
      {.Op = op::SparseTensorDenseMatMul,
       .Sizes = sizes::sparseMatMul,
       .Type = types::sparseMatMul,
       .LocalIndices = types::sparseMatMulIndices,
       .ZerosOf = operands(1, 3),
       .SizeOperands = AnyInteger,
       .ComparedOperands = AllOperands},

      // Contractions.
      {.Op = op::MatMul,
       .Sizes = sizes::matMul,
       .Type = types::matMul,
       .ZerosOf = operands(0, 1),
       .ComparedOperands = AllOperands},
      {.Op = op::SparseMatMul,
       .Sizes = sizes::matMul,
       .Type = types::matMul,
       .Is = KeepsZeros,
       .ComparedOperands = AllOperands},
      {.Op = "_FusedMatMul",
       .Type = types::fusedMatMul,
       .ComparedOperands = AllOperands},
      entry(op::BatchMatMul, BatchMatMul),
      entry(op::BatchMatMulV2, BatchMatMul),
      entry(op::BatchMatMulV3, BatchMatMul),
      {.Op = op::BiasAddGrad,
       .Sizes = sizes::biasAddGrad,
       .Type = types::biasAddGrad,
       .ZerosOf = operands(0)},
      {.Op = op::Einsum,
       .Sizes = sizes::einsum,
       .Type = types::einsum,
       .ZerosOf = AllOperands,
       .ComparedOperands = AllOperands},
  };
  return Rules;
}

} // namespace graft
