//===- lib/infer/facts/Explain.cpp - explanations of types ------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "lib/infer/facts/Explain.h"

#include "lib/ops/OpRule.h"
#include "lib/program/Program.h"

#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/STLExtras.h"

using namespace llvm;

namespace graft {
namespace {

std::string text(const ReplicationType &Type) {
  return Type.str() + (Type.Symbolic ? " (a local size)" : "");
}

std::string tensorName(const Graph &G, Endpoint E) {
  std::string Name = originName(G, E.Node).str();
  return E.Port == 0 ? Name : Name + ":" + std::to_string(E.Port);
}

class Explainer {
public:
  Explainer(const Graph &G, const ProgramFacts &Facts) : G(G), Facts(Facts) {
    for (auto [Source, Bits] : Facts.Types.assumptions())
      Assumed[Source] |= Bits;
  }

  /// Returns the line of \p N.
  std::string line(NodeId N) const;
  /// Adds the lines of \p N and of the nodes that affect its type to \p Out,
  /// see explainType(). Returns the number of these nodes. Without
  /// \p CountsRest, counts up to \p MaxLines + 1.
  size_t chain(NodeId N, unsigned MaxLines, bool CountsRest, std::string &Out);
  /// Returns true if input \p E affects the type of its user.
  bool matters(Endpoint E) const {
    return !Facts.Types.type(E).isTrue() || G.node(E.Node).Kind != Inserted::No;
  }
  /// Returns true if the chain ends at \p N.
  bool isEnd(NodeId N) const { return G.node(N).Kind == Inserted::Split; }

private:
  std::string types(NodeId N) const;
  std::string because(NodeId N) const;
  const std::string &lineOnce(NodeId N) {
    std::string &Line = Lines[N];
    if (Line.empty())
      Line = line(N);
    return Line;
  }

  const Graph &G;
  const ProgramFacts &Facts;
  DenseMap<NodeId, uint8_t> Assumed; ///< Assumptions, by node that makes some.
  /// The cached lines, since a node may be in many chains.
  DenseMap<NodeId, std::string> Lines;
};

/// Returns the type of output 0, and the types of other outputs that differ.
std::string Explainer::types(NodeId N) const {
  unsigned Outputs = Facts.Dims.numOutputs(N);
  if (Outputs == 0)
    return "no value";
  ReplicationType First = Facts.Types.type({N, 0});
  std::string Out = text(First);
  for (unsigned Port = 1; Port < Outputs; ++Port)
    if (ReplicationType Type = Facts.Types.type({N, Port});
        text(Type) != text(First))
      Out += ", output " + std::to_string(Port) + " is " + text(Type);
  return Out;
}

std::string Explainer::because(NodeId N) const {
  const Node &This = G.node(N);
  constexpr unsigned Shown = 4;
  unsigned Count = 0;
  std::string Inputs;
  for (unsigned I = 0; I < This.NumData; ++I) {
    Endpoint E = G.input(N, I);
    if (!matters(E) || ++Count > Shown)
      continue;
    Inputs += (Inputs.empty() ? "" : ", ") + ("input " + std::to_string(I)) +
              " '" + tensorName(G, E) + "' is " + text(Facts.Types.type(E));
  }
  if (Count > Shown)
    Inputs += " and " + std::to_string(Count - Shown) + " more";
  auto With = [&](const std::string &Why) {
    return Inputs.empty() ? Why : Why + ": " + Inputs;
  };
  if (Facts.Vars.isUpdate(G, N))
    return With("it writes a variable, which needs global values");
  if (isEnd(N))
    return "'" + tensorName(G, G.input(N, 0)) + "' is split over the replicas";
  ReplicationType Type = Facts.Dims.numOutputs(N) != 0
                             ? Facts.Types.type({N, 0})
                             : ReplicationType::replicated();
  if (Type.isVarying() && Type.Cause == N) {
    std::string Reason = Facts.Types.reason(N);
    return With(ruleOf(G.opName(N)).Type ? "it " + Reason : Reason);
  }
  if (!Inputs.empty())
    return Inputs;
  if (This.NumData != 0)
    return "all inputs are Replicated";
  if (Facts.Dims.numOutputs(N) == 0)
    return "it only orders other nodes";
  return Type.Symbolic ? "it holds a per-replica size"
                       : "it reads nothing that is split";
}

std::string Explainer::line(NodeId N) const {
  std::string Out = (originName(G, N) + " = " + G.opName(N) + ": ").str() +
                    types(N) + ", because " + because(N);
  uint8_t Bits = Assumed.lookup(N);
  if (Bits & AssumesLocalBatchNorm)
    Out += "; assumes that the statistics of each replica's rows may replace "
           "those of the batch";
  if (Bits & AssumesRandomDraw)
    Out += "; assumes that random numbers need only be equal in distribution";
  if (Bits & AssumesReduction)
    Out += "; assumes that the requested reduction is right";
  return Out + "\n";
}

size_t Explainer::chain(NodeId N, unsigned MaxLines, bool CountsRest,
                        std::string &Out) {
  DenseSet<NodeId> Seen = {N};
  std::vector<NodeId> Queue = {N};
  for (size_t I = 0; I < Queue.size() && (CountsRest || I < MaxLines); ++I) {
    NodeId At = Queue[I];
    if (I < MaxLines)
      Out += lineOnce(At);
    if (isEnd(At))
      continue;
    for (Endpoint In : G.dataInputs(At)) {
      if (!CountsRest && Queue.size() > MaxLines)
        break;
      if (matters(In) && Seen.insert(In.Node).second)
        Queue.push_back(In.Node);
    }
  }
  return Queue.size();
}

} // namespace

NodeId findOrigin(const Graph &G, StringRef Name) {
  NodeId Found = G.find(Name);
  if (Found != NoNode && G.node(Found).Kind == Inserted::No)
    return Found;
  // A node of the input graph may have lost its name to its merged value.
  for (NodeId N = 0; N < G.size(); ++N)
    if (G.isLive(N) && G.node(N).Kind == Inserted::No &&
        originName(G, N) == Name)
      return N;
  return Found;
}

std::string explainType(const Graph &G, const ProgramFacts &Facts, NodeId N,
                        unsigned MaxLines, bool CountsRest) {
  std::string Out;
  size_t Found = Explainer(G, Facts).chain(N, MaxLines, CountsRest, Out);
  if (CountsRest && Found > MaxLines)
    Out += "and " + std::to_string(Found - MaxLines) +
           " more nodes: explain one of those above to see them\n";
  return Out;
}

std::string explainTypes(const Graph &G, const ProgramFacts &Facts,
                         ArrayRef<NodeId> Nodes) {
  constexpr unsigned MaxLines = 20;
  if (Nodes.size() == 1)
    return explainType(G, Facts, Nodes.front(), MaxLines);
  Explainer E(G, Facts);
  std::string Out;
  for (NodeId N : Nodes)
    if (E.chain(N, MaxLines, /*CountsRest=*/false, Out) > MaxLines)
      Out += "and more nodes: explain one of those above to see them\n";
  return Out;
}

void explainEach(const Graph &G, const ProgramFacts &Facts,
                 function_ref<void(NodeId, StringRef)> Do) {
  Explainer E(G, Facts);
  for (NodeId N : Facts.Order)
    Do(N, StringRef(E.line(N)).rtrim('\n'));
}

} // namespace graft
