//===- test/unit/lower/WriteNodesTest.cpp - threads and shards --*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "../infer/Builder.h"

#include "lib/io/OutputBuffer.h"
#include "lib/io/write/Write.h"
#include "lib/lower/expand/Expand.h"
#include "lib/support/Wire.h"

using namespace graft;

namespace {

/// Adds small nodes, a node that is larger than a chunk, a node that names all
/// copies, and more bytes than fit into a few blocks.
void fill(Builder &B) {
  B.feed("x", {-1, 4});
  B.op("Neg", "y0", {"x/split"});
  for (unsigned I = 1; I < 600; ++I)
    B.op("Neg", "y" + std::to_string(I), {"y" + std::to_string(I - 1)});
  NodeId Large = B.op("Square", "large", {"y7"});
  B.G.setStringAttr(Large, "note",
                    std::string(OutputBuffer::Capacity + 17, 'n'));
  NodeId Middle = B.op("Square", "middle", {"y7"});
  B.G.setStringAttr(Middle, "note",
                    std::string(OutputBuffer::Capacity / 8 - 90, 'm'));
  B.op("NoOp", "all", {"^y8", "^large", "^y9"});
  B.facts();
  for (NodeId N = 0; N < B.G.size(); ++N)
    if (B.G.isOp(N, "Neg") || B.G.isOp(N, "Square"))
      B.G.node(N).Count = Copies::PerReplica;
}

} // namespace

TEST_CASE("any number of threads writes the same bytes", "[write]") {
  for (unsigned Replicas : {1, 3, 12}) {
    Builder B(Replicas);
    fill(B);
    ReplicaExpander Nodes(B.G, readMesh(B.G));
    StringSink Expected;
    Nodes.write(Expected);
    CHECK(Expected.Text.size() == Nodes.size());
    CHECK(Expected.Text.size() <= Nodes.sizeBound());
    for (unsigned Threads : {1, 2, 3, 8}) {
      INFO(Replicas << " replicas, " << Threads << " threads");
      // A wrong size changes the blocks and nothing else.
      for (uint64_t Size : {Nodes.size(), uint64_t(1) << 34}) {
        StringSink Sink;
        bool Done = false;
        writeNodes(Nodes, Size, Threads, [&] { Done = true; }, Sink);
        CHECK(Sink.Text == Expected.Text);
        CHECK(Done);
      }
    }
  }
}

TEST_CASE("sizes are those of the nodes", "[write]") {
  Builder B(12);
  fill(B);
  ReplicaExpander Nodes(B.G, readMesh(B.G));
  StringSink Bytes;
  Nodes.write(Bytes);
  wire::Reader R(Bytes.Text);
  wire::Field F;
  bool Same = true;
  Nodes.sizes([&](uint64_t Size, uint64_t Times) {
    // A split stands for a constant and itself.
    for (uint64_t I = 0; I < Times; ++I)
      for (uint64_t Left = Size; Left != 0; Left -= F.Whole.size())
        if (!R.next(F) || F.Whole.size() > Left) {
          Same = false;
          return;
        }
  });
  CHECK(Same);
  CHECK(!R.next(F));
}

TEST_CASE("names of shards", "[write]") {
  CHECK(shardPath("a/out.pb", 0, 1) == "a/out-00000-of-00001.pb");
  CHECK(shardPath("a.b/out", 12, 345) == "a.b/out-00012-of-00345");
  CHECK(shardPath("out.x8.pb", 1, 2) == "out.x8-00001-of-00002.pb");
}
