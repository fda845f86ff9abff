//===- lib/io/Write.cpp - modules to bytes ----------------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "lib/io/Write.h"

#include "lib/io/Print.h"
#include "lib/io/ProgramAttrs.h"
#include "lib/io/Text.h"
#include "lib/support/Wire.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FormatVariadic.h"

using namespace llvm;

namespace graft {
namespace {

Error failure(const Twine &Message) {
  return createStringError(inconvertibleErrorCode(), Message);
}

/// The largest message that protobuf reads.
constexpr uint64_t MessageLimit = 0x7fffffff;

/// Counts what passes through, to compare with what was promised.
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

StringRef GraphNodeWriter::body(NodeId N) {
  const Node &This = G.node(N);
  bool HasState = hasProgramState(This);
  // A node that was read with program attributes has its other attributes
  // outside of the bytes read; these bytes must not come back when a pass has
  // taken the state away.
  bool Intact =
      !This.AttrData || (This.AttrData >= This.RawData &&
                         This.AttrData <= This.RawData + This.RawSize);
  if (This.RawData && !(This.Flags & NF_Modified) && !HasState && Intact)
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

uint64_t GraphNodeWriter::size() {
  uint64_t Total = 0;
  for (NodeId N : Order)
    Total += wire::bytesFieldSize(body(N).size());
  return Total;
}

void GraphNodeWriter::write(ByteSink &Sink) {
  char Head[11] = {'\x0a'};
  for (NodeId N : Order) {
    StringRef Body = body(N);
    Sink.write({Head, static_cast<size_t>(
                          wire::putVarint(Head + 1, Body.size()) - Head)});
    Sink.write(Body);
  }
}

/// Writes the wire form of a module: what encloses the graph, the sizes that
/// the new graph gives it, the nodes, the graph's other fields.
class ModuleWriter {
public:
  explicit ModuleWriter(const Module &M)
      : M(M), Own(M.graph()),
        Nodes(M.Lowered ? *M.Lowered : static_cast<NodeWriter &>(Own)) {}

  Error write(ByteSink &Sink);
  static bool isIdentity(const Module &M) {
    return !M.Lowered && !M.graph().modified();
  }

private:
  const Module &M;
  GraphNodeWriter Own;
  NodeWriter &Nodes;
};

Error ModuleWriter::write(ByteSink &Sink) {
  if (isIdentity(M)) {
    Sink.write(M.Whole);
    return Error::success();
  }
  uint64_t Others = 0;
  for (StringRef Field : M.graph().otherFields())
    Others += Field.size();
  // The exact size is needed for the length of an enclosing field, or when the
  // file might be too large.
  bool Exact = !M.Around.empty() || Nodes.sizeBound() + Others > MessageLimit;
  uint64_t NodeBytes = Exact ? Nodes.size() : 0, Total = NodeBytes + Others;
  // Sizes from the inside out, then bytes from the outside in.
  SmallVector<uint64_t, 2> Sizes(M.Around.size());
  for (size_t I = M.Around.size(); I-- > 0;) {
    Sizes[I] = Total;
    Total = wire::bytesFieldSize(Total) + M.Around[I].Before.size() +
            M.Around[I].After.size();
  }
  if (Total > MessageLimit)
    return failure(formatv(
        "the output would have {0:N} bytes, {1:N} of them nodes; TensorFlow "
        "reads at most {2:N} from one file: shard the work (fewer replicas per "
        "file), or move large constants into variables",
        Total, NodeBytes, MessageLimit));
  CountingSink Counter(Sink);
  for (size_t I = 0; I < M.Around.size(); ++I) {
    std::string Head;
    wire::appendTag(Head, 2, wire::Type::Bytes);
    wire::appendVarint(Head, Sizes[I]);
    Counter.write(M.Around[I].Before);
    Counter.write(Head);
  }
  Nodes.write(Counter);
  for (StringRef Field : M.graph().otherFields())
    Counter.write(Field);
  for (size_t I = M.Around.size(); I-- > 0;)
    Counter.write(M.Around[I].After);
  if (Exact && Counter.Count != Total)
    return failure(formatv("internal error: {0} bytes were promised and {1} "
                           "were written",
                           Total, Counter.Count));
  return Error::success();
}

Error writeModule(const Module &M, OutputFormat Format, ByteSink &Sink) {
  switch (Format) {
  case OutputFormat::None:
    return Error::success();
  case OutputFormat::Binary:
    return ModuleWriter(M).write(Sink);
  case OutputFormat::Text: {
    StringSink Binary;
    if (Error E = ModuleWriter(M).write(Binary))
      return E;
    Expected<std::string> Text = binaryToText(Binary.Text, M.Kind);
    if (!Text)
      return Text.takeError();
    Sink.write(*Text);
    return Error::success();
  }
  case OutputFormat::Summary:
  case OutputFormat::Dot: {
    const Graph *G = &M.graph();
    Graph Expanded;
    StringSink Bytes;
    if (M.Lowered) {
      M.Lowered->write(Bytes);
      if (Error E = Expanded.parse(Bytes.Text))
        return E;
      G = &Expanded;
    }
    Sink.write(Format == OutputFormat::Dot ? dotText(*G) : summaryText(*G));
    return Error::success();
  }
  }
  llvm_unreachable("all formats are handled");
}

Error writeModule(const Module &M, StringRef Path,
                  const WriteOptions &Options) {
  return writeFile(Path, Options, [&](ByteSink &Sink) {
    return writeModule(M, Options.Format, Sink);
  });
}

} // namespace graft
