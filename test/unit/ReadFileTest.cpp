//===- test/unit/ReadFileTest.cpp - bytes of files and streams --*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "lib/support/ReadFile.h"

#include <catch2/catch.hpp>

#include <fcntl.h>
#include <unistd.h>

using namespace graft;

namespace {

TEST_CASE("a stream without end is too large") {
  int Zeros = ::open("/dev/zero", O_RDONLY);
  REQUIRE(Zeros >= 0);
  auto Buffer = readStream(Zeros, "zeros", 1 << 20);
  CHECK(Buffer.getError() == std::errc::file_too_large);
  ::close(Zeros);
}

TEST_CASE("a stream is read up to its end") {
  int Pipe[2];
  REQUIRE(::pipe(Pipe) == 0);
  REQUIRE(::write(Pipe[1], "bytes", 5) == 5);
  ::close(Pipe[1]);
  auto Buffer = readStream(Pipe[0], "pipe", 5);
  REQUIRE(bool(Buffer));
  CHECK((*Buffer)->getBuffer() == "bytes");
  ::close(Pipe[0]);
}

} // namespace
