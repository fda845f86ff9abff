//===- lib/io/read/Sniff.cpp - kinds of graph files -------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "lib/io/read/Sniff.h"

#include "lib/io/LineForm.h"
#include "lib/io/read/GraphItem.h"
#include "lib/io/read/Lines.h"
#include "lib/support/Failure.h"
#include "lib/support/Wire.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSwitch.h"
#include "llvm/Support/FormatVariadic.h"

using namespace llvm;

namespace graft {
namespace {

/// Returns true if \p Body, field 1 of a message, can be a NodeDef: it has a
/// name and an op name. In a MetaGraphDef, field 1 is a MetaInfoDef. A
/// MetaInfoDef has no op name: its field 2 is a list of op definitions or is
/// missing.
bool looksLikeNode(StringRef Body) {
  wire::Reader R(Body);
  wire::Field F;
  bool HasName = false, HasOp = false;
  while (R.next(F)) {
    if (F.Number <= 4 && F.WireType != wire::Type::Bytes)
      return false;
    if (F.Number == 1)
      HasName = !F.Bytes.empty() && all_of(F.Bytes, isPrint);
    if (F.Number == 2)
      HasOp = !F.Bytes.empty() && all_of(F.Bytes, [](char C) {
        return isAlnum(C) || C == '_' || C == '.' || C == '>';
      });
  }
  return !R.failed() && HasName && HasOp;
}

enum class Answer : uint8_t { No, Maybe, Yes };

/// Tests by the first node if \p Body, field 2 of a message, is the GraphDef of
/// a MetaGraphDef. In a GraphDef, field 2 is the library, and its first
/// function does not look like a node.
Answer looksLikeGraph(StringRef Body) {
  wire::Reader R(Body);
  wire::Field F;
  while (R.next(F)) {
    if (F.WireType == wire::Type::Bytes && F.Number == 1)
      return looksLikeNode(F.Bytes) ? Answer::Yes : Answer::No;
    if (F.Number == 3 && F.WireType == wire::Type::Bytes)
      return Answer::No;
  }
  return R.failed() ? Answer::No : Answer::Maybe;
}

/// The kinds of files that the top-level fields allow.
struct Fits {
  bool Graph = true;
  bool Meta = true;
  bool Saved = true;
  bool Item = false;
  bool Broken = false;
  size_t GoodBytes = 0; ///< Bytes before the first malformed field.

  bool fits(InputKind K) const {
    switch (K) {
    case InputKind::GraphDef:
      return Graph;
    case InputKind::MetaGraph:
      return Meta;
    case InputKind::SavedModel:
      return Saved;
    case InputKind::GraphItem:
      return Item;
    case InputKind::Auto:
      break;
    }
    return true;
  }
  unsigned count() const { return Graph + Meta + Saved + Item; }
};

Fits examine(StringRef Bytes) {
  Fits Result;
  bool HasSchema = false, HasInner = false;
  unsigned FirstFields = 0;
  wire::Reader R(Bytes);
  wire::Field F;
  while (R.next(F)) {
    Result.GoodBytes = F.Whole.end() - Bytes.begin();
    bool IsBytes = F.WireType == wire::Type::Bytes;
    if (F.Number == 1) {
      if (!IsBytes) {
        HasSchema = true;
        Result.Graph = Result.Meta = false;
        continue;
      }
      Result.Saved = false;
      bool IsNode = looksLikeNode(F.Bytes);
      Result.Item |= !IsNode && looksLikeGraphItem(F.Bytes);
      Result.Graph &= IsNode;
      if (++FirstFields > 1)
        Result.Meta = false;
      // Two nodes are enough. The reader checks the other fields of a graph.
      if (FirstFields == 2 && Result.Graph)
        break;
    } else if (F.Number == 2) {
      HasInner = true;
      Answer Inner = IsBytes ? looksLikeGraph(F.Bytes) : Answer::No;
      Result.Meta &= Inner != Answer::No;
      Result.Graph &= Inner != Answer::Yes;
      Result.Saved &= IsBytes;
    } else if (F.Number == 3) {
      Result.Saved = false;
      (IsBytes ? Result.Graph : Result.Meta) = false;
    } else {
      Result.Saved = false;
    }
  }
  Result.Broken = R.failed();
  Result.Meta &= HasInner;
  Result.Saved &= HasSchema;
  // A file with the type URL of a GraphItem is no MetaGraphDef.
  Result.Meta &= !Result.Item;
  return Result;
}

constexpr InputKind AllKinds[] = {InputKind::GraphDef, InputKind::MetaGraph,
                                  InputKind::SavedModel, InputKind::GraphItem};

Error wrongKind(InputKind Wanted, InputKind Found) {
  return failure(formatv("is not a {0}; it looks like a {1}: read it with "
                         "--input-kind={2}",
                         kindName(Wanted), kindName(Found), kindFlag(Found)));
}

} // namespace

StringRef kindName(InputKind Kind) {
  switch (Kind) {
  case InputKind::GraphDef:
    return "GraphDef";
  case InputKind::MetaGraph:
    return "MetaGraphDef";
  case InputKind::SavedModel:
    return "SavedModel";
  case InputKind::GraphItem:
    return "GraphItem";
  case InputKind::Auto:
    break;
  }
  return "graph file";
}

StringRef kindFlag(InputKind Kind) {
  switch (Kind) {
  case InputKind::GraphDef:
    return "graph";
  case InputKind::MetaGraph:
    return "metagraph";
  case InputKind::SavedModel:
    return "savedmodel";
  case InputKind::GraphItem:
    return "graphitem";
  case InputKind::Auto:
    break;
  }
  return "auto";
}

bool looksLikeText(StringRef Bytes) {
  // Every NodeDef, MetaInfoDef and SavedModel has a byte below 0x20 other than
  // white space within its first few bytes: tags and lengths.
  Bytes = Bytes.take_front(4096);
  return !Bytes.empty() && all_of(Bytes, [](char C) {
    return static_cast<uint8_t>(C) >= 0x20 || C == '\n' || C == '\t' ||
           C == '\r';
  });
}

Expected<InputKind> sniffBinary(StringRef Bytes, InputKind Wanted) {
  Fits Result = examine(Bytes);
  if (Result.Broken)
    return failure(formatv("is truncated, or not a graph file: the field at "
                           "byte {0} is malformed or runs past the end ({1} "
                           "bytes)",
                           Result.GoodBytes, Bytes.size()));
  if (Wanted != InputKind::Auto) {
    if (!Result.fits(Wanted))
      for (InputKind K : AllKinds)
        if (Result.fits(K))
          return wrongKind(Wanted, K);
    return Wanted;
  }
  if (Result.count() == 1)
    for (InputKind K : AllKinds)
      if (Result.fits(K))
        return K;
  if (Result.count() == 0)
    return failure(
        "is not a GraphDef, a MetaGraphDef, a SavedModel or a GraphItem; if it "
        "is one, say which with --input-kind");
  return failure("can be a GraphDef or a MetaGraphDef: say which with "
                 "--input-kind=graph or --input-kind=metagraph");
}

StringRef skipComments(StringRef Text) {
  Text = Text.ltrim();
  while (Text.starts_with("#"))
    Text = Text.drop_until([](char C) { return C == '\n'; }).ltrim();
  return Text;
}

Expected<InputKind> sniffText(StringRef Text, InputKind Wanted) {
  StringRef Rest = skipComments(Text);
  if (looksLikeLines(Rest)) {
    StringRef Message = splitLines(Rest).Kind;
    if (!Message.empty() && Message != "GraphDef" && Message != "MetaGraphDef")
      return failure("has '" + Twine(LineForm::Rest) + Message +
                     "'; the fields after the nodes must be those of a "
                     "GraphDef or a MetaGraphDef");
    auto Found =
        Message == "MetaGraphDef" ? InputKind::MetaGraph : InputKind::GraphDef;
    if (Wanted != InputKind::Auto && Wanted != Found)
      return wrongKind(Wanted, Found);
    return Found;
  }
  StringRef Field =
      Rest.take_while([](char C) { return isAlnum(C) || C == '_'; });
  if (Rest.empty())
    return failure("has no graph: it holds only comments");
  auto Found = StringSwitch<InputKind>(Field)
                   .Cases("node", "library", "version", "versions",
                          "debug_info", InputKind::GraphDef)
                   .Cases("meta_info_def", "graph_def", "saver_def",
                          "collection_def", "signature_def", "asset_file_def",
                          "object_graph_def", InputKind::MetaGraph)
                   .Cases("saved_model_schema_version", "meta_graphs",
                          InputKind::SavedModel)
                   .Cases("grad_target_pairs", "info", InputKind::GraphItem)
                   .Default(InputKind::Auto);
  // A GraphItem has its graph in an Any.
  StringRef Inside = Rest.drop_front(Field.size()).ltrim(": \t\r\n{");
  if (Field == "graph_def" &&
      (Inside.starts_with("[") || Inside.starts_with("type_url")))
    Found = InputKind::GraphItem;
  if (Found == InputKind::Auto)
    // The text parser reports the place of the error.
    return Wanted == InputKind::Auto ? InputKind::GraphDef : Wanted;
  if (Wanted != InputKind::Auto && Wanted != Found)
    return wrongKind(Wanted, Found);
  return Found;
}

} // namespace graft
