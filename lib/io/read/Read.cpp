//===- lib/io/read/Read.cpp - files to modules ------------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
// Text is converted to wire bytes first and then read like a binary file, so
// there is one reader of graphs.
//
//===----------------------------------------------------------------------===//

#include "lib/io/read/Read.h"

#include "lib/io/ModuleVerifier.h"
#include "lib/io/read/GraphItem.h"
#include "lib/io/read/InputFile.h"
#include "lib/io/read/OtherFormats.h"
#include "lib/io/read/Shards.h"
#include "lib/io/read/Sniff.h"
#include "lib/io/read/Text.h"
#include "lib/support/Failure.h"
#include "lib/support/ReadFile.h"
#include "lib/support/Wire.h"

#include "tensorflow/core/protobuf/meta_graph.pb.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/Path.h"

#include <unistd.h>

using namespace llvm;

namespace graft {

char InputError::ID = 0;

void InputError::log(raw_ostream &OS) const {
  OS << File;
  if (Line != 0)
    OS << ':' << Line << ':' << Column;
  OS << ": error: " << Message;
}

/// Fills the parts of a Module that only the reader may touch.
class ModuleReader {
public:
  ModuleReader(std::unique_ptr<MemoryBuffer> Buffer, const ReadOptions &Options)
      : Options(Options) {
    M.FileName = Buffer->getBufferIdentifier().str();
    M.Files.push_back(M.FileName);
    M.Buffers.push_back(std::move(Buffer));
  }

  Expected<Module> read();

private:
  Error fail(const Twine &Message) const {
    return make_error<InputError>(M.FileName, Message.str());
  }
  /// Adds the name of the file to \p E, and the line of the node if \p E names
  /// one.
  Error locate(Error E) const;
  Expected<InputKind> sniff();
  Error openShards(const ShardName &Given);
  Expected<size_t> chooseMetaGraph(ArrayRef<wire::Field> Found);
  Error enter(const char *What);
  Error enterGraphItem();
  Error loadGraph();

  const ReadOptions &Options;
  Module M;
};

Error ModuleReader::locate(Error E) const {
  if (E.isA<InputError>())
    return E;
  std::string Message = toString(std::move(E));
  StringRef Rest(Message);
  // If there are several files, the error names the faulty one.
  unsigned Part;
  if (M.Files.size() > 1 && Rest.consume_front("part ") &&
      !Rest.consumeInteger(10, Part) && Rest.consume_front(": "))
    return fail("'" + M.Files[Part - 1] + "': " + Rest);
  std::pair<unsigned, unsigned> At;
  if (Rest.consume_front("node '"))
    At = M.location(Rest.take_until([](char C) { return C == '\''; }));
  return make_error<InputError>(M.FileName, Message, At.first, At.second);
}

/// Returns the tags of the MetaGraphDef \p Bytes.
static std::vector<std::string> tagsOf(StringRef Bytes) {
  std::vector<std::string> Tags;
  wire::Reader R(Bytes);
  for (wire::Field F; R.next(F);)
    if (F.Number == tensorflow::MetaGraphDef::kMetaInfoDefFieldNumber &&
        F.WireType == wire::Type::Bytes) {
      using Info = tensorflow::MetaGraphDef::MetaInfoDef;
      wire::Reader Inner(F.Bytes);
      for (wire::Field Tag; Inner.next(Tag);)
        if (Tag.Number == Info::kTagsFieldNumber &&
            Tag.WireType == wire::Type::Bytes)
          Tags.push_back(Tag.Bytes.str());
    }
  sort(Tags);
  return Tags;
}

/// Returns which of the MetaGraphDefs \p Found of a SavedModel is read.
Expected<size_t> ModuleReader::chooseMetaGraph(ArrayRef<wire::Field> Found) {
  std::vector<std::string> Wanted = Options.Tags;
  sort(Wanted);
  std::optional<size_t> Chosen;
  for (const auto &[I, F] : enumerate(Found)) {
    std::vector<std::string> Tags = tagsOf(F.Bytes);
    if (!Chosen && (Wanted.empty() ? I == Options.MetaGraph : Wanted == Tags))
      Chosen = I;
    M.MetaGraphTags.push_back(join(Tags, ","));
  }
  if (Chosen)
    return *Chosen;
  return fail("has no MetaGraphDef with exactly the tags '" +
              join(Wanted, ",") + "'; there " +
              (Found.size() == 1 ? "is one" : "are some") + " with '" +
              join(M.MetaGraphTags, "', '") + "'");
}

/// Enters field 2 of an enclosing message. A MetaGraphDef has one such field.
Error ModuleReader::enter(const char *What) {
  StringRef Outer = M.GraphBytes.front();
  wire::Reader R(Outer);
  SmallVector<wire::Field, 1> Found;
  for (wire::Field F; R.next(F);)
    if (F.Number == 2 && F.WireType == wire::Type::Bytes)
      Found.push_back(F);
  if (R.failed())
    return fail("is truncated or malformed");
  if (Found.empty())
    return fail(formatv("has no {0}", What));
  bool IsSaved = StringRef(What) == "meta_graphs";
  if (Found.size() > 1 && !IsSaved)
    return fail("has more than one graph_def");
  if (IsSaved)
    if (Error E = chooseMetaGraph(Found).moveInto(M.MetaGraphIndex))
      return E;
  const wire::Field &Inner = Found[IsSaved ? M.MetaGraphIndex : 0];
  M.Enclosing.push_back(
      {{Outer.begin(),
        static_cast<size_t>(Inner.Whole.begin() - Outer.begin())},
       {Inner.Whole.end(),
        static_cast<size_t>(Outer.end() - Inner.Whole.end())}});
  M.GraphBytes.front() = Inner.Bytes;
  return Error::success();
}

/// Continues with the GraphDef of a GraphItem as if it were the file.
Error ModuleReader::enterGraphItem() {
  Expected<GraphItemParts> Parts = openGraphItem(M.Whole.front());
  if (!Parts)
    return locate(Parts.takeError());
  M.Whole.front() = Parts->Graph;
  M.Gradients = std::move(Parts->Gradients);
  M.Kind = InputKind::GraphDef;
  return Error::success();
}

Error ModuleReader::loadGraph() {
  M.GraphBytes = M.Whole;
  if (M.Kind == InputKind::SavedModel)
    if (Error E = enter("meta_graphs"))
      return E;
  if (M.Kind != InputKind::GraphDef)
    if (Error E = enter("graph_def"))
      return E;
  if (Error E = M.G->parse(M.GraphBytes))
    return locate(std::move(E));
  // The size from which pages are released, although some are then read twice.
  constexpr uint64_t Large = 128 << 20;
  uint64_t Bytes = 0;
  for (StringRef Part : M.GraphBytes)
    Bytes += Part.size();
  if (Bytes >= Large && all_of(M.Buffers, [](const auto &Buffer) {
        return Buffer->getBufferKind() == MemoryBuffer::MemoryBuffer_MMap;
      }))
    M.G->setLargeParts(M.GraphBytes);
  if (!M.Enclosing.empty()) {
    auto Meta = std::make_unique<tensorflow::MetaGraphDef>();
    const Module::EnclosingMessage &Inner = M.Enclosing.back();
    if (!Meta->ParseFromString((Inner.Before + Inner.After).str()))
      return fail("the fields around graph_def are malformed");
    M.Meta = std::move(Meta);
  }
  M.Dangling = findDanglingNames(M);
  return Error::success();
}

/// Returns true if \p File, which the user did not name, is a pipe or a device:
/// reading it could block.
static bool isStream(const std::string &File) {
  return sys::fs::exists(File) && !sys::fs::is_regular_file(File);
}

/// Opens all other shards of the graph; the file is one of its shards.
Error ModuleReader::openShards(const ShardName &Given) {
  std::unique_ptr<MemoryBuffer> First = std::move(M.Buffers.front());
  M.Buffers.clear();
  std::vector<std::string> Files;
  for (unsigned I = 0; I < Given.Count; ++I) {
    Files.push_back(Given.name(I));
    if (I == Given.Index) {
      M.Buffers.push_back(std::move(First));
      continue;
    }
    if (isStream(Files.back()))
      return fail(formatv("is one of {0} shards: '{1}' is not a regular file",
                          Given.Count, Files.back()));
    auto Buffer = openInputFile(Files.back());
    if (!Buffer)
      return fail(formatv("is one of {0} shards: '{1}' cannot be read: {2}",
                          Given.Count, Files.back(),
                          Buffer.getError().message()));
    M.Buffers.push_back(std::move(*Buffer));
  }
  M.Files = std::move(Files);
  return Error::success();
}

/// Finds the kind of the file, and all shards.
Expected<InputKind> ModuleReader::sniff() {
  StringRef Bytes = M.Buffers.front()->getBuffer();
  if (Options.Kind == InputKind::Auto)
    if (auto Other = otherFormat(Bytes))
      return failure(*Other);
  std::optional<ShardName> Shard = ShardName::parse(M.FileName);
  M.Text =
      Options.Form == ReadOptions::Encoding::Text ||
      (Options.Form == ReadOptions::Encoding::Auto &&
       (StringRef(M.FileName).ends_with(".pbtxt") || looksLikeText(Bytes)));
  if (M.Text)
    return sniffText(Bytes, Options.Kind);
  Expected<InputKind> Kind = sniffBinary(Bytes, Options.Kind);
  if (auto Other = Kind ? std::nullopt : otherName(M.FileName)) {
    consumeError(Kind.takeError());
    return failure(*Other);
  }
  if (!Shard || (Kind && *Kind != InputKind::GraphDef))
    return Kind;
  // A shard without nodes does not show its kind.
  consumeError(Kind.takeError());
  if (Error E = openShards(*Shard))
    return E;
  return InputKind::GraphDef;
}

Expected<Module> ModuleReader::read() {
  StringRef Bytes = M.Buffers.front()->getBuffer();
  if (Bytes.empty() && !ShardName::parse(M.FileName))
    return fail("is empty: a graph file has at least one byte");
  Expected<InputKind> Kind = sniff();
  if (!Kind)
    return locate(Kind.takeError());
  M.Kind = *Kind;
  if (M.Text) {
    Expected<std::string> Binary =
        textToBinary(Bytes, M.FileName, M.Kind, M.Lines);
    if (!Binary)
      return locate(Binary.takeError());
    // A copy on the heap, because moving a short std::string moves its bytes.
    M.Buffers.front() = MemoryBuffer::getMemBufferCopy(*Binary, M.FileName);
  }
  for (const std::unique_ptr<MemoryBuffer> &Buffer : M.Buffers)
    M.Whole.push_back(Buffer->getBuffer());
  if (M.Kind == InputKind::GraphItem)
    if (Error E = enterGraphItem())
      return E;
  if (Error E = loadGraph())
    return E;
  if (Error E = checkGradients(*M.G, M.Gradients))
    return locate(std::move(E));
  return std::move(M);
}

Expected<std::unique_ptr<MemoryBuffer>> openInput(StringRef Path) {
  std::string File = Path.str();
  if (sys::fs::is_directory(File)) {
    SmallString<256> Inside(File);
    sys::path::append(Inside, "saved_model.pb");
    if (!sys::fs::exists(Inside))
      Inside += "txt";
    if (!sys::fs::exists(Inside)) {
      std::string Message = otherFolder(File).value_or(
          "is a directory without saved_model.pb or .pbtxt");
      sys::path::replace_extension(Inside, "cpb");
      if (sys::fs::exists(Inside))
        Message += "; graft does not read the chunked saved_model.cpb: "
                   "save without experimental_image_format";
      return make_error<InputError>(File, Message);
    }
    File = Inside.str().str();
    if (isStream(File))
      return make_error<InputError>(File,
                                    "cannot be read: is not a regular file");
  }
  auto Buffer =
      File == "-" ? readStream(STDIN_FILENO, "<stdin>") : openInputFile(File);
  if (!Buffer)
    return make_error<InputError>(File, "cannot be read: " +
                                            Buffer.getError().message());
  return std::move(*Buffer);
}

Expected<Module> readModule(std::unique_ptr<MemoryBuffer> Buffer,
                            const ReadOptions &Options) {
  return ModuleReader(std::move(Buffer), Options).read();
}

Expected<Module> readModule(StringRef Path, const ReadOptions &Options) {
  Expected<std::unique_ptr<MemoryBuffer>> Buffer = openInput(Path);
  if (!Buffer)
    return Buffer.takeError();
  return readModule(std::move(*Buffer), Options);
}

} // namespace graft
