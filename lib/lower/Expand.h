//===- lib/lower/Expand.h - in-graph replication ----------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
// Writes N copies of every per-replica node of a replicated program, one device
// each, and what the crossing ops stand for. Nothing of the product is held: a
// node is rendered once for copy 0, once as a template, and the other copies
// are the template with the digits of the replica patched in.
//
//===----------------------------------------------------------------------===//

#ifndef GRAFT_LIB_LOWER_EXPAND_H
#define GRAFT_LIB_LOWER_EXPAND_H

#include "lib/analysis/Program.h"
#include "lib/io/Module.h"

#include <string>
#include <vector>

namespace graft {

/// \p Device of a replica on the job and task of \p Of.
std::string mergeDevices(llvm::StringRef Of, llvm::StringRef Device);

class ReplicaExpander final : public NodeWriter {
public:
  /// \p G must be a finished program (expand-replicas checks it) and outlive
  /// this.
  ReplicaExpander(const Graph &G, Mesh Devices);

  uint64_t size() override;
  uint64_t sizeBound() override;
  void write(ByteSink &Sink) override;

  /// Name of copy \p Replica of \p N.
  std::string copyName(NodeId N, unsigned Replica) const;

private:
  /// Bytes under construction, with the places that depend on the replica.
  struct Rendering {
    std::string Bytes;
    std::vector<uint32_t> Digits;  ///< Where the replica's number stands.
    std::vector<uint32_t> Devices; ///< Where its device stands.
    void clear() {
      Bytes.clear();
      Digits.clear();
      Devices.clear();
    }
  };
  /// A node being rendered: which one, and for which copy (Once: none).
  struct Context {
    NodeId Node;
    unsigned Replica;
    bool PerReplica;
    Rendering *Out;
  };

  void renderOnce(NodeId N, Rendering &Out);
  void renderCopy(NodeId N, unsigned Replica, Rendering &Out);
  void renderSplit(NodeId N, Rendering &Out);
  void renderMerge(NodeId N, Rendering &Out);
  void renderScale(const Context &C);
  void renderConst(const Context &C, llvm::StringRef Suffix,
                   llvm::StringRef Value, unsigned Type);

  void finishNode(const Context &C, const Rendering &Body);
  void nameField(const Context &C, Rendering &Body, llvm::StringRef Suffix);
  void appendName(Rendering &Out, NodeId N, unsigned Replica) const;
  void inputField(Rendering &Body, NodeId N, unsigned Replica, uint32_t Port,
                  llvm::StringRef Suffix = "") const;
  void dataInput(const Context &C, Rendering &Body, Endpoint E) const;
  void controlInput(const Context &C, Rendering &Body, NodeId Source) const;
  void deviceField(const Context &C, Rendering &Body) const;
  void attrFields(const Context &C, Rendering &Body) const;
  void classAttr(const Context &C, Rendering &Body,
                 const AttrEntry &Entry) const;
  bool stampable(NodeId N) const;
  bool isSplit(NodeId N) const { return Program[G.node(N).Op] == Split; }
  llvm::StringRef deviceOf(NodeId N, unsigned Replica) const;

  /// Calls \p F(Bytes) for each piece of the output in order.
  template <typename Fn> void forEachPiece(Fn F, bool OnlySizes);

  const Graph &G;
  std::vector<std::string> Devices;
  std::vector<NodeId> Order;
  std::vector<bool> RandomOps;   ///< By op.
  std::vector<bool> VariableOps; ///< By op.
  std::vector<bool> Rewrites;    ///< By op: copies differ in attributes.
  /// By op: what the program's own ops are.
  enum ProgramOp : uint8_t { Plain, MeshNode, Split, Merge, Scale };
  std::vector<ProgramOp> Program;
  /// By device of the input and replica: the replica's device in that place.
  std::vector<std::vector<std::string>> DeviceTable;
};

} // namespace graft

#endif // GRAFT_LIB_LOWER_EXPAND_H
