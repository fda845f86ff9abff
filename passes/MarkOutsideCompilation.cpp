//===- passes/MarkOutsideCompilation.cpp ------------------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
// Moves ops of a TPU computation to the host, as one call of
// `tpu.outside_compilation` does. The ops get the next id of their computation:
//
//     e = Exp(n) _tpu_replicate=cluster @/device:TPU_REPLICATED_CORE:1
//   →
//     e = Exp(n) _tpu_replicate=cluster _xla_outside_compilation=0
//     TPUReplicateMetadata host_compute_core=["0:1"]
//
// The gradients of the ops are moved too, with a different id. Nodes of a
// function body get ids of the computation that calls the function. If the pass
// runs before tpu-replicate, the graph has no computation yet. Then all nodes
// of the graph share one count of ids. tpu-replicate keeps the ids of the nodes
// that it puts into a computation.
//
// Relies on: lib/lower/tpu/HostClusters.h; a graph that TensorFlow marked is
// accepted too.
//
//===----------------------------------------------------------------------===//

#include "lib/graph/PerOp.h"
#include "lib/io/Module.h"
#include "lib/io/inline/Functions.h"
#include "lib/lower/tpu/HostClusters.h"
#include "lib/pass/Pass.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/GlobPattern.h"

#include <set>

using namespace llvm;

namespace graft {
namespace {

enum class GradientIds : uint8_t { Root, Chained };
constexpr StringLiteral wordsOf(GradientIds) { return "root|chained"; }

struct MarkOutsideCompilationOptions : PassOptions {
  Option<Strings, ','> Ops{
      *this, "ops",
      "Ops by their names in the input: GLOB,...; FUNCTION_GLOB:NODE_GLOB for "
      "nodes of function bodies"};
  Option<Strings, ','> Types{
      *this, "types",
      "Ops by their types: OP,..., also in functions that the computation "
      "calls; a type that the graph does not have is skipped"};
  Option<GradientIds> Ids{
      *this, "gradient-ids",
      "Ids of gradients of gradients: `root` (`0.u2`) or `chained` "
      "(`0.u1.u2`)"};
};

class MarkOutsideCompilation final
    : public PassBase<MarkOutsideCompilation, MarkOutsideCompilationOptions> {
public:
  static constexpr PassInfo Info = {
      "mark-outside-compilation", "Send ops of a TPU computation to the host",
      "Marks ops with the next id of their computation in\n"
      "`_xla_outside_compilation`, and the gradients of these ops with ids of\n"
      "their own. Each run makes one host cluster."};

  PassResult run(Module &M, DiagnosticEngine &Diags) override;

private:
  struct Pattern {
    StringRef Text;
    std::optional<GlobPattern> Function; ///< Set for nodes of bodies.
    std::optional<GlobPattern> Node;     ///< Unset: Text is an op.
    bool Met = false;
    bool matches(StringRef Name, StringRef Op) const {
      return Node ? !Function && Node->match(Name) : Text == Op;
    }
    bool matches(StringRef In, const tensorflow::NodeDef &N) const {
      return Node ? Function && Function->match(In) && Node->match(N.name())
                  : Text == N.op();
    }
  };

  bool readOptions();
  bool readPatterns(ArrayRef<std::string> Texts, bool Types);
  void findBodies(const Graph &G);
  bool select(const Graph &G);
  void sayUnmet(const Pattern &P);
  void selectInBodies(bool Within);
  bool take(Pattern &P, const Twine &Name, bool IsMarked);
  bool mark(Graph &G);

  DiagnosticEngine *D = nullptr;
  std::vector<Pattern> Patterns;
  std::optional<HostClusters> Hosts;
  std::optional<FunctionLibrary> Library;
  /// Functions that are called, and the computations that call them.
  std::map<std::string, std::set<uint32_t>> Bodies;
  std::vector<NodeId> Nodes;
  std::vector<std::pair<std::string, int>> NodesOfBodies;
};

bool isMarked(const tensorflow::NodeDef &Node) {
  return Node.attr().count(HostClusterAttr.str()) != 0;
}

bool MarkOutsideCompilation::readPatterns(ArrayRef<std::string> Texts,
                                          bool Types) {
  for (StringRef Text : Texts) {
    Pattern P;
    P.Text = Text.trim();
    auto Compile = [&](StringRef Glob, std::optional<GlobPattern> &Into) {
      Expected<GlobPattern> Made = GlobPattern::create(Glob);
      if (!Made) {
        D->error("", "ops: '" + P.Text.str() + "' is not a valid pattern: " +
                         toString(Made.takeError()));
        return false;
      }
      Into = std::move(*Made);
      return true;
    };
    StringRef Node = P.Text;
    if (size_t Colon = Node.rfind(':'); !Types && Colon != StringRef::npos) {
      if (!Compile(Node.take_front(Colon), P.Function))
        return false;
      Node = Node.drop_front(Colon + 1);
    }
    if (!Types && !Compile(Node, P.Node))
      return false;
    Patterns.push_back(std::move(P));
  }
  return true;
}

bool MarkOutsideCompilation::readOptions() {
  if (!readPatterns(*Options.Ops, false) || !readPatterns(*Options.Types, true))
    return false;
  if (Patterns.empty())
    D->error("", "say which ops go to the host: ops=GLOB,... or types=OP,...");
  return !Patterns.empty();
}

/// Fills in Bodies, and counts the ids in them.
void MarkOutsideCompilation::findBodies(const Graph &G) {
  PerOp MayCall(
      G, [](StringRef Op, const OpDef *) { return mayRunFunctions(Op); });
  if (!MayCall.any())
    return;
  Library.emplace(G);
  std::vector<std::pair<uint32_t, std::string>> Work;
  for (NodeId N = 0; N < G.size(); ++N)
    if (G.isLive(N) && MayCall[G.node(N)])
      for (std::string &Name : Library->calledBy(G, N))
        Work.push_back({Hosts->of(N), std::move(Name)});
  while (!Work.empty()) {
    auto [C, Name] = std::move(Work.back());
    Work.pop_back();
    if (!Bodies[Name].insert(C).second)
      continue;
    for (const tensorflow::NodeDef &Node : Library->find(Name)->node_def()) {
      if (isMarked(Node))
        Hosts->count(C, Node.attr().at(HostClusterAttr.str()).s());
      for (std::string &Inner : Library->calledBy(Node))
        Work.push_back({C, std::move(Inner)});
    }
  }
}

/// Returns true if an op that \p P matches is to be marked.
bool MarkOutsideCompilation::take(Pattern &P, const Twine &Name,
                                  bool IsMarked) {
  P.Met = true;
  // A type matches all its ops, even ops that are on the host already.
  if (IsMarked && P.Node)
    D->error(Name.str(), "this op is marked already: it can be in one host "
                         "cluster only");
  return !IsMarked;
}

/// Chooses nodes of function bodies: bodies that computations call if \p
/// Within, else all other bodies.
void MarkOutsideCompilation::selectInBodies(bool Within) {
  for (const auto &[Name, Callers] : Bodies) {
    if ((*Callers.rbegin() != 0) != Within)
      continue;
    const tensorflow::FunctionDef &Def = *Library->find(Name);
    for (int I = 0; I < Def.node_def_size(); ++I) {
      const tensorflow::NodeDef &Node = Def.node_def(I);
      auto P = find_if(Patterns, [&](Pattern &P) {
        return P.matches(Name, Node) &&
               take(P, Name + ":" + Node.name(), isMarked(Node));
      });
      if (P != Patterns.end())
        NodesOfBodies.push_back({Name, I});
    }
  }
}

/// Reports that no node matches \p P. A list of op types may serve several
/// models, so a known op may be missing in this model.
void MarkOutsideCompilation::sayUnmet(const Pattern &P) {
  std::string Text = P.Text.str();
  if (P.Node) {
    D->error("", "ops: no op is called '" + Text + "'");
  } else if (findOp(P.Text)) {
    if (D->wantsRemarks())
      D->remark("types", "",
                "types: the graph has no op of type '" + Text + "'");
  } else {
    std::vector<std::string> Known;
    for (const OpDef &Def : allOps())
      Known.push_back(Def.Name);
    D->error("", "types: TensorFlow has no op '" + Text + "'" +
                     didYouMean(Text, Known));
  }
}

/// Chooses ops of computations. If no pattern matches such an op, chooses ops
/// outside of computations.
bool MarkOutsideCompilation::select(const Graph &G) {
  auto Met = [](const Pattern &P) { return P.Met; };
  for (bool Within : {true, false}) {
    for (NodeId N = 0; N < G.size(); ++N) {
      if (!G.isLive(N) || (Hosts->of(N) != 0) != Within || Hosts->isScaffold(N))
        continue;
      StringRef Name = Hosts->inputName(N);
      auto P = find_if(Patterns, [&](Pattern &P) {
        return P.matches(Name, G.opName(N)) &&
               take(P, G.name(N), G.hasAttr(N, HostClusterAttr));
      });
      if (P != Patterns.end())
        Nodes.push_back(N);
    }
    selectInBodies(Within);
    if (any_of(Patterns, Met))
      break;
  }
  for (const Pattern &P : Patterns)
    if (!P.Met)
      sayUnmet(P);
  return D->errorCount() == 0;
}

/// Gives the chosen nodes the next id of their computation.
bool MarkOutsideCompilation::mark(Graph &G) {
  for (NodeId N : Nodes)
    Hosts->mark(N, utostr(Hosts->nextId(Hosts->of(N))));
  std::map<std::string, tensorflow::FunctionDef> Edited;
  for (const auto &[Function, I] : NodesOfBodies) {
    const std::set<uint32_t> &Callers = Bodies[Function];
    if (Callers.size() - Callers.count(0) > 1)
      D->error(
          "",
          "function '" + Function +
              "' is called by two computations, and each numbers its own host "
              "clusters; give each computation its own copy of the function");
    auto It = Edited.try_emplace(Function, *Library->find(Function)).first;
    (*It->second.mutable_node_def(I)->mutable_attr())[HostClusterAttr.str()]
        .set_s(utostr(Hosts->nextId(*Callers.rbegin())));
  }
  replaceFunctions(G, Edited);
  Hosts->markGradients(Options.Ids == GradientIds::Chained);
  Statistics["ops marked"] += Nodes.size() + NodesOfBodies.size();
  bool Good = D->errorCount() == 0 && checkHostCycles(G, *D);
  for (const auto &[Name, Def] : Edited)
    Good &= checkHostCycles(Def, *D);
  return Good;
}

PassResult MarkOutsideCompilation::run(Module &M, DiagnosticEngine &Diags) {
  Graph &G = M.graph();
  D = &Diags;
  if (!readOptions())
    return PassResult::Failure;
  Hosts.emplace(G);
  findBodies(G);
  if (!select(G) || !mark(G) || !Hosts->moveCores(Diags))
    return PassResult::Failure;
  warnUnsupportedOps(G, Diags);
  return Nodes.empty() && NodesOfBodies.empty() ? PassResult::Unchanged
                                                : PassResult::Changed;
}

} // namespace

GRAFT_DEFINE_PASS(MarkOutsideCompilation)

} // namespace graft
