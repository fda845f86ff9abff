//===- lib/io/write/TextWriter.cpp - graphs as text, in one pass *- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "lib/io/write/TextWriter.h"

#include "lib/io/write/TextPrinter.h"
#include "lib/support/Wire.h"

#include "tensorflow/core/protobuf/saved_model.pb.h"

#include <climits>

using namespace llvm;
using google::protobuf::Descriptor;

namespace graft {
namespace {

/// The text is written in pieces of about this size.
constexpr size_t PieceSize = 64 << 10;

const Descriptor *typeOf(InputKind Kind) {
  switch (Kind) {
  case InputKind::MetaGraph:
    return tensorflow::MetaGraphDef::descriptor();
  case InputKind::SavedModel:
    return tensorflow::SavedModel::descriptor();
  default:
    return tensorflow::GraphDef::descriptor();
  }
}

/// Returns the number of messages around the graph in a \p Kind.
unsigned depthOf(InputKind Kind) {
  switch (Kind) {
  case InputKind::MetaGraph:
    return 1;
  case InputKind::SavedModel:
    return 2;
  default:
    return 0;
  }
}

Error cannotParse() {
  return createStringError(inconvertibleErrorCode(),
                           "protobuf cannot parse the output (a string that is "
                           "not UTF-8?): write it as binary");
}

} // namespace

TextWriter::TextWriter(ByteSink &To, InputKind Kind, StringRef Message)
    : Printer(std::make_unique<TextPrinter>()), To(To), Level(depthOf(Kind)) {
  Taken = Message.size();
  if (Level == 0)
    return;
  Valid = Printer->print(Message, typeOf(Kind), 0);
  if (!Valid)
    return;
  // Only this line has this text: quoted text has no line ends.
  std::string Indent(size_t(2) * (Level - 1), ' ');
  std::string Graph = "\n" + Indent + "graph_def {\n";
  std::string Text = "\n" + Printer->Out.text().str();
  size_t Inside = Text.find(Graph + Indent + "}\n");
  if (Inside == std::string::npos) {
    Valid = false;
    return;
  }
  Inside += Graph.size();
  Tail = Text.substr(Inside);
  To.write(StringRef(Text).slice(1, Inside));
  Printer->Out.truncate(0);
}

TextWriter::~TextWriter() = default;

void TextWriter::write(StringRef Bytes) {
  Taken += Bytes.size();
  if (!Valid)
    return;
  if (Pending.empty()) {
    Pending = Bytes.drop_front(consume(Bytes)).str();
    return;
  }
  Pending.append(Bytes.data(), Bytes.size());
  Pending.erase(0, consume(Pending));
}

/// Prints the complete nodes and keeps the graph's other fields. Returns the
/// number of consumed bytes.
size_t TextWriter::consume(StringRef Bytes) {
  const Descriptor *Graph = tensorflow::GraphDef::descriptor();
  wire::Reader R(Bytes);
  wire::Field F;
  size_t Done = 0;
  while (Valid && R.next(F)) {
    Done = static_cast<size_t>(F.Whole.end() - Bytes.begin());
    if (F.Number != 1 || F.WireType != wire::Type::Bytes) {
      Others.append(F.Whole.data(), F.Whole.size());
      continue;
    }
    // Protobuf itself refuses a length of too many bytes.
    bool Usual = F.Whole.size() - F.Bytes.size() <= 6;
    Valid = Usual ? Printer->field(F.Bytes, Graph, 1, Level)
                  : Printer->print(F.Whole, Graph, Level);
    if (Printer->Out.size() >= PieceSize) {
      To.write(Printer->Out.text());
      Printer->Out.truncate(0);
    }
  }
  return Done;
}

Error TextWriter::finish() {
  if (Taken > INT_MAX)
    return createStringError(inconvertibleErrorCode(),
                             "the output has more than 2 GiB: write it as "
                             "binary");
  // Pending bytes are an incomplete field.
  if (!Valid || !Pending.empty() ||
      !Printer->print(Others, tensorflow::GraphDef::descriptor(), Level))
    return cannotParse();
  To.write(Printer->Out.text());
  To.write(Tail);
  return Error::success();
}

} // namespace graft
