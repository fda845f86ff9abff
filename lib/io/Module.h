//===- lib/io/Module.h - a graph file in memory -----------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
// A GraphDef, MetaGraphDef or SavedModel as it was read: the graph, which
// passes edit, and everything around it, which is kept byte for byte.
//
//===----------------------------------------------------------------------===//

#ifndef GRAFT_LIB_IO_MODULE_H
#define GRAFT_LIB_IO_MODULE_H

#include "lib/graph/Graph.h"

#include "llvm/ADT/StringMap.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/Support/MemoryBuffer.h"

#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace tensorflow {
class MetaGraphDef;
} // namespace tensorflow

namespace graft {

/// Receives output bytes in order, in chunks of any size.
class ByteSink {
public:
  virtual ~ByteSink() = default;
  virtual void write(llvm::StringRef Bytes) = 0;
};

/// Produces the nodes of an output graph as `NodeDef` fields of a GraphDef
/// (tag, length, body, repeated). A lowering that multiplies nodes installs its
/// own (lib/lower); nothing of the product is ever held in memory.
class NodeWriter {
public:
  virtual ~NodeWriter() = default;
  /// The exact number of bytes that write() will produce.
  virtual uint64_t size() = 0;
  /// A bound on size() that costs little: enough to know that a file will not
  /// be too large.
  virtual uint64_t sizeBound() { return UINT64_MAX / 2; }
  virtual void write(ByteSink &Sink) = 0;
};

/// What a file holds.
enum class InputKind : uint8_t { Auto, GraphDef, MetaGraph, SavedModel };

class Module {
public:
  Module();
  ~Module();
  Module(Module &&) noexcept;
  Module &operator=(Module &&) noexcept;

  Graph &graph() { return *G; }
  const Graph &graph() const { return *G; }

  InputKind Kind = InputKind::GraphDef;
  bool Text = false;    ///< The input was text.
  std::string FileName; ///< For messages; "<stdin>" for a pipe.

  /// The serialized GraphDef as read: what the certificate compares with.
  llvm::StringRef graphBytes() const { return GraphBytes; }

  /// The MetaGraphDef without its graph (collections, saver, signatures), or
  /// null when the input is a bare GraphDef.
  const tensorflow::MetaGraphDef *metaGraph() const { return Meta.get(); }

  /// Line and column of an input node of a text file, or (0, 0).
  std::pair<unsigned, unsigned> location(llvm::StringRef Node) const;

  /// Names that the MetaGraphDef's collections mention and the input's graph
  /// does not have, as `collection: name`. TensorFlow accepts them, so the
  /// verifier does too.
  const llvm::StringSet<> &danglingNames() const { return Dangling; }

  /// What analyses found, kept between passes while the graph is at the
  /// revision that they saw (lib/analysis/Program.h).
  std::shared_ptr<void> Facts;
  uint64_t FactsRevision = 0;

  /// Set by a lowering: produces the nodes instead of the graph itself.
  std::unique_ptr<NodeWriter> Lowered;

private:
  friend class ModuleReader;
  friend class ModuleWriter;

  /// Bytes of an enclosing message before and after the field that is entered.
  /// That field has number 2 in a SavedModel and in a MetaGraphDef alike.
  struct Shell {
    llvm::StringRef Before;
    llvm::StringRef After;
  };

  std::unique_ptr<Graph> G;
  /// The mapped file, or the wire form of a text file.
  std::unique_ptr<llvm::MemoryBuffer> Buffer;
  llvm::StringRef Whole;      ///< Wire bytes of the whole file.
  llvm::StringRef GraphBytes; ///< The GraphDef inside of it.
  std::vector<Shell> Around;  ///< What encloses it, outermost first.
  std::unique_ptr<tensorflow::MetaGraphDef> Meta;
  llvm::StringMap<std::pair<unsigned, unsigned>> Lines; ///< By input name.
  llvm::StringSet<> Dangling;
};

} // namespace graft

#endif // GRAFT_LIB_IO_MODULE_H
