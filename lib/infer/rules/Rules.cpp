//===- lib/infer/rules/Rules.cpp - entries of ops ---------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "lib/infer/rules/Rules.h"

#include "lib/ops/OpTable.h"
#include "lib/program/Program.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringMap.h"

using namespace llvm;

namespace graft {
/// All entries, by name.
static const StringMap<const OpRule *> &entries() {
  static const StringMap<const OpRule *> Entries = [] {
    StringMap<const OpRule *> Map;
    for (ArrayRef<OpRule> Family : {
#define GRAFT_FAMILY(Name) families::Name(),
#include "lib/infer/rules/Families.def"
         })
      for (const OpRule &Rule : Family) {
        [[maybe_unused]] bool New = Map.try_emplace(Rule.Op, &Rule).second;
        assert(New && "an op has two entries");
      }
    return Map;
  }();
  return Entries;
}

const OpRule &ruleOf(StringRef Op) {
  static constexpr OpRule None;
  const OpRule *Rule = entries().lookup(Op);
  return Rule ? *Rule : None;
}

uint32_t traitsOf(StringRef Op) {
  const OpRule &Rule = ruleOf(Op);
  uint32_t Is = Rule.Is;
  if (isRandomOp(Op))
    return Is | trait::Draws;
  if (Rule.Type)
    return Is;
  // An op that is unknown to TensorFlow may have any effect. A stateful op may
  // compute a different value each time it runs.
  const OpDef *Def = findOp(Op);
  bool IsOpaque = Def ? Def->isStateful() && !Def->readsVariable() &&
                            Def->update().Kind == UpdateKind::None &&
                            !isVariableOp(Op)
                      : Op != MeshOp;
  return IsOpaque ? Is | trait::Opaque : Is;
}

std::pair<char, int> letterOf(StringRef Letters, unsigned I) {
  std::pair<char, int> Last;
  for (size_t At = 0; At < Letters.size(); ++At) {
    Last = {Letters[At], 0};
    if (At + 1 < Letters.size() && isDigit(Letters[At + 1]))
      Last.second = Letters[++At] - '0';
    if (I-- == 0)
      break;
  }
  return Last;
}

unsigned mixedAxes(const Graph &G, NodeId N) {
  if (!G.isOp(N, op::MatrixDiagV2) && !G.isOp(N, op::MatrixDiagV3))
    return 1;
  NodeId K = G.input(N, 1).Node;
  auto Value = G.isOp(K, op::Const) ? constValue(G, K) : std::nullopt;
  return Value && Value->Shape.Dims.empty() ? 1 : 2;
}

bool isOnceOp(StringRef Op) {
  const OpRule &Rule = ruleOf(Op);
  if (Rule.Is & trait::Once)
    return true;
  if (Rule.Is & trait::Handle)
    return false;
  // Stateful ops with a resource other than a variable: queues, tables,
  // readers, iterators, writers, stages. Exceptions are reads and updates of
  // variables, random ops, and lookups by key, which change no table.
  const OpDef *Def = findOp(Op);
  if (!Def || !Def->isStateful() || Def->update().Kind != UpdateKind::None ||
      Def->readsVariable() || isRandomOp(Op) || Op == op::VarHandleOp ||
      Op == op::VariableV2 || Op == op::Variable || Op == op::Assert ||
      Op.starts_with(op::LookupTableFind))
    return false;
  return Def->hasSharedName() ||
         llvm::any_of(Def->inputs(), [](const ArgDef &A) {
           return A.Type == DT_RESOURCE || A.IsRef;
         });
}

bool isRandomOp(StringRef Op) {
  if (ruleOf(Op).Is & trait::Draws)
    return true;
  const OpDef *Def = findOp(Op);
  return Def && Def->isStateful() && Def->attr("seed") && Def->attr("seed2");
}

/// Returns \p Term with a digit for each of the \p Axes axes of its ellipsis.
/// Returns none if a letter occurs twice or is invalid.
static std::optional<std::string> spellOut(StringRef Term, unsigned Axes) {
  std::string Result;
  size_t Dots = Term.find("...");
  for (size_t I = 0; I < Term.size(); ++I)
    if (I == Dots) {
      for (unsigned Axis = Axes; Axis-- > 0;)
        Result.push_back(static_cast<char>('0' + Axis));
      I += 2;
    } else if (!isAlpha(Term[I]) ||
               Term.find(Term[I], I + 1) != StringRef::npos) {
      return std::nullopt;
    } else {
      Result.push_back(Term[I]);
    }
  return Result;
}

std::optional<Equation> parseEquation(StringRef Text, ArrayRef<int> Ranks) {
  size_t Arrow = Text.find("->");
  if (Arrow == StringRef::npos || Ranks.empty())
    return std::nullopt;
  SmallVector<StringRef, 2> Terms;
  Text.take_front(Arrow).split(Terms, ',');
  if (Terms.size() != Ranks.size())
    return std::nullopt;
  StringRef Output = Text.substr(Arrow + 2);
  Equation E;
  unsigned Longest = 0;
  for (auto [Term, Rank] : zip(Terms, Ranks)) {
    unsigned Axes = 0;
    if (Term.contains("...")) {
      int Rest = Rank - static_cast<int>(Term.size() - 3);
      // Each axis of the ellipsis has one digit, so 10 axes are the maximum.
      if (Rest < 0 || Rest > 10 || !Output.contains("..."))
        return std::nullopt;
      Longest = std::max(Longest, Axes = Rest);
    }
    auto Letters = spellOut(Term, Axes);
    if (!Letters)
      return std::nullopt;
    E.Inputs.push_back(std::move(*Letters));
  }
  auto Letters = spellOut(Output, Longest);
  if (!Letters)
    return std::nullopt;
  E.Output = std::move(*Letters);
  for (char Letter : E.Output)
    if (none_of(E.Inputs,
                [&](StringRef Term) { return Term.contains(Letter); }))
      return std::nullopt;
  return E;
}

} // namespace graft
