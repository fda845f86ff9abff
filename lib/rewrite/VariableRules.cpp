//===- lib/rewrite/VariableRules.cpp - policies of variables --------------===//
//
// SPDX-License-Identifier: Apache-2.0
//
// A message uses the words of TensorFlow if TensorFlow has the same error.
//
//===----------------------------------------------------------------------===//

#include "lib/rewrite/VariableRules.h"

#include "lib/ops/Ops.h"
#include "lib/rewrite/Slots.h"
#include "lib/support/Glob.h"
#include "lib/support/Wire.h"

#include "tensorflow/core/protobuf/meta_graph.pb.h"

#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FormatVariadic.h"

using namespace llvm;

namespace graft {
namespace {

struct Plan {
  Policy What = Policy::None;
  Aggregation How = Aggregation::None;
};

struct Rule {
  std::string Pattern;
  Plan Gives;
  bool Matched = false;
};

constexpr StringLiteral NoSynchronization =
    "`NONE` variable synchronization mode is not supported with tf.distribute "
    "strategy; use mirrored or sync-on-read";

std::optional<Rule> parseRule(StringRef Text, DiagnosticEngine &Diags) {
  auto Fail = [&](const Twine &Why) {
    Diags.error("", ("--variable=" + Text + ": " + Why).str());
    return std::nullopt;
  };
  auto [Pattern, Value] = Text.rsplit('=');
  auto [Name, How] = Value.split(',');
  if (Pattern.empty() || Name.empty())
    return Fail("this does not have the form GLOB=POLICY[,AGGREGATION]");
  if (Name == "none")
    return Fail(NoSynchronization);
  Rule R{Pattern.str(), {parsePolicy(Name), Aggregation::None}};
  if (R.Gives.What == Policy::None)
    return Fail("Invalid variable synchronization mode: " + Name +
                "; use mirrored, sync-on-read, replicated, host or shared");
  if (!Value.contains(','))
    return R;
  auto Parsed = parseAggregation(How);
  if (!Parsed)
    return Fail("Invalid variable aggregation mode: " + How +
                "; use none, sum, mean or only-first-replica");
  R.Gives.How = *Parsed;
  return R;
}

/// Writes the plan \p P to the attributes of \p Var.
bool give(Graph &G, NodeId Var, Plan P, DiagnosticEngine &Diags) {
  auto Type = G.typeAttr(Var, "dtype");
  if (P.How == Aggregation::Mean && Type && !isFloating(*Type)) {
    Diags.error(G.name(Var),
                "creating distributed tf.Variable with aggregation=MEAN and a "
                "non-floating dtype is not supported; use another aggregation");
    return false;
  }
  G.setPolicy(Var, P.What);
  G.setStringAttr(Var, AggregationAttr, aggregationName(P.How));
  return true;
}

/// Copies the plan of a variable to the slots that an op updates with it.
bool giveSlots(Graph &G, const VariableIndex &Vars,
               const DenseMap<NodeId, Plan> &Plans, DenseSet<NodeId> &Named,
               DiagnosticEngine &Diags) {
  DenseMap<NodeId, Plan> Slots;
  std::vector<NodeId> Order;
  forEachSlot(G, Vars, [&](NodeId Update, NodeId Var, NodeId Slot) {
    auto Main = Plans.find(Var);
    if (Vars.update(G, Update).Kind == UpdateKind::Apply &&
        Main != Plans.end() && !Plans.count(Slot) &&
        Slots.try_emplace(Slot, Main->second).second) {
      Order.push_back(Slot);
      Named.insert(Slot);
    }
    return true;
  });
  return all_of(Order,
                [&](NodeId Slot) { return give(G, Slot, Slots[Slot], Diags); });
}

/// Reports an op that updates a per-replica variable together with a shared
/// one.
bool checkSlots(const Graph &G, const VariableIndex &Vars,
                const DenseSet<NodeId> &Named, DiagnosticEngine &Diags) {
  return forEachSlot(G, Vars, [&](NodeId Update, NodeId Var, NodeId Slot) {
    Policy OfSlot = G.node(Slot).Plan, OfVar = G.node(Var).Plan;
    if (!(Named.contains(Slot) || Named.contains(Var)) ||
        isShared(OfSlot) == isShared(OfVar))
      return true;
    Diags.error(
        G.name(Slot),
        formatv("--variable: this variable is {0}, but '{1}' updates it "
                "together with '{2}', which is {3}; give both the same policy",
                policyName(OfSlot), G.name(Update), G.name(Var),
                policyName(OfVar))
            .str());
    return false;
  });
}

} // namespace

bool applyVariableRules(Graph &G, const VariableIndex &Vars,
                        ArrayRef<std::string> Texts, DenseSet<NodeId> &Named,
                        DiagnosticEngine &Diags) {
  std::vector<Rule> Rules;
  for (StringRef Part : Texts) {
    auto R = parseRule(Part, Diags);
    if (!R)
      return false;
    Rules.push_back(std::move(*R));
  }
  DenseMap<NodeId, Plan> Plans;
  for (NodeId Var : Vars.variables()) {
    const Plan *First = nullptr;
    for (Rule &R : Rules) {
      if (!Glob(R.Pattern).matches(G.name(Var)))
        continue;
      R.Matched = true;
      if (!First)
        First = &R.Gives;
    }
    if (!First)
      continue;
    Plans[Var] = *First;
    Named.insert(Var);
    if (!give(G, Var, *First, Diags))
      return false;
  }
  for (const Rule &R : Rules)
    if (!R.Matched) {
      Diags.error("", "--variable: no variable is called '" + R.Pattern + "'" +
                          similarVariable(G, Vars, R.Pattern));
      return false;
    }
  return giveSlots(G, Vars, Plans, Named, Diags) &&
         checkSlots(G, Vars, Named, Diags);
}

std::string similarVariable(const Graph &G, const VariableIndex &Vars,
                            StringRef Name) {
  std::vector<std::string> Names;
  for (NodeId Var : Vars.variables())
    Names.push_back(G.name(Var).str());
  return didYouMean(Name, Names);
}

bool applyDeclaredRules(Module &M, Policy Default, DiagnosticEngine &Diags) {
  if (!M.metaGraph())
    return true;
  Graph &G = M.graph();
  // Fields of VariableDef and values of its enums (variable.proto).
  enum : unsigned { Name = 1, Synchronization = 8, Aggregates = 9 };
  enum : uint64_t { Auto, None, OnWrite, OnRead };
  DenseMap<NodeId, Plan> Plans;
  bool Good = true;
  // TensorFlow's strategies support no scatter to a sync-on-read variable, but
  // tf.metrics.mean_per_class_accuracy declares variables with one. Their
  // declarations are ignored.
  std::optional<VariableIndex> Vars;
  auto IsScattered = [&](NodeId Var) {
    if (!Vars)
      Vars.emplace(G);
    bool Any = false;
    Vars->forEachUse(G, Var, [&](Use U) {
      Any |= Vars->update(G, U.User).Kind == UpdateKind::Scatter;
    });
    return Any;
  };
  auto Declare = [&](StringRef Bytes) {
    StringRef Variable;
    uint64_t When = Auto, How = 0;
    wire::Field F;
    for (wire::Reader R(Bytes); R.next(F);) {
      if (F.Number == Name)
        Variable = F.Bytes;
      else if (F.Number == Synchronization)
        When = F.Varint;
      else if (F.Number == Aggregates)
        How = F.Varint;
    }
    if ((When == Auto && How == 0) || !Good)
      return;
    auto E = G.findEndpoint(Variable);
    if (!E || E->isControl() || !isVariableOp(G.opName(E->Node)) ||
        G.node(E->Node).Plan != Policy::None)
      return;
    auto Fail = [&](const Twine &Why) {
      Diags.error(G.name(E->Node), Why.str());
      Good = false;
    };
    if (When == None)
      return Fail(NoSynchronization);
    if (When > OnRead)
      return Fail("Invalid variable synchronization mode: " + Twine(When));
    if (How > static_cast<uint64_t>(Aggregation::OnlyFirst))
      return Fail("Invalid variable aggregation mode: " + Twine(How));
    if (When == OnRead && IsScattered(E->Node))
      return;
    Plan P{When == OnWrite  ? Policy::Mirrored
           : When == OnRead ? Policy::SyncOnRead
                            : Default,
           static_cast<Aggregation>(How)};
    Plans[E->Node] = P;
    Good = give(G, E->Node, P, Diags);
  };
  for (const char *Key :
       {"variables", "trainable_variables", "local_variables",
        "model_variables", "moving_average_variables", "metric_variables"}) {
    auto It = M.metaGraph()->collection_def().find(Key);
    if (It == M.metaGraph()->collection_def().end())
      continue;
    for (const std::string &Bytes : It->second.bytes_list().value())
      Declare(Bytes);
  }
  if (!Good || Plans.empty())
    return Good;
  DenseSet<NodeId> Named;
  return giveSlots(G, VariableIndex(G), Plans, Named, Diags);
}

bool writesOwnValue(const Graph &G, const VariableIndex &Vars, NodeId Update) {
  return any_of(G.dataInputs(Update), [&](Endpoint E) {
    return G.isPerReplica(E.Node) && Vars.variableOf(E) == NoNode &&
           G.node(E.Node).Kind != Inserted::Identity;
  });
}

bool isInStep(const Graph &G, const VariableIndex &Vars, NodeId Update) {
  return writesOwnValue(G, Vars, Update) ||
         any_of(G.controlInputs(Update),
                [&](Endpoint E) { return G.isPerReplica(E.Node); });
}

/// Returns `scatter_nd_add` for ResourceScatterNdAdd.
static std::string methodName(StringRef Op) {
  Op.consume_front("Resource");
  std::string Name;
  for (char C : Op) {
    if (isUpper(C) && !Name.empty())
      Name += '_';
    Name += toLower(C);
  }
  return Name;
}

bool checkWrites(const Graph &G, const VariableIndex &Vars, NodeId Var,
                 DiagnosticEngine &Diags) {
  auto How = aggregationOf(G, Var);
  bool OnRead = G.node(Var).Plan == Policy::SyncOnRead, Good = true;
  if (!How)
    return true;
  auto Fail = [&](NodeId N, const Twine &Why) {
    Diags.error(G.name(N), (Why + " (variable '" + G.name(Var) + "')").str());
    Good = false;
  };
  Vars.forEachUse(G, Var, [&](Use U) {
    UpdateKind Kind = Vars.update(G, U.User).Kind;
    StringRef Op = G.opName(U.User);
    if (Kind == UpdateKind::Scatter && OnRead)
      Fail(U.User,
           "Variables with `synchronization=ON_READ` doesn't support `" +
               methodName(Op) + "`");
    else if (Kind == UpdateKind::Scatter &&
             (How == Aggregation::Sum || How == Aggregation::Mean) &&
             (Op.ends_with("Update") || Op.ends_with(op::Min) ||
              Op.ends_with(op::Max)) &&
             writesOwnValue(G, Vars, U.User))
      Fail(U.User, methodName(Op) +
                       " is only supported for mirrored variable with NONE or "
                       "`ONLY_FIRST_REPLICA` aggregation");
    else if (Kind == UpdateKind::AssignAdd && OnRead &&
             How == Aggregation::Sum && !isInStep(G, Vars, U.User))
      Fail(U.User, StringRef("SyncOnReadVariable does not support `assign_") +
                       (Op.contains(op::Sub) ? "sub" : "add") +
                       "` in cross-replica context when aggregation is set to "
                       "`tf.VariableAggregation.SUM`");
  });
  return Good;
}

} // namespace graft
