//===- test/unit/GraphTest.cpp - graphs from bytes, edits -------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "lib/graph/Verifier.h"
#include "lib/support/Wire.h"

#include <catch2/catch.hpp>

using namespace graft;
using llvm::StringRef;

namespace {

std::string bytes(unsigned Field, StringRef Contents) {
  std::string Result;
  wire::appendBytes(Result, Field, Contents);
  return Result;
}

std::string attr(StringRef Key, StringRef Value) {
  return bytes(5, bytes(1, Key) + bytes(2, Value));
}

std::string node(StringRef Name, StringRef Op, StringRef Rest = "") {
  return bytes(1, bytes(1, Name) + bytes(2, Op) + Rest.str());
}

} // namespace

TEST_CASE("nodes are read in any legal form", "[graph]") {
  // An op after the attributes, an unknown field between two of them, an input
  // at the end, a length with more bytes than it needs.
  std::string Odd = std::string("\x0a\x81\x00x", 4) + attr("T", "\x30\x01") +
                    bytes(77, "unknown") + attr("_class", "") +
                    bytes(2, "Identity") + bytes(4, "/cpu:0") +
                    attr("k", "\x18\x05") + bytes(3, "y:0");
  std::string Bytes = bytes(1, Odd) + node("y", "Placeholder");
  Graph G;
  llvm::cantFail(G.parse(Bytes));
  NodeId X = G.find("x");
  REQUIRE(X == 0);
  CHECK(G.opName(X) == "Identity");
  CHECK(G.device(X) == "/cpu:0");
  CHECK(G.input(X, 0) == Endpoint{1, 0});
  CHECK(G.typeAttr(X, "T") == 1u);
  CHECK(G.intAttr(X, "k") == 5);
  CHECK(G.hasAttr(X, "_class"));
  CHECK(G.node(X).Flags == NF_MayHaveClass);
  CHECK(G.attrs(X).size() == 3);
}

TEST_CASE("attributes are found in any legal form", "[graph]") {
  // An entry with its value first, an entry with two values, a key longer than
  // 127 bytes, an entry without a value.
  std::string Long(200, 'k');
  std::string Rest =
      bytes(5, bytes(2, "\x18\x01") + bytes(1, "first")) +
      bytes(5, bytes(1, "two") + bytes(2, "\x18\x02") + bytes(2, "\x18\x03")) +
      attr(Long, "\x18\x04") + bytes(5, bytes(1, "none")) +
      attr("last", std::string("\x18\x85\x00", 3));
  std::string Bytes = node("x", "NoSuchOp", Rest);
  Graph G;
  llvm::cantFail(G.parse(Bytes));
  CHECK(G.intAttr(0, "first") == 1);
  CHECK(G.intAttr(0, "two") == 3);
  CHECK(G.intAttr(0, Long) == 4);
  CHECK(G.attr(0, "none") == StringRef());
  CHECK(G.intAttr(0, "last") == 5);
  CHECK(!G.hasAttr(0, "other"));
}

TEST_CASE("attributes keep their places", "[graph]") {
  std::string Bytes = node("x", "NoSuchOp",
                           attr("a", "\x18\x01") + bytes(77, "unknown") +
                               attr("b", "\x18\x02") + attr("a", "\x18\x03"));
  Graph G;
  llvm::cantFail(G.parse(Bytes));
  auto Run = [&] { return StringRef(G.node(0).AttrData, G.node(0).AttrSize); };
  G.setStringAttr(0, "a", "s");
  CHECK(Run() ==
        attr("a", "\x12\x01s") + bytes(77, "unknown") + attr("b", "\x18\x02"));
  G.setIntAttr(0, "c", -1);
  CHECK(G.intAttr(0, "c") == -1);
  // Copies from the node to itself.
  G.setAttr(0, "b", *G.attr(0, "a"));
  CHECK(G.stringAttr(0, "b") == StringRef("s"));
  G.removeAttr(0, "a");
  G.removeAttr(0, "c");
  G.removeAttr(0, "not there");
  CHECK(Run() == bytes(77, "unknown") + attr("b", "\x12\x01s"));
}

TEST_CASE("names of all lengths are found", "[graph]") {
  std::string Bytes, Name;
  for (unsigned I = 0; I < 100; ++I)
    Name += static_cast<char>('a' + I % 26);
  Graph G;
  for (unsigned I = 1; I < 100; ++I)
    Bytes += node(Name.substr(0, I), "NoOp");
  llvm::cantFail(G.parse(Bytes));
  for (unsigned I = 1; I < 100; ++I)
    CHECK(G.find(Name.substr(0, I)) == I - 1);
  // The table grows and forgets.
  for (unsigned I = 0; I < 1000; ++I)
    G.addNode("new" + std::to_string(I), "NoOp", {}, NoNode);
  G.remove(5);
  G.rename(6, "renamed");
  CHECK(G.find(Name.substr(0, 6)) == NoNode);
  CHECK(G.find(Name.substr(0, 7)) == NoNode);
  CHECK(G.find("renamed") == 6);
  CHECK(G.find("new999") == 99 + 999);
}

TEST_CASE("a verified graph is verified again where it changed", "[graph]") {
  std::string Class = attr("_class", bytes(1, bytes(2, "loc:@a_node")));
  std::string Bytes = node("a_node", "NoOp") + node("reader", "NoOp", Class);
  Graph G;
  llvm::cantFail(G.parse(Bytes));
  auto Verify = [&] {
    DiagnosticEngine Diags;
    verifyGraph(G, Diags);
    return Diags.errorCount();
  };
  REQUIRE(Verify() == 0);
  G.markVerified();
  CHECK(Verify() == 0);
  G.rename(0, "b_node");
  CHECK(Verify() == 1);
  G.addNode("a_node", "NoOp", {}, 0);
  CHECK(Verify() == 0);
  G.rename(0, "not a name");
  CHECK(Verify() == 1);
}
