//===- test/unit/RecordTest.cpp - strategies as text ------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "lib/strategy/Record.h"

#include <catch2/catch.hpp>

using namespace graft;

TEST_CASE("a synchronizer is read as it is written", "[record]") {
  for (const char *Text :
       {"ps", "ps,destination=/job:worker/task:1/device:CPU:0,proxy",
        "ps,async,staleness=2", "all-reduce",
        "all-reduce,spec=nccl,compressor=bf16-ef,group=3"}) {
    auto S = parseSynchronizer(Text);
    REQUIRE(S);
    CHECK(printSynchronizer(*S) == Text);
  }
  for (const char *Text :
       {"", "psx", "ps,group=1", "all-reduce,proxy", "all-reduce,spec=fast",
        "all-reduce,group=x", "ps,staleness=", "ps,"})
    CHECK_FALSE(parseSynchronizer(Text));
}

TEST_CASE("a partition is read as it is written", "[record]") {
  auto P = parsePartition("1:3,2,2");
  REQUIRE(P);
  CHECK(P->Axis == 1);
  CHECK(P->Sizes == std::vector<int64_t>{3, 2, 2});
  CHECK(printPartition(*P) == "1:3,2,2");
  for (const char *Text : {"", "1", "1:", "1:0,2", "x:1", "1:2,,3", "1:-2"})
    CHECK_FALSE(parsePartition(Text));
}
