//===- test/unit/strategy/AutoTest.cpp - the strategy auto ----------------===//
//
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "lib/strategy/Plan.h"

#include "llvm/ADT/STLExtras.h"

#include <catch2/catch.hpp>

#include <random>

using namespace graft;

namespace {

ResourceSpec cluster(llvm::ArrayRef<unsigned> GpusOfNodes, double Bandwidth) {
  ResourceSpec Spec;
  for (unsigned Gpus : GpusOfNodes) {
    ResourceNode &Node = Spec.Nodes.emplace_back();
    Node.Address = "m" + std::to_string(Spec.Nodes.size() - 1);
    Node.Cpus = {0};
    for (unsigned I = 0; I < Gpus; ++I)
      Node.Gpus.push_back(I);
    Node.Bandwidth = Bandwidth;
  }
  Spec.Nodes[0].Chief = true;
  return Spec;
}

VariableRow variable(std::string Name, std::vector<int64_t> Shape,
                     uint64_t Rows = 0) {
  VariableRow Row;
  Row.Name = std::move(Name);
  Row.Type = DT_FLOAT;
  Row.Bytes = 4;
  for (int64_t Size : Shape)
    Row.Bytes *= static_cast<uint64_t>(Size);
  Row.Shape = std::move(Shape);
  Row.Sparse = Rows != 0;
  Row.RowsPerStep = Rows;
  return Row;
}

double seconds(llvm::ArrayRef<VariableRow> Table, const ResourceSpec &Spec,
               const StrategyRecord &Record) {
  return CostModel(Spec).predict(Table, Record).Seconds;
}

} // namespace

TEST_CASE("auto takes rows to servers and sums around a ring", "[auto]") {
  ResourceSpec Spec = cluster({4, 4, 4, 4}, 10);
  std::vector<VariableRow> Table = {variable("dense", {4096, 4096}),
                                    variable("rows", {1000000, 512}, 10000),
                                    variable("bias", {4096})};
  StrategyRecord R = buildAuto(Table, Spec, {});
  REQUIRE(R.Variables.size() == 3);
  CHECK(R.Replicas == Spec.replicaDevices());
  CHECK(R.Variables[0].Variable == "dense");
  CHECK(R.Variables[0].Sync.Kind == Synchronizer::AllReduce);
  CHECK(R.Variables[1].Variable == "rows");
  CHECK(R.Variables[1].Sync.Kind == Synchronizer::PS);
  // A proxy would take all rows.
  CHECK_FALSE(R.Variables[1].Sync.Proxy);
  CHECK(llvm::StringRef(R.Variables[1].Why).contains(" ms by all-reduce"));
  for (const std::string &Name : builderNames())
    CHECK(seconds(Table, Spec, R) <=
          seconds(Table, Spec, buildStrategy(Name, Table, Spec, {})));
}

TEST_CASE("auto spreads what is on servers", "[auto]") {
  // Few of the rows are touched in a step.
  ResourceSpec Spec = cluster({1, 1, 1, 1}, 10);
  std::vector<VariableRow> Table;
  for (int I = 0; I < 8; ++I)
    Table.push_back(variable("v" + std::to_string(I), {100000, 64}, 4000));
  StrategyRecord R = buildAuto(Table, Spec, {});
  std::vector<std::string> Used;
  for (const VariableStrategy &V : R.Variables) {
    CHECK(V.Sync.Kind == Synchronizer::PS);
    Used.push_back(V.Sync.Destination);
    for (const Synchronizer &Part : V.Parts)
      Used.push_back(Part.Destination);
  }
  for (const std::string &Server : Spec.hostDevices())
    CHECK(llvm::is_contained(Used, Server));
}

TEST_CASE("auto is as good as every builder, and the same each time",
          "[auto]") {
  std::mt19937 Random(7);
  auto Below = [&](unsigned Bound) { return Random() % Bound; };
  for (unsigned Case = 0; Case < 150; ++Case) {
    std::vector<unsigned> Gpus(1 + Below(5));
    for (unsigned &Count : Gpus)
      Count = 1 + Below(4);
    ResourceSpec Spec = cluster(Gpus, 1 + Below(50));
    std::vector<VariableRow> Table;
    for (unsigned I = 0, Count = 1 + Below(12); I < Count; ++I) {
      std::vector<int64_t> Shape(Below(3));
      for (int64_t &Size : Shape)
        Size = 1 + Below(2000);
      bool Sparse = !Shape.empty() && Below(3) == 0;
      Table.push_back(variable("v" + std::to_string(I), std::move(Shape),
                               Sparse ? 1 + Below(5000) : 0));
    }
    StrategyRecord R = buildAuto(Table, Spec, {});
    double Own = seconds(Table, Spec, R);
    for (const std::string &Name : builderNames())
      CHECK(Own <= seconds(Table, Spec, buildStrategy(Name, Table, Spec, {})));
    StrategyRecord Again = buildAuto(Table, Spec, {});
    REQUIRE(R.Variables.size() == Table.size());
    std::vector<std::string> Hosts = Spec.hostDevices();
    for (size_t I = 0; I < Table.size(); ++I) {
      const VariableStrategy &V = R.Variables[I];
      CHECK(V.Variable == Table[I].Name);
      CHECK(V.Sync == Again.Variables[I].Sync);
      CHECK(V.Parts == Again.Variables[I].Parts);
      CHECK(V.Why == Again.Variables[I].Why);
      CHECK((V.Partitioner.empty() ||
             V.Partitioner.size() == Table[I].Shape.size()));
      for (const Synchronizer &Part : V.Parts)
        CHECK((Part.Kind == Synchronizer::AllReduce ||
               llvm::is_contained(Hosts, Part.Destination)));
    }
  }
}
