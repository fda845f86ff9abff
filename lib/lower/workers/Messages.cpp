//===- lib/lower/workers/Messages.cpp - numbered messages -------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "lib/lower/workers/Messages.h"

#include "lib/ops/Ops.h"

#include "llvm/ADT/STLExtras.h"

using namespace llvm;

namespace graft {
namespace {

/// Numbers of runs are multiples of this.
constexpr int64_t Spacing = 1024;
/// What the number of a run grows by in a second at least: more than the
/// spacings of all runs in it.
constexpr int64_t PerSecond = int64_t(1) << 30;

std::string withNumber(StringRef Types) {
  return std::string(1, static_cast<char>(DT_INT64)) + Types.str();
}

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

NodeId Messages::ints(const Twine &Name, ArrayRef<int64_t> Values,
                      StringRef Device, bool Scalar) {
  SmallVector<int64_t, 1> Shape;
  if (!Scalar)
    Shape.push_back(static_cast<int64_t>(Values.size()));
  AttrRun Attrs;
  Attrs.type("dtype", DT_INT64)
      .raw("value", encodeIntTensor(DT_INT64, Shape, Values));
  return Add(Name, op::Const, {}, Attrs, Device);
}

NodeId Messages::of(const Twine &Name, StringRef Op, ArrayRef<Endpoint> Inputs,
                    StringRef Device, unsigned Type) {
  AttrRun Attrs;
  if (Type != DT_INVALID)
    Attrs.type("T", Type);
  return Add(Name, Op, Inputs, Attrs, Device);
}

NodeId Messages::table(const Twine &Name, StringRef Device) {
  AttrRun Attrs;
  Attrs.string("container", "")
      .type("key_dtype", DT_INT64)
      .string("shared_name", Name.str())
      .boolean("use_node_name_sharing", false)
      .type("value_dtype", DT_INT64);
  return Add(Name, op::MutableHashTableV2, {}, Attrs, Device);
}

NodeId Messages::find(const Twine &Name, NodeId Table, NodeId Keys,
                      NodeId Default, ArrayRef<NodeId> After,
                      StringRef Device) {
  AttrRun Attrs;
  Attrs.type("Tin", DT_INT64).type("Tout", DT_INT64);
  return Add(Name, op::LookupTableFindV2,
             inputsOf({{Table, 0}, {Keys, 0}, {Default, 0}}, After), Attrs,
             Device);
}

NodeId Messages::insert(const Twine &Name, NodeId Table, NodeId Keys,
                        Endpoint Values, ArrayRef<NodeId> After,
                        StringRef Device) {
  AttrRun Attrs;
  Attrs.type("Tin", DT_INT64).type("Tout", DT_INT64);
  return Add(Name, op::LookupTableInsertV2,
             inputsOf({{Table, 0}, {Keys, 0}, Values}, After), Attrs, Device);
}

NodeId Messages::queue(const MessageQueue &Q) {
  AttrRun Attrs;
  Attrs.integer("capacity", -1)
      .raw("component_types", encodeTypeListAttr(withNumber(Q.Types)))
      .string("container", "")
      .string("shared_name", Q.Name);
  return Add(Q.Name, op::FIFOQueueV2, {}, Attrs, Q.Device);
}

NodeId Messages::enqueue(const Twine &Name, NodeId Queue,
                         ArrayRef<Endpoint> Values, StringRef Types,
                         ArrayRef<NodeId> After, StringRef Device) {
  AttrRun Attrs;
  Attrs.raw("Tcomponents", encodeTypeListAttr(withNumber(Types)))
      .integer("timeout_ms", -1);
  SmallVector<Endpoint, 8> Inputs{{Queue, 0}};
  Inputs.append(Values.begin(), Values.end());
  return Add(Name, op::QueueEnqueueV2, inputsOf(Inputs, After), Attrs, Device);
}

NodeId Messages::dequeue(const Twine &Name, Endpoint Queue, StringRef Types,
                         ArrayRef<NodeId> After, StringRef Device) {
  AttrRun Attrs;
  Attrs.raw("component_types", encodeTypeListAttr(withNumber(Types)))
      .integer("timeout_ms", -1);
  return Add(Name, op::QueueDequeueV2, inputsOf(Queue, After), Attrs, Device);
}

NodeId Messages::enter(const Twine &Name, Endpoint Value, StringRef Frame,
                       bool Constant, StringRef Device) {
  AttrRun Attrs;
  Attrs.type("T", G.outputType(Value))
      .string("frame_name", Frame)
      .boolean("is_constant", Constant)
      .integer("parallel_iterations", 1);
  return Add(Name, op::Enter, Value, Attrs, Device);
}

//===----------------------------------------------------------------------===//
// The number of a run
//===----------------------------------------------------------------------===//

MessageQueue Messages::beginQueue(unsigned Worker) const {
  return {"between/begin_" + std::to_string(Worker), Home, ""};
}

/// Says in \p Q that what is below \p Key is over.
NodeId Messages::mark(const MessageQueue &Q, Endpoint Key) {
  SmallVector<Endpoint, 8> Values{Key};
  for (char Type : Q.Types) {
    AttrRun Attrs;
    Attrs.type("dtype", static_cast<unsigned char>(Type))
        .raw("value",
             encodeIntTensor(static_cast<unsigned char>(Type), {0}, {}));
    Values.push_back(
        {Add(Q.Name + "/none", op::Const, {}, Attrs, Q.Device), 0});
  }
  return enqueue(Q.Name + "/mark", queue(Q), Values, Q.Types, {}, Q.Device);
}

/// A number above all before. If the last run did not end, or a worker takes
/// part in it that was started again, those who wait are told that it is over.
Endpoint Messages::chiefBegins(unsigned Names,
                               ArrayRef<const MessageQueue *> Marked) {
  NodeId Seconds = Add("between/seconds", op::Timestamp, {}, AttrRun(), Home);
  AttrRun Cast;
  Cast.type("DstT", DT_INT64)
      .type("SrcT", DT_DOUBLE)
      .boolean("Truncate", false);
  Seconds = Add("between/time", op::Cast, Endpoint{Seconds, 0}, Cast, Home);
  NodeId Scale = ints("between/per_second", PerSecond, Home);
  Seconds = of("between/clock", op::Mul, {{Seconds, 0}, {Scale, 0}}, Home);
  NodeId Last = find("between/last", State, First, Zero, {}, Home);
  NodeId Space = ints("between/spacing", Spacing, Home);
  NodeId Next =
      of("between/after_last", op::Add, {{Last, 0}, {Space, 0}}, Home);
  Endpoint Now{of("between/next", op::Maximum, {{Seconds, 0}, {Next, 0}}, Home),
               0};
  NodeId Known = insert("between/known", State, First, Now, {}, Home);

  SmallVector<int64_t, 8> Fresh, Begun, Ended, None;
  for (unsigned I = 1; I < Workers; ++I)
    Fresh.push_back(keyStartedAgain(I));
  for (unsigned I = 0; I < Names; ++I) {
    Begun.push_back(keyBegun(I));
    Ended.push_back(keyEnded(I));
  }
  None.assign(Fresh.size(), 0);
  NodeId FreshKeys = ints("between/workers", Fresh, Home, false);
  NodeId Axis = ints("between/axis", 0, Home, false);
  auto Any = [&](const Twine &Name, NodeId Of) {
    AttrRun Attrs;
    Attrs.type("Tidx", DT_INT64).boolean("keep_dims", false);
    return Add(Name, op::Any, {{Of, 0}, {Axis, 0}}, Attrs, Home);
  };
  NodeId Again = find("between/again", State, FreshKeys, Zero, Known, Home);
  Again = Any("between/any_again", of("between/is_again", op::Greater,
                                      {{Again, 0}, {Zero, 0}}, Home));
  NodeId Is =
      find("between/begun", State,
           ints("between/begun_names", Begun, Home, false), Zero, Known, Home);
  NodeId Was =
      find("between/ended", State,
           ints("between/ended_names", Ended, Home, false), Zero, Known, Home);
  Is = of("between/is_last", op::GreaterEqual, {{Is, 0}, {Last, 0}}, Home);
  Was = of("between/is_open", op::Less, {{Was, 0}, {Last, 0}}, Home);
  NodeId Open =
      Any("between/any_open", of("between/not_ended", op::LogicalAnd,
                                 {{Is, 0}, {Was, 0}}, Home, DT_INVALID));
  NodeId Tell = of("between/tell", op::LogicalOr, {{Again, 0}, {Open, 0}}, Home,
                   DT_INVALID);

  NodeId Choice = of("between/choice", op::Switch, {Now, {Tell, 0}}, Home);
  Endpoint Told{of("between/told", op::Identity, Endpoint{Choice, 1}, Home), 0};
  // Constants of the branch have to be dead if it is not taken.
  NodeId One = ints("between/one", 1, Home);
  Endpoint Below{of("between/below", op::Sub, {Told, {One, 0}}, Home), 0};
  SmallVector<NodeId, 8> Done{insert(
      "between/forget_again", State, FreshKeys,
      {ints("between/none_again", None, Home, false), 0}, Told.Node, Home)};
  for (const MessageQueue *Q : Marked)
    Done.push_back(mark(*Q, Below));
  NodeId After =
      of("between/all_told", op::Identity, inputsOf(Told, Done), Home);
  AttrRun Merge;
  Merge.integer("N", 2).type("T", DT_INT64);
  NodeId Either =
      Add("between/either", op::Merge, {{Choice, 0}, {After, 0}}, Merge, Home);
  SmallVector<NodeId, 8> Begins;
  for (unsigned I = 1; I < Workers; ++I) {
    MessageQueue Q = beginQueue(I);
    Begins.push_back(enqueue(Q.Name + "/put", queue(Q), Now, "", Known, Home));
  }
  Low = {of("between/number", op::Identity,
            inputsOf({Endpoint{Either, 0}}, Begins), Home),
         0};
  NodeId Rest = ints("between/rest", Spacing - 1, Home);
  High = {of("between/number_end", op::Add, {Low, {Rest, 0}}, Home), 0};
  return Low;
}

/// The number of the run that the chief has begun. A worker whose last run did
/// not end takes part in that of the chief once more.
Endpoint Messages::workerBegins(ArrayRef<const MessageQueue *> Marked) {
  MessageQueue Q = beginQueue(Mine);
  NodeId Queue = queue(Q);
  NodeId Joined = ints("between/joined_key", keyJoined(Mine), Home);
  NodeId Before = find("between/joined", State, Joined, Zero, {}, Home);

  // Takes what the chief says until it is a run that was not yet joined.
  std::string Frame = "between/begin";
  AttrRun NoBool;
  NoBool.type("dtype", DT_BOOL).raw("value", encodeIntTensor(DT_BOOL, {}, 0));
  NodeId No = Add("between/not_yet", op::Const, {}, NoBool, Home);
  auto In = [&](const Twine &Name, Endpoint E, bool Constant) {
    return Endpoint{enter("between/begin/" + Name, E, Frame, Constant, Home),
                    0};
  };
  Endpoint InQueue = In("queue", {Queue, 0}, true),
           InState = In("state", {State, 0}, true),
           InKey = In("key", {Joined, 0}, true),
           InZero = In("zero", {Zero, 0}, true),
           FirstKey = In("enter", {Before, 0}, false),
           FirstGood = In("enter_good", {No, 0}, false);
  AttrRun MergeInt, MergeBool;
  MergeInt.integer("N", 2).type("T", DT_INT64);
  MergeBool.integer("N", 2).type("T", DT_BOOL);
  NodeId Key = Add("between/begin/merge", op::Merge, {FirstKey, FirstKey},
                   MergeInt, Home),
         Good = Add("between/begin/merge_good", op::Merge,
                    {FirstGood, FirstGood}, MergeBool, Home);
  NodeId More = of("between/begin/more", op::LogicalNot, Endpoint{Good, 0},
                   Home, DT_INVALID);
  More = of("between/begin/cond", op::LoopCond, Endpoint{More, 0}, Home,
            DT_INVALID);
  NodeId Choice = of("between/begin/switch", op::Switch, {{Key, 0}, {More, 0}},
                     Home),
         GoodChoice = of("between/begin/switch_good", op::Switch,
                         {{Good, 0}, {More, 0}}, Home, DT_BOOL);
  NodeId Body = of("between/begin/body", op::Identity, Endpoint{GoodChoice, 1},
                   Home, DT_BOOL);
  NodeId Got = dequeue("between/begin/get", InQueue, "", Body, Home);
  AttrRun Find;
  Find.type("Tin", DT_INT64).type("Tout", DT_INT64);
  NodeId Is = Add("between/begin/joined", op::LookupTableFindV2,
                  {InState, InKey, InZero, {Got, ControlPort}}, Find, Home);
  Is = of("between/begin/is_new", op::Greater, {{Got, 0}, {Is, 0}}, Home);
  NodeId NextKey = of("between/begin/next", op::NextIteration, Endpoint{Got, 0},
                      Home),
         NextGood = of("between/begin/next_good", op::NextIteration,
                       Endpoint{Is, 0}, Home, DT_BOOL);
  G.setInput(Key, 1, {NextKey, 0});
  G.setInput(Good, 1, {NextGood, 0});
  Endpoint Run{of("between/begin/exit", op::Exit, Endpoint{Choice, 0}, Home),
               0};
  NodeId Join = insert("between/join", State, Joined, Run, {}, Home);
  Endpoint Result{of("between/number", op::Identity, inputsOf(Run, Join), Home),
                  0};

  // Whether the last run of this process ended.
  NodeId OwnZero = ints("between/own_zero", 0, Own),
         OwnOne = ints("between/own_one", 1, Own);
  NodeId Was = find("between/own_open", OwnState, OwnZero, OwnOne, {}, Own);
  NodeId Opened =
      insert("between/own_begin", OwnState, OwnZero, {OwnOne, 0}, Was, Own);
  Started.push_back(Opened);
  NodeId Again = of("between/is_again", op::Greater,
                    inputsOf({{Was, 0}, {OwnZero, 0}}, Opened), Own);
  NodeId AgainChoice =
      of("between/choice", op::Switch, {{Before, 0}, {Again, 0}}, Home);
  Endpoint Old{
      of("between/taken_part", op::Identity, Endpoint{AgainChoice, 1}, Home),
      0};
  NodeId One = ints("between/one", 1, Home), Two = ints("between/two", 2, Home);
  NodeId Said = insert("between/say_again", State,
                       ints("between/again_key", keyStartedAgain(Mine), Home),
                       {One, 0}, Old.Node, Home);
  NodeId Last = find("between/last", State, First, Zero, Said, Home);
  NodeId Next = of("between/once_more", op::Add, {Old, {Two, 0}}, Home);
  Next = of("between/next", op::Maximum, {{Last, 0}, {Next, 0}}, Home);
  NodeId Any = of("between/any_run", op::Greater, {{Last, 0}, {Zero, 0}}, Home);
  Next =
      of("between/to_join", op::Select, {{Any, 0}, {Next, 0}, {Zero, 0}}, Home);
  SmallVector<NodeId, 4> Done{
      enqueue("between/join_again", Queue, Endpoint{Next, 0}, "", {}, Home)};
  NodeId Below = of("between/below", op::Sub, {{Next, 0}, {One, 0}}, Home);
  for (const MessageQueue *M : Marked)
    Done.push_back(mark(*M, {Below, 0}));
  NodeId After =
      of("between/all_told", op::Identity, inputsOf(Old, Done), Home);
  Started.push_back(Add("between/either", op::Merge,
                        {{AgainChoice, 0}, {After, 0}}, MergeInt, Home));

  NodeId Space = ints("between/spacing", Spacing, Home);
  NodeId Mod = of("between/part", op::FloorMod, {Result, {Space, 0}}, Home);
  Low = {of("between/number_begin", op::Sub, {Result, {Mod, 0}}, Home), 0};
  NodeId Rest = ints("between/rest", Spacing - 1, Home);
  High = {of("between/number_end", op::Add, {Low, {Rest, 0}}, Home), 0};
  return Result;
}

void Messages::begin(unsigned Names, ArrayRef<const MessageQueue *> Marked) {
  State = table("between/runs", Home);
  Zero = ints("between/zero", 0, Home);
  First = ints("between/last_key", int64_t(LastNumber), Home);
  if (Mine != 0)
    OwnState = table("between/own_" + Twine(Mine), Own);
  Number = Mine == 0 ? chiefBegins(Names, Marked) : workerBegins(Marked);
}

NodeId Messages::end(unsigned Name, ArrayRef<NodeId> After) {
  std::string Of = std::to_string(Name);
  SmallVector<NodeId, 8> All(After);
  if (Mine == 0) {
    NodeId Begun = insert("between/begin_name_" + Of, State,
                          ints("between/begun_" + Of, keyBegun(Name), Home),
                          Number, {}, Home);
    All.push_back(Begun);
    return insert("between/end_name_" + Of, State,
                  ints("between/ended_" + Of, keyEnded(Name), Home), Number,
                  All, Home);
  }
  All.append(Started.begin(), Started.end());
  NodeId Zero = ints("between/own_ended_" + Of, 0, Own);
  return insert("between/end_name_" + Of, OwnState, Zero, {Zero, 0}, All, Own);
}

//===----------------------------------------------------------------------===//
// Messages
//===----------------------------------------------------------------------===//

NodeId Messages::put(const MessageQueue &Q, ArrayRef<Endpoint> Values,
                     ArrayRef<NodeId> After) {
  SmallVector<Endpoint, 8> All{Number};
  All.append(Values.begin(), Values.end());
  return enqueue(Q.Name + "/put", queue(Q), All, Q.Types, After, Q.Device);
}

Messages::Received Messages::get(const MessageQueue &Q,
                                 std::optional<Endpoint> Exact) {
  NodeId Queue = queue(Q);
  std::string Types = withNumber(Q.Types);
  NodeId Got = dequeue(Q.Name + "/first", {Queue, 0}, Q.Types, {}, Q.Device);
  auto In = [&](const Twine &Name, Endpoint E, bool Constant) {
    return Endpoint{
        enter(Q.Name + "/" + Name, E, Q.Name + "/drop", Constant, Q.Device), 0};
  };
  auto Node = [&](const Twine &Name, StringRef Op, ArrayRef<Endpoint> Inputs,
                  unsigned Type) {
    return of(Q.Name + "/" + Name, Op, Inputs, Q.Device, Type);
  };
  Endpoint From = Exact.value_or(Low), To = Exact.value_or(High);
  Endpoint InQueue = In("queue", {Queue, 0}, true),
           InLow = In("low", From, true);
  SmallVector<NodeId, 8> Merges, Exits;
  for (auto [I, Type] : enumerate(Types)) {
    AttrRun Merge;
    Merge.integer("N", 2).type("T", static_cast<unsigned char>(Type));
    Endpoint Start = In("enter", {Got, static_cast<uint32_t>(I)}, false);
    Merges.push_back(
        Add(Q.Name + "/merge", op::Merge, {Start, Start}, Merge, Q.Device));
  }
  NodeId Old = Node("is_old", op::Less, {{Merges[0], 0}, InLow}, DT_INT64);
  NodeId Cond = Node("cond", op::LoopCond, Endpoint{Old, 0}, DT_INVALID);
  NodeId Again = NoNode;
  for (auto [I, Type] : enumerate(Types)) {
    auto T = static_cast<unsigned char>(Type);
    NodeId Choice = Node("switch", op::Switch, {{Merges[I], 0}, {Cond, 0}}, T);
    if (I == 0) {
      NodeId Body = Node("body", op::Identity, Endpoint{Choice, 1}, T);
      Again = dequeue(Q.Name + "/again", InQueue, Q.Types, Body, Q.Device);
    }
    NodeId Next = Node("next", op::NextIteration,
                       Endpoint{Again, static_cast<uint32_t>(I)}, T);
    G.setInput(Merges[I], 1, {Next, 0});
    Exits.push_back(Node("exit", op::Exit, Endpoint{Choice, 0}, T));
  }
  Received R;
  R.Key = {Exits[0], 0};
  NodeId Good = Node("is_own", op::LessEqual, {R.Key, To}, DT_INT64);
  AttrRun Text, Assert;
  Text.type("dtype", DT_STRING)
      .raw("value",
           encodeStringTensor(
               Mine == 0 ? "a worker was started again in the middle of this "
                           "step, after it had given a part: run it again"
                         : "the chief has begun another step and this one is "
                           "over: run it again"));
  NodeId Why = Add(Q.Name + "/why", op::Const, {}, Text, Q.Device);
  Assert.raw("T", encodeTypeListAttr(std::string(1, char(DT_STRING))))
      .integer("summarize", 3);
  NodeId Check = Add(Q.Name + "/check", op::Assert, {{Good, 0}, {Why, 0}},
                     Assert, Q.Device);
  SmallVector<Endpoint, 8> Values;
  for (NodeId Exit : drop_begin(Exits))
    Values.push_back({Exit, 0});
  AttrRun Out;
  if (!Values.empty())
    Out.raw("T", encodeTypeListAttr(Q.Types));
  R.Get = Add(Q.Name + "/get", Values.empty() ? op::NoOp : op::IdentityN,
              inputsOf(Values, Check), Out, Q.Device);
  if (Mine != 0) {
    SmallVector<Endpoint, 8> All{R.Key};
    All.append(Values.begin(), Values.end());
    R.Back = enqueue(Q.Name + "/back", Queue, All, Q.Types, Check, Q.Device);
  }
  return R;
}

} // namespace graft
