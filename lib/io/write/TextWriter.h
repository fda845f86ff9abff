//===- lib/io/write/TextWriter.h - graphs as text, in one pass --*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
// Prints wire bytes as protobuf's TextFormat prints the message that they hold,
// byte for byte, without making the message. What a message looks like is taken
// from its descriptor. A message in a form that is legal but unusual (fields
// out of order, a field that is not known, a string that is not ASCII) is given
// to TextFormat, and nothing around it.
//
//===----------------------------------------------------------------------===//

#ifndef GRAFT_LIB_IO_WRITE_TEXTWRITER_H
#define GRAFT_LIB_IO_WRITE_TEXTWRITER_H

#include "lib/io/Module.h"

#include <memory>
#include <string>

namespace graft {

class TextPrinter;

/// Takes the fields of a GraphDef in wire form, in chunks of any size, and
/// writes a message of some kind that holds this graph as text. Nodes are
/// printed as they come.
class TextWriter final : public ByteSink {
public:
  /// \p Message is the wire form of the whole message with an empty graph.
  TextWriter(ByteSink &To, InputKind Kind, llvm::StringRef Message);
  ~TextWriter() override;

  void write(llvm::StringRef Bytes) override;

  /// Writes what comes after the nodes. An error when the bytes taken are not
  /// what protobuf reads; what has been written is of no use then.
  llvm::Error finish();

private:
  size_t consume(llvm::StringRef Bytes);

  std::unique_ptr<TextPrinter> Printer;
  ByteSink &To;
  std::string Pending; ///< A field of which the end is missing.
  std::string Others;  ///< The graph's fields beside the nodes.
  std::string Tail;    ///< The text behind the graph.
  unsigned Level = 0;  ///< The level of the graph's fields.
  uint64_t Taken = 0;
  bool Valid = true;
};

} // namespace graft

#endif // GRAFT_LIB_IO_WRITE_TEXTWRITER_H
