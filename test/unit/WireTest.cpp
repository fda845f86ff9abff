//===- test/unit/WireTest.cpp - the wire reader -----------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "lib/support/Wire.h"

#include <catch2/catch.hpp>

using namespace graft;
using llvm::StringRef;

namespace {

unsigned countFields(StringRef Bytes, bool &Failed) {
  wire::Reader R(Bytes);
  wire::Field F;
  unsigned Count = 0;
  while (R.next(F))
    ++Count;
  Failed = R.failed();
  return Count;
}

} // namespace

TEST_CASE("varints have the size that is promised", "[wire]") {
  for (uint64_t V :
       {uint64_t(0), uint64_t(1), uint64_t(127), uint64_t(128), uint64_t(16383),
        uint64_t(16384), uint64_t(1) << 35, ~uint64_t(0)}) {
    std::string Bytes;
    wire::appendVarint(Bytes, V);
    CHECK(Bytes.size() == wire::varintSize(V));
    wire::Reader R(Bytes);
    uint64_t Back;
    REQUIRE(R.varint(Back));
    CHECK(Back == V);
  }
}

TEST_CASE("fields come back with their bytes", "[wire]") {
  std::string Bytes;
  wire::appendBytes(Bytes, 1, "name");
  wire::appendInt(Bytes, 300, 7);
  wire::appendTag(Bytes, 3, wire::Type::Fixed32);
  Bytes.append("\x01\x00\x00\x00", 4);
  wire::appendTag(Bytes, 4, wire::Type::Fixed64);
  Bytes.append("\x02\x00\x00\x00\x00\x00\x00\x00", 8);
  wire::Reader R(Bytes);
  wire::Field F;
  REQUIRE(R.next(F));
  CHECK(F.Number == 1);
  CHECK(F.Bytes == "name");
  CHECK(F.Whole.size() == wire::bytesFieldSize(4));
  REQUIRE(R.next(F));
  CHECK(F.Number == 300);
  CHECK(F.Varint == 7);
  REQUIRE(R.next(F));
  CHECK(F.Varint == 1);
  REQUIRE(R.next(F));
  CHECK(F.Varint == 2);
  CHECK(!R.next(F));
  CHECK(!R.failed());
}

TEST_CASE("no prefix of a message is read beyond its end", "[wire]") {
  std::string Bytes;
  wire::appendBytes(Bytes, 1, "name");
  wire::appendInt(Bytes, 2, 1u << 20);
  bool Failed;
  CHECK(countFields(Bytes, Failed) == 2);
  CHECK(!Failed);
  for (size_t Size = 0; Size < Bytes.size(); ++Size) {
    unsigned Count = countFields(StringRef(Bytes).take_front(Size), Failed);
    bool AtBoundary = Size == 0 || Size == wire::bytesFieldSize(4);
    CHECK(Failed == !AtBoundary);
    CHECK(Count == (Size >= wire::bytesFieldSize(4) ? 1 : 0));
  }
}

TEST_CASE("malformed fields fail", "[wire]") {
  bool Failed;
  for (StringRef Bytes :
       {StringRef("\x00\x01", 2),                     // field number 0
        StringRef("\x0b\x01", 2),                     // a group
        StringRef("\x0a\xff\xff\xff\xff\x0f\x01", 7), // a length beyond the end
        StringRef("\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01",
                  13)}) { // a varint of 12 bytes
    CHECK(countFields(Bytes, Failed) == 0);
    CHECK(Failed);
  }
}
