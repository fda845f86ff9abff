//===- lib/lower/expand/ScaleFactor.cpp - the factor of a _Scale ----------===//
//
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "lib/lower/expand/ScaleFactor.h"
#include "lib/ops/Ops.h"
#include "lib/ops/ProgramOps.h"
#include "lib/program/forms/RowRepeat.h"

#include <cmath>

using namespace llvm;

namespace graft {

static double power(unsigned Count, int64_t Power) {
  return std::pow(static_cast<double>(Count), static_cast<double>(Power));
}

ScaleFactor scaleFactor(unsigned Type, int64_t Power, unsigned Count) {
  if (isFloating(Type) || isComplex(Type))
    return {op::Mul, Type, encodeFloatTensor(Type, {}, power(Count, Power))};
  return {
      Power >= 0 ? op::Mul : op::FloorDiv, Type,
      encodeIntTensor(Type, {}, std::llround(power(Count, std::abs(Power))))};
}

ScaleFactor scaleFactor(const Graph &G, NodeId Scale, unsigned Count) {
  unsigned Type = G.typeAttr(Scale, "T").value_or(DT_INVALID);
  if (G.node(Scale).NumData == 2) {
    bool Divides =
        isScaleDivision(Type, G.intAttr(Scale, PowerAttr).value_or(0),
                        G.intAttr(Scale, ShareAttr).value_or(0));
    return {Divides ? op::FloorDiv : op::Mul, Type, {}};
  }
  auto Powers = G.intListAttr(Scale, PowersAttr);
  if (!Powers)
    return scaleFactor(Type, G.intAttr(Scale, PowerAttr).value_or(0), Count);
  SmallVector<int64_t, 4> Factors;
  for (int64_t Each : *Powers)
    Factors.push_back(std::llround(power(Count, Each)));
  return {op::Mul, Type,
          encodeIntTensor(Type, static_cast<int64_t>(Factors.size()), Factors)};
}

} // namespace graft
