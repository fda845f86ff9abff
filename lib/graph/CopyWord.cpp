//===- lib/graph/CopyWord.cpp - names of copies -----------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "lib/graph/CopyWord.h"

#include "lib/graph/FileWalk.h"

#include "llvm/ADT/StringExtras.h"

#include <algorithm>
#include <cstring>

using namespace llvm;

namespace graft {

std::string copyWordOn(const Graph &G, NodeId N) {
  StringRef Word = G.stringAttr(N, CopyWordAttr).value_or(UsualCopyWord);
  bool IsWord = Word.size() == CopyWordSize && Word.ends_with("_") &&
                all_of(Word, [](char C) { return isAlnum(C) || C == '_'; });
  return (IsWord ? Word : StringRef(UsualCopyWord)).str();
}

std::string copyWordOf(const Graph &G) {
  for (NodeId N = 0; N < G.size(); ++N)
    if (G.isLive(N) && G.node(N).Flags & NF_MayHaveGraft &&
        G.hasAttr(N, CopyWordAttr))
      return copyWordOn(G, N);
  return UsualCopyWord.str();
}

/// Returns the offset of `<word><i>` in \p Name, and the replica i.
static std::optional<std::pair<size_t, unsigned>> findCopy(StringRef Name,
                                                           StringRef Word) {
  for (size_t At = Name.find(Word); At != StringRef::npos;
       At = Name.find(Word, At + 1)) {
    StringRef Digits = Name.substr(At + Word.size());
    Digits = Digits.take_front(Digits.find('/'));
    unsigned Number;
    if ((At == 0 || Name[At - 1] == '/') &&
        At + Word.size() + Digits.size() != (At == 0 ? Name.size() : 0) &&
        !Digits.empty() && all_of(Digits, isDigit) &&
        !Digits.getAsInteger(10, Number))
      return std::pair(At, Number);
  }
  return std::nullopt;
}

std::optional<unsigned> numberOfCopy(StringRef Name, StringRef Word) {
  auto Found = findCopy(Name, Word);
  return Found ? std::optional(Found->second) : std::nullopt;
}

std::string originOfCopy(StringRef Name, StringRef Word) {
  auto Found = findCopy(Name, Word);
  if (!Found)
    return Name.str();
  StringRef Before = Name.take_front(Found->first),
            Behind = Name.substr(Found->first + Word.size());
  Behind = Behind.drop_while(isDigit);
  if (Before.empty())
    Behind.consume_front("/");
  else
    Before.consume_back("/");
  return (Before + Behind).str();
}

/// Returns true if \p Part, a component of a name between slashes, is the scope
/// of \p Word, or the word and a number.
static bool isOfWord(StringRef Part, StringRef Word) {
  if (!Part.starts_with(copyScope(Word)))
    return false;
  Part = Part.drop_front(CopyWordSize - 1);
  return Part.empty() || (Part.size() > 1 && Part[0] == '_' &&
                          all_of(Part.drop_front(), isDigit));
}

namespace {

/// Searches names for a word. Skips the scopes shared with the previous name.
class WordSearch {
public:
  explicit WordSearch(StringRef Word) : Word(Word) {}

  bool has(StringRef Name) {
    size_t At = commonPrefix(Before, Name);
    while (At != 0 && Name[At - 1] != '/')
      --At;
    Before = Name;
    for (; At < Name.size(); ++At) {
      size_t Slash = Name.find('/', At);
      if (Name[At] == Word[0] && isOfWord(Name.slice(At, Slash), Word))
        return true;
      if (Slash == StringRef::npos)
        break;
      At = Slash;
    }
    return false;
  }

private:
  /// Returns a lower bound of the length of the common prefix, a multiple of 8.
  static size_t commonPrefix(StringRef A, StringRef B) {
    size_t Size = std::min(A.size(), B.size()), I = 0;
    auto Eight = [&](StringRef S) {
      uint64_t Characters;
      std::memcpy(&Characters, S.data() + I, sizeof(Characters));
      return Characters;
    };
    while (I + 8 <= Size && Eight(A) == Eight(B))
      I += 8;
    return I;
  }

  StringRef Word;
  StringRef Before; ///< The previous name, which lacks the word.
};

} // namespace

/// Returns true if a node, frame or resource name of \p G has \p Word.
static bool hasWord(const Graph &G, StringRef Word) {
  enum : uint8_t { Frame = 1, Shared = 2 };
  std::vector<uint8_t> Others; // by op
  for (uint32_t Op = 0; Op < G.numOps(); ++Op) {
    const OpDef *Def = G.opDefOf(Op);
    Others.push_back((Def && Def->attr("frame_name") ? Frame : 0) |
                     (Def && Def->attr("shared_name") ? Shared : 0));
  }
  WordSearch Search(Word);
  auto HasAttr = [&](NodeId N, StringRef Key) {
    return WordSearch(Word).has(G.stringAttr(N, Key).value_or(""));
  };
  FileWalk Walk(G);
  for (NodeId N = 0; N < G.size(); ++N) {
    if (!G.isLive(N))
      continue;
    Walk.at(N);
    uint8_t Other = Others[G.node(N).Op];
    if (Search.has(G.name(N)) || (Other & Frame && HasAttr(N, "frame_name")) ||
        (Other & Shared && HasAttr(N, "shared_name")))
      return true;
  }
  return false;
}

std::string freeCopyWord(const Graph &G) {
  std::string Word = UsualCopyWord.str();
  for (unsigned I = 0; hasWord(G, Word); ++I) {
    // graft_r_, graft_0_, ..., graft10_, ...
    std::string Number = I == 0 ? "r" : utostr(I - 1);
    Word = StringRef("graft_").take_front(CopyWordSize - 1 - Number.size());
    Word += Number + "_";
  }
  return Word;
}

} // namespace graft
