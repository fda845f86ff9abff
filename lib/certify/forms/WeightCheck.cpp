//===- lib/certify/forms/WeightCheck.cpp - weights of rows ----------------===//
//
// SPDX-License-Identifier: Apache-2.0
//
// Each replica multiplies a value by the number of its rows, and the combined
// value is divided by the number of all rows (lib/program/forms/RowWeight.h).
// The types show that the power of the number is right. The certificate also
// checks
//
//   - that the product and the quotient have the same rows and the same power;
//   - that the value depends on no other rows, or waits for a check that the
//     replica has as many of these as of its own. The quotient may wait instead
//     for a check that this holds, or that all replicas have equally many rows.
//
//===----------------------------------------------------------------------===//

#include "lib/certify/forms/WeightCheck.h"

#include "lib/infer/facts/RowsRead.h"
#include "lib/ops/Ops.h"
#include "lib/program/forms/RowWeight.h"

using namespace llvm;

namespace graft {

static Endpoint weighed(const Comparison &C, Endpoint E) {
  if (C.G.isOp(E.Node, op::Pack))
    return sizesOf(C.G, E.Node);
  return C.G.node(E.Node).NumData == 2 ? C.G.input(E.Node, 0) : Endpoint();
}

static void checkWeight(Comparison &C, const ProgramFacts & /*Facts*/,
                        NodeId N) {
  const Graph &G = C.G;
  if (G.isOp(N, op::Pack)) {
    // The types show for each element that its combination is right.
    if (sizesOf(G, N).Node == NoNode || G.isPerReplica(N) ||
        G.intAttr(N, WeightAttr) != 0)
      return C.mismatch(N);
    return checkWaits(C, N);
  }
  auto Weight =
      G.node(N).NumData == 2 ? rowWeight(G, G.input(N, 1)) : std::nullopt;
  bool Divides = G.isOp(N, op::RealDiv);
  if (!Weight || (!Divides && !G.isOp(N, op::Mul)) ||
      Divides != Weight->OfAll || (!Divides && !G.isPerReplica(N)) ||
      G.intAttr(N, WeightAttr) != Weight->Power)
    return C.mismatch(N);
  checkWaits(C, N);
}

const InsertedForm WeightForm = {
    .StandsFor = weighed,
    .Check = checkWeight,
    .Recognize = [](const LoweredFile &File,
                    NodeId N) { return File.G.hasAttr(N, WeightAttr); },
    .Forwards = 1u << static_cast<unsigned>(OpKind::Other),
    .IsElementwise = true,
    .IsTyped = true};

namespace {

/// Checks that each product with a weight has its quotient, and each quotient
/// its product.
class WeightChecker {
public:
  WeightChecker(Comparison &C, const ProgramFacts &Facts)
      : C(C), G(C.G), Read(G, Facts) {}

  void check(NodeId Product);

private:
  bool isSame(const RowWeight &A, const RowWeight &B) const {
    return A.Rows == B.Rows && A.Power == B.Power;
  }
  bool isDivided(NodeId N, const RowWeight &By, bool IsCombined);
  bool waitsFor(NodeId Product, const RowCount &Own, const RowCount &Other);
  static RowCount rowsOf(const RowsRead::Source &S) {
    return {{S.Node, 0}, S.Axis};
  }

  Comparison &C;
  const Graph &G;
  RowsRead Read;
  std::vector<NodeId> Quotients; ///< The quotients of the current product.
};

/// Returns true if each use of \p N, a value multiplied by \p By, leads to a
/// division by the number of the same rows on all replicas.
bool WeightChecker::isDivided(NodeId N, const RowWeight &By, bool IsCombined) {
  return G.hasUses(N) && !G.anyUse(N, [&](Use U) {
    NodeId User = U.User;
    if (!G.isData(U))
      return false;
    if (U.Index != 0 && !G.isOp(User, op::ConcatV2))
      return true;
    if (G.node(User).Kind == Inserted::Weight) {
      auto Of = rowWeight(G, G.input(User, 1));
      Quotients.push_back(User);
      return !IsCombined || !Of || !Of->OfAll || !isSame(*Of, By);
    }
    bool Combines = C.opKind(User) == OpKind::FromReplicas;
    if (Combines && (IsCombined || G.node(User).NumData != 1))
      return true;
    return (!Combines && !passesWeightsOn(G, User)) ||
           !isDivided(User, By, IsCombined || Combines);
  });
}

/// Returns true if \p Product waits for a check that \p Own and \p Other are
/// equal, or if all its quotients wait for a check that these are equal or the
/// same on all replicas.
bool WeightChecker::waitsFor(NodeId Product, const RowCount &Own,
                             const RowCount &Other) {
  auto AreThese = [&](const auto &Rows) {
    return Rows &&
           (*Rows == std::pair(Own, Other) || *Rows == std::pair(Other, Own));
  };
  return any_of(
             G.controlInputs(Product),
             [&](Endpoint E) { return AreThese(comparedRows(G, E.Node)); }) ||
         all_of(Quotients, [&](NodeId N) {
           return any_of(G.controlInputs(N), [&](Endpoint E) {
             return AreThese(relatedRows(G, E.Node, C.Replicas));
           });
         });
}

void WeightChecker::check(NodeId N) {
  auto Weight = rowWeight(G, G.input(N, 1));
  // checkWeight() has reported it.
  if (!Weight)
    return;
  if (G.isOp(N, op::RealDiv)) {
    // The divided sum must have terms that were multiplied by this weight.
    NodeId Of = G.input(N, 0).Node;
    for (unsigned Steps = 0;
         Steps <= G.size() && G.node(Of).NumData != 0 &&
         G.node(Of).Kind != Inserted::No && G.node(Of).Kind != Inserted::Weight;
         ++Steps)
      Of = G.input(Of, 0).Node;
    auto Its = G.node(Of).Kind == Inserted::Weight && G.isOp(Of, op::Mul)
                   ? rowWeight(G, G.input(Of, 1))
                   : std::nullopt;
    if (!Its || !isSame(*Its, *Weight))
      C.error(N, "divides by the number of all rows, but no replica multiplies "
                 "its term by its number of rows");
    return;
  }
  Quotients.clear();
  if (!isDivided(N, *Weight, false))
    C.error(N, "multiplies by the number of rows of a replica, but no node "
               "divides the sum by the number of all rows");
  auto Sources = Read.of(G.input(N, 0).Node);
  const auto *Own = find_if(Sources, [&](const RowsRead::Source *S) {
    return Weight->Rows == rowsOf(*S);
  });
  if (Own == Sources.end())
    return C.error(N, "multiplies by a number of rows, but its value does not "
                      "depend on these rows");
  for (const RowsRead::Source *S : Sources)
    if (S != *Own && (!S->IsFed || (!(S->Origin == (*Own)->Origin) &&
                                    !waitsFor(N, Weight->Rows, rowsOf(*S)))))
      return C.error(N, "multiplies by a number of rows, but its value also "
                        "depends on the rows of '" +
                            originName(G, S->Node) + "'");
  if (!(*Own)->IsFed)
    C.error(N, "multiplies by a number of rows, but no worker feeds these "
               "rows");
}

} // namespace

void checkWeights(Comparison &C, const ProgramFacts &Facts) {
  std::optional<WeightChecker> Checker;
  for (NodeId N : Facts.Order) {
    if (C.G.node(N).Kind != Inserted::Weight || C.G.node(N).NumData != 2 ||
        C.G.isOp(N, op::Pack))
      continue;
    if (!Checker)
      Checker.emplace(C, Facts);
    Checker->check(N);
  }
}

} // namespace graft
