//===- lib/program/OrderedReads.cpp - updates that wait -------------===//
//
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "lib/program/OrderedReads.h"

using namespace llvm;

namespace graft {

void orderReads(Graph &G, ArrayRef<OpenRead> Reads) {
  for (const OpenRead &Read : Reads) {
    G.addControlInput(Read.Update, Read.Reader);
    G.setBoolAttr(Read.Update, OrderedAttr, true);
  }
}

bool hasOrderedReads(const Graph &Output) {
  for (NodeId N = 0; N < Output.size(); ++N)
    if (Output.isLive(N) && Output.node(N).Flags & NF_MayHaveGraft &&
        Output.hasAttr(N, OrderedAttr))
      return true;
  return false;
}

} // namespace graft
