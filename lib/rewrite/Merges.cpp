//===- lib/rewrite/Merges.cpp - inserts merges and splits -------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "lib/rewrite/Merges.h"

#include "lib/graph/AttrRun.h"
#include "lib/ops/Ops.h"
#include "lib/ops/ProgramOps.h"
#include "lib/program/Program.h"

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
  // Users read a value that is equal on all replicas, or a handle, from copy 0.
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

Endpoint insertBlocks(Graph &G, Endpoint E, ReplicationType Type,
                      unsigned Blocks, StringRef Base) {
  unsigned DataType = G.outputType(E);
  auto Add = [&](StringRef Suffix, StringRef Op, ArrayRef<Endpoint> Inputs,
                 AttrRun Attrs, Copies Count) {
    Attrs.boolean(BlocksAttr, true);
    return G.insertNode((Base + Suffix).str(), Op, Inputs, E.Node, Attrs,
                        Inserted::Blocks, Count);
  };
  AttrRun Const, Split, Join;
  Const.type("dtype", DT_INT32)
      .raw("value", encodeIntTensor(DT_INT32, {}, {Type.Axis}));
  Endpoint Axis{Add("/blocks/axis", op::Const, {}, Const, Copies::Once), 0};
  Split.type("T", DataType).integer("num_split", Blocks);
  NodeId Parts =
      Add("/blocks", op::Split, {Axis, E}, Split, Copies::PerReplica);
  Type.Order = ReplicationType::InOrder;
  SmallVector<Endpoint, 8> Inputs;
  for (uint32_t I = 0; I < Blocks; ++I)
    Inputs.push_back(insertMerge(G, {Parts, I}, Type, (Base + "/block").str(),
                                 /*Picked=*/false));
  Inputs.push_back(Axis);
  Join.type("T", DataType).type("Tidx", DT_INT32).integer("N", Blocks);
  return {Add("/all", op::ConcatV2, Inputs, Join, Copies::Once), 0};
}

NodeId insertSplit(Graph &G, const Twine &Name, Endpoint E, int Axis) {
  AttrRun Attrs;
  Attrs.type("T", G.outputType(E)).integer("axis", Axis);
  return G.insertNode(Name.str(), ToReplicasOp, E, E.Node, Attrs,
                      Inserted::Split, Copies::PerReplica);
}

} // namespace graft
