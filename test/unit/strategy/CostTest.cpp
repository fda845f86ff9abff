//===- test/unit/strategy/CostTest.cpp - formulas by hand -----------------===//
//
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "lib/strategy/Cost.h"

#include <catch2/catch.hpp>

using namespace graft;

namespace {

/// Returns machines of 8 Gbit/s, that is 1e9 bytes a second.
ResourceSpec cluster(std::initializer_list<unsigned> GpusOfNodes) {
  ResourceSpec Spec;
  for (unsigned Gpus : GpusOfNodes) {
    ResourceNode &Node = Spec.Nodes.emplace_back();
    Node.Address =
        std::string(1, static_cast<char>('a' + Spec.Nodes.size() - 1));
    Node.Cpus = {0};
    for (unsigned I = 0; I < Gpus; ++I)
      Node.Gpus.push_back(I);
    Node.Bandwidth = 8;
  }
  Spec.Nodes[0].Chief = true;
  return Spec;
}

VariableRow dense(std::vector<int64_t> Shape) {
  VariableRow Row;
  Row.Name = "v";
  Row.Type = DT_FLOAT;
  Row.Bytes = 4;
  for (int64_t Size : Shape)
    Row.Bytes *= static_cast<uint64_t>(Size);
  Row.Shape = std::move(Shape);
  return Row;
}

VariableRow sparse(std::vector<int64_t> Shape, uint64_t Rows) {
  VariableRow Row = dense(std::move(Shape));
  Row.Sparse = true;
  Row.RowsPerStep = Rows;
  return Row;
}

VariableStrategy allReduce() { return {.Variable = "v"}; }

VariableStrategy ps(std::string Destination, bool Proxy = false) {
  VariableStrategy S{.Variable = "v"};
  S.Sync.Kind = Synchronizer::PS;
  S.Sync.Destination = std::move(Destination);
  S.Sync.Proxy = Proxy;
  return S;
}

Traffic trafficOf(const ResourceSpec &Spec, const VariableRow &Row,
                  const VariableStrategy &S) {
  CostModel Model(Spec);
  Traffic T = Model.none();
  Model.add(T, Row, S);
  return T;
}

constexpr const char *Host0 = "/job:worker/task:0/device:CPU:0";
constexpr const char *Host1 = "/job:worker/task:1/device:CPU:0";

} // namespace

TEST_CASE("an all-reduce between two devices of a machine", "[cost]") {
  ResourceSpec Spec = cluster({2});
  // M = 4,000,000: each of the two sends M/2 twice.
  Traffic T = trafficOf(Spec, dense({1000, 1000}), allReduce());
  CHECK(T.Collect[0].Inside == 2 * 4e6);
  CHECK(T.Collect[0].Out == 0);
  CHECK(T.Spread[0].Inside == 0);
  LinkSpeeds Speeds;
  Speeds.Inside = 8e6;
  Speeds.Latency = 0.25;
  Prediction P = CostModel(Spec, Speeds).predict(T);
  // One second for the bytes, and two messages one after the other.
  CHECK(P.Seconds == Approx(1 + 2 * 0.25));
  CHECK(P.Collect == Approx(1));
  CHECK(P.Latencies == Approx(2 * 0.25));
  CHECK(P.Spread + P.Join == 0);
  REQUIRE(P.Nodes.size() == 1);
  CHECK(P.Nodes[0].Inside == 8e6);
  CHECK(P.BusiestLink == "a inside");
  CHECK(P.BusiestBytes == 8e6);
  CHECK(P.NetworkBytes == 0);
}

TEST_CASE("an all-reduce over machines is one ring between them", "[cost]") {
  ResourceSpec Spec = cluster({2, 2, 2, 2});
  Traffic T = trafficOf(Spec, dense({1000, 1000}), allReduce());
  for (const NodeTraffic &Node : T.Collect) {
    // 2 (n-1)/n M
    CHECK(Node.Out == Approx(6e6));
    CHECK(Node.In == Approx(6e6));
    // 2 (g-1) M, and network bytes also leave or enter a device.
    CHECK(Node.Inside == Approx(8e6 + 12e6));
  }
  LinkSpeeds Speeds;
  Speeds.Latency = 1;
  // 6e6 bytes at 1e9 a second; 2 (g-1) + 2 (n-1) messages.
  CHECK(CostModel(Spec, Speeds).predict(T).Seconds == Approx(0.006 + 8));
}

TEST_CASE("an unreplicated computation needs the rows of all replicas",
          "[cost]") {
  ResourceSpec Spec = cluster({2, 1});
  CostModel Model(Spec);
  Traffic T = Model.none();
  Model.addJoined(T, 3e6);
  // Two of three replicas send a third each, one of them over the network.
  CHECK(T.Join[0].In == Approx(1e6));
  CHECK(T.Join[0].Inside == Approx(2e6));
  CHECK(T.Join[1].Out == Approx(1e6));
  CHECK(T.Join[1].Inside == Approx(1e6));
  LinkSpeeds Speeds;
  Speeds.Latency = 1;
  // No overlap: a message, and 1e6 bytes at 1e9 a second.
  Prediction P = CostModel(Spec, Speeds).predict(T);
  CHECK(P.Seconds == Approx(1 + 0.001));
  CHECK(P.Join == Approx(0.001));
  CHECK((P.Nodes[0].In == Approx(1e6) && P.Nodes[1].Out == Approx(1e6)));
  CHECK(P.NetworkBytes == Approx(1e6));
  // The same beside variables, whatever the strategy.
  StrategyRecord Record;
  Record.Variables = {allReduce()};
  std::vector<VariableRow> Table = {dense({1000, 1000})};
  CHECK(
      Model.predict(Table, Record, 3e6).Seconds ==
      Approx(Model.predict(Table, Record).Seconds + Model.predict(T).Seconds));
  // A single replica has all rows.
  ResourceSpec One = cluster({1});
  Traffic Alone = CostModel(One).none();
  CostModel(One).addJoined(Alone, 3e6);
  CHECK(CostModel(One).predict(Alone).Seconds == 0);
}

TEST_CASE("members of a group cost one latency", "[cost]") {
  ResourceSpec Spec = cluster({1, 1});
  CostModel Model(Spec);
  Traffic T = Model.none();
  VariableStrategy S = allReduce();
  Model.add(T, dense({10}), S);
  Model.add(T, dense({10}), S);
  CHECK(T.Groups.size() == 1);
  S.Sync.Group = 1;
  Model.add(T, dense({10}), S);
  CHECK(T.Groups.size() == 2);
  // A group has one type.
  VariableRow Half = dense({10});
  Half.Type = DT_HALF;
  Model.add(T, Half, S);
  CHECK(T.Groups.size() == 3);
}

TEST_CASE("16 bits are half of the bytes of an all-reduce", "[cost]") {
  ResourceSpec Spec = cluster({1, 1});
  VariableStrategy S = allReduce();
  S.Sync.Compressor = Synchronizer::BF16;
  CHECK(trafficOf(Spec, dense({1000}), S).Collect[0].Out == Approx(2000));
}

TEST_CASE("a gather of rows", "[cost]") {
  // 3 replicas; a step touches 30 rows of 10 floats: 10 rows (40 + 8) each.
  ResourceSpec Spec = cluster({2, 1});
  VariableRow Row = sparse({1000, 10}, 30);
  CHECK(bytesOfRows(Row, 3) == 480);
  Traffic T = trafficOf(Spec, Row, allReduce());
  // Machine a takes the rows of one replica, b those of two.
  CHECK(T.Collect[0].In == 480);
  CHECK(T.Collect[1].In == 960);
  CHECK(T.Collect[0].Out == 960);
  CHECK(T.Collect[1].Out == 480);
  // Each device takes (N-1) times the rows; rows that leave count, too.
  CHECK(T.Collect[0].Inside == 2 * 960 + 960);
  CHECK(T.Collect[1].Inside == 960 + 480);
  CHECK(T.Hops == 6);
  // If the number of rows is unknown it may be all of them.
  CHECK(bytesOfRows(sparse({1000, 10}, 0), 3) == 40000);
}

TEST_CASE("a parameter server sends to and takes from each replica", "[cost]") {
  ResourceSpec Spec = cluster({2, 2, 2});
  Traffic T = trafficOf(Spec, dense({1000, 1000}), ps(Host1));
  // Values go to each other machine once. Gradients come from each of the N - g
  // replicas on other machines.
  CHECK(T.Spread[1].Out == 2 * 4e6);
  CHECK(T.Collect[1].In == 4 * 4e6);
  CHECK(T.Spread[0].In == 4e6);
  CHECK(T.Collect[0].Out == 2 * 4e6);
  CHECK(T.Spread[1].Messages == 2);
  CHECK(T.Spread[0].Messages == 1);
  CHECK(T.Collect[1].Messages == 4);
  CHECK(T.Spread[1].Inside == 2 * 4e6);
  CHECK(T.Spread[0].Inside == 2 * 4e6);
  LinkSpeeds Speeds;
  Speeds.Latency = 1;
  Prediction P = CostModel(Spec, Speeds).predict(T);
  // 8 MB out and then 16 MB in, and a message each way.
  CHECK(P.Seconds == Approx(0.024 + 2));
  CHECK(P.NetworkBytes == Approx(24e6));
  CHECK((P.BusiestLink == "b in" && P.BusiestBytes == Approx(16e6)));
}

TEST_CASE("two servers share the bytes", "[cost]") {
  ResourceSpec Spec = cluster({1, 1, 1});
  VariableStrategy S = ps(Host0);
  S.Partitioner = {4, 1};
  S.Parts = {ps(Host0).Sync, ps(Host1).Sync, ps(Host0).Sync, ps(Host1).Sync};
  // Parts of 3, 3, 2 and 2 rows of 10: 5 on each of both.
  Traffic T = trafficOf(Spec, dense({10, 100}), S);
  CHECK(T.Spread[0].Out == Approx(2 * 2000));
  CHECK(T.Spread[1].Out == Approx(2 * 2000));
  CHECK(T.Spread[2].In == Approx(4000));
  CHECK(T.Spread[2].Messages == 4);
}

TEST_CASE("a server sends the rows that are read", "[cost]") {
  ResourceSpec Spec = cluster({1, 1, 1});
  VariableRow Row = sparse({1000, 10}, 30);
  Traffic T = trafficOf(Spec, Row, ps(Host0));
  CHECK(T.Spread[0].Out == 2 * 480);
  CHECK(T.Collect[0].In == 2 * 480);
  // A proxy takes all rows.
  T = trafficOf(Spec, Row, ps(Host0, /*Proxy=*/true));
  CHECK(T.Spread[0].Out == 2 * 40000);
  CHECK(T.Collect[0].In == 2 * 480);
  // For a dense variable it takes the same as without a proxy.
  T = trafficOf(Spec, dense({1000}), ps(Host0, true));
  CHECK(T.Spread[0].Out == 2 * 4000);
}

TEST_CASE("a variable on a replica's device does not move there", "[cost]") {
  ResourceSpec Spec = cluster({2});
  // On GPU 0 of the only machine: one other replica.
  Traffic T = trafficOf(Spec, dense({1000}), ps(""));
  CHECK(T.Spread[0].Inside == 4000);
  CHECK(T.Collect[0].Inside == 4000);
  // On the host: both.
  T = trafficOf(Spec, dense({1000}), ps("/device:CPU:0"));
  CHECK(T.Spread[0].Inside == 8000);
}

TEST_CASE("the slower network counts", "[cost]") {
  ResourceSpec Spec = cluster({1, 1});
  Spec.Nodes[1].Bandwidth = 2;
  Prediction P = CostModel(Spec).predict(
      trafficOf(Spec, dense({1000, 1000}), allReduce()));
  CHECK(P.BusiestLink == "b out");
  CHECK(P.Seconds == Approx(4e6 / 0.25e9 + 2 * 50e-6));
}

TEST_CASE("many small messages take a server's time", "[cost]") {
  ResourceSpec Spec = cluster({1, 1});
  LinkSpeeds Speeds;
  Speeds.Latency = 0;
  CostModel Model(Spec, Speeds);
  Traffic T = Model.none();
  for (unsigned I = 0; I < 1000; ++I)
    Model.add(T, dense({1}), ps(Host1));
  // 1000 messages of 5 microseconds each way; 4 kB take no time.
  CHECK(Model.predict(T).Seconds == Approx(2 * 1000 * 5e-6));
}

TEST_CASE("one replica sends nothing", "[cost]") {
  ResourceSpec Spec = cluster({1});
  for (const VariableStrategy &S : {allReduce(), ps("/device:CPU:0")}) {
    Prediction P = CostModel(Spec).predict(trafficOf(Spec, dense({9}), S));
    CHECK(P.Seconds == 0);
    CHECK(P.BusiestBytes == 0);
  }
}
