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
#include "lib/support/Failure.h"

#include "tensorflow/core/framework/graph.pb.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/Support/FormatVariadic.h"

#include <map>

using namespace llvm;
using namespace tensorflow; // Messages only.

namespace graft {
namespace {

bool isHandle(const NodeDef &Node) {
  auto It = Node.attr().find("dtype");
  return StringRef(Node.op()) == op::Placeholder && It != Node.attr().end() &&
         It->second.type() == tensorflow::DT_RESOURCE;
}

/// The name and the shape in `w[4,3]`.
struct WantedVariable {
  std::string Name;
  std::optional<TensorShapeProto> Shape;

  /// Returns false if \p Text does not have this form.
  bool parse(StringRef Text) {
    auto [Before, Sizes] = Text.split('[');
    Name = Before.str();
    if (Before.size() == Text.size())
      return !Name.empty();
    if (Name.empty() || !Sizes.consume_back("]"))
      return false;
    Shape.emplace();
    SmallVector<StringRef, 4> Parts;
    Sizes.split(Parts, ',', -1, /*KeepEmpty=*/!Sizes.empty());
    return all_of(Parts, [&](StringRef Part) {
      int64_t Size = 0;
      bool Good = !Part.trim().getAsInteger(10, Size) && Size >= 0;
      Shape->add_dim()->set_size(Size);
      return Good;
    });
  }
};

struct Kind {
  tensorflow::DataType Type = tensorflow::DT_INVALID;
  std::optional<TensorShapeProto> Shape;
};

/// The types and shapes of variables, inferred from the ops and functions that
/// take their handles.
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
  std::map<std::string, Kind> Variables;
  for (StringRef Rule : Rules) {
    auto [Placeholder, Text] = Rule.rsplit('=');
    WantedVariable Wanted;
    if (Placeholder.empty() || !Rule.contains('=') || !Wanted.parse(Text))
      return failure("--capture: '" + Rule +
                     "' does not have the form PLACEHOLDER=VARIABLE_NAME, or "
                     "PLACEHOLDER=VARIABLE_NAME[4,3] with its shape");
    VariableOf[Placeholder.str()] = Wanted.Name;
    Kind &Its = Variables[Wanted.Name];
    if (Wanted.Shape)
      Its.Shape = Wanted.Shape;
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
  for (const auto &[Placeholder, Variable] : VariableOf) {
    if (!Handles.contains(Placeholder))
      return failure("--capture: the graph has no resource placeholder '" +
                     Placeholder + "'" + didYouMean(Placeholder, Names, All));
    if (Taken.contains(Variable) && Variable != Placeholder)
      return failure("--capture: the graph already has a node '" + Variable +
                     "'; give the variable another name");
    Kind Its = Used.kindOf(Placeholder);
    if (Its.Type == tensorflow::DT_INVALID)
      return failure("--capture: no op of the graph reads or updates the "
                     "variable of placeholder '" +
                     Placeholder + "', so its dtype is unknown");
    Kind &Known = Variables[Variable];
    if (Known.Type != tensorflow::DT_INVALID && Known.Type != Its.Type)
      return failure("--capture: variable '" + Variable +
                     "' would have two dtypes");
    Known.Type = Its.Type;
    if (!Known.Shape)
      Known.Shape = Its.Shape;
  }
  for (const auto &[Variable, Its] : Variables)
    if (!Its.Shape)
      return failure(
          formatv("--capture: the shape of variable '{0}' is unknown; give "
                  "it, as in {0}[4,3], or [] for a scalar, or export "
                  "the graph with as_graph_def(add_shapes=True)",
                  Variable));
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
      Shape = *Its.Shape;
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
