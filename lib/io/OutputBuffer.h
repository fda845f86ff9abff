//===- lib/io/OutputBuffer.h - a flat buffer in front of a sink -----------===//
//
// SPDX-License-Identifier: Apache-2.0
//
// A buffer of output bytes. A writer renders each node in place, into space of
// known size. The sink receives pieces that are large enough for a system call.
//
//===----------------------------------------------------------------------===//

#ifndef GRAFT_LIB_IO_OUTPUTBUFFER_H
#define GRAFT_LIB_IO_OUTPUTBUFFER_H

#include "lib/io/Module.h"

#include <cstring>
#include <memory>

namespace graft {

class OutputBuffer {
public:
  /// The default capacity: it fits into the L2 cache beside the input.
  static constexpr size_t Capacity = 256 << 10;
  /// The capacity for threads that take turns. It is larger, because waking a
  /// thread costs as much as rendering some ten thousand bytes.
  static constexpr size_t SharedCapacity = 1 << 20;

  /// \p Size must be at least Capacity.
  explicit OutputBuffer(ByteSink &Sink, size_t Size = Capacity)
      : Sink(Sink), Buffer(new char[Size]), End(Buffer.get() + Size),
        At(Buffer.get()) {}

  /// Returns contiguous space for \p Size bytes, at most Capacity. May flush
  /// earlier bytes, which stay in the buffer until the caller writes to the
  /// space.
  char *room(size_t Size) {
    if (static_cast<size_t>(End - At) < Size)
      flush();
    return At;
  }
  /// Ends the writing into room(): \p To is the end of the written bytes.
  void filledTo(char *To) { At = To; }

  /// Appends any number of bytes.
  void write(llvm::StringRef Bytes) {
    if (Bytes.size() > Capacity / 8) {
      flush();
      Sink.write(Bytes);
      return;
    }
    if (Bytes.empty())
      return;
    std::memcpy(room(Bytes.size()), Bytes.data(), Bytes.size());
    At += Bytes.size();
  }

  void flush() {
    size_t Size = At - Buffer.get();
    At = Buffer.get();
    if (Size != 0)
      Sink.write({At, Size});
  }

private:
  ByteSink &Sink;
  std::unique_ptr<char[]> Buffer;
  char *End;
  char *At;
};

} // namespace graft

#endif // GRAFT_LIB_IO_OUTPUTBUFFER_H
