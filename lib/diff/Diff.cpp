//===- lib/diff/Diff.cpp - the differences of two graphs --------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "lib/diff/Diff.h"

#include "lib/certify/fold/Fold.h"
#include "lib/diff/Attributes.h"
#include "lib/diff/Match.h"
#include "lib/io/write/Print.h"
#include "lib/program/Program.h"
#include "lib/support/Diagnostics.h"

#include "tensorflow/core/framework/function.pb.h"
#include "tensorflow/core/protobuf/meta_graph.pb.h"

#include "google/protobuf/util/message_differencer.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"

#include <map>

using namespace llvm;
using google::protobuf::util::MessageDifferencer;

namespace graft {

StringRef nameOf(Difference::What Kind) {
  static constexpr StringRef Names[] = {
      "removed",   "added",      "renamed", "op",         "device",
      "attribute", "input",      "control", "colocation", "copies",
      "function",  "collection", "field"};
  return Names[Kind];
}

namespace {

std::string textOf(const Graph &G, Endpoint E) {
  std::string Name = G.name(E.Node).str();
  if (E.isControl())
    return "^" + Name;
  return E.Port == 0 ? Name : Name + ":" + utostr(E.Port);
}

class GraphComparison {
public:
  GraphComparison(const Graph &A, const Graph &B, const DiffOptions &O,
                  GraphDiff &Result)
      : A(A), B(B), O(O), Result(Result), Match(matchNodes(A, B)), AttrsOfA(A),
        AttrsOfB(B) {}

  void run();

private:
  void add(Difference::What Kind, NodeId InB, const Twine &Key,
           const Twine &Was, const Twine &Now) {
    Result.All.push_back(
        {Kind, B.name(InB).str(), Key.str(), Was.str(), Now.str()});
  }
  void compare(NodeId InA, NodeId InB);
  void compareAttrs(NodeId InA, NodeId InB);
  void compareInputs(NodeId InA, NodeId InB);
  void compareSets(Difference::What Kind, NodeId InB, ArrayRef<NodeId> Was,
                   ArrayRef<NodeId> Now, StringRef Mark);
  /// Returns true if \p Was in the first graph is paired with \p Now in the
  /// second.
  bool isSame(Endpoint Was, Endpoint Now) const {
    return Was.Port == Now.Port && Match.InB[Was.Node] == Now.Node;
  }
  bool isInserted(const Graph &G, NodeId N) const {
    return G.node(N).Kind != Inserted::No || G.hasAttr(N, StampAttr);
  }

  const Graph &A;
  const Graph &B;
  const DiffOptions &O;
  GraphDiff &Result;
  Matching Match;
  Attributes AttrsOfA, AttrsOfB;
};

void GraphComparison::run() {
  for (NodeId N : A.order()) {
    if (NodeId Now = Match.InB[N]; Now != NoNode) {
      size_t Before = Result.All.size();
      compare(N, Now);
      Result.Same += Result.All.size() == Before;
    } else {
      Result.All.push_back(
          {Difference::Removed, A.name(N).str(), "", A.opName(N).str(), ""});
    }
  }
  for (NodeId N : B.order())
    if (Match.InA[N] == NoNode)
      add(Difference::Added, N, "", "", B.opName(N));
}

void GraphComparison::compare(NodeId InA, NodeId InB) {
  bool Named = O.Names || (!isInserted(A, InA) && !isInserted(B, InB));
  if (Named && A.name(InA) != B.name(InB))
    add(Difference::Renamed, InB, "", A.name(InA), B.name(InB));
  if (A.opName(InA) != B.opName(InB))
    add(Difference::Op, InB, "", A.opName(InA), B.opName(InB));
  if (A.device(InA) != B.device(InB))
    add(Difference::Device, InB, "", A.device(InA), B.device(InB));
  if (A.isPerReplica(InA) != B.isPerReplica(InB))
    add(Difference::Copies, InB, "",
        A.isPerReplica(InA) ? "one for each replica" : "one",
        B.isPerReplica(InB) ? "one for each replica" : "one");
  compareAttrs(InA, InB);
  compareInputs(InA, InB);
  auto Of = colocations(A, InA), Now = colocations(B, InB);
  compareSets(Difference::Colocation, InB, Of, Now, "");
}

void GraphComparison::compareAttrs(NodeId InA, NodeId InB) {
  const Node &Was = A.node(InA), &Now = B.node(InB);
  if (StringRef(Was.AttrData, Was.AttrSize) ==
          StringRef(Now.AttrData, Now.AttrSize) &&
      A.opName(InA) == B.opName(InB))
    return;
  auto Old = AttrsOfA.of(InA), New = AttrsOfB.of(InB);
  // The text of an absent attribute is the text of its default.
  auto Text = [&](const Graph &G, NodeId N, const AttrEntry *E,
                  StringRef Key) -> std::string {
    if (E)
      return attrText(E->Value);
    const OpDef *Def = G.opDef(N);
    const AttrDef *Of = Def ? Def->attr(Key) : nullptr;
    return Of && Of->HasDefault ? (StringRef(Of->Default) + " (default)").str()
                                : "";
  };
  const AttrEntry *I = Old.begin(), *J = New.begin();
  while (I != Old.end() || J != New.end()) {
    const AttrEntry *OfA =
        J == New.end() || (I != Old.end() && I->Key <= J->Key) ? I : nullptr;
    const AttrEntry *OfB =
        I == Old.end() || (J != New.end() && J->Key <= I->Key) ? J : nullptr;
    StringRef Key = OfA ? OfA->Key : OfB->Key;
    I += OfA != nullptr;
    J += OfB != nullptr;
    if (OfA && OfB && isSameValue(OfA->Value, OfB->Value))
      continue;
    add(Difference::Attribute, InB, Key, Text(A, InA, OfA, Key),
        Text(B, InB, OfB, Key));
  }
}

void GraphComparison::compareInputs(NodeId InA, NodeId InB) {
  ArrayRef<Endpoint> Was = A.dataInputs(InA), Now = B.dataInputs(InB);
  for (size_t I = 0; I < std::max(Was.size(), Now.size()); ++I)
    if (I >= Was.size() || I >= Now.size() || !isSame(Was[I], Now[I]))
      add(Difference::Input, InB, utostr(I),
          I < Was.size() ? textOf(A, Was[I]) : "",
          I < Now.size() ? textOf(B, Now[I]) : "");
  auto Nodes = [](ArrayRef<Endpoint> Controls) {
    return SmallVector<NodeId, 8>(
        map_range(Controls, [](Endpoint E) { return E.Node; }));
  };
  compareSets(Difference::Control, InB, Nodes(A.controlInputs(InA)),
              Nodes(B.controlInputs(InB)), "^");
}

void GraphComparison::compareSets(Difference::What Kind, NodeId InB,
                                  ArrayRef<NodeId> Was, ArrayRef<NodeId> Now,
                                  StringRef Mark) {
  SmallVector<NodeId, 8> There(
      map_range(Was, [&](NodeId N) { return Match.InB[N]; }));
  SmallVector<NodeId, 8> Sorted = There, SortedNow(Now);
  sort(Sorted);
  sort(SortedNow);
  if (Sorted == SortedNow)
    return;
  for (auto [N, Is] : zip(Was, There))
    if (Is == NoNode || !binary_search(SortedNow, Is))
      add(Kind, InB, "", Mark + A.name(N), "");
  for (NodeId N : Now)
    if (!binary_search(Sorted, N))
      add(Kind, InB, "", "", Mark + B.name(N));
}

//===----------------------------------------------------------------------===//
// Functions and the MetaGraphDef
//===----------------------------------------------------------------------===//

/// The values of both files by key; null where a file has none.
template <typename T>
using Both = std::map<StringRef, std::pair<const T *, const T *>>;

tensorflow::FunctionDefLibrary libraryOf(const Graph &G) {
  tensorflow::FunctionDefLibrary Library;
  std::string Bytes = G.otherField(2);
  (void)Library.ParseFromString(Bytes);
  return Library;
}

std::string textOf(const tensorflow::NodeDef *N) {
  return N ? N->op() + "(" + join(N->input(), ", ") + ")" : "";
}

/// Compares two bodies. Their nodes are paired by name.
void compareBodies(const tensorflow::FunctionDef &A,
                   const tensorflow::FunctionDef &B, GraphDiff &Result) {
  Both<tensorflow::NodeDef> Nodes;
  for (const auto &N : A.node_def())
    Nodes[N.name()].first = &N;
  for (const auto &N : B.node_def())
    Nodes[N.name()].second = &N;
  bool AreSame = true;
  for (auto [Name, Of] : Nodes) {
    auto [Was, Now] = Of;
    if (Was && Now && MessageDifferencer::Equals(*Was, *Now))
      continue;
    Difference D{Difference::Function, Name.str(), A.signature().name(),
                 textOf(Was), textOf(Now)};
    if (D.Was == D.Now) {
      D.Was += " " + Was->ShortDebugString();
      D.Now += " " + Now->ShortDebugString();
    }
    Result.All.push_back(std::move(D));
    AreSame = false;
  }
  if (AreSame)
    Result.All.push_back({Difference::Function, "", A.signature().name(),
                          A.signature().ShortDebugString(),
                          B.signature().ShortDebugString()});
}

void compareFunctions(const Graph &A, const Graph &B, GraphDiff &Result) {
  if (A.otherField(2) == B.otherField(2))
    return;
  auto Of = libraryOf(A), Now = libraryOf(B);
  Both<tensorflow::FunctionDef> Functions;
  for (const auto &F : Of.function())
    Functions[F.signature().name()].first = &F;
  for (const auto &F : Now.function())
    Functions[F.signature().name()].second = &F;
  for (auto [Name, F] : Functions) {
    auto [Was, Is] = F;
    auto Size = [](const tensorflow::FunctionDef *F) {
      return F ? std::to_string(F->node_def_size()) + " nodes" : "";
    };
    if (!Was || !Is)
      Result.All.push_back(
          {Difference::Function, "", Name.str(), Size(Was), Size(Is)});
    else if (!MessageDifferencer::Equals(*Was, *Is))
      compareBodies(*Was, *Is, Result);
  }
}

using google::protobuf::Message;

void compareMessages(Difference::What Kind, const Message *A, const Message *B,
                     const Twine &Name, GraphDiff &Result) {
  auto Text = [](const Message *M) { return M ? M->ShortDebugString() : ""; };
  if (A != B && (!A || !B || !MessageDifferencer::Equals(*A, *B)))
    Result.All.push_back({Kind, "", Name.str(), Text(A), Text(B)});
}

template <typename Map>
void compareMaps(Difference::What Kind, const Map &A, const Map &B,
                 StringRef Prefix, GraphDiff &Result) {
  Both<Message> All;
  for (const auto &[Key, Value] : A)
    All[Key].first = &Value;
  for (const auto &[Key, Value] : B)
    All[Key].second = &Value;
  for (auto [Key, Of] : All)
    compareMessages(Kind, Of.first, Of.second, Prefix + Key, Result);
}

void compareMetaGraphs(const tensorflow::MetaGraphDef *A,
                       const tensorflow::MetaGraphDef *B, GraphDiff &Result) {
  const tensorflow::MetaGraphDef None;
  if (!A != !B)
    Result.All.push_back({Difference::Field, "", "meta_graph",
                          A ? "a MetaGraphDef" : "a GraphDef",
                          B ? "a MetaGraphDef" : "a GraphDef"});
  A = A ? A : &None;
  B = B ? B : &None;
  compareMaps(Difference::Collection, A->collection_def(), B->collection_def(),
              "", Result);
  compareMaps(Difference::Field, A->signature_def(), B->signature_def(),
              "signature_def.", Result);
  auto SaverOf = [](const tensorflow::MetaGraphDef *M) {
    return M->has_saver_def() ? &M->saver_def() : nullptr;
  };
  compareMessages(Difference::Field, SaverOf(A), SaverOf(B), "saver_def",
                  Result);
}

} // namespace

GraphDiff compareModules(const Module &A, const Module &B,
                         const DiffOptions &Options) {
  GraphDiff Result;
  const Graph *OfA = &A.graph(), *OfB = &B.graph();
  std::unique_ptr<Graph> ProgramOfA, ProgramOfB;
  unsigned InA = stampedReplicas(*OfA), InB = stampedReplicas(*OfB);
  if (InA != InB) {
    ProgramOfA = foldAlone(*OfA);
    ProgramOfB = foldAlone(*OfB);
  }
  if (ProgramOfA && ProgramOfB) {
    Result.ReplicasOfA = InA;
    Result.ReplicasOfB = InB;
    OfA = ProgramOfA.get();
    OfB = ProgramOfB.get();
  }
  GraphComparison(*OfA, *OfB, Options, Result).run();
  compareFunctions(A.graph(), B.graph(), Result);
  compareMetaGraphs(A.metaGraph(), B.metaGraph(), Result);
  return Result;
}

} // namespace graft
