//===- test/unit/EscapeTest.cpp - names in other languages ------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
// Names of random pieces are written in each language and read back.
//
//===----------------------------------------------------------------------===//

#include "lib/support/Escape.h"

#include "lib/support/Diagnostics.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/SourceMgr.h"
#include "llvm/Support/YAMLParser.h"

#include <catch2/catch.hpp>

#include <random>

using namespace graft;
using llvm::StringRef;

namespace {

/// Calls \p F with names: each byte alone, and some thousand more.
template <typename Fn> void forEachName(Fn F) {
  // Text that a language could obey; other characters; invalid ones.
  const std::vector<std::string> Odd = {
      "\n",           "\r",
      "\t",           "$(x)",
      "${IFS}",       "x!=y",
      "&amp;",        "\\x0a",
      "\\N",          "\\u0041",
      "''",           "\"",
      "\\",           "%41",
      "---",          ": ",
      " #",           "\xc3\xa4",
      "\xc2\x85",     "\xe2\x80\xae", // NOLINT(misc-misleading-bidirectional)
      "\xef\xbf\xbe", "\xef\xbb\xbf",
      "\xed\xa0\x80", "\xf4\x8f\xbf\xbf",
      "\xff",         "\xc3",
      "../",          "~root"};
  for (unsigned Byte = 0; Byte < 256; ++Byte) {
    std::string One(1, static_cast<char>(Byte));
    F(One);
    F("a" + One + "b");
    F(One + "a");
    F("a" + One);
  }
  std::mt19937 Random(7);
  for (unsigned I = 0; I < 4000; ++I) {
    std::string Name;
    for (unsigned Pieces = 1 + Random() % 6; Pieces-- > 0;)
      switch (Random() % 3) {
      case 0:
        Name += Odd[Random() % Odd.size()];
        break;
      case 1:
        Name += static_cast<char>(Random() % 256);
        break;
      default:
        Name += static_cast<char>('a' + Random() % 26);
      }
    F(Name);
  }
}

bool isShown(StringRef Text) {
  while (!Text.empty()) {
    unsigned Size = shownLength(Text);
    if (Size == 0)
      return false;
    Text = Text.drop_front(Size);
  }
  return true;
}

TEST_CASE("JSON has the name, and no more than can be shown") {
  forEachName([](const std::string &Name) {
    std::string Text =
        jsonText(0, [&](llvm::json::OStream &J) { J.value(utf8(Name)); });
    CHECK(isShown(Text));
    auto Read = llvm::json::parse(Text);
    REQUIRE(bool(Read));
    CHECK(Read->getAsString() == utf8(Name));
  });
  CHECK(jsonText(1, [](llvm::json::OStream &J) { J.array([] {}); }) == "[]\n");
}

TEST_CASE("YAML has the name, and no more than can be shown") {
  forEachName([](const std::string &Name) {
    std::string Text = yamlString(Name);
    CHECK(isShown(Text));
    llvm::SourceMgr Messages;
    std::string Document = "- " + Text + "\n";
    llvm::yaml::Stream Stream(Document, Messages);
    auto *List = llvm::dyn_cast_or_null<llvm::yaml::SequenceNode>(
        Stream.begin()->getRoot());
    REQUIRE(List);
    auto *Scalar = llvm::dyn_cast<llvm::yaml::ScalarNode>(&*List->begin());
    REQUIRE(Scalar);
    llvm::SmallString<64> Storage;
    CHECK(Scalar->getValue(Storage).str() == utf8(Name));
  });
}

TEST_CASE("YAML of LLVM has the name in single quotes") {
  forEachName([](const std::string &Name) {
    std::string Text = llvmYamlString(Name);
    CHECK(isShown(Text));
    StringRef Inside = Text;
    REQUIRE((Inside.consume_front("'") && Inside.consume_back("'")));
    std::string Read;
    while (!Inside.empty()) {
      if (Inside.consume_front("'"))
        REQUIRE(Inside.starts_with("'"));
      Read += Inside.front();
      Inside = Inside.drop_front();
    }
    CHECK(Read == escapeControls(Name));
  });
}

TEST_CASE("Graphviz has the name, and no two names are one") {
  forEachName([](const std::string &Name) {
    std::string Text = dotString(Name);
    CHECK(isShown(Text));
    StringRef Inside = Text;
    REQUIRE((Inside.consume_front("\"") && Inside.consume_back("\"")));
    std::string Read;
    while (!Inside.empty()) {
      if (Inside.consume_front("&#92;&#92;x")) {
        Read += llvm::fromHex(Inside.take_front(2));
        Inside = Inside.drop_front(2);
        continue;
      }
      if (Inside.consume_front("&amp;")) {
        Read += '&';
        continue;
      }
      bool IsEscaped = Inside.consume_front("\\");
      char C = Inside.front();
      REQUIRE(IsEscaped == (C == '"' || C == '\\'));
      REQUIRE(C != '&');
      Read += C;
      Inside = Inside.drop_front();
    }
    CHECK(Read == Name);
  });
}

TEST_CASE("a reference has the name") {
  forEachName([](const std::string &Name) {
    std::string Text = fileUri(Name);
    StringRef Rest = Text;
    if (Name[0] == '/')
      REQUIRE(Rest.consume_front("file://"));
    std::string Read;
    while (!Rest.empty()) {
      char C = Rest.front();
      Rest = Rest.drop_front();
      REQUIRE((llvm::isAlnum(C) || StringRef("-._~/%").contains(C)));
      if (C != '%') {
        Read += C;
        continue;
      }
      Read += llvm::fromHex(Rest.take_front(2));
      Rest = Rest.drop_front(2);
    }
    CHECK(Read == Name);
  });
}

TEST_CASE("Make has the name, or it is refused") {
  size_t Refused = 0, Said = 0;
  forEachName([&](const std::string &Name) {
    llvm::Expected<std::string> Text = makeName(Name);
    if (!Text) {
      llvm::consumeError(Text.takeError());
      ++Refused;
      return;
    }
    ++Said;
    StringRef Rest = *Text;
    std::string Read;
    while (!Rest.empty()) {
      bool IsEscaped = Rest.consume_front("\\");
      if (!IsEscaped && Rest.consume_front("$"))
        REQUIRE(Rest.starts_with("$"));
      char C = Rest.front();
      // A character that ends neither the name nor the line, and is no pattern.
      REQUIRE(IsEscaped == StringRef(" #:").contains(C));
      REQUIRE(!StringRef(";|=%*?[\\\n\t").contains(C));
      Read += C;
      Rest = Rest.drop_front();
    }
    StringRef Plain = Read;
    if (Plain != Name)
      Plain.consume_front("./");
    CHECK(Plain == Name);
  });
  CHECK(Refused > 1000);
  CHECK(Said > 1000);
  for (StringRef Good : {"a/b.pb", "in $1#.pb", "model (1).pb", "c:/x", "a&b"})
    CHECK(!llvm::errorToBool(makeName(Good).takeError()));
  for (StringRef Bad :
       {"", "a\nb", "x!=touch${IFS}pwned", "a;b", "a|b", "a%b", "a=b", "a[1]",
        "a*", "a\\", "a ", "a&", "a(b)", "~root", ".//./~root"})
    CHECK(llvm::errorToBool(makeName(Bad).takeError()));
}

} // namespace
