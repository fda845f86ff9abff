//===- lib/io/write/TextWriter.h - graphs as text, in one pass --*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
// Prints wire bytes as the same text as protobuf's TextFormat, but from the
// descriptor and without a message object. TextFormat itself prints only legal
// but unusual messages (fields out of order, an unknown field, a string that is
// not ASCII).
//
//===----------------------------------------------------------------------===//

#ifndef GRAFT_LIB_IO_WRITE_TEXTWRITER_H
#define GRAFT_LIB_IO_WRITE_TEXTWRITER_H

#include "lib/io/Module.h"

#include <memory>
#include <string>

namespace graft {

class TextPrinter;

/// Receives the fields of a GraphDef in wire form, in chunks of any size, and
/// writes the text of a message that contains the graph. Prints each node as
/// soon as it is complete.
class TextWriter final : public ByteSink {
public:
  /// \p Message is the wire form of the whole message with an empty graph.
  TextWriter(ByteSink &To, InputKind Kind, llvm::StringRef Message);
  ~TextWriter() override;

  void write(llvm::StringRef Bytes) override;

  /// Writes the rest after the nodes. Returns an error if protobuf could not
  /// read the bytes; then the output is useless.
  llvm::Error finish();

private:
  size_t consume(llvm::StringRef Bytes);

  std::unique_ptr<TextPrinter> Printer;
  ByteSink &To;
  std::string Pending; ///< The beginning of an incomplete field.
  std::string Others;  ///< The graph's fields other than nodes.
  std::string Tail;    ///< The text after the graph.
  unsigned Level = 0;  ///< The level of the graph's fields.
  uint64_t Taken = 0;
  bool Valid = true;
};

} // namespace graft

#endif // GRAFT_LIB_IO_WRITE_TEXTWRITER_H
