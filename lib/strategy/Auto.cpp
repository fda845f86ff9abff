//===- lib/strategy/Auto.cpp - the strategy auto ----------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
// A greedy search visits the variables with the most bytes first. For each it
// selects the choice with the shortest predicted step, given the earlier
// choices. If the busiest link is not affected, several choices are equally
// fast. Then the choice that moves the fewest bytes wins.
//
//===----------------------------------------------------------------------===//

#include "lib/strategy/Plan.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/FormatVariadic.h"

#include <numeric>

using namespace llvm;

namespace graft {
namespace {

class AutoBuilder {
public:
  AutoBuilder(const ResourceSpec &Spec, const BuilderOptions &O)
      : O(O), Model(Spec), Servers(Spec.hostDevices()), Load(Servers.size()),
        Now(Model.none()) {}

  void choose(const VariableRow &Row, size_t Index, VariableStrategy &To);

private:
  struct Candidate {
    StringRef Name;
    VariableStrategy S;
    Traffic After;
    Prediction Cost;
  };

  void tryOut(std::vector<Candidate> &All, const VariableRow &Row,
              StringRef Name, VariableStrategy S) const {
    S.Variable = Row.Name;
    Traffic After = Now;
    Model.add(After, Row, S);
    Prediction Cost = Model.predict(After);
    All.push_back({Name, std::move(S), std::move(After), std::move(Cost)});
  }

  Synchronizer server(size_t Server, bool Proxy = false) const {
    Synchronizer S;
    S.Kind = Synchronizer::PS;
    S.Destination = Servers[Server];
    S.Proxy = Proxy;
    return S;
  }

  unsigned numParts(const VariableRow &Row) const;

  const BuilderOptions &O;
  CostModel Model;
  std::vector<std::string> Servers;
  std::vector<double> Load; ///< Seconds that each server's network is busy.
  Traffic Now;
};

/// Returns the number of parts: one per server, or fewer if the parts would be
/// too small.
unsigned AutoBuilder::numParts(const VariableRow &Row) const {
  if (Row.Shape.empty() || Row.Shape[0] < 2)
    return 1;
  uint64_t Least = O.MinShardBytes;
  return static_cast<unsigned>(
      std::min<uint64_t>({Servers.size(), static_cast<uint64_t>(Row.Shape[0]),
                          O.MaxShards, Row.Bytes / Least}));
}

void AutoBuilder::choose(const VariableRow &Row, size_t Index,
                         VariableStrategy &To) {
  std::vector<size_t> Order(Servers.size());
  std::iota(Order.begin(), Order.end(), 0);
  sort(Order, [&](size_t A, size_t B) {
    return std::pair(Load[A], A) < std::pair(Load[B], B);
  });

  std::vector<Candidate> All;
  VariableStrategy S;
  S.Sync.Spec = O.Spec;
  S.Sync.Compressor = Row.Sparse ? Synchronizer::None : O.Compressor;
  S.Sync.Group = static_cast<int>(Index / O.GroupSize);
  tryOut(All, Row, "all-reduce", S);

  S = {};
  S.Sync = server(Order[0]);
  tryOut(All, Row, "ps", S);
  if (unsigned Parts = numParts(Row); Parts > 1) {
    S.Partitioner.assign(Row.Shape.size(), 1);
    S.Partitioner[0] = Parts;
    for (unsigned I = 0; I < Parts; ++I)
      S.Parts.push_back(server(Order[I]));
    tryOut(All, Row, "ps in parts", S);
  }
  if (Row.Sparse) {
    S = {};
    S.Sync = server(Order[0], /*Proxy=*/true);
    tryOut(All, Row, "ps with proxies", S);
  }

  auto Best = std::min_element(
      All.begin(), All.end(), [](const Candidate &A, const Candidate &B) {
        return std::pair(A.Cost.Seconds, A.Cost.NetworkBytes) <
               std::pair(B.Cost.Seconds, B.Cost.NetworkBytes);
      });
  double Before = Model.predict(Now).Seconds;
  std::string Why = "predicted to add";
  const char *Separator = " ";
  for (const Candidate &C : All) {
    Why += formatv("{0}{1:f3} ms by {2}", Separator,
                   (C.Cost.Seconds - Before) * 1e3, C.Name);
    Separator = ", ";
  }
  To = std::move(Best->S);
  To.Why = std::move(Why);
  for (const auto &[I, Server] : enumerate(Servers))
    Load[I] = Model.networkSeconds(Best->After, Model.nodeOf(Server));
  Now = std::move(Best->After);
}

} // namespace

StrategyRecord buildAuto(ArrayRef<VariableRow> Variables,
                         const ResourceSpec &Spec,
                         const BuilderOptions &Options) {
  StrategyRecord R;
  R.Id = "auto";
  R.Replicas = Spec.replicaDevices();
  R.Variables.resize(Variables.size());
  std::vector<size_t> Order(Variables.size());
  std::iota(Order.begin(), Order.end(), 0);
  sort(Order, [&](size_t A, size_t B) {
    return std::pair(Variables[B].Bytes, A) < std::pair(Variables[A].Bytes, B);
  });
  AutoBuilder Builder(Spec, Options);
  for (size_t I : Order)
    Builder.choose(Variables[I], I, R.Variables[I]);

  // The best choice for each variable is not always the best for all, so the
  // strategies of the builders are compared, too.
  CostModel Model(Spec);
  double Least = Model.predict(Variables, R).Seconds;
  for (const std::string &Name : builderNames()) {
    if (Name == R.Id)
      continue;
    StrategyRecord Other = buildStrategy(Name, Variables, Spec, Options);
    double Seconds = Model.predict(Variables, Other).Seconds;
    if (Seconds >= Least)
      continue;
    Least = Seconds;
    R.Variables = std::move(Other.Variables);
    for (VariableStrategy &V : R.Variables)
      V.Why = formatv("strategy {0} is predicted to be faster for all "
                      "variables together; {1}",
                      Name, V.Why);
  }
  return R;
}

} // namespace graft
