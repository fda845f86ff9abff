//===- lib/lower/expand/Expand.cpp - in-graph replication -------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
// The pieces of the output and their order. ExpandNode.cpp renders a node.
//
//===----------------------------------------------------------------------===//

#include "lib/lower/expand/Expand.h"

#include "lib/graph/DeviceName.h"
#include "lib/graph/FileWalk.h"
#include "lib/lower/expand/Render.h"
#include "lib/ops/OpRule.h"
#include "lib/ops/Ops.h"
#include "lib/program/Program.h"

#include <charconv>

using namespace llvm;

namespace graft {

std::string mergeDevices(StringRef Of, StringRef Device) {
  auto Node = DeviceName::parse(Of), Replica = DeviceName::parse(Device);
  if (Of.empty() || !Node || !Replica)
    return Device.str();
  if (!Replica->Job.empty() || Replica->Task)
    return Device.str();
  Node->Type = Replica->Type;
  Node->Index = Replica->Index;
  return Node->str();
}

ReplicaExpander::Number::Number(unsigned Replica) {
  Size = static_cast<uint8_t>(
      std::to_chars(Text, Text + sizeof(Text), Replica).ptr - Text);
}

/// Returns devices with the type and index of each replica, and the job and
/// task of \p Of.
ReplicaExpander::DeviceRow ReplicaExpander::deviceRow(StringRef Of) const {
  DeviceRow Row;
  Row.Names.reserve(Devices.size());
  for (const std::string &Device : Devices) {
    Row.Names.push_back(mergeDevices(Of, Device));
    Row.Longest = std::max(Row.Longest, Row.Names.back().size());
  }
  auto Stem = [&](unsigned R) {
    StringRef Name = Row.Names[R], Text(Numbers[R].Text, Numbers[R].Size);
    return Name.ends_with(Text) ? Name.drop_back(Text.size()) : StringRef();
  };
  Row.IsNumbered = Devices.size() > 1;
  for (unsigned R = 1; R < Devices.size(); ++R) {
    if (Row.Spans.empty() || Numbers[R].Size != Numbers[R - 1].Size ||
        Row.Names[R].size() != Row.Names[R - 1].size())
      Row.Spans.push_back({R, 0});
    ++Row.Spans.back().Count;
    Row.IsNumbered &= !Stem(R).empty() && Stem(R) == Stem(1);
  }
  return Row;
}

ReplicaExpander::ReplicaExpander(const Graph &G, Mesh M)
    : G(G), Devices(std::move(M.Devices)), Word(std::move(M.Word)),
      InnerWord("/" + Word), Order(G.order()) {
  for (uint32_t Op = 0; Op < G.numOps(); ++Op) {
    StringRef Name = G.opNameOf(Op);
    RandomOps.push_back(isRandomOp(Name));
    wire::appendBytes(OpFields.emplace_back(), 2, Name);
    const OpDef *Def = G.opDefOf(Op);
    Rewrites.push_back(!Def || RandomOps.back() || Def->attr("frame_name") ||
                       Def->attr("shared_name"));
    Program.push_back(Name == MeshOp                    ? MeshNode
                      : Name == ToReplicasOp            ? Split
                      : Name == FromReplicasOp          ? Merge
                      : Name == ScaleOp                 ? Scale
                      : Name == op::TPUReplicatedInput  ? FanIn
                      : Name == op::TPUReplicatedOutput ? FanOut
                                                        : Plain);
  }
  for (unsigned R = 0; R < Devices.size(); ++R)
    Numbers.emplace_back(R);
  for (uint32_t D = 0; D < G.numDevices(); ++D)
    Rows.push_back(deviceRow(G.deviceName(D)));
  Rows.emplace_back();
  for (unsigned R = 1; R < Devices.size(); ++R) {
    std::vector<Span> &Spans = Rows.back().Spans;
    if (Spans.empty() || Numbers[R].Size != Numbers[R - 1].Size)
      Spans.push_back({R, 0});
    ++Spans.back().Count;
  }
}

/// Returns true if the bytes of \p N in the input file can be written as they
/// are: \p N was not modified, and no node that it reads or is colocated with
/// was renamed.
bool ReplicaExpander::isAsRead(NodeId N) const {
  const Node &This = G.node(N);
  return This.RawData && This.Count == Copies::Once &&
         Program[This.Op] == Plain &&
         !(This.Flags & (NF_Modified | NF_MayHaveClass)) &&
         all_of(G.inputs(N), [&](Endpoint Input) {
           const Node &Source = G.node(Input.Node);
           return Source.Count == Copies::Once && Source.Kind == Inserted::No;
         });
}

void ReplicaExpander::sizes(
    function_ref<void(uint64_t Bytes, uint64_t Times)> F) const {
  NodeRenderer Renderer(*this);
  FileWalk Walk(G);
  for (NodeId N : Order) {
    Walk.at(N);
    const Node &This = G.node(N);
    Renderer.select(N);
    if (isOnce(This)) {
      if (uint64_t Size = Renderer.size(0))
        F(Size, 1);
      continue;
    }
    if (!(This.Flags & NF_ElidePrimary))
      F(Renderer.size(0), 1);
    // A seed is encoded as a varint, so the copies of a random op differ in
    // size.
    if (RandomOps[This.Op]) {
      for (unsigned R = 1; R < Devices.size(); ++R)
        F(Renderer.size(R), 1);
      continue;
    }
    for (Span S : spansOf(This))
      F(Renderer.size(S.First), S.Count);
  }
}

uint64_t ReplicaExpander::sizeBound() const {
  // Name: the bytes by which a name may grow, the head of its field and a port.
  // Fixed: all bytes of a node other than its names and attributes.
  constexpr uint64_t Name = 48, Fixed = 128, Special = 2048;
  uint64_t Total = 0, LongestDevice = 0, LongestName = 0;
  for (const DeviceRow &Row : Rows)
    LongestDevice = std::max<uint64_t>(LongestDevice, Row.Longest);
  for (NodeId N : Order)
    LongestName = std::max<uint64_t>(LongestName, G.node(N).NameSize);
  for (NodeId N : Order) {
    const Node &This = G.node(N);
    bool IsOnce = This.Count == Copies::Once;
    // The name may be a `shared_name` too. In the input file, a name in
    // `_class` takes at least eight bytes.
    uint64_t One = 2 * (This.NameSize + Name) + OpFields[This.Op].size() +
                   This.AttrSize +
                   (This.Flags & NF_MayHaveClass ? This.AttrSize * 4 : 0) +
                   (IsOnce ? G.device(N).size() : 0) + LongestDevice + Fixed;
    uint64_t Each = 0; // the names of all copies in this node
    for (Endpoint E : G.inputs(N)) {
      const Node &Source = G.node(E.Node);
      uint64_t Input =
          Name +
          (Source.Flags & NF_ElidePrimary ? LongestName : Source.NameSize);
      One += Input;
      if (IsOnce && Source.Count == Copies::PerReplica)
        Each += Input;
    }
    if (This.Flags & NF_Led)
      Each += This.NameSize + Name;
    if (Program[This.Op] != Plain) {
      One += Special + 12 * (LongestName + Name);
      Each += LongestName + Name;
    }
    if (IsOnce)
      One = std::max<uint64_t>(One, This.RawSize + Fixed);
    Total += One * (IsOnce ? 1 : Devices.size()) + Each * Devices.size();
  }
  return Total;
}

/// Nodes of more bytes than this are streamed, copy by copy.
static constexpr uint64_t LargestRoom = OutputBuffer::Capacity / 8;

static void writeCopy(NodeRenderer &Renderer, unsigned Replica,
                      OutputBuffer &Out) {
  uint64_t Size = Renderer.size(Replica);
  if (Size > LargestRoom) {
    Renderer.render(StreamOut{Out}, Replica);
    return;
  }
  char *Room = Out.room(Size);
  char *End =
      Renderer.render(CursorOut{Room, Room, nullptr, nullptr}, Replica).P;
  assert(End == Room + Size && "counted and written alike");
  Out.filledTo(End);
}

/// Writes the copies of \p S other than the first. \p Model has the bytes of
/// the first copy. The others differ from it only in the replica numbers at \p
/// NumbersAt and the devices at \p DevicesAt. These are offsets in the body of
/// the node, which begins at byte \p Head of \p Model.
void ReplicaExpander::stamp(StringRef Model, size_t Head, Span S,
                            ArrayRef<uint32_t> NumbersAt,
                            ArrayRef<uint32_t> DevicesAt, const Node &This,
                            OutputBuffer &Out) const {
  for (unsigned R = S.First + 1; R < S.First + S.Count; ++R) {
    char *Copy = Out.room(Model.size());
    std::memcpy(Copy, Model.data(), Model.size());
    Out.filledTo(Copy + Model.size());
    Copy += Head;
    const Number &Text = Numbers[R];
    const char Digit = Text.Text[0];
    if (Text.Size == 1)
      for (uint32_t At : NumbersAt)
        Copy[At] = Digit;
    else
      for (uint32_t At : NumbersAt)
        std::memcpy(Copy + At, Text.Text, Text.Size);
    for (uint32_t At : DevicesAt) {
      const std::string &Device = Rows[This.Device].Names[R];
      llvm::copy(Device, Copy + At);
    }
  }
}

/// Writes the copies of \p N with \p Pair. Returns false if \p N needs
/// NodeRenderer.
bool ReplicaExpander::writeFast(FastNodeWriter &Pair, NodeId N,
                                OutputBuffer &Out) const {
  const Node &This = G.node(N);
  if (isAsRead(N)) {
    char Head[11] = {bytesTag(1)};
    char *End = wire::putVarint(Head + 1, This.RawSize);
    Out.write({Head, static_cast<size_t>(End - Head)});
    Out.write({This.RawData, This.RawSize});
    return true;
  }
  if (isOnce(This)) {
    if (!Pair.render(N, 0))
      return false;
    Out.write(Pair.first());
    return true;
  }
  for (Span S : spansOf(This)) {
    // The first span shows whether \p Pair can write all of them.
    if (!Pair.render(N, S.First))
      return false;
    if (S.First == 1 && !(This.Flags & NF_ElidePrimary))
      Out.write(Pair.first());
    Out.write(Pair.other());
    stamp(Pair.other(), Pair.headSize(), S, Pair.numbers(), Pair.devices(),
          This, Out);
  }
  return Devices.size() > 1;
}

void ReplicaExpander::write(size_t Begin, size_t End, OutputBuffer &Out) const {
  NodeRenderer Renderer(*this);
  auto Pair = std::make_unique<FastNodeWriter>(*this);
  SmallVector<uint32_t, 32> NumbersAt, DevicesAt;
  SmallVector<char, 0> Model;
  // The inputs of a node are all over the graph: prefetch their records first,
  // then their names.
  constexpr size_t Ahead = 8;
  auto Soon = [&](size_t I, auto Fetch) {
    if (I >= End)
      return;
    for (Endpoint E : G.inputs(Order[I]))
      Fetch(E.Node);
  };
  FileWalk Walk(G);
  for (size_t I = Begin; I < End; ++I) {
    Walk.at(Order[I]);
    Soon(I + 2 * Ahead, [&](NodeId N) { __builtin_prefetch(&G.node(N)); });
    Soon(I + Ahead, [&](NodeId N) { __builtin_prefetch(G.name(N).data()); });
    if (I + Ahead < End)
      G.prefetchAttrs(Order[I + Ahead]);
    const Node &This = G.node(Order[I]);
    if (writeFast(*Pair, Order[I], Out))
      continue;
    Renderer.select(Order[I]);
    if (isOnce(This)) {
      writeCopy(Renderer, 0, Out);
      continue;
    }
    if (!(This.Flags & NF_ElidePrimary))
      writeCopy(Renderer, 0, Out);
    for (Span S : spansOf(This)) {
      uint64_t Size = Renderer.size(S.First);
      if (RandomOps[This.Op] || Size > LargestRoom) {
        for (unsigned R = S.First; R < S.First + S.Count; ++R)
          writeCopy(Renderer, R, Out);
        continue;
      }
      NumbersAt.resize_for_overwrite(Renderer.maxNumbers());
      DevicesAt.resize_for_overwrite(Renderer.maxNumbers());
      Model.resize_for_overwrite(Size);
      CursorOut O =
          Renderer.render(CursorOut{Model.data(), Model.data(),
                                    NumbersAt.data(), DevicesAt.data()},
                          S.First);
      assert(O.P == O.Begin + Size && "counted and written alike");
      Out.write({Model.data(), Size});
      stamp({Model.data(), Size}, 0, S, ArrayRef(NumbersAt.data(), O.Numbers),
            ArrayRef(DevicesAt.data(), O.Devices), This, Out);
    }
  }
}

void ReplicaExpander::forEachCopy(
    function_ref<void(NodeId, std::optional<unsigned>, StringRef)> F) const {
  NodeRenderer Renderer(*this);
  SmallVector<char, 0> Bytes;
  for (NodeId N : Order) {
    const Node &This = G.node(N);
    Renderer.select(N);
    auto Give = [&](unsigned Copy, std::optional<unsigned> Replica) {
      Bytes.resize_for_overwrite(Renderer.size(Copy));
      char *Begin = Bytes.data();
      Renderer.render(CursorOut{Begin, Begin, nullptr, nullptr}, Copy);
      F(N, Replica, {Begin, Bytes.size()});
    };
    if (isOnce(This)) {
      Give(0, std::nullopt);
      continue;
    }
    for (unsigned R = This.Flags & NF_ElidePrimary ? 1 : 0; R < Devices.size();
         ++R)
      Give(R, R);
  }
}

} // namespace graft
