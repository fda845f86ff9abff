//===- passes/ShareVariables.cpp - share-variables --------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
// Shares one variable among all replicas. The variable and its updates are
// unreplicated, and every replica reads the variable. The device is that of
// replica 0 unless the input names one.
//
//     w = VariableV2()                w = VariableV2() @/device:CPU:0
//     g = MatMul*(x/split, dy)    →   g = MatMul*(x/split, dy)
//     ApplyGradientDescent(w, a, g)   ApplyGradientDescent(w, a, g)
//                                         @/device:CPU:0
//
// The update reads the global gradient: merge-fetches inserts the sum. An op of
// a replica that uses the variable in place (a lookup of rows) runs on the
// device of the variable, where TensorFlow would place it anyway.
//
// A variable with the policy `host` is on the host, where XLA does not compile
// it. Each replica caches the value of a read, so that all replicas use one
// snapshot.
//
//     r = ReadVariableOp(w)           r = ReadVariableOp(w) @/device:CPU:0
//     y = MatMul*(x/split, r)    →    w/Read/Identity = Identity*(r)
//                                     y = MatMul*(x/split, w/Read/Identity)
//
// A destination in the synchronizer of a variable may be any device of any
// task. The variable is placed there, with its slots and the nodes that use it
// in place.
//
//     w = VarHandleOp() _graft_synchronizer=     w = VarHandleOp()
//         "ps,destination=/device:CPU:1"      →      @/device:CPU:1
//
// If the option `servers` is set, the variables without a destination are
// placed on these devices, balanced by bytes.
//
// Colocation with a node on another device is dropped: no value depends on it,
// and TensorFlow would refuse the graph.
//
// Relies on: policies (assign-strategy), and on unreplicated updates of
// unreplicated variables (replicate).
//
//===----------------------------------------------------------------------===//

#include "lib/graph/AttrRun.h"
#include "lib/graph/DeviceName.h"
#include "lib/io/Module.h"
#include "lib/ops/Ops.h"
#include "lib/pass/Pass.h"
#include "lib/rewrite/Slots.h"
#include "lib/strategy/Record.h"
#include "lib/strategy/Resources.h"
#include "lib/support/Glob.h"
#include "passes/Options.h"

#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/MathExtras.h"

using namespace llvm;

namespace graft {
namespace {

class ShareVariables final
    : public PassBase<ShareVariables, ShareVariablesOptions> {
public:
  static constexpr PassInfo Info = {
      "share-variables", "One variable for all replicas",
      "Places a variable with policy `shared`, and the nodes that use it in\n"
      "place, on one device. Places a variable with policy `host` on the\n"
      "host, and gives each replica a cache of the value that it reads."};

  PassResult run(Module &M, DiagnosticEngine &Diags) override;

private:
  bool giveSynchronizers();
  void giveServers();
  void keepOnHost(NodeId Var);
  void cache(NodeId Var, Endpoint Read);
  void separate();
  bool place(NodeId Var, const Mesh &Devices, bool &Moved);
  void placeUsers();

  Graph *G = nullptr;
  DiagnosticEngine *Diags = nullptr;
  const VariableIndex *Vars = nullptr;
};

/// Returns the host of the task that \p Device is on.
static std::string hostOf(StringRef Device) {
  auto Parsed = DeviceName::parse(Device);
  DeviceName Host = Parsed ? *Parsed : DeviceName();
  Host.Type = "CPU";
  Host.Index = 0;
  return Host.str();
}

/// Gives each replica its own device copy of \p Read.
void ShareVariables::cache(NodeId Var, Endpoint Read) {
  SmallVector<Use, 8> Readers;
  for (Use U : G->uses(Read.Node))
    if (G->isData(U) && G->isPerReplica(U.User) && G->input(U) == Read)
      Readers.push_back(U);
  if (Readers.empty())
    return;
  AttrRun Attrs;
  Attrs.type("T", G->outputType(Read));
  SmallString<128> Name(G->name(Var));
  Name += "/Read/Identity";
  NodeId N = G->insertNode(Name, op::Identity, Read, Read.Node, Attrs,
                           Inserted::Identity, Copies::PerReplica);
  for (Use U : Readers)
    G->setInput(U.User, U.Index, {N, 0});
}

void ShareVariables::keepOnHost(NodeId Var) {
  bool IsHandle = G->isOp(Var, op::VarHandleOp);
  SmallVector<NodeId, 4> Reads, Own{Var};
  NodeId Initial = Vars->initialAssign(*G, Var);
  Vars->forEachUse(*G, Var, [&](Use U) {
    StringRef Op = G->opName(U.User);
    bool Reads0 =
        U.Index == 0 && Op == (IsHandle ? op::ReadVariableOp : op::Identity);
    if (Reads0 && Vars->variableOf({U.User, 0}) == NoNode)
      Reads.push_back(U.User);
    else if (U.User != Initial && Op != op::VarIsInitializedOp &&
             Op != op::IsVariableInitialized)
      return;
    Own.push_back(U.User);
  });
  llvm::sort(Own);
  llvm::sort(Reads);
  for (NodeId N : Own) {
    G->setBoolAttr(N, "_XlaCompile", false);
    G->setStringAttr(N, "_XlaScope", "");
  }
  erase_if(Reads, [&](NodeId Read) { return G->isPerReplica(Read); });
  // An Identity may forward a read, as in `read_value()`.
  for (size_t I = 0; I < Reads.size(); ++I) {
    for (Use U : G->uses(Reads[I]))
      if (U.Index == 0 && G->isOp(U.User, op::Identity) &&
          !G->input(U.User, 0).isControl() &&
          G->node(U.User).Count == Copies::Once)
        Reads.push_back(U.User);
    cache(Var, {Reads[I], 0});
  }
}

/// Writes the synchronizers of the option on the variables.
bool ShareVariables::giveSynchronizers() {
  for (StringRef Rule : *Options.Synchronizers) {
    auto [Pattern, Text] = Rule.split('=');
    if (!parseSynchronizer(Text)) {
      Diags->error("", "synchronizers: '" + Rule.str() +
                           "' does not have the form GLOB=ps,destination=..."
                           " or GLOB=ps,proxy");
      return false;
    }
    bool Found = false;
    for (NodeId Var : Vars->variables()) {
      if (!Glob(Pattern).matches(G->name(Var)))
        continue;
      Found = true;
      if (isShared(G->node(Var).Plan) && !synchronizerOf(*G, Var))
        G->setStringAttr(Var, SynchronizerAttr, Text);
    }
    if (!Found) {
      Diags->error("", "synchronizers: no variable is called '" +
                           Pattern.str() + "'");
      return false;
    }
  }
  return true;
}

/// Puts each variable without a destination on the server with the fewest bytes
/// so far. A slot is put on the server of its variable.
void ShareVariables::giveServers() {
  std::vector<uint64_t> Bytes(Options.Servers->size());
  DenseSet<NodeId> Slots;
  for (NodeId N = 0; N < G->size(); ++N)
    if (UpdateDef U = Vars->update(*G, N); G->isLive(N))
      for (unsigned I = 1; I < U.NumVars; ++I)
        Slots.insert(Vars->variableOf(G->input(N, I)));
  for (NodeId Var : Vars->variables()) {
    if (G->node(Var).Plan != Policy::Shared || Slots.contains(Var) ||
        synchronizerOf(*G, Var))
      continue;
    auto Least = min_element(Bytes);
    uint64_t Size = bytesOf(G->typeAttr(Var, "dtype").value_or(DT_INVALID));
    auto Shape = G->shapeAttr(Var, "shape");
    for (int64_t D : Shape ? Shape->Dims : SmallVector<int64_t, 4>())
      Size = SaturatingMultiply(Size,
                                static_cast<uint64_t>(std::max<int64_t>(D, 1)));
    *Least = SaturatingAdd(*Least, Size);
    size_t Server = static_cast<size_t>(Least - Bytes.begin());
    G->setStringAttr(Var, SynchronizerAttr,
                     "ps,destination=" + (*Options.Servers)[Server]);
  }
}

/// Drops the colocation of a node with a node on another device. An
/// unreplicated node that is colocated with a shared variable instead moves to
/// the device of the variable.
void ShareVariables::separate() {
  for (NodeId N = 0; N < G->size(); ++N) {
    const Node &This = G->node(N);
    if ((This.Flags & (NF_Dead | NF_MayHaveClass)) != NF_MayHaveClass ||
        This.Device == 0)
      continue;
    G->keepClasses(N, [&](StringRef Name) {
      NodeId With = Name.consume_front("loc:@") ? G->find(Name) : NoNode;
      if (With == NoNode || G->node(With).Device == This.Device ||
          (G->node(With).Device == 0 && G->node(With).Count == Copies::Once))
        return true;
      bool Moves = This.Count == Copies::Once &&
                   !(This.Flags & NF_FixedDevice) &&
                   !isVariableOp(G->opName(N)) && isShared(G->node(With).Plan);
      if (Moves)
        G->setDevice(N, G->device(With));
      return Moves;
    });
  }
}

/// Puts the shared variable \p Var on the device that its synchronizer or its
/// policy names. \p Moved becomes true if the synchronizer names one. Returns
/// false after an error.
bool ShareVariables::place(NodeId Var, const Mesh &Devices, bool &Moved) {
  Policy Plan = G->node(Var).Plan;
  if (G->isPerReplica(Var)) {
    Diags->error(G->name(Var),
                 ("has policy " + policyName(Plan) +
                  " but is per-replica; share it or mirror it, not both")
                     .str());
    return false;
  }
  bool OnHost = Plan == Policy::Host;
  std::string Device = G->device(Var).str();
  auto Destination = destinationOf(*G, Var, Devices, *Diags);
  if (!Destination)
    return false;
  Moved |= !Destination->empty();
  if (!Destination->empty())
    Device = *Destination;
  else if (OnHost)
    Device = hostOf(Device);
  else if (Device.empty() || Device == "/device:CPU:0")
    Device = Devices.Devices[0];
  G->setDevice(Var, Device);
  ++Statistics["variables shared"];
  if (Diags->wantsRemarks())
    Diags
        ->remark("variable", G->name(Var),
                 (OnHost ? "one variable for all replicas, on the host, "
                         : "shared by all replicas on ") +
                     Device)
        .Facts = {{"policy", policyName(Plan).str()}};
  if (OnHost)
    keepOnHost(Var);
  return true;
}

/// Puts nodes that use shared variables in place where the variables are.
void ShareVariables::placeUsers() {
  for (NodeId N = 0; N < G->size(); ++N)
    for (unsigned I = 0; I < G->node(N).NumData; ++I) {
      NodeId Var = Vars->variableOf(G->input(N, I));
      if (Var == NoNode || !isShared(G->node(Var).Plan) ||
          !Vars->usesInPlace(*G, N, I))
        continue;
      G->setDevice(N, G->device(Var));
      G->node(N).Flags |= NF_FixedDevice;
    }
}

PassResult ShareVariables::run(Module &M, DiagnosticEngine &D) {
  G = &M.graph();
  Diags = &D;
  Mesh Devices = readMesh(*G);
  if (Devices.Node == NoNode)
    return PassResult::Unchanged;
  auto IsShared = [&](NodeId N) { return isShared(G->node(N).Plan); };
  bool Any = false;
  for (NodeId N = 0; N < G->size() && !Any; ++N)
    Any = IsShared(N) && G->isLive(N) && isVariableOp(G->opName(N));
  if (!Any)
    return PassResult::Unchanged;
  VariableIndex Index(*G);
  Vars = &Index;
  if (!giveSynchronizers())
    return PassResult::Failure;
  if (!Options.Servers->empty())
    giveServers();
  bool Synchronized = any_of(Vars->variables(), [&](NodeId Var) {
    return synchronizerOf(*G, Var).has_value();
  });
  bool SlotsChanged = false, Moved = false;
  if (Synchronized && !slotsFollow(*G, Index, SlotsChanged, D))
    return PassResult::Failure;
  for (NodeId Var : Vars->variables())
    if (IsShared(Var) && !place(Var, Devices, Moved))
      return PassResult::Failure;
  placeUsers();
  if (Moved)
    separate();
  return PassResult::Changed;
}

} // namespace

GRAFT_DEFINE_PASS_WITH_OPTIONS(ShareVariables)

} // namespace graft
