//===- lib/driver/ReportJson.cpp - the flag --report ------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
// Reports how the input was rewritten, from the program, which stays in memory.
// docs/Report.md describes the fields. SchemaVersion is raised when a field is
// renamed or changes its meaning.
//
//===----------------------------------------------------------------------===//

#include "lib/driver/ReportJson.h"

#include "lib/graph/Walk.h"
#include "lib/infer/facts/Explain.h"
#include "lib/infer/facts/ProgramFacts.h"
#include "lib/program/Program.h"
#include "lib/report/MessageHelp.h"
#include "lib/report/RemarksFile.h"
#include "lib/strategy/Resources.h"
#include "lib/support/Escape.h"
#include "lib/support/Wire.h"

#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringMap.h"

using namespace llvm;

namespace graft {
namespace {

constexpr int SchemaVersion = 1;
/// The maximum number of lines of an explanation of a type.
constexpr unsigned MostLines = 20;
/// The maximum depth of counted scopes, because a name may have many slashes.
constexpr size_t DepthLimit = 8;
/// The maximum size of a graph whose nodes the report lists.
constexpr uint64_t MostNodes = 50000;
/// The index of a node that is in no scope.
constexpr int NoScope = -1;

class ReportWriter {
public:
  ReportWriter(json::OStream &J, const Module &M, const DiagnosticEngine &Diags)
      : J(J), M(M), G(M.graph()), Diags(Diags), Devices(readMesh(G)) {
    for (NodeId N = 0; N < G.size(); ++N)
      if (G.isLive(N) && G.node(N).Kind == Inserted::No)
        ByName.try_emplace(originName(G, N), N);
  }
  void write(StringRef Input, StringRef Output, const StepPlan *Plan);

private:
  struct Counts {
    uint64_t Nodes = 0, PerReplica = 0, Inserted = 0, InStep = 0;
  };

  void text(StringRef Key, StringRef Text) { J.attribute(Key, utf8(Text)); }
  void count(StringRef Key, uint64_t Count) {
    J.attribute(Key, static_cast<int64_t>(Count));
  }
  void counts(const Counts &Its) {
    count("nodes", Its.Nodes);
    count("per-replica", Its.PerReplica);
    count("inserted", Its.Inserted);
    count("in-step", Its.InStep);
  }
  void input(StringRef File);
  void output(StringRef File);
  void variables();
  void reductions();
  void messages();
  void findStep();
  void countScopes();
  void scopes();
  void edges();
  void nodes();
  void plan(const StepPlan &Plan);
  std::optional<uint64_t> bytes(Endpoint E) const;
  NodeId find(StringRef Name) const {
    auto It = ByName.find(Name);
    return It == ByName.end() ? G.find(Name) : It->second;
  }
  static bool isReduction(const Diagnostic &D) {
    return D.Id == "reduction" && D.Level == Severity::Remark;
  }

  json::OStream &J;
  const Module &M;
  const Graph &G;
  const DiagnosticEngine &Diags;
  Mesh Devices;
  StringMap<NodeId> ByName; ///< By name in the input.
  /// Unset if there is no program: then nothing is reduced.
  std::optional<ProgramFacts> Facts;
  Counts Program;
  MapVector<StringRef, Counts> Scopes;
  std::vector<int> ScopeOf; ///< By node: the innermost scope, or NoScope.
  /// By node: true if the node, or a node that needs it, depends on a sharded
  /// tensor. This excludes initialization and saving.
  std::vector<bool> InStep;
};

void ReportWriter::input(StringRef File) {
  uint64_t Nodes = 0, Bytes = 0;
  for (StringRef Part : M.graphBytes()) {
    Bytes += Part.size();
    wire::Reader Fields(Part);
    for (wire::Field F; Fields.next(F);)
      Nodes += F.Number == 1;
  }
  text("file", File);
  count("nodes", Nodes);
  count("graph-bytes", Bytes);
}

void ReportWriter::output(StringRef File) {
  text("file", File);
  count("replicas", Devices.replicas());
  J.attributeArray("devices", [&] {
    for (StringRef Device : Devices.Devices)
      J.value(utf8(Device));
  });
  if (M.Lowered)
    count("node-bytes", M.Lowered->size());
}

void ReportWriter::variables() {
  VariableIndex Vars(G);
  StringMap<json::Array> ReducedFor;
  int64_t Index = 0;
  for (const Diagnostic &D : Diags.all()) {
    if (!isReduction(D))
      continue;
    for (const auto &[Key, Value] : D.Facts)
      if (Key == "variables" && D.Function.empty())
        for (StringRef Name : std::get<std::vector<std::string>>(Value))
          ReducedFor[Name].push_back(Index);
    ++Index;
  }
  for (const VariableRow &Row : listVariables(G, Vars, Vars.variables())) {
    NodeId N = Row.Node;
    bool HasCopies = G.isPerReplica(N);
    Policy Plan = G.node(N).Plan;
    J.object([&] {
      text("name", originName(G, N));
      text("policy", HasCopies || isShared(Plan) ? policyName(Plan) : "once");
      count("copies", HasCopies ? Devices.replicas() : 1);
      J.attributeArray("devices", [&] {
        if (!HasCopies) {
          if (!G.device(N).empty())
            J.value(utf8(G.device(N)));
          return;
        }
        for (StringRef Device : Devices.Devices)
          J.value(utf8(Device));
      });
      if (Row.Bytes != 0)
        count("bytes", Row.Bytes);
      J.attribute("reductions", std::move(ReducedFor[originName(G, N)]));
    });
  }
}

void ReportWriter::reductions() {
  for (const Diagnostic &D : Diags.all()) {
    if (!isReduction(D))
      continue;
    J.object([&] {
      text("node", D.Node);
      text("pass", D.Pass);
      text("message", D.Message);
      for (const auto &[Key, Value] : D.Facts) {
        if (const auto *Number = std::get_if<int64_t>(&Value))
          J.attribute(Key, *Number);
        else if (Key != "variables") // See variables().
          text(Key, factText(Value));
      }
      NodeId N = find(D.Node);
      if (N == NoNode || !Facts || !D.Function.empty())
        return;
      J.attributeArray("chain", [&] {
        std::string Lines = explainType(G, *Facts, N, MostLines,
                                        /*CountsRest=*/false);
        for (StringRef Line : split(StringRef(Lines).rtrim(), '\n'))
          J.value(utf8(Line));
      });
    });
  }
}

void ReportWriter::messages() {
  std::vector<MessageHelp> All = messageHelp();
  for (const Diagnostic &D : Diags.all())
    if (!isReduction(D))
      J.object([&] {
        const MessageHelp *Help = helpOf(All, D);
        remarkFields(J, D, Help ? StringRef(Help->ToDo) : "");
      });
}

void ReportWriter::findStep() {
  std::vector<NodeId> Rows;
  if (Facts)
    for (NodeId N : Facts->Order)
      for (uint32_t Port = 0; Port < Facts->Dims.numOutputs(N); ++Port)
        if (Facts->Types.type({N, Port}).isSharded()) {
          Rows.push_back(N);
          break;
        }
  InStep.assign(G.size(), Rows.empty());
  if (Rows.empty())
    return;
  walkUsers(G, std::move(Rows), Along::All, InStep);
  std::vector<NodeId> Ends;
  for (NodeId N = 0; N < G.size(); ++N)
    if (InStep[N])
      Ends.push_back(N);
  InStep.assign(G.size(), false);
  walkInputs(G, std::move(Ends), Along::All, InStep);
}

void ReportWriter::countScopes() {
  ScopeOf.assign(G.size(), NoScope);
  for (NodeId N : G.order()) {
    auto Count = [&](Counts &Its) {
      ++Its.Nodes;
      Its.PerReplica += G.isPerReplica(N);
      Its.Inserted += G.node(N).Kind != Inserted::No;
      Its.InStep += InStep[N];
    };
    Count(Program);
    StringRef Name = originName(G, N);
    size_t End = Name.find('/');
    for (size_t I = 0; I < DepthLimit && End != StringRef::npos;
         ++I, End = Name.find('/', End + 1)) {
      auto [Scope, IsNew] = Scopes.try_emplace(Name.take_front(End));
      Count(Scope->second);
      ScopeOf[N] = static_cast<int>(Scope - Scopes.begin());
    }
  }
}

void ReportWriter::scopes() {
  for (const auto &[Scope, Its] : Scopes)
    J.object([&, &Scope = Scope, &Its = Its] {
      text("scope", Scope);
      counts(Its);
    });
}

/// Returns the bytes of \p E on one replica, or nothing if they are not known.
std::optional<uint64_t> ReportWriter::bytes(Endpoint E) const {
  auto Shape = Facts->Dims.shape(E);
  uint64_t Bytes = bytesOf(G.outputType(E));
  if (!Shape || Bytes == 0)
    return std::nullopt;
  for (DimId D : *Shape) {
    int64_t Size = Facts->Dims.localNumber(D);
    if (Size == UnknownSize)
      return std::nullopt;
    Bytes *= static_cast<uint64_t>(Size);
  }
  return Bytes;
}

void ReportWriter::edges() {
  struct Edges {
    uint64_t Count = 0, Exchanges = 0, Bytes = 0;
  };
  MapVector<std::pair<int, int>, Edges> Between;
  for (NodeId N : G.order())
    for (Endpoint E : G.dataInputs(N)) {
      if (ScopeOf[E.Node] == ScopeOf[N] || !InStep[N])
        continue;
      Edges &Its = Between[{ScopeOf[E.Node], ScopeOf[N]}];
      ++Its.Count;
      bool Gives = G.isPerReplica(E.Node), Takes = G.isPerReplica(N);
      if (!Facts || (Gives == Takes && !(Gives && combinesReplicas(G, N))))
        continue;
      ++Its.Exchanges;
      Its.Bytes += bytes(E).value_or(0);
    }
  for (const auto &[Scopes, Its] : Between)
    J.object([&, &Scopes = Scopes, &Its = Its] {
      J.attribute("from", Scopes.first);
      J.attribute("to", Scopes.second);
      count("edges", Its.Count);
      if (Its.Exchanges != 0)
        count("exchanges", Its.Exchanges);
      if (Its.Bytes != 0)
        count("bytes", Its.Bytes);
    });
}

void ReportWriter::nodes() {
  explainEach(G, *Facts, [&](NodeId N, StringRef Line) {
    J.object([&] {
      J.attribute("scope", ScopeOf[N]);
      text("line", Line);
      if (G.node(N).Kind != Inserted::No)
        J.attribute("inserted", true);
    });
  });
}

void ReportWriter::plan(const StepPlan &Plan) {
  text("strategy", Plan.Chosen);
  J.attributeArray("strategies", [&] {
    for (const auto &[Strategy, Cost] : Plan.Rows)
      J.object([&, &Strategy = Strategy, &Cost = Cost] {
        text("strategy", Strategy);
        J.attribute("seconds", Cost.Seconds);
        J.attributeObject("phases", [&] {
          J.attribute("values", Cost.Spread);
          J.attribute("rows", Cost.Join);
          J.attribute("gradients", Cost.Collect);
          J.attribute("latencies", Cost.Latencies);
        });
        J.attributeArray("machines", [&] {
          for (auto [Machine, Its] : zip_equal(Plan.Machines.Nodes, Cost.Nodes))
            J.object([&, &Machine = Machine, &Its = Its] {
              text("address", Machine.Address);
              count("out", static_cast<uint64_t>(Its.Out));
              count("in", static_cast<uint64_t>(Its.In));
              count("inside", static_cast<uint64_t>(Its.Inside));
            });
        });
      });
  });
}

void ReportWriter::write(StringRef Input, StringRef Output,
                         const StepPlan *Plan) {
  // After an error the passes stopped, and the graph is incomplete.
  bool IsWhole = !Diags.hasErrors();
  if (IsWhole && Devices.Node != NoNode)
    Facts.emplace(G);
  findStep();
  countScopes();
  J.object([&] {
    J.attribute("schema", SchemaVersion);
    J.attribute("graft", GRAFT_VERSION);
    J.attributeObject("input", [&] { input(Input); });
    J.attributeObject("output", [&] { output(Output); });
    J.attributeArray("variables", [&] {
      if (IsWhole)
        variables();
    });
    J.attributeArray("reductions", [&] { reductions(); });
    J.attributeArray("messages", [&] { messages(); });
    J.attributeObject("program", [&] { counts(Program); });
    J.attributeArray("scopes", [&] { scopes(); });
    J.attributeArray("edges", [&] {
      if (IsWhole)
        edges();
    });
    if (Facts && Program.Nodes <= MostNodes)
      J.attributeArray("nodes", [&] { nodes(); });
    if (Plan != nullptr)
      J.attributeObject("plan", [&] { plan(*Plan); });
  });
}

} // namespace

std::string reportJson(const Module &M, const DiagnosticEngine &Diags,
                       StringRef Input, StringRef Output,
                       const StepPlan *Plan) {
  return jsonText(1, [&](json::OStream &J) {
    ReportWriter(J, M, Diags).write(Input, Output, Plan);
  });
}

} // namespace graft
