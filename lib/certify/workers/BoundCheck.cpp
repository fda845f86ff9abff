//===- lib/certify/workers/BoundCheck.cpp - bounded staleness ---*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "lib/certify/workers/BoundCheck.h"

#include "lib/certify/forms/LoweredFile.h"
#include "lib/certify/workers/WireCheck.h"
#include "lib/graph/DeviceName.h"
#include "lib/infer/facts/GradientWrites.h"
#include "lib/ops/Ops.h"
#include "lib/program/forms/StepCount.h"
#include "lib/program/forms/WorkerParts.h"

#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/STLExtras.h"

using namespace llvm;

namespace graft {
namespace {

class BoundChecker {
public:
  BoundChecker(const Graph &File, unsigned Worker, const BoundPlan &Plan,
               std::optional<Counter> &At, DiagnosticEngine &Diags)
      : G(compact(File)), Worker(Worker), Plan(Plan), At(At), Diags(Diags) {}
  std::unique_ptr<Graph> run();

private:
  /// A name, and the node that had it before its steps were counted.
  struct Run {
    NodeId End = NoNode, Step = NoNode;
  };

  bool error(NodeId N, const Twine &Message) {
    if (++Errors <= 12)
      Diags.error(
          N == NoNode ? "" : G->name(N),
          ("in the file of worker " + Twine(Worker) + ": " + Message).str());
    return false;
  }
  bool findParts();
  bool checkPlace();
  void write();
  bool pair(NodeId Want, NodeId Is);
  bool compare(NodeId Want, NodeId Is);
  bool compareAll();
  bool checkUses();
  bool checkNames();
  void strip();
  bool checkSet(ArrayRef<NodeId> Must, NodeId Of, const Twine &Missing,
                const Twine &TooMuch);
  bool checkSteps();

  std::unique_ptr<Graph> G;
  unsigned Worker;
  const BoundPlan &Plan;
  std::optional<Counter> &At;
  DiagnosticEngine &Diags;
  unsigned Errors = 0;
  NodeId Steps = NoNode, Zeros = NoNode, Gate = NoNode;
  std::vector<Run> Runs;
  std::string Frame; ///< The frame of the loop that waits.
  // The required step counter, and its nodes in the file:
  Graph Wanted;
  std::vector<std::pair<NodeId, NodeId>> Work; ///< Pairs to compare.
  DenseMap<NodeId, NodeId> Stubs;              ///< By node of Wanted.
  DenseMap<NodeId, NodeId> IsOf, WantOf;
  // By the zeros or the gate of the file: the names of nodes that wait for it.
  DenseMap<NodeId, StringSet<>> Waiting;
  StringSet<> Counted;
};

//===----------------------------------------------------------------------===//
// The form
//===----------------------------------------------------------------------===//

/// Finds the marked nodes of the step counter: variable, zeros, gate and names.
bool BoundChecker::findParts() {
  DenseSet<NodeId> Known;
  for (NodeId N = 0; N < G->size(); ++N) {
    for (auto [Part, Of] :
         {std::pair(part::Steps, &Steps), std::pair(part::Zeros, &Zeros),
          std::pair(part::Gate, &Gate)})
      if (isPart(*G, N, Part)) {
        if (*Of != NoNode)
          return error(N, "has the same role in the step counter as '" +
                              G->name(*Of) + "'");
        *Of = N;
      }
    if (!isPart(*G, N, part::Name))
      continue;
    // The node with the name waits for the count. The count waits for the node
    // that had the name before.
    NodeId Step = NoNode;
    if (!G->controlInputs(N).empty())
      if (NodeId Count = G->controlInputs(N).front().Node;
          !G->controlInputs(Count).empty())
        Step = G->controlInputs(Count).front().Node;
    if (Step == NoNode)
      return error(N, "does not count the step that it ends");
    if (G->numOutputs(Step).value_or(0) != G->node(N).NumData)
      return error(N, "does not return the outputs of '" + G->name(Step) +
                          "', the step that it ends");
    if (!Known.insert(Step).second)
      return error(N, "counts a step that is counted already");
    Runs.push_back({N, Step});
  }
  if (Steps == NoNode)
    return error(NoNode, "no variable counts the steps of workers");
  if (Zeros == NoNode)
    return error(Steps, "the step counter is never reset");
  if (Gate == NoNode)
    return error(Steps,
                 "the step counter has no effect: no update waits for it");
  return true;
}

/// Checks that all files count steps in one variable.
bool BoundChecker::checkPlace() {
  Counter Its{G->stringAttr(Steps, "shared_name").value_or("").str(),
              G->device(Steps).str()};
  auto Device = DeviceName::parse(Its.Device);
  if (Its.Name.empty() || !Device || Device->Job.empty() || !Device->Task)
    return error(Steps, "counts the steps of this worker only; a step counter "
                        "needs a shared_name and a device with a job and a "
                        "task");
  if (!At)
    At = Its;
  if (At->Name != Its.Name)
    return error(Steps, "counts steps under another shared_name than '" +
                            At->Name + "' of the chief");
  if (At->Device != Its.Device)
    return error(Steps, "counts steps on another device than the chief: " +
                            At->Device);
  G->forEachUse(Steps, [&](Use U) {
    if (G->isOp(U.User, op::Enter))
      Frame = G->stringAttr(U.User, "frame_name").value_or("").str();
  });
  return true;
}

void BoundChecker::write() {
  StepCount Count(Wanted,
                  {.Workers = Plan.Workers,
                   .Mine = Worker,
                   .Ahead = Plan.Ahead,
                   .Name = At->Name,
                   .Frame = Frame,
                   .Server = At->Device},
                  NoNode);
  Work = {{Count.steps(), Steps}, {Count.zeros(), Zeros}, {Count.gate(), Gate}};
  for (Run R : Runs) {
    NodeId Stub = Wanted.addNode(Wanted.uniqueName("step"), G->opName(R.Step),
                                 {}, NoNode);
    for (const AttrEntry &A : G->attrs(R.Step))
      Wanted.setAttr(Stub, A.Key, A.Value);
    Wanted.setDevice(Stub, G->device(R.Step));
    Stubs[Stub] = R.Step;
    Work.push_back({Count.end(Stub), R.End});
  }
}

bool BoundChecker::pair(NodeId Want, NodeId Is) {
  auto Wrong = [&] {
    return error(Is, "is in the place of another node of the step counter");
  };
  if (auto It = Stubs.find(Want); It != Stubs.end())
    return It->second == Is || Wrong();
  auto [It, New] = IsOf.try_emplace(Want, Is);
  if (!New)
    return It->second == Is || Wrong();
  if (!WantOf.try_emplace(Is, Want).second)
    return Wrong();
  Work.push_back({Want, Is});
  return true;
}

bool BoundChecker::compare(NodeId Want, NodeId Is) {
  auto Wrong = [&](const Twine &What) {
    return error(Is, What + " for a node of the step counter");
  };
  if (G->opName(Is) != Wanted.opName(Want))
    return Wrong("is the wrong op");
  if (G->device(Is) != Wanted.device(Want))
    return Wrong("is on the wrong device");
  for (const AttrEntry &A : G->attrs(Is))
    if (!sameValue(Wanted.attr(Want, A.Key).value_or(""), A.Value))
      return Wrong("attribute '" + A.Key + "' is wrong");
  for (const AttrEntry &A : Wanted.attrs(Want))
    if (!G->hasAttr(Is, A.Key))
      return Wrong("attribute '" + A.Key + "' is missing");
  if (G->inputs(Is).size() != Wanted.inputs(Want).size())
    return Wrong("has the wrong number of inputs");
  for (unsigned I = 0; I < G->inputs(Is).size(); ++I) {
    Endpoint A = G->input(Is, I), B = Wanted.input(Want, I);
    if (A.Port != B.Port)
      return Wrong("input '" + G->name(A.Node) + "' is wrong");
    if (!pair(B.Node, A.Node))
      return false;
  }
  return true;
}

/// Compares the nodes of the step counter: the marked nodes and, along their
/// inputs, all others.
bool BoundChecker::compareAll() {
  std::vector<std::pair<NodeId, NodeId>> Ends = std::move(Work);
  Work.clear();
  for (auto [Want, Is] : Ends)
    if (!pair(Want, Is))
      return false;
  while (!Work.empty()) {
    auto [Want, Is] = Work.back();
    Work.pop_back();
    if (!compare(Want, Is))
      return false;
  }
  for (Run R : Runs)
    if (WantOf.contains(R.Step))
      return error(R.End, "does not count the step that it ends");
  return true;
}

//===----------------------------------------------------------------------===//
// Nodes around the form
//===----------------------------------------------------------------------===//

/// Checks that a node outside of the step counter uses it only by a control
/// input from the zeros or the gate.
bool BoundChecker::checkUses() {
  bool Good = true;
  for (auto [Is, Want] : WantOf)
    G->forEachUse(Is, [&, Of = Is](Use U) {
      if (WantOf.contains(U.User))
        return;
      if ((Of == Zeros || Of == Gate) && !G->isData(U))
        Waiting[Of].insert(G->name(U.User));
      else
        Good = error(U.User, "uses '" + G->name(Of) +
                                 "', which is only for the step counter");
    });
  return Good;
}

/// Checks that no other node has a name or the frame of the step counter.
bool BoundChecker::checkNames() {
  bool Good = true;
  auto IsTaken = [&](StringRef Text) {
    return Text.consume_front(At->Name) && (Text.empty() || Text[0] == '/');
  };
  for (NodeId N = 0; N < G->size(); ++N) {
    if (WantOf.contains(N))
      continue;
    StringRef Shared = G->stringAttr(N, "shared_name").value_or("");
    const OpDef *Def = G->opDef(N);
    bool Same =
        IsTaken(Shared) ||
        (Shared.empty() && Def && Def->hasSharedName() && IsTaken(G->name(N)));
    if (auto List = G->stringListAttr(N, "shared_names"))
      Same |= any_of(*List, IsTaken);
    if (Same)
      Good = error(N, "has a name that belongs to the step counter: '" +
                          At->Name + "'");
    if ((G->isOp(N, op::Enter) || G->isOp(N, op::RefEnter)) &&
        G->stringAttr(N, "frame_name") == StringRef(Frame))
      Good =
          error(N, "enters the frame of the loop that waits for other workers");
  }
  return Good;
}

/// Removes the step counter from the graph.
void BoundChecker::strip() {
  for (NodeId N = 0; N < G->size(); ++N) {
    if (WantOf.contains(N))
      continue;
    SmallVector<Endpoint, 8> Kept;
    for (Endpoint E : G->inputs(N))
      if (!WantOf.contains(E.Node))
        Kept.push_back(E);
    if (Kept.size() != G->inputs(N).size())
      G->setInputs(N, Kept);
  }
  std::vector<std::pair<NodeId, std::string>> Names;
  Names.reserve(Runs.size());
  for (Run R : Runs)
    Names.push_back({R.Step, G->name(R.End).str()});
  for (auto [Is, Want] : WantOf)
    G->setInputs(Is, {});
  for (auto [Is, Want] : WantOf)
    G->remove(Is);
  for (const auto &[Step, Name] : Names) {
    for (auto &[Of, Who] : Waiting)
      if (Who.erase(G->name(Step)))
        Who.insert(Name);
    G->rename(Step, Name);
    Counted.insert(Name);
  }
  G = compact(*G);
}

/// Checks that the nodes \p Must, and no other nodes, wait for \p Of.
bool BoundChecker::checkSet(ArrayRef<NodeId> Must, NodeId Of,
                            const Twine &Missing, const Twine &TooMuch) {
  bool Good = true;
  StringSet<> Rest = Waiting.lookup(Of), Seen;
  for (NodeId N : Must) {
    if (!Seen.insert(G->name(N)).second)
      continue;
    if (!Rest.erase(G->name(N)))
      Good = error(N, Missing);
  }
  for (NodeId N = 0; N < G->size(); ++N)
    if (Rest.contains(G->name(N)))
      Good = error(N, TooMuch);
  return Good;
}

/// Checks which nodes wait for the zeros or the gate, and which are counted.
bool BoundChecker::checkSteps() {
  VariableIndex Vars(*G);
  std::vector<NodeId> Trained;
  for (NodeId Var : Vars.variables()) {
    if (Plan.Trained.contains(G->name(Var)))
      Trained.push_back(Var);
  }
  GradientWrites Found =
      GradientWrites::find(*G, Vars, Trained, [&](NodeId Var) {
        return !Plan.Local.contains(G->name(Var));
      });
  bool Good = true;
  for (NodeId N : Found.Writes)
    if (Found.InLoop[N])
      Good = error(N, "writes a gradient inside a loop, where it cannot wait "
                      "for other workers");
  Good &= checkSet(Found.Writes, Gate,
                   "writes a gradient and does not wait for other workers",
                   "waits for other workers and writes no gradient");
  Good &= checkSet(Found.Starts, Zeros,
                   "initializes or restores a trained variable without waiting "
                   "for the reset of the step counter",
                   "resets the step counter, but neither initializes nor "
                   "restores a trained variable");
  for (NodeId N = 0; N < G->size(); ++N) {
    bool IsStep = Found.Runs[N] && !Found.InLoop[N],
         IsCounted = Counted.contains(G->name(N));
    if (IsCounted && (!IsStep || Plan.In.find(G->name(N)) == NoNode))
      Good = error(N, "is counted as a step and writes no gradient");
    if (!IsCounted && IsStep && Plan.Runs.contains(G->name(N)))
      Good = error(N, "writes a gradient and is not counted as a step");
  }
  return Good;
}

std::unique_ptr<Graph> BoundChecker::run() {
  if (!findParts() || !checkPlace())
    return nullptr;
  write();
  if (!compareAll())
    return nullptr;
  bool Apart = checkUses();
  if (!checkNames() || !Apart)
    return nullptr;
  strip();
  return checkSteps() ? std::move(G) : nullptr;
}

} // namespace

std::unique_ptr<Graph> withoutBound(const Graph &G, unsigned Worker,
                                    const BoundPlan &Plan,
                                    std::optional<Counter> &At,
                                    DiagnosticEngine &Diags) {
  return BoundChecker(G, Worker, Plan, At, Diags).run();
}

} // namespace graft
