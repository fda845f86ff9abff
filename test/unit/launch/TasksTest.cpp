//===- test/unit/launch/TasksTest.cpp - tasks of a cluster ------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "lib/launch/Tasks.h"

#include "llvm/ADT/StringRef.h"

#include <catch2/catch.hpp>
#include <set>

using namespace graft;

static ClusterSpec cluster(llvm::StringRef Text) {
  auto Result = parseCluster(Text, "file");
  REQUIRE(static_cast<bool>(Result));
  return std::move(*Result);
}

TEST_CASE("Arguments are filled in wherever a place is", "[launch]") {
  Task T{"worker", 12};
  CHECK(fillIn("{task} {job}{index}{index}", T) == "worker/12 worker1212");
  CHECK(fillIn("{{index}} {Index} {", T) == "{12} {Index} {");
}

TEST_CASE("Port 0 becomes one that nobody else has", "[launch]") {
  ClusterSpec C = cluster(R"({"cluster": {"worker": [":0", "h:0", "h:7"]}})");
  REQUIRE_FALSE(static_cast<bool>(choosePorts(C, 0)));
  std::set<std::string> Different;
  for (llvm::StringRef Address : C.Jobs["worker"])
    Different.insert(Address.rsplit(':').second.str());
  CHECK(Different.size() == 3);
  CHECK(Different.count("0") == 0);
  CHECK(llvm::StringRef(C.Jobs["worker"][0]).starts_with("localhost:"));
  CHECK(llvm::StringRef(C.Jobs["worker"][1]).starts_with("h:"));
  CHECK(C.Jobs["worker"][2] == "h:7");
}

TEST_CASE("Ports from a base on leave out what the file has", "[launch]") {
  ClusterSpec C = cluster(
      R"({"cluster": {"worker": ["a:20000", "a:0", "a:0"], "chief": ["a:0"]}})");
  REQUIRE_FALSE(static_cast<bool>(choosePorts(C, 20000)));
  auto PortOf = [&](const char *Job, unsigned Index) {
    unsigned Port = 0;
    llvm::StringRef(C.Jobs[Job][Index])
        .rsplit(':')
        .second.getAsInteger(10, Port);
    return Port;
  };
  CHECK(PortOf("chief", 0) > 20000);
  CHECK(PortOf("worker", 1) > PortOf("chief", 0));
  CHECK(PortOf("worker", 2) > PortOf("worker", 1));
}
