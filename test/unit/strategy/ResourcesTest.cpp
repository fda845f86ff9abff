//===- test/unit/strategy/ResourcesTest.cpp - machines and variables ------===//
//
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "lib/strategy/Resources.h"

#include "../infer/Builder.h"

using namespace graft;

namespace {

using Names = std::vector<std::string>;

ResourceSpec oneMachine() { return {{{"10.0.0.1", true, {0, 1}, {0}, 10}}}; }

ResourceSpec twoMachines() {
  return {
      {{"10.0.0.1", true, {0, 1}, {0}, 10}, {"host:2", false, {}, {0, 1}, 10}}};
}

} // namespace

TEST_CASE("devices of one machine have no task", "[resources]") {
  ResourceSpec S = oneMachine();
  CHECK(S.replicaDevices() == Names{"/device:GPU:0", "/device:GPU:1"});
  CHECK(S.hostDevices() == Names{"/device:CPU:0"});
  for (const char *Name :
       {"10.0.0.1:GPU:1", "/device:GPU:1", "/GPU:1",
        "/job:localhost/replica:0/task:0/device:GPU:1", "gpu:1"}) {
    INFO(Name);
    CHECK(S.resolve(Name) == "/device:GPU:1");
  }
  for (const char *Name :
       {"10.0.0.1:GPU:2", "10.0.0.2:GPU:0", "/device:CPU:1", "10.0.0.1",
        "10.0.0.1:0", "", "/", "/device:GPU:2", "/job:worker/device:GPU:0"})
    CHECK_FALSE(S.resolve(Name));
  CHECK(S.autodistName("/device:GPU:1") == "10.0.0.1:GPU:1");
}

TEST_CASE("the task is the place of a machine", "[resources]") {
  ResourceSpec S = twoMachines();
  CHECK(S.replicaDevices() == Names{"/job:worker/task:0/device:GPU:0",
                                    "/job:worker/task:0/device:GPU:1",
                                    "/job:worker/task:1/device:CPU:0",
                                    "/job:worker/task:1/device:CPU:1"});
  CHECK(S.hostDevices() == Names{"/job:worker/task:0/device:CPU:0",
                                 "/job:worker/task:1/device:CPU:0",
                                 "/job:worker/task:1/device:CPU:1"});
  CHECK(S.resolve("host:2:CPU:1") == "/job:worker/task:1/device:CPU:1");
  CHECK(S.resolve("/job:worker/replica:0/task:1/cpu:1") ==
        "/job:worker/task:1/device:CPU:1");
  // The machine of these devices is unknown.
  CHECK_FALSE(S.resolve("/device:CPU:0"));
  CHECK_FALSE(S.resolve("/job:worker/task:2/device:CPU:0"));
  CHECK_FALSE(S.resolve("/job:ps/task:1/device:CPU:0"));
  CHECK(S.autodistName("/job:worker/task:1/device:CPU:0") == "host:2:CPU:0");
  CHECK(S.autodistName("/job:ps/task:1/device:CPU:0") ==
        "/job:ps/task:1/device:CPU:0");
}

TEST_CASE("devices tell their machines", "[resources]") {
  Names Devices{"/device:CPU:0", "/device:CPU:1", "/device:CPU:2"};
  ResourceSpec S = resourcesOf(Devices);
  REQUIRE(S.Nodes.size() == 1);
  CHECK(S.Nodes[0].Address == "localhost");
  CHECK(S.Nodes[0].Chief);
  CHECK(S.replicaDevices() == Devices);
  CHECK(S.hostDevices() == Devices);
  CHECK(S.autodistName("/device:CPU:2") == "localhost:CPU:2");

  Devices = {"/job:w/task:1/device:GPU:0", "/job:w/task:1/device:GPU:3",
             "/job:w/task:0/device:GPU:0"};
  S = resourcesOf(Devices);
  REQUIRE(S.Nodes.size() == 2);
  CHECK(S.replicaDevices() == Devices);
  CHECK(S.hostDevices() ==
        Names{"/job:w/task:1/device:CPU:0", "/job:w/task:0/device:CPU:0"});
  CHECK(S.resolve("/job:w/task:1/device:GPU:3") == Devices[1]);
  CHECK(S.autodistName(Devices[1]) == Devices[1]);
}

TEST_CASE("trainable variables are those of optimizers", "[resources]") {
  Builder B;
  NodeId W = B.variable("w", {4, 3});
  B.variable("slot", {4, 3});
  NodeId Table = B.variable("table", {10, 2});
  B.variable("average", {4});
  B.number("lr", 0.1);
  B.placeholder("g", {4, 3});
  B.placeholder("rows", {6, 2});
  B.placeholder("ids", {6}, DT_INT32);
  B.placeholder("d", {4});
  B.op("ResourceApplyMomentum", "step", {"w", "slot", "lr", "g", "lr"});
  NodeId Sparse = B.op("ResourceSparseApplyAdagrad", "rows/step",
                       {"table", "table", "lr", "rows", "ids"});
  B.G.setTypeAttr(Sparse, "Tindices", DT_INT32);
  B.op("AssignSubVariableOp", "average/step", {"average", "d"});
  B.floats("ones", {4, 3}, 1);
  B.op("AssignVariableOp", "w/init", {"w", "ones"});

  VariableIndex Vars(B.G);
  auto Rows = listVariables(B.G, Vars, {});
  REQUIRE(Rows.size() == 2);
  CHECK(Rows[0].Node == W);
  CHECK(Rows[0].Name == "w");
  CHECK(Rows[0].Shape == std::vector<int64_t>{4, 3});
  CHECK(Rows[0].Bytes == 48);
  CHECK_FALSE(Rows[0].Sparse);
  CHECK(Rows[1].Node == Table);
  CHECK(Rows[1].Sparse);
  CHECK(Rows[1].RowsPerStep == 6);

  // Declared variables count, whatever op updates them.
  NodeId Average = B.end("average").Node;
  Rows = listVariables(B.G, Vars, {Average, W});
  REQUIRE(Rows.size() == 2);
  CHECK(Rows[0].Node == W);
  CHECK(Rows[1].Node == Average);
}

TEST_CASE("plain ops train variables too", "[resources]") {
  Builder B;
  NodeId W = B.variable("w", {4});
  NodeId V = B.variable("v", {4});
  B.variable("frozen", {4});
  B.variable("unknown", {-1});
  B.shaped("VarHandleOp", "steps", {}, DT_INT64);
  B.floats("ones", {4}, 1);
  B.op("AssignVariableOp", "frozen/init", {"frozen", "ones"});
  B.op("AssignVariableOp", "w/init", {"w", "ones"});
  B.op("ReadVariableOp", "w/read", {"w"});
  B.op("Sub", "less", {"w/read", "ones"});
  B.op("AssignVariableOp", "w/step", {"w", "less"});
  B.op("AssignSubVariableOp", "v/step", {"v", "ones"});
  B.op("AssignSubVariableOp", "unknown/step", {"unknown", "ones"});
  B.op("AssignAddVariableOp", "count", {"steps", "ones"});
  auto Rows = listVariables(B.G, VariableIndex(B.G), {});
  REQUIRE(Rows.size() == 2);
  CHECK(Rows[0].Node == W);
  CHECK(Rows[1].Node == V);
}
