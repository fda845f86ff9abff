//===- test/unit/AxisTest.cpp - the numbers of axes -------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "lib/graph/Axis.h"
#include "lib/infer/types/Types.h"

#include <catch2/catch.hpp>

using namespace graft;

namespace {

TEST_CASE("An axis is counted from both ends") {
  CHECK(axisIn(0, 3) == 0u);
  CHECK(axisIn(2, 3) == 2u);
  CHECK(axisIn(-1, 3) == 2u);
  CHECK(axisIn(-3, 3) == 0u);
}

TEST_CASE("No other number is an axis") {
  for (int64_t Number : {int64_t(3), int64_t(-4), int64_t(INT32_MIN),
                         int64_t(1) << 32, INT64_MIN, INT64_MAX}) {
    CHECK(axisIn(Number, 3) == std::nullopt);
    CHECK(!axesIn({0, Number}, 3));
  }
  CHECK(axisIn(0, 0) == std::nullopt);
  for (int64_t Number : {int64_t(0), int64_t(1), int64_t(-1), INT64_MIN})
    CHECK(axisIn(Number, -1) == std::nullopt);
}

TEST_CASE("One axis may have two numbers") {
  auto Axes = axesIn({-1, 0, 2}, 3);
  REQUIRE(Axes);
  CHECK(Axes->count() == 2u);
  CHECK((Axes->test(0) && Axes->test(2)));
}

TEST_CASE("A permutation has each axis once") {
  CHECK(isPermutation({1, 0, 2}, 3));
  CHECK(isPermutation({}, 0));
  CHECK(!isPermutation({0, 0, 2}, 3));
  CHECK(!isPermutation({1, 0, -1}, 3));
  CHECK(!isPermutation({1, 0}, 3));
  CHECK(!isPermutation({1, 0, INT64_MIN}, 3));
}

TEST_CASE("A type keeps no axis that no tensor has") {
  CHECK(ReplicationType::sharded(253).Axis == 253);
  for (int Number : {-1, 254, 256, 1 << 20}) {
    ReplicationType Type = ReplicationType::sharded(Number);
    CHECK(!Type.isAxisKnown());
    Type.setAxis(Type.Axis + 1);
    CHECK(!Type.isAxisKnown());
  }
}

} // namespace
