//===- lib/io/write/Lines.cpp - the text form of a graph --------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "lib/io/write/Lines.h"

#include "lib/graph/ProgramAttrs.h"
#include "lib/io/AttrText.h"
#include "lib/io/LineForm.h"
#include "lib/io/Serialize.h"
#include "lib/support/Failure.h"

#include "google/protobuf/text_format.h"
#include "tensorflow/core/protobuf/meta_graph.pb.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"

using namespace llvm;

namespace graft {
namespace {

std::string nameText(StringRef Name) {
  return isBareName(Name) ? Name.str() : quoted(Name);
}

std::string inputText(StringRef Input) {
  std::string Control = Input.consume_front("^") ? "^" : "";
  return Control + nameText(Input);
}

bool isPerReplica(const tensorflow::NodeDef &Node) {
  auto It = Node.attr().find(CopiesAttr.str());
  return It != Node.attr().end() && It->second.s() == "per-replica";
}

/// Returns the line of \p Node, and removes its fields.
std::string line(tensorflow::NodeDef &Node, StringRef Mark) {
  std::string Out = nameText(Node.name()) + " = " + nameText(Node.op());
  if (isPerReplica(Node)) {
    Out += Mark;
    Node.mutable_attr()->erase(CopiesAttr.str());
  }
  Out += '(';
  ListSeparator Comma;
  for (const std::string &Input : Node.input())
    Out += StringRef(Comma).str() + inputText(Input);
  Out += ')';
  if (!Node.device().empty())
    Out += " @" + nameText(Node.device());
  std::vector<StringRef> Keys;
  for (const auto &[Key, Value] : Node.attr())
    Keys.push_back(Key);
  llvm::sort(Keys);
  auto Dtype = Node.attr().find("dtype");
  int Type = Dtype == Node.attr().end() ? 0 : Dtype->second.type();
  for (StringRef Key : Keys)
    Out += " " + nameText(Key) + "=" +
           wholeAttrText(Node.attr().at(Key.str()), {Node.op(), Key, Type});
  Node.clear_name();
  Node.clear_op();
  Node.clear_input();
  Node.clear_device();
  Node.clear_attr();
  if (std::string Others = serialize(Node); !Others.empty())
    Out += " !" + quoted(Others);
  return Out;
}

/// Writes the nodes of \p Graph and removes them from it.
void takeNodes(tensorflow::GraphDef &Graph, ByteSink &Sink) {
  std::string Mark = "*";
  if (auto Replicas = meshReplicas(Graph); Replicas && *Replicas > 0)
    Mark += itostr(*Replicas);
  for (tensorflow::NodeDef &Node : *Graph.mutable_node())
    Sink.write(line(Node, Mark) + "\n");
  Graph.clear_node();
}

/// Writes the fields of \p Message, which has no nodes.
Error writeRest(const google::protobuf::Message &Message, StringRef Kind,
                ByteSink &Sink) {
  std::string Text;
  google::protobuf::TextFormat::Printer Printer;
  Printer.SetExpandAny(false);
  Printer.PrintToString(Message, &Text);
  // The text of an unknown field cannot be read.
  std::unique_ptr<google::protobuf::Message> Again(Message.New());
  if (!google::protobuf::TextFormat::ParseFromString(Text, Again.get()))
    return failure("the graph has fields that have no text; use --emit=pb");
  Sink.write((LineForm::Rest + Kind + "\n" + Text).str());
  return Error::success();
}

} // namespace

Error writeLines(InputKind Kind, StringRef Bytes, ByteSink &Sink) {
  auto Parse = [&](google::protobuf::MessageLite &Message) {
    return Message.ParseFromArray(Bytes.data(), static_cast<int>(Bytes.size()));
  };
  if (Kind == InputKind::MetaGraph) {
    tensorflow::MetaGraphDef Meta;
    if (!Parse(Meta))
      return failure("protobuf cannot parse the output");
    takeNodes(*Meta.mutable_graph_def(), Sink);
    return writeRest(Meta, "MetaGraphDef", Sink);
  }
  if (Kind != InputKind::GraphDef)
    return failure("--emit=lines writes a GraphDef or a MetaGraphDef only; use "
                   "--emit=pbtxt");
  tensorflow::GraphDef Graph;
  if (!Parse(Graph))
    return failure("protobuf cannot parse the output");
  bool IsEmpty = Graph.node_size() == 0;
  takeNodes(Graph, Sink);
  if (Graph.ByteSizeLong() == 0 && !IsEmpty)
    return Error::success();
  return writeRest(Graph, "GraphDef", Sink);
}

} // namespace graft
