//===- lib/graph/CopyWord.cpp - what copies are called ----------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "lib/graph/CopyWord.h"

#include "lib/graph/FileWalk.h"

#include "llvm/ADT/StringExtras.h"

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

/// Whether a part of \p Name between slashes is the scope of \p Word, or the
/// word and a number.
static bool hasWord(StringRef Name, StringRef Word) {
  for (;;) {
    if (Name.starts_with(copyScope(Word))) {
      StringRef Rest = Name.substr(CopyWordSize - 1);
      if (Rest.size() > 1 && Rest[0] == '_' && isDigit(Rest[1]))
        Rest = Rest.drop_front().ltrim("0123456789");
      if (Rest.empty() || Rest.front() == '/')
        return true;
    }
    size_t Slash = Name.find('/');
    if (Slash == StringRef::npos)
      return false;
    Name = Name.drop_front(Slash + 1);
  }
}

/// How many characters \p A and \p B begin with alike, at least; in eights.
static size_t commonPrefix(StringRef A, StringRef B) {
  size_t Size = std::min(A.size(), B.size()), I = 0;
  for (; I + 8 <= Size; I += 8)
    if (std::memcmp(A.data() + I, B.data() + I, 8) != 0)
      break;
  return I;
}

/// Whether \p G has \p Word in a name of a node, a frame or a resource.
static bool hasWord(const Graph &G, StringRef Word) {
  std::vector<bool> HasFrame, HasShared; // by op
  for (uint32_t Op = 0; Op < G.numOps(); ++Op) {
    const OpDef *Def = G.opDefOf(Op);
    HasFrame.push_back(Def && Def->attr("frame_name"));
    HasShared.push_back(Def && Def->attr("shared_name"));
  }
  FileWalk Walk(G);
  StringRef Before;
  for (NodeId N = 0; N < G.size(); ++N) {
    if (!G.isLive(N))
      continue;
    Walk.at(N);
    uint32_t Op = G.node(N).Op;
    // Scopes that this name has in common with the one before were looked at.
    StringRef Name = G.name(N);
    size_t Known = Name.rfind('/', commonPrefix(Before, Name)) + 1;
    Before = Name;
    if (hasWord(Name.drop_front(Known), Word) ||
        (HasFrame[Op] &&
         hasWord(G.stringAttr(N, "frame_name").value_or(""), Word)) ||
        (HasShared[Op] &&
         hasWord(G.stringAttr(N, "shared_name").value_or(""), Word)))
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
