//===- lib/certify/workers/WorkerFile.cpp - the graph of a worker ---------===//
//
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "lib/certify/workers/WorkerFile.h"

#include "lib/graph/CopyWord.h"
#include "lib/graph/Walk.h"
#include "lib/ops/Ops.h"
#include "lib/program/forms/WorkerParts.h"

#include "tensorflow/core/framework/function.pb.h"

#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/StringSwitch.h"

#include <functional>

using namespace llvm;

namespace graft {

static constexpr StringLiteral StepScope = "/step/", OwnScope = "/own/";

/// Returns the role of a node in the scope, by its attribute \p Part.
static Role roleOf(StringRef Part) {
  return StringSwitch<Role>(Part)
      .Case(part::Put, Role::Put)
      .Case(part::Get, Role::Get)
      .Case(part::End, Role::End)
      .Case(part::Step, Role::Payload)
      .Case(part::Reads, Role::Reads)
      .Case(part::AllGiven, Role::AllGiven)
      .Case(part::Taken, Role::Taken)
      .Case(part::Own, Role::Own)
      .Case(part::Outside, Role::Outside)
      .Case(part::Branch, Role::Branch)
      .Case(part::Given, Role::Given)
      .Case(part::Whole, Role::Whole)
      .Default(Role::Wire);
}

WorkerFile::WorkerFile(const Graph &G) : G(G), Vars(G) {
  for (NodeId N = 0; N < G.size(); ++N)
    if (G.isLive(N) && isPart(G, N, part::Number)) {
      Number = N;
      Scope = G.name(N).take_until([](char C) { return C == '/'; }).str();
      Worker = static_cast<unsigned>(G.intAttr(N, WorkerAttr).value_or(0));
      Workers = static_cast<unsigned>(G.intAttr(N, WorkersAttr).value_or(0));
    }
  auto HostOf = [&](const Twine &Name) {
    NodeId N = wire(Name);
    return N == NoNode ? std::string() : G.device(N).str();
  };
  Home = HostOf("runs");
  Own = HostOf("own_" + Twine(Worker));
  if (Own.empty() && Worker == 0)
    Own = Home;
  // A file without messages has no Number. Its copies show which worker it is.
  if (std::string Word = copyWordOf(G); !talks())
    for (NodeId N = 0; N < G.size(); ++N)
      if (auto Copy =
              G.isLive(N) ? numberOfCopy(G.name(N), Word) : std::nullopt;
          Copy && (Own.empty() || *Copy < Worker)) {
        Worker = *Copy;
        Own = G.device(N).str();
      }
  Roles.resize(G.size(), Role::Payload);
  for (NodeId N = 0; N < G.size(); ++N) {
    if (!G.isLive(N))
      continue;
    bool InScope = talks() && G.name(N).starts_with(Scope + "/");
    StringRef Part = G.stringAttr(N, PartAttr).value_or("");
    if (InScope)
      Roles[N] = roleOf(Part);
    else if (Part == part::Name)
      Roles[N] = Role::Name;
    else if (Part == part::LocalInit)
      Roles[N] = Role::LocalInit;
    else if (Part == part::Ready)
      Roles[N] = Role::Ready;
    if (Roles[N] == Role::Payload)
      ByName[originName(N)] = N;
    else if (Roles[N] == Role::Name)
      Names.push_back(N);
    if (Roles[N] != Role::Put && Roles[N] != Role::Get)
      continue;
    Message M;
    M.Node = N;
    StringRef Its = G.name(N).drop_front(Scope.size() + 1);
    Its.consume_back(Roles[N] == Role::Put ? "/put" : "/get");
    M.Queue.Name = Its.str();
    if (NodeId Queue = wire(M.Queue.Name); Queue != NoNode) {
      M.Queue.Device = G.device(Queue).str();
      for (unsigned Type : G.typeListAttr(Queue, "component_types"))
        M.Queue.Types += static_cast<char>(Type);
      if (!M.Queue.Types.empty())
        M.Queue.Types.erase(0, 1);
    }
    if (Roles[N] == Role::Get)
      if (NodeId Low = wire(M.Queue.Name + "/low");
          Low != NoNode && G.node(Low).NumData == 1) {
        StringRef From = G.name(G.input(Low, 0).Node);
        if (From.consume_front(Scope + "/") && From.consume_back("/exit"))
          M.Root = From.str();
      }
    (Roles[N] == Role::Put ? Puts : Gets).push_back(std::move(M));
  }
  Library = std::make_shared<tensorflow::FunctionDefLibrary>();
  constexpr unsigned LibraryField = 2; // Of a GraphDef.
  if (talks())
    Library->ParseFromString(G.otherField(LibraryField));
  InRun.resize(G.size());
  std::vector<NodeId> Work;
  for (NodeId N = 0; N < G.size(); ++N)
    if (G.isLive(N) && talks() &&
        (is(N, Role::Name) || is(N, Role::Put) || is(N, Role::Get) || isEnd(N)))
      Work.push_back(N);
  // Fetched rows keep their node, which waits for messages.
  for (size_t I = 0, End = Work.size(); I < End; ++I)
    G.forEachUse(Work[I], [&](Use U) {
      if (!G.isData(U) && G.hasAttr(U.User, RowsAxisAttr))
        Work.push_back(U.User);
    });
  walkInputs(G, std::move(Work), Along::All, InRun);
}

bool WorkerFile::isEnd(NodeId N) const {
  StringRef Name = G.name(N);
  return is(N, Role::Wire) && Name.consume_front(Scope) &&
         Name.starts_with("/end_name_");
}

std::vector<NodeId> WorkerFile::waitsOfPut(NodeId Put) const {
  StringRef Queue = G.name(Put);
  Queue.consume_back("/put");
  NodeId Ends = G.find((Queue + "/ends").str());
  std::vector<NodeId> Result;
  for (Endpoint E : G.controlInputs(Put))
    if (E.Node == Ends && is(Ends, Role::Wire) && G.isOp(Ends, op::NoOp))
      for (Endpoint End : G.controlInputs(Ends))
        Result.push_back(End.Node);
    else
      Result.push_back(E.Node);
  return Result;
}

std::vector<NodeId> WorkerFile::waitsOf(NodeId N) const {
  std::vector<NodeId> Result;
  DenseSet<NodeId> Seen;
  std::function<void(NodeId)> Add = [&](NodeId At) {
    for (Endpoint E : G.controlInputs(At)) {
      if (!Seen.insert(E.Node).second)
        continue;
      Result.push_back(E.Node);
      StringRef Name = G.name(E.Node);
      bool Only = is(E.Node, Role::Wire) && G.isOp(E.Node, op::NoOp) &&
                  Name.consume_front(Scope) &&
                  Name.starts_with("/all_of_name_");
      if (Only || isEnd(E.Node))
        Add(E.Node);
    }
  };
  Add(N);
  return Result;
}

const tensorflow::FunctionDef *WorkerFile::function(StringRef Name) const {
  for (const tensorflow::FunctionDef &F : Library->function())
    if (F.signature().name() == Name)
      return &F;
  return nullptr;
}

StringRef WorkerFile::originName(NodeId N) const {
  StringRef Name = G.name(N);
  if (talks() && Name.starts_with(Scope + "/")) {
    StringRef Inner = Name.drop_front(Scope.size());
    if (isPart(G, N, part::Step) && Inner.consume_front(StepScope))
      return Inner;
    if (isPart(G, N, part::Own) && Inner.consume_front(OwnScope))
      return Inner;
  }
  return Name;
}

int WorkerFile::readsVariable(NodeId N) const {
  if (Vars.variableOf({N, 0}) != NoNode || isVariableOp(G.opName(N)))
    return -1;
  for (unsigned I = 0; I < G.node(N).NumData; ++I) {
    Endpoint E = G.input(N, I);
    if (Vars.usesInPlace(G, N, I) ||
        (Vars.variableOf(E) != NoNode && !G.isRefInput(N, I) &&
         G.isRefOutput(E.Node, E.Port)))
      return static_cast<int>(I);
  }
  return -1;
}

} // namespace graft
