//===- lib/certify/workers/AsyncCheck.cpp - workers that do not wait ------===//
//
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "lib/certify/workers/AsyncCheck.h"

#include "lib/certify/forms/LoweredFile.h"
#include "lib/certify/workers/BoundCheck.h"
#include "lib/graph/DeviceName.h"
#include "lib/infer/graph/Variables.h"
#include "lib/ops/OpRule.h"
#include "lib/ops/Ops.h"
#include "lib/program/forms/WorkerParts.h"

#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/Sequence.h"
#include "llvm/Support/FormatVariadic.h"

#include <optional>
#include <set>
#include <utility>

using namespace llvm;

namespace graft {
namespace {

bool isShared(const Graph &G, NodeId Var) {
  return isPart(G, Var, part::Shared);
}

/// The stamp that a file has on its variables.
struct Stamp {
  int64_t Worker = 0, Workers = 0, Staleness = 0;
};

std::optional<Stamp> stampOf(const Graph &G) {
  for (NodeId N = 0; N < G.size(); ++N)
    if (G.isLive(N) && (isShared(G, N) || isPart(G, N, part::Local)))
      return Stamp{G.intAttr(N, WorkerAttr).value_or(-1),
                   G.intAttr(N, WorkersAttr).value_or(-1),
                   G.intAttr(N, StalenessAttr).value_or(0)};
  return std::nullopt;
}

class AsyncChecker {
public:
  AsyncChecker(const Graph &In, const AsyncNames &Names,
               ArrayRef<const Graph *> Given, DiagnosticEngine &Diags)
      : In(In), Names(Names), Given(Given), Diags(Diags) {}
  std::unique_ptr<Graph> run();

private:
  using Task = std::pair<std::string, unsigned>;

  bool fails(const Twine &Message) {
    Diags.error("", Message.str());
    return false;
  }
  bool error(unsigned File, NodeId N, const Twine &Message) {
    if (++Errors <= 12)
      Diags.error(
          Files[File]->name(N),
          ("in the file of worker " + Twine(File) + ": " + Message).str());
    return false;
  }
  bool order();
  bool withoutBounds();
  bool checkVariables();
  bool compareWithChief(unsigned File);
  bool compareAttrs(unsigned File, NodeId N, NodeId With);
  bool compareDevice(unsigned File, NodeId N, NodeId With, bool Shared);
  bool withoutLock(NodeId N);
  bool withoutLocks();

  const Graph &In;
  const AsyncNames &Names;
  ArrayRef<const Graph *> Given;
  DiagnosticEngine &Diags;
  unsigned Errors = 0;
  int64_t Ahead = 0;                         ///< The bound, or 0.
  std::vector<const Graph *> Files;          ///< By worker.
  std::vector<std::unique_ptr<Graph>> Loose; ///< The files without their bound.
  std::vector<std::optional<Task>> Tasks;    ///< By worker.
  std::unique_ptr<Graph> L;                  ///< The graph of the chief.
};

/// Sorts the files by worker and checks that there is one of each.
bool AsyncChecker::order() {
  Files.resize(Given.size());
  for (const Graph *G : Given) {
    std::optional<Stamp> Its = stampOf(*G);
    if (!Its)
      return fails("some files are of asynchronous workers and others are not; "
                   "give the files of one step");
    if (Its->Workers != static_cast<int64_t>(Given.size()))
      return fails(formatv("there are {0} files of a step with {1} workers; "
                           "give one file of each worker",
                           Given.size(), Its->Workers));
    if (Its->Worker < 0 || Its->Worker >= Its->Workers ||
        Files[static_cast<size_t>(Its->Worker)])
      return fails(formatv("two files are of worker {0}", Its->Worker));
    Files[static_cast<size_t>(Its->Worker)] = G;
  }
  Ahead = aheadOf(*Files.front());
  Tasks.resize(Files.size());
  return true;
}

/// Replaces the files by graphs in which no worker waits for others.
bool AsyncChecker::withoutBounds() {
  if (Ahead < 0)
    return fails("the staleness bound in the files is negative");
  // A single worker cannot be ahead of another.
  if (Ahead == 0 || Files.size() == 1)
    return true;
  std::optional<Counter> At;
  BoundPlan Plan{.In = In,
                 .Local = Names.Local,
                 .Trained = Names.Trained,
                 .Runs = Names.Runs,
                 .Workers = static_cast<unsigned>(Files.size()),
                 .Ahead = Ahead};
  for (unsigned F = 0; F < Files.size(); ++F) {
    Loose.push_back(withoutBound(*Files[F], F, Plan, At, Diags));
    Files[F] = Loose.back().get();
  }
  return all_of(Loose, [](const auto &G) { return G != nullptr; });
}

/// Checks that each variable is shared, or local to a worker, as the
/// collections of the input say.
bool AsyncChecker::checkVariables() {
  bool Good = true;
  for (unsigned F = 0; F < Files.size(); ++F) {
    const Graph &G = *Files[F];
    VariableIndex Vars(G);
    for (NodeId Var : Vars.variables()) {
      bool Own = Names.Local.contains(G.name(Var));
      if (!isPart(G, Var, Own ? part::Local : part::Shared))
        Good = error(F, Var,
                     Own ? "must be a local variable of each worker, but the "
                           "file does not mark it as local"
                         : "must be a variable that all workers share, but the "
                           "file does not mark it as shared");
      if (G.intAttr(Var, WorkerAttr) != F ||
          G.intAttr(Var, WorkersAttr) != static_cast<int64_t>(Files.size()))
        Good = error(F, Var, "is marked as part of the file of another worker");
      if (G.intAttr(Var, StalenessAttr).value_or(0) != Ahead)
        Good = error(F, Var,
                     formatv("has another staleness bound than {0}, that of "
                             "the chief",
                             Ahead));
      // If the device named no task, each worker would place the variable on
      // its own task.
      if (auto On = DeviceName::parse(G.device(Var));
          !Own && (!On || On->Job.empty() || !On->Task))
        Good = error(F, Var,
                     "is a variable that all workers share, but its device "
                     "does not name a job and a task");
    }
  }
  return Good;
}

bool AsyncChecker::compareAttrs(unsigned File, NodeId N, NodeId With) {
  const Graph &G = *Files[File], &Chief = *Files[0];
  // Seeds differ, so that workers draw other numbers than the chief.
  bool Draws = isRandomOp(G.opName(N)) && G.hasAttr(N, "seed2") &&
               (G.intAttr(N, "seed").value_or(0) != 0 ||
                Chief.intAttr(With, "seed2").value_or(0) != 0);
  if (Draws &&
      G.intAttr(N, "seed2") != Chief.intAttr(With, "seed2").value_or(0) + File)
    return error(File, N, "does not draw with the random seed of this worker");
  auto IsOpen = [&](StringRef Key) {
    return Key == WorkerAttr || Key == "_class" || Key == "_output_shapes" ||
           (Draws && Key == "seed2");
  };
  for (const AttrEntry &A : G.attrs(N))
    if (!IsOpen(A.Key) && Chief.attr(With, A.Key) != A.Value)
      return error(File, N,
                   "attribute '" + A.Key + "' is not that of the chief");
  for (const AttrEntry &A : Chief.attrs(With))
    if (!IsOpen(A.Key) && !G.hasAttr(N, A.Key))
      return error(File, N, "attribute '" + A.Key + "' is not in this file");
  return true;
}

/// Checks that \p N is on the device of \p With, the same node in the chief's
/// file, or on the corresponding device in the task of its own worker.
bool AsyncChecker::compareDevice(unsigned File, NodeId N, NodeId With,
                                 bool Shared) {
  StringRef Is = Files[File]->device(N), Was = Files[0]->device(With);
  if (Is == Was)
    return !isVariableOp(Files[0]->opName(With)) ||
           !isPart(*Files[0], With, part::Local) ||
           error(File, N,
                 "is a local variable of this worker, but is on the "
                 "device of the chief");
  if (Shared)
    return error(File, N,
                 "is not on the device of the shared variable: " + Was);
  auto Here = DeviceName::parse(Is), There = DeviceName::parse(Was);
  if (!Here || !There || Here->Job.empty() || There->Job.empty() ||
      Here->Type != There->Type || Here->Index != There->Index)
    return error(File, N, "is on another device than in the file of the chief");
  // The first device that differs determines the task of the worker.
  for (auto [Worker, At] : {std::pair(0U, &*There), std::pair(File, &*Here)}) {
    Task Its{At->Job, At->Task.value_or(0)};
    if (!Tasks[Worker])
      Tasks[Worker] = Its;
    if (*Tasks[Worker] != Its)
      return error(File, N, "is on the device of another task");
  }
  return true;
}

bool AsyncChecker::compareWithChief(unsigned File) {
  const Graph &G = *Files[File], &Chief = *Files[0];
  VariableIndex Vars(Chief);
  bool Good = true;
  for (NodeId With = 0; With < Chief.size(); ++With)
    if (Chief.isLive(With) && G.find(Chief.name(With)) == NoNode)
      Good = error(0, With, "is not in the file of worker " + Twine(File));
  for (NodeId N = 0; N < G.size(); ++N) {
    if (!G.isLive(N))
      continue;
    NodeId With = Chief.find(G.name(N));
    if (With == NoNode) {
      Good = error(File, N, "is not in the file of the chief");
      continue;
    }
    if (G.opName(N) != Chief.opName(With)) {
      Good = error(File, N, "is another op than in the file of the chief");
      continue;
    }
    bool Same =
        G.inputs(N).size() == Chief.inputs(With).size() &&
        all_of(llvm::seq<size_t>(0, G.inputs(N).size()), [&](size_t I) {
          Endpoint A = G.inputs(N)[I], B = Chief.inputs(With)[I];
          return A.Port == B.Port && G.name(A.Node) == Chief.name(B.Node);
        });
    if (!Same)
      Good = error(File, N, "has other inputs than in the file of the chief");
    // A node that uses a variable in place is on the device of the variable.
    bool Shared = isVariableOp(Chief.opName(With)) && isShared(Chief, With);
    for (unsigned I = 0; I < Chief.node(With).NumData; ++I)
      if (Vars.usesInPlace(Chief, With, I))
        Shared |= isShared(Chief, Vars.variableOf(Chief.input(With, I)));
    Good &= compareAttrs(File, N, With) & compareDevice(File, N, With, Shared);
  }
  return Good;
}

/// Checks that the update \p N of a shared variable takes the lock. Restores
/// the update of the input, which may lack the lock.
bool AsyncChecker::withoutLock(NodeId N) {
  const Graph &Chief = *Files[0];
  NodeId Was = In.find(Chief.name(N));
  const OpDef *Def = Chief.opDef(N);
  bool CanLock = Def && Def->attr("use_locking");
  if (CanLock && Chief.boolAttr(N, "use_locking") != true)
    return error(0, N,
                 "does not take the lock of its variable, so an update of "
                 "another worker may be lost");
  if (Was == NoNode)
    return true;
  StringRef Op = Chief.opName(N);
  auto Scatters = [&](StringRef Locked, StringRef Plain) {
    return Op == Locked && In.opName(Was) == Plain;
  };
  if (Op == In.opName(Was)) {
    if (CanLock) {
      L->removeAttr(N, "use_locking");
      if (auto Value = In.attr(Was, "use_locking"))
        L->setAttr(N, "use_locking", *Value);
    } else if (Op.starts_with("ResourceScatter")) {
      Diags.unproved("asynchronous", Chief.name(N),
                     "does not take the lock of its variable, so an "
                     "update of another worker may be lost");
    }
    return true;
  }
  // A ResourceScatterNd op writes rows if its indices are one column of row
  // numbers.
  if (!Scatters(op::ResourceScatterNdAdd, op::ResourceScatterAdd) &&
      !Scatters(op::ResourceScatterNdSub, op::ResourceScatterSub) &&
      !Scatters(op::ResourceScatterNdUpdate, op::ResourceScatterUpdate))
    return true;
  Endpoint Column = Chief.input(N, 1);
  if (!Chief.isOp(Column.Node, op::ExpandDims) ||
      constScalar(Chief, Chief.input(Column.Node, 1).Node) != -1.0 ||
      Chief.boolAttr(N, "use_locking") != true ||
      !Chief.controlInputs(Column.Node).empty())
    return error(0, N, "does not write the same rows as in the input");
  NodeId Axis = Chief.input(Column.Node, 1).Node;
  L->setInput(N, 1, Chief.input(Column.Node, 0));
  L->setOp(N, In.opName(Was));
  for (StringRef Key : {"T", "Tindices", "use_locking"})
    L->removeAttr(N, Key);
  L->setTypeAttr(N, "dtype", Chief.typeAttr(N, "T").value_or(DT_INVALID));
  L->setTypeAttr(N, "Tindices",
                 Chief.typeAttr(N, "Tindices").value_or(DT_INVALID));
  for (NodeId Gone : {Column.Node, Axis})
    if (!L->hasUses(Gone) && In.find(L->name(Gone)) == NoNode) {
      L->setInputs(Gone, {});
      L->remove(Gone);
    }
  return true;
}

/// Copies the graph of the chief, and replaces each update that takes a lock by
/// the update of the input.
bool AsyncChecker::withoutLocks() {
  const Graph &Chief = *Files[0];
  L = compact(Chief);
  VariableIndex Vars(Chief);
  bool Good = true;
  for (NodeId N = 0; N < Chief.size(); ++N)
    for (unsigned I = 0; I < Vars.update(Chief, N).NumVars; ++I)
      if (NodeId Var = Vars.variableOf(Chief.input(N, I));
          Var != NoNode && isShared(Chief, Var)) {
        Good &= withoutLock(N);
        break;
      }
  L = compact(*L);
  return Good;
}

std::unique_ptr<Graph> AsyncChecker::run() {
  if (!order() || !withoutBounds() || !checkVariables())
    return nullptr;
  bool Good = true;
  for (unsigned F = 1; F < Files.size(); ++F)
    Good &= compareWithChief(F);
  std::set<Task> Known;
  for (const auto &Its : Tasks)
    if (Its && !Known.insert(*Its).second)
      Good = fails(formatv("two workers are on task {0} of job '{1}'",
                           Its->second, Its->first));
  return Good && withoutLocks() ? std::move(L) : nullptr;
}

} // namespace

bool isAsync(const Graph &G) { return stampOf(G).has_value(); }

int64_t aheadOf(const Graph &G) {
  std::optional<Stamp> Its = stampOf(G);
  return Its ? Its->Staleness : 0;
}

std::unique_ptr<Graph> chiefOfAsync(const Graph &In, const AsyncNames &Names,
                                    ArrayRef<const Graph *> Files,
                                    DiagnosticEngine &Diags) {
  return AsyncChecker(In, Names, Files, Diags).run();
}

} // namespace graft
