//===- lib/analysis/Feeds.cpp - which feeds hold the batch ------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "lib/analysis/Feeds.h"

#include "lib/analysis/Dims.h"
#include "lib/analysis/Topology.h"

#include "llvm/Support/FormatVariadic.h"

#include <map>

using namespace llvm;

namespace graft {
namespace {

class Chooser {
public:
  Chooser(const Graph &G, DiagnosticEngine &Diags) : G(G), Diags(Diags) {}

  bool run(StringRef Option);

  std::vector<Feed> Feeds;

private:
  bool named(StringRef Option);
  bool fromStatic(std::vector<Feed *> Candidates);

  const Graph &G;
  DiagnosticEngine &Diags;
};

bool Chooser::named(StringRef Option) {
  SmallVector<StringRef, 8> Rules;
  Option.split(Rules, ';', -1, false);
  for (StringRef Rule : Rules) {
    auto [Name, How] = Rule.split('=');
    Name.consume_back(":0");
    auto It =
        find_if(Feeds, [&](const Feed &F) { return G.name(F.Node) == Name; });
    if (It == Feeds.end()) {
      std::vector<std::string> Known;
      Known.reserve(Feeds.size());
      for (const Feed &F : Feeds)
        Known.push_back(G.name(F.Node).str());
      std::string Near = nearest(Name, Known);
      Diags.error("", ("--feed: the graph has no feed '" + Name + "'" +
                       (Near.empty() ? "" : "; did you mean '" + Near + "'?"))
                          .str());
      return false;
    }
    It->Named = true;
    StringRef Axis = How;
    if (How == "copy") {
      It->Axis = -1;
    } else if (How.empty() || How == "split") {
      It->Axis = 0;
    } else if (!Axis.consume_front("split(") || !Axis.consume_back(")") ||
               Axis.getAsInteger(10, It->Axis) || It->Axis < 0) {
      Diags.error("", ("--feed: '" + How +
                       "' is not a way to feed; use split, split(AXIS) or copy")
                          .str());
      return false;
    }
    auto Shape = G.shapeAttr(It->Node, "shape");
    if (It->Axis >= 0 && Shape && !Shape->UnknownRank &&
        size_t(It->Axis) >= Shape->Dims.size()) {
      Diags.error(Name, formatv("--feed: axis {0} does not exist: the feed has "
                                "{1} axes",
                                It->Axis, Shape->Dims.size()));
      return false;
    }
  }
  return true;
}

/// All candidates are static: the dimension that most of them begin with.
bool Chooser::fromStatic(std::vector<Feed *> Candidates) {
  DimOptions Options;
  Options.Unpatched = true;
  std::vector<NodeId> Order = topologicalOrder(G);
  DimAnalysis Dims(G, Order, Options);
  std::map<DimId, std::vector<Feed *>> Classes;
  std::vector<Feed *> Split;
  for (Feed &F : Feeds)
    if (F.Axis >= 0)
      Split.push_back(&F);
  for (Feed *F : Candidates)
    if (auto Shape = Dims.shape({F->Node, 0}); Shape && !Shape->empty())
      Classes[Dims.table().find((*Shape)[0])].push_back(F);
  if (!Split.empty()) {
    // The dimension of what is split already.
    for (Feed *F : Split)
      if (auto Shape = Dims.shape({F->Node, 0}))
        for (Feed *Other : Classes[Dims.table().find((*Shape)[F->Axis])])
          Other->Axis = 0;
    return true;
  }
  size_t Most = 0;
  for (auto &[Dim, Members] : Classes)
    Most = std::max(Most, Members.size());
  std::vector<std::vector<Feed *>> Best;
  for (auto &[Dim, Members] : Classes)
    if (Members.size() == Most)
      Best.push_back(Members);
  // A tie: suppose each in turn to be the batch and see which other feeds it
  // reaches through products of sizes.
  std::vector<Feed *> Chosen = Best.front();
  bool Clear = Best.size() == 1;
  for (size_t I = 0; Best.size() > 1 && I < Best.size() && I < 8; ++I) {
    Options.Suppose = {Best[I].front()->Node, 0};
    DimAnalysis Supposed(G, Order, Options);
    std::vector<Feed *> Reached;
    for (Feed *F : Candidates)
      if (auto Shape = Supposed.shape({F->Node, 0}); Shape && !Shape->empty())
        if (auto S = Supposed.table().sym((*Shape)[0]); S == Sym{1, 1, 0})
          Reached.push_back(F);
    if (Reached.size() < Chosen.size() || Reached == Chosen)
      continue;
    Clear = Reached.size() > Chosen.size();
    Chosen = Reached;
  }
  if (!Clear) {
    Diags.error(G.name(Candidates.front()->Node),
                "which feeds hold the batch is not clear: their first "
                "dimensions are not known to be one; name them with "
                "--feed=NAME=split");
    return false;
  }
  for (Feed *F : Chosen)
    F->Axis = 0;
  return true;
}

bool Chooser::run(StringRef Option) {
  for (NodeId N = 0; N < G.size(); ++N)
    if (G.isLive(N) && G.hasUses(N) && (G.opName(N).starts_with("Placeholder")))
      Feeds.push_back({N, -1});
  if (!named(Option))
    return false;
  std::vector<Feed *> Static;
  for (Feed &F : Feeds) {
    auto Shape = G.shapeAttr(F.Node, "shape");
    if (F.Named || (Shape && !Shape->UnknownRank && Shape->Dims.empty()))
      continue;
    if (!Shape || Shape->UnknownRank) {
      // Nothing is known of it: a value that restores a file name, say.
      if (G.outputType(F.Node, 0) != DT_STRING)
        Diags.unproved("feed", G.name(F.Node),
                       "the rank of this feed is not known, so it is read "
                       "whole by every replica; name it with --feed=" +
                           G.name(F.Node).str() + "=split or =copy");
    } else if (Shape->Dims[0] < 0) {
      F.Axis = 0;
    } else {
      Static.push_back(&F);
    }
  }
  if (!Static.empty() && !fromStatic(Static))
    return false;
  if (none_of(Feeds, [](const Feed &F) { return F.Axis >= 0; })) {
    Diags.error("", "no feed holds a batch, so there is nothing to spread over "
                    "replicas; name it with --feed=NAME=split");
    return false;
  }
  return true;
}

} // namespace

std::optional<std::vector<Feed>> chooseFeeds(const Graph &G, StringRef Option,
                                             DiagnosticEngine &Diags) {
  Chooser C(G, Diags);
  if (!C.run(Option))
    return std::nullopt;
  return std::move(C.Feeds);
}

} // namespace graft
