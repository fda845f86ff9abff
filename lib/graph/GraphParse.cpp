//===- lib/graph/GraphParse.cpp - GraphDef bytes to Graph -------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
// Two walks: node boundaries first, prefetching ahead because hopping from
// length to length is otherwise a chain of cache misses, then the fields of
// each node. No message object is made.
//
//===----------------------------------------------------------------------===//

#include "lib/graph/Graph.h"

#include "lib/support/Wire.h"

#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/xxhash.h"

using namespace llvm;

namespace graft {
namespace {

/// Field numbers of tensorflow/core/framework/{graph,node_def}.proto.
enum : unsigned {
  GraphNode = 1,
  NodeName = 1,
  NodeOp = 2,
  NodeInput = 3,
  NodeDevice = 4,
  NodeAttr = 5,
};

Error failure(const Twine &Message) {
  return createStringError(inconvertibleErrorCode(), Message);
}

/// The key of a map entry whose key comes first, as every writer puts it.
StringRef leadingKey(StringRef Entry) {
  if (Entry.size() < 2 || Entry[0] != 0x0a ||
      static_cast<uint8_t>(Entry[1]) >= 0x80 ||
      Entry.size() < 2 + static_cast<size_t>(Entry[1]))
    return {};
  return Entry.substr(2, static_cast<size_t>(Entry[1]));
}

} // namespace

uint8_t Graph::attrFlags(StringRef Key) {
  if (!Key.starts_with("_"))
    return 0;
  return (Key == "_class" ? NF_MayHaveClass : 0) |
         (Key.starts_with("_graft_") ? NF_MayHaveGraft : 0);
}

Error Graph::parseNode(StringRef Body, uint64_t Offset,
                       std::vector<StringRef> &InputNames) {
  NodeId N = size();
  Nodes.emplace_back();
  Node &This = Nodes.back();
  This.RawData = Body.data();
  This.RawSize = static_cast<uint32_t>(Body.size());
  This.FirstEdge = static_cast<uint32_t>(InputNames.size());
  StringRef Op;
  const char *RestEnd = nullptr;
  bool Contiguous = true;
  std::string Rest;
  wire::Reader R(Body);
  wire::Field F;
  while (R.next(F)) {
    if (F.WireType == wire::Type::Bytes) {
      switch (F.Number) {
      case NodeName:
        This.NameData = F.Bytes.data();
        This.NameSize = static_cast<uint32_t>(F.Bytes.size());
        continue;
      case NodeOp:
        Op = F.Bytes;
        continue;
      case NodeInput:
        InputNames.push_back(F.Bytes);
        continue;
      case NodeDevice:
        This.Device = internDevice(F.Bytes);
        continue;
      case NodeAttr:
        This.Flags |= attrFlags(leadingKey(F.Bytes));
        break;
      default:
        break;
      }
    }
    // Everything else is kept as one run; gaps in it are rare.
    if (!This.AttrData) {
      This.AttrData = F.Whole.data();
    } else if (Contiguous && RestEnd != F.Whole.data()) {
      Contiguous = false;
      Rest.assign(This.AttrData, RestEnd);
    }
    if (!Contiguous)
      Rest.append(F.Whole.data(), F.Whole.size());
    RestEnd = F.Whole.end();
  }
  if (R.failed())
    return failure(formatv("byte {0}: node is truncated or malformed", Offset));
  if (Contiguous) {
    This.AttrSize = static_cast<uint32_t>(RestEnd - This.AttrData);
  } else {
    StringRef Saved = save(Rest);
    This.AttrData = Saved.data();
    This.AttrSize = static_cast<uint32_t>(Saved.size());
  }
  if (This.NameSize == 0)
    return failure(formatv("byte {0}: node without a name", Offset));
  if (Op.empty())
    return failure(formatv("node '{0}': has no op", name(N)));
  This.Op = internOp(Op);
  This.NumInputs =
      static_cast<uint32_t>(InputNames.size()) - Nodes[N].FirstEdge;
  ++Live;
  if (Nodes[N].Flags & NF_MayHaveGraft)
    readProgramAttrs(N);
  return Error::success();
}

/// Program state that was written as attributes becomes fields again.
void Graph::readProgramAttrs(NodeId N) {
  static constexpr std::pair<const char *, Inserted> Kinds[] = {
      {"split", Inserted::Split},   {"merge", Inserted::Merge},
      {"reduce", Inserted::Reduce}, {"gather", Inserted::Gather},
      {"scale", Inserted::Scale},   {"identity", Inserted::Identity},
      {"gate", Inserted::Gate},     {"constant", Inserted::Constant},
      {"mesh", Inserted::Mesh},
  };
  bool WasChanged = Changed;
  auto Take = [&](StringRef Key) {
    bool Present = hasAttr(N, Key);
    if (Present)
      removeAttr(N, Key);
    return Present;
  };
  if (auto Count = stringAttr(N, "_graft_copies")) {
    if (*Count == "per-replica")
      Nodes[N].Count = Copies::PerReplica;
    removeAttr(N, "_graft_copies");
  }
  if (auto Kind = stringAttr(N, "_graft_inserted")) {
    for (auto [Name, Value] : Kinds)
      if (*Kind == Name)
        Nodes[N].Kind = Value;
    removeAttr(N, "_graft_inserted");
  }
  if (auto Split = intAttr(N, "_graft_name_split")) {
    Nodes[N].NameSplit = static_cast<uint32_t>(*Split);
    removeAttr(N, "_graft_name_split");
  }
  if (Take("_graft_local_name"))
    Nodes[N].Flags |= NF_LocalName;
  if (Take("_graft_led"))
    Nodes[N].Flags |= NF_Led;
  if (Take("_graft_elide_primary"))
    Nodes[N].Flags |= NF_ElidePrimary;
  if (Take("_graft_fixed_device"))
    Nodes[N].Flags |= NF_FixedDevice;
  // Reading a program is no edit, but the bytes hold what are fields now.
  Nodes[N].RawData = nullptr;
  Nodes[N].Flags &= ~NF_Modified;
  Changed = WasChanged;
}

Error Graph::parse(StringRef Bytes) {
  struct Span {
    const char *Data;
    uint32_t Size;
  };
  std::vector<Span> Bodies;
  Bodies.reserve(Bytes.size() / 256 + 16);
  wire::Reader R(Bytes);
  wire::Field F;
  while (R.next(F)) {
    const char *Ahead = R.position();
    __builtin_prefetch(Ahead + 768);
    __builtin_prefetch(Ahead + 1024);
    __builtin_prefetch(Ahead + 1280);
    if (F.Number == GraphNode && F.WireType == wire::Type::Bytes) {
      if (F.Bytes.size() > UINT32_MAX)
        return failure("a node of over 4 GiB");
      Bodies.push_back({F.Bytes.data(), static_cast<uint32_t>(F.Bytes.size())});
    } else {
      Others.push_back(F.Whole);
    }
  }
  if (R.failed())
    return failure("the graph is truncated or malformed");
  Nodes.reserve(Bodies.size() + Bodies.size() / 8 + 64);
  std::vector<StringRef> InputNames;
  InputNames.reserve(Bodies.size() * 3);
  for (size_t I = 0; I < Bodies.size(); ++I) {
    if (I + 4 < Bodies.size())
      for (uint32_t D = 0; D < std::min<uint32_t>(Bodies[I + 4].Size, 640);
           D += 64)
        __builtin_prefetch(Bodies[I + 4].Data + D);
    if (Error E = parseNode({Bodies[I].Data, Bodies[I].Size},
                            Bodies[I].Data - Bytes.data(), InputNames))
      return E;
  }
  InputCount = size();
  reserveNames(size());
  std::vector<uint64_t> Hashes(size());
  for (NodeId N = 0; N < size(); ++N)
    Hashes[N] = xxh3_64bits(name(N));
  for (NodeId N = 0; N < size(); ++N) {
    if (N + 8 < size())
      __builtin_prefetch(&NameSlots[Hashes[N + 8] & (NameSlots.size() - 1)]);
    if (!insertName(N, Hashes[N]))
      return failure(formatv("node '{0}': this name is used twice", name(N)));
  }
  return resolveInputs(InputNames);
}

/// Finds the source of every input. A lookup misses the cache twice, in the
/// table and at the name; groups of lookups let the misses overlap.
void Graph::lookUpAll(const std::vector<StringRef> &InputNames) {
  constexpr size_t Group = 16;
  struct Lookup {
    StringRef Name;
    uint64_t Hash;
    uint32_t Port;
  };
  Lookup L[Group];
  size_t Mask = NameSlots.size() - 1;
  for (size_t Begin = 0; Begin < InputNames.size(); Begin += Group) {
    size_t Count = std::min(Group, InputNames.size() - Begin);
    for (size_t I = 0; I < Count; ++I) {
      StringRef Name = InputNames[Begin + I];
      L[I].Port = splitPort(Name);
      L[I].Name = Name;
      L[I].Hash = xxh3_64bits(Name);
      __builtin_prefetch(&NameSlots[L[I].Hash & Mask]);
    }
    for (size_t I = 0; I < Count; ++I) {
      uint64_t Slot = NameSlots[L[I].Hash & Mask];
      if (static_cast<NodeId>(Slot) < size())
        __builtin_prefetch(&Nodes[static_cast<NodeId>(Slot)]);
    }
    for (size_t I = 0; I < Count; ++I) {
      uint64_t Slot = NameSlots[L[I].Hash & Mask];
      if (static_cast<NodeId>(Slot) < size())
        __builtin_prefetch(Nodes[static_cast<NodeId>(Slot)].NameData);
    }
    for (size_t I = 0; I < Count; ++I)
      EdgeSources[Begin + I] = {find(L[I].Name, L[I].Hash), L[I].Port};
  }
}

Error Graph::resolveInputs(const std::vector<StringRef> &InputNames) {
  EdgeSources.resize(InputNames.size());
  Links.resize(InputNames.size());
  lookUpAll(InputNames);
  for (NodeId N = 0; N < size(); ++N) {
    Node &This = Nodes[N];
    This.NumData = This.NumInputs;
    for (uint32_t I = 0; I < This.NumInputs; ++I) {
      StringRef Text = InputNames[This.FirstEdge + I];
      std::optional<Endpoint> Source = EdgeSources[This.FirstEdge + I];
      if (Source->Node == NoNode)
        return failure(
            formatv("node '{0}': input '{1}' does not exist", name(N), Text));
      if (Source->isControl())
        This.NumData = std::min(This.NumData, I);
      else if (This.NumData != This.NumInputs)
        return failure(
            formatv("node '{0}': data input '{1}' comes after a control input",
                    name(N), Text));
      EdgeSources[This.FirstEdge + I] = *Source;
      link(This.FirstEdge + I, N);
    }
  }
  return Error::success();
}

} // namespace graft
