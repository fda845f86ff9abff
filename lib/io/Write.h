//===- lib/io/Write.h - modules to files ------------------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
// Output is produced in chunks into a temporary file next to its destination,
// which replaces the destination when all is well. Whatever fails before that
// leaves the destination as it was.
//
//===----------------------------------------------------------------------===//

#ifndef GRAFT_LIB_IO_WRITE_H
#define GRAFT_LIB_IO_WRITE_H

#include "lib/io/Module.h"

#include <functional>

namespace graft {

enum class OutputFormat : uint8_t { Binary, Text, Summary, Dot, None };

struct WriteOptions {
  OutputFormat Format = OutputFormat::Binary;
  bool Force = false;          ///< Binary output on a terminal.
  bool WriteIfChanged = false; ///< Keep a file that has these bytes already.
  /// Looks at the finished file before it replaces the destination.
  std::function<llvm::Error(llvm::StringRef TemporaryFile)> Check;
};

/// Writes \p M in \p Format into \p Sink.
llvm::Error writeModule(const Module &M, OutputFormat Format, ByteSink &Sink);

/// Writes \p M to \p Path (`-`: standard output).
llvm::Error writeModule(const Module &M, llvm::StringRef Path,
                        const WriteOptions &Options);

/// Replaces \p Path (`-`: standard output) by what \p Produce writes.
llvm::Error writeFile(llvm::StringRef Path, const WriteOptions &Options,
                      llvm::function_ref<llvm::Error(ByteSink &)> Produce);

/// A rule in Make's syntax that says that \p Target was made from \p Inputs.
std::string depfileText(llvm::StringRef Target,
                        llvm::ArrayRef<std::string> Inputs);

/// Appends to a string.
class StringSink final : public ByteSink {
public:
  void write(llvm::StringRef Bytes) override {
    Text.append(Bytes.data(), Bytes.size());
  }
  std::string Text;
};

/// Writes the live nodes of a graph, those that no pass touched as they were
/// read.
class GraphNodeWriter final : public NodeWriter {
public:
  explicit GraphNodeWriter(const Graph &G) : G(G), Order(G.order()) {}
  uint64_t size() override;
  void write(ByteSink &Sink) override;

private:
  llvm::StringRef body(NodeId N);

  const Graph &G;
  std::vector<NodeId> Order;
  std::string Scratch;
};

} // namespace graft

#endif // GRAFT_LIB_IO_WRITE_H
