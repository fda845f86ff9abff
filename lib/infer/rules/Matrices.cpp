//===- lib/infer/rules/Matrices.cpp - matrices and vectors ------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
// A matrix, or a vector, at a time: the last axes are mixed, the others not.
//
//===----------------------------------------------------------------------===//

#include "lib/infer/rules/Rules.h"

using namespace llvm;

namespace graft {

namespace sizes {

/// MatrixDiag: matrices, which are square if nothing else is said.
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

/// How many axes are mixed depends on the node.
static void sameVectors(SizeContext &C) { sameLead(C, mixedAxes(C.G, C.N)); }

} // namespace sizes

ArrayRef<OpRule> families::matrices() {
  static constexpr OpRule Rules[] = {
      // A matrix, or a vector, at a time.
      {.Op = op::Cholesky,
       .Sizes = sizes::same,
       .Rows = sizes::sameLead<2>,
       .Type = TypeRule::PerMatrix},
      {.Op = op::CholeskyGrad,
       .Sizes = sizes::same,
       .Rows = sizes::sameLead<2>,
       .Type = TypeRule::PerMatrix},
      {.Op = op::LogMatrixDeterminant,
       .Rows = sizes::sameLead<2>,
       .Type = TypeRule::PerMatrix},
      {.Op = op::MatrixBandPart,
       .Sizes = sizes::same,
       .Rows = sizes::sameLead<2>,
       .Type = TypeRule::PerMatrix},
      {.Op = op::MatrixDeterminant,
       .Rows = sizes::sameLead<2>,
       .Type = TypeRule::PerMatrix},
      {.Op = op::MatrixDiag,
       .Sizes = sizes::diagonal,
       .Rows = sizes::sameVectors,
       .Type = TypeRule::PerVector},
      {.Op = op::MatrixDiagPart,
       .Rows = sizes::sameLead<2>,
       .Type = TypeRule::PerMatrix},
      {.Op = op::MatrixDiagPartV3,
       .Rows = sizes::sameLead<2>,
       .Type = TypeRule::PerMatrix},
      {.Op = op::MatrixExponential,
       .Sizes = sizes::same,
       .Rows = sizes::sameLead<2>,
       .Type = TypeRule::PerMatrix},
      {.Op = op::MatrixInverse,
       .Sizes = sizes::same,
       .Rows = sizes::sameLead<2>,
       .Type = TypeRule::PerMatrix},
      {.Op = op::MatrixSolve,
       .Rows = sizes::sameLead<2>,
       .Type = TypeRule::PerMatrix},
      {.Op = op::MatrixTriangularSolve,
       .Rows = sizes::sameLead<2>,
       .Type = TypeRule::PerMatrix},
      {.Op = op::Qr, .Rows = sizes::sameLead<2>, .Type = TypeRule::PerMatrix},
      {.Op = op::SelfAdjointEigV2,
       .Rows = sizes::sameLead<2>,
       .Type = TypeRule::PerMatrix},
      {.Op = op::Svd, .Rows = sizes::sameLead<2>, .Type = TypeRule::PerMatrix},
      {.Op = op::HSVToRGB,
       .Sizes = sizes::same,
       .Rows = sizes::sameVectors,
       .Type = TypeRule::PerVector},
      {.Op = op::RGBToHSV,
       .Sizes = sizes::same,
       .Rows = sizes::sameVectors,
       .Type = TypeRule::PerVector},

      // Fourier transforms, and more matrices.
      {.Op = op::FFT,
       .Sizes = sizes::same,
       .Rows = sizes::sameVectors,
       .Type = TypeRule::PerVector},
      {.Op = op::IFFT,
       .Sizes = sizes::same,
       .Rows = sizes::sameVectors,
       .Type = TypeRule::PerVector},
      {.Op = op::RFFT, .Rows = sizes::sameVectors, .Type = TypeRule::PerVector},
      {.Op = op::IRFFT,
       .Rows = sizes::sameVectors,
       .Type = TypeRule::PerVector},
      {.Op = op::FFT2D,
       .Sizes = sizes::same,
       .Rows = sizes::sameLead<2>,
       .Type = TypeRule::PerMatrix},
      {.Op = op::IFFT2D,
       .Sizes = sizes::same,
       .Rows = sizes::sameLead<2>,
       .Type = TypeRule::PerMatrix},
      {.Op = op::RFFT2D,
       .Rows = sizes::sameLead<2>,
       .Type = TypeRule::PerMatrix},
      {.Op = op::IRFFT2D,
       .Rows = sizes::sameLead<2>,
       .Type = TypeRule::PerMatrix},
      {.Op = op::FFT3D,
       .Sizes = sizes::same,
       .Rows = sizes::sameLead<3>,
       .Type = TypeRule::PerVolume},
      {.Op = op::IFFT3D,
       .Sizes = sizes::same,
       .Rows = sizes::sameLead<3>,
       .Type = TypeRule::PerVolume},
      {.Op = op::RFFT3D,
       .Rows = sizes::sameLead<3>,
       .Type = TypeRule::PerVolume},
      {.Op = op::IRFFT3D,
       .Rows = sizes::sameLead<3>,
       .Type = TypeRule::PerVolume},
      {.Op = op::Cross,
       .Sizes = sizes::sameAll,
       .Rows = sizes::sameVectors,
       .Type = TypeRule::PerVector},
      {.Op = op::Eig, .Rows = sizes::sameLead<2>, .Type = TypeRule::PerMatrix},
      {.Op = op::Lu, .Rows = sizes::sameLead<2>, .Type = TypeRule::PerMatrix},
      {.Op = op::MatrixDiagV2,
       .Sizes = sizes::diagonal,
       .Rows = sizes::sameVectors,
       .Type = TypeRule::PerVector},
      {.Op = op::MatrixDiagV3,
       .Sizes = sizes::diagonal,
       .Rows = sizes::sameVectors,
       .Type = TypeRule::PerVector},
      {.Op = op::MatrixDiagPartV2,
       .Rows = sizes::sameLead<2>,
       .Type = TypeRule::PerMatrix},
      {.Op = op::MatrixLogarithm,
       .Sizes = sizes::same,
       .Rows = sizes::sameLead<2>,
       .Type = TypeRule::PerMatrix},
      {.Op = op::MatrixSquareRoot,
       .Sizes = sizes::same,
       .Rows = sizes::sameLead<2>,
       .Type = TypeRule::PerMatrix},
      {.Op = op::SelfAdjointEig,
       .Rows = sizes::sameLead<2>,
       .Type = TypeRule::PerMatrix},

      // What needs the rows of all replicas: they are gathered.
      {.Op = op::DiagPart, .Sizes = sizes::diagPart, .Type = TypeRule::Whole},
  };
  return Rules;
}

} // namespace graft
