//===- lib/certify/compare/SizeFactCheck.cpp - facts of sizes -------------===//
//
// SPDX-License-Identifier: Apache-2.0
//
// A fact states that two sizes are equal, because some ops require this. Two
// walks check that these ops run whenever a node that uses the fact runs. The
// forward walk marks all nodes that cannot run without one of the ops. The
// backward walk starts at results that the forward walk did not mark. It marks
// all nodes that may run without the ops, and must not mark a user of the fact.
// The user must also be under each predicate and in each loop of the ops.
//
//===----------------------------------------------------------------------===//

#include "lib/certify/compare/SizeFactCheck.h"

#include "lib/graph/Walk.h"
#include "lib/infer/graph/Conditions.h"
#include "lib/infer/graph/Loops.h"
#include "lib/ops/Ops.h"

#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/STLExtras.h"

using namespace llvm;

namespace graft {
namespace {

class FactCheck {
public:
  FactCheck(const Graph &G, ArrayRef<NodeId> Order,
            function_ref<void(NodeId, const Twine &)> Error)
      : G(G), Loops(LoopInfo::find(G, Order)), Error(Error) {
    if (Conditions::any(G))
      When.emplace(G, Order);
  }

  void check(ArrayRef<NodeId> Says, ArrayRef<NodeId> Users);

private:
  bool compares(NodeId Says) const;
  std::vector<bool> mayRunWithout(ArrayRef<NodeId> Says) const;
  bool isUnderAll(NodeId User, NodeId Says);
  bool isInLoopOf(NodeId User, NodeId Says) const;

  const Graph &G;
  std::unique_ptr<LoopInfo> Loops;
  std::optional<Conditions> When;
  function_ref<void(NodeId, const Twine &)> Error;
};

/// Returns true if \p Says compares sizes: it is an assertion, or another op of
/// the input with several operands. Merge and Switch only forward an operand.
bool FactCheck::compares(NodeId Says) const {
  const Node &This = G.node(Says);
  StringRef Op = G.opName(Says);
  return This.Kind == Inserted::No && This.NumData > 0 &&
         (This.NumData > 1 || Op == op::Assert) && Op != op::Merge &&
         Op != op::RefMerge && Op != op::Switch && Op != op::RefSwitch;
}

std::vector<bool> FactCheck::mayRunWithout(ArrayRef<NodeId> Says) const {
  std::vector<bool> Needs(G.size());
  walk::close(Says.vec(), Needs, walk::Everywhere,
              [&](NodeId N, std::vector<NodeId> &Next) {
                G.forEachUse(N, [&](Use U) { Next.push_back(U.User); });
                // A pop waits for a push.
                if (Loops && G.isOp(N, op::StackPushV2))
                  for (NodeId Handle : Loops->handlesUsedBy(G, N))
                    for (NodeId User : Loops->usersOf(Handle))
                      if (G.isOp(User, op::StackPopV2))
                        Next.push_back(User);
              });
  // The backward walk starts at nodes of the input that no node of the input
  // reads, directly or through inserted nodes.
  std::vector<bool> IsRead(G.size()), Without(G.size());
  std::vector<NodeId> From;
  for (NodeId N = 0; N < G.size(); ++N)
    if (G.isLive(N) && G.node(N).Kind == Inserted::No)
      for (Endpoint E : G.inputs(N))
        From.push_back(E.Node);
  walkInputs(G, std::move(From), Along::All, IsRead,
             [&](NodeId N) { return G.node(N).Kind != Inserted::No; });
  From.clear();
  for (NodeId N = 0; N < G.size(); ++N)
    if (G.isLive(N) && G.node(N).Kind == Inserted::No && !IsRead[N] &&
        !Needs[N])
      From.push_back(N);
  walk::close(std::move(From), Without, walk::Everywhere,
              [&](NodeId N, std::vector<NodeId> &Next) {
                for (Endpoint E : G.inputs(N))
                  if (!Needs[E.Node])
                    Next.push_back(E.Node);
              });
  return Without;
}

bool FactCheck::isUnderAll(NodeId User, NodeId Says) {
  if (!When)
    return true;
  SmallVector<uint32_t> Its(When->choices({Says, 0}));
  ArrayRef<uint32_t> Mine = When->choices({User, 0});
  return !When->isMany(Says) && all_of(Its, [&](uint32_t Choice) {
    return is_contained(Mine, Choice) && !is_contained(Mine, Choice ^ 1);
  });
}

bool FactCheck::isInLoopOf(NodeId User, NodeId Says) const {
  if (!Loops || Loops->frame(Says) == 0)
    return true;
  for (uint32_t F = Loops->frame(User); F != 0; F = Loops->around(F))
    if (F == Loops->frame(Says))
      return true;
  // The loop of a gradient runs one iteration for each iteration of the forward
  // loop: it pops the stacks to which the forward loop pushes.
  return any_of(Loops->nest(User), [&](NodeId N) {
    return isPopOp(G.opName(N)) &&
           any_of(Loops->handlesUsedBy(G, N), [&](NodeId Handle) {
             return Loops->isStack(G, Handle) &&
                    any_of(Loops->usersOf(Handle), [&](NodeId Push) {
                      return isPushOp(G.opName(Push)) &&
                             Loops->frame(Push) == Loops->frame(Says);
                    });
           });
  });
}

void FactCheck::check(ArrayRef<NodeId> Says, ArrayRef<NodeId> Users) {
  if (Says.empty() || !all_of(Says, [&](NodeId N) {
        return N < G.size() && G.isLive(N) && compares(N);
      })) {
    for (NodeId User : Users)
      Error(User, "its proof assumes that two sizes are equal, but no op "
                  "requires this");
    return;
  }
  std::vector<bool> Without = mayRunWithout(Says);
  for (NodeId User : Users)
    if (Without[User] || any_of(Says, [&](NodeId N) {
          return !isUnderAll(User, N) || !isInLoopOf(User, N);
        }))
      Error(User, "its proof assumes that two sizes are equal because '" +
                      G.name(Says.front()) +
                      "' requires this, but this node may run without that op");
}

} // namespace

void checkSizeFacts(const Graph &G, ArrayRef<NodeId> Order,
                    ArrayRef<SizeUse> Uses,
                    function_ref<void(NodeId, const Twine &)> Error) {
  // All uses of the same fact point to the same list of nodes.
  MapVector<const NodeId *, std::pair<ArrayRef<NodeId>, SmallVector<NodeId, 4>>>
      BySays;
  for (const SizeUse &Use : Uses) {
    BySays[Use.Says.data()].first = Use.Says;
    BySays[Use.Says.data()].second.push_back(Use.User);
  }
  if (BySays.empty())
    return;
  FactCheck Check(G, Order, Error);
  for (auto &[At, Its] : BySays)
    Check.check(Its.first, Its.second);
}

} // namespace graft
