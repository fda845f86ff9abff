//===- lib/reduce/Reduce.cpp - the smallest interesting graph ---*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "lib/reduce/Reduce.h"

#include "lib/io/read/Read.h"
#include "lib/io/write/Write.h"
#include "lib/ops/Ops.h"
#include "lib/reduce/Parts.h"

#include "llvm/ADT/STLExtras.h"

#include <tuple>

using namespace llvm;

namespace graft {
namespace {

/// The size of a graph: nodes, nodes that are not placeholders, bytes.
using Size = std::tuple<size_t, size_t, size_t>;

Size sizeOf(const Graph &G, StringRef Bytes) {
  size_t Others = 0;
  for (NodeId N = 0; N < G.size(); ++N)
    Others += G.isLive(N) && !G.isOp(N, op::Placeholder);
  return {G.numLive(), Others, Bytes.size()};
}

class Reducer {
public:
  Reducer(Trials &Test, const ReduceOptions &O) : Test(Test), O(O) {}

  Expected<Reduced> run(StringRef Bytes);

private:
  /// Reads the best graph. This cannot fail, because this program wrote it.
  Module read() const {
    return cantFail(
        readModule(MemoryBuffer::getMemBuffer(Best, "reduced", false)));
  }
  Error shrink(const PartKind &Kind, bool &Found);
  Expected<bool> tryWithout(const PartKind &Kind, size_t Chunk, size_t Chunks,
                            size_t Count, size_t &Next);
  std::string write(StringRef Bytes, size_t Index) const;
  void say(const PartKind &Kind, size_t Chunk);

  Trials &Test;
  const ReduceOptions &O;
  std::string Best;
  Size SizeOfBest;
};

std::string Reducer::write(StringRef Bytes, size_t Index) const {
  std::string Path =
      O.Folder + "/" + std::to_string(Index) + (O.Text ? ".pbtxt" : ".pb");
  std::error_code Failed;
  raw_fd_ostream OS(Path, Failed);
  if (Failed)
    return "";
  OS << Bytes;
  return Path;
}

void Reducer::say(const PartKind &Kind, size_t Chunk) {
  if (O.Progress)
    *O.Progress << "\r\033[Kgraft-reduce: " << std::get<0>(SizeOfBest)
                << " nodes, " << Best.size() << " bytes; " << Test.count()
                << " graphs tried; without " << Chunk << " " << Kind.name();
}

/// Tries graphs from index \p Next on. Each graph leaves out \p Chunk of the
/// \p Count parts. The first interesting graph becomes the best graph, and
/// \p Next its index.
Expected<bool> Reducer::tryWithout(const PartKind &Kind, size_t Chunk,
                                   size_t Chunks, size_t Count, size_t &Next) {
  std::vector<std::string> Made(Chunks);
  auto Make = [&](size_t I) -> std::string {
    Module M = read();
    std::vector<bool> Gone(Count);
    for (size_t At = I * Chunk; At < std::min(Count, (I + 1) * Chunk); ++At)
      Gone[At] = true;
    Kind.leaveOut(M, Gone);
    StringSink Sink;
    if (Error E = writeModule(
            M, O.Text ? OutputFormat::Text : OutputFormat::Binary, Sink)) {
      consumeError(std::move(E));
      return "";
    }
    // A graph that is not smaller is no progress.
    if (sizeOf(M.graph(), Sink.Text) >= SizeOfBest)
      return "";
    Made[I] = std::move(Sink.Text);
    return write(Made[I], I % (2 * Test.jobs()));
  };
  auto Found = Test.first(Next, Chunks, Make, O.Stop);
  if (!Found)
    return Found.takeError();
  if (!*Found)
    return false;
  Best = std::move(Made[**Found]);
  Next = **Found;
  return true;
}

Error Reducer::shrink(const PartKind &Kind, bool &Any) {
  size_t Count = Kind.count(read());
  size_t Chunk = Count;
  while (Chunk > 0 && !O.Stop()) {
    size_t Next = 0;
    while (Count > 0 && !O.Stop()) {
      say(Kind, Chunk);
      size_t Chunks = (Count + Chunk - 1) / Chunk;
      if (Next >= Chunks)
        break;
      Expected<bool> Found = tryWithout(Kind, Chunk, Chunks, Count, Next);
      if (!Found)
        return Found.takeError();
      if (!*Found)
        break;
      Any = true;
      Module M = read();
      Count = Kind.count(M);
      SizeOfBest = sizeOf(M.graph(), Best);
    }
    Chunk = std::min((Chunk + 1) / 2, Chunk - 1);
    Chunk = std::min(Chunk, std::max<size_t>(Count, 1));
  }
  return Error::success();
}

Expected<Reduced> Reducer::run(StringRef Bytes) {
  Reduced Result;
  auto Read = readModule(MemoryBuffer::getMemBufferCopy(Bytes, "input"));
  if (!Read)
    return Read.takeError();
  Result.NodesBefore = Read->graph().numLive();
  StringSink Sink;
  if (Error E = writeModule(
          *Read, O.Text ? OutputFormat::Text : OutputFormat::Binary, Sink))
    return E;
  Best = std::move(Sink.Text);
  SizeOfBest = sizeOf(Read->graph(), Best);
  auto Whole = Test.first(0, 1, [&](size_t) { return write(Best, 0); }, O.Stop);
  if (!Whole)
    return Whole.takeError();
  if (!*Whole && !O.Stop())
    return createStringError("the test does not find the input interesting; "
                             "the test must end with status 0 on it");
  bool Any = true;
  while (Any && !O.Stop()) {
    Any = false;
    for (const auto &Kind : allPartKinds())
      if (Error E = shrink(*Kind, Any))
        return E;
  }
  if (O.Progress)
    *O.Progress << "\r\033[K";
  Result.Bytes = std::move(Best);
  Result.Nodes = std::get<0>(SizeOfBest);
  return Result;
}

} // namespace

Expected<Reduced> reduce(StringRef Bytes, Trials &Test,
                         const ReduceOptions &O) {
  return Reducer(Test, O).run(Bytes);
}

Error writeReduced(StringRef Bytes, StringRef Path) {
  auto M = readModule(MemoryBuffer::getMemBufferCopy(Bytes, "reduced"));
  if (!M)
    return M.takeError();
  WriteOptions Options;
  if (Path.ends_with(".pbtxt"))
    Options.Format = OutputFormat::Text;
  return writeModule(*M, Path, Options).takeError();
}

} // namespace graft
