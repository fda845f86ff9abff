//===- lib/lower/expand/Expand.h - in-graph replication ---------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
// Writes N copies of every per-replica node of a replicated program, each on
// one device. Also writes the nodes that implement splits, merges and scales.
// The output is not held in memory. A node is rendered twice, as copy 0 and as
// a template. Each other copy is the template with the digits of its replica
// patched in.
//
//===----------------------------------------------------------------------===//

#ifndef GRAFT_LIB_LOWER_EXPAND_EXPAND_H
#define GRAFT_LIB_LOWER_EXPAND_EXPAND_H

#include "lib/io/Module.h"
#include "lib/program/Program.h"

#include <optional>
#include <string>
#include <vector>

namespace graft {

/// Returns the replica's \p Device, moved to the job and task of \p Of.
std::string mergeDevices(llvm::StringRef Of, llvm::StringRef Device);

class FastNodeWriter;

class ReplicaExpander final : public NodeWriter {
public:
  /// \p G must be a finished program (expand-replicas checks it) and must
  /// outlive the expander.
  ReplicaExpander(const Graph &G, Mesh Devices);

  size_t units() const override { return Order.size(); }
  void sizes(llvm::function_ref<void(uint64_t Bytes, uint64_t Times)> F)
      const override;
  uint64_t sizeBound() const override;
  void write(size_t Begin, size_t End, OutputBuffer &Out) const override;
  using NodeWriter::write;

  /// Calls \p F with the bytes of each copy of each per-replica node, and of
  /// each unreplicated node, in the order in which they are written. Callers
  /// that need not know which nodes are copies of one node use write(), which
  /// is faster.
  void forEachCopy(
      llvm::function_ref<void(NodeId Of, std::optional<unsigned> Replica,
                              llvm::StringRef Bytes)>
          F) const;

private:
  friend class NodeRenderer;
  friend class FastNodeWriter;
  friend struct CopyNaming;

  /// A replica's number as text.
  struct Number {
    explicit Number(unsigned Replica);
    char Text[11];
    uint8_t Size;
  };
  /// Consecutive copies, from 1 on, whose numbers and devices have equal
  /// lengths.
  struct Span {
    unsigned First, Count;
  };
  /// For one device name of the input graph, the device of each replica.
  struct DeviceRow {
    std::vector<std::string> Names;
    std::vector<Span> Spans;
    size_t Longest = 0;
    /// Set if the devices from replica 1 on differ only in the replica's number
    /// at the end.
    bool IsNumbered = false;
  };

  DeviceRow deviceRow(llvm::StringRef Of) const;

  /// Returns true if \p This has an output for each replica.
  bool isSplit(const Node &This) const {
    return Program[This.Op] == Split || Program[This.Op] == FanOut;
  }
  /// Returns true if there is one node for all replicas.
  bool isOnce(const Node &This) const {
    return This.Count == Copies::Once || isSplit(This);
  }
  llvm::StringRef deviceOf(NodeId N, unsigned Replica) const {
    const Node &This = G.node(N);
    if (This.Count == Copies::Once || This.Flags & NF_FixedDevice)
      return G.device(N);
    return Rows[This.Device].Names[Replica];
  }
  bool isAsRead(NodeId N) const;
  llvm::ArrayRef<Span> spansOf(const Node &This) const {
    return This.Flags & NF_FixedDevice ? Rows.back().Spans
                                       : Rows[This.Device].Spans;
  }

  void stamp(llvm::StringRef Model, size_t Head, Span S,
             llvm::ArrayRef<uint32_t> NumbersAt,
             llvm::ArrayRef<uint32_t> DevicesAt, const Node &This,
             OutputBuffer &Out) const;
  bool writeFast(FastNodeWriter &Pair, NodeId N, OutputBuffer &Out) const;

  /// The kind of an op that only programs have; Plain: an op of TensorFlow.
  enum ProgramOp : uint8_t {
    Plain,
    MeshNode,
    Split,
    Merge,
    Scale,
    FanIn, ///< The TPUReplicatedInput of all replicas.
    FanOut ///< The TPUReplicatedOutput of all replicas.
  };

  const Graph &G;
  std::vector<std::string> Devices;
  std::string Word, InnerWord; ///< `replica_` and `/replica_`.
  std::vector<NodeId> Order;
  std::vector<Number> Numbers;
  std::vector<bool> RandomOps;       ///< By op.
  std::vector<bool> Rewrites;        ///< By op: copies differ in attributes.
  std::vector<std::string> OpFields; ///< By op: field 2 of a node.
  std::vector<ProgramOp> Program;
  /// By device in the input graph. The last row has no names: it is for nodes
  /// with NF_FixedDevice.
  std::vector<DeviceRow> Rows;
};

} // namespace graft

#endif // GRAFT_LIB_LOWER_EXPAND_EXPAND_H
