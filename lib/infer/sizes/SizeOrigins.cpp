//===- lib/infer/sizes/SizeOrigins.cpp - where sizes come from ------------===//
//
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "lib/infer/sizes/SizeOrigins.h"

#include "lib/infer/sizes/Dims.h"

using namespace llvm;

namespace graft {

SizeOrigins::Origin SizeOrigins::originOf(const Sym &S) {
  if (S.isNumber())
    return number(S.C);
  if (S.Ragged != 0)
    return {Kind::Counted, S.Ragged};
  return {Kind::Rows, S.Rows};
}

SizeOrigins::Origin SizeOrigins::settled(Origin O) const {
  if (O.Is == Kind::Open)
    return of(static_cast<DimId>(O.Value));
  if (O.Is == Kind::Rows)
    O.Value = rowsRoot(static_cast<uint16_t>(O.Value));
  return O;
}

SizeOrigins::Origin SizeOrigins::of(DimId D) const {
  D = root(D);
  return isOpen(D) ? ofSize(D) : settled(Sizes[D].Is);
}

uint16_t SizeOrigins::rowsRoot(uint16_t Rows) const {
  while (Rows < RowsParent.size() && RowsParent[Rows] != Rows)
    Rows = RowsParent[Rows] = RowsParent[RowsParent[Rows]];
  return Rows;
}

void SizeOrigins::define(DimId D, const Sym &S) {
  Origin &Is = Sizes[root(D)].Is;
  // A symbolic size is a more specific definition than a number.
  if (Is.Is == Kind::Open || Is.Is == Kind::Number)
    Is = originOf(S);
}

void SizeOrigins::defineNumber(DimId D, int64_t Number) {
  Entry &E = Sizes[root(D)];
  E.Fixed = true;
  if (E.Is.Is == Kind::Open)
    E.Is = number(Number);
}

void SizeOrigins::join(DimId X, DimId Y) {
  X = root(X);
  Y = root(Y);
  if (X == Y)
    return;
  Entry &Root = Sizes[std::min(X, Y)], &Child = Sizes[std::max(X, Y)];
  Child.Parent = std::min(X, Y);
  Root.Fixed |= Child.Fixed;
  if (Root.Is.Is == Kind::Rows && Child.Is.Is == Kind::Rows)
    joinRows(Root.Is, Child.Is);
  else if (Root.Is.Is == Kind::Open ||
           (Root.Is.Is == Kind::Number && Child.Is.Is != Kind::Open))
    Root.Is = Child.Is;
}

void SizeOrigins::joinRows(Origin X, Origin Y) {
  if (X.Is != Kind::Rows || Y.Is != Kind::Rows)
    return;
  auto RowsX = static_cast<uint16_t>(X.Value),
       RowsY = static_cast<uint16_t>(Y.Value);
  while (RowsParent.size() <= std::max(RowsX, RowsY))
    RowsParent.push_back(static_cast<uint16_t>(RowsParent.size()));
  RowsX = rowsRoot(RowsX);
  RowsY = rowsRoot(RowsY);
  RowsParent[std::max(RowsX, RowsY)] = std::min(RowsX, RowsY);
}

void SizeOrigins::state(Origin X, Origin Y, NodeId Says) {
  // In later rounds, rules state the same facts again.
  if (X == Y || (!Facts.empty() && Facts.back() == Fact{X, Y, Says}))
    return;
  Facts.push_back({X, Y, Says});
}

void SizeOrigins::derive(DimId X, DimId Y,
                         ArrayRef<std::pair<DimId, DimId>> Factors) {
  SmallVector<std::pair<Origin, Origin>, 2> From;
  for (auto [Mine, Its] : Factors)
    From.push_back({ofSize(Mine), ofSize(Its)});
  derive(ofSize(X), ofSize(Y), From);
}

void SizeOrigins::derive(Origin X, Origin Y,
                         ArrayRef<std::pair<Origin, Origin>> From) {
  DerivedFacts.push_back({X, Y, {From.begin(), From.end()}});
}

} // namespace graft
