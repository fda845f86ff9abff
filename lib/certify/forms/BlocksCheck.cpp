//===- lib/certify/forms/BlocksCheck.cpp - blocks of rows in order --------===//
//
// SPDX-License-Identifier: Apache-2.0
//
// The rows of a replica may lie in blocks, for example after an axis of steps
// and the batch axis were made one axis. The rows of all replicas are put into
// the order of the single-device step block by block:
//
//     parts = Split*(x, axis), one part for each block
//     block_i = _FromReplicas(parts:i) concat along the axis
//     x = ConcatV2(block_0, block_1, ..., axis)
//
// Split and ConcatV2 along one axis do not change the global value. The types
// must show that part i on a replica has the rows of the replica in block i.
//
//===----------------------------------------------------------------------===//

#include "lib/certify/forms/InsertedForm.h"
#include "lib/ops/Ops.h"
#include "lib/program/Program.h"

using namespace llvm;

namespace graft {

static bool isPart(const Graph &G, NodeId N, StringRef Op) {
  return G.node(N).Kind == Inserted::Blocks && G.isOp(N, Op);
}

static std::optional<int64_t> axisAt(const Graph &G, Endpoint E) {
  auto Value =
      isPart(G, E.Node, op::Const) ? constValue(G, E.Node) : std::nullopt;
  if (!Value || !Value->HasInts || Value->Ints.size() != 1)
    return std::nullopt;
  return Value->Ints[0];
}

/// Returns the Split whose parts the ConcatV2 \p Join concatenates in order,
/// after each part was merged over all replicas. Returns NoNode if \p Join does
/// not have this form.
static NodeId splitOf(const Comparison &C, NodeId Join) {
  const Graph &G = C.G;
  unsigned Count = G.node(Join).NumData;
  if (!isPart(G, Join, op::ConcatV2) || Count < 3)
    return NoNode;
  NodeId Split = NoNode;
  for (unsigned I = 0; I + 1 < Count; ++I) {
    Endpoint E = G.input(Join, I);
    while (forwards(C, E.Node) && G.node(E.Node).NumData != 0)
      E = G.input(E.Node, 0);
    if (!isPart(G, E.Node, op::Split) || E.Port != I ||
        (Split != NoNode && E.Node != Split))
      return NoNode;
    Split = E.Node;
  }
  auto Axis = axisAt(G, G.input(Join, Count - 1));
  return G.node(Split).NumData == 2 && G.numOutputs(Split) == Count - 1 &&
                 Axis && Axis == axisAt(G, G.input(Split, 0))
             ? Split
             : NoNode;
}

static Endpoint joined(const Comparison &C, Endpoint E) {
  NodeId Split = splitOf(C, E.Node);
  return Split == NoNode ? Endpoint() : C.G.input(Split, 1);
}

static void checkBlocks(Comparison &C, const ProgramFacts & /*Facts*/,
                        NodeId N) {
  const Graph &G = C.G;
  if (isPart(G, N, op::ConcatV2) && splitOf(C, N) == NoNode)
    C.error(N, "does not join the blocks of one tensor in order");
  else if (!G.boolAttr(N, BlocksAttr).value_or(false) ||
           (!G.isOp(N, op::ConcatV2) && !G.isOp(N, op::Split) &&
            !G.isOp(N, op::Const)))
    C.mismatch(N);
  checkWaits(C, N);
}

static bool recognizeBlocks(const LoweredFile &File, NodeId N) {
  return File.G.boolAttr(N, BlocksAttr) == true;
}

const InsertedForm BlocksForm = {
    .StandsFor = joined, .Check = checkBlocks, .Recognize = recognizeBlocks};

} // namespace graft
