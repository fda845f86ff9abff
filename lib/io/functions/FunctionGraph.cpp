//===- lib/io/functions/FunctionGraph.cpp - a body as a graph ---*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "lib/io/functions/FunctionGraph.h"
#include "lib/graph/Walk.h"

#include "lib/io/Serialize.h"
#include "lib/ops/OpTable.h"
#include "lib/ops/Ops.h"
#include "lib/support/Failure.h"
#include "lib/support/Wire.h"

#include "tensorflow/core/framework/graph.pb.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"

using namespace llvm;
using namespace tensorflow; // Messages only.

namespace graft {
namespace {

/// The parsed text of an input: `node:output:0`, `argument` or `^node` in a
/// body; `node:0`, `node` or `^node` in a graph.
struct InputText {
  explicit InputText(StringRef Text) {
    IsControl = Text.consume_front("^");
    Text.split(Parts, ':');
  }
  StringRef node() const { return Parts[0]; }

  bool IsControl;
  SmallVector<StringRef, 3> Parts;
};

/// Finds names that are not used yet.
class FreeNames {
public:
  void take(StringRef Name) { Taken.insert(Name); }
  /// Returns \p Wanted or the first free name with a suffix, and reserves it.
  std::string pick(StringRef Wanted) {
    std::string Name = Wanted.str();
    for (unsigned I = 1; !Taken.insert(Name).second; ++I)
      Name = (Wanted + "_" + Twine(I)).str();
    return Name;
  }

private:
  StringSet<> Taken;
};

/// Returns \p Name as a legal name of a node.
std::string asNodeName(StringRef Name) {
  std::string Result;
  for (char C : Name)
    Result += isAlnum(C) || StringRef("_.-/\\>").contains(C) ? C : '_';
  if (Result.empty() || !(isAlnum(Result[0]) || Result[0] == '.'))
    Result.insert(0, ".");
  return Result;
}

class GraphMaker {
public:
  GraphMaker(const FunctionDef &Def, const FunctionLibrary &Library,
             const Captures &Captured)
      : Def(Def), Library(Library), Captured(Captured) {}

  Error run();

  GraphDef G;
  FunctionGraph Made;

private:
  Error failure(const Twine &Message) const {
    return graft::failure("function '" + Twine(Def.signature().name()) + "' " +
                          Message);
  }
  Error addArgument(unsigned I);
  Error addNode(const NodeDef &Node);
  Error addResults();
  Expected<std::string> inputText(StringRef Text) const;
  void addLibrary();

  const FunctionDef &Def;
  const FunctionLibrary &Library;
  const Captures &Captured;
  FreeNames Free;
  StringMap<std::string> ArgumentOf; ///< By argument: its node.
  StringMap<const NodeDef *> NodeOf; ///< The nodes of the body.
};

Error GraphMaker::addArgument(unsigned I) {
  const OpDef_ArgDef &Arg = Def.signature().input_arg(static_cast<int>(I));
  if (!Arg.number_attr().empty() || !Arg.type_list_attr().empty() ||
      !Arg.type_attr().empty())
    return failure("has argument '" + Twine(Arg.name()) +
                   "', whose type or length depends on the call");
  CapturedVariable Var;
  if (I < Captured.Variables.size())
    Var = Captured.Variables[I];
  if (Arg.type() == tensorflow::DT_RESOURCE && !Var.isKnown() &&
      Arg.handle_data_size() == 1) {
    Var.Type = Arg.handle_data(0).dtype();
    Var.Shape = Arg.handle_data(0).shape();
  }
  NodeDef &Node = *G.add_node();
  auto &Attrs = *Node.mutable_attr();
  bool IsVariable = Arg.type() == tensorflow::DT_RESOURCE && Var.isKnown();
  if (IsVariable) {
    Node.set_op(op::VarHandleOp.str());
    Node.set_name(Free.pick(
        asNodeName(Var.Name.empty() ? StringRef(Arg.name()) : Var.Name)));
    Attrs["dtype"].set_type(Var.Type);
    *Attrs["shape"].mutable_shape() = Var.Shape;
    Attrs["shared_name"].set_s(Node.name());
  } else {
    Node.set_op(op::Placeholder.str());
    Node.set_name(Free.pick(asNodeName(Arg.name())));
    Attrs["dtype"].set_type(Arg.type());
    TensorShapeProto &Shape = *Attrs["shape"].mutable_shape();
    // A handle is a scalar.
    Shape.set_unknown_rank(Arg.type() != tensorflow::DT_RESOURCE);
    if (auto It = Def.arg_attr().find(I); It != Def.arg_attr().end())
      if (auto Told = It->second.attr().find("_output_shapes");
          Told != It->second.attr().end() &&
          Told->second.list().shape_size() == 1)
        Shape = Told->second.list().shape(0);
    if (I >= Captured.First && Arg.type() != tensorflow::DT_RESOURCE)
      Made.Constants.push_back(Node.name());
  }
  ArgumentOf[Arg.name()] = Node.name();
  Made.Arguments.push_back(Node.name());
  return Error::success();
}

Expected<std::string> GraphMaker::inputText(StringRef Text) const {
  InputText In(Text);
  std::string Mark = In.IsControl ? "^" : "";
  if (auto It = ArgumentOf.find(In.node()); It != ArgumentOf.end())
    return Mark + It->second;
  auto It = NodeOf.find(In.node());
  if (It == NodeOf.end())
    return failure("has no node or argument '" + In.node() + "'");
  if (In.IsControl)
    return Text.str();
  const NodeDef &Node = *It->second;
  unsigned Index = 0;
  std::optional<unsigned> Port;
  if (In.Parts.size() == 2 ||
      (In.Parts.size() == 3 && !In.Parts[2].getAsInteger(10, Index)))
    Port = Library.portOf(Node.op(), FunctionLibrary::attrsOf(Node, {}),
                          In.Parts[1], Index);
  if (!Port)
    return failure("has no output '" + Text + "'");
  return *Port == 0 ? Node.name() : Node.name() + ":" + utostr(*Port);
}

Error GraphMaker::addNode(const NodeDef &Node) {
  NodeDef &New = *G.add_node();
  New = Node;
  for (std::string &Input : *New.mutable_input())
    if (Error E = inputText(Input).moveInto(Input))
      return E;
  // The body may colocate a node with an argument, whose node has another name.
  if (auto It = New.mutable_attr()->find("_class");
      It != New.mutable_attr()->end()) {
    auto *List = It->second.mutable_list()->mutable_s();
    for (int I = List->size(); I-- > 0;) {
      StringRef With((*List)[I]);
      if (!With.consume_front("loc:@"))
        continue;
      if (auto Arg = ArgumentOf.find(With); Arg != ArgumentOf.end())
        (*List)[I] = "loc:@" + Arg->second;
      else if (!NodeOf.contains(With))
        List->DeleteSubrange(I, 1);
    }
    if (List->empty())
      New.mutable_attr()->erase("_class");
  }
  return Error::success();
}

Error GraphMaker::addResults() {
  for (const OpDef_ArgDef &Arg : Def.signature().output_arg()) {
    auto It = Def.ret().find(Arg.name());
    if (It == Def.ret().end())
      return failure("has a result without an entry in 'ret'");
    std::string Input;
    if (Error E = inputText(It->second).moveInto(Input))
      return E;
    NodeDef &Node = *G.add_node();
    Node.set_name(Free.pick("result_" + utostr(Made.Results.size())));
    Node.set_op(op::Identity.str());
    Node.add_input(Input);
    (*Node.mutable_attr())["T"].set_type(Arg.type());
    Made.Results.push_back(Node.name());
  }
  std::vector<std::string> Effects;
  for (const std::string &Name : Def.signature().control_output())
    if (auto It = Def.control_ret().find(Name); It != Def.control_ret().end())
      Effects.push_back(It->second);
  // Old functions do not list the nodes that must run. All nodes with effects
  // must run then.
  if (Effects.empty())
    for (const NodeDef &Node : Def.node_def())
      if (const graft::OpDef *Op = findOp(Node.op()); !Op || Op->isStateful())
        Effects.push_back(Node.name());
  NodeDef &Node = *G.add_node();
  Node.set_name(Made.Effects = Free.pick("effects"));
  Node.set_op(op::NoOp.str());
  for (const std::string &Effect : Effects) {
    std::string Input;
    if (Error E = inputText("^" + Effect).moveInto(Input))
      return E;
    Node.add_input(Input);
  }
  return Error::success();
}

/// Adds the functions that the body names, directly or through other functions.
void GraphMaker::addLibrary() {
  StringSet<> Seen;
  std::vector<const FunctionDef *> Work{&Def};
  for (size_t I = 0; I < Work.size(); ++I) {
    auto See = [&](const std::string &Name) {
      const FunctionDef *F = Library.find(Name);
      if (F && Seen.insert(Name).second)
        Work.push_back(F);
    };
    for (const NodeDef &Node : Work[I]->node_def()) {
      See(Node.op());
      std::vector<std::string> Names;
      for (const auto &[Key, Value] : Node.attr()) {
        if (Value.has_func())
          Names.push_back(Value.func().name());
        for (const NameAttrList &F : Value.list().func())
          Names.push_back(F.name());
      }
      sort(Names); // The attributes have no order.
      for (const std::string &Name : Names)
        See(Name);
    }
  }
  for (const FunctionDef *F : drop_begin(Work))
    *G.mutable_library()->add_function() = *F;
}

Error GraphMaker::run() {
  for (const NodeDef &Node : Def.node_def()) {
    Free.take(Node.name());
    NodeOf[Node.name()] = &Node;
  }
  for (unsigned I = 0; I < unsigned(Def.signature().input_arg_size()); ++I)
    if (Error E = addArgument(I))
      return E;
  for (const NodeDef &Node : Def.node_def())
    if (Error E = addNode(Node))
      return E;
  if (Error E = addResults())
    return E;
  addLibrary();
  return Error::success();
}

//===----------------------------------------------------------------------===//
// Back
//===----------------------------------------------------------------------===//

class BodyMaker {
public:
  BodyMaker(const FunctionGraph &Like, const FunctionLibrary &Library)
      : Like(Like), Library(Library) {}

  Error run(const FunctionDef &Def, const GraphDef &G);

  FunctionDef Made;

private:
  std::vector<bool> findNeeded() const;
  Expected<std::string> inputText(StringRef Text) const;
  std::string outputOf(const NodeDef &Node, unsigned Port) const;
  Error addNode(const NodeDef &Node);

  const FunctionGraph &Like;
  const FunctionLibrary &Library;
  StringMap<std::string> ArgumentOf; ///< The argument, by its node.
  StringSet<> Handles;               ///< The nodes of variables, tables, ...
  StringMap<unsigned> IndexOf;
  std::vector<const NodeDef *> Nodes;
};

/// Returns a flag for each node: true if a result, an effect or a named tensor
/// needs the node.
std::vector<bool> BodyMaker::findNeeded() const {
  auto Add = [&](StringRef Text, std::vector<unsigned> &To) {
    auto It = IndexOf.find(InputText(Text).node());
    if (It != IndexOf.end())
      To.push_back(It->second);
  };
  std::vector<unsigned> Ends;
  for (StringRef Result : Like.Results)
    Add(Result, Ends);
  Add(Like.Effects, Ends);
  for (StringRef Tensor : Like.Named)
    Add(Tensor, Ends);
  std::vector<bool> Needed(Nodes.size());
  walkFrom(Ends, Needed, [&](unsigned At, std::vector<unsigned> &Next) {
    for (const std::string &Input : Nodes[At]->input())
      Add(Input, Next);
  });
  return Needed;
}

/// Returns the name of output \p Port of \p Node in a body, `output:0`, or ""
/// if there is no such output.
std::string BodyMaker::outputOf(const NodeDef &Node, unsigned Port) const {
  AttrMap Attrs = FunctionLibrary::attrsOf(Node, {});
  auto Name = [&](StringRef Output, unsigned Index) {
    return (Output + ":" + Twine(Index)).str();
  };
  if (const graft::OpDef *Op = findOp(Node.op())) {
    for (const ArgDef &Output : Op->outputs()) {
      // Finds the first port of this output and the number of its tensors.
      auto First = Library.portOf(Node.op(), Attrs, Output.Name, 0);
      if (First && *First <= Port &&
          Library.portOf(Node.op(), Attrs, Output.Name, Port - *First))
        return Name(Output.Name, Port - *First);
    }
  } else if (const FunctionDef *F = Library.find(Node.op())) {
    if (Port < unsigned(F->signature().output_arg_size()))
      return Name(F->signature().output_arg(static_cast<int>(Port)).name(), 0);
  }
  return "";
}

Expected<std::string> BodyMaker::inputText(StringRef Text) const {
  InputText In(Text);
  if (auto It = ArgumentOf.find(In.node()); It != ArgumentOf.end())
    return (In.IsControl ? "^" : "") + It->second;
  if (In.IsControl)
    return Text.str();
  unsigned Port = 0;
  auto It = IndexOf.find(In.node());
  if (It == IndexOf.end() ||
      (In.Parts.size() == 2 && In.Parts[1].getAsInteger(10, Port)))
    return failure("the graph has no tensor '" + Text + "'");
  std::string Output = outputOf(*Nodes[It->second], Port);
  if (Output.empty())
    return failure("the graph has no output '" + Text + "'");
  return (In.node() + ":" + Output).str();
}

Error BodyMaker::addNode(const NodeDef &Node) {
  NodeDef &New = *Made.add_node_def();
  New = Node;
  bool UsesHandle = false;
  for (std::string &Input : *New.mutable_input()) {
    UsesHandle |= Handles.contains(InputText(Input).node());
    if (Error E = inputText(Input).moveInto(Input))
      return E;
  }
  // A node runs on the device of the variable or table whose handle it takes.
  if (UsesHandle)
    New.clear_device();
  if (auto It = New.mutable_attr()->find("_class");
      It != New.mutable_attr()->end()) {
    auto *List = It->second.mutable_list()->mutable_s();
    for (int I = List->size(); I-- > 0;)
      if (StringRef With((*List)[I]);
          With.consume_front("loc:@") && ArgumentOf.contains(With))
        List->DeleteSubrange(I, 1);
    if (List->empty())
      New.mutable_attr()->erase("_class");
  }
  return Error::success();
}

Error BodyMaker::run(const FunctionDef &Def, const GraphDef &G) {
  Made = Def;
  Made.clear_node_def();
  Made.clear_ret();
  Made.clear_control_ret();
  Made.mutable_signature()->clear_control_output();
  for (auto [Arg, Node] : zip(Def.signature().input_arg(), Like.Arguments)) {
    ArgumentOf[Node] = Arg.name();
    if (Arg.type() == tensorflow::DT_RESOURCE)
      Handles.insert(Node);
  }
  for (const NodeDef &Node : G.node()) {
    IndexOf[Node.name()] = static_cast<unsigned>(Nodes.size());
    Nodes.push_back(&Node);
  }
  std::vector<bool> Needed = findNeeded();
  for (auto [Node, IsNeeded] : zip(Nodes, Needed))
    if (IsNeeded && !ArgumentOf.contains(Node->name()))
      if (Error E = addNode(*Node))
        return E;
  for (auto [Arg, Result] : zip(Def.signature().output_arg(), Like.Results))
    if (Error E = inputText(Result).moveInto((*Made.mutable_ret())[Arg.name()]))
      return E;
  (*Made.mutable_control_ret())[Like.Effects] = Like.Effects;
  Made.mutable_signature()->add_control_output(Like.Effects);
  return Error::success();
}

} // namespace

Expected<FunctionGraph> graphOf(const FunctionDef &Def,
                                const FunctionLibrary &Library,
                                const Captures &Captured, StringRef Versions) {
  GraphMaker Maker(Def, Library, Captured);
  if (Error E = Maker.run())
    return E;
  if (!Maker.G.mutable_versions()->ParseFromString(Versions.str()))
    return failure("the versions of the graph cannot be read");
  Maker.Made.Bytes = serialize(Maker.G);
  return std::move(Maker.Made);
}

Expected<FunctionDef> functionOf(const FunctionDef &Def,
                                 const FunctionGraph &Like,
                                 const FunctionLibrary &Library,
                                 StringRef Bytes) {
  GraphDef G;
  if (!G.ParseFromString(Bytes.str()))
    return failure("the graph of a function cannot be read");
  BodyMaker Maker(Like, Library);
  if (Error E = Maker.run(Def, G))
    return E;
  return std::move(Maker.Made);
}

} // namespace graft
