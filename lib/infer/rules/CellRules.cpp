//===- lib/infer/rules/CellRules.cpp - shapes of cells and losses -*- C++ -*-=//
//
// SPDX-License-Identifier: Apache-2.0
//
// All results of a recurrent cell are alike: a row of units for each example,
// and over time one for each step too. A loss is a number for each row.
//
//===----------------------------------------------------------------------===//

#include "lib/infer/sizes/DimRules.h"

using namespace llvm;

namespace graft {

/// A cell reads the input and the state before, [rows, units]. \p OverTime it
/// reads the length, the input, [time, rows, features], and the state.
void DimRules::cell(bool OverTime) {
  Dims X = in(1), State = OverTime ? in(2) : X;
  if (!X || !State || State->size() != 2 || X->size() != (OverTime ? 3 : 2))
    return;
  DimList List(X->begin(), X->end());
  List.back() = State->back();
  for (unsigned Port = 0; Port < A.numOutputs(N); ++Port)
    setShape(Port, List);
}

/// Logits and labels are broadcast where labels are rows too.
void DimRules::crossEntropy(bool Sparse) {
  Dims X = in(0), L = in(1);
  if (!X || X->size() != 2)
    return;
  DimList List(X->begin(), X->end());
  if (L && Sparse && L->size() == 1)
    same(List[0], (*L)[0]);
  for (size_t I = 0; L && !Sparse && L->size() == 2 && I < 2; ++I)
    List[I] = broadcastDim(List[I], (*L)[I]);
  setShape(0, List[0]);
  setShape(1, List);
}

} // namespace graft
