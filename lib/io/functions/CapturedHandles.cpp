//===- lib/io/functions/CapturedHandles.cpp - variables from outside ------===//
//
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "lib/io/functions/CapturedHandles.h"

#include "lib/io/Serialize.h"
#include "lib/ops/OpTable.h"
#include "lib/ops/Ops.h"
#include "lib/support/Diagnostics.h"

#include "tensorflow/core/framework/graph.pb.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/ADT/StringSet.h"

#include <map>

using namespace llvm;
using namespace tensorflow; // Messages only.

namespace graft {
namespace {

Error failure(const Twine &Message) {
  return createStringError(inconvertibleErrorCode(), Message);
}

bool isHandle(const NodeDef &Node) {
  auto It = Node.attr().find("dtype");
  return StringRef(Node.op()) == op::Placeholder && It != Node.attr().end() &&
         It->second.type() == tensorflow::DT_RESOURCE;
}

struct Kind {
  tensorflow::DataType Type = tensorflow::DT_INVALID;
  std::optional<TensorShapeProto> Shape;
};

/// What the ops that take a handle, or the functions, say of its variable.
class Uses {
public:
  explicit Uses(const GraphDef &G) {
    for (const FunctionDef &F : G.library().function())
      Functions[F.signature().name()] = &F;
    for (const NodeDef &Node : G.node())
      for (int I = 0; I < Node.input_size(); ++I)
        if (!StringRef(Node.input(I)).starts_with("^"))
          see(Node, I);
  }

  Kind kindOf(StringRef Placeholder) const { return Found.lookup(Placeholder); }

private:
  void see(const NodeDef &Node, int Index) {
    Kind &K = Found[StringRef(Node.input(Index)).split(':').first];
    if (auto F = Node.attr().find("f"); F != Node.attr().end())
      if (const FunctionDef *Def = Functions.lookup(F->second.func().name());
          Def && Index < Def->signature().input_arg_size()) {
        const auto &Arg = Def->signature().input_arg(Index);
        if (Arg.handle_data_size() == 1) {
          K.Type = Arg.handle_data(0).dtype();
          K.Shape = Arg.handle_data(0).shape();
        }
        return;
      }
    const graft::OpDef *Op = findOp(Node.op());
    if (!Op || !(Op->readsVariable() || Op->update().Kind != UpdateKind::None))
      return;
    for (const char *Key : {"dtype", "T"})
      if (auto It = Node.attr().find(Key);
          It != Node.attr().end() && K.Type == tensorflow::DT_INVALID)
        K.Type = It->second.type();
    if (auto It = Node.attr().find("_output_shapes");
        It != Node.attr().end() && StringRef(Node.op()) == op::ReadVariableOp &&
        It->second.list().shape_size() == 1)
      K.Shape = It->second.list().shape(0);
  }

  StringMap<const FunctionDef *> Functions;
  StringMap<Kind> Found;
};

} // namespace

Expected<std::string> captureVariables(StringRef Bytes,
                                       ArrayRef<std::string> Rules) {
  GraphDef G;
  if (!G.ParseFromString(Bytes.str()))
    return failure("the graph cannot be read");
  std::map<std::string, std::string> VariableOf;
  for (StringRef Rule : Rules) {
    auto [Placeholder, Variable] = Rule.rsplit('=');
    if (Placeholder.empty() || Variable.empty() || !Rule.contains('='))
      return failure("--capture: '" + Rule +
                     "' does not have the form PLACEHOLDER=VARIABLE_NAME");
    VariableOf[Placeholder.str()] = Variable.str();
  }
  StringMap<const NodeDef *> Handles;
  std::vector<std::string> Names;
  StringSet<> Taken;
  for (const NodeDef &Node : G.node()) {
    Taken.insert(Node.name());
    if (!isHandle(Node))
      continue;
    Handles[Node.name()] = &Node;
    Names.push_back(Node.name());
  }
  std::string All = Names.empty() ? "" : "; it has " + join(Names, ", ");
  Uses Used(G);
  std::map<std::string, Kind> Variables;
  for (const auto &[Placeholder, Variable] : VariableOf) {
    if (!Handles.contains(Placeholder))
      return failure("--capture: the graph has no placeholder '" + Placeholder +
                     "' of a handle" + didYouMean(Placeholder, Names, All));
    if (Taken.contains(Variable) && Variable != Placeholder)
      return failure("--capture: the graph has a node '" + Variable +
                     "' already");
    Kind Its = Used.kindOf(Placeholder);
    if (Its.Type == tensorflow::DT_INVALID)
      return failure("--capture: nothing says that '" + Placeholder +
                     "' is the handle of a variable");
    Kind &Known = Variables[Variable];
    if (Known.Type != tensorflow::DT_INVALID && Known.Type != Its.Type)
      return failure("--capture: '" + Variable +
                     "' would have two types of elements");
    Known.Type = Its.Type;
    if (Its.Shape)
      Known.Shape = Its.Shape;
  }
  GraphDef Out = G;
  Out.clear_node();
  StringSet<> Made;
  for (const NodeDef &Node : G.node()) {
    auto It = VariableOf.find(Node.name());
    if (It != VariableOf.end() && !Made.insert(It->second).second)
      continue;
    NodeDef &New = *Out.add_node();
    New = Node;
    if (It != VariableOf.end()) {
      const Kind &Its = Variables[It->second];
      New.set_name(It->second);
      New.set_op(op::VarHandleOp.str());
      New.clear_attr();
      (*New.mutable_attr())["dtype"].set_type(Its.Type);
      TensorShapeProto &Shape = *(*New.mutable_attr())["shape"].mutable_shape();
      if (Its.Shape)
        Shape = *Its.Shape;
      else
        Shape.set_unknown_rank(true);
      (*New.mutable_attr())["shared_name"].set_s(It->second);
    }
    for (std::string &Input : *New.mutable_input()) {
      StringRef Name(Input);
      std::string Mark = Name.consume_front("^") ? "^" : "";
      if (auto Of = VariableOf.find(Name.split(':').first.str());
          Of != VariableOf.end())
        Input = Mark + Of->second;
    }
  }
  return serialize(Out);
}

} // namespace graft
