//===- lib/lower/expand/ExpandNode.cpp - one node of the expansion *- C++ -*-=//
//
// SPDX-License-Identifier: Apache-2.0
//
// Splits a node of the program into the segments of its copies. Field numbers
// are those of tensorflow/core/framework/node_def.proto: name 1, op 2, input 3,
// device 4, attr 5. Attributes that hold names or identities are rewritten as
// docs/Design.md lists them.
//
//===----------------------------------------------------------------------===//

#include "lib/lower/expand/Render.h"
#include "lib/lower/expand/ScaleFactor.h"
#include "lib/ops/Ops.h"
#include "lib/ops/ProgramOps.h"

using namespace llvm;

namespace graft {

namespace {

void setPort(Segment &I, uint32_t Port) {
  if (Port == 0)
    return;
  I.Port = Port;
  uint32_t Extra = 1; // `^`, or `:` and digits
  for (; Port != ControlPort && Port != 0; Port /= 10)
    ++Extra;
  I.FirstLength += Extra;
  I.Length += Extra;
}

/// Removes field number \p Field from the start of \p Text. Returns false if \p
/// Text does not begin with that field.
bool takeField(StringRef &Text, unsigned Field, StringRef &Contents) {
  if (Text.empty() || Text[0] != bytesTag(Field))
    return false;
  wire::Reader R(Text.drop_front());
  uint64_t Length;
  if (!R.varint(Length))
    return false;
  StringRef Rest = Text.drop_front(R.position() - Text.data());
  if (Length > Rest.size())
    return false;
  Contents = Rest.take_front(Length);
  Text = Rest.drop_front(Length);
  return true;
}

} // namespace

//===----------------------------------------------------------------------===//
// Names
//===----------------------------------------------------------------------===//

/// Turns \p I, the name of \p Source, into the name of its copies.
void NodeRenderer::fillName(Segment &I, const Node &Source) const {
  CopyNaming C(E, Source);
  I.Split = C.Split;
  I.Where = C.Where;
  I.Numbered = C.Where != ReplicaSuffix::None;
  I.Local = C.Local;
  // The field may hold more than the name.
  auto Rest = static_cast<uint32_t>(I.Length - C.Name.size());
  I.FirstLength = static_cast<uint32_t>(C.firstSize()) + Rest;
  I.Length = static_cast<uint32_t>(C.otherSize(0)) + Rest;
}

Segment &NodeRenderer::copyName(Segment::Kind What, const Node &Source,
                                Segment::Copies For, uint32_t Port) {
  Segment &I = add(What, {Source.NameData, Source.NameSize}, For);
  fillName(I, Source);
  setPort(I, Port);
  return I;
}

/// Adds the name of copy 0 of \p Source as an input.
Segment &NodeRenderer::firstName(const Node &Source, Segment::Copies For,
                                 uint32_t Port) {
  Segment &I = add(Segment::Input, {Source.NameData, Source.NameSize}, For);
  fillName(I, Source);
  StringRef Name(I.Data, I.Size), Head = Name.take_front(I.Split);
  if (I.Local)
    Name = Saver.save(I.Where == ReplicaSuffix::Before
                          ? E.Word + "0/" + Name
                          : Head + infix(I.Where) + "0" +
                                Name.drop_front(I.Split));
  auto Size = static_cast<uint32_t>(Name.size());
  I = {Name.begin(),        Size, Size,  Size,  0,    0, Segment::Input,
       ReplicaSuffix::None, For,  false, false, false};
  setPort(I, Port);
  return I;
}

/// Adds the name of the node itself, with \p Suffix.
Segment &NodeRenderer::ownName(Segment::Kind What, StringRef Suffix) {
  Segment &I = copyName(What, *This, Segment::All);
  if (!Suffix.empty()) {
    I.Data = Saver.save(StringRef(I.Data, I.Size) + Suffix).data();
    for (uint32_t *Length : {&I.Size, &I.FirstLength, &I.Length})
      *Length += static_cast<uint32_t>(Suffix.size());
  }
  return I;
}

//===----------------------------------------------------------------------===//
// Inputs
//===----------------------------------------------------------------------===//

void NodeRenderer::dataInput(Endpoint Input) {
  const Node &Source = G.node(Input.Node);
  if (E.isSplit(Source)) {
    slice(Source);
    return;
  }
  Segment::Copies For = Segment::All;
  if (Source.Flags & NF_ElidePrimary) {
    // The source is a take-first merge, or a device copy that copy 0 does not
    // need.
    For = Source.Count == Copies::Once ? Segment::All : Segment::First;
    firstInput(G.input(Input.Node, 0), For);
    if (For == Segment::All)
      return;
    For = Segment::Others;
  }
  copyName(Segment::Input, Source, For, Input.Port);
}

/// Adds the replica's output of the split \p Source as an input.
void NodeRenderer::slice(const Node &Source) {
  Segment &I = add(Segment::Slice, {Source.NameData, Source.NameSize});
  ++I.Length; // `:`
  I.Numbered = true;
}

/// Adds copy 0 of \p Input as an input, whichever copy reads it.
void NodeRenderer::firstInput(Endpoint Input, Segment::Copies For) {
  const Node &Source = G.node(Input.Node);
  if (E.isSplit(Source))
    firstName(Source, For, 0);
  else if (Source.Flags & NF_ElidePrimary)
    firstInput(G.input(Input.Node, 0), For);
  else
    firstName(Source, For, Input.Port);
}

/// Adds all copies of \p Input but copy 0 as inputs.
void NodeRenderer::otherInputs(Endpoint Input) {
  const Node &Source = G.node(Input.Node);
  if (E.isSplit(Source))
    slice(Source);
  else if (Source.Flags & NF_ElidePrimary && Source.Count == Copies::Once)
    firstInput(G.input(Input.Node, 0), Segment::All);
  else
    copyName(Segment::Input, Source, Segment::All, Input.Port);
  Segments[NumSegments - 1].Each = true;
}

void NodeRenderer::controlInput(NodeId Source) {
  const Node &From = G.node(Source);
  bool IsElided = From.Flags & NF_ElidePrimary;
  if (E.isOnce(From)) {
    if (IsElided)
      controlInput(G.input(Source, 0).Node);
    else
      copyName(Segment::Input, From, Segment::All, ControlPort);
    return;
  }
  if (PerReplica) {
    if (IsElided)
      firstControl(G.input(Source, 0).Node, Segment::First);
    copyName(Segment::Input, From, IsElided ? Segment::Others : Segment::All,
             ControlPort);
    return;
  }
  firstControl(Source, Segment::All);
  // Copy 0 of the node waits for the other copies.
  if (From.Flags & NF_Led)
    return;
  copyName(Segment::Input, From, Segment::All, ControlPort).Each = true;
}

void NodeRenderer::firstControl(NodeId Source, Segment::Copies For) {
  const Node &From = G.node(Source);
  // Copy 0 of a refresh is not written, so copy 0 does not wait for it.
  if (From.Kind == Inserted::Refresh && From.Flags & NF_ElidePrimary)
    return;
  if (From.Flags & NF_ElidePrimary)
    firstControl(G.input(Source, 0).Node, For);
  else
    firstName(From, For, ControlPort);
}

//===----------------------------------------------------------------------===//
// Attributes
//===----------------------------------------------------------------------===//

void NodeRenderer::field(unsigned Number, StringRef Text) {
  std::string Field;
  wire::appendBytes(Field, Number, Text);
  literal(Saver.save(Field));
}

void NodeRenderer::attribute(StringRef Key, StringRef Value) {
  std::string Entry;
  wire::appendBytes(Entry, 1, Key);
  wire::appendBytes(Entry, 2, Value);
  field(5, Entry);
}

void NodeRenderer::className(StringRef Text) {
  StringRef Name = Text;
  NodeId With =
      Name.consume_front(ClassPrefix) ? findClass(G, N, Name) : NoNode;
  auto Size = static_cast<uint32_t>(With == NoNode ? Text.size() : Name.size());
  Classes.push_back({With == NoNode ? Text.data() : Name.data(), Size,
                     static_cast<uint32_t>(Text.size()),
                     static_cast<uint32_t>(Text.size()), 0, 0,
                     With == NoNode ? Segment::Literal : Segment::Class,
                     ReplicaSuffix::None, Segment::All, false, false, false});
  if (With != NoNode) {
    fillName(Classes.back(), G.node(With));
  }
}

/// Reads the names in `_class` from \p Entry if \p Entry has the usual form,
/// else from the attribute of the node.
bool NodeRenderer::readClasses(StringRef Entry) {
  StringRef Key, Value, List, Text;
  if (StringRef Name = shortClass(Entry); !Name.empty()) {
    className(Name);
    return true;
  }
  if (takeField(Entry, 1, Key) && takeField(Entry, 2, Value) && Entry.empty() &&
      takeField(Value, 1, List) && Value.empty()) {
    while (takeField(List, 2, Text))
      className(Text);
    if (List.empty())
      return true;
  }
  Classes.clear();
  auto Names = G.stringListAttr(N, ClassKey);
  if (!Names)
    return false;
  for (StringRef Name : *Names)
    className(Name);
  return true;
}

/// Rewrites or drops an attribute for the output. Returns false if the
/// attribute stays as it is.
bool NodeRenderer::rewrite(StringRef Key, StringRef Entry, StringRef Whole) {
  if (Key.starts_with("_")) {
    if (Key != ClassKey)
      return Key.starts_with("_graft_") && !staysInOutput(*This, Key);
    // If the key is repeated, the first entry counts.
    if (!HasClasses && !readClasses(Entry))
      return false;
    HasClasses = true;
    add(Segment::Class, {});
    return true;
  }
  if (!PerReplica)
    return false;
  if (Key == "frame_name") {
    Segment &I = add(Segment::Frame, G.stringAttr(N, Key).value_or(""));
    I.Where = ReplicaSuffix::Before;
    I.Local = I.Numbered = true;
    I.Length += suffixSize(ReplicaSuffix::Before);
    I.FirstLength = I.Length + 1;
    return true;
  }
  if (Key == "shared_name") {
    // The node name identifies a reference variable without a shared name.
    if (!G.isOp(N, op::VarHandleOp) &&
        G.stringAttr(N, Key).value_or("").empty())
      return false;
    literal(Whole).For = Segment::First;
    ownName(Segment::String).For = Segment::Others;
    return true;
  }
  if (Key == "seed2" && E.RandomOps[This->Op]) {
    literal(Whole).For = Segment::First;
    add(Segment::Seed, {}, Segment::Others);
    return true;
  }
  return false;
}

void NodeRenderer::attributes() {
  StringRef Rest(This->AttrData, This->AttrSize);
  bool Rewrites = PerReplica && E.Rewrites[This->Op];
  if (!Rewrites && !(This->Flags & (NF_MayHaveClass | NF_MayHaveGraft))) {
    if (!Rest.empty())
      literal(Rest);
    return;
  }
  HasClasses = false;
  const char *Same = Rest.data(); // from here on nothing was rewritten yet
  while (!Rest.empty()) {
    StringRef Entry;
    const char *Start = Rest.data(), *Next;
    if (readUsualEntry(Rest, Entry)) {
      Next = Entry.end();
    } else {
      wire::Reader R(Rest);
      wire::Field F;
      if (!R.next(F))
        break;
      Next = R.position();
      Entry = F.Number == 5 ? F.Bytes : StringRef();
    }
    Rest = Rest.drop_front(Next - Start);
    if (Entry.size() < 2 || static_cast<uint8_t>(Entry[1]) >= 0x80)
      continue;
    StringRef Key = Entry.substr(2, static_cast<size_t>(Entry[1]));
    if (!Key.starts_with("_") && !(Rewrites && differsByCopy(Key)))
      continue;
    literal({Same, static_cast<size_t>(Start - Same)});
    if (rewrite(Key, Entry, {Start, static_cast<size_t>(Next - Start)}))
      Same = Next;
    else
      --NumSegments;
  }
  if (Rest.data() != Same)
    literal({Same, static_cast<size_t>(Rest.data() - Same)});
  // Handles without a shared name would all be one variable.
  if (Rewrites && G.isOp(N, op::VarHandleOp) && !G.hasAttr(N, "shared_name"))
    ownName(Segment::String).For = Segment::Others;
}

//===----------------------------------------------------------------------===//
// Nodes
//===----------------------------------------------------------------------===//

void NodeRenderer::select(NodeId Node) {
  N = Node;
  This = &G.node(N);
  NumSegments = 0;
  Parts.clear();
  Classes.clear();
  Arena.Reset();
  switch (E.Program[This->Op]) {
  case ReplicaExpander::MeshNode:
    return;
  case ReplicaExpander::Split:
    PerReplica = false;
    return split();
  case ReplicaExpander::Merge:
    PerReplica = false;
    return merge();
  case ReplicaExpander::Scale:
    PerReplica = This->Count == Copies::PerReplica;
    return scale();
  case ReplicaExpander::FanIn:
  case ReplicaExpander::FanOut:
    PerReplica = false;
    return fan();
  case ReplicaExpander::Plain:
    PerReplica = This->Count == Copies::PerReplica;
    return plain();
  }
}

void NodeRenderer::plain() {
  if (E.isAsRead(N)) {
    literal({This->RawData, This->RawSize});
    return endPart();
  }
  ownName(Segment::Name);
  literal(E.OpFields[This->Op]);
  for (Endpoint Input : G.dataInputs(N))
    dataInput(Input);
  for (Endpoint Input : G.controlInputs(N))
    controlInput(Input.Node);
  if (This->Flags & NF_Led && PerReplica)
    copyName(Segment::Input, *This, Segment::First, ControlPort).Each = true;
  device();
  attributes();
  endPart();
}

/// Adds a node that connects all replicas with a computation that is written
/// once.
void NodeRenderer::fan() {
  ownName(Segment::Name);
  literal(E.OpFields[This->Op]);
  for (Endpoint Input : G.dataInputs(N)) {
    firstInput(Input, Segment::All);
    if (G.isPerReplica(Input.Node))
      otherInputs(Input);
  }
  for (Endpoint Input : G.controlInputs(N))
    controlInput(Input.Node);
  device();
  attributes();
  if (E.Program[This->Op] == ReplicaExpander::FanIn)
    attribute("N", encodeIntAttr(Count));
  endPart();
}

void NodeRenderer::device() { add(Segment::Device, {}); }

/// Marks the node as written by graft, and records the word in the names of its
/// copies.
void NodeRenderer::stamp() {
  attribute(StampAttr, encodeIntAttr(Count));
  if (E.Word != UsualCopyWord)
    attribute(CopyWordAttr, encodeStringAttr(E.Word));
}

/// Returns the suffix in the name of an added operand, such as a constant. This
/// is \p Suffix, with a number if the program already has a node of that name.
StringRef NodeRenderer::operand(StringRef Suffix) {
  StringRef Name(This->NameData, This->NameSize);
  std::string Free = G.uniqueName((Name + Suffix).str());
  return Saver.save(StringRef(Free).drop_front(Name.size()));
}

void NodeRenderer::constant(StringRef Suffix, StringRef Value, unsigned Type) {
  ownName(Segment::Name, Suffix);
  field(2, op::Const);
  device();
  attribute("dtype", encodeTypeAttr(Type));
  attribute("value", Value);
  endPart();
}

void NodeRenderer::split() {
  StringRef Dim = operand("/split_dim");
  constant(Dim, encodeIntTensor(DT_INT32, {}, G.intAttr(N, "axis").value_or(0)),
           DT_INT32);
  std::string Type = encodeTypeAttr(G.typeAttr(N, "T").value_or(DT_INVALID));
  bool Repeats = This->NumData == 2;
  StringRef Repeat;
  if (Repeats) {
    Repeat = operand("/repeat");
    ownName(Segment::Name, Repeat);
    field(2, op::Tile);
    dataInput(G.input(N, 0));
    dataInput(G.input(N, 1));
    device();
    attribute("T", Type);
    attribute("Tmultiples", encodeTypeAttr(DT_INT32));
    stamp();
    endPart();
  }
  ownName(Segment::Name);
  field(2, op::Split);
  ownName(Segment::Input, Dim);
  if (Repeats)
    ownName(Segment::Input, Repeat);
  else
    dataInput(G.input(N, 0));
  device();
  attribute("T", Type);
  attribute("num_split", encodeIntAttr(Count));
  stamp();
  if (auto Rows = G.attr(N, RowsAttr))
    attribute(RowsAttr, *Rows);
  endPart();
}

void NodeRenderer::merge() {
  if (This->Flags & NF_ElidePrimary)
    return;
  StringRef Combine = G.stringAttr(N, CombineAttr).value_or(combine::Pick);
  if (Count == 1)
    Combine = combine::Pick; // ConcatV2 takes two values at least
  std::string Type = encodeTypeAttr(G.typeAttr(N, "T").value_or(DT_INVALID));
  bool Stacks = Combine != combine::Sum && Combine != combine::Concat &&
                Combine != combine::Pick;
  int64_t Axis = Stacks ? 0 : G.intAttr(N, "axis").value_or(0);
  StringRef AxisName, Stack;
  if (Stacks)
    Stack = operand("/stack");
  if (Stacks || Combine == combine::Concat) {
    AxisName = operand("/axis");
    constant(AxisName, encodeIntTensor(DT_INT32, {}, Axis), DT_INT32);
  }
  // Set if the merge keeps only the first rows of the concatenation.
  bool Keeps = Combine == combine::Concat && This->NumData == 2;
  StringRef All = Keeps ? operand("/rows") : StringRef();
  ownName(Segment::Name, Keeps ? All : Stack);
  field(2, Stacks                       ? op::Pack
           : Combine == combine::Sum    ? op::AddN
           : Combine == combine::Concat ? op::ConcatV2
                                        : op::Identity);
  firstInput(G.input(N, 0), Segment::All);
  if (Combine != combine::Pick)
    otherInputs(G.input(N, 0));
  if (Combine == combine::Concat)
    ownName(Segment::Input, AxisName);
  for (Endpoint Input : G.controlInputs(N))
    controlInput(Input.Node);
  device();
  attribute("T", Type);
  if (Combine != combine::Pick)
    attribute("N", encodeIntAttr(Count));
  if (auto Assumed = G.intAttr(N, AssumedAttr))
    attribute(AssumedAttr, encodeIntAttr(*Assumed));
  stamp();
  endPart();
  if (Keeps)
    return keep(All, Axis);
  if (!Stacks)
    return;
  ownName(Segment::Name);
  field(2, Combine == "min"   ? op::Min
           : Combine == "max" ? op::Max
           : Combine == "and" ? op::All
                              : op::Any);
  ownName(Segment::Input, Stack);
  ownName(Segment::Input, AxisName);
  device();
  if (Combine != combine::And && Combine != combine::Or)
    attribute("T", Type);
  stamp();
  endPart();
}

/// Adds the node that keeps the first elements of \p All along \p Axis.
void NodeRenderer::keep(StringRef All, int64_t Axis) {
  SmallVector<int64_t, 8> Begin(static_cast<size_t>(Axis) + 1),
      Strides(Begin.size(), 1);
  auto Vector = [&](StringRef Suffix, ArrayRef<int64_t> Values) {
    StringRef Name = operand(Suffix);
    constant(
        Name,
        encodeIntTensor(DT_INT32, static_cast<int64_t>(Values.size()), Values),
        DT_INT32);
    return Name;
  };
  StringRef BeginName = Vector("/begin", Begin),
            StridesName = Vector("/strides", Strides);
  ownName(Segment::Name);
  field(2, op::StridedSlice);
  ownName(Segment::Input, All);
  ownName(Segment::Input, BeginName);
  dataInput(G.input(N, 1));
  ownName(Segment::Input, StridesName);
  device();
  attribute("Index", encodeTypeAttr(DT_INT32));
  attribute("T", encodeTypeAttr(G.typeAttr(N, "T").value_or(DT_INVALID)));
  // The slice keeps all elements along the axes before Axis.
  int64_t Before = (int64_t(1) << Axis) - 1;
  for (StringRef Mask : {"begin_mask", "end_mask"})
    if (Before != 0)
      attribute(Mask, encodeIntAttr(Before));
  if (auto Assumed = G.intAttr(N, AssumedAttr))
    attribute(AssumedAttr, encodeIntAttr(*Assumed));
  stamp();
  endPart();
}

void NodeRenderer::scale() {
  ScaleFactor By = scaleFactor(G, N, Count);
  bool HasFactor = This->NumData == 2;
  StringRef FactorName;
  if (!HasFactor) {
    FactorName = operand("/factor");
    constant(FactorName, By.Tensor, By.Type);
  }
  ownName(Segment::Name);
  field(2, By.Op);
  dataInput(G.input(N, 0));
  if (HasFactor)
    dataInput(G.input(N, 1));
  else
    ownName(Segment::Input, FactorName);
  for (Endpoint Input : G.controlInputs(N))
    controlInput(Input.Node);
  device();
  attribute("T", encodeTypeAttr(By.Type));
  stamp();
  endPart();
}

} // namespace graft
