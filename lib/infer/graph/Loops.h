//===- lib/infer/graph/Loops.h - frames, local handles, lists ---*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
// Finds the loop of version 1 control flow (Enter, Merge, LoopCond, Switch,
// NextIteration, Exit) that each node is in, and the tensor array or stack that
// an op uses. Ops and edges determine both: a node is in the frame of its
// inputs. A constant is in the frame of its control dependency.
//
// A TensorList is a value, not state: an op that writes an element returns a
// new list. Two lists that may hold the same element are in one class: one list
// is the other after a write, or a node merges both. The first op that made a
// list of the class stands for it, as a TensorArrayV3 stands for its array.
//
//===----------------------------------------------------------------------===//

#ifndef GRAFT_LIB_INFER_GRAPH_LOOPS_H
#define GRAFT_LIB_INFER_GRAPH_LOOPS_H

#include "lib/graph/Graph.h"

#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/SmallVector.h"

#include <memory>
#include <vector>

namespace graft {

/// Returns true if \p Op creates or uses a tensor array or a stack: state of
/// one step on one device. Each copy of a node has its own array or stack.
bool isLocalHandleOp(llvm::StringRef Op);

/// Returns true if \p Op adds an element to a stack or to a list. isPopOp()
/// returns true if \p Op removes the last element.
bool isPushOp(llvm::StringRef Op);
bool isPopOp(llvm::StringRef Op);

/// Returns the attribute of \p Op that states a shape: the shape of the
/// elements of its array, or of its result. Returns "" if there is none. The
/// shape may contain the row count of one replica.
llvm::StringRef statedShape(llvm::StringRef Op);

class LoopInfo {
public:
  /// Returns the loops, arrays and stacks of \p G, or null if its list of ops
  /// shows that it has none. \p Order is topologicalOrder(G). If it is empty
  /// and needed, it is computed.
  static std::unique_ptr<LoopInfo> find(const Graph &G,
                                        llvm::ArrayRef<NodeId> Order = {});

  /// Returns true if \p N runs once for each iteration of a loop, or is the
  /// Exit of one.
  bool isInLoop(NodeId N) const { return frameOf(N) != 0; }
  /// Returns true if all users of the outputs of \p N are inside a loop.
  /// Returns false for the Exit of an outermost loop.
  bool givesInside(NodeId N) const {
    uint32_t F = frameOf(N);
    return F != 0 && !(IsExit[N] && Frames[F].Parent == 0);
  }
  /// Returns the innermost loop that \p N is in, or 0. An Exit is in its loop.
  uint32_t frame(NodeId N) const { return frameOf(N); }
  /// Returns the loop around loop \p Frame, or 0.
  uint32_t around(uint32_t Frame) const { return Frames[Frame].Parent; }
  size_t numFrames() const { return Frames.size(); }
  /// Returns all nodes of the outermost loop that \p N is in. Passes make the
  /// same choice for all of them.
  llvm::ArrayRef<NodeId> nest(NodeId N) const {
    uint32_t F = frameOf(N);
    if (F == 0)
      return {};
    return Frames[Frames[F].Outermost].Nodes;
  }
  /// Returns the first node of each outermost loop.
  std::vector<NodeId> nests() const;
  /// Returns true if an iteration begins with \p N: a Merge that a
  /// NextIteration feeds.
  bool isLoopMerge(NodeId N) const {
    return N < IsLoopMerge.size() && IsLoopMerge[N];
  }

  /// Returns the node that created the tensor array or stack with the handle
  /// \p E, or the first list of the class of the list \p E. Returns NoNode if
  /// \p E is neither, or if a list of the class comes from an unknown op. If
  /// several TensorArrayGradV3 of one array and source share one gradient
  /// array, returns the first of them.
  NodeId handleOf(Endpoint E) const {
    // Output 1 of an op on arrays is the flow. Output 1 of an op on lists is an
    // element.
    if (E.isControl() || E.Node >= HandleOf.size() ||
        (E.Port != 0 && OnlyFirst[E.Node]))
      return NoNode;
    return HandleOf[E.Node];
  }
  /// Returns the arrays and stacks whose handles are operands of \p N.
  llvm::SmallVector<NodeId, 2> handlesUsedBy(const Graph &G, NodeId N) const;
  /// The ops that use the array or stack \p Handle, or that read or write the
  /// elements of lists of its class, in order.
  llvm::ArrayRef<NodeId> usersOf(NodeId Handle) const {
    auto It = Users.find(Handle);
    return It == Users.end() ? llvm::ArrayRef<NodeId>()
                             : llvm::ArrayRef(It->second);
  }
  /// All tensor arrays and stacks, and the first list of each class, in order.
  llvm::ArrayRef<NodeId> handles() const { return Handles; }
  /// Returns true if a push added each element of \p Handle: \p Handle is a
  /// stack, or an EmptyTensorList from which all lists of its class come.
  bool isStack(const Graph &G, NodeId Handle) const;

private:
  struct Frame {
    uint32_t Parent = 0;
    uint32_t Outermost = 0;
    std::vector<NodeId> Nodes; ///< Outermost: also those of inner frames.
  };
  LoopInfo(const Graph &G, llvm::ArrayRef<NodeId> Order);
  void joinLists(const Graph &G, llvm::ArrayRef<NodeId> Order,
                 llvm::ArrayRef<NodeId> Merges);
  uint32_t frameOf(NodeId N) const {
    return N < FrameOf.size() ? FrameOf[N] : 0;
  }
  uint32_t frameOfValue(NodeId N) const {
    uint32_t F = frameOf(N);
    return F != 0 && IsExit[N] ? Frames[F].Parent : F;
  }

  std::vector<Frame> Frames; ///< 0: outside of loops.
  std::vector<uint32_t> FrameOf;
  std::vector<bool> IsExit, IsLoopMerge;
  std::vector<bool> OnlyFirst; ///< Output 0 alone is a handle or a list.
  std::vector<NodeId> HandleOf;
  std::vector<NodeId> Handles;
  llvm::DenseSet<NodeId> Shared; ///< Lists of classes with several makers.
  llvm::DenseMap<NodeId, std::vector<NodeId>> Users;
};

} // namespace graft

#endif // GRAFT_LIB_INFER_GRAPH_LOOPS_H
