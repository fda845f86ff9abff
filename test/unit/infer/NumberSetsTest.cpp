//===- test/unit/infer/NumberSetsTest.cpp ---------------------------------===//
//
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "lib/infer/facts/NumberSets.h"

#include <catch2/catch.hpp>

#include <set>

using namespace graft;

namespace {

using Numbers = std::set<uint32_t>;

uint32_t make(NumberSets &Sets, const Numbers &Of) {
  uint32_t Result = NumberSets::None;
  for (uint32_t N : Of)
    Result = Sets.unite(Result, Sets.single(N));
  return Result;
}

} // namespace

TEST_CASE("equal sets are one", "[sets]") {
  NumberSets Sets(1000);
  uint32_t A = make(Sets, {3, 40, 999}), B = make(Sets, {500});
  CHECK(Sets.unite(A, B) == make(Sets, {3, 40, 500, 999}));
  CHECK(Sets.unite(B, A) == Sets.unite(A, B));
  CHECK(Sets.unite(A, A) == A);
  CHECK(Sets.unite(A, NumberSets::None) == A);
  CHECK(A != B);
}

TEST_CASE("a part of a set is found, and what is outside of it", "[sets]") {
  const Numbers Samples[] = {{},         {0},          {31},      {32},
                             {0, 31},    {63, 64},     {40, 999}, {3, 40, 999},
                             {512, 600}, {0, 512, 999}};
  for (uint64_t Count : {1000, 1024, 1025}) {
    NumberSets Sets(Count);
    for (const Numbers &A : Samples)
      for (const Numbers &B : Samples) {
        Numbers Outside;
        for (uint32_t N : A)
          if (!B.contains(N))
            Outside.insert(N);
        uint32_t SetA = make(Sets, A), SetB = make(Sets, B);
        CHECK(Sets.contains(SetB, SetA) == Outside.empty());
        if (!Outside.empty())
          CHECK(Sets.firstOutside(SetA, SetB) == *Outside.begin());
      }
  }
}

TEST_CASE("sets of few numbers", "[sets]") {
  NumberSets Sets(1);
  CHECK(Sets.contains(Sets.single(0), NumberSets::None));
  CHECK(!Sets.contains(NumberSets::None, Sets.single(0)));
  CHECK(Sets.firstOutside(Sets.single(0), NumberSets::None) == 0);
}
