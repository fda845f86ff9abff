//===- lib/io/inline/Inline.cpp - calls of functions ------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
// Replaces a call by the nodes of its function, with the names `<call>/<node>`
// of TensorFlow's own inliner. The guarantees of a call hold:
//
//   - A node of the body waits for the control inputs of the call, and does not
//     run if the call is dead. For this, nodes of the body without inputs get
//     control inputs. If the call has control inputs, an Identity of each
//     argument gets them, too.
//   - Each reader of an output and each node that waits for the call waits for
//     all effects of the function, even if the output does not need them.
//
// Conditionals and loops are in InlineControl.cpp.
//
//===----------------------------------------------------------------------===//

#include "lib/graph/Walk.h"
#include "lib/io/inline/Inliner.h"
#include "lib/ops/Ops.h"

#include "lib/graph/AttrRun.h"
#include "lib/io/Serialize.h"

#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringSwitch.h"
#include "llvm/Support/FormatVariadic.h"

using namespace llvm;

namespace graft {

static CallKind kindOfOp(StringRef Op) {
  return StringSwitch<CallKind>(Op)
      .Cases(op::PartitionedCall, op::StatefulPartitionedCall, CallKind::Call)
      .Cases(op::If, op::StatelessIf, CallKind::If)
      .Cases(op::Case, op::StatelessCase, CallKind::Case)
      .Cases(op::While, op::StatelessWhile, CallKind::While)
      .Default(CallKind::None);
}

bool mayCall(const Graph &G) {
  for (uint32_t Op = 0; Op < G.numOps(); ++Op)
    // An unknown op may be the name of a function.
    if (!G.opDefOf(Op) ? !G.opNameOf(Op).starts_with("_")
                       : kindOfOp(G.opNameOf(Op)) != CallKind::None)
      return true;
  return false;
}

InlineResult inlineCalls(Graph &G, const InlineOptions &Options) {
  if (!mayCall(G))
    return {};
  return Inliner(G, Options).run();
}

//===----------------------------------------------------------------------===//
// Calls and their functions
//===----------------------------------------------------------------------===//

CallKind Inliner::kindOf(NodeId N) const {
  CallKind Kind = kindOfOp(G.opName(N));
  return Kind == CallKind::None && !G.opDef(N) && Library.find(G.opName(N))
             ? CallKind::Call
             : Kind;
}

/// Returns the node of Options.Like with the name of \p N, or else with the
/// name of copy 0 of \p N.
NodeId Inliner::findLike(NodeId N) const {
  NodeId Found = Options.Like->find(G.name(N));
  return Found != NoNode ? Found
                         : Options.Like->find(LikeScope + G.name(N).str());
}

void Inliner::look(NodeId N, uint32_t Chain) {
  if (kindOf(N) == CallKind::None)
    return;
  if (NodeId Same = Options.Like ? findLike(N) : NoNode;
      Same != NoNode && Options.Like->opName(Same) == G.opName(N))
    return;
  Queue.push_back({N, Chain});
}

std::vector<FunctionRef> Inliner::functions(NodeId N, CallKind Kind) const {
  switch (Kind) {
  case CallKind::None:
    break;
  case CallKind::Call: {
    if (G.opDef(N))
      return {Library.get(G, N, "f")};
    FunctionRef F;
    F.Name = G.opName(N).str();
    F.Def = Library.find(F.Name);
    for (const AttrEntry &A : G.attrs(N))
      F.Attrs[A.Key.str()].ParseFromString(A.Value.str());
    return {F};
  }
  case CallKind::If:
    return {Library.get(G, N, "then_branch"), Library.get(G, N, "else_branch")};
  case CallKind::Case:
    return Library.list(G, N, "branches");
  case CallKind::While:
    return {Library.get(G, N, "cond"), Library.get(G, N, "body")};
  }
  return {};
}

bool Inliner::isInside(StringRef Function, uint32_t Chain) const {
  for (; Chain != 0; Chain = Chains[Chain].Outer)
    if (Chains[Chain].Function == Function)
      return true;
  return false;
}

std::string Inliner::obstacle(NodeId N, CallKind Kind, uint32_t Chain,
                              ArrayRef<FunctionRef> Functions) const {
  // Each branch of a Case is nested in the branch before it.
  constexpr size_t MaxBranches = 1000;
  if (Functions.empty())
    return "it names no function";
  if (Functions.size() > MaxBranches)
    return "it has more than " + std::to_string(MaxBranches) + " branches";
  if (G.boolAttr(N, "_XlaMustCompile").value_or(false))
    return "it is marked _XlaMustCompile";
  bool Selects = Kind == CallKind::If || Kind == CallKind::Case;
  if (Kind == CallKind::If && G.typeAttr(N, "Tcond") != unsigned(DT_BOOL))
    return "its predicate is not a bool";
  unsigned NumArgs = G.node(N).NumData - (Selects ? 1 : 0);
  for (const FunctionRef &F : Functions) {
    if (std::string Why = Library.obstacle(F); !Why.empty())
      return Why;
    if (isInside(F.Name, Chain))
      return "function '" + F.Name + "' calls itself";
    if (static_cast<unsigned>(F.Def->signature().input_arg_size()) != NumArgs)
      return "function '" + F.Name +
             "' takes a different number of arguments than the call has";
  }
  if (Kind == CallKind::While &&
      (NumArgs == 0 || Functions[0].Def->signature().output_arg_size() != 1 ||
       Functions[1].Def->signature().output_arg_size() != int(NumArgs)))
    return "it has no loop variables, or its cond or body returns a wrong "
           "number of tensors";
  if (Selects && any_of(Functions, [&](const FunctionRef &F) {
        return F.Def->signature().output_arg_size() !=
               Functions[0].Def->signature().output_arg_size();
      }))
    return "its branches return different numbers of tensors";
  if (auto Results = G.numOutputs(N);
      Results && Kind != CallKind::While &&
      *Results != unsigned(Functions[0].Def->signature().output_arg_size()))
    return "function '" + Functions[0].Name +
           "' returns a different number of tensors than the call has";
  return "";
}

InlineResult Inliner::run() {
  Chains.push_back({"", 0, NoNode});
  for (NodeId N = 0; N < G.size(); ++N)
    if (G.isLive(N))
      look(N, 0);
  // Bodies add calls at the end of the queue. The order is deterministic and
  // does not change the meaning of the result.
  for (size_t I = 0; I < Queue.size() && Result.Errors.empty(); ++I) {
    auto [N, Outer] = Queue[I];
    CallKind Kind = kindOf(N);
    std::vector<FunctionRef> Functions = functions(N, Kind);
    if (std::string Why = obstacle(N, Kind, Outer, Functions); !Why.empty()) {
      Result.Left.push_back({N, Why});
      continue;
    }
    Device = G.node(N).Device;
    switch (Kind) {
    case CallKind::None:
      break;
    case CallKind::Call:
      call(N, Functions[0], Outer);
      ++Result.Calls;
      break;
    case CallKind::If:
    case CallKind::Case:
      conditional(N, Kind, Functions, Outer);
      ++Result.Branches;
      break;
    case CallKind::While:
      loop(N, Functions, Outer);
      ++Result.Loops;
      break;
    }
  }
  if (!Gone.empty())
    for (NodeId N = 0; N < G.size(); ++N)
      if (G.isLive(N) && G.node(N).Flags & NF_MayHaveClass)
        dropClasses(N);
  return std::move(Result);
}

/// Drops entries of `_class` that name removed calls.
void Inliner::dropClasses(NodeId N) {
  auto Entries = G.stringListAttr(N, "_class");
  if (!Entries)
    return;
  auto IsGone = [&](StringRef Entry) {
    return Entry.consume_front("loc:@") && Gone.contains(Entry);
  };
  size_t Before = Entries->size();
  erase_if(*Entries, IsGone);
  if (Entries->empty())
    G.removeAttr(N, "_class");
  else if (Entries->size() != Before)
    G.setAttr(N, "_class", encodeStringListAttr(*Entries));
}

//===----------------------------------------------------------------------===//
// Nodes
//===----------------------------------------------------------------------===//

NodeId Inliner::add(StringRef Prefix, StringRef Name, StringRef Op,
                    ArrayRef<Endpoint> Inputs, NodeId After,
                    const AttrMap &Attrs) {
  AttrRun Run;
  for (const auto &[Key, Value] : Attrs)
    Run.raw(Key, serialize(Value));
  // The approximate size of a node in memory, without name and attributes.
  constexpr uint64_t Each = 64;
  Made += Each + Prefix.size() + Name.size() + Run.str().size() +
          sizeof(Endpoint) * Inputs.size();
  NodeId N = G.insertNode((Prefix + "/" + Name).str(), Op, Inputs, After, Run);
  G.setDevice(N, G.deviceName(Device));
  return N;
}

Endpoint Inliner::typed(StringRef Prefix, StringRef Name, StringRef Op,
                        ArrayRef<Endpoint> Inputs, NodeId After,
                        AttrMap Attrs) {
  Attrs["T"].set_type(static_cast<tensorflow::DataType>(typeOf(Inputs[0])));
  return {add(Prefix, Name, Op, Inputs, After, Attrs), 0};
}

Inliner::Ends Inliner::controls(NodeId N) const {
  ArrayRef<Endpoint> In = G.controlInputs(N);
  return Ends(In.begin(), In.end());
}

/// Returns control inputs in the loop frame of the call \p N that are dead if N
/// is dead. Nodes of the body without inputs wait for them. Returns none if N
/// has no inputs, or if it waits for no node and no node of the graph can be
/// dead.
Inliner::Ends Inliner::witness(NodeId N) {
  Ends Result = controls(N);
  if (!Result.empty() || G.node(N).NumData == 0)
    return Result;
  for (; OpsSeen < G.numOps() && !CanBeDead; ++OpsSeen) {
    StringRef Name = G.opNameOf(OpsSeen);
    CanBeDead = Name == op::Switch || Name == op::RefSwitch ||
                Name == op::Enter || Name == op::RefEnter;
  }
  if (!CanBeDead)
    return Result;
  Endpoint E = G.input(N, 0);
  // A control edge from a Switch does not show which output is dead. An
  // Identity of the output shows it.
  if (G.opName(E.Node).ends_with(op::Switch))
    E = typed(G.name(N), "input_control_node", op::Identity, E, N);
  return {Endpoint{E.Node, ControlPort}};
}

/// Makes the outputs of \p B wait for its effects.
void Inliner::waitForEffects(Body &B, StringRef Prefix, NodeId After) {
  if (B.Effects.empty())
    return;
  for (auto [I, E] : enumerate(B.Outputs)) {
    Ends Inputs{E};
    Inputs.append(B.Effects.begin(), B.Effects.end());
    E = typed(Prefix, ("output_" + Twine(I)).str(), op::Identity, Inputs,
              After);
  }
}

//===----------------------------------------------------------------------===//
// Calls
//===----------------------------------------------------------------------===//

/// Returns the maximum size in bytes of the nodes added to this graph.
uint64_t Inliner::limit() const {
  uint64_t Bytes = 0;
  for (NodeId N = 0; N < G.size(); ++N)
    Bytes += G.node(N).NameSize + G.node(N).AttrSize;
  for (StringRef Field : G.otherFields())
    Bytes += Field.size();
  return (16 << 20) + 64 * Bytes;
}

/// Reports too many added nodes, with the name of the outermost function.
Inliner::Body Inliner::exhausted(const FunctionRef &F, uint32_t Chain,
                                 NodeId Call) {
  std::string Outermost = F.Name;
  for (; Chain != 0; Chain = Chains[Chain].Outer) {
    Outermost = Chains[Chain].Function;
    Call = Chains[Chain].Call;
  }
  if (Result.Errors.empty())
    Result.Errors.push_back(
        {G.name(Call).str(),
         "function '" + Outermost +
             "' cannot be inlined: the inlined nodes would need more than " +
             std::to_string(Limit >> 20) +
             " MiB, the limit for a graph of this size; mark a function that "
             "is called often with attribute _noinline"});
  Body B;
  B.Outputs.assign(F.Def->signature().output_arg_size(), {Call, 0});
  return B;
}

/// Returns the type that the signature of \p F gives \p A, or DT_INVALID.
static unsigned declaredType(const FunctionRef &F,
                             const tensorflow::OpDef::ArgDef &A) {
  auto It = F.Attrs.find(A.type_attr());
  if (!A.type_attr().empty() && It == F.Attrs.end())
    return DT_INVALID;
  unsigned Type = A.type_attr().empty() ? A.type() : It->second.type();
  return Type > RefTypeOffset ? Type - RefTypeOffset : Type;
}

/// Returns the type of \p E, or DT_INVALID if neither the op table nor the
/// library defines it. The library defines the types of calls that are not
/// inlined yet.
unsigned Inliner::typeOf(Endpoint E) const {
  if (G.opDef(E.Node))
    return G.outputType(E.Node, E.Port);
  if (kindOf(E.Node) != CallKind::Call)
    return DT_INVALID;
  FunctionRef F = functions(E.Node, CallKind::Call).front();
  int Port = static_cast<int>(E.Port);
  return F.Def && Port < F.Def->signature().output_arg_size()
             ? declaredType(F, F.Def->signature().output_arg(Port))
             : unsigned(DT_INVALID);
}

/// Reports an error unless \p E has the type \p Want. \p Who and \p What name
/// its node and \p E in the message. No other check finds this error, because
/// readers of the result of a call expect the type that the call declares.
void Inliner::wantType(StringRef Who, Endpoint E, unsigned Want,
                       const Twine &What) {
  unsigned Type = typeOf(E);
  if (Type == DT_INVALID || Want == DT_INVALID || Type == Want ||
      !Result.Errors.empty())
    return;
  auto Name = [](unsigned T) {
    auto As = static_cast<tensorflow::DataType>(T);
    return tensorflow::DataType_IsValid(As) ? tensorflow::DataType_Name(As)
                                            : std::to_string(T);
  };
  Result.Errors.push_back(
      {Who.str(), (What + " is '" + G.name(E.Node) + ":" + Twine(E.Port) +
                   "' of type " + Name(Type) + ", but must be " + Name(Want))
                      .str()});
}

/// Returns a flag for each node of \p Def: true if a result or an effect needs
/// the node. TensorFlow does not run other nodes, and no user can fetch them.
static std::vector<bool> findNeeded(const tensorflow::FunctionDef &Def) {
  StringMap<unsigned> IndexOf;
  for (const tensorflow::NodeDef &Node : Def.node_def())
    IndexOf[Node.name()] = static_cast<unsigned>(IndexOf.size());
  auto Add = [&](StringRef Text, std::vector<unsigned> &To) {
    Text.consume_front("^");
    if (auto It = IndexOf.find(Text.split(':').first); It != IndexOf.end())
      To.push_back(It->second);
  };
  std::vector<unsigned> Ends;
  for (const auto &[Name, Source] : Def.ret())
    Add(Source, Ends);
  for (const auto &[Name, Source] : Def.control_ret())
    Add(Source, Ends);
  for (const tensorflow::NodeDef &Node : Def.node_def())
    if (const OpDef *Op = findOp(Node.op()); !Op || Op->isStateful())
      Add(Node.name(), Ends);
  std::vector<bool> Needed(IndexOf.size());
  walkFrom(Ends, Needed, [&](unsigned At, std::vector<unsigned> &Next) {
    for (const std::string &Input : Def.node_def(static_cast<int>(At)).input())
      Add(Input, Next);
  });
  return Needed;
}

/// Adds the nodes of \p F, which read \p Args.
Inliner::Body Inliner::instantiate(const FunctionRef &F,
                                   ArrayRef<Endpoint> Args, const Site &At) {
  const tensorflow::FunctionDef &Def = *F.Def;
  auto Chain = static_cast<uint32_t>(Chains.size());
  Chains.push_back({F.Name, At.Chain, At.After});
  StringMap<Endpoint> ArgOf;
  for (auto [Arg, E] : zip(Def.signature().input_arg(), Args)) {
    ArgOf[Arg.name()] = E;
    wantType(G.name(At.After), E, declaredType(F, Arg),
             "argument '" + Twine(Arg.name()) + "' of function '" + F.Name +
                 "'");
  }
  StringMap<unsigned> IndexOf;
  for (const tensorflow::NodeDef &Node : Def.node_def())
    IndexOf[Node.name()] = static_cast<unsigned>(IndexOf.size());
  std::vector<NodeId> Nodes;
  std::vector<AttrMap> Attrs;
  std::string Prefix = At.Prefix.str();
  std::vector<bool> Needed = findNeeded(Def);
  for (const tensorflow::NodeDef &Node : Def.node_def()) {
    if (!Needed[Nodes.size()]) {
      Nodes.push_back(NoNode);
      Attrs.emplace_back();
      continue;
    }
    if (isExhausted())
      return exhausted(F, At.Chain, At.After);
    AttrMap Its = FunctionLibrary::attrsOf(Node, F.Attrs);
    // Names of nodes of the body have no meaning in the graph.
    if (auto It = Its.find("_class"); It != Its.end()) {
      auto *List = It->second.mutable_list()->mutable_s();
      for (int I = List->size(); I-- > 0;) {
        StringRef With((*List)[I]);
        if (With.consume_front("loc:@") && IndexOf.contains(With))
          (*List)[I] = "loc:@" + Prefix + "/" + With.str();
        else
          List->DeleteSubrange(I, 1);
      }
      if (List->empty())
        Its.erase(It);
    }
    // Each call has its own frame.
    if (auto It = Its.find("frame_name"); It != Its.end())
      It->second.set_s(Prefix + "/" + It->second.s());
    // The attribute output_shapes contains the global batch size, so its shapes
    // become unknown. No check is lost, since a conditional of the same
    // function made the value.
    if (Node.op() == op::OptionalGetValue)
      for (auto &Shape :
           *Its["output_shapes"].mutable_list()->mutable_shape()) {
        Shape.clear_dim();
        Shape.set_unknown_rank(true);
      }
    NodeId N = add(Prefix, Node.name(), Node.op(), {}, At.After, Its);
    if (!Node.device().empty())
      G.setDevice(N, Node.device());
    Nodes.push_back(N);
    Attrs.push_back(std::move(Its));
  }
  auto Resolve = [&](StringRef Text) -> Endpoint {
    bool IsControl = Text.consume_front("^");
    SmallVector<StringRef, 3> Parts;
    Text.split(Parts, ':');
    if (auto It = ArgOf.find(Parts[0]); It != ArgOf.end())
      return IsControl ? Endpoint{It->second.Node, ControlPort} : It->second;
    auto It = IndexOf.find(Parts[0]);
    if (It != IndexOf.end() && IsControl)
      return {Nodes[It->second], ControlPort};
    unsigned Index = 0;
    if (It != IndexOf.end() && Parts.size() > 1 &&
        (Parts.size() == 2 || !Parts[2].getAsInteger(10, Index))) {
      NodeId N = Nodes[It->second];
      if (auto Port =
              Library.portOf(G.opName(N), Attrs[It->second], Parts[1], Index))
        return {N, *Port};
    }
    Result.Errors.push_back({Prefix, "function '" + F.Name +
                                         "' has no node, argument or output '" +
                                         Text.str() + "'"});
    return {At.After, 0};
  };
  for (auto [Node, N] : zip(Def.node_def(), Nodes)) {
    if (N == NoNode)
      continue;
    Ends Inputs;
    for (const std::string &Input : Node.input())
      Inputs.push_back(Resolve(Input));
    if (Inputs.empty())
      Inputs = At.Pivot;
    if (!is_sorted(Inputs, [](Endpoint A, Endpoint B) {
          return A.isControl() < B.isControl();
        }))
      Result.Errors.push_back(
          {Prefix, "function '" + F.Name +
                       "' has a node with a data input after a control input"});
    else
      G.setInputs(N, Inputs);
  }
  Body B;
  for (const auto &Arg : Def.signature().output_arg()) {
    B.Outputs.push_back(Resolve(Def.ret().at(Arg.name())));
    wantType(G.name(At.After), B.Outputs.back(), declaredType(F, Arg),
             "result '" + Twine(Arg.name()) + "' of function '" + F.Name + "'");
  }
  if (Library.hasEffects(Def)) {
    // Old functions do not list the nodes that must run. Then all nodes with
    // effects must run.
    for (const std::string &Name : Def.signature().control_output())
      if (auto It = Def.control_ret().find(Name); It != Def.control_ret().end())
        B.Effects.push_back(Resolve("^" + It->second));
    if (B.Effects.empty())
      for (NodeId N : Nodes)
        if (const OpDef *Op = N == NoNode ? nullptr : G.opDef(N);
            N != NoNode && (!Op || Op->isStateful()))
          B.Effects.push_back({N, ControlPort});
  }
  for (NodeId N : Nodes)
    if (N != NoNode)
      look(N, Chain);
  return B;
}

void Inliner::call(NodeId N, const FunctionRef &F, uint32_t Chain) {
  ArrayRef<Endpoint> In = G.dataInputs(N);
  Ends Args(In.begin(), In.end()), Controls = controls(N);
  std::string Prefix = G.name(N).str();
  // The body must not run before the control inputs of the call.
  if (!Controls.empty())
    for (auto [I, E] : enumerate(Args)) {
      Ends Inputs{E};
      Inputs.append(Controls.begin(), Controls.end());
      E = typed(Prefix, ("input_" + Twine(I)).str(), op::Identity, Inputs, N);
    }
  Body B = instantiate(F, Args, {Prefix, N, Chain, witness(N)});
  waitForEffects(B, Prefix, N);
  replace(N, B);
}

/// Replaces the call \p N by \p B in all its users. A node with the name of the
/// call stays if the call is a result or a user asks for the name.
void Inliner::replace(NodeId N, const Body &B) {
  SmallVector<unsigned, 4> Wanted = G.outputTypes(N);
  Wanted.resize(B.Outputs.size(), DT_INVALID);
  for (auto [Port, E] : enumerate(B.Outputs))
    wantType(G.name(N), E, Wanted[Port],
             "result " + Twine(Port) + " of this call");
  for (const Use &U : G.uses(N))
    if (uint32_t Port = G.input(U).Port;
        G.isData(U) && Port >= B.Outputs.size())
      Result.Errors.push_back(
          {G.name(U.User).str(),
           formatv("reads output {0} of '{1}', whose function has only {2}",
                   Port, G.name(N), B.Outputs.size())
               .str()});
  // After an error in the body the call stays.
  if (!Result.Errors.empty())
    return;
  bool HadUses = G.hasUses(N);
  bool HasControlUses = false;
  for (const Use &U : G.uses(N))
    if (uint32_t Port = G.input(U).Port; G.isData(U) && Port < B.Outputs.size())
      G.setInput(U.User, U.Index, B.Outputs[Port]);
  SmallVector<Use, 8> Waiting = G.uses(N);
  for (const Use &U : Waiting)
    HasControlUses |= U.Index >= G.node(U.User).NumData;
  // Waiting for a call means waiting for its effects and outputs.
  Ends Done = B.Effects;
  if (DenseSet<NodeId> Seen; Done.empty())
    for (Endpoint E : B.Outputs)
      if (Seen.insert(E.Node).second)
        Done.push_back({E.Node, ControlPort});
  if (Done.empty())
    Done = controls(N);
  bool IsResult = !HadUses || (Options.Like ? findLike(N) != NoNode
                                            : Options.Kept.contains(G.name(N)));
  if (HasControlUses && !B.Outputs.empty()) {
    NodeId All = add(G.name(N), "output_control_node", op::NoOp, Done, N);
    for (const Use &U : Waiting)
      G.setInput(U.User, U.Index, {All, ControlPort});
  } else if (HasControlUses) {
    IsResult = true;
  }
  if (!IsResult) {
    Gone.insert(G.name(N));
    G.setInputs(N, {});
    G.remove(N);
    return;
  }
  // The node stays, with another op.
  for (const AttrEntry &A : G.attrs(N))
    G.removeAttr(N, A.Key);
  if (B.Outputs.empty()) {
    G.setOp(N, op::NoOp);
    G.setInputs(N, Done);
    return;
  }
  Ends Inputs(B.Outputs.begin(), B.Outputs.end());
  Inputs.append(B.Effects.begin(), B.Effects.end());
  std::string Types;
  for (Endpoint E : B.Outputs)
    Types += static_cast<char>(G.outputType(E.Node, E.Port));
  bool Single = B.Outputs.size() == 1;
  G.setOp(N, Single ? op::Identity : op::IdentityN);
  G.setAttr(N, "T",
            Single ? encodeTypeAttr(static_cast<uint8_t>(Types[0]))
                   : encodeTypeListAttr(Types));
  G.setInputs(N, Inputs);
}

} // namespace graft
