//===- lib/lower/tpu/TpuFunctions.cpp - bodies of a computation -*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
// TensorFlow turns an If or While with `_lower_using_switch_merge` into Switch
// and Merge before its TPU passes see it. So the attribute is removed from ops
// in the graph and in bodies. A body is copied first if an op outside also
// calls it.
//===----------------------------------------------------------------------===//

#include "lib/graph/PerOp.h"
#include "lib/io/inline/Functions.h"
#include "lib/lower/tpu/TpuForm.h"
#include "lib/ops/Ops.h"
#include "lib/support/Wire.h"

#include "lib/io/Serialize.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringSwitch.h"

#include <set>

using namespace llvm;

namespace graft {
namespace {

constexpr unsigned LibraryField = 2; ///< The field of the functions in a
                                     ///< GraphDef.
constexpr StringLiteral LowerAttr = "_lower_using_switch_merge";
constexpr StringLiteral ConstsAttr = "_xla_propagate_compile_time_consts";

bool isFunctionalControlFlow(StringRef Op) {
  return StringSwitch<bool>(Op)
      .Cases(op::If, op::StatelessIf, op::Case, op::StatelessCase, true)
      .Cases(op::While, op::StatelessWhile, true)
      .Default(false);
}

/// Returns true if ops of this kind name functions or may be function calls.
bool mayName(StringRef, const OpDef *Def) {
  return !Def || any_of(Def->attrs(), [](const AttrDef &A) {
    return StringRef(A.Type) == "func" || StringRef(A.Type) == "list(func)";
  });
}

class Bodies {
public:
  Bodies(Graph &G, ArrayRef<NodeId> Members, StringRef Cluster,
         DiagnosticEngine &Diags)
      : G(G), Members(Members), Cluster(Cluster), Diags(Diags),
        Names(G, mayName) {}

  bool run();

private:
  using Called = std::map<std::string, NodeId>; ///< By name: a node that
                                                ///< runs the function.

  void readLibrary();
  template <typename Fn> void forEachCall(tensorflow::AttrValue &Value, Fn F);
  void reach(tensorflow::NodeDef &Node, NodeId From, Called &Result);
  Called reachedFrom(ArrayRef<NodeId> Nodes);
  bool renameCalls(tensorflow::AttrValue &Value);
  bool edit(tensorflow::FunctionDef &Def);
  void editNode(NodeId N);
  tensorflow::NodeDef nodeDef(NodeId N) const;

  Graph &G;
  ArrayRef<NodeId> Members;
  StringRef Cluster;
  DiagnosticEngine &Diags;
  PerOp Names;
  tensorflow::FunctionDefLibrary Library;
  std::map<std::string, int> Index;
  std::map<std::string, std::string>
      NewName; ///< By the name of a copied function.
};

void Bodies::readLibrary() {
  Library.ParseFromString(G.otherField(LibraryField));
  for (int I = 0; I < Library.function_size(); ++I)
    Index[Library.function(I).signature().name()] = I;
}

tensorflow::NodeDef Bodies::nodeDef(NodeId N) const {
  tensorflow::NodeDef Node;
  Node.set_op(G.opName(N).str());
  for (const AttrEntry &A : G.attrs(N))
    if (tensorflow::AttrValue Value; Value.ParseFromString(A.Value.str()))
      (*Node.mutable_attr())[A.Key.str()] = Value;
  return Node;
}

/// Calls \p F with each name of a function in \p Value.
template <typename Fn>
void Bodies::forEachCall(tensorflow::AttrValue &Value, Fn F) {
  if (Value.has_func())
    F(*Value.mutable_func()->mutable_name());
  if (Value.has_list())
    for (tensorflow::NameAttrList &Call : *Value.mutable_list()->mutable_func())
      F(*Call.mutable_name());
}

/// Adds the functions that \p Node runs, directly or through others.
void Bodies::reach(tensorflow::NodeDef &Node, NodeId From, Called &Result) {
  std::vector<std::string> Work{Node.op()};
  auto Add = [&](const std::string &Name) { Work.push_back(Name); };
  for (auto &[Key, Value] : *Node.mutable_attr())
    forEachCall(Value, Add);
  while (!Work.empty()) {
    auto It = Index.find(Work.back());
    Work.pop_back();
    if (It == Index.end() || !Result.try_emplace(It->first, From).second)
      continue;
    for (auto &Inner :
         *Library.mutable_function(It->second)->mutable_node_def()) {
      Work.push_back(Inner.op());
      for (auto &[Key, Value] : *Inner.mutable_attr())
        forEachCall(Value, Add);
    }
  }
}

Bodies::Called Bodies::reachedFrom(ArrayRef<NodeId> Nodes) {
  Called Result;
  for (NodeId N : Nodes) {
    tensorflow::NodeDef Node = nodeDef(N);
    reach(Node, N, Result);
  }
  return Result;
}

bool Bodies::renameCalls(tensorflow::AttrValue &Value) {
  bool Changed = false;
  forEachCall(Value, [&](std::string &Name) {
    if (auto It = NewName.find(Name); It != NewName.end()) {
      Name = It->second;
      Changed = true;
    }
  });
  return Changed;
}

/// Prepares the body \p Def; returns true if it changed.
bool Bodies::edit(tensorflow::FunctionDef &Def) {
  bool Changed = false;
  for (tensorflow::NodeDef &Node : *Def.mutable_node_def()) {
    if (auto It = NewName.find(Node.op()); It != NewName.end()) {
      Node.set_op(It->second);
      Changed = true;
    }
    for (auto &[Key, Value] : *Node.mutable_attr())
      Changed |= renameCalls(Value);
    if (!isFunctionalControlFlow(Node.op()))
      continue;
    Node.mutable_attr()->erase(LowerAttr.str());
    (*Node.mutable_attr())[ConstsAttr.str()].set_b(true);
    Changed = true;
  }
  return Changed;
}

void Bodies::editNode(NodeId N) {
  if (auto It = NewName.find(G.opName(N).str()); It != NewName.end())
    G.setOp(N, It->second);
  for (const AttrEntry &A : G.attrs(N))
    if (tensorflow::AttrValue Value;
        Value.ParseFromString(A.Value.str()) && renameCalls(Value))
      G.setAttr(N, A.Key, serialize(Value));
  if (!isFunctionalControlFlow(G.opName(N)))
    return;
  G.removeAttr(N, LowerAttr);
  G.setBoolAttr(N, ConstsAttr, true);
}

bool Bodies::run() {
  SmallVector<NodeId, 8> Inside, Outside;
  for (NodeId M : Members)
    if (Names[G.node(M)])
      Inside.push_back(M);
  if (Inside.empty())
    return true;
  readLibrary();
  std::set<NodeId> Mine(Inside.begin(), Inside.end());
  for (NodeId N = 0; N < G.size(); ++N)
    if (G.isLive(N) && Names[G.node(N)] && !Mine.count(N))
      Outside.push_back(N);
  Called ByMembers = reachedFrom(Inside), ByOthers = reachedFrom(Outside);

  bool Good = true;
  for (const auto &[Name, From] : ByMembers) {
    for (const auto &Node : Library.function(Index[Name]).node_def())
      if (Node.op() == op::Placeholder) {
        Diags.error(G.name(From), "calls function '" + Name +
                                      "', whose placeholder '" + Node.name() +
                                      "' nothing can feed on a TPU: make it an "
                                      "argument of the function");
        Good = false;
      }
    if (!ByOthers.count(Name))
      continue;
    std::string New = Name + "_" + Cluster.str();
    for (unsigned I = 1; Index.count(New); ++I)
      New = Name + "_" + Cluster.str() + "_" + std::to_string(I);
    NewName[Name] = New;
  }
  if (!Good)
    return false;
  bool Changed = !NewName.empty();
  for (const auto &[Name, From] : ByMembers) {
    tensorflow::FunctionDef *Def = Library.mutable_function(Index[Name]);
    if (auto It = NewName.find(Name); It != NewName.end()) {
      tensorflow::FunctionDef Copy = *Def;
      Copy.mutable_signature()->set_name(It->second);
      Def = Library.add_function();
      *Def = std::move(Copy);
    }
    Changed |= edit(*Def);
  }
  for (NodeId M : Inside)
    editNode(M);
  if (Changed) {
    std::string Field;
    wire::appendBytes(Field, LibraryField, serialize(Library));
    G.replaceOtherFields(LibraryField, Field);
  }
  return true;
}

} // namespace

bool keepTpuControlFlow(Graph &G, ArrayRef<NodeId> Members, StringRef Cluster,
                        DiagnosticEngine &Diags) {
  return Bodies(G, Members, Cluster, Diags).run();
}

} // namespace graft
