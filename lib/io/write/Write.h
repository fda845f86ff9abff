//===- lib/io/write/Write.h - modules to files ------------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
// Output is written in chunks to a temporary file next to its destination. The
// file replaces the destination if no error occurred. Otherwise the destination
// stays as it was.
//
//===----------------------------------------------------------------------===//

#ifndef GRAFT_LIB_IO_WRITE_WRITE_H
#define GRAFT_LIB_IO_WRITE_WRITE_H

#include "lib/io/Module.h"

#include <functional>

namespace graft {

enum class OutputFormat : uint8_t {
  Binary,
  Text,
  Lines, ///< The text form with a line for each node (Lines.h).
  Summary,
  Dot,
  Types, ///< The inferred types, which another component writes.
  None
};

struct WriteOptions {
  OutputFormat Format = OutputFormat::Binary;
  bool Force = false;          ///< Write binary output to a terminal.
  bool WriteIfChanged = false; ///< Keep a file that has the same bytes.
  unsigned Threads = 1;        ///< Threads that render binary output.
  /// The maximum size in bytes of each of several output files. If it is 0, the
  /// output is one file.
  uint64_t ShardSize = 0;
  /// Work that the first of several threads does before it renders. A single
  /// thread does this work before it writes any byte.
  std::function<void()> Beside;
  /// Checks the finished files before they replace the destination.
  std::function<llvm::Error(llvm::ArrayRef<std::string> TemporaryFiles)> Check;
};

/// The largest message that protobuf reads.
inline constexpr uint64_t MessageLimit = 0x7fffffff;

/// Writes \p M in \p Format into \p Sink.
llvm::Error writeModule(const Module &M, OutputFormat Format, ByteSink &Sink);

/// Calls \p F with the graph that is written for \p M.
llvm::Error withWrittenGraph(const Module &M,
                             llvm::function_ref<void(const Graph &)> F);

/// Writes \p M to \p Path (`-`: standard output). Returns the path of the file,
/// or of the first of several files. Sizes are known beforehand: if the output
/// is too large for a file, nothing is written.
llvm::Expected<std::string> writeModule(const Module &M, llvm::StringRef Path,
                                        const WriteOptions &Options);

/// Replaces \p Path (`-`: standard output) by the output of \p Produce.
llvm::Error writeFile(llvm::StringRef Path, const WriteOptions &Options,
                      llvm::function_ref<llvm::Error(ByteSink &)> Produce);

/// Replaces all of \p Paths or none. \p Next returns the sink of the next file.
llvm::Error writeFiles(
    llvm::ArrayRef<std::string> Paths, const WriteOptions &Options,
    llvm::function_ref<llvm::Error(llvm::function_ref<ByteSink &()> Next)>
        Produce);

/// Returns the name of file \p Index of \p Count: `STEM-00000-of-00003.EXT`.
std::string shardPath(llvm::StringRef Path, size_t Index, size_t Count);

/// Writes all \p Size bytes of \p Nodes in order with \p Threads threads. The
/// first thread calls \p Beside, if it is set, before it renders.
void writeNodes(const NodeWriter &Nodes, uint64_t Size, unsigned Threads,
                const std::function<void()> &Beside, ByteSink &Sink);

/// Returns a Make rule with which \p Target depends on \p Inputs, or an error
/// if the syntax cannot express a name.
llvm::Expected<std::string> depfileText(llvm::StringRef Target,
                                        llvm::ArrayRef<std::string> Inputs);

/// Appends to a string.
class StringSink final : public ByteSink {
public:
  void write(llvm::StringRef Bytes) override {
    Text.append(Bytes.data(), Bytes.size());
  }
  std::string Text;
};

/// Writes the live nodes of a graph. A node that no pass changed has the bytes
/// of the input.
class GraphNodeWriter final : public NodeWriter {
public:
  explicit GraphNodeWriter(const Graph &G) : G(G), Order(G.order()) {}
  size_t units() const override { return Order.size(); }
  void sizes(llvm::function_ref<void(uint64_t Bytes, uint64_t Times)> F)
      const override;
  void write(size_t Begin, size_t End, OutputBuffer &Out) const override;
  using NodeWriter::write;

private:
  llvm::StringRef body(NodeId N, std::string &Scratch) const;

  const Graph &G;
  std::vector<NodeId> Order;
};

} // namespace graft

#endif // GRAFT_LIB_IO_WRITE_WRITE_H
