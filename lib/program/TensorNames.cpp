//===- lib/program/TensorNames.cpp - tensors by patterns --------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "lib/program/TensorNames.h"

#include "lib/program/Program.h"
#include "lib/support/Glob.h"

using namespace llvm;

namespace graft {

bool isPattern(const Graph &G, StringRef Name) {
  return Glob::is(Name) && !G.findEndpoint(Name);
}

std::vector<std::string> tensorsLike(const Graph &G, StringRef Pattern) {
  // Splits "x:1", but not a pattern with a colon in a name.
  auto [Nodes, Port] = Pattern.rsplit(':');
  unsigned Number;
  if (Port.empty() || Port.getAsInteger(10, Number)) {
    Nodes = Pattern;
    Port = "";
  }
  Glob Like(Nodes);
  std::vector<std::string> Names;
  for (NodeId N = 0; N < G.size(); ++N) {
    if (!G.isLive(N) || G.node(N).Kind != Inserted::No ||
        !Like.matches(G.name(N)) || G.hasAttr(N, OriginAttr))
      continue;
    Names.push_back(G.name(N).str());
    if (!Port.empty())
      (Names.back() += ':') += Port;
  }
  return Names;
}

std::vector<std::string> withoutPatterns(const Graph &G,
                                         ArrayRef<std::string> Names) {
  std::vector<std::string> Result;
  for (const std::string &Name : Names) {
    if (!isPattern(G, Name)) {
      Result.push_back(Name);
      continue;
    }
    std::vector<std::string> Like = tensorsLike(G, Name);
    Result.insert(Result.end(), Like.begin(), Like.end());
  }
  return Result;
}

} // namespace graft
