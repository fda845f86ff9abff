//===- lib/lower/ExpandNode.cpp - one node of the expansion -----*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
// Field numbers are those of tensorflow/core/framework/node_def.proto: name 1,
// op 2, input 3, device 4, attr 5. Attributes that hold names or identities are
// rewritten as docs/Design.md lists them.
//
//===----------------------------------------------------------------------===//

#include "lib/lower/Expand.h"
#include "lib/support/Wire.h"

#include <cmath>

using namespace llvm;

namespace graft {

namespace {

void append(std::string &S, StringRef Text) {
  S.append(Text.data(), Text.size());
}

void attrEntry(std::string &Out, StringRef Key, StringRef Value) {
  std::string Entry;
  wire::appendBytes(Entry, 1, Key);
  wire::appendBytes(Entry, 2, Value);
  wire::appendBytes(Out, 5, Entry);
}

bool isRenamedLocal(const Node &N) {
  // merge-fetches renames the local node of a merged value to replica/<name>.
  return (N.Flags & NF_LocalName) && N.NameSplit == strlen("replica") &&
         StringRef(N.NameData, N.NameSize).starts_with("replica/");
}

} // namespace

//===----------------------------------------------------------------------===//
// Names
//===----------------------------------------------------------------------===//

void ReplicaExpander::appendName(Rendering &Out, NodeId N,
                                 unsigned Replica) const {
  const Node &This = G.node(N);
  StringRef Name = G.name(N);
  if (This.Count == Copies::Once || isSplit(N) ||
      (Replica == 0 && !(This.Flags & NF_LocalName))) {
    append(Out.Bytes, Name);
    return;
  }
  std::string Number = std::to_string(Replica);
  if (This.NameSplit == 0) {
    append(Out.Bytes, "replica_");
    Out.Digits.push_back(Out.Bytes.size());
    Out.Bytes += Number;
    Out.Bytes += '/';
    append(Out.Bytes, Name);
    return;
  }
  append(Out.Bytes, Name.take_front(This.NameSplit));
  append(Out.Bytes, isRenamedLocal(This) ? "_" : "/replica_");
  Out.Digits.push_back(Out.Bytes.size());
  Out.Bytes += Number;
  append(Out.Bytes, Name.drop_front(This.NameSplit));
}

/// Writes a length-delimited field whose contents \p Fill appends.
template <typename Body, typename Fn>
static void lengthField(Body &Out, unsigned Field, Fn Fill) {
  wire::appendTag(Out.Bytes, Field, wire::Type::Bytes);
  size_t At = Out.Bytes.size();
  size_t FirstDigit = Out.Digits.size(), FirstDevice = Out.Devices.size();
  Out.Bytes += '\0';
  Fill();
  size_t Length = Out.Bytes.size() - At - 1;
  unsigned Extra = wire::varintSize(Length) - 1;
  if (Extra != 0) {
    // Longer than 127 bytes: make room and move the marks.
    Out.Bytes.insert(At + 1, Extra, '\0');
    for (size_t I = FirstDigit; I < Out.Digits.size(); ++I)
      Out.Digits[I] += Extra;
    for (size_t I = FirstDevice; I < Out.Devices.size(); ++I)
      Out.Devices[I] += Extra;
  }
  wire::putVarint(Out.Bytes.data() + At, Length);
}

void ReplicaExpander::nameField(const Context &C, Rendering &Body,
                                StringRef Suffix) {
  lengthField(Body, 1, [&] {
    appendName(Body, C.Node, C.Replica);
    append(Body.Bytes, Suffix);
  });
}

void ReplicaExpander::finishNode(const Context &C, const Rendering &Body) {
  Rendering &Out = *C.Out;
  Out.Bytes += '\x0a';
  wire::appendVarint(Out.Bytes, Body.Bytes.size());
  auto Base = static_cast<uint32_t>(Out.Bytes.size());
  for (uint32_t At : Body.Digits)
    Out.Digits.push_back(Base + At);
  for (uint32_t At : Body.Devices)
    Out.Devices.push_back(Base + At);
  Out.Bytes += Body.Bytes;
}

//===----------------------------------------------------------------------===//
// Inputs
//===----------------------------------------------------------------------===//

void ReplicaExpander::inputField(Rendering &Body, NodeId N, unsigned Replica,
                                 uint32_t Port, StringRef Suffix) const {
  lengthField(Body, 3, [&] {
    if (Port == ControlPort)
      Body.Bytes += '^';
    appendName(Body, N, Replica);
    append(Body.Bytes, Suffix);
    if (Port != ControlPort && Port != 0) {
      Body.Bytes += ':';
      Body.Bytes += std::to_string(Port);
    }
  });
}

void ReplicaExpander::dataInput(const Context &C, Rendering &Body,
                                Endpoint E) const {
  const Node &Source = G.node(E.Node);
  if (isSplit(E.Node)) {
    lengthField(Body, 3, [&] {
      append(Body.Bytes, G.name(E.Node));
      if (C.Replica != 0) {
        Body.Bytes += ':';
        Body.Digits.push_back(Body.Bytes.size());
        Body.Bytes += std::to_string(C.Replica);
      }
    });
    return;
  }
  if (Source.Flags & NF_ElidePrimary &&
      (Source.Count == Copies::Once || C.Replica == 0)) {
    // A pick, or a place that copy 0 does not need.
    Context AsPrimary = C;
    if (Source.Count == Copies::Once)
      AsPrimary.Replica = 0;
    dataInput(AsPrimary, Body, G.input(E.Node, 0));
    return;
  }
  inputField(Body, E.Node, C.Replica, E.Port);
}

void ReplicaExpander::controlInput(const Context &C, Rendering &Body,
                                   NodeId Source) const {
  const Node &From = G.node(Source);
  if (From.Count == Copies::Once || isSplit(Source)) {
    if (From.Flags & NF_ElidePrimary)
      controlInput(C, Body, G.input(Source, 0).Node);
    else
      inputField(Body, Source, 0, ControlPort);
    return;
  }
  auto Copy = [&](unsigned R) {
    if (R == 0 && From.Flags & NF_ElidePrimary) {
      Context AsPrimary = C;
      AsPrimary.Replica = 0;
      AsPrimary.PerReplica = true;
      controlInput(AsPrimary, Body, G.input(Source, 0).Node);
    } else {
      inputField(Body, Source, R, ControlPort);
    }
  };
  if (C.PerReplica) {
    Copy(C.Replica);
    return;
  }
  // Copy 0 of a led node waits for the others.
  Copy(0);
  for (unsigned R = 1; R < Devices.size() && !(From.Flags & NF_Led); ++R)
    Copy(R);
}

//===----------------------------------------------------------------------===//
// Devices and attributes
//===----------------------------------------------------------------------===//

void ReplicaExpander::deviceField(const Context &C, Rendering &Body) const {
  StringRef Device = deviceOf(C.Node, C.Replica);
  if (Device.empty())
    return;
  lengthField(Body, 4, [&] {
    if (C.PerReplica && !(G.node(C.Node).Flags & NF_FixedDevice))
      Body.Devices.push_back(Body.Bytes.size());
    append(Body.Bytes, Device);
  });
}

/// `_class`: copies are colocated with copies of their own replica.
void ReplicaExpander::classAttr(const Context &C, Rendering &Body,
                                const AttrEntry &Entry) const {
  auto Classes = G.stringListAttr(C.Node, "_class");
  lengthField(Body, 5, [&] {
    wire::appendBytes(Body.Bytes, 1, Entry.Key);
    lengthField(Body, 2, [&] {
      lengthField(Body, 1, [&] {
        for (StringRef Class : *Classes)
          lengthField(Body, 2, [&] {
            StringRef Target = Class;
            NodeId With =
                Target.consume_front("loc:@") ? G.find(Target) : NoNode;
            if (With == NoNode) {
              append(Body.Bytes, Class);
              return;
            }
            append(Body.Bytes, "loc:@");
            appendName(Body, With, C.Replica);
          });
      });
    });
  });
}

void ReplicaExpander::attrFields(const Context &C, Rendering &Body) const {
  const Node &This = G.node(C.Node);
  if (!(This.Flags & (NF_MayHaveClass | NF_MayHaveGraft)) &&
      (!C.PerReplica || !Rewrites[This.Op])) {
    append(Body.Bytes, {This.AttrData, This.AttrSize});
    return;
  }
  wire::Reader R({This.AttrData, This.AttrSize});
  wire::Field F;
  while (R.next(F)) {
    if (F.Number != 5 || F.Bytes.size() < 2 ||
        static_cast<uint8_t>(F.Bytes[1]) >= 0x80) {
      append(Body.Bytes, F.Whole);
      continue;
    }
    StringRef Key = F.Bytes.substr(2, static_cast<size_t>(F.Bytes[1]));
    if (Key == "_class") {
      AttrEntry Entry{Key, {}, F.Whole};
      classAttr(C, Body, Entry);
      continue;
    }
    if (Key.starts_with("_graft_"))
      continue;
    if (C.PerReplica && Key == "frame_name") {
      StringRef Frame = G.stringAttr(C.Node, Key).value_or("");
      attrEntry(Body.Bytes, Key,
                encodeStringAttr("replica_" + std::to_string(C.Replica) + "/" +
                                 Frame.str()));
      continue;
    }
    if (C.PerReplica && C.Replica > 0 && Key == "shared_name") {
      StringRef Shared = G.stringAttr(C.Node, Key).value_or("");
      // A reference variable without a shared name is known by its node.
      if (Shared.empty() && !G.isOp(C.Node, "VarHandleOp")) {
        append(Body.Bytes, F.Whole);
        continue;
      }
      lengthField(Body, 5, [&] {
        wire::appendBytes(Body.Bytes, 1, Key);
        lengthField(Body, 2, [&] {
          lengthField(Body, 2, [&] { appendName(Body, C.Node, C.Replica); });
        });
      });
      continue;
    }
    if (C.PerReplica && C.Replica > 0 && Key == "seed2" && RandomOps[This.Op]) {
      int64_t Seed = G.intAttr(C.Node, "seed").value_or(0);
      int64_t Seed2 = G.intAttr(C.Node, "seed2").value_or(0);
      // Seeds of 0 and 0 ask for another stream in any case.
      if (Seed != 0 || Seed2 != 0)
        Seed2 += C.Replica;
      attrEntry(Body.Bytes, Key, encodeIntAttr(Seed2));
      continue;
    }
    append(Body.Bytes, F.Whole);
  }
  // A handle without a name of its own would be one variable with the others.
  if (C.PerReplica && C.Replica > 0 && VariableOps[This.Op] &&
      G.isOp(C.Node, "VarHandleOp") && !G.hasAttr(C.Node, "shared_name"))
    attrEntry(Body.Bytes, "shared_name",
              encodeStringAttr(copyName(C.Node, C.Replica)));
}

//===----------------------------------------------------------------------===//
// Crossing ops
//===----------------------------------------------------------------------===//

void ReplicaExpander::renderConst(const Context &C, StringRef Suffix,
                                  StringRef Value, unsigned Type) {
  Rendering Body;
  nameField(C, Body, Suffix);
  wire::appendBytes(Body.Bytes, 2, "Const");
  deviceField(C, Body);
  attrEntry(Body.Bytes, "dtype", encodeTypeAttr(Type));
  attrEntry(Body.Bytes, "value", Value);
  finishNode(C, Body);
}

void ReplicaExpander::renderSplit(NodeId N, Rendering &Out) {
  Context C{N, 0, false, &Out};
  int64_t Axis = G.intAttr(N, "axis").value_or(0);
  auto Count = static_cast<int64_t>(Devices.size());
  renderConst(C, "/split_dim", encodeIntTensor(DT_INT32, {}, Axis), DT_INT32);
  Rendering Body;
  nameField(C, Body, "");
  wire::appendBytes(Body.Bytes, 2, "Split");
  inputField(Body, N, 0, 0, "/split_dim");
  dataInput(C, Body, G.input(N, 0));
  deviceField(C, Body);
  attrEntry(Body.Bytes, "T",
            encodeTypeAttr(G.typeAttr(N, "T").value_or(DT_INVALID)));
  attrEntry(Body.Bytes, "num_split", encodeIntAttr(Count));
  attrEntry(Body.Bytes, StampAttr, encodeIntAttr(Count));
  finishNode(C, Body);
}

void ReplicaExpander::renderMerge(NodeId N, Rendering &Out) {
  if (G.node(N).Flags & NF_ElidePrimary)
    return;
  Context C{N, 0, false, &Out};
  StringRef Combine = G.stringAttr(N, "combine").value_or("pick");
  if (Devices.size() == 1)
    Combine = "pick"; // ConcatV2 takes two values at least
  auto Count = static_cast<int64_t>(Devices.size());
  unsigned Type = G.typeAttr(N, "T").value_or(DT_INVALID);
  bool Stacks = Combine != "sum" && Combine != "concat" && Combine != "pick";
  int64_t Axis = Stacks ? 0 : G.intAttr(N, "axis").value_or(0);
  if (Stacks || Combine == "concat")
    renderConst(C, "/axis", encodeIntTensor(DT_INT32, {}, Axis), DT_INT32);
  Rendering Body;
  nameField(C, Body, Stacks ? "/stack" : "");
  wire::appendBytes(Body.Bytes, 2,
                    Stacks                ? "Pack"
                    : Combine == "sum"    ? "AddN"
                    : Combine == "concat" ? "ConcatV2"
                                          : "Identity");
  Context Copy = C;
  for (unsigned R = 0; R < (Combine == "pick" ? 1 : Devices.size()); ++R) {
    Copy.Replica = R;
    dataInput(Copy, Body, G.input(N, 0));
  }
  if (Combine == "concat")
    inputField(Body, N, 0, 0, "/axis");
  for (Endpoint E : G.controlInputs(N))
    controlInput(C, Body, E.Node);
  deviceField(C, Body);
  attrEntry(Body.Bytes, "T", encodeTypeAttr(Type));
  if (Combine != "pick")
    attrEntry(Body.Bytes, "N", encodeIntAttr(Count));
  attrEntry(Body.Bytes, StampAttr, encodeIntAttr(Count));
  finishNode(C, Body);
  if (!Stacks)
    return;
  Rendering Last;
  bool Logical = Combine == "and" || Combine == "or";
  nameField(C, Last, "");
  wire::appendBytes(Last.Bytes, 2,
                    Combine == "min"   ? "Min"
                    : Combine == "max" ? "Max"
                    : Combine == "and" ? "All"
                                       : "Any");
  inputField(Last, N, 0, 0, "/stack");
  inputField(Last, N, 0, 0, "/axis");
  deviceField(C, Last);
  if (!Logical)
    attrEntry(Last.Bytes, "T", encodeTypeAttr(Type));
  attrEntry(Last.Bytes, StampAttr, encodeIntAttr(Count));
  finishNode(C, Last);
}

/// Times N^power; integers, which have no reciprocal, are divided.
void ReplicaExpander::renderScale(const Context &C) {
  int64_t Power = G.intAttr(C.Node, "power").value_or(0);
  unsigned Type = G.typeAttr(C.Node, "T").value_or(DT_INVALID);
  double Factor = std::pow(static_cast<double>(Devices.size()), Power);
  bool Float = isFloating(Type);
  auto Whole = static_cast<int64_t>(
      std::llround(std::pow(static_cast<double>(Devices.size()),
                            std::abs(static_cast<double>(Power)))));
  renderConst(C, "/factor",
              Float ? encodeFloatTensor(Type, {}, Factor)
                    : encodeIntTensor(Type, {}, Whole),
              Type);
  Rendering Body;
  nameField(C, Body, "");
  wire::appendBytes(Body.Bytes, 2, Float || Power >= 0 ? "Mul" : "FloorDiv");
  dataInput(C, Body, G.input(C.Node, 0));
  inputField(Body, C.Node, C.Replica, 0, "/factor");
  for (Endpoint E : G.controlInputs(C.Node))
    controlInput(C, Body, E.Node);
  deviceField(C, Body);
  attrEntry(Body.Bytes, "T", encodeTypeAttr(Type));
  attrEntry(Body.Bytes, StampAttr,
            encodeIntAttr(static_cast<int64_t>(Devices.size())));
  finishNode(C, Body);
}

} // namespace graft
