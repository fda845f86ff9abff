//===- lib/rewrite/Merges.cpp - what is of all or one replica ---*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "lib/rewrite/Merges.h"

#include "lib/graph/AttrRun.h"
#include "lib/ops/ProgramOps.h"

using namespace llvm;

namespace graft {

Endpoint insertMerge(Graph &G, Endpoint E, ReplicationType Type, StringRef Base,
                     bool Picked) {
  StringRef Combine = combine::Pick;
  if (Type.isPartial())
    Combine = combineName(Type.Op);
  else if (Type.isSharded())
    Combine = combine::Concat;
  unsigned DataType = G.outputType(E);
  AttrRun Attrs;
  Attrs.type("T", DataType).string(CombineAttr, Combine);
  if (Type.isSharded())
    Attrs.integer("axis", Type.Axis);
  std::string Root = Base.str();
  SmallString<128> Name(Root);
  Name += Combine == combine::Pick ? "/pick" : "/merged";
  NodeId N =
      G.insertNode(Name, FromReplicasOp, E, E.Node, Attrs, Inserted::Merge);
  // An equal value, or a handle, is read from copy 0 without a node between.
  if (Combine == combine::Pick && !Type.isVarying() && !Picked)
    G.node(N).Flags |= NF_ElidePrimary;
  if (!Type.isVarying() && Type.K != 0) {
    AttrRun Power;
    Power.type("T", DataType).integer(PowerAttr, -Type.K);
    Name = Root;
    Name += "/scale";
    N = G.insertNode(Name, ScaleOp, Endpoint{N, 0}, N, Power, Inserted::Scale);
  }
  return {N, 0};
}

Endpoint insertSizes(Graph &G, Endpoint E, ArrayRef<int64_t> Powers,
                     StringRef Base) {
  Endpoint Local = insertMerge(G, E, ReplicationType::replicated(), Base,
                               /*Picked=*/false);
  AttrRun Attrs;
  Attrs.type("T", G.outputType(E));
  if (all_equal(Powers))
    Attrs.integer(PowerAttr, Powers.front());
  else
    Attrs.raw(PowersAttr, encodeIntListAttr(Powers));
  NodeId N = G.insertNode((Base + "/scale").str(), ScaleOp, Local, Local.Node,
                          Attrs, Inserted::Scale);
  return {N, 0};
}

NodeId insertSplit(Graph &G, const Twine &Name, Endpoint E, int Axis) {
  AttrRun Attrs;
  Attrs.type("T", G.outputType(E)).integer("axis", Axis);
  return G.insertNode(Name.str(), ToReplicasOp, E, E.Node, Attrs,
                      Inserted::Split, Copies::PerReplica);
}

} // namespace graft
