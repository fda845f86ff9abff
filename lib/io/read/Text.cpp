//===- lib/io/read/Text.cpp - protobuf text format --------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "lib/io/read/Text.h"

#include "lib/io/Serialize.h"
#include "lib/io/read/Lines.h"
#include "lib/io/read/Read.h"
#include "lib/io/read/Sniff.h"
#include "lib/support/Failure.h"

#include "autodist/graphitem.pb.h"
#include "google/protobuf/io/tokenizer.h"
#include "google/protobuf/text_format.h"
#include "tensorflow/core/protobuf/saved_model.pb.h"

#include <climits>

using namespace llvm;
using google::protobuf::TextFormat;

namespace graft {
namespace {

using InfoTree = TextFormat::ParseInfoTree;

std::unique_ptr<google::protobuf::Message> newMessage(InputKind Kind) {
  switch (Kind) {
  case InputKind::MetaGraph:
    return std::make_unique<tensorflow::MetaGraphDef>();
  case InputKind::SavedModel:
    return std::make_unique<tensorflow::SavedModel>();
  case InputKind::GraphItem:
    return std::make_unique<autodist::proto::GraphItem>();
  default:
    return std::make_unique<tensorflow::GraphDef>();
  }
}

/// Keeps the first error, which explains the others.
class FirstError final : public google::protobuf::io::ErrorCollector {
public:
  void AddError(int L, google::protobuf::io::ColumnNumber C,
                const std::string &Text) override {
    if (!Message.empty())
      return;
    Message = Text;
    Line = L + 1;
    Column = C + 1;
  }
  void AddWarning(int, google::protobuf::io::ColumnNumber,
                  const std::string &) override {}

  std::string Message;
  int Line = 0;
  int Column = 0;
};

void collectLines(const tensorflow::GraphDef &Graph, const InfoTree *Tree,
                  LineMap &Lines) {
  if (!Tree)
    return;
  const auto *Field = Graph.GetDescriptor()->FindFieldByNumber(
      tensorflow::GraphDef::kNodeFieldNumber);
  for (int I = 0; I < Graph.node_size(); ++I) {
    TextFormat::ParseLocation At = Tree->GetLocation(Field, I);
    // If two nodes have one name, an error must name the line of the second.
    Lines[Graph.node(I).name()] = {At.line + 1, At.column + 1};
  }
}

void collectLines(const tensorflow::MetaGraphDef &Meta, const InfoTree *Tree,
                  LineMap &Lines) {
  if (!Tree)
    return;
  const auto *Field = Meta.GetDescriptor()->FindFieldByNumber(
      tensorflow::MetaGraphDef::kGraphDefFieldNumber);
  collectLines(Meta.graph_def(), Tree->GetTreeForNested(Field, -1), Lines);
}

void collectLines(const google::protobuf::Message &Message, InputKind Kind,
                  const InfoTree &Tree, LineMap &Lines) {
  if (Kind == InputKind::GraphDef) {
    collectLines(static_cast<const tensorflow::GraphDef &>(Message), &Tree,
                 Lines);
  } else if (Kind == InputKind::MetaGraph) {
    collectLines(static_cast<const tensorflow::MetaGraphDef &>(Message), &Tree,
                 Lines);
  } else if (Kind == InputKind::SavedModel) {
    const auto &Model = static_cast<const tensorflow::SavedModel &>(Message);
    const auto *Field = Model.GetDescriptor()->FindFieldByNumber(
        tensorflow::SavedModel::kMetaGraphsFieldNumber);
    if (Model.meta_graphs_size() > 0)
      collectLines(Model.meta_graphs(0), Tree.GetTreeForNested(Field, 0),
                   Lines);
  }
}

/// Parses \p Text, which begins after \p Above lines of the file.
Error parseText(StringRef Text, unsigned Above, StringRef FileName,
                InputKind Kind, google::protobuf::Message &Message,
                InfoTree &Tree) {
  google::protobuf::io::ArrayInputStream Stream(Text.data(),
                                                static_cast<int>(Text.size()));
  FirstError Errors;
  TextFormat::Parser Parser;
  Parser.RecordErrorsTo(&Errors);
  Parser.WriteLocationsTo(&Tree);
  Parser.SetRecursionLimit(TextDepth);
  if (Parser.Parse(&Stream, &Message))
    return Error::success();
  std::string What = Errors.Message;
  // Diagnostics start in lower case; protobuf's messages do not.
  if (What.size() > 1 && !isupper(What[1]))
    What[0] = static_cast<char>(tolower(What[0]));
  StringRef Shown = StringRef(What).rtrim('.');
  return make_error<InputError>(
      FileName.str(),
      (Shown + " (read as the text of a " + kindName(Kind) + ")").str(),
      Errors.Line + Above, Errors.Column);
}

/// Reads a graph with a line for each node into \p Message.
Error parseLines(StringRef Text, StringRef FileName, InputKind Kind,
                 google::protobuf::Message &Message, LineMap &Lines) {
  LineFile File = splitLines(Text);
  InfoTree Unused;
  auto Above =
      static_cast<unsigned>(Text.drop_back(File.Rest.size()).count('\n'));
  if (Error E = parseText(File.Rest, Above, FileName, Kind, Message, Unused))
    return E;
  auto &Graph = Kind == InputKind::MetaGraph
                    ? *static_cast<tensorflow::MetaGraphDef &>(Message)
                           .mutable_graph_def()
                    : static_cast<tensorflow::GraphDef &>(Message);
  if (Graph.node_size() != 0)
    return make_error<InputError>(
        FileName.str(), "nodes stand before '---', each on a line of its own",
        Above + 1, 1);
  return readLines(File.Nodes, FileName, Graph, Lines);
}

} // namespace

Expected<std::string> textToBinary(StringRef Text, StringRef FileName,
                                   InputKind Kind, LineMap &Lines) {
  if (Text.size() > INT_MAX)
    return failure("text of more than 2 GiB cannot be read: convert it to "
                   "binary");
  std::unique_ptr<google::protobuf::Message> Message = newMessage(Kind);
  InfoTree Tree;
  bool HasLines = looksLikeLines(skipComments(Text));
  if (Error E = HasLines ? parseLines(Text, FileName, Kind, *Message, Lines)
                         : parseText(Text, 0, FileName, Kind, *Message, Tree))
    return E;
  if (Message->ByteSizeLong() > INT_MAX)
    return failure("the graph has more than 2 GiB");
  if (!HasLines)
    collectLines(*Message, Kind, Tree, Lines);
  return serialize(*Message);
}

} // namespace graft
