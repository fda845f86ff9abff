//===- lib/certify/workers/WireCheck.cpp - messages as they must be -------===//
//
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "lib/certify/workers/WireCheck.h"

#include "lib/io/Serialize.h"
#include "lib/ops/Ops.h"

#include "tensorflow/core/framework/attr_value.pb.h"
#include "tensorflow/core/framework/function.pb.h"

#include "llvm/ADT/STLExtras.h"

using namespace llvm;

namespace graft {

namespace {

/// The variables that are read by function calls on the task of the variable.
class CalledVariables {
public:
  explicit CalledVariables(const WorkerFile &F) : F(F) {}

  /// Returns the variable that is result \p Port of \p Call, or NoNode if the
  /// function does not have the required form.
  NodeId of(NodeId Call, unsigned Port);

private:
  void findVariables();
  std::vector<NodeId> read(NodeId Call) const;

  const WorkerFile &F;
  /// By container and shared name.
  std::map<std::pair<std::string, std::string>, NodeId> Variables;
  DenseMap<NodeId, std::vector<NodeId>> ByPort; ///< By call.
};

void CalledVariables::findVariables() {
  for (NodeId Var : F.Vars.variables())
    if (F.G.isOp(Var, op::VarHandleOp))
      Variables.try_emplace(
          {F.G.stringAttr(Var, "container").value_or("").str(),
           F.G.stringAttr(Var, "shared_name").value_or("").str()},
          Var);
}

std::vector<NodeId> CalledVariables::read(NodeId Call) const {
  tensorflow::AttrValue Its;
  Its.ParseFromString(F.G.attr(Call, "f").value_or("").str());
  const tensorflow::FunctionDef *Def = F.function(Its.func().name());
  if (Def == nullptr)
    return {};
  std::vector<NodeId> Result(
      static_cast<size_t>(Def->signature().output_arg_size()), NoNode);
  for (const tensorflow::NodeDef &N : Def->node_def()) {
    StringRef Name = N.name();
    size_t Port;
    if (!Name.consume_front("variable_") || Name.getAsInteger(10, Port) ||
        Port >= Result.size() || Result[Port] != NoNode)
      continue;
    auto Text = [&](const char *Key) {
      auto It = N.attr().find(Key);
      return It == N.attr().end() ? std::string() : It->second.s();
    };
    auto It = Variables.find({Text("container"), Text("shared_name")});
    if (It != Variables.end())
      Result[Port] = It->second;
  }
  return Result;
}

NodeId CalledVariables::of(NodeId Call, unsigned Port) {
  if (Variables.empty())
    findVariables();
  auto [It, New] = ByPort.try_emplace(Call);
  if (New)
    It->second = read(Call);
  return Port < It->second.size() ? It->second[Port] : NoNode;
}

} // namespace

std::vector<OwnCopy> refreshedBy(const WorkerFile &F, NodeId Refreshed) {
  std::vector<OwnCopy> Copies;
  if (Refreshed == NoNode)
    return Copies;
  const Graph &G = F.G;
  CalledVariables Called(F);
  for (Endpoint E : G.controlInputs(Refreshed)) {
    NodeId Copy = E.Node;
    if (G.node(Copy).NumData != 2)
      continue;
    Endpoint Value = G.input(Copy, 1);
    bool IsHandle = G.isOp(Copy, op::AssignVariableOp);
    OwnCopy C{.Copy = G.input(Copy, 0),
              .Primary = {},
              .Device = G.device(Copy).str(),
              .PrimaryDevice = "",
              .Type = G.typeAttr(Copy, IsHandle ? "dtype" : "T").value_or(0),
              .IsHandle = IsHandle,
              .PrimaryIsHandle = true,
              .Container = "",
              .SharedName = ""};
    if (G.isOp(Value.Node, op::RemoteCall)) {
      NodeId Var = Called.of(Value.Node, Value.Port);
      if (Var == NoNode)
        continue;
      C.Primary = {Var, 0};
      C.PrimaryDevice = G.device(Var);
      C.Container = G.stringAttr(Var, "container").value_or("");
      C.SharedName = G.stringAttr(Var, "shared_name").value_or("");
    } else if (G.node(Value.Node).NumData == 1) {
      C.Primary = G.input(Value.Node, 0);
      C.PrimaryDevice = G.device(Value.Node);
      C.PrimaryIsHandle = G.isOp(Value.Node, op::ReadVariableOp);
    } else {
      continue;
    }
    Copies.push_back(std::move(C));
  }
  return Copies;
}

std::vector<MessageQueue> markedBy(const WorkerFile &F) {
  std::vector<MessageQueue> Marked;
  NodeId Told = F.wire("all_told");
  if (Told == NoNode)
    return Marked;
  StringMap<SmallVector<const MessageQueue *, 1>> ByName;
  for (const auto *List : {&F.Puts, &F.Gets})
    for (const WorkerFile::Message &M : *List)
      ByName[M.Queue.Name].push_back(&M.Queue);
  for (Endpoint E : F.G.controlInputs(Told)) {
    StringRef Name = F.G.name(E.Node).drop_front(F.Scope.size() + 1);
    if (!Name.consume_back("/mark"))
      continue;
    for (const MessageQueue *Q : ByName.lookup(Name))
      Marked.push_back(*Q);
  }
  return Marked;
}

std::vector<Endpoint> sameNumbers(const WorkerFile &F, unsigned Name,
                                  unsigned From) {
  std::vector<Endpoint> Keys;
  NodeId Same = F.wire("same_" + Twine(Name) + "_" + Twine(From));
  if (Same == NoNode)
    return Keys;
  for (Endpoint E : F.G.controlInputs(Same)) {
    if (F.G.node(E.Node).NumData == 0)
      continue;
    ArrayRef<Endpoint> Equal = F.G.dataInputs(F.G.input(E.Node, 0).Node);
    if (Equal.size() != 2)
      continue;
    if (Keys.empty())
      Keys.push_back(Equal[0]);
    Keys.push_back(Equal[1]);
  }
  return Keys;
}

bool sameValue(StringRef A, StringRef B) {
  tensorflow::AttrValue Left, Right;
  return A == B ||
         (Left.ParseFromString(A.str()) && Right.ParseFromString(B.str()) &&
          Left.SerializeAsString() == Right.SerializeAsString());
}

namespace {

class WireChecker {
public:
  WireChecker(WorkersJoin &Join, ArrayRef<WorkerFile> Files, unsigned File)
      : Join(Join), Files(Files), F(Files[File]), File(File) {}
  bool run();

private:
  Endpoint there(Endpoint E);
  SmallVector<NodeId, 8> there(ArrayRef<NodeId> Controls);
  void send(Messages &Wire, const WorkerFile::Message &M,
            std::vector<bool> &IsSent);
  void write();
  bool compare(NodeId Want, NodeId Is);
  bool checkFunctions();

  WorkersJoin &Join;
  ArrayRef<WorkerFile> Files;
  const WorkerFile &F;
  unsigned File;
  std::map<std::string, std::string> Functions; ///< Wanted, by name.
  Graph Wanted;
  DenseMap<NodeId, NodeId> Stubs; ///< By other node of the file: its stand-in.
};

/// Returns the endpoint of Wanted that corresponds to \p E of the file.
Endpoint WireChecker::there(Endpoint E) {
  NodeId N = Wanted.find(F.G.name(E.Node));
  if (N == NoNode) {
    N = Wanted.addNode(F.G.name(E.Node), F.G.opName(E.Node), {}, NoNode);
    Wanted.setDevice(N, F.G.device(E.Node));
    Stubs[E.Node] = N;
  }
  return {N, E.Port};
}

SmallVector<NodeId, 8> WireChecker::there(ArrayRef<NodeId> Controls) {
  SmallVector<NodeId, 8> Nodes;
  for (NodeId N : Controls)
    Nodes.push_back(there(Endpoint{N, ControlPort}).Node);
  return Nodes;
}

/// Writes the send of \p M, after the sends that it waits for.
void WireChecker::send(Messages &Wire, const WorkerFile::Message &M,
                       std::vector<bool> &IsSent) {
  if (IsSent[M.Node])
    return;
  IsSent[M.Node] = true;
  SmallVector<NodeId, 8> Ends, Before;
  for (NodeId N : F.waitsOfPut(M.Node))
    (F.is(N, Role::Put) ? Before : Ends).push_back(N);
  for (NodeId N : Before)
    for (const WorkerFile::Message &Other : F.Puts)
      if (Other.Node == N)
        send(Wire, Other, IsSent);
  SmallVector<Endpoint, 8> Values;
  for (Endpoint E : F.G.dataInputs(M.Node).drop_front(2))
    Values.push_back(there(E));
  Wire.put(M.Queue, Values, there(Ends), there(Before));
}

/// Writes the exchange of the messages that the file sends and receives.
void WireChecker::write() {
  unsigned Names = 0;
  for (NodeId N = 0; N < F.G.size(); ++N) {
    StringRef Name = F.G.name(N);
    unsigned Number;
    if (F.G.isLive(N) && F.is(N, Role::Wire) &&
        Name.consume_front(F.Scope + "/end_name_") &&
        !Name.getAsInteger(10, Number) && Number < F.G.size())
      Names = std::max(Names, Number + 1);
  }
  // The chief's graph lists all names, also those that not all workers run.
  if (NodeId Begun = F.wire("begun_names"); Begun != NoNode)
    if (auto Keys = constValue(F.G, Begun, F.G.size()))
      Names = std::max(Names, static_cast<unsigned>(std::min<int64_t>(
                                  Keys->NumElements, F.G.size())));
  auto Copies = [&](const Twine &Name) {
    std::vector<OwnCopy> Its = refreshedBy(F, F.wire(Name + "/copied"));
    for (OwnCopy &C : Its) {
      C.Copy = there(C.Copy);
      C.Primary = there(C.Primary);
    }
    return Its;
  };
  Messages Wire(Wanted,
                {.Workers = F.Workers,
                 .Mine = F.Worker,
                 .Chief = Files.front().Own,
                 .Own = F.Own,
                 .Home = F.Home,
                 .Scope = F.Scope},
                NoNode);
  Wire.begin(Names, markedBy(F), Copies("refresh"));
  // Messages without a root come first: each other message has the number of
  // its root.
  StringMap<Endpoint> Keys;
  for (bool First : {true, false})
    for (const WorkerFile::Message &M : F.Gets)
      if (M.Root.has_value() != First) {
        std::optional<Endpoint> Exact;
        if (M.Root)
          Exact = Keys.lookup(*M.Root);
        if (M.Root && Exact->Node == NoNode)
          continue;
        Keys[M.Queue.Name] = Wire.get(M.Queue, Exact).Key;
      }
  std::vector<bool> IsSent(F.G.size());
  for (const WorkerFile::Message &M : F.Puts)
    send(Wire, M, IsSent);
  for (unsigned I = 0; I < Names && F.Worker == 0; ++I)
    for (unsigned From = 1; From < F.Workers; ++From) {
      SmallVector<Endpoint, 4> Same;
      for (Endpoint E : sameNumbers(F, I, From))
        Same.push_back(there(E));
      if (!Same.empty())
        Wire.same(I, From, Same);
    }
  for (unsigned I = 0; I < Names; ++I) {
    std::string Of = std::to_string(I);
    NodeId End = F.wire("end_name_" + Of);
    if (End == NoNode)
      continue;
    // Wire.end() adds its own nodes after these.
    SmallVector<NodeId, 8> Controls;
    for (NodeId N : F.waitsOf(End))
      if (F.is(N, Role::Put) || F.is(N, Role::Get) ||
          F.G.name(N).ends_with("/back") ||
          F.G.name(N).starts_with(F.Scope + "/same_"))
        Controls.push_back(N);
    // A run is over when its received messages are back in their queues.
    for (const WorkerFile::Message &M : F.Gets)
      if (NodeId Back = F.wire(M.Queue.Name + "/back");
          Back != NoNode && is_contained(Controls, M.Node) &&
          !is_contained(Controls, Back))
        Controls.push_back(Back);
    Wire.end(I, there(Controls), Copies("refresh_name_" + Of));
  }
  if (F.wire("close") != NoNode)
    Wire.close();
  Functions = Wire.functions();
}

bool WireChecker::compare(NodeId Want, NodeId Is) {
  const Graph &G = F.G;
  auto Wrong = [&](const Twine &What) {
    return Join.error(File, Is,
                      What + " for a node of the exchange of messages");
  };
  if (G.opName(Is) != Wanted.opName(Want))
    return Wrong("is the wrong op");
  if (G.device(Is) != Wanted.device(Want))
    return Wrong("is on the wrong device");
  for (const AttrEntry &A : G.attrs(Is))
    if (!sameValue(Wanted.attr(Want, A.Key).value_or(""), A.Value))
      return Wrong("attribute '" + A.Key + "' is wrong");
  for (const AttrEntry &A : Wanted.attrs(Want))
    if (!G.hasAttr(Is, A.Key))
      return Wrong("attribute '" + A.Key + "' is missing");
  if (G.inputs(Is).size() != Wanted.inputs(Want).size())
    return Wrong("has the wrong number of inputs");
  for (unsigned I = 0; I < G.inputs(Is).size(); ++I) {
    Endpoint A = G.input(Is, I), B = Wanted.input(Want, I);
    if (A.Port != B.Port || G.name(A.Node) != Wanted.name(B.Node))
      return Wrong("input '" + G.name(A.Node) + "' is wrong");
  }
  return true;
}

/// Checks the bodies of the functions that the exchange calls.
bool WireChecker::checkFunctions() {
  bool Good = true;
  for (const auto &[Name, Text] : Functions) {
    const tensorflow::FunctionDef *Is = F.function(Name);
    if (Is == nullptr || serialize(*Is) != Text)
      Good =
          Join.error(File, F.Number,
                     "function '" + Name +
                         "' of the exchange of messages is missing or wrong");
  }
  return Good;
}

bool WireChecker::run() {
  write();
  bool Good = checkFunctions();
  std::vector<bool> IsStub(Wanted.size());
  for (auto [Of, Stub] : Stubs)
    IsStub[Stub] = true;
  for (NodeId N = 0; N < Wanted.size(); ++N) {
    if (IsStub[N])
      continue;
    NodeId Is = F.G.find(Wanted.name(N));
    if (Is == NoNode)
      Good = Join.error(File, F.Number,
                        "'" + Wanted.name(N) +
                            "' of the exchange of messages is missing");
    else
      Good &= compare(N, Is);
  }
  for (NodeId N = 0; N < F.G.size(); ++N)
    if (F.G.isLive(N) &&
        (F.is(N, Role::Wire) || F.is(N, Role::Put) || F.is(N, Role::Get)) &&
        Wanted.find(F.G.name(N)) == NoNode)
      Good = Join.error(File, N, "is no part of the exchange of messages");
  return Good;
}

} // namespace

bool checkWire(WorkersJoin &Join, ArrayRef<WorkerFile> Files, unsigned File) {
  return !Files[File].talks() || WireChecker(Join, Files, File).run();
}

} // namespace graft
