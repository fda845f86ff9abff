//===- lib/graph/GraphParse.cpp - GraphDef bytes to Graph -------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
// The first walk reads the fields of each node. It also finds inputs that come
// from the nodes just before. The second walk fills the table of names. The
// third walk finds the sources of all other inputs. No message object is made.
// A fast path reads the usual encoding of a node. The general reader reads any
// other legal encoding.
//
//===----------------------------------------------------------------------===//

#include "lib/graph/AttrWire.h"

#include "lib/support/Failure.h"
#include "lib/support/Wire.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FormatVariadic.h"

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

/// Returns the key of a map entry whose key comes first, as writers put it.
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

/// The inputs that are found while nodes are read.
struct Graph::Inputs {
  /// A name in the bytes of a node.
  struct Reference {
    NodeId Node;
    uint32_t Hash;
    uint32_t Offset;
    uint32_t Size;
  };
  /// An input whose source is not known yet. Until then its edge stores the
  /// offset and size of the input's text in the bytes of the user.
  struct Open : Reference {
    uint32_t Edge;
    uint32_t Port;
  };
  std::vector<Open> Unknown;
  /// The names in the `_class` of nodes.
  std::vector<Reference> Classes;
  /// The first data input after a control input, which is an error;
  /// UINT32_MAX: there is none. Unknown contains this input.
  uint32_t Misplaced = UINT32_MAX;
};

/// Adds the input \p Text to the node being read, whose bytes are in the cache.
void Graph::addInput(Inputs &In, StringRef Text) {
  constexpr NodeId Near = 3;
  NodeId N = size() - 1;
  Node &This = Nodes.back();
  auto Edge = static_cast<uint32_t>(EdgeSources.size());
  StringRef Name = Text;
  uint32_t Port = 0;
  if (!Name.empty() && (Name[0] == '^' || isDigit(Name.back())))
    Port = splitPort(Name);
  if (Port == ControlPort) {
    This.NumData = std::min(This.NumData, Edge - This.FirstEdge);
  } else if (This.NumData != UINT32_MAX) {
    In.Misplaced = std::min(In.Misplaced, Edge);
  }
  // About half of all inputs come from the nodes just before. (If two nodes
  // have this name, that is an error in any case.)
  if (Edge != In.Misplaced)
    for (NodeId Source = N, Last = N - std::min(N, Near); Source-- != Last;)
      if (equalBytes(name(Source), Name)) {
        EdgeSources.push_back({Source, Port});
        return;
      }
  auto At = [&](StringRef Part) {
    return static_cast<uint32_t>(Part.data() - This.RawData);
  };
  EdgeSources.push_back({At(Text), static_cast<uint32_t>(Text.size())});
  In.Unknown.push_back(
      {{N, hashBytes(Name), At(Name), static_cast<uint32_t>(Name.size())},
       Edge,
       Port});
}

/// Notes the node with which the node being read is colocated, while its bytes
/// are in the cache. Only a `_class` with one short name, the usual form, is
/// noted.
void Graph::addClass(Inputs &In, StringRef Entry) {
  NodeId N = size() - 1;
  StringRef Name = shortClass(Entry);
  if (!Name.consume_front(ClassPrefix) || Name.empty())
    return;
  In.Classes.push_back({N, hashBytes(Name),
                        static_cast<uint32_t>(Name.data() - Nodes[N].RawData),
                        static_cast<uint32_t>(Name.size())});
}

/// Reads the fields of \p Body from \p From on, in any encoding and order.
bool Graph::parseRest(Inputs &In, StringRef Body, const char *From,
                      StringRef &Op) {
  Node &This = Nodes.back();
  // All fields but 1 to 4 are kept as one run; gaps in it are rare.
  const char *RunEnd = This.AttrData ? From : nullptr;
  bool Contiguous = true;
  std::string Run;
  wire::Reader R({From, static_cast<size_t>(Body.end() - From)});
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
        addInput(In, F.Bytes);
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
    if (!This.AttrData) {
      This.AttrData = F.Whole.data();
    } else if (Contiguous && RunEnd != F.Whole.data()) {
      Contiguous = false;
      Run.assign(This.AttrData, RunEnd);
    }
    if (!Contiguous)
      Run.append(F.Whole.data(), F.Whole.size());
    RunEnd = F.Whole.end();
  }
  if (!Contiguous) {
    StringRef Saved = save(Run);
    This.AttrData = Saved.data();
    RunEnd = Saved.end();
  }
  This.AttrSize = static_cast<uint32_t>(RunEnd - This.AttrData);
  return !R.failed();
}

Graph::Fault Graph::parseNode(Inputs &In, StringRef Body) {
  if (Body.size() > UINT32_MAX)
    return Fault::TooLarge;
  Node &This = Nodes.emplace_back();
  This.RawData = Body.data();
  This.RawSize = static_cast<uint32_t>(Body.size());
  This.FirstEdge = static_cast<uint32_t>(EdgeSources.size());
  This.NumData = UINT32_MAX;
  const char *P = Body.begin(), *End = Body.end();
  StringRef Name, Op, Text;
  if (wire::takeBytes(P, End, wire::bytesTag(NodeName), Name)) {
    This.NameData = Name.data();
    This.NameSize = static_cast<uint32_t>(Name.size());
  }
  wire::takeBytes(P, End, wire::bytesTag(NodeOp), Op);
  while (wire::takeBytes(P, End, wire::bytesTag(NodeInput), Text))
    addInput(In, Text);
  if (wire::takeBytes(P, End, wire::bytesTag(NodeDevice), Text))
    This.Device = internDevice(Text);
  const char *Run = P;
  while (wire::takeBytes(P, End, wire::bytesTag(NodeAttr), Text))
    // The key most often begins with the third byte.
    if (Text.size() > 3 && Text[2] == '_' &&
        (Text[3] == 'c' || Text[3] == 'g')) {
      uint8_t Flags = attrFlags(leadingKey(Text));
      if (Flags & ~This.Flags & NF_MayHaveClass)
        addClass(In, Text);
      This.Flags |= Flags;
    }
  if (P != Run) {
    This.AttrData = Run;
    This.AttrSize = static_cast<uint32_t>(P - Run);
  }
  if (P != End && !parseRest(In, Body, P, Op))
    return Fault::Malformed;
  if (This.NameSize == 0)
    return Fault::NoName;
  if (Op.empty())
    return Fault::NoOp;
  This.Op = internOp(Op);
  This.NumInputs = static_cast<uint32_t>(EdgeSources.size()) - This.FirstEdge;
  This.NumData = std::min(This.NumData, This.NumInputs);
  // Until names are in their table, After has the hash of the node's name.
  This.After = hashBytes(name(size() - 1));
  return Fault::None;
}

Error Graph::parseNodes(ArrayRef<StringRef> Parts, Inputs &In) {
  Fault Found = Fault::None;
  std::string Where;
  uint64_t Left = 0, Seen = 0;
  for (StringRef Part : Parts)
    Left += Part.size();
  auto InPart = [&](size_t I) {
    return Parts.size() == 1 ? "" : formatv("part {0}: ", I + 1).str();
  };
  for (size_t I = 0; I < Parts.size(); ++I) {
    wire::Reader R(Parts[I]);
    wire::Field F;
    while (R.next(F)) {
      if (F.Number != GraphNode || F.WireType != wire::Type::Bytes) {
        Others.push_back(F.Whole);
        continue;
      }
      // After a fault of a node, only tests if the graph is truncated: that
      // error is reported instead of the fault.
      if (Found != Fault::None)
        continue;
      if (Nodes.size() == Nodes.capacity()) {
        // Room for the nodes in the bytes that are left, and more for passes;
        // unused memory is not touched.
        uint64_t Each = Nodes.empty() ? 256 : Seen / Nodes.size() + 1;
        Nodes.reserve(Nodes.size() + (Left - Seen) / Each * 3 / 2 + 64);
        EdgeSources.reserve(Nodes.capacity() * 2);
      }
      __builtin_prefetch(F.Bytes.end() + 512);
      __builtin_prefetch(F.Bytes.end() + 768);
      Found = parseNode(In, F.Bytes);
      if (Found != Fault::None) {
        Where = InPart(I) +
                formatv("byte {0}", F.Bytes.begin() - Parts[I].begin()).str();
      }
      Seen += F.Whole.size();
    }
    if (R.failed())
      return failure(InPart(I) + "the graph is truncated or malformed");
  }
  switch (Found) {
  case Fault::None:
    return Error::success();
  case Fault::Malformed:
    return failure(Where + ": node is truncated or malformed");
  case Fault::NoName:
    return failure(Where + ": node without a name");
  case Fault::NoOp:
    return failure(formatv("node '{0}': has no op", name(size() - 1)));
  case Fault::TooLarge:
    return failure("a node has more than 4 GiB");
  }
  llvm_unreachable("all faults are handled");
}

Error Graph::parse(ArrayRef<StringRef> Parts) {
  Inputs In;
  if (Error E = parseNodes(Parts, In))
    return E;
  // Ids have 32 bits; two ids mark empty places in tables.
  if (Nodes.size() >= UINT32_MAX - 1 || EdgeSources.size() >= UINT32_MAX)
    return failure("the graph has more nodes or inputs than graft can count");
  InputCount = Live = size();
  if (Error E = indexNames())
    return E;
  if (Error E = resolveInputs(In))
    return E;
  In.Unknown = {};
  resolveClasses(In);
  linkInputs();
  for (NodeId N = 0; N < size(); ++N)
    if (Nodes[N].Flags & NF_MayHaveGraft)
      readProgramAttrs(N);
  return Error::success();
}

Error Graph::indexNames() {
  constexpr NodeId Ahead = 8;
  Names.reserve(size());
  for (NodeId N = 0; N < size(); ++N) {
    if (N + Ahead < size())
      Names.prefetch(Nodes[N + Ahead].After);
    if (Names.insert(N, name(N), Nodes[N].After, nameOf()) != N)
      return failure(formatv("node '{0}': this name is used twice", name(N)));
    Nodes[N].After = NoNode;
  }
  return Error::success();
}

/// Calls \p F with each reference of \p List and the node that it names, until
/// \p F returns false. A lookup has cache misses in the table, at the node and
/// at its name. Here the misses of many lookups overlap.
template <typename T, typename Fn>
bool Graph::lookUp(ArrayRef<T> List, Fn F) const {
  constexpr size_t Step = 8;
  auto Guess = [&](size_t I) {
    return I < List.size() ? Names.guess(List[I].Hash) : NameTable::None;
  };
  for (size_t I = 0; I < List.size(); ++I) {
    if (I + 3 * Step < List.size())
      Names.prefetch(List[I + 3 * Step].Hash);
    if (NodeId N = Guess(I + 2 * Step); N != NameTable::None)
      __builtin_prefetch(&Nodes[N]);
    if (NodeId N = Guess(I + Step); N != NameTable::None) {
      const T &Ahead = List[I + Step];
      __builtin_prefetch(Nodes[N].NameData);
      __builtin_prefetch(Nodes[Ahead.Node].RawData + Ahead.Offset);
    }
    const T &R = List[I];
    StringRef Name(Nodes[R.Node].RawData + R.Offset, R.Size);
    if (!F(R, Names.find(Name, R.Hash, nameOf())))
      return false;
  }
  return true;
}

/// Finds the sources of the inputs in Unknown.
Error Graph::resolveInputs(const Inputs &In) {
  const Inputs::Open *Wrong = nullptr;
  lookUp(ArrayRef(In.Unknown), [&](const Inputs::Open &L, NodeId Source) {
    if (Source == NoNode || L.Edge == In.Misplaced) {
      Wrong = &L;
      return false;
    }
    EdgeSources[L.Edge] = {Source, L.Port};
    return true;
  });
  if (!Wrong)
    return Error::success();
  Endpoint Place = EdgeSources[Wrong->Edge];
  StringRef Text(Nodes[Wrong->Node].RawData + Place.Node, Place.Port);
  // The source exists, so the input is in the wrong place.
  if (findEndpoint(Text))
    return failure(
        formatv("node '{0}': data input '{1}' comes after a control input",
                name(Wrong->Node), Text));
  return failure(formatv("node '{0}': input '{1}' does not exist",
                         name(Wrong->Node), Text));
}

/// Finds the nodes with which nodes are colocated.
void Graph::resolveClasses(const Inputs &In) {
  if (In.Classes.empty())
    return;
  Colocated.assign(size(), NoNode);
  lookUp(ArrayRef(In.Classes), [&](const Inputs::Reference &C, NodeId With) {
    Colocated[C.Node] = With;
    return true;
  });
}

/// Links every input with its source, in order.
void Graph::linkInputs() {
  Links.reserve(EdgeSources.capacity());
  Links.resize(EdgeSources.size());
  for (NodeId N = 0, End = size(); N < End; ++N)
    for (uint32_t I = 0, Size = Nodes[N].NumInputs; I < Size; ++I)
      link(Nodes[N].FirstEdge + I, N);
}

std::string Graph::otherField(unsigned Number) const {
  std::string Contents;
  for (StringRef Field : Others) {
    wire::Reader R(Field);
    wire::Field F;
    if (R.next(F) && F.Number == Number && F.WireType == wire::Type::Bytes)
      Contents += F.Bytes;
  }
  return Contents;
}

} // namespace graft
