//===- lib/lower/workers/Exchange.cpp - the messages of workers -*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "lib/graph/AttrRun.h"
#include "lib/graph/DeviceName.h"
#include "lib/infer/graph/Topology.h"
#include "lib/io/Serialize.h"
#include "lib/lower/workers/Cutter.h"
#include "lib/program/forms/WorkerParts.h"
#include "lib/support/Wire.h"

#include "tensorflow/core/framework/function.pb.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/FormatVariadic.h"

#include <map>
#include <numeric>
#include <tuple>

using namespace llvm;

namespace graft {

/// Returns the device that keeps the state of runs. This is the server if it is
/// no worker's task and no worker but the chief has variables. Otherwise it is
/// the chief: sessions of workers with variables have to restart with the
/// chief, and a session that needs the chief's task ends with the chief.
std::string Cutter::findHome() const {
  auto D = DeviceName::parse(Plan.Server);
  if (!D || D->Job.empty() || taskOf(Plan.Server) != Common ||
      any_of(Vars.variables(),
             [&](NodeId Var) { return taskOf(G.device(Var)) > 0; }))
    return hostOf(0);
  D->Type = "CPU";
  D->Index = 0;
  return D->str();
}

/// Finds the nodes that writes of variables depend on.
void Cutter::findWritten() {
  Written.assign(G.size(), false);
  std::vector<NodeId> Order = topologicalOrder(G);
  for (NodeId N : reverse(Order))
    Written[N] = Vars.isUpdate(G, N) ||
                 G.anyUse(N, [&](Use U) { return Written[U.User]; });
}

/// Returns the device of a queue that \p Reader reads. If \p Reader is on a
/// server, this is the host of the server. Otherwise it is the chief's host if
/// a write depends on \p Reader. For any other reader, such as a loss, it is
/// the device that keeps the state of runs. Workers other than the chief then
/// need no connection to a further task for the queue.
std::string Cutter::queueDevice(NodeId Reader) const {
  auto D = DeviceName::parse(G.device(Reader));
  if (!D || D->Job.empty() || taskOf(G.device(Reader)) != Common)
    return Reader < Written.size() && !Written[Reader] ? Home : hostOf(0);
  D->Type = "CPU";
  D->Index = 0;
  return D->str();
}

/// Returns a new name for a queue, the same in all graphs.
std::string Cutter::queueName(const Twine &Of, int Source, int Target) {
  std::string Name =
      (Of + "/from_" + Twine(Source) + "_to_" + Twine(Target)).str();
  std::string Free = Name;
  for (unsigned I = 1; !Taken.insert(Free).second; ++I)
    Free = Name + "_" + std::to_string(I);
  return Free;
}

unsigned Cutter::channel(Endpoint From, int Target, const std::string &Device) {
  auto [It, New] = Numbers.try_emplace(
      {uint64_t(From.Node) << 32 | From.Port, Target}, Channels.size());
  if (New)
    Channels.push_back({From, Owner[From.Node], Target, Device, {}});
  return It->second;
}

bool Cutter::findChannels() {
  findWritten();
  for (NodeId N = 0; N < G.size(); ++N) {
    if (!G.isLive(N) || Owner[N] == Common || Rows.count(N))
      continue;
    for (unsigned I = 0; I < G.node(N).NumInputs; ++I) {
      Endpoint E = G.input(N, I);
      int From = Owner[E.Node];
      if (From == Common || From == Owner[N] || isFeedSplit(E.Node))
        continue;
      bool Known = Conditionals->canLeave(E);
      if (From != 0 && Owner[N] != 0) {
        Diags.error(
            G.name(N),
            formatv("takes '{0}' from another worker, and neither of the two "
                    "is the chief",
                    G.name(E.Node))
                .str());
        return false;
      }
      if (!Known || !canSend(E)) {
        Diags.error(
            G.name(N),
            formatv("takes '{0}' from another worker, but that value is {1}; "
                    "write one graph for all workers with --mode=in-graph",
                    G.name(E.Node),
                    Known ? "of a type that cannot be sent" : "inside a loop")
                .str());
        return false;
      }
      if (Conditionals->contain(E)) {
        Endpoint Always = Conditionals->leave(E, From);
        G.setInput(N, I, Conditionals->enter(E, Always, Owner[N]));
        continue;
      }
      unsigned C = channel(E, Owner[N], queueDevice(N));
      Channels[C].Uses.push_back({N, I});
    }
  }
  return true;
}

/// Returns, by node, the length of the longest chain of messages before it.
std::vector<unsigned> Cutter::levels() const {
  std::vector<unsigned> Level(G.size());
  std::vector<NodeId> Order = topologicalOrder(G);
  auto Pass = [&] {
    bool Changed = false;
    for (NodeId N : Order) {
      if (Owner[N] == Common && !isWaiting(N))
        continue;
      unsigned L = Level[N];
      for (Endpoint E : G.inputs(N)) {
        bool Sends = Owner[E.Node] != Common && Owner[N] != Common &&
                     Owner[E.Node] != Owner[N] && !isFeedSplit(E.Node);
        if (Owner[E.Node] != Common || isWaiting(E.Node))
          L = std::max(L, Level[E.Node] + unsigned(Sends));
      }
      Changed |= L != Level[N];
      Level[N] = L;
    }
    return Changed;
  };
  // Repeats the pass, since each loop around a loop needs one more.
  for (unsigned I = 0; I < 16 && Pass(); ++I)
    ;
  return Level;
}

/// Returns true if another process can use the value of \p E.
bool Cutter::canSend(Endpoint E) const {
  unsigned Type = E.isControl() ? unsigned(DT_BOOL) : G.outputType(E);
  return Type != DT_INVALID && Type != DT_RESOURCE && Type != DT_VARIANT;
}

/// Groups channels into messages. A run that needs one channel of a message
/// must need all its channels, and no channel may depend on another one of
/// them.
void Cutter::groupMessages(ArrayRef<BitVector> NamesOf) {
  std::vector<unsigned> Level = levels();
  using Key =
      std::tuple<unsigned, int, int, std::string, std::vector<unsigned>>;
  std::map<Key, unsigned> Numbered;
  for (auto [I, C] : enumerate(Channels)) {
    const BitVector &Of = NamesOf[I];
    auto Number = static_cast<unsigned>(All.size());
    if (Of.any()) {
      std::vector<unsigned> Names(Of.set_bits_begin(), Of.set_bits_end());
      Number = Numbered
                   .try_emplace({Level[C.From.Node], C.Source, C.Target,
                                 C.Device, std::move(Names)},
                                Number)
                   .first->second;
    }
    if (Number == All.size()) {
      StringRef Name =
          G.name(Of.any() ? Names[static_cast<unsigned>(Of.find_first())].Node
                          : C.From.Node);
      All.push_back(
          {.Source = C.Source,
           .Target = C.Target,
           .Level = Level[C.From.Node],
           .Of = Of,
           .Channels = {},
           .Queue = {queueName(Name, C.Source, C.Target), C.Device, {}},
           .Root = {}});
    }
    Message &M = All[Number];
    M.Channels.push_back(static_cast<unsigned>(I));
    if (!C.From.isControl())
      M.Queue.Types += static_cast<char>(G.outputType(C.From));
  }
  findRoots();
}

/// Finds the root of each message to the chief. All messages of a worker in one
/// run must have the same run number. A worker that was restarted may have sent
/// some of them before the restart.
void Cutter::findRoots() {
  std::vector<SmallVector<unsigned, 2>> Given(Workers); // By source.
  for (auto [I, M] : enumerate(All))
    if (M.Target == 0)
      Given[static_cast<size_t>(M.Source)].push_back(static_cast<unsigned>(I));
  for (auto [I, M] : enumerate(All)) {
    if (M.Target != 0 || M.Of.none())
      continue;
    for (unsigned J : Given[static_cast<size_t>(M.Source)]) {
      const Message &Other = All[J];
      // Other must be in every run that M is in.
      if (I == J || M.Of.test(Other.Of))
        continue;
      // If two messages have one level, the root is the one with more names,
      // else the first one.
      if (Other.Level > M.Level ||
          (Other.Level == M.Level && Other.Of == M.Of && J > I))
        continue;
      auto Rank = [&](unsigned R) {
        return std::tuple(All[R].Level, -static_cast<int>(All[R].Of.count()),
                          R);
      };
      if (!M.Root || Rank(J) < Rank(*M.Root))
        M.Root = J;
    }
  }
}

//===----------------------------------------------------------------------===//
// The graph of one worker
//===----------------------------------------------------------------------===//

/// Sends message \p M after the nodes \p After.
void Cutter::send(unsigned M, ArrayRef<NodeId> After) {
  SmallVector<Endpoint, 8> Values;
  SmallVector<NodeId, 8> Ends;
  for (unsigned C : All[M].Channels)
    if (Channels[C].From.isControl())
      Ends.push_back(Channels[C].From.Node);
    else
      Values.push_back(Channels[C].From);
  Sent[M] = Wire->put(All[M].Queue, Values, Ends, After);
}

void Cutter::receive(unsigned M) {
  std::optional<Endpoint> Number;
  if (All[M].Root)
    Number = Received[*All[M].Root].Key;
  Received[M] = Wire->get(All[M].Queue, Number);
  takeOwners();
  uint32_t Port = 0;
  int64_t Ends = 0;
  for (unsigned C : All[M].Channels) {
    const Channel &Its = Channels[C];
    Endpoint Value{Received[M].Get, ControlPort};
    if (Its.From.isControl())
      Value.Node = add(G.name(Its.From.Node) + "/end", part::End, op::NoOp,
                       Value, Value.Node, AttrRun().integer(IndexAttr, Ends++),
                       All[M].Queue.Device, Mine);
    else
      Value.Port = Port++;
    for (Use U : Its.Uses)
      G.setInput(U.User, U.Index, Value);
  }
}

/// Adds the functions that the exchange of messages calls to the library.
void Cutter::addFunctions() {
  if (!Wire || Wire->functions().empty())
    return;
  constexpr unsigned LibraryField = 2; // In a GraphDef.
  tensorflow::FunctionDefLibrary Library;
  Library.ParseFromString(G.otherField(LibraryField));
  for (const auto &[Name, Text] : Wire->functions())
    Library.add_function()->ParseFromString(Text);
  std::string Field;
  wire::appendBytes(Field, LibraryField, serialize(Library));
  G.replaceOtherFields(LibraryField, Field);
}

void Cutter::exchange() {
  Sent.assign(All.size(), NoNode);
  Received.assign(All.size(), {});
  // Sort by level. A root comes before the messages whose root it is.
  std::vector<unsigned> Order(All.size());
  std::iota(Order.begin(), Order.end(), 0);
  llvm::stable_sort(Order, [&](unsigned A, unsigned B) {
    return std::tuple(All[A].Level, -static_cast<int>(All[A].Of.count()),
                      All[A].Root.has_value()) <
           std::tuple(All[B].Level, -static_cast<int>(All[B].Of.count()),
                      All[B].Root.has_value());
  });
  std::vector<MessageQueue> Marked;
  std::vector<SmallVector<unsigned, 2>> Led(All.size());
  for (auto [I, M] : enumerate(All)) {
    bool IsLed =
        M.Root && All[*M.Root].Level == M.Level && All[*M.Root].Of == M.Of;
    if (IsLed)
      Led[*M.Root].push_back(static_cast<unsigned>(I));
    if (M.Source == Mine && (Mine == 0 || (M.Target == 0 && M.Root && !IsLed)))
      Marked.push_back(M.Queue);
  }
  if (All.empty())
    return;
  findOwnCopies();
  FirstOfWire = G.size();
  Wire.emplace(G,
               Messages::Place{.Workers = Workers,
                               .Mine = static_cast<unsigned>(Mine),
                               .Chief = hostOf(0),
                               .Own = hostOf(Mine),
                               .Home = Home,
                               .Scope = Scope},
               Names.empty() ? 0 : Names.front().Node);
  Wire->begin(static_cast<unsigned>(Names.size()), Marked, Copies);
  for (unsigned M : Order)
    if (All[M].Target == Mine)
      receive(M);
  // A root is sent after the messages whose root it is.
  for (unsigned M : reverse(Order)) {
    if (All[M].Source != Mine)
      continue;
    SmallVector<NodeId, 4> Before;
    for (unsigned Other : Led[M])
      Before.push_back(Sent[Other]);
    if (!All[M].Channels.empty())
      send(M, Before);
  }
  takeOwners();
  if (Mine == 0)
    gateOnAll();
}

} // namespace graft
