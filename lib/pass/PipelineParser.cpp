//===- lib/pass/PipelineParser.cpp - pipeline text --------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
//   pipeline := [pass ("," pass)*]
//   pass     := name ["{" [option (("," | " ") option)*] "}"]
//   option   := name ["=" value]          a name alone means `=true`
//   value    := "'" text "'"              a quote in it is doubled
//             | text without , { } ' or white space
//
// The value of a list option may contain commas. It ends at a comma before
// `name=` of another option of the pass: `a{inputs=x:0,y:0,outputs=z:0}`.
//
//===----------------------------------------------------------------------===//

#include "lib/pass/PassManager.h"

#include "llvm/ADT/StringExtras.h"

using namespace llvm;

namespace graft {
namespace {

class Parser {
public:
  Parser(StringRef Text, const PassRegistry &Registry)
      : Text(Text), Registry(Registry) {}

  Expected<Pipeline> parse();

private:
  Expected<std::unique_ptr<Pass>> parsePass();
  Error parseOption(Pass &P);
  Expected<std::string> parseValue(PassOptions &Options, bool TakesCommas);
  StringRef takeName();
  void skipSpace() {
    while (At < Text.size() && isSpace(Text[At]))
      ++At;
  }
  bool consume(char C) {
    if (At == Text.size() || Text[At] != C)
      return false;
    ++At;
    return true;
  }
  bool atEnd() const { return At == Text.size(); }

  /// \p Message, the whole text, and a caret under its part [Start, End).
  Error fail(size_t Start, size_t End, const Twine &Message) const;

  StringRef Text;
  const PassRegistry &Registry;
  size_t At = 0;
};

Error Parser::fail(size_t Start, size_t End, const Twine &Message) const {
  std::string Shown = Text.str();
  for (char &C : Shown)
    C = isSpace(C) ? ' ' : C;
  std::string Marks(Start, ' ');
  Marks += '^';
  if (End > Start + 1)
    Marks.append(End - Start - 1, '~');
  return createStringError(inconvertibleErrorCode(),
                           Message + "\n  " + Shown + "\n  " + Marks);
}

StringRef Parser::takeName() {
  StringRef Name = Text.substr(At).take_while(
      [](char C) { return isAlnum(C) || C == '-' || C == '_'; });
  At += Name.size();
  return Name;
}

Expected<std::string> Parser::parseValue(PassOptions &Options,
                                         bool TakesCommas) {
  size_t Start = At;
  std::string Value;
  auto TakeBare = [&] {
    StringRef Bare = Text.substr(At).take_until([](char C) {
      return isSpace(C) || C == ',' || C == '{' || C == '}' || C == '\'';
    });
    At += Bare.size();
  };
  auto OptionFollows = [&] {
    StringRef Rest = Text.substr(At + 1).ltrim();
    return any_of(Options.all(), [&](const OptionBase *O) {
      StringRef After = Rest;
      return After.consume_front(O->name()) && After.starts_with("=");
    });
  };
  if (!consume('\'')) {
    TakeBare();
    while (TakesCommas && !atEnd() && Text[At] == ',' && !OptionFollows()) {
      ++At;
      TakeBare();
    }
    return Text.slice(Start, At).str();
  }
  while (!atEnd()) {
    char C = Text[At++];
    if (C == '\'' && !consume('\''))
      return Value;
    Value += C;
  }
  return fail(Start, Start + 1, "this quote is not closed: add a '");
}

Error Parser::parseOption(Pass &P) {
  size_t Start = At;
  StringRef Name = takeName();
  const PassInfo &Info = P.info();
  if (Name.empty())
    return fail(At, At + 1,
                atEnd() ? Twine("the options of '") + Info.Name +
                              "' are not closed: add a '}'"
                        : Twine("expected an option of '") + Info.Name + "'");
  OptionBase *Option = P.options().find(Name);
  if (!Option) {
    std::vector<std::string> Known;
    for (const OptionBase *O : P.options().all())
      Known.emplace_back(O->name());
    std::string Hint = didYouMean(Name, Known);
    if (Hint.empty())
      Hint = Known.empty() ? "; it has none"
                           : "; its options are " + join(Known, ", ");
    return fail(Start, At,
                Twine("pass '") + Info.Name + "' has no option '" + Name + "'" +
                    Hint);
  }
  std::string Value = "true";
  if (consume('=')) {
    Start = At;
    Expected<std::string> Given =
        parseValue(P.options(), Option->takesCommas());
    if (!Given)
      return Given.takeError();
    Value = *Given;
  }
  std::string Fault = Option->parse(Value);
  return Fault.empty() ? Error::success()
                       : fail(Start, At, Name + ": " + Fault);
}

Expected<std::unique_ptr<Pass>> Parser::parsePass() {
  skipSpace();
  size_t Start = At;
  StringRef Name = takeName();
  if (Name.empty())
    return fail(At, At + 1, "expected the name of a pass");
  const PassRegistry::Entry *Entry = Registry.find(Name);
  if (!Entry) {
    std::string Hint = didYouMean(Name, Registry.names());
    return fail(Start, At,
                "unknown pass '" + Name + "'" +
                    (Hint.empty() ? "; see --list-passes" : Hint));
  }
  std::unique_ptr<Pass> P = Entry->Prototype->clone();
  skipSpace();
  if (consume('{')) {
    while (true) {
      skipSpace();
      if (consume('}'))
        break;
      if (Error E = parseOption(*P))
        return E;
      size_t End = At;
      skipSpace();
      // One comma, or white space, or the end of the list.
      if (!consume(',') && At == End && !atEnd() && Text[At] != '}')
        return fail(At, At + 1, "expected ',' or '}' after an option");
    }
    skipSpace();
  }
  return P;
}

Expected<Pipeline> Parser::parse() {
  Pipeline Result;
  skipSpace();
  if (atEnd())
    return Result;
  do {
    Expected<std::unique_ptr<Pass>> P = parsePass();
    if (!P)
      return P.takeError();
    Result.add(std::move(*P));
  } while (consume(','));
  if (!atEnd())
    return fail(At, At + 1, "expected ',' and another pass");
  return Result;
}

/// Returns \p Value as a pipeline spells it, in quotes if they are needed.
std::string quoted(StringRef Value) {
  if (!Value.empty() && Value.find_first_of(",{}' \t\n") == StringRef::npos)
    return Value.str();
  std::string Out = "'";
  for (char C : Value) {
    Out += C;
    if (C == '\'')
      Out += C;
  }
  return Out + "'";
}

} // namespace

Expected<Pipeline> Pipeline::parse(StringRef Text,
                                   const PassRegistry &Registry) {
  return Parser(Text, Registry).parse();
}

Pipeline Pipeline::clone() const {
  Pipeline Copy;
  for (const std::unique_ptr<Pass> &P : Passes)
    Copy.add(P->clone());
  return Copy;
}

std::string Pipeline::str() const {
  std::string Out;
  for (const std::unique_ptr<Pass> &P : Passes) {
    Out += (Out.empty() ? "" : ",") + std::string(P->info().Name);
    std::string Options;
    for (const OptionBase *O : P->options().all())
      if (!O->isDefault())
        Options += (Options.empty() ? "" : ",") + std::string(O->name()) + "=" +
                   quoted(O->print());
    if (!Options.empty())
      Out += "{" + Options + "}";
  }
  return Out;
}

} // namespace graft
