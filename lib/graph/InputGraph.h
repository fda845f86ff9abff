//===- lib/graph/InputGraph.h - the graph that was read ---------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#ifndef GRAFT_LIB_GRAPH_INPUTGRAPH_H
#define GRAFT_LIB_GRAPH_INPUTGRAPH_H

#include "lib/graph/Graph.h"
#include "lib/support/Wire.h"

namespace graft {

/// Reads a run of attributes (Node::AttrData) in the order of the file.
class AttrReader {
public:
  explicit AttrReader(llvm::StringRef Run)
      : Reader(Run), End(Run.data() + Run.size()) {}

  /// Moves to the next attribute. Returns false at the end.
  bool next(AttrEntry &Entry);
  /// Returns the bytes that are not read yet.
  llvm::StringRef rest() const {
    return {Reader.position(), static_cast<size_t>(End - Reader.position())};
  }
  /// Skips \p Size bytes, which must be whole fields.
  void skip(size_t Size) { Reader = wire::Reader(rest().drop_front(Size)); }

private:
  wire::Reader Reader;
  const char *End;
};

/// A snapshot of a graph: names, ops, attributes and inputs, which no later
/// edit changes. Edits allocate new bytes and never overwrite old bytes, so the
/// snapshot does not copy names and attributes. The graph must outlive the
/// snapshot.
class InputGraph {
public:
  explicit InputGraph(const Graph &G);

  /// One more than the largest id. Ids are those of the graph.
  NodeId size() const { return static_cast<NodeId>(Nodes.size()); }
  bool isLive(NodeId N) const { return Nodes[N].NameSize != 0; }

  llvm::StringRef name(NodeId N) const {
    return {Nodes[N].NameData, Nodes[N].NameSize};
  }
  /// Index for opName.
  uint32_t op(NodeId N) const { return Nodes[N].Op; }
  llvm::ArrayRef<llvm::StringRef> opNames() const { return OpNames; }

  llvm::ArrayRef<Endpoint> inputs(NodeId N) const {
    return {Edges.data() + Nodes[N].FirstEdge, Nodes[N].NumInputs};
  }
  /// The first inputs are data inputs.
  uint32_t numData(NodeId N) const { return Nodes[N].NumData; }

  /// The bytes of all attributes, as in Node::AttrData.
  llvm::StringRef attrBytes(NodeId N) const {
    return {Nodes[N].AttrData, Nodes[N].AttrSize};
  }
  /// Returns the raw AttrValue bytes of \p Key, or nothing.
  std::optional<llvm::StringRef> attr(NodeId N, llvm::StringRef Key) const;

private:
  struct Node {
    const char *NameData;
    const char *AttrData;
    uint32_t NameSize; ///< 0: dead.
    uint32_t AttrSize;
    uint32_t Op;
    uint32_t FirstEdge;
    uint32_t NumInputs;
    uint32_t NumData;
  };
  std::vector<Node> Nodes;
  std::vector<Endpoint> Edges;
  std::vector<llvm::StringRef> OpNames;
};

} // namespace graft

#endif // GRAFT_LIB_GRAPH_INPUTGRAPH_H
