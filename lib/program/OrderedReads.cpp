//===- lib/program/OrderedReads.cpp - reads and updates ---------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "lib/program/OrderedReads.h"

#include "lib/graph/AttrRun.h"
#include "lib/ops/Ops.h"

#include "llvm/ADT/DenseMap.h"

#include <map>
#include <tuple>

using namespace llvm;

namespace graft {

void orderReads(Graph &G, ArrayRef<OpenRead> Reads) {
  for (const OpenRead &Read : Reads) {
    G.addControlInput(Read.Update, Read.Reader);
    G.setBoolAttr(Read.Update, OrderedAttr, true);
  }
}

namespace {

/// Reads variables again after updates, once for all uses with equal waits.
class Rereader {
public:
  explicit Rereader(Graph &G) : G(G) {}
  void readAgain(const LateUse &Late);

private:
  /// Returns a name for a new read of \p N. The reads are counted, so that no
  /// search for a free name is needed.
  std::string nameOf(NodeId N) {
    unsigned Is = ++Count[N];
    std::string Name = (G.name(N) + "/late").str();
    return Is == 1 ? Name : Name + "_" + std::to_string(Is - 1);
  }
  void waitFor(NodeId N, ArrayRef<NodeId> Waits) {
    for (NodeId Wait : Waits)
      G.addControlInput(N, Wait);
    G.setBoolAttr(N, OrderedAttr, true);
  }

  Graph &G;
  DenseMap<NodeId, unsigned> Count; ///< The number of new reads.
  std::map<std::vector<NodeId>, uint32_t>
      Numbers; ///< By the nodes to wait for.
  /// The new reads. The first two parts of the key are a view and port 0, or a
  /// variable and its port. The third is the number that Numbers has for the
  /// awaited nodes.
  std::map<std::tuple<NodeId, uint32_t, uint32_t>, NodeId> Again;
};

void Rereader::readAgain(const LateUse &Late) {
  G.setBoolAttr(Late.Of.User, OrderedAttr, true);
  uint32_t After = Numbers
                       .try_emplace({Late.Waits.begin(), Late.Waits.end()},
                                    static_cast<uint32_t>(Numbers.size()))
                       .first->second;
  Endpoint E = G.input(Late.Of);
  auto Now = [&](NodeId View) {
    auto It = Again.find({View, 0, After});
    return It == Again.end() ? View : It->second;
  };
  if (Late.Views.empty()) {
    // E is the variable itself, or the output of an update of the variable.
    auto [It, New] = Again.try_emplace({E.Node, E.Port, After}, NoNode);
    if (New) {
      AttrRun Attrs;
      Attrs.type("T", G.outputType(E))
          .strings("_class", ("loc:@" + G.name(E.Node)).str());
      It->second = G.insertNode(nameOf(E.Node), op::Identity, E, E.Node, Attrs);
      G.setDevice(It->second, G.device(E.Node).str());
      waitFor(It->second, Late.Waits);
    }
    G.setInput(Late.Of.User, Late.Of.Index, {It->second, 0});
    return;
  }
  for (NodeId View : Late.Views) {
    auto [It, New] = Again.try_emplace({View, 0, After}, NoNode);
    if (!New)
      continue;
    SmallVector<Endpoint, 4> Inputs(G.inputs(View));
    bool IsRead = true;
    for (Endpoint &From : Inputs)
      if (NodeId Source = From.isControl() ? From.Node : Now(From.Node);
          Source != From.Node && Source != NoNode) {
        From.Node = Source;
        IsRead = false;
      }
    AttrRun Attrs;
    for (const AttrEntry &A : G.attrs(View))
      Attrs.raw(A.Key, A.Value);
    NodeId N = G.insertNode(nameOf(View), G.opName(View), Inputs, View, Attrs);
    G.setDevice(N, G.device(View).str());
    if (IsRead)
      waitFor(N, Late.Waits);
    It->second = N;
  }
  G.setInput(Late.Of.User, Late.Of.Index, {Now(E.Node), E.Port});
}

} // namespace

void readAgain(Graph &G, ArrayRef<LateUse> Uses) {
  Rereader Reader(G);
  for (const LateUse &Late : Uses)
    Reader.readAgain(Late);
}

bool hasOrderedReads(const Graph &Output) {
  for (NodeId N = 0; N < Output.size(); ++N)
    if (Output.isLive(N) && Output.node(N).Flags & NF_MayHaveGraft &&
        Output.hasAttr(N, OrderedAttr))
      return true;
  return false;
}

} // namespace graft
