//===- lib/infer/rules/OpRules.cpp - families of ops ------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "lib/infer/rules/OpRules.h"

#include "lib/ops/OpTable.h"
#include "lib/ops/Ops.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"

#include <algorithm>
#include <array>
#include <string_view>

using namespace llvm;

namespace graft {
namespace {

struct NamedRules {
  std::string_view Op;
  OpRules Rules;
  constexpr bool operator<(const NamedRules &O) const { return Op < O.Op; }
};

constexpr NamedRules Listed[] = {
#define GRAFT_RULE(OpName, ShapeOf, TypeOf, ...)                               \
  {#OpName,                                                                    \
   {.Shape = ShapeRule::ShapeOf,                                               \
    .Type = TypeRule::TypeOf __VA_OPT__(, ) __VA_ARGS__}},
#include "lib/infer/rules/OpRules.def"
#define GRAFT_ROWS(OpName, ShapeOf, Operands, Results)                         \
  {#OpName,                                                                    \
   {.Shape = ShapeRule::ShapeOf,                                               \
    .Type = TypeRule::Rows,                                                    \
    .Inputs = Operands,                                                        \
    .Outputs = Results}},
#include "lib/infer/rules/RowRules.def"
};

/// By name, sorted by the compiler: a run asks for few of so many.
constexpr auto Table = [] {
  std::array<NamedRules, std::size(Listed)> List;
  std::copy(std::begin(Listed), std::end(Listed), List.begin());
  std::sort(List.begin(), List.end());
  return List;
}();
static_assert(std::adjacent_find(Table.begin(), Table.end(),
                                 [](const NamedRules &A, const NamedRules &B) {
                                   return A.Op == B.Op;
                                 }) == Table.end(),
              "an op has two rules");

constexpr std::string_view OnceOps[] = {
#define GRAFT_ONCE(Op) #Op,
#include "lib/infer/rules/OpRules.def"
};

constexpr std::string_view Registry[] = {
#define GRAFT_OP(Name, FirstArg, NumInputs, NumOutputs, FirstAttr, NumAttrs,   \
                 Flags)                                                        \
  Name,
#include "lib/ops/OpTable.inc"
};

/// An op of TensorFlow, or one of the program's own.
constexpr bool exists(std::string_view Op) {
  return Op.front() == '_' ||
         std::binary_search(std::begin(Registry), std::end(Registry), Op);
}
static_assert(std::all_of(Table.begin(), Table.end(),
                          [](const NamedRules &R) { return exists(R.Op); }) &&
                  std::all_of(std::begin(OnceOps), std::end(OnceOps), exists),
              "a rule of an op that TensorFlow does not have");

} // namespace

uint8_t traitsOf(TypeRule Rule) {
  using namespace trait;
  static constexpr uint8_t Traits[] = {
      Plain,
#define GRAFT_TYPE_RULE(Name, Traits) Traits,
#include "lib/infer/rules/RuleFamilies.def"
  };
  return Traits[static_cast<size_t>(Rule)];
}

OpRules rulesOf(StringRef Op) {
  std::string_view Name(Op.data(), Op.size());
  const auto *It =
      std::lower_bound(Table.begin(), Table.end(), NamedRules{Name, {}});
  return It == Table.end() || It->Op != Name ? OpRules() : It->Rules;
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
  if (is_contained(OnceOps, std::string_view(Op.data(), Op.size())))
    return true;
  if (rulesOf(Op).Type == TypeRule::LocalHandle)
    return false;
  // Stateful ops with a resource that is no variable: queues, tables, readers,
  // iterators, writers, stages. Updates and reads of variables are not, nor
  // are draws of random numbers. To look keys up changes no table.
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
  if (rulesOf(Op).Type == TypeRule::Random)
    return true;
  const OpDef *Def = findOp(Op);
  return Def && Def->isStateful() && Def->attr("seed") && Def->attr("seed2");
}

std::optional<Equation> parseEquation(StringRef Text, unsigned NumInputs) {
  auto IsSimple = [](StringRef Term) {
    for (size_t I = 0; I < Term.size(); ++I)
      if (!isAlpha(Term[I]) || Term.find(Term[I], I + 1) != StringRef::npos)
        return false;
    return true;
  };
  size_t Arrow = Text.find("->");
  if (Arrow == StringRef::npos || NumInputs == 0)
    return std::nullopt;
  Equation E;
  E.Output = Text.substr(Arrow + 2);
  Text.take_front(Arrow).split(E.Inputs, ',');
  if (E.Inputs.size() != NumInputs || !IsSimple(E.Output) ||
      !all_of(E.Inputs, IsSimple))
    return std::nullopt;
  for (char Letter : E.Output)
    if (none_of(E.Inputs,
                [&](StringRef Term) { return Term.contains(Letter); }))
      return std::nullopt;
  return E;
}

} // namespace graft
