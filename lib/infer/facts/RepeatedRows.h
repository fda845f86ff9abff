//===- lib/infer/facts/RepeatedRows.h - steps of any number of rows -------===//
//
// SPDX-License-Identifier: Apache-2.0
//
// If the replicas do not divide the rows of a step, the batch is repeated, and
// only n of the N replicas have different shards
// (lib/program/forms/RowRepeat.h). The types hold with n in place of N, as each
// replica then computes one of n shards. But a node that combines all N
// replicas has each shard N/n times:
//
//     node                        before            needs
//     x/split = _ToReplicas(x)    rows of x         the repeated rows
//     s = _FromReplicas(g) sum    N/n times the     the factor n/N. A mean
//                                 sum               (k=1) needs no factor
//     c = _FromReplicas(y) concat N/n times         the first n/N of the rows
//                                 the rows
//     v = _Scale(b) power=1       N times b         n times b
//
// Two feeds may have different n. The analysis finds for each node the split
// feeds whose n its values follow, and for each node of the table the feed
// whose n it needs. If an op combines rows of two feeds, it waits for a check
// that both have the same n. An op may also combine numbers, or terms of sums,
// of feeds that may have different numbers of rows. Then each operand is first
// multiplied by a power of the n/N of its feed, so that it follows N. A mean
// follows N already.
//
// If an unreplicated node computes a tensor with the rows of a feed, the split
// of this tensor uses the n of the feed.
//
//===----------------------------------------------------------------------===//

#ifndef GRAFT_LIB_INFER_FACTS_REPEATEDROWS_H
#define GRAFT_LIB_INFER_FACTS_REPEATEDROWS_H

#include "lib/infer/facts/ProgramFacts.h"
#include "lib/infer/graph/Conditions.h"
#include "lib/infer/graph/Loops.h"
#include "lib/program/forms/RowRepeat.h"

#include <string>
#include <vector>

namespace graft {

class RepeatedRows {
public:
  /// A tensor whose number of rows determines n.
  struct Source {
    NodeId Node = NoNode; ///< The split, or the `_Scale` of a fed number.
    RowRest Rest;
    Endpoint RestAt;            ///< The rows modulo N, if in the program.
    uint16_t Rows = 0;          ///< Sym::Rows of the split.
    int64_t Times = 1;          ///< Sym::C of the split.
    SizeOrigins::Origin Origin; ///< That of the rows of the split.
  };
  /// A node that must know n.
  struct Need {
    enum KindTy : uint8_t {
      Repeat, ///< Node, a split, must repeat the rows of its input.
      Keep,   ///< Node, a concatenation or a gather, must keep the first n/N of
              ///< its rows.
      Factor, ///< Node, a `_Scale`, must multiply by a power of n.
      Share,  ///< Output 0 of Node, or its input Index, must be multiplied by
              ///< a power of n/N.
      Modulo, ///< Node multiplies by the index of a replica, and must use the
              ///< index of its shard instead: the index modulo n.
      Equal,  ///< Node must wait for a check that two sources have the same n,
              ///< or that the n of one source is N.
    };
    KindTy Kind;
    NodeId Node;
    int Index;          ///< Share: -1 for the output, which is a sum.
    unsigned Source;    ///< The index of the source.
    unsigned Other = 0; ///< Equal: the index of the other source, or AllShards.
    int Power = 1;      ///< Share: the power of n/N.
    bool operator==(const Need &O) const = default;
  };
  static constexpr unsigned AllShards = ~0u;
  /// A node for which no n is right.
  struct Obstacle {
    NodeId Node;
    std::string Why;
  };

  /// If \p Plan is true, treats all splits of an unknown number of rows as
  /// repeated, and plans the needs of the program. Otherwise treats only splits
  /// with an operand `times` as repeated, and a need is an error.
  RepeatedRows(const Graph &G, const ProgramFacts &Facts, bool Plan);

  llvm::ArrayRef<Source> sources() const { return Sources; }
  llvm::ArrayRef<Need> needs() const { return Needs; }
  llvm::ArrayRef<Obstacle> obstacles() const { return Obstacles; }
  /// Returns c if the merged value \p Merge has, by definition, c rows along
  /// \p Axis for each row of the batch that source \p S counts. Returns nothing
  /// if that is not known.
  std::optional<int64_t> rowsOf(NodeId Merge, unsigned S, int64_t Axis) const;
  /// Returns true if the rows of \p Split are those of a source.
  bool repeats(NodeId Split) const { return SourceOf.contains(Split); }
  /// Returns true if a definition or a fact gives the row count of source \p S.
  bool hasNumber(unsigned S) const;
  /// Returns the source whose number of rows, modulo N, the program computes as
  /// \p Rest.
  std::optional<unsigned> sourceAt(Endpoint Rest) const;
  /// Returns true if \p N follows the n of source \p S.
  bool follows(NodeId N, unsigned S) const { return States[N] & only(S); }
  /// Returns true if \p N is a sum that is not yet multiplied by n/N.
  bool isRaw(NodeId N) const { return States[N] & Raw; }
  std::optional<int> shareOf(Endpoint E) const;

private:
  /// A set of sources, one bit for each, or one of the flags below. No bit: the
  /// value is that of the single-device step.
  using State = uint64_t;
  /// The types hold with N: all replicas have different shards, or a sum over
  /// the replicas is a mean.
  static constexpr State Each = 1;
  static constexpr State Raw = State(1) << 61; ///< Needs the factor n/N.
  /// Rows of a split that fails unless N divides them. Always with Each.
  static constexpr State Even = State(1) << 62;
  static constexpr unsigned MaxSources = 60;
  /// Returns the set of source \p S alone.
  static State only(unsigned S) { return State(2) << S; }

  std::optional<Source> readSource(NodeId N) const;
  std::optional<Source> planSource(NodeId N) const;
  void countRows(Source &S);
  bool isOwn(const Source &S) const;
  bool isComputed(const Source &S) const;
  std::optional<unsigned> feedOf(const Source &S);
  void addSource(const Source &S, std::optional<unsigned> Known);
  void findSources();
  bool isOpen(NodeId Split) const;
  State visit(NodeId N);
  State split(NodeId N);
  State exchange(NodeId N);
  State merge(NodeId N);
  State scale(NodeId N);
  State sumOf(NodeId N, State S, ReplicationType Type);
  State join(NodeId N);
  State joinSets(NodeId N);
  State resultOf(NodeId N, State S);
  State hold(NodeId N, State S);
  bool haveOneNumber(llvm::ArrayRef<State> Sets) const;
  bool meet(NodeId N, llvm::ArrayRef<State> Sets);
  bool isNumberOfShards(Endpoint E, State S, unsigned Type) const;
  bool waits(NodeId N, State A, State B) const;
  NodeId placeBefore(NodeId N, llvm::function_ref<bool(NodeId)> Waits) const;
  State stateOf(NodeId N, Endpoint E);
  unsigned sourceIn(State S) const;
  uint32_t frameOf(NodeId N) const;
  bool isUnder(Endpoint Value, Endpoint Extra);
  bool runsWith(Endpoint Extra, Endpoint Value);
  unsigned sourceFor(NodeId N, Endpoint Value, State S);
  void need(Need::KindTy Kind, NodeId N, int Index, State S, int Power = 1);
  bool isKnownBehind(NodeId Split, NodeId N);
  State leave(NodeId N);
  State refuse(NodeId N, const llvm::Twine &Why) {
    Obstacles.push_back({N, Why.str()});
    return 0;
  }
  bool isTrue(NodeId N) const;

  const Graph &G;
  const ProgramFacts &Facts;
  bool Plan;
  std::vector<Source> Sources;
  std::vector<State> States; ///< By node.
  /// By node: it depends on a tensor that a plan splits like a feed. Empty if
  /// there is no such tensor.
  std::vector<bool> OfJoined;
  /// By feed: the nodes that depend on it. See feedOf().
  llvm::DenseMap<NodeId, std::vector<bool>> Behind;
  std::vector<Need> Needs;
  std::vector<Obstacle> Obstacles;
  std::vector<uint8_t> Roles; ///< By op.
  llvm::DenseMap<NodeId, unsigned> SourceOf;
  std::unique_ptr<LoopInfo> Loops;
  std::unique_ptr<Conditions> When;
  llvm::DenseMap<NodeId, State> Held; ///< By array or stack.
};

} // namespace graft

#endif // GRAFT_LIB_INFER_FACTS_REPEATEDROWS_H
