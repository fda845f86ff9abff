//===- lib/io/Module.cpp - a graph file in memory ---------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "lib/io/Module.h"

#include "lib/io/Chunk.h"

#include "tensorflow/core/protobuf/meta_graph.pb.h"

using namespace llvm;

namespace graft {

Module::Module() : G(std::make_unique<Graph>()) {}
Module::~Module() = default;
Module::Module(Module &&) noexcept = default;
Module &Module::operator=(Module &&) noexcept = default;

void Module::keepInput() {
  if (!Input && !G->modified())
    Input = std::make_unique<const InputGraph>(*G);
}

std::pair<unsigned, unsigned> Module::location(StringRef Node) const {
  return Lines.lookup(Node);
}

uint64_t NodeWriter::size() const {
  uint64_t Total = 0;
  sizes([&](uint64_t Bytes, uint64_t Times) { Total += Bytes * Times; });
  return Total;
}

void NodeWriter::write(ByteSink &Sink) const {
  Chunk Out(Sink);
  write(0, units(), Out);
  Out.flush();
}

} // namespace graft
