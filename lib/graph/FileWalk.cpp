//===- lib/graph/FileWalk.cpp - walks over a large mapped file --*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "lib/graph/FileWalk.h"

#include "llvm/Support/Process.h"

#include <sys/mman.h>

using namespace llvm;

namespace graft {
namespace {

constexpr size_t Window = 8 << 20;

/// Releases the whole pages between \p Begin and \p End. The mapping is private
/// and never written, so no data is lost.
void release(const char *Begin, const char *End) {
  size_t Page = sys::Process::getPageSizeEstimate();
  auto Behind = [&](const char *P) {
    return reinterpret_cast<uintptr_t>(P) % Page;
  };
  const char *First = Begin + (Page - Behind(Begin)) % Page;
  const char *Last = End - Behind(End);
  // This is advice: if the system ignores it, the memory stays in use.
  if (First < Last)
    ::madvise(const_cast<char *>(First), Last - First, MADV_DONTNEED);
}

} // namespace

void FileWalk::releaseAll(const Graph &G) {
  for (StringRef Part : G.largeParts())
    release(Part.begin(), Part.end());
}

void FileWalk::step(NodeId N) {
  // Skip 4096 nodes until the next step: a node has only some hundred bytes.
  Next = N + 4096;
  const char *At = G.node(N).RawData;
  if (!At)
    return;
  for (StringRef Part : G.largeParts()) {
    if (At < Part.begin() || At >= Part.end())
      continue;
    if (!From || From < Part.begin() || From > At)
      From = Part.begin();
    // Nodes just behind are often read again. Pages far behind may be resident
    // again, because the inputs of a node may be anywhere in the file.
    if (static_cast<size_t>(At - From) > 2 * Window) {
      release(Part.begin(), At - Window);
      From = At - Window;
    }
    return;
  }
}

} // namespace graft
