//===- test/unit/InternalErrorTest.cpp - internal errors --------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "lib/support/InternalError.h"

#include <catch2/catch.hpp>

#include <string>
#include <sys/wait.h>
#include <unistd.h>

using namespace graft;

namespace {

TEST_CASE("an analysis without end ends the program and names the node") {
  int Pipe[2];
  REQUIRE(pipe(Pipe) == 0);
  pid_t Child = fork();
  REQUIRE(Child >= 0);
  if (Child == 0) {
    dup2(Pipe[1], STDERR_FILENO);
    TurnLimit Limit("types", 2);
    auto Name = [] { return std::string("x"); };
    for (int I = 0; I < 3; ++I) {
      if (write(Pipe[1], ".", 1) != 1)
        _exit(2);
      Limit.turn(Name);
    }
    _exit(0);
  }
  close(Pipe[1]);
  std::string Said;
  char Buffer[256];
  for (ssize_t Got; (Got = read(Pipe[0], Buffer, sizeof(Buffer))) > 0;)
    Said.append(Buffer, Got);
  close(Pipe[0]);
  int Status = 0;
  REQUIRE(waitpid(Child, &Status, 0) == Child);
  REQUIRE(WIFEXITED(Status));
  CHECK(WEXITSTATUS(Status) == 70);
  CHECK(Said.starts_with(
      "...graft: internal error: node 'x': types do not converge; this is a "));
  CHECK(Said.find('\n') == Said.size() - 1);
}

} // namespace
