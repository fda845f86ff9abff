//===- lib/report/Drawing.cpp - a graph for Graphviz ------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
// A box is a node, or all nodes of a replica in one scope. Boxes are put into
// clusters: one for each replica, and in it one for each scope.
//
//     replica_1/dense/MatMul      cluster "replica 1"
//     replica_1/dense/Add    ->     cluster "dense": MatMul, Add
//                            or     box "dense/", 2 nodes
//
//===----------------------------------------------------------------------===//

#include "lib/report/Drawing.h"

#include "lib/extract/Extract.h"
#include "lib/graph/ProgramAttrs.h"
#include "lib/support/Diagnostics.h"
#include "lib/support/Escape.h"
#include "lib/support/Glob.h"

#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringMap.h"

#include <fmt/format.h>

#include <map>
#include <set>

using namespace llvm;

namespace graft {
namespace {

/// The number of boxes that fit on a page.
constexpr size_t PageLimit = 120;
/// If root scopes need more boxes than this, each replica is a single box.
constexpr size_t FlatLimit = 1000;
/// The maximum nesting of clusters, because a name may have any number of
/// slashes.
constexpr size_t DepthLimit = 8;
/// Patterns are matched with at most this many scopes of a name, outer scopes
/// first.
constexpr size_t ScopeLimit = 64;

/// Light colors, in which black text can be read, for devices in turn.
constexpr StringLiteral Fills[] = {"#cfe2f3", "#fce5cd", "#d9ead3", "#ead1dc",
                                   "#fff2cc", "#d9d2e9", "#d0e0e3", "#f4cccc"};

/// Returns the color of a kind of inserted nodes.
std::string borderOf(Inserted Kind) {
  constexpr double Kinds = static_cast<double>(Inserted::Check);
  return fmt::format("\"{:.3f} 1.0 0.7\"",
                     (static_cast<double>(Kind) - 1) / Kinds);
}

/// Returns the first \p Depth scopes of \p Name with the final slash, or "" if
/// \p Name has fewer scopes.
StringRef scopeOf(StringRef Name, size_t Depth) {
  size_t End = 0;
  for (size_t I = 0; I < Depth; ++I) {
    size_t Slash = Name.find('/', End);
    if (Slash == StringRef::npos)
      return "";
    End = Slash + 1;
  }
  return Name.take_front(End);
}

struct Box {
  NodeId First = NoNode;
  size_t Nodes = 0, Inserted = 0;
  bool IsScope = false;
  std::string Path; ///< The label: a name, or a scope with a slash.
  std::string Id;
  std::optional<unsigned> Replica;
  SmallSetVector<StringRef, 2> Devices;
};

struct Edge {
  size_t Tensors = 0, Controls = 0;
  unsigned Port = 0;
  bool Crosses = false; ///< Set if an edge joins two devices.
};

class Drawing {
public:
  Drawing(const Graph &G, ArrayRef<DrawnNode> Nodes) : G(G), Nodes(Nodes) {}

  Error select(const DrawingOptions &O);
  std::string text();

private:
  Error selectAround(StringRef Place);
  Error selectScopes(ArrayRef<std::string> Patterns);
  std::pair<unsigned, StringRef> placeOf(NodeId N, size_t Depth) const;
  size_t countBoxes(size_t Depth) const;
  size_t depth() const;
  void leaveOutCopies();
  void makeBoxes(size_t Depth);
  void makeEdges();
  void print(ArrayRef<size_t> Of, size_t Depth, StringRef Inside,
             size_t Indent);
  void print(const Box &B, StringRef Inside, size_t Indent);
  void open(const Twine &Label, size_t Indent);
  void printLegend();
  StringRef fillOf(const Box &B);

  const Graph &G;
  ArrayRef<DrawnNode> Nodes;
  std::vector<NodeId> Drawn;
  std::vector<Box> Boxes;
  std::vector<size_t> BoxOf; ///< By node.
  MapVector<std::pair<size_t, size_t>, Edge> Edges;
  MapVector<StringRef, StringRef> FillOf; ///< By device.
  std::set<Inserted> Kinds;               ///< Inserted kinds that are drawn.
  unsigned LastReplica = 0;               ///< The last replica left out, or 0.
  size_t Clusters = 0;
  std::string Out;
};

Error Drawing::selectAround(StringRef Place) {
  auto [Name, Number] = Place.rsplit(':');
  unsigned Hops = 1;
  if (Number.empty() || Number.getAsInteger(10, Hops))
    Name = Place;
  std::vector<NodeId> Middle;
  for (NodeId N : Drawn)
    if (Nodes[N].Name == Name || G.name(N) == Name)
      Middle.push_back(N);
  if (Middle.empty()) {
    std::vector<std::string> All;
    All.reserve(Drawn.size());
    for (NodeId N : Drawn)
      All.push_back(Nodes[N].Name);
    return createStringError("--around: the graph has no node '" + Name + "'" +
                             didYouMean(Name, All));
  }
  NodeSet Near = nodesAround(G, Middle, Hops);
  erase_if(Drawn, [&](NodeId N) { return !Near[N]; });
  return Error::success();
}

Error Drawing::selectScopes(ArrayRef<std::string> Patterns) {
  StringMap<bool> Wanted; // By scope.
  auto IsWanted = [&](StringRef Scope) {
    auto [It, IsNew] = Wanted.try_emplace(Scope);
    if (IsNew)
      It->second = any_of(Patterns, [&](StringRef Pattern) {
        return Glob(Pattern).matches(Scope);
      });
    return It->second;
  };
  auto IsIn = [&](NodeId N) {
    for (size_t Depth = 1; Depth <= ScopeLimit; ++Depth) {
      StringRef Scope = scopeOf(Nodes[N].Name, Depth);
      if (Scope.empty())
        return false;
      if (IsWanted(Scope.drop_back()))
        return true;
    }
    return false;
  };
  erase_if(Drawn, [&](NodeId N) { return !IsIn(N); });
  if (!Drawn.empty())
    return Error::success();
  return createStringError("--scope: no scope matches '" +
                           join(Patterns, "', '") + "'");
}

Error Drawing::select(const DrawingOptions &O) {
  Drawn = G.order();
  if (!O.Around.empty())
    if (Error E = selectAround(O.Around))
      return E;
  return O.Scopes.empty() ? Error::success() : selectScopes(O.Scopes);
}

/// Returns the key of the box of \p N: its replica from 1 on, or 0, and its
/// scope at \p Depth. A node in fewer scopes than \p Depth has its own box,
/// with its name in the key.
std::pair<unsigned, StringRef> Drawing::placeOf(NodeId N, size_t Depth) const {
  const DrawnNode &This = Nodes[N];
  StringRef Scope = scopeOf(This.Name, Depth);
  bool IsAlone = Scope.empty() && Depth != 0;
  return {This.Replica ? *This.Replica + 1 : 0, IsAlone ? G.name(N) : Scope};
}

size_t Drawing::countBoxes(size_t Depth) const {
  DenseSet<std::pair<unsigned, StringRef>> Places;
  for (NodeId N : Drawn)
    Places.insert(placeOf(N, Depth));
  return Places.size();
}

/// If not all nodes fit on a page, leaves out the replicas after replica 1,
/// because they look like replica 1.
void Drawing::leaveOutCopies() {
  if (Drawn.size() <= PageLimit)
    return;
  erase_if(Drawn, [&](NodeId N) {
    unsigned Replica = Nodes[N].Replica.value_or(0);
    if (Replica > 1)
      LastReplica = std::max(LastReplica, Replica);
    return Replica > 1;
  });
}

/// Returns the depth at which scopes become boxes: the largest for which all
/// boxes fit on a page.
size_t Drawing::depth() const {
  size_t Deepest = 0;
  for (NodeId N : Drawn)
    Deepest = std::max<size_t>(Deepest, StringRef(Nodes[N].Name).count('/'));
  size_t Depth = std::min(Deepest, DepthLimit) + 1;
  if (Drawn.size() <= PageLimit)
    return Deepest + 1;
  while (Depth > 1 && countBoxes(Depth) > PageLimit)
    --Depth;
  return Depth == 1 && countBoxes(1) > FlatLimit ? 0 : Depth;
}

void Drawing::makeBoxes(size_t Depth) {
  DenseMap<std::pair<unsigned, StringRef>, size_t> Places;
  BoxOf.assign(G.size(), ~size_t(0));
  for (NodeId N : Drawn) {
    auto Place = placeOf(N, Depth);
    auto [It, IsNew] = Places.try_emplace(Place, Boxes.size());
    BoxOf[N] = It->second;
    if (IsNew) {
      Boxes.emplace_back();
      Boxes.back().First = N;
      Boxes.back().Replica = Nodes[N].Replica;
    }
    Box &B = Boxes[It->second];
    ++B.Nodes;
    B.Inserted += Nodes[N].Kind != Inserted::No;
    B.Devices.insert(G.device(N));
  }
  for (Box &B : Boxes) {
    B.IsScope = B.Nodes > 1 || Depth == 0;
    StringRef Scope = scopeOf(Nodes[B.First].Name, Depth);
    B.Path = B.IsScope ? Scope.str() : Nodes[B.First].Name;
    // The blank makes the id differ from all names.
    B.Id = !B.IsScope   ? G.name(B.First).str()
           : !B.Replica ? B.Path + " once"
                        : fmt::format("{} replica {}", B.Path, *B.Replica);
    if (!B.IsScope && Nodes[B.First].Kind != Inserted::No)
      Kinds.insert(Nodes[B.First].Kind);
    for (StringRef Device : B.Devices)
      if (!Device.empty())
        FillOf.insert({Device, ""});
  }
  for (auto [I, Fill] : enumerate(FillOf))
    Fill.second = Fills[I % std::size(Fills)];
}

void Drawing::makeEdges() {
  for (NodeId N : Drawn)
    for (Endpoint E : G.inputs(N)) {
      size_t From = BoxOf[E.Node], To = BoxOf[N];
      if (From == ~size_t(0) || From == To)
        continue;
      Edge &Its = Edges[{From, To}];
      ++(E.isControl() ? Its.Controls : Its.Tensors);
      if (!E.isControl())
        Its.Port = E.Port;
      Its.Crosses |= !G.device(N).empty() && !G.device(E.Node).empty() &&
                     G.device(N) != G.device(E.Node);
    }
}

StringRef Drawing::fillOf(const Box &B) {
  return B.Devices.size() == 1 && !B.Devices[0].empty() ? FillOf[B.Devices[0]]
                                                        : "white";
}

void Drawing::print(const Box &B, StringRef Inside, size_t Indent) {
  std::string Label = dotString(StringRef(B.Path).drop_front(Inside.size()));
  std::string Attrs;
  auto AddLine = [&](StringRef Line) {
    Label.pop_back();
    Label += "\\n" + dotString(Line).substr(1);
  };
  if (B.IsScope) {
    std::string Count = fmt::format("{} nodes", B.Nodes);
    if (B.Inserted != 0)
      Count += fmt::format(", {} inserted", B.Inserted);
    AddLine(Count);
    if (B.Devices.size() > 1)
      AddLine(fmt::format("{} devices", B.Devices.size()));
    Attrs = ", shape=box3d";
  } else {
    AddLine(G.opName(B.First));
    if (Inserted Kind = Nodes[B.First].Kind; Kind != Inserted::No)
      Attrs = ", penwidth=2, color=" + borderOf(Kind);
    if (G.isPerReplica(B.First))
      Attrs += ", peripheries=2";
    Attrs += ", tooltip=" + dotString(G.name(B.First));
  }
  Out += fmt::format("{}{} [label={}, fillcolor=\"{}\"{}];\n",
                     std::string(Indent, ' '), dotString(B.Id), Label,
                     fillOf(B), Attrs);
}

void Drawing::open(const Twine &Label, size_t Indent) {
  Out +=
      fmt::format("{}subgraph cluster_{} {{ label={};\n",
                  std::string(Indent, ' '), Clusters++, dotString(Label.str()));
}

/// Prints the boxes \p Of in the scope \p Inside, which has \p Depth parts.
void Drawing::print(ArrayRef<size_t> Of, size_t Depth, StringRef Inside,
                    size_t Indent) {
  MapVector<StringRef, SmallVector<size_t, 0>> Scopes;
  for (size_t I : Of) {
    StringRef Scope =
        Depth < DepthLimit ? scopeOf(Boxes[I].Path, Depth + 1) : "";
    if (Scope.empty() || Scope.size() == Boxes[I].Path.size())
      print(Boxes[I], Inside, Indent);
    else
      Scopes[Scope].push_back(I);
  }
  for (const auto &[Scope, Members] : Scopes) {
    // A single box needs no cluster.
    if (Members.size() == 1) {
      print(Boxes[Members[0]], Inside, Indent);
      continue;
    }
    open(Scope.drop_front(Inside.size()), Indent);
    print(Members, Depth + 1, Scope, Indent + 2);
    Out += std::string(Indent, ' ') + "}\n";
  }
}

void Drawing::printLegend() {
  if (FillOf.empty() && Kinds.empty())
    return;
  open("devices and inserted nodes", 2);
  for (const auto &[Device, Fill] : FillOf)
    Out += fmt::format("    {} [label={}, fillcolor=\"{}\"];\n",
                       dotString((Device + " device").str()), dotString(Device),
                       Fill);
  for (Inserted Kind : Kinds)
    Out += fmt::format(
        "    {} [label={}, fillcolor=white, penwidth=2, color={}];\n",
        dotString((insertedName(Kind) + " inserted").str()),
        dotString(insertedName(Kind)), borderOf(Kind));
  Out += "  }\n";
}

std::string Drawing::text() {
  leaveOutCopies();
  makeBoxes(depth());
  makeEdges();
  Out = "digraph graft {\n"
        "  nodesep=0.15; ranksep=0.3; fontname=\"Helvetica\";\n"
        "  node [shape=box, style=filled, fontname=\"Helvetica\", "
        "fontsize=10, height=0.3, margin=\"0.08,0.04\"];\n"
        "  edge [arrowsize=0.5, fontname=\"Helvetica\", fontsize=8];\n";
  std::map<std::optional<unsigned>, std::vector<size_t>> ByReplica;
  for (auto [I, B] : enumerate(Boxes))
    ByReplica[B.Replica].push_back(I);
  for (const auto &[Replica, Of] : ByReplica) {
    if (!Replica) {
      print(Of, 0, "", 2);
      continue;
    }
    std::string Label = fmt::format("replica {}", *Replica);
    if (Replica == 1 && LastReplica > 1)
      Label += LastReplica == 2
                   ? "; replica 2 is like it"
                   : fmt::format("; replicas 2 to {} are like it", LastReplica);
    open(Label, 2);
    print(Of, 0, "", 4);
    Out += "  }\n";
  }
  for (const auto &[Ends, Its] : Edges) {
    std::vector<std::string> Attrs;
    if (Its.Tensors == 0)
      Attrs.emplace_back("style=dashed");
    else if (Its.Tensors > 1)
      Attrs.push_back(fmt::format("label=\"{}\"", Its.Tensors));
    else if (Its.Port != 0 && Boxes[Ends.first].Nodes == 1)
      Attrs.push_back(fmt::format("taillabel=\"{}\"", Its.Port));
    // Boxes of scopes may form cycles, but Graphviz ranks them by their edges.
    // Boxes are in the order of their first nodes, and edges back are ignored.
    if (Ends.first > Ends.second)
      Attrs.emplace_back("constraint=false");
    if (Its.Crosses)
      Attrs.emplace_back("color=\"#c00000\"");
    Out += "  " + dotString(Boxes[Ends.first].Id) + " -> " +
           dotString(Boxes[Ends.second].Id);
    if (!Attrs.empty())
      Out += " [" + join(Attrs, ", ") + "]";
    Out += ";\n";
  }
  printLegend();
  return Out + "}\n";
}

} // namespace

Expected<std::string> drawGraph(const Graph &G, ArrayRef<DrawnNode> Nodes,
                                const DrawingOptions &O) {
  Drawing D(G, Nodes);
  if (Error E = D.select(O))
    return E;
  return D.text();
}

} // namespace graft
