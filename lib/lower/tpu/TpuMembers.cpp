//===- lib/lower/tpu/TpuMembers.cpp - the ops of a computation --*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "lib/lower/tpu/TpuMembers.h"

#include "lib/graph/PerOp.h"
#include "lib/infer/graph/Loops.h"
#include "lib/ops/Ops.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/GlobPattern.h"

#include <set>

using namespace llvm;

namespace graft {
namespace {

class MemberSearch {
public:
  MemberSearch(const Graph &G, TpuComputation &C,
               const TpuMemberOptions &Options, DiagnosticEngine &Diags)
      : G(G), C(C), Options(Options), Diags(Diags), Role(G.size()),
        InBranch(G.size()),
        Ops(G, [](StringRef Name, const OpDef *) { return kindOf(Name); }) {}

  bool run();

private:
  enum Roles : uint8_t { None, Member, Captured, MakesInput };
  enum OpKind : uint8_t { Other, Outside, Switch, Merge };
  static OpKind kindOf(StringRef Op) {
    if (Op == op::Placeholder || Op == op::PlaceholderV2 ||
        Op == op::VarHandleOp)
      return Outside;
    if (Op == op::Switch || Op == op::RefSwitch)
      return Switch;
    return Op == op::Merge || Op == op::RefMerge ? Merge : Other;
  }

  bool include();
  bool addInputsOf(NodeId N);
  bool mayRead(NodeId User, Endpoint E);
  void addBranches(NodeId N);
  void add(NodeId N) {
    if (Role[N] != None || Ops[G.node(N)] == Outside)
      return;
    Role[N] = Member;
    Work.push_back(N);
  }

  const Graph &G;
  TpuComputation &C;
  const TpuMemberOptions &Options;
  DiagnosticEngine &Diags;
  std::vector<uint8_t> Role;
  std::vector<bool> InBranch; ///< By node: added as a reader of a branch.
  std::vector<NodeId> Work;
  std::set<std::pair<NodeId, uint32_t>> Inputs, Outputs, CapturedTensors, Split;
  PerOp Ops;
};

/// Adds the ops that the patterns match.
bool MemberSearch::include() {
  for (const std::string &Text : Options.Include) {
    auto Pattern = GlobPattern::create(Text);
    if (!Pattern) {
      Diags.error("", "include: '" + Text + "' is not a valid pattern: " +
                          toString(Pattern.takeError()));
      return false;
    }
    bool Any = false;
    for (NodeId N = 0; N < G.size(); ++N)
      if (G.isLive(N) && Pattern->match(G.name(N))) {
        Any = true;
        add(N);
      }
    if (!Any) {
      Diags.error("", "include: no op has a name like '" + Text + "'");
      return false;
    }
  }
  return true;
}

/// Returns true if the member \p User may read the tensor \p E of an op
/// outside.
bool MemberSearch::mayRead(NodeId User, Endpoint E) {
  std::pair<NodeId, uint32_t> Tensor(E.Node, E.Port);
  if (Inputs.count(Tensor))
    return true;
  if (Split.count(Tensor)) {
    Diags.error(G.name(E.Node),
                ("is to be split, but '" + G.name(User) +
                 "' would read all of it: make it one of the inputs")
                    .str());
    return false;
  }
  if (Role[E.Node] == MakesInput && !CapturedTensors.count(Tensor)) {
    Diags.error(G.name(E.Node),
                formatv("is outside of the computation, because another of its "
                        "outputs is an input, but '{0}' reads output {1}; "
                        "make that output an input or a capture",
                        G.name(User), E.Port));
    return false;
  }
  return true;
}

bool MemberSearch::addInputsOf(NodeId N) {
  bool Good = true;
  for (Endpoint E : G.inputs(N)) {
    add(E.Node);
    if (!E.isControl() && Role[E.Node] != Member)
      Good &= mayRead(N, E);
  }
  return Good;
}

/// Adds the rest of the conditional if \p N is its predicate or one of its
/// nodes: each Switch, and all nodes that read a branch, up to the Merge. Nodes
/// with unused results are added too. A node that reads an output of the
/// computation is not added.
void MemberSearch::addBranches(NodeId N) {
  bool GivesBranch =
      Ops[G.node(N)] == Switch || (InBranch[N] && Ops[G.node(N)] != Merge);
  SmallVector<NodeId, 4> Found;
  G.forEachUse(N, [&](Use U) {
    Endpoint E = G.input(U);
    bool IsPredicate = Ops[G.node(U.User)] == Switch && U.Index == 1;
    if (!E.isControl() && (GivesBranch || IsPredicate) &&
        Role[U.User] == None && !Outputs.count({E.Node, E.Port}))
      Found.push_back(U.User);
  });
  for (NodeId User : Found) {
    InBranch[User] = GivesBranch;
    add(User);
  }
}

bool MemberSearch::run() {
  for (const TpuInput &I : C.Inputs) {
    Inputs.insert({I.Read.Node, I.Read.Port});
    Role[I.Read.Node] = MakesInput;
  }
  for (Endpoint E : Options.SplitFeeds)
    Split.insert({E.Node, E.Port});
  for (Endpoint E : Options.Captures) {
    if (E.isControl())
      Role[E.Node] = Captured;
    else
      CapturedTensors.insert({E.Node, E.Port});
    if (Role[E.Node] == None)
      Role[E.Node] = Captured;
  }
  for (const TpuOutput &O : C.Outputs) {
    Outputs.insert({O.Tensor.Node, O.Tensor.Port});
    add(O.Tensor.Node);
  }
  for (NodeId N : C.Operations) {
    add(N);
    if (Role[N] != Member) {
      Diags.error(G.name(N), "is to run with the computation, but is an input "
                             "or captured");
      return false;
    }
  }
  if (!include())
    return false;
  auto Loops = LoopInfo::find(G);
  bool Good = true;
  while (!Work.empty()) {
    NodeId N = Work.back();
    Work.pop_back();
    Good &= addInputsOf(N);
    addBranches(N);
    if (Loops && Loops->isInLoop(N))
      for (NodeId In : Loops->nest(N))
        add(In);
  }
  for (NodeId N = 0; N < G.size(); ++N)
    if (Role[N] == Member)
      C.Members.push_back(N);
  return Good;
}

} // namespace

bool findTpuMembers(const Graph &G, TpuComputation &C,
                    const TpuMemberOptions &Options, DiagnosticEngine &Diags) {
  return MemberSearch(G, C, Options, Diags).run();
}

} // namespace graft
