//===- test/unit/TextWriterTest.cpp - text as TextFormat has it -*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "lib/io/write/TextWriter.h"

#include "lib/io/read/Read.h"
#include "lib/io/write/Write.h"
#include "lib/support/Wire.h"

#include "google/protobuf/descriptor.pb.h"
#include "google/protobuf/text_format.h"
#include "tensorflow/core/protobuf/saved_model.pb.h"

#include "llvm/Support/FileSystem.h"

#include <catch2/catch.hpp>

#include <algorithm>
#include <optional>
#include <random>

using namespace graft;
using google::protobuf::Descriptor;
using google::protobuf::FieldDescriptor;

namespace {

using Random = std::mt19937;

uint64_t below(Random &R, uint64_t Limit) { return R() % Limit; }

/// Returns the text of TextFormat; nothing if protobuf cannot read \p Bytes.
template <typename Message>
std::optional<std::string> expected(llvm::StringRef Bytes) {
  Message M;
  std::string Text;
  if (!M.ParseFromArray(Bytes.data(), static_cast<int>(Bytes.size())) ||
      !google::protobuf::TextFormat::PrintToString(M, &Text))
    return std::nullopt;
  return Text;
}

/// Returns the text of a TextWriter that gets pieces of up to \p Piece bytes.
std::optional<std::string> written(llvm::StringRef Bytes, Random &R,
                                   size_t Piece) {
  StringSink Sink;
  TextWriter Writer(Sink, InputKind::GraphDef, "");
  while (!Bytes.empty()) {
    size_t Size = std::min<size_t>(Bytes.size(), 1 + below(R, Piece));
    Writer.write(Bytes.take_front(Size));
    Bytes = Bytes.drop_front(Size);
  }
  if (llvm::Error E = Writer.finish()) {
    llvm::consumeError(std::move(E));
    return std::nullopt;
  }
  return Sink.Text;
}

//===----------------------------------------------------------------------===//
// Messages that a descriptor allows, and some that it does not
//===----------------------------------------------------------------------===//

/// Generates messages; one of Oddity fields is in an unusual form.
struct Generator {
  Random &R;
  unsigned Oddity;

  bool odd() { return Oddity != 0 && below(R, Oddity) == 0; }

  std::string text(bool Binary) {
    static constexpr llvm::StringLiteral Plain =
        "abcdefghijklmnopqrstuvwxyz/_:0123456789 \"'\\\n\t\r\x7f\x01";
    std::string Out;
    for (uint64_t I = below(R, 24); I-- > 0;)
      Out += Binary && below(R, 2) ? static_cast<char>(R())
                                   : Plain[below(R, Plain.size())];
    if (odd())
      Out += below(R, 2) ? "\xc3\xa9" : "\xff";
    return Out;
  }

  uint64_t bits(FieldDescriptor::Type Type) {
    uint64_t Wide = uint64_t(R()) << 32 | R();
    if (Type == FieldDescriptor::TYPE_BOOL)
      return odd() ? Wide : below(R, 2);
    if (Type == FieldDescriptor::TYPE_ENUM)
      return odd() ? Wide : below(R, 28);
    if (Type == FieldDescriptor::TYPE_FLOAT && below(R, 2)) {
      float Some[] = {0.0f,         -0.0f,       0.1f,     1.0f / 3,
                      1e30f,        1e-40f,      -2.5f,    1e6f,
                      1234567.875f, 16777216.0f, 1e-7f,    3e38f,
                      NAN,          -INFINITY,   INFINITY, 123456.0f};
      return llvm::bit_cast<uint32_t>(Some[below(R, std::size(Some))]);
    }
    if (Type == FieldDescriptor::TYPE_DOUBLE && below(R, 2)) {
      double Some[] = {0.0, 0.1, 1.0 / 3, 1e300, 5e-324, 1e15, 1e17, -1e-5};
      return llvm::bit_cast<uint64_t>(Some[below(R, std::size(Some))]);
    }
    switch (below(R, 4)) {
    case 0:
      return 0;
    case 1:
      return below(R, 300);
    case 2:
      return static_cast<uint64_t>(-int64_t(below(R, 300)));
    default:
      return Wide;
    }
  }

  void number(std::string &Out, FieldDescriptor::Type Type) {
    uint64_t Bits = bits(Type);
    size_t Size = Type == FieldDescriptor::TYPE_FLOAT    ? 4
                  : Type == FieldDescriptor::TYPE_DOUBLE ? 8
                                                         : 0;
    if (Size == 0)
      return wire::appendVarint(Out, Bits);
    Out.append(reinterpret_cast<const char *>(&Bits), Size);
  }

  std::string field(const FieldDescriptor &F, unsigned Depth) {
    std::string Out;
    unsigned Number = F.number();
    if (odd())
      Number = 1 + below(R, 40);
    if (F.type() == FieldDescriptor::TYPE_MESSAGE) {
      wire::appendBytes(Out, Number, message(*F.message_type(), Depth + 1));
      return Out;
    }
    bool IsBytes = F.type() == FieldDescriptor::TYPE_BYTES;
    if (IsBytes || F.type() == FieldDescriptor::TYPE_STRING) {
      wire::appendBytes(Out, Number, text(IsBytes));
      return Out;
    }
    if (F.is_repeated() && below(R, 3)) {
      std::string Values;
      for (uint64_t I = below(R, 6); I-- > 0;)
        number(Values, F.type());
      wire::appendBytes(Out, Number, Values);
      return Out;
    }
    wire::appendTag(
        Out, Number,
        F.type() == FieldDescriptor::TYPE_FLOAT    ? wire::Type::Fixed32
        : F.type() == FieldDescriptor::TYPE_DOUBLE ? wire::Type::Fixed64
                                                   : wire::Type::Varint);
    number(Out, F.type());
    return Out;
  }

  std::string message(const Descriptor &Type, unsigned Depth) {
    if (Depth > 6)
      return "";
    std::vector<const FieldDescriptor *> Fields;
    for (int I = 0; I < Type.field_count(); ++I) {
      uint64_t Times = Type.options().map_entry() ? 1 : below(R, 3);
      if (Type.field(I)->is_repeated() && Times != 0)
        Times = below(R, Depth == 0 ? 8 : 4);
      if (Type.field_count() > 12)
        Times = Times != 0 && below(R, 3) == 0;
      if (Type.field(I)->real_containing_oneof())
        Times = below(R, Type.field_count()) == 0;
      Fields.insert(Fields.end(), Times, Type.field(I));
    }
    std::stable_sort(Fields.begin(), Fields.end(), [](auto *A, auto *B) {
      return A->number() < B->number();
    });
    if (odd())
      std::shuffle(Fields.begin(), Fields.end(), R);
    std::string Out;
    for (const FieldDescriptor *F : Fields)
      Out += field(*F, Depth);
    return Out;
  }
};

void compare(llvm::StringRef Bytes, Random &R, size_t Piece) {
  std::optional<std::string> Wanted = expected<tensorflow::GraphDef>(Bytes);
  std::optional<std::string> Got = written(Bytes, R, Piece);
  CHECK(Got.has_value() == Wanted.has_value());
  // Not in the assertion: Catch would print megabytes.
  bool Same = Got == Wanted;
  CHECK(Same);
}

std::string moduleText(const Module &M) {
  StringSink Sink;
  llvm::cantFail(writeModule(M, OutputFormat::Text, Sink));
  return Sink.Text;
}

} // namespace

TEST_CASE("random graphs are printed as TextFormat prints them", "[text]") {
  google::protobuf::LogSilencer Silence;
  Random R(7);
  size_t Readable = 0;
  for (unsigned Oddity : {0, 1000, 100, 20})
    for (unsigned I = 0; I < 150; ++I) {
      std::string Bytes =
          Generator{R, Oddity}.message(*tensorflow::GraphDef::descriptor(), 0);
      Readable += expected<tensorflow::GraphDef>(Bytes).has_value();
      compare(Bytes, R, I % 2 ? 64 : 4096);
    }
  CHECK(Readable > 300);
}

TEST_CASE("damaged graphs are printed or refused as TextFormat does",
          "[text]") {
  google::protobuf::LogSilencer Silence;
  Random R(11);
  auto Buffer = llvm::cantFail(openInput(GRAFT_TEST_INPUTS "/mlp.pb"));
  const std::string Whole = Buffer->getBuffer().str();
  compare(Whole, R, 1000);
  for (unsigned I = 0; I < 300; ++I) {
    // A part of the file keeps this fast; the cut is damage, too.
    std::string Bytes = Whole.substr(0, 2000 + below(R, 4000));
    for (uint64_t Flips = below(R, 4); Flips-- > 0;)
      Bytes[below(R, Bytes.size())] = static_cast<char>(R());
    compare(Bytes, R, 1000);
  }
}

TEST_CASE("the messages around a graph are printed around it", "[text]") {
  auto M = llvm::cantFail(readModule(GRAFT_TEST_INPUTS "/cnn_bn.meta"));
  auto Buffer = llvm::cantFail(openInput(GRAFT_TEST_INPUTS "/cnn_bn.meta"));
  std::string Meta = Buffer->getBuffer().str();
  bool Same = moduleText(M) == expected<tensorflow::MetaGraphDef>(Meta);
  CHECK(Same);

  // Fields out of order, a second MetaGraphDef, a name that looks like text.
  tensorflow::MetaGraphDef Head, Tail;
  Head.mutable_saver_def()->set_filename_tensor_name("\ngraph_def {\n}\n");
  Tail.mutable_meta_info_def()->add_tags("late");
  Head.AppendToString(&Meta);
  Tail.AppendToString(&Meta);
  M = llvm::cantFail(
      readModule(llvm::MemoryBuffer::getMemBufferCopy(Meta, "test"),
                 {.Kind = InputKind::MetaGraph}));
  Same = moduleText(M) == expected<tensorflow::MetaGraphDef>(Meta);
  CHECK(Same);
  std::string Saved;
  wire::appendInt(Saved, 1, 1);
  wire::appendBytes(Saved, 2, Meta);
  wire::appendBytes(Saved, 2, Meta);
  M = llvm::cantFail(
      readModule(llvm::MemoryBuffer::getMemBufferCopy(Saved, "test"),
                 {.Kind = InputKind::SavedModel}));
  Same = moduleText(M) == expected<tensorflow::SavedModel>(Saved);
  CHECK(Same);
}

TEST_CASE("messages nest as deep as protobuf lets them", "[text]") {
  google::protobuf::LogSilencer Silence;
  Random R(13);
  for (unsigned Depth : {10, 47, 48, 49, 50, 51, 98, 99, 100, 101, 102, 400}) {
    // A type with arguments: experimental_type of a node.
    std::string Type;
    for (unsigned I = 0; I < Depth; ++I) {
      std::string Outer;
      wire::appendBytes(Outer, 2, Type);
      Type = Outer;
    }
    // Functions as attributes of functions: three messages each.
    std::string Value;
    for (unsigned I = 0; I < Depth / 3; ++I) {
      std::string Entry, Function, Outer;
      wire::appendBytes(Entry, 1, "f");
      wire::appendBytes(Entry, 2, Value);
      wire::appendBytes(Function, 2, Entry);
      wire::appendBytes(Outer, 10, Function);
      Value = Outer;
    }
    std::string Entry, Node, Graph;
    wire::appendBytes(Entry, 1, "f");
    wire::appendBytes(Entry, 2, Value);
    wire::appendBytes(Node, 5, Entry);
    wire::appendBytes(Graph, 1, Node);
    compare(Graph, R, 100);
    Node.clear();
    Graph.clear();
    wire::appendBytes(Node, 7, Type);
    wire::appendBytes(Graph, 1, Node);
    compare(Graph, R, 100);
  }
}
