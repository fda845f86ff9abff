//===- lib/rewrite/Assertions.cpp - inserts assertions ----------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "lib/rewrite/Assertions.h"

#include "lib/graph/AttrRun.h"
#include "lib/ops/Ops.h"

using namespace llvm;

namespace graft {

NodeId insertAssertion(Graph &G, StringRef Name, Endpoint Condition,
                       StringRef Message) {
  AttrRun OfText, OfAssert;
  Copies Count = G.node(Condition.Node).Count;
  OfText.type("dtype", DT_STRING).raw("value", encodeStringTensor(Message));
  OfAssert.raw("T", encodeTypeListAttr(StringRef("\7", 1))); // DT_STRING
  NodeId Text =
      G.insertNode((Name + "/message").str(), op::Const, {}, Condition.Node,
                   OfText, Inserted::Check, Copies::Once);
  NodeId Assert = G.insertNode((Name + "/assert").str(), op::Assert,
                               {Condition, Endpoint{Text, 0}}, Text, OfAssert,
                               Inserted::Check, Count);
  return G.insertNode(Name.str(), op::NoOp, Endpoint{Assert, ControlPort},
                      Assert, {}, Inserted::Gate, Count);
}

} // namespace graft
