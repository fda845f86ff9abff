//===- lib/certify/tpu/Spread.cpp - a computation on each replica ---------===//
//
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "lib/certify/tpu/Spread.h"

#include "lib/certify/tpu/Stack.h"
#include "lib/graph/AttrRun.h"
#include "lib/graph/CopyWord.h"
#include "lib/graph/DeviceName.h"
#include "lib/infer/graph/Topology.h"
#include "lib/infer/graph/Variables.h"
#include "lib/ops/Ops.h"
#include "lib/program/Program.h"

#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/ADT/StringSet.h"

#include <cmath>

using namespace llvm;

namespace graft {
namespace {

class Spreader {
public:
  Spreader(const Graph &F, const Graph &In, DiagnosticEngine &Diags)
      : F(F), In(In), Diags(Diags), File(F, In, Diags), Vars(F),
        Word(copyWordOf(F)) {}

  std::unique_ptr<Graph> run();

private:
  bool error(NodeId N, const Twine &Message) {
    Failed = true;
    Diags.error(F.name(N), Message.str());
    return false;
  }
  static std::string device(unsigned Replica) {
    return "/device:TPU:" + std::to_string(Replica);
  }
  bool isScale(NodeId N) const;
  std::string keyOf(NodeId N, unsigned Replica) const;
  NodeId twin(StringRef Name, unsigned Replica) const;
  StringRef twinName(NodeId N) const;
  void findTwins();
  bool checkTwins();
  void makeMember(NodeId N);
  NodeId addMerge(const Twine &Name, StringRef Op, unsigned Type);
  void makeSum(NodeId N);
  void makeExchange(NodeId N, const TpuExchange &X);
  void findUnused();
  std::string deviceOf(NodeId N) const;
  void makeOutside(NodeId N);
  bool isAlone() const { return File.replicas() == 1; }
  Endpoint passedBy(Endpoint E) const;
  bool isPassed(NodeId N) const {
    return isAlone() && passedBy({N, 0}).Node != NoNode;
  }
  bool isTaken(NodeId N) const;
  Endpoint source(Endpoint E, unsigned Replica) const;
  void take(NodeId N, Endpoint E, unsigned Replica,
            std::vector<Endpoint> &Inputs);
  NodeId waitedFor(NodeId N) const;
  void addControls(NodeId N, unsigned Replica, std::vector<Endpoint> &Inputs);
  bool addRun(NodeId N, std::vector<Endpoint> &Inputs);
  void connectMember(NodeId N);
  void connectExchange(NodeId N, const TpuExchange &X, NodeId Axis);
  void connectOutside(NodeId N);

  const Graph &F;
  const Graph &In;
  DiagnosticEngine &Diags;
  TpuFile File;
  VariableIndex Vars;
  std::string Word; ///< The word in the names of copies.
  bool Failed = false;
  std::unique_ptr<Graph> L = std::make_unique<Graph>();
  /// By node of the file: its copies, or its unreplicated node, in the new
  /// graph.
  std::vector<SmallVector<NodeId, 4>> Now;
  /// By op of the computation that repeats a node outside: the copy of that
  /// node for each replica.
  DenseMap<NodeId, SmallVector<NodeId, 4>> Twins;
  /// By member that is an exchange: the exchange and its axis constant.
  DenseMap<NodeId, std::pair<TpuExchange, NodeId>> Exchanges;
  std::vector<bool> Unused;   ///< By node of the file.
  StringSet<> Bases;          ///< The names of members in the input.
  StringMap<NodeId> MemberOf; ///< By name in the input.
};

/// Returns true if \p N, an inserted node, multiplies or divides by a constant
/// power of the number of replicas.
bool Spreader::isScale(NodeId N) const {
  if (isAlone() || File.isOfInput(N) || F.node(N).NumData != 2 ||
      !(F.isOp(N, op::Mul) || F.isOp(N, op::FloorDiv)))
    return false;
  NodeId Number = F.input(N, 1).Node;
  if (!File.isMember(Number) || File.isOfInput(Number))
    return false;
  auto IsPower = [&](double Factor) {
    double Power = std::log(Factor) / std::log(double(File.replicas()));
    return Factor > 0 && std::abs(Power - std::round(Power)) < 1e-3;
  };
  if (auto Factor = constScalar(F, Number))
    return *Factor != 1 && IsPower(*Factor);
  // A vector of sizes has a factor for each element.
  auto Factors = constValue(F, Number);
  return Factors && Factors->HasInts && Factors->NumElements > 1 &&
         all_of(Factors->Ints,
                [&](int64_t Each) { return IsPower(double(Each)); }) &&
         any_of(Factors->Ints, [](int64_t Each) { return Each != 1; });
}

/// Returns a key of the value of \p N on replica \p Replica: equal keys mean
/// equal values. Returns "" if \p N is a feed, has control inputs or has a
/// state. A read of a variable has a key.
std::string Spreader::keyOf(NodeId N, unsigned Replica) const {
  const OpDef *Def = F.opDef(N);
  if (!Def || (Def->isStateful() && !F.isOp(N, op::ReadVariableOp)) ||
      F.isOp(N, op::NoOp) || F.opName(N).starts_with(op::Placeholder))
    return "";
  std::string Key = F.opName(N).str();
  for (Endpoint E : F.inputs(N)) {
    if (E.isControl()) {
      if (File.role(E.Node) == TpuRole::Metadata)
        continue;
      return "";
    }
    if (File.role(E.Node) == TpuRole::Input)
      E = File.operand(E.Node, Replica);
    if (auto It = Twins.find(E.Node); It != Twins.end())
      E.Node = It->second[Replica];
    Key += " " + std::to_string(E.Node) + ":" + std::to_string(E.Port);
  }
  std::vector<std::string> Attrs;
  for (const AttrEntry &A : F.attrs(N))
    if (!A.Key.starts_with("_"))
      Attrs.push_back((A.Key + "=" + A.Value).str());
  sort(Attrs);
  for (const std::string &A : Attrs)
    Key += "\n" + A;
  return Key;
}

/// Returns the input name that \p N shares with a node outside: the name of \p
/// N, with or without its scope. Returns "" if there is none.
StringRef Spreader::twinName(NodeId N) const {
  StringRef Name = File.base(N);
  if (In.find(Name) == NoNode && Name.consume_front("tpu/") &&
      In.find(Name) == NoNode)
    Name.consume_front("outside/");
  return In.find(Name) != NoNode && twin(Name, 0) != NoNode ? Name
                                                            : StringRef();
}

/// Returns the copy of \p Name for \p Replica outside of the computation, or
/// the unreplicated node if there are no copies.
NodeId Spreader::twin(StringRef Name, unsigned Replica) const {
  std::string Number = Word + std::to_string(Replica);
  for (size_t At = 0; At != StringRef::npos; At = Name.find('/', At + 1)) {
    std::string Copy =
        At == 0 ? (Number + "/" + Name).str()
                : (Name.take_front(At) + "/" + Number + Name.substr(At)).str();
    NodeId N = F.find(Copy);
    if (N != NoNode && File.role(N) == TpuRole::Outside)
      return N;
  }
  NodeId N = F.find(Name);
  return N != NoNode && File.role(N) == TpuRole::Outside ? N : NoNode;
}

/// Finds each op of the computation that has the value of a node outside. Only
/// the node with the name of the op is compared.
void Spreader::findTwins() {
  std::vector<NodeId> Order = topologicalOrder(F);
  for (NodeId N : Order) {
    if (File.role(N) != TpuRole::Member)
      continue;
    StringRef Name = twinName(N);
    SmallVector<NodeId, 4> Same;
    for (unsigned R = 0; R < File.replicas() && !Name.empty(); ++R) {
      NodeId Copy = twin(Name, R);
      std::string Key = Copy == NoNode ? "" : keyOf(N, R);
      if (Key.empty() || Key != keyOf(Copy, 0))
        break;
      Same.push_back(Copy);
    }
    if (Same.size() == File.replicas())
      Twins[N] = Same;
  }
}

/// Checks variables that are read both in the computation and outside, where
/// the input has one read. The outside read may run after an update by the
/// computation. So a node that waits for the computation must not use that
/// read.
bool Spreader::checkTwins() {
  std::vector<NodeId> Reads;
  for (const auto &[N, Same] : Twins)
    if (F.isOp(N, op::ReadVariableOp))
      append_range(Reads, Same);
  if (Reads.empty())
    return true;
  constexpr uint8_t OfRead = 1, OfComputation = 2;
  std::vector<uint8_t> After(F.size());
  for (NodeId N : Reads)
    After[N] = OfRead;
  for (NodeId N : topologicalOrder(F)) {
    for (Endpoint E : F.inputs(N))
      After[N] |=
          File.runsComputation(E.Node) || File.role(E.Node) == TpuRole::Output
              ? OfComputation
              : After[E.Node];
    if (File.role(N) == TpuRole::Outside &&
        After[N] == (OfRead | OfComputation))
      return error(N, "takes a value of a variable that the computation reads, "
                      "too, but waits for the computation, so the value may be "
                      "read after an update");
  }
  return true;
}

/// Returns true if two constants have equal integers.
static bool isSameTensor(std::optional<StringRef> A, StringRef B) {
  auto Was = A ? tensorValue(*A) : std::nullopt, Now = tensorValue(B);
  return Was && Now && Was->HasInts && Now->HasInts && Was->Type == Now->Type &&
         Was->Ints == Now->Ints && Was->Shape.Dims == Now->Shape.Dims;
}

void Spreader::makeMember(NodeId N) {
  StringRef Base = File.base(N);
  MemberOf.try_emplace(Base, N);
  for (unsigned R = 0; R < File.replicas(); ++R) {
    std::string Number = Word + std::to_string(R);
    std::string Name = (isAlone() ? "" : Number + "/") + Base.str();
    NodeId Other = F.find(Name);
    if (L->find(Name) != NoNode ||
        (Other != NoNode && Other != N && File.role(Other) != TpuRole::Run &&
         !isPassed(Other))) {
      error(N, "needs a copy with the name '" + Name +
                   "', which another node has");
      return;
    }
    NodeId Copy = L->addNode(Name, F.opName(N), {}, NoNode);
    L->setDevice(Copy, isAlone() ? "" : device(R));
    for (const AttrEntry &A : F.attrs(N)) {
      if (A.Key == "_tpu_replicate" || A.Key == "_class" || A.Key == OriginAttr)
        continue;
      // The writer of the file may choose the ops that run on the host.
      NodeId Was = In.find(Base);
      if (A.Key == "_xla_outside_compilation" &&
          (Was == NoNode || In.attr(Was, A.Key) != A.Value))
        continue;
      L->setAttr(Copy, A.Key, A.Value);
      // Equal integers may have different encodings.
      if (isAlone() && A.Key == "value" && Was != NoNode &&
          isSameTensor(In.attr(Was, A.Key), A.Value))
        L->setAttr(Copy, A.Key, *In.attr(Was, A.Key));
      if (A.Key == "frame_name" && !isAlone())
        L->setStringAttr(Copy, A.Key,
                         Number + "/" + F.stringAttr(N, A.Key)->str());
    }
    if (isScale(N))
      L->setIntAttr(Copy, StampAttr, File.replicas());
    Now[N].push_back(Copy);
  }
}

/// Adds an unreplicated node that merges the values of all replicas.
NodeId Spreader::addMerge(const Twine &Name, StringRef Op, unsigned Type) {
  NodeId N = L->addNode(L->uniqueName(Name.str()), Op, {}, NoNode);
  L->setDevice(N, "/device:CPU:0");
  if (Type != DT_BOOL)
    L->setTypeAttr(N, "T", Type);
  L->setIntAttr(N, StampAttr, File.replicas());
  if (Word != UsualCopyWord)
    L->setStringAttr(N, CopyWordAttr, Word);
  return N;
}

void Spreader::makeSum(NodeId N) {
  NodeId Sum =
      addMerge(F.name(N), op::AddN, F.typeAttr(N, "T").value_or(DT_INVALID));
  L->setIntAttr(Sum, "N", File.replicas());
  Now[N].push_back(Sum);
}

void Spreader::makeExchange(NodeId N, const TpuExchange &X) {
  unsigned Type = F.outputType(X.Of);
  NodeId Joined = addMerge(F.name(N), X.Joined, Type);
  NodeId Axis = L->addNode(L->uniqueName(F.name(N).str() + "/axis_of_replicas"),
                           op::Const, {}, NoNode);
  L->setTypeAttr(Axis, "dtype", DT_INT32);
  L->setAttr(Axis, "value", encodeIntTensor(DT_INT32, {}, X.Axis));
  L->setTypeAttr(Joined, "Tidx", DT_INT32);
  Now[N].push_back(Joined);
  Exchanges[N] = {X, Axis};
}

/// Returns the device for the outside node \p N. A copy on a CPU that uses no
/// variable or other resource gets the device of its replica.
std::string Spreader::deviceOf(NodeId N) const {
  const OpDef *Def = F.opDef(N);
  NodeId Was = In.find(originOfCopy(F.name(N), Word));
  auto Device = DeviceName::parse(F.device(N));
  bool Anywhere =
      Def && !Def->hasSharedName() && !Vars.isUpdate(F, N) &&
      none_of(F.dataInputs(N),
              [&](Endpoint E) { return Vars.variableOf(E) != NoNode; }) &&
      Device && Device->Type == "CPU";
  if (!Anywhere || Was == NoNode)
    return F.device(N).str();
  if (auto Number = numberOfCopy(F.name(N), Word))
    return device(*Number);
  // Copy 0 may have the input name, without a number.
  std::string Other = Word + "1/" + F.name(N).str();
  return F.find(Other) != NoNode ? device(0) : F.device(N).str();
}

void Spreader::makeOutside(NodeId N) {
  StringRef Name = F.name(N);
  std::string Base = originOfCopy(Name, Word);
  if (isAlone() && In.find(Name) == NoNode && In.find(Base) != NoNode)
    Name = Base;
  if (L->find(Name) != NoNode) {
    error(N, "has the name of a copy of another node");
    return;
  }
  NodeId New = L->addNode(Name, F.opName(N), {}, NoNode);
  L->setDevice(New, deviceOf(N));
  for (const AttrEntry &A : F.attrs(N))
    L->setAttr(New, A.Key, A.Value);
  if (StringRef Frame = F.stringAttr(N, "frame_name").value_or("");
      isAlone() && Frame.consume_front(Word + "0/"))
    L->setStringAttr(New, "frame_name", Frame);
  Now[N].push_back(New);
}

/// Returns the operand whose value the inserted node \p E has if there is one
/// replica. A sum, a concatenation or a scale, for example, then changes
/// nothing. Returns no node if \p E has no such operand.
Endpoint Spreader::passedBy(Endpoint E) const {
  NodeId N = E.Node;
  bool IsNew = File.isMember(N)
                   ? !File.isOfInput(N)
                   : F.hasAttr(N, StampAttr) ||
                         In.find(originOfCopy(F.name(N), Word)) == NoNode ||
                         Bases.contains(F.name(N));
  if (!IsNew || !F.controlInputs(N).empty() || F.node(N).NumData == 0)
    return {};
  if (auto It = Exchanges.find(N); It != Exchanges.end())
    return It->second.first.Of;
  StringRef Op = F.opName(N);
  unsigned Data = F.node(N).NumData;
  bool Stamped = F.hasAttr(N, StampAttr);
  if (File.role(N) == TpuRole::Sum || (Op == op::Identity && Data == 1) ||
      ((Op == op::AddN || Op == op::Pack) && Data == 1 && Stamped) ||
      (Op == op::ConcatV2 && Data == 2 && Stamped))
    return F.input(N, 0);
  if (Op == op::IdentityN && E.Port < Data)
    return F.input(N, E.Port);
  if (Op == op::Split && Stamped && F.intAttr(N, "num_split") == 1)
    return F.input(N, 1);
  if ((Op == op::Mul || Op == op::FloorDiv) && Data == 2 &&
      constScalar(F, F.input(N, 1).Node) == 1)
    return F.input(N, 0);
  // A reduction along the axis of replicas.
  NodeId Rows = F.input(N, 0).Node;
  bool OfRows = Stamped && F.isOp(Rows, op::Pack) && F.hasAttr(Rows, StampAttr);
  if ((Op == op::Min || Op == op::Max || Op == op::All || Op == op::Any) &&
      OfRows && Data == 2 && F.node(Rows).NumData == 1 &&
      F.intAttr(Rows, "axis").value_or(0) == 0 &&
      constScalar(F, F.input(N, 1).Node) == 0 &&
      F.boolAttr(N, "keep_dims").value_or(false) == false)
    return F.input(Rows, 0);
  return {};
}

/// Returns true if \p N is an inserted Identity of a TPUReplicatedInput.
bool Spreader::isTaken(NodeId N) const {
  return File.role(N) == TpuRole::Member && F.isOp(N, op::Identity) &&
         F.node(N).NumData == 1 && !File.isOfInput(N) &&
         File.role(F.input(N, 0).Node) == TpuRole::Input;
}

/// Returns the tensor of the new graph for \p E of the file, on replica \p
/// Replica or outside.
Endpoint Spreader::source(Endpoint E, unsigned Replica) const {
  if (isTaken(E.Node))
    return source(F.input(E.Node, 0), Replica);
  if (isPassed(E.Node) && !Twins.contains(E.Node))
    return source(passedBy(E), Replica);
  switch (File.role(E.Node)) {
  case TpuRole::Input:
    return source(File.operand(E.Node, Replica), Replica);
  case TpuRole::Output:
    return source(F.input(E.Node, 0), E.Port);
  case TpuRole::Shard:
    return source(F.input(E.Node, 0), Replica);
  default:
    break;
  }
  if (auto It = Twins.find(E.Node); It != Twins.end())
    return {Now[It->second[Replica]][0], E.Port};
  ArrayRef<NodeId> Copies = Now[E.Node];
  return {Copies.empty() ? NoNode : Copies[Copies.size() == 1 ? 0 : Replica],
          E.Port};
}

/// Adds \p E of the file to \p Inputs of \p N, on replica \p Replica or
/// outside.
void Spreader::take(NodeId N, Endpoint E, unsigned Replica,
                    std::vector<Endpoint> &Inputs) {
  Endpoint To = source({E.Node, E.isControl() ? 0 : E.Port}, Replica);
  if (To.Node == NoNode)
    error(N, "depends on '" + F.name(E.Node) +
                 "', which has no counterpart in the graph of all replicas");
  else
    Inputs.push_back({To.Node, E.isControl() ? ControlPort : To.Port});
}

/// Returns the node that replaces \p N in a control dependency: the input of \p
/// N if \p N is inserted and has the value of its input, otherwise \p N.
NodeId Spreader::waitedFor(NodeId N) const {
  for (unsigned Steps = 0; Steps < F.size(); ++Steps) {
    bool IsNew = !File.isOfInput(N) && F.node(N).NumInputs > 0;
    if (IsNew && F.isOp(N, op::Identity) && File.isMember(N) &&
        !File.isMember(F.input(N, 0).Node) &&
        all_of(F.controlInputs(N), [&](Endpoint E) {
          return File.role(E.Node) == TpuRole::Metadata;
        }))
      N = F.input(N, 0).Node;
    else if (IsNew && F.isOp(N, op::Const) && !File.isMember(N) &&
             F.node(N).NumInputs == 1)
      N = F.input(N, 0).Node;
    else
      break;
  }
  return N;
}

void Spreader::addControls(NodeId N, unsigned Replica,
                           std::vector<Endpoint> &Inputs) {
  for (Endpoint E : F.controlInputs(N)) {
    TpuRole From = File.role(E.Node);
    if (From == TpuRole::Metadata || From == TpuRole::Pivot)
      continue;
    NodeId To = waitedFor(E.Node);
    if (File.role(To) == TpuRole::Input)
      To = File.operand(To, Replica).Node;
    if (File.role(To) == TpuRole::Shard || File.role(To) == TpuRole::Output)
      error(N, "waits for a result of the computation, not for the whole "
               "computation");
    else
      take(N, {To, ControlPort}, Replica, Inputs);
  }
}

void Spreader::connectMember(NodeId N) {
  for (unsigned R = 0; R < File.replicas(); ++R) {
    std::vector<Endpoint> Inputs;
    for (Endpoint E : F.dataInputs(N))
      take(N, E, R, Inputs);
    addControls(N, R, Inputs);
    // Copy 0 of an update waits for the other copies, since the computation
    // runs on all replicas as a whole.
    if (R == 0 && Vars.isUpdate(F, N))
      for (unsigned Other = 1; Other < File.replicas(); ++Other)
        Inputs.push_back({Now[N][Other], ControlPort});
    L->setInputs(Now[N][R], Inputs);
  }
}

void Spreader::connectExchange(NodeId N, const TpuExchange &X, NodeId Axis) {
  std::vector<Endpoint> Rows;
  for (unsigned R = 0; R < File.replicas(); ++R)
    take(N, X.Of, R, Rows);
  NodeId Joined = Now[N].front();
  if (X.Joined != op::ConcatV2) {
    NodeId Stack = addMerge(F.name(N) + "/stack", op::Pack, F.outputType(X.Of));
    L->setTypeAttr(Stack, "T", F.outputType(X.Of));
    L->setIntAttr(Stack, "axis", 0);
    L->setIntAttr(Stack, "N", File.replicas());
    L->setInputs(Stack, Rows);
    L->setBoolAttr(Joined, "keep_dims", false);
    L->setInputs(Joined, {{Stack, 0}, {Axis, 0}});
    return;
  }
  L->setTypeAttr(Joined, "T", F.outputType(X.Of));
  L->setIntAttr(Joined, "N", File.replicas());
  Rows.push_back({Axis, 0});
  L->setInputs(Joined, Rows);
}

/// Adds the control inputs of the outside node \p N, which waits for the whole
/// computation: all copies of each op that it waits for in the input.
bool Spreader::addRun(NodeId N, std::vector<Endpoint> &Inputs) {
  NodeId Was = In.find(F.name(N));
  bool Waits = Was != NoNode && any_of(In.controlInputs(Was), [&](Endpoint E) {
                 return MemberOf.contains(In.name(E.Node));
               });
  if (!Waits)
    return error(
        N, "waits for the computation, but for none of its ops in the input");
  std::vector<Endpoint> Own;
  for (Endpoint E : F.controlInputs(N))
    if (!File.runsComputation(E.Node))
      take(N, {waitedFor(E.Node), ControlPort}, 0, Own);
  auto Next = Own.begin();
  for (Endpoint E : In.controlInputs(Was)) {
    auto It = MemberOf.find(In.name(E.Node));
    if (It != MemberOf.end())
      for (NodeId Copy : Now[It->second])
        Inputs.push_back({Copy, ControlPort});
    else if (Next != Own.end())
      Inputs.push_back(*Next++);
  }
  Inputs.insert(Inputs.end(), Next, Own.end());
  return true;
}

void Spreader::connectOutside(NodeId N) {
  std::vector<Endpoint> Inputs;
  for (Endpoint E : F.dataInputs(N))
    take(N, E, 0, Inputs);
  bool Runs = any_of(F.controlInputs(N),
                     [&](Endpoint E) { return File.runsComputation(E.Node); });
  if (Runs)
    addRun(N, Inputs);
  else
    addControls(N, 0, Inputs);
  L->setInputs(Now[N].front(), Inputs);
}

/// Finds inserted nodes that nothing reads any more, such as the parts of an
/// exchange and constants with a twin outside. They do not affect values.
void Spreader::findUnused() {
  Unused.assign(F.size(), false);
  std::vector<bool> IsKept(F.size());
  for (const auto &[N, Same] : Twins)
    for (NodeId Of : Same)
      IsKept[Of] = true;
  for (const auto &[N, X] : Exchanges)
    IsKept[X.first.Of.Node] = true;
  std::vector<NodeId> Order = topologicalOrder(F);
  for (NodeId N : reverse(Order)) {
    const OpDef *Def = F.opDef(N);
    bool IsNew =
        !IsKept[N] &&
        (File.role(N) == TpuRole::Member || File.role(N) == TpuRole::Sum ||
         File.role(N) == TpuRole::Input || File.role(N) == TpuRole::Outside) &&
        !File.isOfInput(N) && !F.isOp(N, op::NoOp) &&
        In.find(originOfCopy(F.name(N), Word)) == NoNode;
    auto Counts = [&](Use U) {
      if (Unused[U.User] || Twins.contains(U.User))
        return false;
      if (!F.isData(U) && waitedFor(N) != N)
        return false;
      if (isPassed(U.User) && !F.isOp(U.User, op::IdentityN) &&
          F.input(U) != passedBy({U.User, 0}))
        return false;
      return !Exchanges.contains(U.User) &&
             (File.role(U.User) != TpuRole::Sum || U.Index == 0);
    };
    Unused[N] = Twins.contains(N) ||
                (IsNew && !F.anyUse(N, Counts) &&
                 (File.role(N) == TpuRole::Sum || (Def && !Def->isStateful())));
  }
}

std::unique_ptr<Graph> Spreader::run() {
  if (!File.read())
    return nullptr;
  for (NodeId N = 0; N < F.size(); ++N)
    if (F.isLive(N) && File.isMember(N))
      Bases.insert(File.base(N));
  findTwins();
  if (!checkTwins())
    return nullptr;
  Now.resize(F.size());
  for (NodeId N = 0; N < F.size(); ++N)
    if (F.isLive(N) && File.role(N) == TpuRole::Member && !Twins.contains(N))
      if (auto X = findExchange(F, File, N)) {
        if (isAlone())
          Exchanges[N] = {*X, NoNode};
        else
          makeExchange(N, *X);
      }
  findUnused();
  for (NodeId N = 0; N < F.size(); ++N) {
    if (!F.isLive(N) || Unused[N] || !Now[N].empty())
      continue;
    if (isTaken(N) || isPassed(N))
      continue;
    if (File.role(N) == TpuRole::Member)
      makeMember(N);
    else if (File.role(N) == TpuRole::Sum)
      makeSum(N);
    else if (File.role(N) == TpuRole::Outside)
      makeOutside(N);
  }
  if (Failed)
    return nullptr;
  for (NodeId N = 0; N < F.size(); ++N) {
    if (Now[N].empty())
      continue;
    if (auto It = Exchanges.find(N); It != Exchanges.end() && !isAlone()) {
      connectExchange(N, It->second.first, It->second.second);
    } else if (File.role(N) == TpuRole::Member) {
      connectMember(N);
    } else if (File.role(N) == TpuRole::Sum) {
      std::vector<Endpoint> Inputs;
      for (unsigned R = 0; R < File.replicas(); ++R)
        take(N, F.input(N, 0), R, Inputs);
      L->setInputs(Now[N].front(), Inputs);
    } else {
      connectOutside(N);
    }
  }
  return Failed ? nullptr : std::move(L);
}

} // namespace

std::unique_ptr<Graph> spreadComputation(const Graph &File, const Graph &In,
                                         DiagnosticEngine &Diags) {
  return Spreader(File, In, Diags).run();
}

} // namespace graft
