//===- test/unit/ReadWriteTest.cpp - modules in and out ---------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "lib/io/ModuleVerifier.h"
#include "lib/io/OutputBuffer.h"
#include "lib/io/read/Read.h"
#include "lib/io/write/Write.h"
#include "lib/support/Wire.h"

#include <catch2/catch.hpp>

using namespace graft;

namespace {

std::string node(llvm::StringRef Name, llvm::StringRef Op,
                 llvm::StringRef Input = "") {
  std::string Body, Result;
  wire::appendBytes(Body, 1, Name);
  wire::appendBytes(Body, 2, Op);
  if (!Input.empty())
    wire::appendBytes(Body, 3, Input);
  wire::appendBytes(Result, 1, Body);
  return Result;
}

std::string metaGraph(const std::string &Graph) {
  std::string Info, Result;
  wire::appendBytes(Info, 4, "train");
  wire::appendBytes(Result, 1, Info);
  wire::appendBytes(Result, 2, Graph);
  wire::appendBytes(Result, 99, "later");
  return Result;
}

llvm::Expected<Module> read(llvm::StringRef Bytes, InputKind Kind) {
  return readModule(llvm::MemoryBuffer::getMemBufferCopy(Bytes, "test"),
                    {.Kind = Kind});
}

std::string write(const Module &M) {
  StringSink Sink;
  llvm::cantFail(writeModule(M, OutputFormat::Binary, Sink));
  return Sink.Text;
}

/// Claims a size, but writes another, or claims one that is too large.
class Liar final : public NodeWriter {
public:
  explicit Liar(uint64_t Claim) : Claim(Claim) {}
  size_t units() const override { return 1; }
  void sizes(llvm::function_ref<void(uint64_t Bytes, uint64_t Times)> F)
      const override {
    F(Claim, 1);
  }
  void write(size_t, size_t, OutputBuffer &Out) const override {
    Out.write("xyz");
  }

private:
  uint64_t Claim;
};

} // namespace

TEST_CASE("unmodified modules are written as they were read", "[io]") {
  std::string Graph = node("a", "NoOp") + node("b", "NoOp", "^a");
  auto M = llvm::cantFail(read(Graph, InputKind::Auto));
  CHECK(M.Kind == InputKind::GraphDef);
  CHECK(write(M) == Graph);
  std::string Meta = metaGraph(Graph);
  M = llvm::cantFail(read(Meta, InputKind::Auto));
  CHECK(M.Kind == InputKind::MetaGraph);
  CHECK(write(M) == Meta);
}

TEST_CASE("sizes around an edited graph are right", "[io]") {
  std::string Graph = node("a", "NoOp") + node("b", "NoOp", "^a");
  for (size_t Length : {1, 100, 200, 20000}) {
    std::string Name(Length, 'n');
    auto M = llvm::cantFail(read(metaGraph(Graph), InputKind::Auto));
    M.graph().rename(M.graph().find("a"), Name);
    CHECK(write(M) ==
          metaGraph(node(Name, "NoOp") + node("b", "NoOp", "^" + Name)));
  }
}

TEST_CASE("every prefix of a file is refused or legal", "[io]") {
  std::string Meta = metaGraph(node("a", "NoOp") + node("b", "NoOp", "^a"));
  for (InputKind Kind :
       {InputKind::Auto, InputKind::GraphDef, InputKind::MetaGraph})
    for (size_t Size = 0; Size < Meta.size(); ++Size) {
      auto M = read(llvm::StringRef(Meta).take_front(Size), Kind);
      if (M)
        CHECK(write(*M) == Meta.substr(0, Size));
      else
        CHECK(!llvm::toString(M.takeError()).empty());
    }
}

TEST_CASE("a writer is held to its word", "[io]") {
  auto Meta =
      llvm::cantFail(read(metaGraph(node("a", "NoOp")), InputKind::MetaGraph));
  StringSink Sink;
  Meta.Lowered = std::make_unique<Liar>(4);
  CHECK(llvm::StringRef(
            llvm::toString(writeModule(Meta, OutputFormat::Binary, Sink)))
            .starts_with("internal error: "));
  Sink.Text.clear();
  auto M = llvm::cantFail(read(node("a", "NoOp"), InputKind::GraphDef));
  M.Lowered = std::make_unique<Liar>(uint64_t(3) << 30);
  std::string Message =
      llvm::toString(writeModule(M, OutputFormat::Binary, Sink));
  CHECK(llvm::StringRef(Message).starts_with(
      "the output would have 3,221,225,472 bytes"));
  CHECK(Sink.Text.empty());
}

TEST_CASE("depfiles quote what Make would split", "[io]") {
  CHECK(llvm::cantFail(depfileText("a b", {"$x", "c#d"})) ==
        "a\\ b: \\\n  $$x \\\n  c\\#d\n");
}

TEST_CASE("a graph in parts is the graph of their fields", "[io]") {
  std::string Parts[] = {node("b", "NoOp", "^a"), "", node("a", "NoOp"),
                         std::string("\x22\x02\x08\x01", 4)};
  llvm::SmallVector<llvm::StringRef, 4> Refs(std::begin(Parts),
                                             std::end(Parts));
  Graph G;
  llvm::cantFail(G.parse(Refs));
  CHECK(G.size() == 2);
  CHECK(G.input(0, 0) == Endpoint{1, ControlPort});
  CHECK(G.otherFields().size() == 1);
  Refs[2] = Refs[2].drop_back();
  Graph Cut;
  CHECK(llvm::toString(Cut.parse(Refs)) ==
        "part 3: the graph is truncated or malformed");
  Parts[1] = std::string("\x0a\x02\x0a\x05", 4);
  Refs.assign(std::begin(Parts), std::end(Parts));
  Graph BadNode;
  CHECK(llvm::toString(BadNode.parse(Refs)) ==
        "part 2: byte 2: node is truncated or malformed");
}
