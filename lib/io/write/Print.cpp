//===- lib/io/write/Print.cpp - graphs for people ---------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "lib/io/write/Print.h"

#include "lib/graph/ProgramAttrs.h"
#include "lib/io/AttrText.h"
#include "lib/ops/ProgramOps.h"
#include "lib/support/Diagnostics.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"

using namespace llvm;

namespace graft {
namespace {

/// Returns all attributes and the program state, except the copies, which the
/// op shows.
std::vector<std::pair<std::string, std::string>> attrTexts(const Graph &G,
                                                           NodeId N) {
  SmallVector<ProgramAttr, 4> Program = programAttrs(G.node(N));
  std::vector<std::pair<std::string, std::string>> All;
  for (const AttrEntry &A : G.attrs(N))
    All.emplace_back(A.Key.str(), attrText(A.Value));
  for (const ProgramAttr &A : Program)
    if (A.Key != CopiesAttr)
      All.emplace_back(A.Key.str(), attrText(A.Value));
  llvm::stable_sort(All, less_first());
  return All;
}

std::string endpointText(const Graph &G, Endpoint E) {
  std::string Name = G.name(E.Node).str();
  return E.Port == 0 ? Name : Name + ":" + utostr(E.Port);
}

/// Returns "*4" if the program's mesh has the number of replicas, else "*".
std::string copiesMark(const Graph &G) {
  for (NodeId N = 0; N < G.size(); ++N)
    if (G.isLive(N) && G.isOp(N, MeshOp))
      if (auto Replicas = G.intAttr(N, "replicas"))
        return "*" + itostr(*Replicas);
  return "*";
}

} // namespace

std::string attrText(StringRef Value) {
  tensorflow::AttrValue A;
  return A.ParseFromArray(Value.data(), static_cast<int>(Value.size()))
             ? attrText(A)
             : "<malformed>";
}

std::string NodeText::str() const {
  std::string Line = Name + " = " + Op + "(";
  ListSeparator Comma;
  for (const std::string &Each : Inputs)
    Line += StringRef(Comma).str() + Each;
  for (const std::string &Each : Controls)
    Line += StringRef(Comma).str() + "^" + Each;
  Line += ')';
  if (!Device.empty())
    Line += " @" + Device;
  for (const auto &[Key, Value] : Attrs)
    Line.append(" ").append(Key).append("=").append(Value);
  return Line;
}

static NodeText nodeText(const Graph &G, NodeId N, StringRef Mark) {
  NodeText Text;
  Text.Name = G.name(N).str();
  Text.Op = G.opName(N).str();
  if (G.isPerReplica(N))
    Text.Op += Mark;
  for (Endpoint E : G.dataInputs(N))
    Text.Inputs.push_back(endpointText(G, E));
  for (Endpoint E : G.controlInputs(N))
    Text.Controls.push_back(G.name(E.Node).str());
  Text.Device = G.device(N).str();
  Text.Attrs = attrTexts(G, N);
  return Text;
}

std::vector<NodeText> nodeTexts(const Graph &G) {
  std::vector<NodeText> All;
  std::string Mark = copiesMark(G);
  All.reserve(G.numLive());
  for (NodeId N : G.order())
    All.push_back(nodeText(G, N, Mark));
  return All;
}

std::string summaryText(const Graph &G) {
  std::string Out, Mark = copiesMark(G);
  for (NodeId N : G.order())
    Out += escapeControls(nodeText(G, N, Mark).str()) + "\n";
  return Out;
}

} // namespace graft
