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
// The value of an option that is a list has commas, up to one before `name=`
// with the name of another option of the pass: `a{inputs=x:0,y:0,outputs=z:0}`.
//
//===----------------------------------------------------------------------===//

#include "lib/pass/PassManager.h"
#include "lib/pass/PipelineText.h"

#include "llvm/ADT/StringExtras.h"

using namespace llvm;

namespace graft {
namespace {

class Parser {
public:
  Parser(StringRef Text, const PassRegistry &Registry)
      : Text(Text), Registry(Registry) {}

  Expected<std::vector<std::unique_ptr<Pass>>> parse();

private:
  Expected<std::unique_ptr<Pass>> parsePass();
  Error parseOption(Pass &P);
  Expected<std::string> parseValue(const PassInfo &Info, bool IsList);
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

Expected<std::string> Parser::parseValue(const PassInfo &Info, bool IsList) {
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
    return any_of(Info.Options, [&](const PassOption &O) {
      StringRef After = Rest;
      return After.consume_front(O.Name) && After.starts_with("=");
    });
  };
  if (!consume('\'')) {
    TakeBare();
    while (IsList && !atEnd() && Text[At] == ',' && !OptionFollows()) {
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
  std::vector<std::string> Known;
  bool IsList = false;
  for (const PassOption &O : Info.Options) {
    Known.push_back(O.Name);
    IsList |= O.IsList && Name == O.Name;
  }
  if (!is_contained(Known, Name)) {
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
    Expected<std::string> Given = parseValue(Info, IsList);
    if (!Given)
      return Given.takeError();
    Value = *Given;
  }
  P.setOption(Name, Value);
  return Error::success();
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
  std::unique_ptr<Pass> P = Entry->Create();
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

Expected<std::vector<std::unique_ptr<Pass>>> Parser::parse() {
  std::vector<std::unique_ptr<Pass>> Result;
  skipSpace();
  if (atEnd())
    return Result;
  do {
    Expected<std::unique_ptr<Pass>> P = parsePass();
    if (!P)
      return P.takeError();
    Result.push_back(std::move(*P));
  } while (consume(','));
  if (!atEnd())
    return fail(At, At + 1, "expected ',' and another pass");
  return Result;
}

} // namespace

Error PassManager::parse(StringRef Text) {
  auto Parsed = Parser(Text, Registry).parse();
  if (!Parsed)
    return Parsed.takeError();
  for (std::unique_ptr<Pass> &P : *Parsed)
    Passes.push_back({std::move(P)});
  return Error::success();
}

bool PassManager::setOptionOfAll(StringRef Option, StringRef Value) {
  bool Any = false;
  for (Step &S : Passes)
    if (any_of(S.P->info().Options,
               [&](const PassOption &O) { return Option == O.Name; })) {
      Any = true;
      if (!S.P->isGiven(Option))
        S.P->setOption(Option, Value);
    }
  return Any;
}

std::string PassManager::str() const {
  std::string Out;
  for (const Step &S : Passes) {
    Out += (Out.empty() ? "" : ",") + std::string(S.P->info().Name);
    std::string Options;
    for (const PassOption &O : S.P->info().Options) {
      StringRef Value = S.P->option(O.Name);
      if (Value != O.Default)
        Options += (Options.empty() ? "" : ",") + std::string(O.Name) + "=" +
                   quotePipelineValue(Value);
    }
    if (!Options.empty())
      Out += "{" + Options + "}";
  }
  return Out;
}

} // namespace graft
