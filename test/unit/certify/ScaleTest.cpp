//===- test/unit/certify/ScaleTest.cpp - scales of a file -------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
// A constant of a file is a power of the number of replicas, as far as its type
// can hold that.
//
//===----------------------------------------------------------------------===//

#include "lib/certify/forms/LoweredFile.h"
#include "lib/ops/OpTable.h"

#include <catch2/catch.hpp>

#include <cmath>

using namespace graft;

/// Returns \p Value with \p Bits significant bits, the nearest.
static double rounded(double Value, int Bits) {
  int Exponent;
  double Part = std::frexp(Value, &Exponent);
  return std::ldexp(std::nearbyint(std::ldexp(Part, Bits)), Exponent - Bits);
}

TEST_CASE("a rounded scale is its power of the replicas", "[certify]") {
  for (unsigned Replicas = 2; Replicas <= 4096; ++Replicas)
    for (auto [Type, Bits] : {std::pair(DT_BFLOAT16, 8), std::pair(DT_HALF, 11),
                              std::pair(DT_FLOAT, 24)}) {
      CAPTURE(Replicas, Bits);
      CHECK(powerOfReplicas(rounded(1.0 / Replicas, Bits), Replicas, Type) ==
            -1);
    }
  CHECK(powerOfReplicas(0.5, 3, DT_BFLOAT16) == std::nullopt);
  CHECK(powerOfReplicas(1.0 / 3 + 0.01, 3, DT_FLOAT) == std::nullopt);
}
