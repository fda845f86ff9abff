//===- test/unit/strategy/RecordFileTest.cpp - strategy files -------------===//
//
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "lib/strategy/RecordFile.h"

#include "autodist/strategy.pb.h"

#include <catch2/catch.hpp>

using namespace graft;

namespace {

/// Returns the error of reading \p Bytes, or "".
std::string refused(llvm::StringRef Bytes, llvm::StringRef File = "s.pb") {
  auto R = parseRecord(Bytes, File);
  return R ? "" : llvm::toString(R.takeError());
}

/// Returns a strategy of one variable that \p Fill makes.
template <typename Fn> std::string file(Fn Fill) {
  autodist::proto::Strategy S;
  auto *Node = S.add_node_config();
  Node->set_var_name("w:0");
  Fill(*Node);
  return S.SerializeAsString();
}

using Entry = autodist::proto::Strategy::Node;

} // namespace

TEST_CASE("a strategy file is read in either form", "[recordfile]") {
  std::string Bytes = file([](Entry &N) {
    N.set_partitioner("1,2");
    N.add_part_config()->mutable_pssynchronizer()->set_reduction_destination(
        "10.0.0.2:CPU:0");
    auto &Second = *N.add_part_config()->mutable_allreducesynchronizer();
    Second.set_compressor(
        autodist::proto::AllReduceSynchronizer::Bfloat16CompressorEF);
    Second.set_group(7);
  });
  auto R = parseRecord(Bytes, "s.pb");
  REQUIRE(bool(R));
  REQUIRE(R->Variables.size() == 1);
  const VariableStrategy &V = R->Variables[0];
  CHECK(V.Variable == "w");
  CHECK(V.numParts() == 2);
  CHECK(V.Sync == V.Parts[0]);
  CHECK_FALSE(V.Parts[0].Sync);
  CHECK(printSynchronizer(V.Parts[1]) ==
        "all-reduce,compressor=bf16-ef,group=7");

  // Text is recognized by its contents.
  std::string Text = printRecord(*R, ResourceSpec(), /*AsText=*/true);
  auto Again = parseRecord(Text, "strategy");
  REQUIRE(bool(Again));
  CHECK(printRecord(*Again, ResourceSpec(), true) == Text);

  ResourceSpec Two = resourcesOf({"10.0.0.1:GPU:0", "10.0.0.2:GPU:0"});
  REQUIRE_FALSE(bool(resolveDevices(*R, Two, "s.pb")));
  CHECK(R->Variables[0].Parts[0].Destination ==
        "/job:worker/task:1/device:CPU:0");
  CHECK(llvm::StringRef(printRecord(*R, Two, true))
            .contains("\"10.0.0.2:CPU:0\""));
  CHECK(
      llvm::toString(
          resolveDevices(*Again, resourcesOf({"/device:CPU:0"}), "s.pb")) ==
      "s.pb:1:1: node_config 'w', part 0: there is no device '10.0.0.2:CPU:0'; "
      "the known devices are /device:CPU:0 and those of the replicas");
}

TEST_CASE("an entry that is wrong is named", "[recordfile]") {
  CHECK(refused(file([](Entry &N) {
          N.mutable_allreducesynchronizer()->set_spec(
              autodist::proto::AllReduceSynchronizer::Spec(5));
        })) == "s.pb: node_config 'w:0': spec 5 is not known");
  CHECK(refused(file([](Entry &N) {
          N.mutable_allreducesynchronizer()->set_compressor(
              autodist::proto::AllReduceSynchronizer::Compressor(3));
        })) == "s.pb: node_config 'w:0': compressor 3 is not known");
  CHECK(refused(file(
            [](Entry &N) { N.mutable_pssynchronizer()->set_staleness(-1); })) ==
        "s.pb: node_config 'w:0': the staleness is negative; give 0 or more");
  CHECK(refused(file([](Entry &N) {
          N.mutable_allreducesynchronizer();
          N.set_partitioner("0,2");
        })) == "s.pb: node_config 'w:0': partitioner '0,2' is not a list of "
               "numbers of parts, such as 1,2,1");
  CHECK(refused(file([](Entry &N) {
          N.mutable_allreducesynchronizer();
          N.set_partitioner("1,65537");
        })) == "s.pb: node_config 'w:0': partitioner '1,65537' asks for more "
               "than 65536 parts");
  std::string Nested = file([](Entry &N) {
    N.set_partitioner("2");
    for (const char *Name : {"w/part_0", "w/part_1"}) {
      Entry &Part = *N.add_part_config();
      Part.set_var_name(Name);
      Part.mutable_allreducesynchronizer();
    }
    N.mutable_part_config(1)->set_partitioner("2");
  });
  CHECK(refused(Nested) ==
        "s.pb: node_config 'w:0': part 'w/part_1' has parts itself");
  CHECK(refused(file([](Entry &N) {
          N.set_var_name("");
          N.mutable_allreducesynchronizer();
        })) == "s.pb: node_config 0 has no var_name");
  CHECK(refused("\x1a\x7f") ==
        "s.pb: is truncated: node_config 0 has 127 bytes from byte 2 on, but "
        "the file ends after 0 of them");
  CHECK(refused("\x3a\x01x") ==
        "s.pb: is not a strategy: it has unknown fields");
  CHECK(refused("node_config {\n  x: 1\n}", "s.pbtxt")
            .starts_with("s.pbtxt:2:4: "));
}
