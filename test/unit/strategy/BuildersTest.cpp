//===- test/unit/strategy/BuildersTest.cpp - strategies by name -----------===//
//
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "lib/strategy/Builders.h"
#include "lib/strategy/RecordFile.h"

#include <catch2/catch.hpp>

#include <climits>
#include <set>

using namespace graft;

namespace {

using Counts = std::vector<unsigned>;

VariableRow row(const char *Name, std::vector<int64_t> Shape,
                bool Sparse = false) {
  VariableRow Row;
  Row.Name = Name;
  Row.Type = DT_FLOAT;
  Row.Bytes = 4;
  for (int64_t Size : Shape)
    Row.Bytes *= Size;
  Row.Shape = std::move(Shape);
  Row.Sparse = Sparse;
  return Row;
}

/// Returns machines with a GPU each.
ResourceSpec machines(unsigned Count) {
  ResourceSpec Spec;
  for (unsigned I = 0; I < Count; ++I)
    Spec.Nodes.push_back(
        {"10.0.0." + std::to_string(I + 1), I == 0, {0}, {0}, 10});
  return Spec;
}

std::string cpu(unsigned Task) {
  return "/job:worker/task:" + std::to_string(Task) + "/device:CPU:0";
}

StrategyRecord build(llvm::StringRef Name, std::vector<VariableRow> Rows,
                     BuilderOptions O = {}, unsigned Machines = 4) {
  return buildStrategy(Name, Rows, machines(Machines), O);
}

/// Returns the embedding and the softmax of LM1B, the embeddings of MovieLens,
/// GPT-2 and a few small ones.
std::vector<VariableRow> models() {
  return {row("emb", {793471, 512}, true),
          row("softmax", {793470, 512}, true),
          row("user", {138493, 64}, true),
          row("wte", {50257, 768}),
          row("kernel", {512, 2048}),
          row("bias", {2048}),
          row("scalar", {})};
}

} // namespace

TEST_CASE("every builder says something of every variable", "[builders]") {
  CHECK(builderNames().size() == 9);
  for (const std::string &Name : builderNames()) {
    INFO(Name);
    StrategyRecord R = build(Name, models());
    CHECK(R.Id == Name);
    CHECK(R.Replicas.size() == 4);
    REQUIRE(R.Variables.size() == 7);
    // A builder partitions variables if its entry says so; auto may.
    bool Cuts = llvm::any_of(R.Variables, [](const VariableStrategy &V) {
      return V.numParts() != 1;
    });
    CHECK((Name == "auto" || Cuts == findBuilder(Name)->Cuts));
    CHECK((!Cuts || findBuilder(Name)->Cuts));
    for (const VariableStrategy &V : R.Variables) {
      INFO(V.Variable);
      CHECK_FALSE(V.Why.empty());
      bool IsWhole = V.numParts() == 1;
      CHECK(V.Parts.size() == (IsWhole ? 0 : V.numParts()));
      CHECK(V.numParts() <= BuilderOptions().MaxShards);
      // A part has the destination of a server, or a group.
      for (const Synchronizer &S : V.Parts)
        CHECK((S.Kind == Synchronizer::PS) == !S.Destination.empty());
    }
    // A strategy is the same when it is read again.
    ResourceSpec Spec = machines(4);
    for (bool AsText : {false, true}) {
      std::string Bytes = printRecord(R, Spec, AsText);
      auto Again = parseRecord(Bytes, AsText ? "a.pbtxt" : "a.pb");
      REQUIRE(bool(Again));
      REQUIRE_FALSE(bool(resolveDevices(*Again, Spec, "a")));
      CHECK(Again->Replicas == R.Replicas);
      CHECK(printRecord(*Again, Spec, AsText) == Bytes);
    }
  }
}

TEST_CASE("ps takes the first server, its balanced form the emptiest",
          "[builders]") {
  std::vector<VariableRow> Rows{row("a", {100}), row("b", {60}), row("c", {30}),
                                row("d", {30}), row("e", {30})};
  for (const VariableStrategy &V : build("ps", Rows, {}, 2).Variables)
    CHECK(V.Sync.Destination == cpu(0));
  std::vector<std::string> Servers;
  for (const VariableStrategy &V :
       build("ps-load-balancing", Rows, {}, 2).Variables)
    Servers.push_back(V.Sync.Destination);
  // The last two, of 30, find 100 | 90 and 100 | 120 on the servers.
  CHECK(Servers ==
        std::vector<std::string>{cpu(0), cpu(1), cpu(1), cpu(1), cpu(0)});
}

TEST_CASE("parts of a prime number of rows are few", "[builders]") {
  auto Parts = [](llvm::StringRef Name, VariableRow Row,
                  BuilderOptions O = {}) {
    return build(Name, {std::move(Row)}, O).Variables[0].Partitioner;
  };
  // 138,493 is a prime, and the least divisor of 50,257 is 29.
  CHECK(Parts("partitioned-ps", row("user", {138493, 64})) == Counts{2, 1});
  CHECK(Parts("partitioned-ps", row("emb", {793471, 512})) == Counts{7, 1});
  CHECK(Parts("partitioned-all-reduce", row("wte", {50257, 768})) ==
        Counts{2, 1});
  CHECK(Parts("partitioned-ps", row("k", {35, 100000})) == Counts{5, 1});
  CHECK(Parts("uneven-partitioned-ps", row("k", {35, 100000})) == Counts{2, 1});
  CHECK(Parts("uneven-partitioned-ps", row("k", {36, 100000})) == Counts{5, 1});
  // Small variables stay whole by default.
  CHECK(Parts("partitioned-ps", row("b", {2048})) == Counts{});
  BuilderOptions O;
  O.MinShardBytes = 1;
  CHECK(Parts("partitioned-ps", row("b", {2048}), O) == Counts{2});
  CHECK(Parts("partitioned-ps", row("b", {1}), O) == Counts{});
  CHECK(Parts("partitioned-ps", row("b", {}), O) == Counts{});
  O.MaxShards = 4;
  CHECK(Parts("partitioned-ps", row("k", {35, 100000}), O) == Counts{2, 1});
  O.MaxShards = 1;
  CHECK(Parts("partitioned-ps", row("k", {35, 100000}), O) == Counts{});
  // Equal parts of a prime are as many as the prime: 2147483647 is too many.
  O.MaxShards = UINT_MAX;
  CHECK(Parts("partitioned-ps", row("p", {2147483647}), O) == Counts{2});
  CHECK(Parts("partitioned-ps", row("p", {65521}), O) == Counts{65521});
}

TEST_CASE("one server has variables whole", "[builders]") {
  BuilderOptions O;
  O.MinShardBytes = 1;
  for (const char *Name : {"partitioned-ps", "uneven-partitioned-ps"}) {
    StrategyRecord R = build(Name, {row("w", {8})}, O, 1);
    CHECK(R.Variables[0].Partitioner.empty());
    CHECK(R.Variables[0].Sync.Destination == "/device:CPU:0");
    CHECK(build(Name, {row("w", {8})}, O, 2).Variables[0].numParts() > 1);
  }
}

TEST_CASE("parts go to the emptiest servers in turn", "[builders]") {
  BuilderOptions O;
  O.MinShardBytes = 1;
  StrategyRecord R =
      build("partitioned-ps", {row("a", {1, 9}), row("b", {5, 2})}, O, 3);
  // Server 0 has a.
  std::vector<std::string> Servers;
  for (const Synchronizer &S : R.Variables[1].Parts)
    Servers.push_back(S.Destination);
  CHECK(Servers ==
        std::vector<std::string>{cpu(1), cpu(2), cpu(0), cpu(1), cpu(2)});
}

TEST_CASE("groups count variables, or parts", "[builders]") {
  BuilderOptions O;
  O.GroupSize = 2;
  O.MinShardBytes = 1;
  std::vector<VariableRow> Rows{row("a", {1}), row("b", {1}), row("c", {4}),
                                row("d", {1})};
  auto Groups = [&](llvm::StringRef Name) {
    std::vector<int> Result;
    for (const VariableStrategy &V : build(Name, Rows, O).Variables) {
      if (V.Parts.empty())
        Result.push_back(V.Sync.Group);
      for (const Synchronizer &S : V.Parts)
        Result.push_back(S.Group);
    }
    return Result;
  };
  CHECK(Groups("all-reduce") == std::vector<int>{0, 0, 1, 1});
  CHECK(Groups("partitioned-all-reduce") == std::vector<int>{0, 0, 1, 1, 2});
}

TEST_CASE("parallax has rows on servers and the rest all-reduced",
          "[builders]") {
  BuilderOptions O;
  O.Compressor = Synchronizer::Fp16;
  O.Spec = Synchronizer::Ring;
  StrategyRecord R = build(
      "parallax", {row("a", {9}), row("e", {5, 2}, true), row("b", {3})}, O);
  CHECK(printSynchronizer(R.Variables[0].Sync) ==
        "all-reduce,spec=ring,compressor=fp16");
  CHECK(printSynchronizer(R.Variables[1].Sync) == "ps,destination=" + cpu(0));
  CHECK(R.Variables[2].Sync.Kind == Synchronizer::AllReduce);
}

TEST_CASE("a seed decides on axes", "[builders]") {
  std::vector<VariableRow> Rows;
  for (int I = 0; I < 12; ++I)
    Rows.push_back(row("w", {4, 1, 6}));
  Rows.push_back(row("e", {4, 6}, true));
  BuilderOptions O;
  O.MinShardBytes = 1;
  auto Axes = [&](uint64_t Seed) {
    O.Seed = Seed;
    std::string Text;
    for (const VariableStrategy &V :
         build("random-axis-partition-all-reduce", Rows, O).Variables)
      Text += V.Partitioner.front() > 1 ? '0' : '2';
    return Text;
  };
  // The same on every platform.
  CHECK(Axes(0) == "2020202020200");
  CHECK(Axes(0) == Axes(0));
  CHECK(Axes(0) != Axes(1));
  CHECK(Axes(7).back() == '0');
}
