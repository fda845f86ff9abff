//===- lib/infer/rules/Matrices.cpp - matrices and vectors ------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
// Ops on one matrix or vector at a time, which mix only the last axes.
//
//===----------------------------------------------------------------------===//

#include "lib/infer/rules/Rules.h"

using namespace llvm;

namespace graft {

namespace sizes {

/// Infers the shape of a MatrixDiag. Its matrices are square unless k, num_rows
/// or num_cols (operands 1 to 3) say otherwise.
static void diagonal(SizeContext &C) {
  Dims X = C.in(0);
  if (!X || X->empty() || mixedAxes(C.G, C.N) != 1)
    return;
  auto Says = [&](unsigned I, int64_t Number) {
    return I >= C.numData() || C.num(I) == Number;
  };
  DimList List(X->begin(), X->end());
  bool Square = Says(1, 0) && Says(2, -1) && Says(3, -1);
  if (!Square)
    List.back() = C.slot(0);
  List.push_back(Square ? List.back() : C.slot(1));
  C.setShape(0, List);
}

static void diagPart(SizeContext &C) {
  if (Dims X = C.in(0); X && X->size() % 2 == 0) {
    DimList First(X->begin(), X->begin() + X->size() / 2);
    DimList Second(X->begin() + X->size() / 2, X->end());
    C.sameShapes(First, Second);
    C.setShape(0, First);
  }
}

/// Infers results with the axes of operand 0, except for the mixed ones at the
/// end. Their number depends on the node.
static void sameVectors(SizeContext &C) { sameLead(C, mixedAxes(C.G, C.N)); }

} // namespace sizes

namespace {

constexpr OpRule PerMatrix = {.Rows = sizes::sameLead<2>,
                              .Type = types::perMatrix,
                              .ComparedOperands = operands(0, 1)};
constexpr OpRule PerVector = {.Rows = sizes::sameVectors,
                              .Type = types::perVector,
                              .ComparedOperands = operands(0, 1)};
constexpr OpRule PerVolume = {.Rows = sizes::sameLead<3>,
                              .Type = types::perVolume,
                              .ComparedOperands = operands(0, 1)};

} // namespace

ArrayRef<OpRule> families::matrices() {
  static const OpRule Rules[] = {
      // Ops on one matrix or one vector at a time.
      entry(op::Cholesky, PerMatrix, {.Sizes = sizes::same}),
      entry(op::CholeskyGrad, PerMatrix, {.Sizes = sizes::same}),
      entry(op::LogMatrixDeterminant, PerMatrix),
      entry(op::MatrixBandPart, PerMatrix,
            {.Sizes = sizes::same, .ZerosOf = operands(0)}),
      entry(op::MatrixDeterminant, PerMatrix),
      entry(op::MatrixDiag, PerVector,
            {.Sizes = sizes::diagonal, .ZerosOf = operands(0)}),
      entry(op::MatrixDiagPart, PerMatrix, {.ZerosOf = operands(0)}),
      entry(op::MatrixDiagPartV3, PerMatrix),
      entry(op::MatrixExponential, PerMatrix, {.Sizes = sizes::same}),
      entry(op::MatrixInverse, PerMatrix, {.Sizes = sizes::same}),
      entry(op::MatrixSolve, PerMatrix),
      entry(op::MatrixTriangularSolve, PerMatrix),
      entry(op::Qr, PerMatrix),
      entry(op::SelfAdjointEigV2, PerMatrix),
      entry(op::Svd, PerMatrix),
      entry(op::HSVToRGB, PerVector, {.Sizes = sizes::same}),
      entry(op::RGBToHSV, PerVector, {.Sizes = sizes::same}),

      // Fourier transforms, and more matrices.
      entry(op::FFT, PerVector, {.Sizes = sizes::same, .ZerosOf = operands(0)}),
      entry(op::IFFT, PerVector,
            {.Sizes = sizes::same, .ZerosOf = operands(0)}),
      entry(op::RFFT, PerVector, {.ZerosOf = operands(0)}),
      entry(op::IRFFT, PerVector, {.ZerosOf = operands(0)}),
      entry(op::FFT2D, PerMatrix,
            {.Sizes = sizes::same, .ZerosOf = operands(0)}),
      entry(op::IFFT2D, PerMatrix,
            {.Sizes = sizes::same, .ZerosOf = operands(0)}),
      entry(op::RFFT2D, PerMatrix, {.ZerosOf = operands(0)}),
      entry(op::IRFFT2D, PerMatrix, {.ZerosOf = operands(0)}),
      entry(op::FFT3D, PerVolume,
            {.Sizes = sizes::same, .ZerosOf = operands(0)}),
      entry(op::IFFT3D, PerVolume,
            {.Sizes = sizes::same, .ZerosOf = operands(0)}),
      entry(op::RFFT3D, PerVolume, {.ZerosOf = operands(0)}),
      entry(op::IRFFT3D, PerVolume, {.ZerosOf = operands(0)}),
      entry(op::Cross, PerVector,
            {.Sizes = sizes::sameAll, .ZerosOf = operands(0, 1)}),
      entry(op::Eig, PerMatrix),
      entry(op::Lu, PerMatrix),
      entry(op::MatrixDiagV2, PerVector, {.Sizes = sizes::diagonal}),
      entry(op::MatrixDiagV3, PerVector, {.Sizes = sizes::diagonal}),
      entry(op::MatrixDiagPartV2, PerMatrix),
      entry(op::MatrixLogarithm, PerMatrix, {.Sizes = sizes::same}),
      entry(op::MatrixSquareRoot, PerMatrix, {.Sizes = sizes::same}),
      entry(op::SelfAdjointEig, PerMatrix),

      // Older names.
      entry(op::BatchCholesky, PerMatrix, {.Sizes = sizes::same}),
      entry(op::BatchCholeskyGrad, PerMatrix, {.Sizes = sizes::same}),
      entry(op::BatchMatrixBandPart, PerMatrix, {.Sizes = sizes::same}),
      entry(op::BatchMatrixInverse, PerMatrix, {.Sizes = sizes::same}),
      entry(op::BatchMatrixDeterminant, PerMatrix),
      entry(op::BatchMatrixDiagPart, PerMatrix),
      entry(op::BatchMatrixSolve, PerMatrix),
      entry(op::BatchMatrixTriangularSolve, PerMatrix),
      entry(op::BatchSelfAdjointEig, PerMatrix),
      entry(op::BatchSelfAdjointEigV2, PerMatrix),
      entry(op::BatchSvd, PerMatrix),
      entry(op::BatchFFT, PerVector, {.Sizes = sizes::same}),
      entry(op::BatchIFFT, PerVector, {.Sizes = sizes::same}),
      entry(op::BatchFFT2D, PerMatrix, {.Sizes = sizes::same}),
      entry(op::BatchIFFT2D, PerMatrix, {.Sizes = sizes::same}),
      entry(op::BatchFFT3D, PerVolume, {.Sizes = sizes::same}),
      entry(op::BatchIFFT3D, PerVolume, {.Sizes = sizes::same}),
      entry(op::BatchMatrixDiag, PerVector, {.Sizes = sizes::diagonal}),

      // Ops that need the rows of all replicas, which are gathered.
      entry(op::DiagPart, Whole,
            {.Sizes = sizes::diagPart, .ZerosOf = operands(0)}),
      entry(op::BatchMatrixSetDiag, Whole),
      entry(op::BatchMatrixSolveLs, Whole),
      entry(op::Diag, Whole),
      entry(op::FFTND, Whole),
      entry(op::IFFTND, Whole),
      entry(op::IRFFTND, Whole),
      entry(op::RFFTND, Whole),
  };
  return Rules;
}

} // namespace graft
