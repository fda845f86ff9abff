//===- lib/io/write/WriteNodes.cpp - nodes from several threads -*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
// Each thread repeatedly renders the next block of units into its own chunk and
// writes the chunk when it is the block's turn. So any sink receives the bytes
// in order. The memory is one chunk per thread: a thread with a larger block
// waits for its turn when the chunk is full.
//
//===----------------------------------------------------------------------===//

#include "lib/io/OutputBuffer.h"
#include "lib/io/write/Write.h"

#include <algorithm>
#include <atomic>
#include <deque>
#include <pthread.h>

using namespace llvm;

namespace graft {
namespace {

/// A sink that waits for the turn of its block before it writes.
class OrderedSink final : public ByteSink {
public:
  OrderedSink(std::atomic<size_t> &Turn, ByteSink &To) : Turn(Turn), To(To) {}

  void write(StringRef Bytes) override {
    await();
    To.write(Bytes);
  }
  /// Passes the turn to the next block.
  void pass() {
    await();
    Turn.store(Block + 1, std::memory_order_release);
    Turn.notify_all();
  }

  size_t Block = 0;

private:
  void await() {
    for (size_t Now; (Now = Turn.load(std::memory_order_acquire)) != Block;)
      Turn.wait(Now);
  }

  std::atomic<size_t> &Turn;
  ByteSink &To;
};

/// A group of threads. If the system has no thread left, the group has fewer
/// threads than requested. (std::thread would end the program.)
class ThreadGroup {
public:
  ThreadGroup() = default;
  ThreadGroup(const ThreadGroup &) = delete;
  ThreadGroup &operator=(const ThreadGroup &) = delete;
  ~ThreadGroup() {
    for (pthread_t T : Ids)
      pthread_join(T, nullptr);
  }

  bool start(std::function<void()> Do) {
    Work.push_back(std::move(Do));
    pthread_t Id;
    if (pthread_create(&Id, nullptr, run, &Work.back()) != 0)
      return false;
    Ids.push_back(Id);
    return true;
  }
  bool none() const { return Ids.empty(); }

private:
  static void *run(void *Do) {
    (*static_cast<std::function<void()> *>(Do))();
    return nullptr;
  }

  std::deque<std::function<void()>> Work;
  std::vector<pthread_t> Ids;
};

} // namespace

void writeNodes(const NodeWriter &Nodes, uint64_t Size, unsigned Threads,
                const std::function<void()> &Beside, ByteSink &Sink) {
  // Most blocks should fit into a chunk, although node sizes differ.
  constexpr uint64_t BlockSize = OutputBuffer::SharedCapacity * 3 / 4;
  size_t Units = Nodes.units();
  size_t Blocks = std::clamp<uint64_t>(Size / BlockSize, 1, Units + 1);
  if (Threads > Blocks + (Beside ? 1 : 0))
    Threads = static_cast<unsigned>(Blocks + (Beside ? 1 : 0));
  if (Threads <= 1) {
    if (Beside)
      Beside();
    Nodes.write(Sink);
    return;
  }
  std::atomic<size_t> Turn = 0, Next = 0;
  auto Render = [&] {
    OrderedSink Ordered(Turn, Sink);
    OutputBuffer Out(Ordered, OutputBuffer::SharedCapacity);
    while ((Ordered.Block = Next.fetch_add(1)) < Blocks) {
      Nodes.write(Units * Ordered.Block / Blocks,
                  Units * (Ordered.Block + 1) / Blocks, Out);
      Out.flush();
      Ordered.pass();
    }
  };
  ThreadGroup Others;
  for (unsigned I = 1; I < Threads; ++I)
    if (!Others.start([&, First = I == 1] {
          if (First && Beside)
            Beside();
          Render();
        }))
      break;
  if (Others.none() && Beside)
    Beside();
  Render();
}

} // namespace graft
