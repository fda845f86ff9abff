//===- test/unit/lower/ExpandTest.cpp - in-graph replication ----*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "lib/lower/expand/Expand.h"

#include "../infer/Builder.h"

#include "lib/graph/Verifier.h"
#include "lib/io/write/Write.h"

using namespace graft;

namespace {

/// Returns the expansion of \p B, checked for the promised size.
std::string expand(Builder &B) {
  ReplicaExpander Writer(B.G, readMesh(B.G));
  StringSink Sink;
  uint64_t Promised = Writer.size();
  Writer.write(Sink);
  CHECK(Sink.Text.size() == Promised);
  return Sink.Text;
}

std::vector<std::string> inputNames(const Graph &G, llvm::StringRef Name) {
  std::vector<std::string> Result;
  NodeId N = G.find(Name);
  INFO(Name.str());
  REQUIRE(N != NoNode);
  for (Endpoint E : G.inputs(N))
    Result.push_back(
        (E.isControl() ? "^" : "") + G.name(E.Node).str() +
        (E.isControl() || E.Port == 0 ? "" : ":" + std::to_string(E.Port)));
  return Result;
}

using Strings = std::vector<std::string>;

} // namespace

TEST_CASE("devices merge", "[expand]") {
  CHECK(mergeDevices("", "/device:GPU:1") == "/device:GPU:1");
  CHECK(mergeDevices("/job:w/task:2/device:CPU:0", "/device:GPU:1") ==
        "/job:w/task:2/device:GPU:1");
  CHECK(mergeDevices("/job:w", "/job:v/device:GPU:1") == "/job:v/device:GPU:1");
}

TEST_CASE("every number of replicas gives a legal graph of the promised size",
          "[expand]") {
  for (unsigned N : {1, 2, 3, 9, 10, 11, 101}) {
    INFO(N << " replicas");
    Builder B(N);
    B.feed("x", {-1, 4});
    B.op("Neg", "y", {"x/split"});
    B.op("Square", std::string(120, 'n'), {"y"}); // its length needs two bytes
    B.ints("shape", {4});
    NodeId Draw = B.op("RandomUniform", "draw", {"shape"}, DT_INT32);
    B.G.setIntAttr(Draw, "seed", 3);
    B.G.setIntAttr(Draw, "seed2", 126); // grows by a byte from replica 2 on
    B.facts();
    B.G.node(Draw).Count = Copies::PerReplica;
    std::string Bytes = expand(B);
    Graph G;
    llvm::cantFail(G.parse(Bytes));
    DiagnosticEngine Diags;
    CHECK(verifyGraph(G, Diags));
    // Per replica: y, the long name, the draw; unreplicated: x, its split and
    // axis, shape.
    CHECK(G.numLive() == 3 * N + 4);
    for (unsigned I = 1; I < N; ++I) {
      std::string Number = std::to_string(I);
      NodeId Y = G.find("replica_" + Number + "/y");
      REQUIRE(Y != NoNode);
      CHECK(G.device(Y) == "/device:CPU:" + Number);
      CHECK(G.input(Y, 0).Port == I);
      CHECK(G.intAttr(G.find("replica_" + Number + "/draw"), "seed2") ==
            126 + int64_t(I));
    }
    CHECK(G.intAttr(G.find("x/split"), "num_split") == int64_t(N));
    CHECK(G.intAttr(G.find("x/split"), StampAttr) == int64_t(N));
  }
}

TEST_CASE("control edges", "[expand]") {
  Builder B(3);
  NodeId A = B.op("NoOp", "a", {});
  NodeId Led = B.op("NoOp", "led", {"^a"});
  NodeId Each = B.op("NoOp", "each", {"^led"});
  B.op("NoOp", "once", {"^a", "^led"});
  for (NodeId N : {A, Led, Each})
    B.G.node(N).Count = Copies::PerReplica;
  B.G.node(Led).Flags |= NF_Led;
  std::string Bytes = expand(B);
  Graph G;
  llvm::cantFail(G.parse(Bytes));
  CHECK(inputNames(G, "led") ==
        Strings{"^a", "^replica_1/led", "^replica_2/led"});
  CHECK(inputNames(G, "replica_2/led") == Strings{"^replica_2/a"});
  CHECK(inputNames(G, "replica_1/each") == Strings{"^replica_1/led"});
  CHECK(inputNames(G, "once") ==
        Strings{"^a", "^replica_1/a", "^replica_2/a", "^led"});
}

TEST_CASE("untouched nodes are written as they were read", "[expand]") {
  Builder B(2);
  B.number("c", 1);
  B.op("Neg", "d", {"c"});
  StringSink Sink;
  B.G.remove(B.G.find("graft/mesh"));
  std::string Before = expand(B);
  Graph G;
  llvm::cantFail(G.parse(Before));
  ReplicaExpander Writer(G, Mesh{NoNode, {"/device:CPU:0", "/device:CPU:1"}});
  Writer.write(Sink);
  CHECK(Sink.Text == Before);
}
