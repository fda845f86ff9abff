//===- lib/graph/Verifier.cpp - is this graph legal? ------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
// One linear walk per rule. Rules that need the definition of an op are silent
// on ops that TensorFlow's registry does not have.
//
//===----------------------------------------------------------------------===//

#include "lib/graph/Verifier.h"

#include "lib/graph/DeviceName.h"
#include "lib/support/Wire.h"

#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FormatVariadic.h"

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
        G.hasAttr(N, "_graft_replicas"))
      return true;
  return false;
}

namespace {

//===----------------------------------------------------------------------===//
// Names and devices
//===----------------------------------------------------------------------===//

/// TensorFlow's rule: segments separated by `>`, each of which starts with a
/// letter, a digit or a dot.
bool isLegalName(StringRef Name) {
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
  uint8_t Least = Begins;
  for (char C : Name) {
    if (Table[static_cast<uint8_t>(C)] < Least)
      return false;
    Least = C == '>' ? Begins : Inside;
  }
  return Least == Inside;
}

void verifyNames(const Graph &G, DiagnosticEngine &Diags) {
  ErrorCap Errors(Diags, "illegal names");
  for (NodeId N = 0; N < G.size(); ++N)
    // The mesh node exists only between passes.
    if (G.isLive(N) && !isLegalName(G.name(N)) && !G.isOp(N, "_GraftMesh"))
      Errors.error(G.name(N),
                   "illegal node name; rename it: TensorFlow wants a letter, "
                   "a digit or '.', then letters, digits and '_.-/>'");
}

void verifyDevices(const Graph &G, DiagnosticEngine &Diags) {
  std::vector<bool> Bad(G.numDevices());
  for (uint32_t D = 0; D < G.numDevices(); ++D)
    Bad[D] = !DeviceName::parse(G.deviceName(D));
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

/// The length of a list(type) attribute.
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

/// How many data inputs the definition and the attributes of \p N ask for, or
/// nothing when they do not decide it.
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

bool hasLists(ArrayRef<ArgDef> Args) {
  return any_of(
      Args, [](const ArgDef &A) { return *A.TypeListAttr || *A.NumberAttr; });
}

void verifyArguments(const Graph &G, DiagnosticEngine &Diags) {
  // Most ops have a fixed number of outputs: worked out once per op.
  constexpr uint32_t Open = ~uint32_t(0);
  std::vector<uint32_t> Outputs(G.numOps(), Open), Inputs(G.numOps(), Open);
  for (uint32_t Op = 0; Op < G.numOps(); ++Op)
    if (const OpDef *Def = G.opDefOf(Op)) {
      if (!hasLists(Def->outputs()))
        Outputs[Op] = Def->NumOutputs;
      if (!hasLists(Def->inputs()))
        Inputs[Op] = Def->NumInputs;
    }
  // A RestoreV2 has thousands of outputs, and as many edges ask for them.
  DenseMap<NodeId, std::optional<unsigned>> ByNode;
  ErrorCap Ports(Diags, "inputs from ports that do not exist");
  ErrorCap Counts(Diags, "nodes with a wrong number of inputs");
  for (NodeId N = 0; N < G.size(); ++N) {
    if (!G.isLive(N))
      continue;
    for (Endpoint E : G.dataInputs(N)) {
      std::optional<unsigned> Limit = Outputs[G.node(E.Node).Op];
      if (*Limit == Open) {
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
    if (Inputs[G.node(N).Op] == G.node(N).NumData)
      continue;
    const OpDef *Def = G.opDef(N);
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
// Cycles
//===----------------------------------------------------------------------===//

/// Prints one cycle among the nodes that have inputs left. Each of them has
/// such an input, so walking backwards must come round.
void reportCycle(const Graph &G, ArrayRef<uint32_t> Waiting,
                 ArrayRef<bool> IsBack, DiagnosticEngine &Diags) {
  constexpr size_t Shown = 12;
  NodeId N = 0;
  while (!G.isLive(N) || Waiting[N] == 0)
    ++N;
  std::vector<NodeId> Path;
  std::vector<uint32_t> Seen(G.size(), 0);
  while (!Seen[N]) {
    Path.push_back(N);
    Seen[N] = static_cast<uint32_t>(Path.size());
    for (Endpoint E : G.inputs(N))
      if (Waiting[E.Node] != 0 && !IsBack[G.node(E.Node).Op]) {
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
      Text += formatv(" -> ... {0} more", Cycle.size() - Shown);
      break;
    }
    Text += (" -> " + G.name(Step)).str();
  }
  Diags.error(G.name(N), "is on a cycle: " + Text +
                             "; only NextIteration may close a loop");
}

void verifyAcyclic(const Graph &G, DiagnosticEngine &Diags) {
  SmallVector<bool, 0> IsBack(G.numOps());
  for (uint32_t Op = 0; Op < G.numOps(); ++Op)
    IsBack[Op] = G.opNameOf(Op) == "NextIteration" ||
                 G.opNameOf(Op) == "RefNextIteration";
  // Back edges are left out of the count and of the walk.
  std::vector<uint32_t> Waiting(G.size(), 0);
  std::vector<NodeId> Ready;
  for (NodeId N = 0; N < G.size(); ++N) {
    if (!G.isLive(N))
      continue;
    for (Endpoint E : G.inputs(N))
      Waiting[N] += !IsBack[G.node(E.Node).Op];
    if (Waiting[N] == 0)
      Ready.push_back(N);
  }
  NodeId Done = 0;
  while (!Ready.empty()) {
    NodeId N = Ready.back();
    Ready.pop_back();
    ++Done;
    if (IsBack[G.node(N).Op])
      continue;
    G.forEachUse(N, [&](Use U) {
      if (--Waiting[U.User] == 0)
        Ready.push_back(U.User);
    });
  }
  if (Done != G.numLive())
    reportCycle(G, Waiting, IsBack, Diags);
}

//===----------------------------------------------------------------------===//
// Colocation
//===----------------------------------------------------------------------===//

void verifyColocation(const Graph &G, DiagnosticEngine &Diags) {
  ErrorCap Errors(Diags, "nodes with a bad '_class'");
  for (NodeId N = 0; N < G.size(); ++N) {
    if (!G.isLive(N))
      continue;
    if (!(G.node(N).Flags & NF_MayHaveClass))
      continue;
    auto Value = G.attr(N, "_class");
    if (!Value)
      continue;
    auto List = G.stringListAttr(N, "_class");
    if (!List && !Value->empty()) {
      Errors.error(G.name(N), "attribute '_class' must be a list of strings");
      continue;
    }
    if (!List)
      continue;
    for (StringRef Entry : *List)
      if (Entry.consume_front("loc:@") && G.find(Entry) == NoNode)
        Errors.error(G.name(N), "is colocated with '" + Entry +
                                    "', which does not exist: drop or change "
                                    "the entry of attribute '_class'");
  }
}

//===----------------------------------------------------------------------===//
// Initializers of copies
//===----------------------------------------------------------------------===//

/// The nodes that assign the variable \p V.
SmallVector<NodeId, 4> assignsOf(const Graph &G, NodeId V) {
  SmallVector<NodeId, 4> Result;
  G.forEachUse(V, [&](Use U) {
    if (U.Index == 0 &&
        (G.isOp(U.User, "Assign") || G.isOp(U.User, "AssignVariableOp")))
      Result.push_back(U.User);
  });
  return Result;
}

/// `v` for `v/replica_3`, empty for other names.
StringRef primaryName(StringRef Name) {
  size_t Slash = Name.rfind("/replica_");
  if (Slash == StringRef::npos)
    return "";
  StringRef Number = Name.substr(Slash + strlen("/replica_"));
  if (Number.empty() || !all_of(Number, isDigit))
    return "";
  return Name.take_front(Slash);
}

void verifyCopy(const Graph &G, NodeId Copy, NodeId Initializer,
                DiagnosticEngine &Diags) {
  for (NodeId A : assignsOf(G, Copy))
    if (is_contained(G.controlInputs(Initializer), Endpoint{A, ControlPort}))
      return;
  Diags.error(G.name(Copy),
              ("is never initialized: no node that assigns it is a control "
               "input of '" +
               G.name(Initializer) + "', which initializes the variable")
                  .str());
}

void verifyInitializers(const Graph &G, DiagnosticEngine &Diags) {
  for (NodeId N = 0; N < G.size(); ++N) {
    if (!G.isLive(N) || !isVariableOp(G.opName(N)))
      continue;
    StringRef Name = primaryName(G.name(N));
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
                             NodeId Initializer, DiagnosticEngine &Diags) {
  for (unsigned I = 1;; ++I) {
    NodeId Copy = G.find((G.name(Variable) + "/replica_" + Twine(I)).str());
    if (Copy == NoNode)
      return;
    if (isVariableOp(G.opName(Copy)))
      verifyCopy(G, Copy, Initializer, Diags);
  }
}

bool verifyGraph(const Graph &G, DiagnosticEngine &Diags) {
  unsigned Before = Diags.errorCount();
  verifyNames(G, Diags);
  verifyDevices(G, Diags);
  verifyArguments(G, Diags);
  verifyAcyclic(G, Diags);
  verifyColocation(G, Diags);
  verifyCollectives(G, Diags);
  if (hasGraftStamp(G))
    verifyInitializers(G, Diags);
  return Diags.errorCount() == Before;
}

} // namespace graft
