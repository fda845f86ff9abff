//===- lib/io/Module.cpp - a graph file in memory ---------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "lib/io/Module.h"

#include "tensorflow/core/protobuf/meta_graph.pb.h"

using namespace llvm;

namespace graft {

Module::Module() : G(std::make_unique<Graph>()) {}
Module::~Module() = default;
Module::Module(Module &&) noexcept = default;
Module &Module::operator=(Module &&) noexcept = default;

std::pair<unsigned, unsigned> Module::location(StringRef Node) const {
  return Lines.lookup(Node);
}

} // namespace graft
