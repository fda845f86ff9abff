//===- lib/graph/Verifier.cpp - is this graph legal? ------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
// One linear walk per rule. Rules that need the definition of an op skip ops
// that TensorFlow's registry does not have.
//
//===----------------------------------------------------------------------===//

#include "lib/graph/Verifier.h"

#include "lib/graph/AttrWire.h"
#include "lib/graph/Axis.h"
#include "lib/graph/CopyWord.h"
#include "lib/graph/DeviceName.h"
#include "lib/graph/FileWalk.h"
#include "lib/graph/InputGraph.h"
#include "lib/graph/PerOp.h"
#include "lib/ops/Ops.h"
#include "lib/ops/ProgramOps.h"

#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/JSON.h"

#include <algorithm>

#include <array>

using namespace llvm;

namespace graft {

void ErrorCap::error(StringRef Node, const Twine &Message) {
  if (++Count <= Shown)
    Diags.error(Node, Message.str());
}

ErrorCap::~ErrorCap() {
  if (Count > Shown)
    Diags.error("", formatv("and {0} more {1}", Count - Shown, What).str());
}

bool hasGraftStamp(const Graph &G) {
  for (NodeId N = 0; N < G.size(); ++N)
    if (G.isLive(N) && G.node(N).Flags & NF_MayHaveGraft &&
        G.hasAttr(N, StampAttr))
      return true;
  return false;
}

namespace {

//===----------------------------------------------------------------------===//
// Names and devices
//===----------------------------------------------------------------------===//

/// Returns true if \p Name, of 8 bytes or more, has only `[A-Za-z0-9_.-/]`.
bool isPlainName(StringRef Name) {
  using Chars = uint8_t __attribute__((vector_size(16)));
  Chars Good = Chars{} == Chars{};
  auto Check = [&](Chars C) {
    // '-', '.', '/' and the digits are neighbours.
    Good &= ((C | 0x20) - 'a' < 26) | (C - '-' < 13) | (C == '_');
  };
  Chars C;
  const char *P = Name.begin(), *End = Name.end();
  if (Name.size() >= sizeof C) {
    for (; End - P > 16; P += sizeof C) {
      std::memcpy(&C, P, sizeof C);
      Check(C);
    }
    // The last 16 bytes, which may overlap the bytes before.
    std::memcpy(&C, End - sizeof C, sizeof C);
  } else {
    uint64_t Ends[2] = {load64(P), load64(End - 8)};
    std::memcpy(&C, Ends, sizeof C);
  }
  Check(C);
  uint64_t Halves[2];
  std::memcpy(Halves, &Good, sizeof Halves);
  return (Halves[0] & Halves[1]) == ~uint64_t(0);
}

/// TensorFlow's rule: segments separated by `>`, each of which starts with a
/// letter, a digit or a dot. Names of the runtime's nodes may start with `_`.
bool isLegalName(StringRef Name, bool Internal) {
  enum : uint8_t { Illegal, Inside, Begins };
  static constexpr auto Table = [] {
    std::array<uint8_t, 256> T{};
    for (unsigned C = 0; C < 256; ++C) {
      bool Alnum = (C >= 'a' && C <= 'z') || (C >= 'A' && C <= 'Z') ||
                   (C >= '0' && C <= '9');
      if (Alnum || C == '.')
        T[C] = Begins;
      else if (C == '_' || C == '-' || C == '/' || C == '>')
        T[C] = Inside;
    }
    return T;
  }();
  if (Name.size() >= 8 && Table[static_cast<uint8_t>(Name[0])] == Begins &&
      isPlainName(Name))
    return true;
  uint8_t Least = Internal && Name.consume_front("_") ? Inside : Begins;
  for (char C : Name) {
    if (Table[static_cast<uint8_t>(C)] < Least)
      return false;
    Least = C == '>' ? Begins : Inside;
  }
  return Least == Inside;
}

void verifyNames(const Graph &G, DiagnosticEngine &Diags, bool Internal) {
  ErrorCap Errors(Diags, "illegal names");
  FileWalk Walk(G);
  for (NodeId N = 0, End = G.size(); N < End; ++N) {
    Walk.at(N);
    // The mesh node exists only between passes.
    if (G.isLive(N) && !G.isAsVerified(N) &&
        !isLegalName(G.name(N), Internal) && !G.isOp(N, MeshOp))
      Errors.error(G.name(N),
                   "illegal node name; rename it: TensorFlow wants a letter, "
                   "a digit or '.', then letters, digits and '_.-/>'");
  }
}

/// Returns true if \p Text parses and has no `device:` without an index.
bool isDevice(StringRef Text) {
  if (!DeviceName::parse(Text))
    return false;
  size_t At = Text.find("device:");
  return At == StringRef::npos ||
         Text.substr(At + 7).split('/').first.contains(':');
}

void verifyDevices(const Graph &G, DiagnosticEngine &Diags) {
  SmallVector<bool, 16> Bad(G.numDevices());
  for (uint32_t D = 0; D < G.numDevices(); ++D)
    Bad[D] = !isDevice(G.deviceName(D));
  if (!is_contained(Bad, true))
    return;
  ErrorCap Errors(Diags, "nodes on illegal devices");
  for (NodeId N = 0; N < G.size(); ++N)
    if (G.isLive(N) && Bad[G.node(N).Device])
      Errors.error(G.name(N), "device '" + G.device(N) +
                                  "' is not a device string such as "
                                  "'/job:worker/task:0/device:GPU:1'");
}

//===----------------------------------------------------------------------===//
// Arguments against the op's definition
//===----------------------------------------------------------------------===//

/// Returns the length of a list(type) attribute.
std::optional<uint64_t> typeListLength(const Graph &G, NodeId N,
                                       StringRef Key) {
  auto Value = G.attr(N, Key);
  if (!Value)
    return std::nullopt;
  uint64_t Count = 0;
  wire::Reader R(*Value);
  wire::Field List, F;
  while (R.next(List)) {
    if (List.Number != 1 || List.WireType != wire::Type::Bytes)
      continue;
    wire::Reader Items(List.Bytes);
    while (Items.next(F)) {
      if (F.Number != 6)
        continue;
      if (F.WireType == wire::Type::Varint) {
        ++Count;
        continue;
      }
      // Each packed value ends with a byte below 0x80.
      Count += llvm::count_if(
          F.Bytes, [](char C) { return static_cast<uint8_t>(C) < 0x80; });
    }
  }
  return Count;
}

/// Returns the number of data inputs that follows from the definition and the
/// attributes of \p N, or nothing if it is not fixed.
std::optional<uint64_t> expectedInputs(const Graph &G, NodeId N,
                                       const OpDef &Def) {
  uint64_t Count = 0;
  for (const ArgDef &A : Def.inputs()) {
    if (*A.TypeListAttr) {
      auto Length = typeListLength(G, N, A.TypeListAttr);
      if (!Length)
        return std::nullopt;
      Count += *Length;
    } else if (*A.NumberAttr) {
      auto Length = G.intAttr(N, A.NumberAttr);
      if (!Length || *Length < 0)
        return std::nullopt;
      Count += static_cast<uint64_t>(*Length);
    } else {
      ++Count;
    }
  }
  return Count;
}

void verifyArguments(const Graph &G, DiagnosticEngine &Diags) {
  // Caches the numbers: a RestoreV2 has thousands of outputs, and each edge
  // from it needs this number.
  DenseMap<NodeId, std::optional<unsigned>> ByNode;
  ErrorCap Ports(Diags, "inputs from ports that do not exist");
  ErrorCap Counts(Diags, "nodes with a wrong number of inputs");
  for (NodeId N = 0, End = G.size(); N < End; ++N) {
    if (!G.isLive(N))
      continue;
    for (Endpoint E : G.dataInputs(N)) {
      std::optional<unsigned> Limit = G.opFacts(G.node(E.Node).Op).Outputs;
      if (E.Port < *Limit && *Limit != OpFacts::Open)
        continue;
      if (*Limit == OpFacts::Open) {
        auto [It, New] = ByNode.try_emplace(E.Node);
        if (New)
          It->second = G.numOutputs(E.Node);
        Limit = It->second;
      }
      if (Limit && E.Port >= *Limit)
        Ports.error(G.name(N), formatv("input '{0}:{1}' does not exist: {2} "
                                       "has {3} output{4}",
                                       G.name(E.Node), E.Port, G.opName(E.Node),
                                       *Limit, *Limit == 1 ? "" : "s")
                                   .str());
    }
    const OpFacts &Facts = G.opFacts(G.node(N).Op);
    if (Facts.Inputs == G.node(N).NumData)
      continue;
    const OpDef *Def = Facts.Def;
    auto Expected = Def ? expectedInputs(G, N, *Def) : std::nullopt;
    if (Expected && *Expected != G.node(N).NumData)
      Counts.error(G.name(N),
                   formatv("{0} takes {1} data input{2} and has {3}",
                           G.opName(N), *Expected, *Expected == 1 ? "" : "s",
                           G.node(N).NumData)
                       .str());
  }
}

//===----------------------------------------------------------------------===//
// Numbers of outputs
//===----------------------------------------------------------------------===//

/// Returns the number of outputs that the inputs of other nodes read.
uint64_t countRead(const Graph &G, NodeId N) {
  uint64_t Count = 0;
  G.forEachUse(N, [&](Use U) {
    if (Endpoint E = G.input(U.User, U.Index); !E.isControl())
      Count = std::max(Count, uint64_t(E.Port) + 1);
  });
  return Count;
}

/// Returns the number of outputs of \p N, or 0 if the op fixes this number.
/// Attributes give the number. If one is missing, the number also follows from
/// the largest port that is read. Reports a number that TensorFlow refuses.
uint64_t countNumbered(const Graph &G, NodeId N, ErrorCap &Errors) {
  const OpFacts &Facts = G.opFacts(G.node(N).Op);
  if (Facts.Outputs != OpFacts::Open)
    return 0;
  uint64_t Count = 0;
  bool Told = Facts.Def != nullptr;
  if (Facts.Def)
    for (const ArgDef &A : Facts.Def->outputs()) {
      Told &= !*A.TypeListAttr || G.hasAttr(N, A.TypeListAttr);
      if (!*A.NumberAttr)
        continue;
      auto Number = G.intAttr(N, A.NumberAttr);
      Told &= Number.has_value();
      if (Number.value_or(0) < 0 || Number.value_or(0) > INT32_MAX)
        Errors.error(G.name(N),
                     formatv("attribute '{0}' is {1}, which is not a number of "
                             "outputs; set it to the number that the node has",
                             A.NumberAttr, *Number)
                         .str());
      else
        Count += Number.value_or(0);
    }
  return Told ? Count : std::max(Count, countRead(G, N));
}

/// Returns the source of the number of outputs of \p N, for a message.
std::string whereNumbered(const Graph &G, NodeId N) {
  if (const OpDef *Def = G.opDef(N))
    for (const ArgDef &A : Def->outputs())
      if (*A.NumberAttr && G.hasAttr(N, A.NumberAttr))
        return formatv("attribute '{0}'", A.NumberAttr);
  return "the inputs that read it";
}

} // namespace

bool verifyOutputCounts(const Graph &G, DiagnosticEngine &Diags) {
  // Analyses allocate memory for each output, so an attribute with a large
  // number could exhaust memory. Ports that are read are limited by the edges.
  constexpr uint64_t Free = 1 << 20, ForEach = 16;
  unsigned Before = Diags.errorCount();
  {
    ErrorCap Errors(Diags, "numbers of outputs");
    uint64_t Total = 0, Most = 0, Limit = Free;
    NodeId Largest = NoNode;
    for (NodeId N = 0; N < G.size(); ++N) {
      if (!G.isLive(N))
        continue;
      uint64_t Count = countNumbered(G, N, Errors);
      Total += Count;
      Limit += ForEach * (1 + G.node(N).NumInputs);
      if (Count > Most) {
        Most = Count;
        Largest = N;
      }
    }
    if (Total > Limit)
      Errors.error(
          G.name(Largest),
          formatv("has {0} outputs, according to {1}, and all nodes "
                  "with variable numbers of outputs have {2} together, "
                  "but a graph of this size may have at most {3}; "
                  "lower the numbers to those that are used",
                  Most, whereNumbered(G, Largest), Total, Limit)
              .str());
  }
  return Diags.errorCount() == Before;
}

namespace {

//===----------------------------------------------------------------------===//
// Ranks
//===----------------------------------------------------------------------===//

/// The least number of bytes of a shape with too many dimensions, each of which
/// has a tag and a length.
constexpr size_t MinLarge = 2 * (MaxRank + 1);

size_t rankOf(StringRef Shape) {
  if (Shape.size() < MinLarge)
    return 0;
  size_t Rank = 0;
  wire::Reader R(Shape);
  wire::Field F;
  while (R.next(F))
    Rank += F.Number == 2 && F.WireType == wire::Type::Bytes;
  return Rank;
}

/// Returns the largest rank of the shapes in an AttrValue.
size_t largestRank(StringRef Value) {
  size_t Rank = 0;
  wire::Reader R(Value);
  wire::Field F, Inner;
  while (R.next(F)) {
    if (F.WireType != wire::Type::Bytes)
      continue;
    if (F.Number == AttrShape)
      Rank = std::max(Rank, rankOf(F.Bytes));
    if (F.Number != AttrList && F.Number != AttrTensor)
      continue;
    unsigned Wanted =
        F.Number == AttrList ? unsigned(ListShape) : unsigned(TensorShape);
    for (wire::Reader List(F.Bytes); List.next(Inner);)
      if (Inner.Number == Wanted && Inner.WireType == wire::Type::Bytes)
        Rank = std::max(Rank, rankOf(Inner.Bytes));
  }
  return Rank;
}

void verifyRanks(const Graph &G, DiagnosticEngine &Diags) {
  ErrorCap Errors(Diags, "shapes of too many dimensions");
  FileWalk Walk(G);
  for (NodeId N = 0, End = G.size(); N < End; ++N) {
    if (G.node(N).AttrSize < MinLarge || !G.isLive(N) || G.isAsVerified(N))
      continue;
    Walk.at(N);
    AttrReader R({G.node(N).AttrData, G.node(N).AttrSize});
    for (AttrEntry A; R.next(A);)
      if (size_t Rank = largestRank(A.Value); Rank > MaxRank)
        Errors.error(G.name(N),
                     formatv("attribute '{0}' has a shape of {1} dimensions, "
                             "but TensorFlow allows at most {2}",
                             A.Key, Rank, MaxRank)
                         .str());
  }
}

//===----------------------------------------------------------------------===//
// Cycles
//===----------------------------------------------------------------------===//

/// The edges that may close a loop: data edges from a NextIteration to a Merge.
/// TensorFlow treats a control edge between them like any other edge.
class BackEdges {
public:
  explicit BackEdges(const Graph &G)
      : G(G), Roles(G, [](StringRef Op, const OpDef *) {
          if (Op == op::NextIteration || Op == op::RefNextIteration)
            return Next;
          return Op == op::Merge || Op == op::RefMerge ? Merge : Neither;
        }) {}

  bool contain(Endpoint From, NodeId To) const {
    return !From.isControl() && Roles[G.node(From.Node)] == Next &&
           Roles[G.node(To)] == Merge;
  }

private:
  enum Role : uint8_t { Neither, Next, Merge };
  const Graph &G;
  PerOp Roles;
};

/// Returns for each node the number of its inputs that are on or after a cycle.
std::vector<uint32_t> countWaiting(const Graph &G, const BackEdges &Back) {
  std::vector<uint32_t> Waiting(G.size(), 0);
  std::vector<NodeId> Ready;
  for (NodeId N = 0; N < G.size(); ++N) {
    if (!G.isLive(N))
      continue;
    for (Endpoint E : G.inputs(N))
      Waiting[N] += !Back.contain(E, N);
    if (Waiting[N] == 0)
      Ready.push_back(N);
  }
  while (!Ready.empty()) {
    NodeId N = Ready.back();
    Ready.pop_back();
    G.forEachUse(N, [&](Use U) {
      if (!Back.contain(G.input(U.User, U.Index), U.User) &&
          --Waiting[U.User] == 0)
        Ready.push_back(U.User);
    });
  }
  return Waiting;
}

/// Reports one cycle among the nodes with waiting inputs. Each of these nodes
/// reads another of these nodes, so a walk along inputs must return to a node.
void reportCycle(const Graph &G, const BackEdges &Back,
                 DiagnosticEngine &Diags) {
  constexpr size_t Shown = 10;
  std::vector<uint32_t> Waiting = countWaiting(G, Back);
  NodeId N = 0;
  while (!G.isLive(N) || Waiting[N] == 0)
    ++N;
  std::vector<NodeId> Path;
  std::vector<uint32_t> Seen(G.size(), 0);
  while (!Seen[N]) {
    Path.push_back(N);
    Seen[N] = static_cast<uint32_t>(Path.size());
    for (Endpoint E : G.inputs(N))
      if (Waiting[E.Node] != 0 && !Back.contain(E, N)) {
        N = E.Node;
        break;
      }
  }
  ArrayRef<NodeId> Cycle = ArrayRef(Path).drop_front(Seen[N] - 1);
  std::string Text = G.name(N).str();
  // The path was walked against the edges.
  size_t Count = 0;
  for (NodeId Step : reverse(Cycle)) {
    if (++Count > Shown && Cycle.size() > Shown + 1) {
      Text += formatv(" -> ... and {0} more", Cycle.size() - Shown);
      break;
    }
    Text += (" -> " + G.name(Step)).str();
  }
  Diags.error(G.name(N),
              "is on a cycle: " + Text +
                  "; only a NextIteration that a Merge reads may close a "
                  "loop");
}

/// Returns true if the graph without the edges \p Back has no cycle. Most nodes
/// follow their inputs, so one visit is enough for them.
bool isAcyclic(const Graph &G, const BackEdges &Back) {
  enum : uint8_t { Unseen, Open, Done };
  struct Frame {
    NodeId Node;
    uint32_t Next; ///< The input to look at next.
  };
  std::vector<uint8_t> State(G.size(), Unseen);
  std::vector<Frame> Path;
  for (NodeId Root = 0, End = G.size(); Root < End; ++Root) {
    if (State[Root] != Unseen || !G.isLive(Root))
      continue;
    if (all_of(G.inputs(Root),
               [&](Endpoint E) { return State[E.Node] == Done; })) {
      State[Root] = Done;
      continue;
    }
    Path.push_back({Root, 0});
    while (!Path.empty()) {
      auto [N, Next] = Path.back();
      ArrayRef<Endpoint> Inputs = G.inputs(N);
      while (Next < Inputs.size() && (State[Inputs[Next].Node] == Done ||
                                      Back.contain(Inputs[Next], N)))
        ++Next;
      if (Next == Inputs.size()) {
        State[N] = Done;
        Path.pop_back();
        continue;
      }
      NodeId Source = Inputs[Next].Node;
      if (State[Source] == Open || Source == N)
        return false;
      State[N] = Open;
      Path.back().Next = Next;
      Path.push_back({Source, 0});
    }
  }
  return true;
}

void verifyAcyclic(const Graph &G, DiagnosticEngine &Diags) {
  BackEdges Back(G);
  if (!isAcyclic(G, Back))
    reportCycle(G, Back, Diags);
}

//===----------------------------------------------------------------------===//
// Colocation
//===----------------------------------------------------------------------===//

void verifyColocation(const Graph &G, DiagnosticEngine &Diags) {
  ErrorCap Errors(Diags, "nodes with a bad '_class'");
  StringRef Known; // an entry whose node exists
  bool SkipVerified = G.hasVerifiedNames();
  for (NodeId N = 0, End = G.size(); N < End; ++N) {
    if (!G.isLive(N) || !(G.node(N).Flags & NF_MayHaveClass) ||
        (SkipVerified && G.isAsVerified(N)) || G.colocatedWith(N) != NoNode)
      continue;
    auto Value = G.attr(N, "_class");
    if (!Value)
      continue;
    auto List = bytesField(*Value, AttrList);
    if (!List && !Value->empty()) {
      Errors.error(G.name(N), "attribute '_class' must be a list of strings");
      continue;
    }
    if (!List)
      continue;
    wire::Reader R(*List);
    wire::Field F;
    while (R.next(F)) {
      StringRef Entry = F.Bytes;
      if (F.Number != ListString)
        continue;
      if (!Entry.consume_front("loc:@")) {
        if (!json::isUTF8(Entry))
          Errors.error(G.name(N),
                       "an entry of attribute '_class' is not UTF-8");
        continue;
      }
      // Most entries are equal to the entry of the node before or name input 0.
      bool Exists = (!Known.empty() && equalBytes(Entry, Known)) ||
                    (G.node(N).NumData != 0 &&
                     equalBytes(Entry, G.name(G.input(N, 0).Node))) ||
                    G.find(Entry) != NoNode;
      if (Exists)
        Known = Entry;
      else
        Errors.error(G.name(N), "is colocated with '" + Entry +
                                    "', which does not exist: drop or change "
                                    "the entry of attribute '_class'");
    }
  }
}

//===----------------------------------------------------------------------===//
// Initializers of copies
//===----------------------------------------------------------------------===//

/// Returns the nodes that assign the variable \p V.
SmallVector<NodeId, 4> assignsOf(const Graph &G, NodeId V) {
  SmallVector<NodeId, 4> Result;
  G.forEachUse(V, [&](Use U) {
    if (U.Index == 0 &&
        (G.isOp(U.User, op::Assign) || G.isOp(U.User, op::AssignVariableOp)))
      Result.push_back(U.User);
  });
  return Result;
}

/// Returns `v` for `v/replica_3`, "" for other names.
StringRef primaryName(StringRef Name, StringRef Word) {
  StringRef Primary = Name.rtrim("0123456789");
  return Primary != Name && Primary.consume_back(Word) &&
                 Primary.consume_back("/")
             ? Primary
             : "";
}

void verifyCopy(const Graph &G, NodeId Copy, NodeId Initializer,
                DiagnosticEngine &Diags) {
  // Walks over users, because an assignment has few of them. An initializer may
  // have many inputs.
  for (NodeId A : assignsOf(G, Copy))
    if (G.anyUse(A,
                 [&](Use U) { return U.User == Initializer && !G.isData(U); }))
      return;
  Diags.error(G.name(Copy),
              ("is never initialized: no node that assigns it is a control "
               "input of '" +
               G.name(Initializer) + "', which initializes the variable")
                  .str());
}

void verifyInitializers(const Graph &G, StringRef Word,
                        DiagnosticEngine &Diags) {
  for (NodeId N = 0; N < G.size(); ++N) {
    if (!G.isLive(N) || !isVariableOp(G.opName(N)))
      continue;
    StringRef Name = primaryName(G.name(N), Word);
    NodeId Primary = Name.empty() ? NoNode : G.find(Name);
    if (Primary == NoNode || !isVariableOp(G.opName(Primary)))
      continue;
    SmallVector<NodeId, 4> Assigns = assignsOf(G, Primary);
    NodeId Usual = G.find((Name + "/Assign").str());
    if (is_contained(Assigns, Usual)) {
      verifyCopy(G, N, Usual, Diags);
    } else if (Assigns.size() == 1) {
      verifyCopy(G, N, Assigns[0], Diags);
    } else if (assignsOf(G, N).empty() && !Assigns.empty()) {
      Diags.error(G.name(N), "is never initialized: nothing assigns it");
    }
  }
}

} // namespace

void verifyCopiesInitialized(const Graph &G, NodeId Variable,
                             NodeId Initializer, StringRef Word,
                             DiagnosticEngine &Diags) {
  for (unsigned I = 1;; ++I) {
    NodeId Copy = G.find((G.name(Variable) + "/" + Word + Twine(I)).str());
    if (Copy == NoNode)
      return;
    if (isVariableOp(G.opName(Copy)))
      verifyCopy(G, Copy, Initializer, Diags);
  }
}

bool verifyGraph(const Graph &G, DiagnosticEngine &Diags, bool Internal) {
  unsigned Before = Diags.errorCount();
  verifyNames(G, Diags, Internal);
  verifyDevices(G, Diags);
  verifyArguments(G, Diags);
  verifyOutputCounts(G, Diags);
  verifyRanks(G, Diags);
  verifyAcyclic(G, Diags);
  verifyColocation(G, Diags);
  verifyCollectives(G, Diags);
  if (hasGraftStamp(G))
    verifyInitializers(G, copyWordOf(G), Diags);
  return Diags.errorCount() == Before;
}

} // namespace graft
