//===- lib/infer/facts/ProgramFacts.cpp - facts about a program -*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "lib/infer/facts/ProgramFacts.h"

#include "lib/graph/AttrRun.h"
#include "lib/graph/DeviceName.h"
#include "lib/infer/graph/Loops.h"
#include "lib/support/InternalError.h"

#include "llvm/ADT/DenseSet.h"

using namespace llvm;

namespace graft {

std::string hostDevice(StringRef Device) {
  auto Name = DeviceName::parse(Device);
  if (!Name || Name->Type != "TPU")
    return Device.str();
  Name->Type = "CPU";
  Name->Index = 0;
  return Name->str();
}

Mesh readMesh(const Graph &G) {
  Mesh M;
  uint32_t Op = 0;
  while (Op < G.numOps() && G.opNameOf(Op) != MeshOp)
    ++Op;
  if (Op == G.numOps())
    return M;
  for (NodeId N = G.size(); N-- > 0;) {
    if (G.node(N).Op != Op || !G.isLive(N))
      continue;
    M.Node = N;
    M.Word = copyWordOn(G, N);
    if (auto Devices = G.stringListAttr(N, "devices"))
      for (StringRef D : *Devices)
        M.Devices.push_back(D.str());
    break;
  }
  return M;
}

static DimOptions optionsOf(const Graph &G) {
  DimOptions Options;
  Options.Replicas = std::max(1u, readMesh(G).replicas());
  return Options;
}

/// Options with the nodes that must select among the rows of all replicas:
/// readers of every other one can use what it finds on one.
static DimOptions settled(const Graph &G, ArrayRef<NodeId> Order,
                          const VariableIndex &Vars, DimOptions Options) {
  uint32_t Op = 0;
  while (Op < G.numOps() && G.opNameOf(Op) != "Where" &&
         G.opNameOf(Op) != "DynamicPartition")
    ++Op;
  if (Op == G.numOps())
    return Options;
  // Each turn finds one more.
  TurnLimit Limit("row numbers", 1 + G.size());
  for (;;) {
    DimAnalysis Dims(G, Order, Options);
    if (!Dims.table().hasRagged())
      return Options;
    TypeAnalysis Types(G, Order, Dims, Vars);
    if (Types.unusableNumbers().empty())
      return Options;
    Limit.turn([&] { return G.name(Types.unusableNumbers().front()).str(); });
    append_range(Options.Whole, Types.unusableNumbers());
  }
}

ProgramFacts::ProgramFacts(const Graph &G, DimOptions Options)
    : Order(topologicalOrder(G)), Vars(G),
      Dims(G, Order, settled(G, Order, Vars, std::move(Options))),
      Types(G, Order, Dims, Vars) {}

ProgramFacts::ProgramFacts(const Graph &G) : ProgramFacts(G, optionsOf(G)) {}

void ProgramFacts::adoptInserted(const Graph &G) {
  Order = topologicalOrder(G);
  Vars.extend(G);
  Dims.extend();
  Types.extend(Order);
}

ProgramFacts &programFacts(Module &M) {
  if (!M.Facts || M.FactsRevision != M.graph().revision()) {
    M.Facts = std::make_shared<ProgramFacts>(M.graph());
    keepFacts(M);
  }
  return *static_cast<ProgramFacts *>(M.Facts.get());
}

void keepFacts(Module &M) { M.FactsRevision = M.graph().revision(); }

bool spreadCopies(Graph &G, const VariableIndex &Vars,
                  std::vector<NodeId> Work) {
  bool Any = false;
  std::unique_ptr<LoopInfo> Loops = LoopInfo::find(G);
  DenseSet<NodeId> Nests; ///< By their first node.
  auto Mark = [&](NodeId N) {
    if (G.node(N).Count == Copies::PerReplica)
      return;
    G.node(N).Count = Copies::PerReplica;
    G.markModified();
    Any = true;
    Work.push_back(N);
  };
  auto MayBeCopied = [&](NodeId N) {
    if (Vars.isOnce(G, N) || combinesReplicas(G, N))
      return false;
    NodeId Var = Vars.isUpdate(G, N) ? Vars.variableOf(G.input(N, 0)) : NoNode;
    return Var == NoNode || G.node(Var).Count != Copies::Once;
  };
  while (!Work.empty()) {
    NodeId N = Work.back();
    Work.pop_back();
    if (Loops) {
      // A loop is run by every replica or by none, and with what it uses.
      ArrayRef<NodeId> Nest = Loops->nest(N);
      if (!Nest.empty() && Nests.insert(Nest.front()).second)
        for (NodeId Other : Nest)
          if (MayBeCopied(Other))
            Mark(Other);
      for (NodeId Handle : Loops->handlesUsedBy(G, N))
        Mark(Handle);
    }
    G.forEachUse(N, [&](Use U) {
      if (U.Index >= G.node(U.User).NumData)
        return;
      if (G.node(U.User).Count == Copies::PerReplica) {
        // A Switch that its predicate made so still has updates behind it.
        if (Vars.anySwitched() && U.Index == 0 &&
            Vars.variableOf({U.User, 0}) != NoNode)
          Work.push_back(U.User);
        return;
      }
      if (MayBeCopied(U.User))
        Mark(U.User);
    });
  }
  return Any;
}

bool combinesReplicas(const Graph &G, NodeId N) {
  if (G.node(N).Kind == Inserted::No)
    return false;
  StringRef Op = G.opName(N);
  return Op == "_FromReplicas" || Op == "_Reduce" || Op == "_Gather";
}

NodeId insertPick(Graph &G, StringRef Name, Endpoint E, NodeId After) {
  AttrRun Attrs;
  Attrs.type("T", G.outputType(E.Node, E.Port)).string("combine", "pick");
  NodeId N = G.insertNode(Name, "_FromReplicas", E, After, Attrs);
  G.node(N).Kind = Inserted::Merge;
  return N;
}

StringRef originName(const Graph &G, NodeId N) {
  if (G.node(N).Flags & NF_MayHaveGraft)
    if (auto Origin = G.stringAttr(N, OriginAttr))
      return *Origin;
  return G.name(N);
}

} // namespace graft
