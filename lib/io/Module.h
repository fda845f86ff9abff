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
/// (tag, length, body, repeated), in units that stand for a node of the program
/// each: none, one or many nodes of the output. A lowering that multiplies
/// nodes installs its own (lib/lower); nothing of the product is ever held in
/// memory.
class NodeWriter {
public:
  virtual ~NodeWriter() = default;
  virtual size_t units() const = 0;
  /// Calls \p F with the exact sizes of what all units produce, in order:
  /// \p Times pieces of \p Bytes, each one or several whole fields.
  virtual void
  sizes(llvm::function_ref<void(uint64_t Bytes, uint64_t Times)> F) const = 0;
  /// Writes units \p Begin to \p End. Several threads may be at it, each with
  /// units and a chunk of its own.
  virtual void write(size_t Begin, size_t End, OutputBuffer &Out) const = 0;

  uint64_t size() const;
  /// At least size(), found in less time: enough to know that a file will not
  /// be too large.
  virtual uint64_t sizeBound() const { return size(); }
  void write(ByteSink &Sink) const;
};

/// What a file holds. A GraphItem is read as the GraphDef in it.
enum class InputKind : uint8_t {
  Auto,
  GraphDef,
  MetaGraph,
  SavedModel,
  GraphItem
};

/// The gradient of a variable, as the input names it: a tensor, or
/// `indices;values;shape` for one of rows.
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

  /// The serialized GraphDef as read, in several parts when it was in shards.
  llvm::ArrayRef<llvm::StringRef> graphBytes() const { return GraphBytes; }

  /// Says that the graph as it is now is a normal form of what was read.
  void setNormalForm() { NormalRevision = G->revision(); }
  /// Whether the graph is what was read, or a normal form of it.
  bool isInput() const {
    return !G->modified() || G->revision() == NormalRevision;
  }
  /// Takes a snapshot of the graph for input(), unless there is one or the
  /// graph was edited already, but for its normal form.
  void keepInput();
  /// Says that the graph as it is now is that of input(), with variables in
  /// parts; a snapshot of it takes the place of the other one, if there is one.
  void setParts();
  /// The graph as it was read, its normal form, or that with variables in
  /// parts: what the certificate compares with. Null unless keepInput() came
  /// before the first edit.
  const InputGraph *input() const { return Input.get(); }

  /// The MetaGraphDef without its graph (collections, saver, signatures), or
  /// null when the input is a bare GraphDef.
  const tensorflow::MetaGraphDef *metaGraph() const { return Meta.get(); }
  /// The nodes of the tensors and operations that collections and signatures
  /// name.
  llvm::StringSet<> declaredNames() const;
  /// Gives the MetaGraphDef the collection \p Key, in the place of the one that
  /// it has under this key. Everything else stays byte for byte.
  void setCollection(llvm::StringRef Key, const tensorflow::CollectionDef &C);
  /// Puts \p Meta, a MetaGraphDef without a graph, around the graph, in the
  /// place of the one that is there.
  void setMetaGraph(tensorflow::MetaGraphDef Meta);

  /// The tags of each MetaGraphDef of a SavedModel, and which one this is.
  std::vector<std::string> MetaGraphTags;
  size_t MetaGraphIndex = 0;

  /// The gradients that a GraphItem names.
  std::vector<NamedGradient> Gradients;

  /// Line and column of an input node of a text file, or (0, 0).
  std::pair<unsigned, unsigned> location(llvm::StringRef Node) const;

  /// Names that the MetaGraphDef's collections mention and the input's graph
  /// does not have, as `collection: name`. TensorFlow accepts them, so the
  /// verifier does too.
  const llvm::StringSet<> &danglingNames() const { return Dangling; }

  /// Nothing was edited but bodies of functions, each of which was checked.
  bool OnlyFunctions = false;

  /// What analyses found, kept between passes while the graph is at the
  /// revision that they saw (lib/infer/facts/ProgramFacts.h).
  std::shared_ptr<void> Facts;
  uint64_t FactsRevision = 0;

  /// Further files that passes make, by path: written when the output is.
  std::vector<std::pair<std::string, std::string>> SideFiles;

  /// Set by a lowering: produces the nodes instead of the graph itself.
  std::unique_ptr<NodeWriter> Lowered;

private:
  friend class ModuleReader;
  friend class ModuleWriter;

  /// Bytes of an enclosing message before and after the field that is entered.
  /// That field has number 2 in a SavedModel and in a MetaGraphDef alike.
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
  /// What encloses it, outermost first.
  std::vector<EnclosingMessage> Enclosing;
  std::unique_ptr<tensorflow::MetaGraphDef> Meta;
  llvm::StringMap<std::pair<unsigned, unsigned>> Lines; ///< By input name.
  llvm::StringSet<> Dangling;
};

} // namespace graft

#endif // GRAFT_LIB_IO_MODULE_H
