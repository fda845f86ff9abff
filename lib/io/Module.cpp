//===- lib/io/Module.cpp - a graph file in memory ---------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "lib/io/Module.h"

#include "lib/io/OutputBuffer.h"
#include "lib/io/Serialize.h"
#include "lib/support/Wire.h"

#include "tensorflow/core/protobuf/meta_graph.pb.h"

#include "google/protobuf/io/coded_stream.h"
#include "google/protobuf/io/zero_copy_stream_impl_lite.h"

using namespace llvm;

namespace graft {

Module::Module() : G(std::make_unique<Graph>()) {}
Module::~Module() = default;
Module::Module(Module &&) noexcept = default;
Module &Module::operator=(Module &&) noexcept = default;

void Module::keepInput() {
  if (!Input && isInput())
    Input = std::make_unique<const InputGraph>(*G);
}

void Module::setParts() {
  if (Input)
    Input = std::make_unique<const InputGraph>(*G);
}

std::pair<unsigned, unsigned> Module::location(StringRef Node) const {
  return Lines.lookup(Node);
}

/// Returns true if \p F is the entry of \p Key in the map of collections.
static bool isCollection(const wire::Field &F, StringRef Key) {
  if (F.Number != tensorflow::MetaGraphDef::kCollectionDefFieldNumber)
    return false;
  wire::Reader Entry(F.Bytes);
  StringRef Found;
  for (wire::Field Part; Entry.next(Part);)
    if (Part.Number == 1)
      Found = Part.Bytes;
  return Found == Key;
}

StringSet<> Module::declaredNames() const {
  StringSet<> Names;
  if (!Meta)
    return Names;
  auto Declare = [&](StringRef Tensor) {
    Names.insert(Tensor.split(':').first);
  };
  for (const auto &[Key, Collection] : Meta->collection_def())
    for (const std::string &Name : Collection.node_list().value())
      Declare(Name);
  for (const auto &[Key, Signature] : Meta->signature_def())
    for (const auto &[Output, Info] : Signature.outputs())
      Declare(Info.name());
  return Names;
}

void Module::setCollection(StringRef Key, const tensorflow::CollectionDef &C) {
  (*Meta->mutable_collection_def())[Key.str()] = C;
  std::string Entry;
  wire::appendBytes(Entry, 1, Key);
  wire::appendBytes(Entry, 2, serialize(C));
  bool Placed = false;
  auto Replace = [&](StringRef &Part, bool IsLast) {
    std::string New;
    wire::Reader R(Part);
    for (wire::Field F; R.next(F);) {
      if (!isCollection(F, Key)) {
        New += F.Whole;
        continue;
      }
      if (!Placed)
        wire::appendBytes(New, F.Number, Entry);
      Placed = true;
    }
    if (IsLast && !Placed)
      wire::appendBytes(
          New, tensorflow::MetaGraphDef::kCollectionDefFieldNumber, Entry);
    Buffers.push_back(MemoryBuffer::getMemBufferCopy(New));
    Part = Buffers.back()->getBuffer();
  };
  Replace(Enclosing.back().Before, false);
  Replace(Enclosing.back().After, true);
}

void Module::setMetaGraph(tensorflow::MetaGraphDef New) {
  Buffers.push_back(MemoryBuffer::getMemBufferCopy(serialize(New)));
  Enclosing.back() = {Buffers.back()->getBuffer(), {}};
  *Meta = std::move(New);
}

uint64_t NodeWriter::size() const {
  uint64_t Total = 0;
  sizes([&](uint64_t Bytes, uint64_t Times) { Total += Bytes * Times; });
  return Total;
}

void NodeWriter::write(ByteSink &Sink) const {
  OutputBuffer Out(Sink);
  write(0, units(), Out);
  Out.flush();
}

} // namespace graft
