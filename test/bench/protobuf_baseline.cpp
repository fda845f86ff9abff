//===- test/bench/protobuf_baseline.cpp - the yardsticks --------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
// Measures the cost of a graph file as protobuf messages: an arena, parse,
// serialize, and write as bytes or as text. Also measures the cost of its
// bytes: a copy in memory. Each process makes one measurement:
//
//     protobuf_baseline message FILE [OUTPUT]   parse + serialize (+ write)
//     protobuf_baseline text    FILE OUTPUT     parse + TextFormat::Print
//     protobuf_baseline memcpy  FILE            a copy into fresh memory
//
// prints `wall S user S sys S peak KIB nodes N` on one line.
//
//===----------------------------------------------------------------------===//

#include "tensorflow/core/framework/graph.pb.h"
#include "tensorflow/core/protobuf/meta_graph.pb.h"

#include "google/protobuf/arena.h"
#include "google/protobuf/io/zero_copy_stream_impl.h"
#include "google/protobuf/text_format.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/MemoryBuffer.h"

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <memory>
#include <string>
#include <sys/resource.h>
#include <unistd.h>

using namespace llvm;

namespace {

[[noreturn]] void fail(const char *What) {
  std::fprintf(stderr, "protobuf_baseline: %s\n", What);
  std::exit(1);
}

double seconds(const timeval &T) {
  return static_cast<double>(T.tv_sec) + static_cast<double>(T.tv_usec) * 1e-6;
}

void writeAll(int Fd, const char *Data, size_t Size) {
  while (Size > 0) {
    ssize_t Written = ::write(Fd, Data, std::min<size_t>(Size, 1 << 20));
    if (Written <= 0)
      fail("cannot write");
    Data += Written;
    Size -= static_cast<size_t>(Written);
  }
}

int create(const char *Path) {
  ::unlink(Path); // truncating an old file costs more than making a new one
  int Fd = ::open(Path, O_CREAT | O_TRUNC | O_WRONLY, 0644);
  if (Fd < 0)
    fail("cannot create the output");
  return Fd;
}

std::unique_ptr<MemoryBuffer> map(const char *Path) {
  auto Buffer = MemoryBuffer::getFile(Path, /*IsText=*/false,
                                      /*RequiresNullTerminator=*/false);
  if (!Buffer)
    fail("cannot read the file");
  return std::move(*Buffer);
}

/// Returns the message in \p Buffer. It is never destroyed: a program that only
/// rewrites a file just ends.
google::protobuf::Message *parse(const MemoryBuffer &Buffer, StringRef Path) {
  google::protobuf::ArenaOptions Options;
  Options.start_block_size = 1 << 16;
  Options.max_block_size = 1 << 20;
  auto *Arena = new google::protobuf::Arena(Options);
  google::protobuf::Message *M = nullptr;
  if (Path.ends_with(".meta"))
    M = google::protobuf::Arena::CreateMessage<tensorflow::MetaGraphDef>(Arena);
  else
    M = google::protobuf::Arena::CreateMessage<tensorflow::GraphDef>(Arena);
  if (!M->ParseFromArray(Buffer.getBufferStart(),
                         static_cast<int>(Buffer.getBufferSize())))
    fail("cannot parse the file");
  return M;
}

int nodes(const google::protobuf::Message &M, StringRef Path) {
  return Path.ends_with(".meta")
             ? static_cast<const tensorflow::MetaGraphDef &>(M)
                   .graph_def()
                   .node_size()
             : static_cast<const tensorflow::GraphDef &>(M).node_size();
}

int message(const char *Path, const char *Output) {
  auto Buffer = map(Path);
  google::protobuf::Message *M = parse(*Buffer, Path);
  size_t Size = M->ByteSizeLong();
  std::unique_ptr<char[]> Bytes(new char[Size]);
  M->SerializeWithCachedSizesToArray(reinterpret_cast<uint8_t *>(Bytes.get()));
  if (Size != Buffer->getBufferSize())
    fail("the message has another size than the file");
  if (Output) {
    int Fd = create(Output);
    writeAll(Fd, Bytes.get(), Size);
    ::close(Fd);
  }
  return nodes(*M, Path);
}

int text(const char *Path, const char *Output) {
  auto Buffer = map(Path);
  google::protobuf::Message *M = parse(*Buffer, Path);
  google::protobuf::io::FileOutputStream Stream(create(Output));
  if (!google::protobuf::TextFormat::Print(*M, &Stream) || !Stream.Close())
    fail("cannot print the message");
  return nodes(*M, Path);
}

void copyMemory(const char *Path) {
  auto Buffer = map(Path);
  std::unique_ptr<char[]> Bytes(new char[Buffer->getBufferSize()]);
  std::memcpy(Bytes.get(), Buffer->getBufferStart(), Buffer->getBufferSize());
  // Keeps the copy.
  asm volatile("" : : "r"(Bytes.get()) : "memory");
}

} // namespace

int main(int Argc, char **Argv) {
  StringRef Mode = Argc > 2 ? Argv[1] : "";
  const char *Output = Argc > 3 ? Argv[3] : nullptr;
  auto Start = std::chrono::steady_clock::now();
  int Nodes = 0;
  if (Mode == "message") {
    Nodes = message(Argv[2], Output);
  } else if (Mode == "text" && Output) {
    Nodes = text(Argv[2], Output);
  } else if (Mode == "memcpy") {
    copyMemory(Argv[2]);
  } else {
    std::fputs("usage: protobuf_baseline message|text|memcpy FILE [OUTPUT]\n",
               stderr);
    return 2;
  }
  std::chrono::duration<double> Wall = std::chrono::steady_clock::now() - Start;
  rusage Usage;
  getrusage(RUSAGE_SELF, &Usage);
  std::printf("wall %.4f user %.4f sys %.4f peak %ld nodes %d\n", Wall.count(),
              seconds(Usage.ru_utime), seconds(Usage.ru_stime), Usage.ru_maxrss,
              Nodes);
  std::fflush(stdout);
  // Ends without destroying the messages: see parse().
  _exit(0);
}
