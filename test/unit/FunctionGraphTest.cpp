//===- test/unit/FunctionGraphTest.cpp - bodies as graphs -----------------===//
//
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "lib/io/functions/FunctionGraph.h"
#include "lib/io/functions/SavedFunctions.h"
#include "lib/io/read/Read.h"

#include "tensorflow/core/framework/graph.pb.h"
#include "tensorflow/core/protobuf/meta_graph.pb.h"

#include "google/protobuf/text_format.h"
#include "google/protobuf/util/message_differencer.h"

#include <catch2/catch.hpp>

using namespace graft;
using google::protobuf::TextFormat;
using google::protobuf::util::MessageDifferencer;

namespace {

tensorflow::GraphDef graphWith(const char *Functions) {
  tensorflow::GraphDef G;
  REQUIRE(TextFormat::ParseFromString(Functions, &G));
  return G;
}

FunctionLibrary libraryOf(const tensorflow::GraphDef &G, Graph &Keeps) {
  static std::string Bytes;
  Bytes = G.SerializeAsString();
  llvm::cantFail(Keeps.parse(llvm::StringRef(Bytes)));
  return FunctionLibrary(Keeps);
}

constexpr const char *Body = R"(
library { function {
  signature { name: "f"
    input_arg { name: "x" type: DT_FLOAT }
    input_arg { name: "c" type: DT_FLOAT }
    input_arg { name: "v" type: DT_RESOURCE
      handle_data { dtype: DT_FLOAT shape { dim { size: 2 } } } }
    output_arg { name: "second" type: DT_FLOAT }
    output_arg { name: "same" type: DT_FLOAT }
    is_stateful: true control_output: "a" }
  node_def { name: "axis" op: "Const" attr { key: "dtype" value { type: DT_INT32 } } }
  node_def { name: "s" op: "Split" input: "axis:output:0" input: "x"
    attr { key: "T" value { type: DT_FLOAT } } attr { key: "num_split" value { i: 2 } } }
  node_def { name: "result_0" op: "Neg" input: "s:output:1" device: "/device:CPU:1"
    attr { key: "T" value { type: DT_FLOAT } }
    attr { key: "_class" value { list { s: "loc:@v" s: "loc:@s" s: "loc:@gone" } } } }
  node_def { name: "a" op: "AssignVariableOp" input: "v" input: "result_0:y:0" input: "^s"
    device: "/device:CPU:1" attr { key: "dtype" value { type: DT_FLOAT } } }
  node_def { name: "unused" op: "Neg" input: "c" attr { key: "T" value { type: DT_FLOAT } } }
  ret { key: "second" value: "result_0:y:0" }
  ret { key: "same" value: "c" }
  control_ret { key: "a" value: "a" }
  arg_attr { key: 0 value { attr { key: "_output_shapes"
    value { list { shape { dim { size: -1 } } } } } } }
} })";

} // namespace

TEST_CASE("a body becomes a graph, and a body again") {
  tensorflow::GraphDef G = graphWith(Body);
  Graph Keeps;
  FunctionLibrary Library = libraryOf(G, Keeps);
  const tensorflow::FunctionDef &Def = *Library.find("f");
  Captures Captured;
  Captured.First = 1;
  Captured.Variables.resize(3);
  Captured.Variables[2] = {"dense/kernel:0", tensorflow::DT_FLOAT, {}};
  auto Made = graphOf(Def, Library, Captured, "");
  REQUIRE(bool(Made));
  CHECK(Made->Arguments ==
        std::vector<std::string>{"x", "c", "dense/kernel_0"});
  CHECK(Made->Constants == std::vector<std::string>{"c"});
  CHECK(Made->Results == std::vector<std::string>{"result_0_1", "result_1"});
  tensorflow::GraphDef Flat;
  REQUIRE(Flat.ParseFromString(Made->Bytes));
  std::map<std::string, tensorflow::NodeDef> Nodes;
  for (const tensorflow::NodeDef &Node : Flat.node())
    Nodes[Node.name()] = Node;
  CHECK(Nodes["x"].attr().at("shape").shape().dim(0).size() == -1);
  CHECK(Nodes["c"].attr().at("shape").shape().unknown_rank());
  CHECK(Nodes["dense/kernel_0"].op() == "VarHandleOp");
  CHECK(Nodes["result_0"].input(0) == "s:1");
  CHECK(Nodes["result_0"].attr().at("_class").list().s_size() == 2);
  CHECK(Nodes["a"].input(0) == "dense/kernel_0");
  CHECK(Nodes["effects"].input(0) == "^a");

  auto Back = functionOf(Def, *Made, Library, Made->Bytes);
  REQUIRE(bool(Back));
  std::map<std::string, tensorflow::NodeDef> Its;
  for (const tensorflow::NodeDef &Node : Back->node_def())
    Its[Node.name()] = Node;
  CHECK(!Its.count("unused"));
  CHECK(!Its.count("dense/kernel_0"));
  CHECK(MessageDifferencer::Equals(Its["s"], Def.node_def(1)));
  CHECK(Its["result_0"].input(0) == "s:output:1");
  CHECK(Its["result_0"].device() == "/device:CPU:1");
  CHECK(Its["result_0"].attr().at("_class").list().s_size() == 1);
  CHECK(Its["a"].input(0) == "v");
  CHECK(Its["a"].input(2) == "^s");
  // The owner of the variable chooses its device.
  CHECK(Its["a"].device().empty());
  CHECK(Back->ret().at("second") == "result_0_1:output:0");
  CHECK(Its["result_1"].input(0) == "c");
  CHECK(Back->control_ret().at("effects") == "effects");
  CHECK(Back->signature().control_output(0) == "effects");
  CHECK(Back->signature().input_arg_size() == 3);
}

TEST_CASE("a body that is wrong is an error") {
  Graph Keeps;
  auto Refused = [&](const char *From, const char *To) {
    std::string Text = Body;
    Text.replace(Text.find(From), std::string(From).size(), To);
    tensorflow::GraphDef G = graphWith(Text.c_str());
    Graph Other;
    FunctionLibrary Library = libraryOf(G, Other);
    auto Made = graphOf(*Library.find("f"), Library, {}, "");
    return Made ? std::string() : llvm::toString(Made.takeError());
  };
  CHECK(Refused("s:output:1", "s:output:2") ==
        "function 'f' has no output 's:output:2'");
  CHECK(Refused("\"^s\"", "\"^t\"") ==
        "function 'f' has no node or argument 't'");
  CHECK(Refused("ret { key: \"same\" value: \"c\" }", "") ==
        "function 'f' has a result without an entry in 'ret'");
  CHECK(Refused("name: \"x\" type: DT_FLOAT", "name: \"x\" type_attr: \"T\"") ==
        "function 'f' has argument 'x', whose type or length depends on the "
        "call");
}
