//===- lib/driver/Picture.cpp - --emit=dot ----------------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
// The replicated program records the replica of each output node and why the
// node was added. So no name is parsed.
//
//===----------------------------------------------------------------------===//

#include "lib/driver/Picture.h"

#include "lib/lower/expand/Expand.h"
#include "lib/program/Program.h"
#include "lib/support/Wire.h"

using namespace llvm;

namespace graft {

/// Returns the name in the serialized \p NodeDef.
static StringRef nameOf(StringRef NodeDef) {
  wire::Reader Fields(NodeDef);
  for (wire::Field F; Fields.next(F);)
    if (F.Number == 1)
      return F.Bytes;
  return "";
}

static StringRef lastPart(StringRef Name) {
  return Name.drop_front(Name.rfind('/') + 1);
}

static DrawnNode drawn(const Graph &Program, NodeId N) {
  return {originName(Program, N).str(), std::nullopt, Program.node(N).Kind};
}

Expected<std::string> pictureText(const Module &M, const DrawingOptions &O) {
  const Graph &Program = M.graph();
  std::vector<DrawnNode> Nodes;
  if (!M.Lowered) {
    for (NodeId N = 0; N < Program.size(); ++N)
      Nodes.push_back(drawn(Program, N));
    return drawGraph(Program, Nodes, O);
  }
  std::string Bytes;
  ReplicaExpander(Program, readMesh(Program))
      .forEachCopy(
          [&](NodeId Of, std::optional<unsigned> Replica, StringRef Copy) {
            Bytes += Copy;
            wire::Reader Fields(Copy);
            for (wire::Field F; Fields.next(F);) {
              Nodes.push_back(drawn(Program, Of));
              Nodes.back().Replica = Replica;
              // A copy may be several nodes: constants, then the node itself.
              if (Fields.position() != Copy.end())
                Nodes.back().Name += "/" + lastPart(nameOf(F.Bytes)).str();
            }
          });
  Graph Written;
  if (Error E = Written.parse(Bytes))
    return E;
  return drawGraph(Written, Nodes, O);
}

} // namespace graft
