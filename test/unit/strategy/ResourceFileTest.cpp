//===- test/unit/strategy/ResourceFileTest.cpp - resource_spec.yml --------===//
//
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "lib/strategy/Resources.h"

#include <catch2/catch.hpp>

using namespace graft;

namespace {

std::string errorOf(llvm::StringRef Text) {
  std::vector<std::string> Notes;
  auto Spec = parseResources(Text, "r.yml", Notes);
  return Spec ? "" : llvm::toString(Spec.takeError());
}

} // namespace

TEST_CASE("a resource spec is read", "[resources]") {
  std::vector<std::string> Notes;
  auto Spec = parseResources("nodes:\n"
                             "  - address: 10.0.0.2\n"
                             "    cpus: [1, 0]\n"
                             "    ssh_config: conf\n"
                             "  - address: \"b::1\"\n"
                             "    gpus: [3,1]\n"
                             "    chief: yes\n"
                             "    network_bandwidth: 2.5e1\n"
                             "ssh:\n"
                             "  conf:\n"
                             "    username: 'root'\n",
                             "r.yml", Notes);
  REQUIRE(!!Spec);
  REQUIRE(Spec->Nodes.size() == 2);
  // The chief comes first.
  CHECK(Spec->Nodes[0].Address == "b::1");
  CHECK(Spec->Nodes[0].Chief);
  CHECK(Spec->Nodes[0].Gpus == std::vector<unsigned>{1, 3});
  CHECK(Spec->Nodes[0].Cpus == std::vector<unsigned>{0});
  CHECK(Spec->Nodes[0].Bandwidth == 25);
  CHECK(Spec->Nodes[1].Cpus == std::vector<unsigned>{0, 1});
  CHECK(Spec->Nodes[1].Gpus.empty());
  CHECK(Spec->Nodes[1].Bandwidth == 1);
  CHECK(Notes ==
        std::vector<std::string>{
            "r.yml:2:3: 1 of 2 nodes have no 'network_bandwidth': 1 Gbit/s is "
            "assumed",
            "r.yml:10:3: 'ssh' is ignored: graft writes a graph and starts no "
            "process"});
  CHECK(Spec->replicaDevices() ==
        std::vector<std::string>{"/job:worker/task:0/device:GPU:1",
                                 "/job:worker/task:0/device:GPU:3",
                                 "/job:worker/task:1/device:CPU:0",
                                 "/job:worker/task:1/device:CPU:1"});
}

TEST_CASE("a single node is the chief and needs no bandwidth", "[resources]") {
  std::vector<std::string> Notes;
  auto Spec = parseResources("nodes: [{address: localhost, gpus: [0]}]",
                             "r.yml", Notes);
  REQUIRE(!!Spec);
  CHECK(Spec->Nodes[0].Chief);
  CHECK(Notes.empty());
}

TEST_CASE("an error of a resource spec says where", "[resources]") {
  struct Case {
    const char *Text, *Error;
  };
  const char *NoNodes =
      "the file has no list 'nodes': [{address: NAME, gpus: [0]}, ...]";
  const Case Cases[] = {
      {"", "r.yml:1:1: the file has no list 'nodes'"},
      {"[1, 2]", "r.yml:1:1: the file has no list 'nodes'"},
      {"nodes: []", "no list 'nodes'"},
      {"nodes:\n", "r.yml:1:1: the file has no list 'nodes'"},
      {"ssh: {}\n", NoNodes},
      {"nodes: [1]", "r.yml:1:9: a node is not of the form"},
      {"nods:\n  - address: a\n",
       "r.yml:1:1: the file has the unknown key 'nods'; did you mean 'nodes'?"},
      {"nodes:\n  - address: a\n    gpu: [0]\n",
       "r.yml:3:5: a node has the unknown key 'gpu'; did you mean"},
      {"nodes:\n  - gpus: [0]\n", "r.yml:2:5: a node has no 'address'"},
      {"nodes:\n  - address: [0]\n", "r.yml:2:14: 'address' is not"},
      {"nodes:\n  - address: a/b\n", "'address' is not"},
      {"nodes: [{address: a}, {address: b, chief: true}, {address: a}]",
       "r.yml:1:60: 'a' is already the address of the node in line 1"},
      {"nodes:\n  - address: a\n    address: b\n",
       "r.yml:3:5: a node has 'address' twice"},
      {"nodes: [{address: a}, {address: b}]",
       "r.yml:1:8: none of the nodes is the chief"},
      {"nodes:\n  - {address: a, chief: true}\n  - {address: b, chief: true}\n",
       "r.yml:3:5: 'b' is a second chief, after 'a'"},
      {"nodes: [{address: a, chief: 'true'}]",
       "'chief' is neither true nor false"},
      {"nodes: [{address: a, chief: maybe}]",
       "r.yml:1:29: 'chief' is neither true nor false"},
      {"nodes: [{address: a, gpus: 2}]", "r.yml:1:28: 'gpus' is not a list"},
      {"nodes:\n  - address: a\n    gpus:\n",
       "r.yml:3:5: 'gpus' is not a list"},
      {"nodes: [{address: a, gpus: [0, 1, 0]}]",
       "r.yml:1:35: 'gpus' has 0 twice"},
      {"nodes: [{address: a, gpus: [-1]}]", "'gpus' has an entry that is not"},
      {"nodes: [{address: a, gpus: [65536]}]", "between 0 and 65535: '65536'"},
      {"nodes: [{address: a, gpus: ['0']}]", "'gpus' has an entry"},
      {"nodes: [{address: a, gpus: [[0]]}]", "'gpus' has an entry"},
      {"nodes: [{address: a, cpus: []}]", "'cpus' is empty"},
      {"nodes: [{address: a, network_bandwidth: 0}]",
       "r.yml:1:41: 'network_bandwidth' is not"},
      {"nodes: [{address: a, network_bandwidth: -1}]", "is not a number"},
      {"nodes: [{address: a, network_bandwidth: inf}]", "is not a number"},
      {"nodes: [{address: a, network_bandwidth: nan}]", "is not a number"},
      {"nodes: [{address: a, network_bandwidth: 1e9}]", "is not a number"},
      {"nodes: [{address: a, network_bandwidth: 10 Gb}]", "is not a number"},
      {"nodes: [{address: a}", "r.yml:1:20: Could not find closing ]!"},
      {"nodes: [{address: a]}", "r.yml:1:"},
      {"nodes:\n  - address: a\n gpus: [0]\n", "r.yml:3:"},
      {"nodes: &all [{address: a}]\nssh: *all\n", "r.yml:2:1: an alias"},
      {"nodes: [{address: a}]\n---\nnodes: [{address: b}]\n",
       "the file has several documents"},
      {"nodes: \"\\q\"", "r.yml:1:"},
      {"? [a]\n: b\n", "a key that is not a word"},
  };
  for (const Case &C : Cases) {
    INFO(C.Text);
    CHECK_THAT(errorOf(C.Text), Catch::Contains(C.Error));
  }
  CHECK_THAT(errorOf("nodes: " + std::string(100, '[')),
             Catch::Contains("too deep"));
}

TEST_CASE("AutoDist's own resource specs are read", "[resources]") {
  // Its integration tests' r0 to r9, without the comments; and the full form of
  // its manual.
  const char *Two = "    chief: true\n    ssh_config: conf\n"
                    "  - address: 10.20.41.146\n";
  auto Both = [&](llvm::StringRef First, llvm::StringRef Second) {
    return ("nodes:\n  - address: 10.20.41.57\n    " + First + "\n" + Two +
            "    " + Second +
            "\n    ssh_config: conf\nssh:\n  conf:\n    username: 'root'\n"
            "    key_file: '/root/.ssh/id_rsa'\n    port: 12345\n")
        .str();
  };
  struct Case {
    std::string Text;
    size_t Replicas;
  };
  const Case Cases[] = {
      {"nodes:\n# single-node experiment\n  - address: localhost\n    gpus: "
       "[0,1]\n    chief: true",
       2},
      {Both("gpus: [0,1]", "gpus: [0,1]"), 4},
      {"# Single\n\nnodes:\n  - address: localhost\n    gpus: [0]\n", 1},
      {Both("gpus: [0]", "gpus: [0]"), 2},
      {Both("gpus: [0,1]", "gpus: [0]"), 3},
      {"nodes:\n  - address: localhost\n    cpus: [0,1]\n", 2},
      {Both("cpus: [0,1]", "cpus: [0,1]"), 4},
      {"nodes:\n  - address: localhost\n    cpus: [0]\n", 1},
      {Both("cpus: [0]", "cpus: [0]"), 2},
      {Both("cpus: [0,1]", "cpus: [0]"), 3},
      {"nodes:\n  - address: 172.31.30.187\n    cpus: [0]\n    gpus: "
       "[0,1,2,3]\n    chief: true\n  - address: 172.31.18.140\n    gpus: "
       "[0,1,2,3]\n    ssh_config: ssh_conf1\n  - address: 172.31.18.65\n    "
       "cpus: [0,1]\n    gpus: [0,1]\n    ssh_config: ssh_conf2\n\nssh:\n  "
       "ssh_conf1:\n      key_file: '/home/ubuntu/.ssh/autodist.pem'\n      "
       "username: 'ubuntu'\n      python_venv: 'source "
       "/home/ubuntu/venvs/autodist/bin/activate'\n  ssh_conf2:\n      "
       "key_file: '/home/ubuntu/.ssh/my_private_key'\n",
       10},
  };
  for (const Case &C : Cases) {
    INFO(C.Text);
    std::vector<std::string> Notes;
    auto Spec = parseResources(C.Text, "r.yml", Notes);
    if (!Spec)
      FAIL(llvm::toString(Spec.takeError()));
    CHECK(Spec->replicaDevices().size() == C.Replicas);
  }
}
