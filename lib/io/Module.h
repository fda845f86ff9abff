//===- lib/io/Module.h - a graph file in memory -----------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
// A GraphDef, MetaGraphDef or SavedModel as read: the graph, which passes edit,
// and the enclosing messages, which are kept byte for byte.
//
//===----------------------------------------------------------------------===//

#ifndef GRAFT_LIB_IO_MODULE_H
#define GRAFT_LIB_IO_MODULE_H

#include "lib/graph/InputGraph.h"

#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/Support/MemoryBuffer.h"

#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace tensorflow {
class CollectionDef;
class MetaGraphDef;
} // namespace tensorflow

namespace graft {

/// Receives output bytes in order, in chunks of any size.
class ByteSink {
public:
  virtual ~ByteSink() = default;
  virtual void write(llvm::StringRef Bytes) = 0;
};

class OutputBuffer;

/// Produces the nodes of an output graph as `NodeDef` fields of a GraphDef
/// (tag, length, body, repeated). It works in units: a unit is one node of the
/// program and produces none, one or many nodes of the output. A lowering that
/// multiplies nodes installs its own writer (lib/lower), so the product is
/// never held in memory.
class NodeWriter {
public:
  virtual ~NodeWriter() = default;
  virtual size_t units() const = 0;
  /// Calls \p F, in order, with the exact sizes of the output of all units. A
  /// call F(Bytes, Times) means Times pieces of Bytes bytes. A piece is one or
  /// several whole fields.
  virtual void
  sizes(llvm::function_ref<void(uint64_t Bytes, uint64_t Times)> F) const = 0;
  /// Writes units \p Begin to \p End. Several threads may call it, each with
  /// its own units and chunk.
  virtual void write(size_t Begin, size_t End, OutputBuffer &Out) const = 0;

  uint64_t size() const;
  /// Returns an upper bound of size() that is faster to compute, to show that a
  /// file will not be too large.
  virtual uint64_t sizeBound() const { return size(); }
  void write(ByteSink &Sink) const;
};

/// The kind of a file. A GraphItem is read as the GraphDef in it.
enum class InputKind : uint8_t {
  Auto,
  GraphDef,
  MetaGraph,
  SavedModel,
  GraphItem
};

/// The gradient of a variable as the input names it: a tensor, or
/// `indices;values;shape` for a gradient of rows.
struct NamedGradient {
  std::string Tensors;
  std::string Variable;
};

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
  /// The files that were read: FileName, or all shards (lib/io/read/Shards.h).
  std::vector<std::string> Files;

  /// The serialized GraphDef as read, in several parts if it was in shards.
  llvm::ArrayRef<llvm::StringRef> graphBytes() const { return GraphBytes; }

  /// Declares the graph to be a normal form of the input.
  void setNormalForm() { NormalRevision = G->revision(); }
  /// Returns true if the graph is the input or a normal form of it.
  bool isInput() const {
    return !G->modified() || G->revision() == NormalRevision;
  }
  /// Takes a snapshot of the graph for input(), unless there is a snapshot or
  /// the graph is no longer a normal form of the input.
  void keepInput();
  /// Declares the graph to be input() with partitioned variables. A new
  /// snapshot replaces an existing one.
  void setParts();
  /// The snapshot with which the certificate compares: the input, its normal
  /// form, or the normal form with partitioned variables. Null unless
  /// keepInput() was called before the first edit.
  const InputGraph *input() const { return Input.get(); }

  /// The MetaGraphDef without its graph (collections, saver, signatures), or
  /// null if the input is a bare GraphDef.
  const tensorflow::MetaGraphDef *metaGraph() const { return Meta.get(); }
  /// Returns the nodes that collections and signatures name.
  llvm::StringSet<> declaredNames() const;
  /// Sets the collection \p Key of the MetaGraphDef. Everything else stays byte
  /// for byte.
  void setCollection(llvm::StringRef Key, const tensorflow::CollectionDef &C);
  /// Replaces the MetaGraphDef around the graph by \p Meta, which has no graph.
  void setMetaGraph(tensorflow::MetaGraphDef Meta);

  /// The tags of each MetaGraphDef of a SavedModel, and the index of this one.
  std::vector<std::string> MetaGraphTags;
  size_t MetaGraphIndex = 0;

  /// The gradients that a GraphItem names.
  std::vector<NamedGradient> Gradients;

  /// Returns the line and column of an input node of a text file, or (0, 0).
  std::pair<unsigned, unsigned> location(llvm::StringRef Node) const;

  /// Names in collections, as `collection: name`, that the graph of the input
  /// does not have. TensorFlow accepts these, so the verifier does too.
  const llvm::StringSet<> &danglingNames() const { return Dangling; }

  /// Set if only bodies of functions were edited. Each body was checked.
  bool OnlyFunctions = false;

  /// The results of analyses, kept between passes while the graph is at the
  /// revision for which they were inferred (lib/infer/facts/ProgramFacts.h).
  std::shared_ptr<void> Facts;
  uint64_t FactsRevision = 0;
  /// Set if Facts lack nodes that passes inserted after the inference
  /// (adoptFacts).
  bool FactsGrew = false;

  /// Further files of passes, by path, which are written with the output.
  std::vector<std::pair<std::string, std::string>> SideFiles;

  /// The writer of the output nodes, set by a lowering. Without it the nodes of
  /// the graph are written.
  std::unique_ptr<NodeWriter> Lowered;

private:
  friend class ModuleReader;
  friend class ModuleWriter;

  /// The bytes of an enclosing message before and after the field that contains
  /// the graph. That field has number 2 in SavedModel and MetaGraphDef.
  struct EnclosingMessage {
    llvm::StringRef Before;
    llvm::StringRef After;
  };

  std::unique_ptr<Graph> G;
  uint64_t NormalRevision = 0;
  std::unique_ptr<const InputGraph> Input;
  /// The mapped files, or the wire form of a text file.
  std::vector<std::unique_ptr<llvm::MemoryBuffer>> Buffers;
  std::vector<llvm::StringRef> Whole;      ///< Wire bytes of the whole files.
  std::vector<llvm::StringRef> GraphBytes; ///< The GraphDef inside of them.
  /// The messages that enclose the GraphDef, outermost first.
  std::vector<EnclosingMessage> Enclosing;
  std::unique_ptr<tensorflow::MetaGraphDef> Meta;
  llvm::StringMap<std::pair<unsigned, unsigned>> Lines; ///< By input name.
  llvm::StringSet<> Dangling;
};

} // namespace graft

#endif // GRAFT_LIB_IO_MODULE_H
