//===- lib/program/forms/Messages.cpp - numbered messages -------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "lib/program/forms/Messages.h"

#include "lib/graph/DeviceName.h"
#include "lib/io/Serialize.h"
#include "lib/ops/Ops.h"
#include "lib/program/forms/WorkerParts.h"

#include "tensorflow/core/framework/function.pb.h"

#include "llvm/ADT/STLExtras.h"

#include <algorithm>

using namespace llvm;

namespace graft {
namespace {

/// Run numbers are multiples of this constant.
constexpr int64_t Spacing = 1024;
/// The least growth of run numbers per second. It is more than Spacing times
/// the number of runs in a second.
constexpr int64_t PerSecond = int64_t(1) << 30;

std::string withNumber(StringRef Types) {
  return std::string(1, static_cast<char>(DT_INT64)) + Types.str();
}

/// Returns the full name that the runtime uses for the device \p Name.
std::string inReplica(StringRef Name) {
  DeviceName D = DeviceName::parse(Name).value_or(DeviceName());
  D.Replica = D.Replica.value_or(0);
  return D.str();
}

void setType(tensorflow::NodeDef &N, const char *Key, unsigned Type) {
  (*N.mutable_attr())[Key].set_type(static_cast<tensorflow::DataType>(Type));
}

/// Writes a function with an unused argument for the run number, so that calls
/// wait for the number.
struct FunctionWriter {
  explicit FunctionWriter(const std::string &Name) {
    tensorflow::OpDef &Its = *Def.mutable_signature();
    Its.set_name(Name);
    Its.set_is_stateful(true);
    tensorflow::OpDef::ArgDef &Run = *Its.add_input_arg();
    Run.set_name("run");
    Run.set_type(tensorflow::DT_INT64);
  }
  tensorflow::NodeDef &add(const std::string &Name, StringRef Op) {
    tensorflow::NodeDef &N = *Def.add_node_def();
    N.set_name(Name);
    N.set_op(Op.str());
    return N;
  }
  void result(const std::string &Name, unsigned Type,
              const std::string &Value) {
    tensorflow::OpDef::ArgDef &Its = *Def.mutable_signature()->add_output_arg();
    Its.set_name(Name);
    Its.set_type(static_cast<tensorflow::DataType>(Type));
    (*Def.mutable_ret())[Name] = Value;
  }

  tensorflow::FunctionDef Def;
};

SmallVector<Endpoint, 8> inputsOf(ArrayRef<Endpoint> Values,
                                  ArrayRef<NodeId> After) {
  SmallVector<Endpoint, 8> Inputs(Values);
  for (NodeId N : After)
    if (N != NoNode && !is_contained(Inputs, Endpoint{N, ControlPort}))
      Inputs.push_back({N, ControlPort});
  return Inputs;
}

} // namespace

//===----------------------------------------------------------------------===//
// Single nodes
//===----------------------------------------------------------------------===//

NodeId Messages::add(const Twine &Name, StringRef Op, ArrayRef<Endpoint> Inputs,
                     const AttrRun &Attrs, StringRef Device) {
  NodeId N =
      G.insertNode((P.Scope + "/" + Name).str(), Op, Inputs, After, Attrs);
  G.setDevice(N, Device);
  return N;
}

NodeId Messages::ints(const Twine &Name, ArrayRef<int64_t> Values,
                      StringRef Device, bool Scalar) {
  SmallVector<int64_t, 1> Shape;
  if (!Scalar)
    Shape.push_back(static_cast<int64_t>(Values.size()));
  AttrRun Attrs;
  Attrs.type("dtype", DT_INT64)
      .raw("value", encodeIntTensor(DT_INT64, Shape, Values));
  return add(Name, op::Const, {}, Attrs, Device);
}

NodeId Messages::of(const Twine &Name, StringRef Op, ArrayRef<Endpoint> Inputs,
                    StringRef Device, unsigned Type) {
  AttrRun Attrs;
  if (Type != DT_INVALID)
    Attrs.type("T", Type);
  return add(Name, Op, Inputs, Attrs, Device);
}

NodeId Messages::merge(const Twine &Name, Endpoint A, Endpoint B,
                       StringRef Device, unsigned Type) {
  AttrRun Attrs;
  Attrs.integer("N", 2).type("T", Type);
  return add(Name, op::Merge, {A, B}, Attrs, Device);
}

NodeId Messages::table(StringRef Name, StringRef Device) {
  auto [It, New] = Known.try_emplace(Name);
  if (New) {
    AttrRun Attrs;
    Attrs.string("container", "")
        .type("key_dtype", DT_INT64)
        .string("shared_name", (P.Scope + "/" + Name).str())
        .boolean("use_node_name_sharing", false)
        .type("value_dtype", DT_INT64);
    It->second = add(Name, op::MutableHashTableV2, {}, Attrs, Device);
  }
  return It->second;
}

NodeId Messages::state() { return table("runs", P.Home); }

/// Returns a constant that several nodes share, on the device of the state.
NodeId Messages::constant(StringRef Name, int64_t Value) {
  auto [It, New] = Known.try_emplace(Name);
  if (New)
    It->second = ints(Name, Value, P.Home);
  return It->second;
}

NodeId Messages::find(const Twine &Name, NodeId Table, NodeId Keys,
                      NodeId Default, ArrayRef<NodeId> After,
                      StringRef Device) {
  AttrRun Attrs;
  Attrs.type("Tin", DT_INT64).type("Tout", DT_INT64);
  return add(Name, op::LookupTableFindV2,
             inputsOf({{Table, 0}, {Keys, 0}, {Default, 0}}, After), Attrs,
             Device);
}

NodeId Messages::insert(const Twine &Name, NodeId Table, NodeId Keys,
                        Endpoint Values, ArrayRef<NodeId> After,
                        StringRef Device) {
  AttrRun Attrs;
  Attrs.type("Tin", DT_INT64).type("Tout", DT_INT64);
  return add(Name, op::LookupTableInsertV2,
             inputsOf({{Table, 0}, {Keys, 0}, Values}, After), Attrs, Device);
}

NodeId Messages::queue(const MessageQueue &Q) {
  auto [It, New] = Known.try_emplace(Q.Name);
  if (New) {
    AttrRun Attrs;
    Attrs.integer("capacity", -1)
        .raw("component_types", encodeTypeListAttr(withNumber(Q.Types)))
        .string("container", "")
        .string("shared_name", (P.Scope + "/" + Q.Name));
    It->second = add(Q.Name, op::FIFOQueueV2, {}, Attrs, Q.Device);
  }
  return It->second;
}

NodeId Messages::enqueue(const Twine &Name, const MessageQueue &Q,
                         ArrayRef<Endpoint> Values, ArrayRef<NodeId> After) {
  AttrRun Attrs;
  Attrs.raw("Tcomponents", encodeTypeListAttr(withNumber(Q.Types)))
      .integer("timeout_ms", -1);
  SmallVector<Endpoint, 8> Inputs{{queue(Q), 0}};
  Inputs.append(Values.begin(), Values.end());
  return add(Q.Name + "/" + Name, op::QueueEnqueueV2, inputsOf(Inputs, After),
             Attrs, Q.Device);
}

NodeId Messages::dequeue(const Twine &Name, const MessageQueue &Q,
                         Endpoint Queue, ArrayRef<NodeId> After) {
  AttrRun Attrs;
  Attrs.raw("component_types", encodeTypeListAttr(withNumber(Q.Types)))
      .integer("timeout_ms", -1);
  return add(Q.Name + "/" + Name, op::QueueDequeueV2, inputsOf(Queue, After),
             Attrs, Q.Device);
}

/// Calls \p Function on the device \p There, with results of \p Types. The call
/// fails if the device's process was restarted after this session was created.
NodeId Messages::call(const Twine &Name, const std::string &Function,
                      StringRef Types, StringRef There, Endpoint When,
                      StringRef Device) {
  AttrRun Text, Call;
  Text.type("dtype", DT_STRING)
      .raw("value", encodeStringTensor(inReplica(There)));
  tensorflow::AttrValue Its;
  Its.mutable_func()->set_name(Function);
  std::string Number(1, static_cast<char>(DT_INT64));
  Call.raw("Tin", encodeTypeListAttr(Number))
      .raw("Tout", encodeTypeListAttr(Types))
      .raw("f", serialize(Its));
  NodeId Target = add(Name + "/where", op::Const, {}, Text, Device);
  return add(Name, op::RemoteCall, {Endpoint{Target, 0}, When}, Call, Device);
}

/// Asks the chief's process if it has begun a run. The result is positive if it
/// has.
NodeId Messages::ask(const Twine &Name, Endpoint When, StringRef Device) {
  std::string Function = function("begun_by_chief");
  if (std::string &Text = Functions[Function]; Text.empty()) {
    FunctionWriter F(Function);
    tensorflow::NodeDef &Table = F.add("own", op::MutableHashTableV2);
    setType(Table, "key_dtype", DT_INT64);
    setType(Table, "value_dtype", DT_INT64);
    (*Table.mutable_attr())["container"].set_s("");
    (*Table.mutable_attr())["shared_name"].set_s(P.Scope + "/own_0");
    (*Table.mutable_attr())["use_node_name_sharing"].set_b(false);
    tensorflow::NodeDef &Zero = F.add("zero", op::Const);
    setType(Zero, "dtype", DT_INT64);
    tensorflow::TensorProto &Value =
        *(*Zero.mutable_attr())["value"].mutable_tensor();
    Value.set_dtype(tensorflow::DT_INT64);
    Value.mutable_tensor_shape();
    Value.add_int64_val(0);
    tensorflow::NodeDef &Find = F.add("find", op::LookupTableFindV2);
    setType(Find, "Tin", DT_INT64);
    setType(Find, "Tout", DT_INT64);
    Find.add_input("own:table_handle:0");
    Find.add_input("zero:output:0");
    Find.add_input("zero:output:0");
    F.result("begun", DT_INT64, "find:values:0");
    Text = serialize(F.Def);
  }
  return call(Name, Function, std::string(1, char(DT_INT64)), P.Chief, When,
              Device);
}

/// Adds an assertion that fails with the text \p Why unless \p Good.
NodeId Messages::check(const Twine &Name, Endpoint Good, StringRef Why,
                       ArrayRef<NodeId> After, StringRef Device) {
  AttrRun Text, Assert;
  Text.type("dtype", DT_STRING).raw("value", encodeStringTensor(Why));
  Assert.raw("T", encodeTypeListAttr(std::string(1, char(DT_STRING))))
      .integer("summarize", 3);
  NodeId Says = add(Name + "/why", op::Const, {}, Text, Device);
  return add(Name + "/check", op::Assert,
             inputsOf({Good, Endpoint{Says, 0}}, After), Assert, Device);
}

/// Receives the first message of \p Q whose number is at least \p Low.
SmallVector<Endpoint, 8> Messages::take(const MessageQueue &Q, Endpoint Low) {
  NodeId Queue = queue(Q);
  std::string Types = withNumber(Q.Types);
  NodeId Got = dequeue("first", Q, {Queue, 0}, {});
  auto In = [&](const Twine &Name, Endpoint Value, unsigned Type,
                bool Constant) {
    AttrRun Attrs;
    Attrs.type("T", Type)
        .string("frame_name", P.Scope + "/" + Q.Name + "/drop")
        .boolean("is_constant", Constant)
        .integer("parallel_iterations", 1);
    return Endpoint{add(Q.Name + "/" + Name, op::Enter, Value, Attrs, Q.Device),
                    0};
  };
  Endpoint InQueue = In("queue", {Queue, 0}, DT_RESOURCE, true),
           InLow = In("low", Low, DT_INT64, true);
  SmallVector<NodeId, 8> Merges;
  for (auto [I, Type] : enumerate(Types)) {
    auto T = static_cast<unsigned char>(Type);
    Endpoint Start = In("enter", {Got, static_cast<uint32_t>(I)}, T, false);
    Merges.push_back(merge(Q.Name + "/merge", Start, Start, Q.Device, T));
  }
  NodeId Old =
      of(Q.Name + "/is_old", op::Less, {{Merges[0], 0}, InLow}, Q.Device);
  NodeId Cond = of(Q.Name + "/cond", op::LoopCond, Endpoint{Old, 0}, Q.Device,
                   DT_INVALID);
  SmallVector<Endpoint, 8> Taken;
  NodeId Again = NoNode;
  for (auto [I, Type] : enumerate(Types)) {
    auto T = static_cast<unsigned char>(Type);
    NodeId Choice = of(Q.Name + "/switch", op::Switch,
                       {{Merges[I], 0}, {Cond, 0}}, Q.Device, T);
    if (I == 0) {
      NodeId Body =
          of(Q.Name + "/body", op::Identity, Endpoint{Choice, 1}, Q.Device, T);
      Again = dequeue("again", Q, InQueue, Body);
    }
    NodeId Next = of(Q.Name + "/next", op::NextIteration,
                     Endpoint{Again, static_cast<uint32_t>(I)}, Q.Device, T);
    G.setInput(Merges[I], 1, {Next, 0});
    Taken.push_back(
        {of(Q.Name + "/exit", op::Exit, Endpoint{Choice, 0}, Q.Device, T), 0});
  }
  return Taken;
}

/// Returns \p Value after the nodes \p After have run. If \p If is true, first
/// assigns the values of the primaries to \p Copies.
Endpoint Messages::refresh(const Twine &Name, Endpoint Value, Endpoint If,
                           ArrayRef<NodeId> After, ArrayRef<OwnCopy> Copies) {
  if (Copies.empty())
    return Value;
  NodeId Choice = of(Name, op::Switch, inputsOf({Value, If}, After), P.Own);
  NodeId Taken = of(Name + "/taken", op::Identity, Endpoint{Choice, 1}, P.Own);
  // By device: the copies whose primaries a function reads.
  std::map<std::string, SmallVector<const OwnCopy *, 8>> There;
  std::map<const OwnCopy *, Endpoint> Values;
  for (const OwnCopy &C : Copies)
    if (!C.SharedName.empty())
      There[C.PrimaryDevice].push_back(&C);
  for (const auto &[Device, List] : There) {
    std::string Function =
        function(Name + "_" + Twine(Functions.size()) + "_values");
    FunctionWriter F(Function);
    std::string Types;
    for (auto [I, C] : enumerate(List)) {
      std::string Number = std::to_string(I);
      tensorflow::NodeDef &Handle =
          F.add("variable_" + Number, op::VarHandleOp);
      setType(Handle, "dtype", C->Type);
      (*Handle.mutable_attr())["container"].set_s(C->Container);
      (*Handle.mutable_attr())["shared_name"].set_s(C->SharedName);
      (*Handle.mutable_attr())["shape"].mutable_shape()->set_unknown_rank(true);
      tensorflow::NodeDef &Read = F.add("read_" + Number, op::ReadVariableOp);
      setType(Read, "dtype", C->Type);
      Read.add_input("variable_" + Number + ":resource:0");
      F.result("value_" + Number, C->Type, "read_" + Number + ":value:0");
      Types += static_cast<char>(C->Type);
    }
    Functions[Function] = serialize(F.Def);
    NodeId Call =
        call(Name + "/values", Function, Types, Device, {Taken, 0}, P.Own);
    for (auto [I, C] : enumerate(List))
      Values[C] = {Call, static_cast<uint32_t>(I)};
  }
  SmallVector<NodeId, 8> Done;
  for (const OwnCopy &C : Copies) {
    AttrRun Read, Assign;
    Read.type(C.PrimaryIsHandle ? "dtype" : "T", C.Type);
    Assign.type(C.IsHandle ? "dtype" : "T", C.Type);
    auto It = Values.find(&C);
    if (It == Values.end())
      It = Values
               .emplace(&C, Endpoint{add(Name + "/value",
                                         C.PrimaryIsHandle ? op::ReadVariableOp
                                                           : op::Identity,
                                         {C.Primary, {Taken, ControlPort}},
                                         Read, C.PrimaryDevice),
                                     0})
               .first;
    Done.push_back(add(Name + "/copy",
                       C.IsHandle ? op::AssignVariableOp : op::Assign,
                       {C.Copy, It->second}, Assign, C.Device));
  }
  NodeId All = of(Name + "/copied", op::Identity,
                  inputsOf(Endpoint{Taken, 0}, Done), P.Own);
  return {merge(Name + "/either", {Choice, 0}, {All, 0}, P.Own), 0};
}

//===----------------------------------------------------------------------===//
// The number of a run
//===----------------------------------------------------------------------===//

MessageQueue Messages::beginQueue(unsigned Worker) const {
  return {"begin_" + std::to_string(Worker), P.Home, ""};
}

/// Puts a mark into \p Q: messages with numbers below \p Key are obsolete.
NodeId Messages::mark(const MessageQueue &Q, Endpoint Key) {
  SmallVector<Endpoint, 8> Values{Key};
  for (char Type : Q.Types) {
    auto T = static_cast<unsigned char>(Type);
    AttrRun Attrs;
    Attrs.type("dtype", T).raw("value", encodeIntTensor(T, {0}, {}));
    Values.push_back(
        {add(Q.Name + "/none", op::Const, {}, Attrs, Q.Device), 0});
  }
  return enqueue("mark", Q, Values, {});
}

/// Returns a number above the numbers of all earlier runs. Puts marks for
/// waiting workers if the last run did not end or did not record its names, or
/// if a restarted worker joined that run.
Endpoint Messages::chiefBegins(unsigned Names, ArrayRef<MessageQueue> Marked) {
  NodeId Zero = constant("zero", 0), One = constant("one", 1),
         First = constant("last_key", LastNumber);
  NodeId Seconds = add("seconds", op::Timestamp, {}, AttrRun(), P.Home);
  AttrRun Cast;
  Cast.type("DstT", DT_INT64)
      .type("SrcT", DT_DOUBLE)
      .boolean("Truncate", false);
  Seconds = add("time", op::Cast, Endpoint{Seconds, 0}, Cast, P.Home);
  NodeId Scale = ints("per_second", PerSecond, P.Home);
  Seconds = of("clock", op::Mul, {{Seconds, 0}, {Scale, 0}}, P.Home);
  NodeId Last = find("last", state(), First, Zero, {}, P.Home);
  NodeId Space = ints("spacing", Spacing, P.Home);
  NodeId Next = of("after_last", op::Add, {{Last, 0}, {Space, 0}}, P.Home);
  Endpoint Now{of("next", op::Maximum, {{Seconds, 0}, {Next, 0}}, P.Home), 0};
  NodeId IsKnown = insert("known", state(), First, Now, {}, P.Home);

  SmallVector<int64_t, 8> Fresh, Begun, Ended, None;
  for (unsigned I = 1; I < P.Workers; ++I)
    Fresh.push_back(keyStartedAgain(I));
  for (unsigned I = 0; I < Names; ++I) {
    Begun.push_back(keyBegun(I));
    Ended.push_back(keyEnded(I));
  }
  None.assign(Fresh.size(), 0);
  NodeId FreshKeys = ints("workers", Fresh, P.Home, false);
  NodeId Axis = ints("axis", 0, P.Home, false);
  auto Any = [&](const Twine &Name, NodeId Of) {
    AttrRun Attrs;
    Attrs.type("Tidx", DT_INT64).boolean("keep_dims", false);
    return add(Name, op::Any, {{Of, 0}, {Axis, 0}}, Attrs, P.Home);
  };
  NodeId Again = find("again", state(), FreshKeys, Zero, IsKnown, P.Home);
  Again = Any("any_again",
              of("is_again", op::Greater, {{Again, 0}, {Zero, 0}}, P.Home));
  NodeId Is = find("begun", state(), ints("begun_names", Begun, P.Home, false),
                   Zero, IsKnown, P.Home);
  NodeId Was = find("ended", state(), ints("ended_names", Ended, P.Home, false),
                    Zero, IsKnown, P.Home);
  Is = of("is_last", op::GreaterEqual, {{Is, 0}, {Last, 0}}, P.Home);
  Was = of("is_open", op::Less, {{Was, 0}, {Last, 0}}, P.Home);
  NodeId Open = Any("any_open", of("not_ended", op::LogicalAnd,
                                   {{Is, 0}, {Was, 0}}, P.Home, DT_INVALID));
  NodeId Said = of("not_said", op::LogicalNot, Endpoint{Any("any_last", Is), 0},
                   P.Home, DT_INVALID);
  Open =
      of("not_over", op::LogicalOr, {{Said, 0}, {Open, 0}}, P.Home, DT_INVALID);
  NodeId Tell =
      of("tell", op::LogicalOr, {{Again, 0}, {Open, 0}}, P.Home, DT_INVALID);

  NodeId Choice = of("choice", op::Switch, {Now, {Tell, 0}}, P.Home);
  Endpoint Told{of("told", op::Identity, Endpoint{Choice, 1}, P.Home), 0};
  Endpoint Below{of("below", op::Sub, {Told, {One, 0}}, P.Home), 0};
  SmallVector<NodeId, 8> Done{
      insert("forget_again", state(), FreshKeys,
             {ints("none_again", None, P.Home, false), 0}, Told.Node, P.Home)};
  for (const MessageQueue &Q : Marked)
    Done.push_back(mark(Q, Below));
  NodeId All = of("all_told", op::Identity, inputsOf(Told, Done), P.Home);
  NodeId Either = merge("either", {Choice, 0}, {All, 0}, P.Home);
  SmallVector<NodeId, 8> Begins;
  for (unsigned I = 1; I < P.Workers; ++I)
    Begins.push_back(enqueue("put", beginQueue(I), Now, IsKnown));
  if (!isAtChief())
    Here =
        insert("own_begin", table("own_0", P.Own), ints("own_zero", 0, P.Own),
               {ints("own_one", 1, P.Own), 0}, {}, P.Own);
  return {of("number", op::Identity, inputsOf({Endpoint{Either, 0}}, Begins),
             P.Home),
          0};
}

/// Returns the number of the run that the chief has begun. A worker whose last
/// run did not end joins the chief's run again, unless that run is closed.
Endpoint Messages::workerBegins(ArrayRef<MessageQueue> Marked) {
  NodeId Zero = constant("zero", 0), One = constant("one", 1),
         First = constant("last_key", LastNumber);
  MessageQueue Q = beginQueue(P.Mine);
  NodeId JoinedKey = ints("joined_key", keyJoined(P.Mine), P.Home);
  NodeId Before = find("joined", state(), JoinedKey, Zero, {}, P.Home);
  NodeId Closed = find("closed", state(), constant("closed_key", keyClosed()),
                       Zero, {}, P.Home);
  // Receive the chief's numbers up to a run that this worker has not joined.
  NodeId Floor = of("over", op::Maximum, {{Before, 0}, {Closed, 0}}, P.Home);
  NodeId Above = of("above", op::Add, {{Floor, 0}, {One, 0}}, P.Home);
  Endpoint Run = take(Q, {Above, 0}).front();
  NodeId Join = insert("join", state(), JoinedKey, Run, {}, P.Home);
  Endpoint Result{of("joins", op::Identity, inputsOf(Run, Join), P.Home), 0};

  // The table records whether the last run of this process ended.
  NodeId Own = table("own_" + std::to_string(P.Mine), P.Own);
  NodeId OwnZero = ints("own_zero", 0, P.Own),
         OwnOne = ints("own_one", 1, P.Own);
  NodeId Was = find("own_open", Own, OwnZero, OwnOne, {}, P.Own);
  NodeId Opened = insert("own_begin", Own, OwnZero, {OwnOne, 0}, Was, P.Own);
  Started.push_back(Opened);
  CutShort = {of("is_again", op::Greater,
                 inputsOf({{Was, 0}, {OwnZero, 0}}, Opened), P.Own),
              0};
  OwnOpen = {Was, 0};
  NodeId Choice = of("choice", op::Switch, {{Before, 0}, CutShort}, P.Home);
  Endpoint Old{of("taken_part", op::Identity, Endpoint{Choice, 1}, P.Home), 0};
  NodeId Two = ints("two", 2, P.Home);
  NodeId Said = insert("say_again", state(),
                       ints("again_key", keyStartedAgain(P.Mine), P.Home),
                       {One, 0}, Old.Node, P.Home);
  SmallVector<NodeId, 2> Waits{Said};
  Endpoint Asked;
  if (!isAtChief()) {
    Asked = {ask("begun_by_chief", Old, P.Home), 0};
    Waits.push_back(Asked.Node);
    // A restarted chief has closed the runs before it begins one.
    Closed = find("closed_now", state(), constant("closed_key", keyClosed()),
                  Zero, Asked.Node, P.Home);
  }
  NodeId Last = find("last", state(), First, Zero, Waits, P.Home);
  NodeId Next = of("once_more", op::Add, {Old, {Two, 0}}, P.Home);
  Next = of("next", op::Maximum, {{Last, 0}, {Next, 0}}, P.Home);
  NodeId IsOpen = of("any_run", op::Greater, {{Last, 0}, {Closed, 0}}, P.Home);
  if (!isAtChief()) {
    NodeId Is = of("is_begun", op::Greater, {Asked, {Zero, 0}}, P.Home);
    IsOpen = of("to_be_joined", op::LogicalAnd, {{IsOpen, 0}, {Is, 0}}, P.Home,
                DT_INVALID);
  }
  Next = of("to_join", op::Select, {{IsOpen, 0}, {Next, 0}, {Zero, 0}}, P.Home);
  SmallVector<NodeId, 4> Done{enqueue("put", Q, Endpoint{Next, 0}, {})};
  NodeId Below = of("below", op::Sub, {{Next, 0}, {One, 0}}, P.Home);
  for (const MessageQueue &M : Marked)
    Done.push_back(mark(M, {Below, 0}));
  NodeId All = of("all_told", op::Identity, inputsOf(Old, Done), P.Home);
  Started.push_back(merge("either", {Choice, 0}, {All, 0}, P.Home));
  return Result;
}

void Messages::begin(unsigned Names, ArrayRef<MessageQueue> Marked,
                     ArrayRef<OwnCopy> Copies) {
  if (P.Mine == 0) {
    Number = Run = Low = chiefBegins(Names, Marked);
  } else {
    Number = Run = workerBegins(Marked);
    NodeId Space = ints("spacing", Spacing, P.Home);
    // Nodes that receive messages wait for Low, so they also wait for the
    // messages of Started.
    NodeId Part = of("part", op::FloorMod,
                     inputsOf({Run, {Space, 0}}, Started.back()), P.Home);
    Low = {of("number_begin", op::Sub, {Run, {Part, 0}}, P.Home), 0};
  }
  // The runtime runs a Switch on the device of its data. No Identity moves the
  // data to another device.
  if (!Copies.empty())
    Number = refresh("refresh", OwnOpen, CutShort, {Run.Node}, Copies);
  G.setStringAttr(Number.Node, PartAttr, part::Number);
  G.setIntAttr(Number.Node, WorkerAttr, P.Mine);
  G.setIntAttr(Number.Node, WorkersAttr, P.Workers);
  // The last number before the next run is a mark.
  NodeId Rest = ints("rest", Spacing - 2, P.Home);
  High = {of("number_end", op::Add, {Low, {Rest, 0}}, P.Home), 0};
}

static std::string onDevice(StringRef Name, StringRef Device) {
  std::string Result = (Name + "_on" + Device).str();
  std::replace(Result.begin(), Result.end(), ':', '.');
  return Result;
}

/// Returns \p Which, the number or the least number of this run, as a tensor on
/// \p Device. It is sent to each device once.
Endpoint Messages::on(StringRef Device, Endpoint Which) {
  if (Device == G.device(Which.Node))
    return Which;
  bool IsNumber = Which == Run;
  std::string Name = onDevice(IsNumber ? "number" : "number_begin", Device);
  auto [It, New] = Known.try_emplace(Name);
  if (New) {
    It->second = of(Name, op::Identity, Which, Device);
    if (IsNumber)
      Brought.push_back(It->second);
  }
  return {It->second, 0};
}

Endpoint Messages::highOn(StringRef Device) {
  if (Device == P.Home)
    return High;
  std::string Name = onDevice("number_end", Device);
  Endpoint Least = on(Device, Low);
  auto [It, New] = Known.try_emplace(Name);
  if (New) {
    NodeId Rest = ints(onDevice("rest", Device), Spacing - 2, Device);
    It->second = of(Name, op::Add, {Least, {Rest, 0}}, Device);
  }
  return {It->second, 0};
}

NodeId Messages::numberNear(StringRef Device) const {
  auto Task = jobAndTask(Device);
  if (Number != Run && (!Task || Task == jobAndTask(P.Own)))
    return Number.Node;
  for (NodeId N : Brought)
    if (Task && jobAndTask(G.device(N)) == Task)
      return N;
  return Run.Node;
}

/// Returns the nodes for which a node on \p Device waits instead of \p Nodes:
/// one new node replaces all nodes that are in one other task.
SmallVector<NodeId, 8> Messages::together(const Twine &Name,
                                          ArrayRef<NodeId> Nodes,
                                          StringRef Device) {
  SmallVector<NodeId, 8> Here;
  std::map<std::string, SmallVector<NodeId, 8>> There; // By task.
  for (NodeId N : Nodes) {
    auto Task = jobAndTask(G.device(N));
    if (!Task || Task == jobAndTask(Device))
      Here.push_back(N);
    else if (!is_contained(There[*Task], N))
      There[*Task].push_back(N);
  }
  for (const auto &[Task, Its] : There) {
    StringRef On = G.device(Its.front());
    Here.push_back(Its.size() == 1 ? Its.front()
                                   : add(onDevice(Name.str(), On), op::NoOp,
                                         inputsOf({}, Its), {}, On.str()));
  }
  return Here;
}

NodeId Messages::end(unsigned Name, ArrayRef<NodeId> After,
                     ArrayRef<OwnCopy> Copies) {
  std::string Of = std::to_string(Name);
  SmallVector<NodeId, 8> All(After);
  if (P.Mine == 0) {
    All.push_back(insert("begin_name_" + Of, state(),
                         ints("begun_" + Of, keyBegun(Name), P.Home), Number,
                         {}, P.Home));
    All = together("all_of_name_" + Of, All, P.Home);
    return insert("end_name_" + Of, state(),
                  ints("ended_" + Of, keyEnded(Name), P.Home), Number, All,
                  P.Home);
  }
  All.append(Started.begin(), Started.end());
  All = together("all_of_name_" + Of, All, P.Own);
  Endpoint Refreshed =
      refresh("refresh_name_" + Of, Number, CutShort, All, Copies);
  if (!Copies.empty())
    All.push_back(Refreshed.Node);
  NodeId Zero = ints("own_ended_" + Of, 0, P.Own);
  return insert("end_name_" + Of, table("own_" + std::to_string(P.Mine), P.Own),
                Zero, {Zero, 0}, All, P.Own);
}

NodeId Messages::same(unsigned Name, unsigned From, ArrayRef<Endpoint> Keys) {
  std::string Its = "same_" + std::to_string(Name) + "_" + std::to_string(From);
  SmallVector<NodeId, 4> Checks;
  for (Endpoint Key : Keys.drop_front()) {
    NodeId Are = of(Its + "/equal", op::Equal, {Keys.front(), Key}, P.Home);
    Checks.push_back(check(
        Its, {Are, 0},
        "a worker was restarted in the middle of this step, and some updates "
        "of the step may have been applied; continue from a checkpoint",
        {}, P.Home));
  }
  return add(Its, op::NoOp, inputsOf({}, Checks), {}, P.Home);
}

NodeId Messages::close() {
  NodeId Last = find("last_closed", state(), constant("last_key", LastNumber),
                     constant("zero", 0), {}, P.Home);
  return insert("close", state(), constant("closed_key", keyClosed()),
                {Last, 0}, {}, P.Home);
}

//===----------------------------------------------------------------------===//
// Messages
//===----------------------------------------------------------------------===//

NodeId Messages::put(const MessageQueue &Q, ArrayRef<Endpoint> Values,
                     ArrayRef<NodeId> Ends, ArrayRef<NodeId> After) {
  SmallVector<Endpoint, 8> All{on(Q.Device, Run)};
  All.append(Values.begin(), Values.end());
  SmallVector<NodeId, 8> Waits(Ends);
  auto Own = jobAndTask(P.Own);
  if (Own != jobAndTask(Q.Device) && count_if(Ends, [&](NodeId N) {
                                       return jobAndTask(G.device(N)) == Own;
                                     }) > 1)
    Waits = {add(Q.Name + "/ends", op::NoOp, inputsOf({}, Ends), {}, P.Own)};
  Waits.append(After.begin(), After.end());
  NodeId Put = enqueue("put", Q, All, Waits);
  G.setStringAttr(Put, PartAttr, part::Put);
  return Put;
}

Messages::Received Messages::get(const MessageQueue &Q,
                                 std::optional<Endpoint> Exact) {
  SmallVector<Endpoint, 8> Taken = take(Q, Exact ? *Exact : on(Q.Device, Low));
  Received R;
  R.Key = Taken.front();
  NodeId Good = of(Q.Name + "/is_own", op::LessEqual,
                   {R.Key, Exact ? *Exact : highOn(Q.Device)}, Q.Device);
  SmallVector<NodeId, 1> Asked;
  if (P.Mine != 0 && !isAtChief() &&
      jobAndTask(Q.Device) != jobAndTask(P.Chief)) {
    NodeId Choice =
        of(Q.Name + "/late", op::Switch, {R.Key, {Good, 0}}, Q.Device);
    NodeId Says = ask(Q.Name + "/begun_by_chief", {Choice, 0}, Q.Device);
    Asked.push_back(
        merge(Q.Name + "/either", {Choice, 1}, {Says, 0}, Q.Device));
  }
  NodeId Check = check(
      Q.Name, {Good, 0},
      P.Mine == 0
          ? "a worker was restarted in the middle of this step, after it had "
            "sent a part of its values; run the step again"
          : "the chief has already begun another step; run this step again",
      Asked, Q.Device);
  ArrayRef<Endpoint> Values = ArrayRef(Taken).drop_front();
  AttrRun Out;
  Out.string(PartAttr, part::Get);
  if (!Values.empty())
    Out.raw("T", encodeTypeListAttr(Q.Types));
  R.Get = add(Q.Name + "/get", Values.empty() ? op::NoOp : op::IdentityN,
              inputsOf(Values, Check), Out, Q.Device);
  if (P.Mine != 0)
    R.Back = enqueue("back", Q, Taken, Check);
  return R;
}

} // namespace graft
