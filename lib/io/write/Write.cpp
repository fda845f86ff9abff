//===- lib/io/write/Write.cpp - modules to bytes ----------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "lib/io/write/Write.h"

#include "lib/graph/ProgramAttrs.h"
#include "lib/io/OutputBuffer.h"
#include "lib/io/write/Lines.h"
#include "lib/io/write/Print.h"
#include "lib/io/write/TextWriter.h"
#include "lib/support/Failure.h"
#include "lib/support/Wire.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/Path.h"

using namespace llvm;

namespace graft {
namespace {

/// Counts the bytes, to compare them with the planned size.
class CountingSink final : public ByteSink {
public:
  explicit CountingSink(ByteSink &To) : To(To) {}
  void write(StringRef Bytes) override {
    Count += Bytes.size();
    To.write(Bytes);
  }
  uint64_t Count = 0;

private:
  ByteSink &To;
};

void appendInput(std::string &Out, const Graph &G, Endpoint E) {
  StringRef Name = G.name(E.Node);
  std::string Suffix;
  if (!E.isControl() && E.Port != 0)
    Suffix = ":" + utostr(E.Port);
  wire::appendTag(Out, 3, wire::Type::Bytes);
  wire::appendVarint(Out, Name.size() + Suffix.size() + E.isControl());
  if (E.isControl())
    Out += '^';
  Out.append(Name.data(), Name.size());
  Out += Suffix;
}

} // namespace

StringRef GraphNodeWriter::body(NodeId N, std::string &Scratch) const {
  const Node &This = G.node(N);
  bool HasState = hasProgramState(This);
  // If a node was read with program attributes, its other attributes are stored
  // outside of the bytes read. Once a pass has removed the program state, these
  // bytes must not be written again.
  bool Intact =
      This.RawData &&
      (!This.AttrData || (This.AttrData >= This.RawData &&
                          This.AttrData <= This.RawData + This.RawSize));
  if (Intact && !(This.Flags & NF_Modified) && !HasState)
    return {This.RawData, This.RawSize};
  Scratch.clear();
  wire::appendBytes(Scratch, 1, G.name(N));
  wire::appendBytes(Scratch, 2, G.opName(N));
  for (Endpoint E : G.inputs(N))
    appendInput(Scratch, G, E);
  if (StringRef Device = G.device(N); !Device.empty())
    wire::appendBytes(Scratch, 4, Device);
  Scratch.append(This.AttrData, This.AttrSize);
  if (HasState)
    for (const ProgramAttr &A : programAttrs(This)) {
      std::string Entry;
      wire::appendBytes(Entry, 1, A.Key);
      wire::appendBytes(Entry, 2, A.Value);
      wire::appendBytes(Scratch, 5, Entry);
    }
  return Scratch;
}

void GraphNodeWriter::sizes(
    function_ref<void(uint64_t Bytes, uint64_t Times)> F) const {
  std::string Scratch;
  for (NodeId N : Order)
    F(wire::bytesFieldSize(body(N, Scratch).size()), 1);
}

void GraphNodeWriter::write(size_t Begin, size_t End, OutputBuffer &Out) const {
  std::string Scratch;
  char Head[11] = {'\x0a'};
  for (size_t I = Begin; I < End; ++I) {
    StringRef Body = body(Order[I], Scratch);
    Out.write({Head, static_cast<size_t>(
                         wire::putVarint(Head + 1, Body.size()) - Head)});
    Out.write(Body);
  }
}

/// Writes the wire form of a module: the enclosing messages with their new
/// sizes, the nodes, the graph's other fields.
class ModuleWriter {
public:
  explicit ModuleWriter(const Module &M)
      : M(M), Own(M.graph()),
        Nodes(M.Lowered ? *M.Lowered : static_cast<NodeWriter &>(Own)) {
    for (StringRef Field : M.graph().otherFields())
      Others += Field.size();
  }

  /// Computes all sizes. Returns an error if the output is too large.
  Error plan();
  Error planShards(uint64_t ShardSize);
  size_t numShards() const { return Shards.size(); }

  /// Writes the planned output.
  Error write(ByteSink &Sink, unsigned Threads = 1,
              const std::function<void()> &Beside = {});
  Error writeText(ByteSink &Sink);
  Error writeShards(function_ref<ByteSink &()> Next, unsigned Threads,
                    const std::function<void()> &Beside);

private:
  class ShardSink;

  bool isIdentity() const { return !M.Lowered && !M.graph().modified(); }
  Error held(uint64_t Promised, uint64_t Written) const;

  const Module &M;
  GraphNodeWriter Own;
  NodeWriter &Nodes;
  uint64_t Others = 0;    ///< Bytes of the graph's other fields.
  bool Exact = false;     ///< Set if Total is known.
  uint64_t NodeBytes = 0; ///< An upper bound unless Exact.
  uint64_t Total = 0;
  SmallVector<uint64_t, 2> Sizes; ///< By enclosing message.
  std::vector<uint64_t> Shards;   ///< Bytes of nodes in each shard.
};

Error ModuleWriter::plan() {
  if (isIdentity())
    return Error::success();
  // The exact size is needed for the length of an enclosing field, and if the
  // bound is above the maximum size of a file.
  NodeBytes = Nodes.sizeBound();
  Exact = !M.Enclosing.empty() || NodeBytes + Others > MessageLimit;
  if (!Exact)
    return Error::success();
  NodeBytes = Nodes.size();
  Total = NodeBytes + Others;
  // Sizes from the inside out.
  Sizes.resize(M.Enclosing.size());
  for (size_t I = M.Enclosing.size(); I-- > 0;) {
    Sizes[I] = Total;
    Total = wire::bytesFieldSize(Total) + M.Enclosing[I].Before.size() +
            M.Enclosing[I].After.size();
  }
  if (Total <= MessageLimit)
    return Error::success();
  return failure(formatv(
      "the output would have {0:N} bytes, {1:N} of them for nodes; TensorFlow "
      "reads at most {2:N} from one file: {3}use fewer replicas per file, or "
      "move large constants into variables",
      Total, NodeBytes, MessageLimit,
      M.Enclosing.empty() ? "write several files with --shard-size, "
                          : "write a GraphDef with --shard-size, "));
}

Error ModuleWriter::planShards(uint64_t ShardSize) {
  constexpr size_t MaxShards = 99999;
  uint64_t Used = Others, Largest = Others;
  Shards.assign(1, 0);
  Nodes.sizes([&](uint64_t Bytes, uint64_t Times) {
    Largest = std::max(Largest, Bytes);
    while (Times > 0 && Shards.size() <= MaxShards) {
      uint64_t Fit = Used < ShardSize ? (ShardSize - Used) / Bytes : 0;
      if (Fit == 0 && Used == 0)
        Fit = 1; // a larger node alone in its file
      Fit = std::min(Fit, Times);
      Shards.back() += Fit * Bytes;
      NodeBytes += Fit * Bytes;
      Used += Fit * Bytes;
      Times -= Fit;
      if (Times > 0) {
        Shards.push_back(0);
        Used = 0;
      }
    }
  });
  if (Largest > MessageLimit)
    return failure(
        formatv("one node, or the graph without its nodes, would have {0:N} "
                "bytes; TensorFlow reads at most {1:N} from one file",
                Largest, MessageLimit));
  if (Shards.size() > MaxShards)
    return failure(formatv("--shard-size: the output would have more than "
                           "{0:N} files",
                           MaxShards));
  return Error::success();
}

Error ModuleWriter::held(uint64_t Promised, uint64_t Written) const {
  if (Promised == Written)
    return Error::success();
  return failure(formatv("internal error: {0} bytes were planned and {1} "
                         "were written",
                         Promised, Written));
}

Error ModuleWriter::write(ByteSink &Sink, unsigned Threads,
                          const std::function<void()> &Beside) {
  if (isIdentity()) {
    if (Beside)
      Beside();
    for (StringRef Part : M.Whole)
      Sink.write(Part);
    return Error::success();
  }
  CountingSink Counter(Sink);
  for (size_t I = 0; I < M.Enclosing.size(); ++I) {
    std::string Head;
    wire::appendTag(Head, 2, wire::Type::Bytes);
    wire::appendVarint(Head, Sizes[I]);
    Counter.write(M.Enclosing[I].Before);
    Counter.write(Head);
  }
  writeNodes(Nodes, NodeBytes, Threads, Beside, Counter);
  for (StringRef Field : M.graph().otherFields())
    Counter.write(Field);
  for (size_t I = M.Enclosing.size(); I-- > 0;)
    Counter.write(M.Enclosing[I].After);
  return Exact ? held(Total, Counter.Count) : Error::success();
}

/// Splits the bytes at the ends of the files.
class ModuleWriter::ShardSink final : public ByteSink {
public:
  ShardSink(const ModuleWriter &W, function_ref<ByteSink &()> Next)
      : W(W), Next(Next), To(&Next()), Left(W.Shards[0]) {}

  void write(StringRef Bytes) override {
    Count += Bytes.size();
    while (!Bytes.empty()) {
      while (Left == 0) {
        if (Index + 1 == W.Shards.size())
          return; // more bytes than planned: Count shows it
        end();
        To = &Next();
        Left = W.Shards[++Index];
      }
      StringRef Piece = Bytes.take_front(Left);
      To->write(Piece);
      Left -= Piece.size();
      Bytes = Bytes.drop_front(Piece.size());
    }
  }

  /// Ends a file. The first one also has the fields other than nodes.
  void end() {
    if (Index == 0)
      for (StringRef Field : W.M.graph().otherFields())
        To->write(Field);
  }

  uint64_t Count = 0;

private:
  const ModuleWriter &W;
  function_ref<ByteSink &()> Next;
  ByteSink *To;
  size_t Index = 0;
  uint64_t Left;
};

Error ModuleWriter::writeShards(function_ref<ByteSink &()> Next,
                                unsigned Threads,
                                const std::function<void()> &Beside) {
  ShardSink Sink(*this, Next);
  writeNodes(Nodes, NodeBytes, Threads, Beside, Sink);
  Sink.end();
  return held(NodeBytes, Sink.Count);
}

Error ModuleWriter::writeText(ByteSink &Sink) {
  std::string Whole;
  for (const Module::EnclosingMessage &Outer : llvm::reverse(M.Enclosing)) {
    std::string Field;
    wire::appendBytes(Field, 2, Whole);
    Whole = (Outer.Before + Field + Outer.After).str();
  }
  TextWriter Text(Sink, M.Kind, Whole);
  if (isIdentity()) {
    for (StringRef Part : M.GraphBytes)
      Text.write(Part);
  } else {
    Nodes.write(Text);
    for (StringRef Field : M.graph().otherFields())
      Text.write(Field);
  }
  return Text.finish();
}

Error writeModule(const Module &M, OutputFormat Format, ByteSink &Sink) {
  switch (Format) {
  case OutputFormat::None:
  case OutputFormat::Types:
  case OutputFormat::Dot:
    return Error::success();
  case OutputFormat::Binary: {
    ModuleWriter Writer(M);
    if (Error E = Writer.plan())
      return E;
    return Writer.write(Sink);
  }
  case OutputFormat::Text:
    return ModuleWriter(M).writeText(Sink);
  case OutputFormat::Lines: {
    StringSink Bytes;
    if (Error E = writeModule(M, OutputFormat::Binary, Bytes))
      return E;
    return writeLines(M.Kind, Bytes.Text, Sink);
  }
  case OutputFormat::Summary:
    return withWrittenGraph(
        M, [&](const Graph &G) { Sink.write(summaryText(G)); });
  }
  llvm_unreachable("all formats are handled");
}

Error withWrittenGraph(const Module &M, function_ref<void(const Graph &)> F) {
  if (!M.Lowered) {
    F(M.graph());
    return Error::success();
  }
  Graph Expanded;
  StringSink Bytes;
  M.Lowered->write(Bytes);
  if (Error E = Expanded.parse(Bytes.Text))
    return E;
  F(Expanded);
  return Error::success();
}

std::string shardPath(StringRef Path, size_t Index, size_t Count) {
  SmallString<256> Stem(Path);
  StringRef Extension = sys::path::extension(Path);
  Stem.truncate(Path.size() - Extension.size());
  return formatv("{0}-{1,0+5}-of-{2,0+5}{3}", Stem, Index, Count, Extension);
}

Expected<std::string> writeModule(const Module &M, StringRef Path,
                                  const WriteOptions &Options) {
  if (Options.Format != OutputFormat::Binary) {
    if (Options.Beside)
      Options.Beside();
    if (Error E = writeFile(Path, Options, [&](ByteSink &Sink) {
          return writeModule(M, Options.Format, Sink);
        }))
      return E;
    return Path.str();
  }
  ModuleWriter Writer(M);
  if (Options.ShardSize == 0) {
    if (Error E = Writer.plan())
      return E;
    if (Error E = writeFile(Path, Options, [&](ByteSink &Sink) {
          return Writer.write(Sink, Options.Threads, Options.Beside);
        }))
      return E;
    return Path.str();
  }
  if (Error E = Writer.planShards(Options.ShardSize))
    return E;
  std::vector<std::string> Paths;
  Paths.reserve(Writer.numShards());
  for (size_t I = 0; I < Writer.numShards(); ++I)
    Paths.push_back(shardPath(Path, I, Writer.numShards()));
  if (Error E =
          writeFiles(Paths, Options, [&](function_ref<ByteSink &()> Next) {
            return Writer.writeShards(Next, Options.Threads, Options.Beside);
          }))
    return E;
  return Paths.front();
}

} // namespace graft
