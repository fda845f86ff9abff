//===- lib/support/Escape.cpp - names in other languages --------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "lib/support/Escape.h"

#include "lib/support/Diagnostics.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/ConvertUTF.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/raw_ostream.h"

using namespace llvm;

namespace graft {
namespace {

/// Returns the first character of \p Text and its size in bytes; a size of 0 if
/// it is not UTF-8.
std::pair<UTF32, unsigned> decode(StringRef Text) {
  auto First = static_cast<uint8_t>(Text[0]);
  if (First < 0x80)
    return {First, 1};
  unsigned Size = getNumBytesForUTF8(First);
  const auto *From = reinterpret_cast<const UTF8 *>(Text.data());
  UTF32 C = 0, *To = &C;
  if (Size > Text.size() || !isLegalUTF8Sequence(From, From + Size) ||
      ConvertUTF8toUTF32(&From, From + Size, &To, &C + 1, strictConversion) !=
          conversionOK)
    return {0, 0};
  return {C, Size};
}

} // namespace

unsigned shownLength(StringRef Text) {
  auto [C, Size] = decode(Text);
  bool Turns = C == 0x061c || C == 0x200e || C == 0x200f ||
               (C >= 0x2028 && C <= 0x202e) || (C >= 0x2066 && C <= 0x2069);
  bool IsControl = C < 0x20 || (C >= 0x7f && C < 0xa0);
  bool IsNone = C == 0xfeff || C == 0xfffe || C == 0xffff;
  return IsControl || Turns || IsNone ? 0 : Size;
}

std::string utf8(StringRef Text) {
  return json::isUTF8(Text) ? Text.str() : json::fixUTF8(Text);
}

std::string jsonText(unsigned Indent,
                     function_ref<void(json::OStream &)> Write) {
  std::string Text, Out;
  {
    raw_string_ostream OS(Text);
    json::OStream J(OS, Indent);
    Write(J);
  }
  Out.reserve(Text.size());
  if (Indent != 0)
    Text += '\n';
  // Only strings have characters outside of ASCII. JSON has escaped the
  // controls below 0x20.
  for (StringRef Rest = Text; !Rest.empty();) {
    auto [C, Size] = decode(Rest);
    if ((C < 0x7f && Size == 1) || shownLength(Rest) != 0)
      Out += Rest.take_front(Size);
    else
      Out += formatv("\\u{0:x-4}", C);
    Rest = Rest.drop_front(std::max(Size, 1U));
  }
  return Out;
}

std::string yamlString(StringRef Text) {
  // Each JSON string is also a YAML string.
  return jsonText(0, [&](json::OStream &J) { J.value(utf8(Text)); });
}

std::string llvmYamlString(StringRef Text) {
  std::string Out = "'";
  for (char C : escapeControls(Text))
    Out.append(C == '\'' ? 2 : 1, C);
  return Out + "'";
}

std::string dotString(StringRef Text) {
  std::string Out = "\"";
  while (!Text.empty()) {
    unsigned Size = shownLength(Text);
    StringRef This = Text.take_front(std::max(Size, 1U));
    if (Size == 0)
      // An escaped backslash. No name becomes this text, because '&' is
      // escaped.
      Out += "&#92;&#92;x" + toHex(This, /*LowerCase=*/true);
    else if (This == "\"" || This == "\\")
      Out += ("\\" + This).str();
    else if (This == "&")
      Out += "&amp;";
    else
      Out += This;
    Text = Text.drop_front(This.size());
  }
  return Out + '"';
}

std::string shellWord(StringRef Text) {
  bool IsPlain = !Text.empty() && all_of(Text, [](char C) {
    return isAlnum(C) || StringRef("-_./+:,@%=").contains(C);
  });
  if (IsPlain)
    return Text.str();
  std::string Out = "'";
  for (char C : Text)
    if (C == '\'')
      Out += "'\\''";
    else
      Out += C;
  return Out + "'";
}

std::string fileUri(StringRef Path) {
  std::string Out = Path.starts_with("/") ? "file://" : "";
  for (char C : Path) {
    if (isAlnum(C) || StringRef("-._~/").contains(C)) {
      Out += C;
    } else {
      Out += '%';
      Out += toHex(StringRef(&C, 1));
    }
  }
  return Out;
}

Expected<std::string> makeName(StringRef File) {
  auto Refuse = [&](const Twine &Why) {
    return createStringError("'" + File + "' " + Why +
                             ", which a rule of Make cannot express; give the "
                             "file another name");
  };
  // A line of a makefile that begins with `define` is not a rule.
  std::string Out = File == "define" ? "./" : "";
  for (char C : File) {
    // These characters begin a line, another kind of rule, an assignment or a
    // pattern. Make keeps some backslashes.
    if (static_cast<uint8_t>(C) < 0x20 || C == 0x7f)
      return Refuse("has a control character");
    if (StringRef(";|=%*?[\\").contains(C))
      return Refuse("has a '" + Twine(C) + "'");
    if (C == ' ' || C == '#' || C == ':')
      Out += '\\';
    else if (C == '$')
      Out += '$';
    Out += C;
  }
  if (File.empty())
    return Refuse("has no name");
  // Make drops a leading "./" and replaces "~" by a home directory.
  StringRef Inner = File;
  while (Inner.consume_front("./"))
    Inner = Inner.ltrim('/');
  if (Inner.starts_with("~"))
    return Refuse("begins with '~'");
  if (StringRef(" :&").contains(File.back()))
    return Refuse("ends in '" + Twine(File.back()) + "'");
  // Make reads it as a member of an archive.
  if (File.ends_with(")") && File.contains('('))
    return Refuse("ends in parentheses");
  return Out;
}

} // namespace graft
