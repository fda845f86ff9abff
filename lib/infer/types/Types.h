//===- lib/infer/types/Types.h - replication types --------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
// The replication type of a tensor relates its local values, one on each
// replica, to its value in the single-device step, the *global* or *true*
// value:
//
//     true = N^-k * combine(local_0, ..., local_{N-1})
//
// Here combine picks any local value (Replicated), concatenates them along an
// axis (Sharded), or adds them, takes their minimum, ... (Partial). Varying
// means that no relation is known. graft finds gradients by these types, not by
// names or optimizers: a Partial value that is written to a variable must be
// reduced.
//
//===----------------------------------------------------------------------===//

#ifndef GRAFT_LIB_INFER_TYPES_TYPES_H
#define GRAFT_LIB_INFER_TYPES_TYPES_H

#include "lib/graph/Axis.h"
#include "lib/infer/graph/Variables.h"
#include "lib/infer/sizes/Dims.h"
#include "lib/ops/Ops.h"

#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/UniqueVector.h"

#include <algorithm>
#include <string>
#include <tuple>
#include <vector>

namespace graft {

enum class Layout : uint8_t { Replicated, Sharded, Partial, Varying };
enum class Combine : uint8_t { Sum, Min, Max, And, Or };
/// Returns the name that CombineAttr and remarks use, such as "sum".
llvm::StringRef combineName(Combine Op);

/// Assumptions of a type that the graph does not prove (a bit mask).
enum Assumption : uint8_t {
  AssumesLocalBatchNorm = 1, ///< Statistics are those of one replica's rows.
  AssumesRandomDraw = 2,     ///< Equal in distribution, not in value.
  AssumesReduction = 4,      ///< The user chose a reduction that is not proved.
};

/// A mark of Varying values: indices that are right only within the shard of a
/// replica, and values that belong to such indices. An op drops the mark unless
/// it moves or uses the indices or values.
enum class LocalIndices : uint8_t {
  None,
  /// Row numbers, counted from the replica's first row. To get the global
  /// value, add the global number of that row and concatenate along Axis.
  RowNumbers,
  RowIndices, ///< Tuples along the last axis that begin with a row number.
  IndexRows,  ///< RowIndices transposed: tuples along the first axis.
  /// A tensor that a batch norm keeps for its gradient op on the same replica.
  /// Only the kernel determines its size.
  ForGradient,
  // The replica's entries of a sparse tensor: those in the rows of its shard.
  // They have the order of the whole tensor, which need not be sorted by row.
  // Cause is the node that slices the tensor
  // (lib/program/forms/EntrySlice.h).
  EntryIndices, ///< Indices whose rows count from the replica's first row.
  EntryRows,    ///< The row numbers alone, from the replica's first row.
  EntryValues,  ///< Row i along axis 0 is computed from entry i.
  // A sparse matrix with the rows of the replica (accidental hits): the row
  // number of each element, another value of each element, or its pair of row
  // and column. Tensors with the same Cause describe one matrix and list its
  // elements in the same order.
  HitRows,
  HitValues,
  HitIndices,
  // The distinct values that a replica finds; Cause is the Unique node.
  // Distinct: each row is a function of one distinct value.
  // DistinctNumbers: each row along Axis is the index of its distinct value.
  // DistinctSums: each row, one for each distinct value, is a term of a sum
  // over the replicas.
  // The kinds with All: the same tensors of all replicas, concatenated.
  Distinct,
  DistinctNumbers,
  DistinctSums,
  AllDistinct,
  AllDistinctNumbers,
  AllDistinctSums,
};

struct ReplicationType {
  Layout L = Layout::Replicated;
  Combine Op = Combine::Sum; ///< The operation of Partial.
  LocalIndices Indices = LocalIndices::None;
  uint8_t Assumes = 0;
  bool Zero : 1 = false;     ///< All zeros: every K fits, see hasSizeOf().
  bool Symbolic : 1 = false; ///< An integer computed from local sizes.
  /// The global value of an unreplicated node, computed on the rows of all
  /// replicas. A per-replica user reads its shard of the value, or all of a
  /// value without a batch axis (TypeContext::ofWhole).
  bool Whole : 1 = false;
  uint8_t Axis = 0;   ///< The axis of Sharded, and of row numbers.
  int8_t K = 0;       ///< The scale exponent k.
  uint32_t Order = 0; ///< The order of Sharded rows or row numbers, see below.
  NodeId Cause = NoNode; ///< The node at which Varying began.

  /// Orders of rows. InOrder: that of the global value. AnyOrder: all rows are
  /// equal. Other numbers are concatenation orders (TypeAnalysis::OrderedPart):
  /// the concatenated local values are a permutation of the global rows.
  static constexpr uint32_t InOrder = 0, AnyOrder = ~0u;

  bool isOfHits() const {
    return Indices >= LocalIndices::HitRows &&
           Indices <= LocalIndices::HitIndices;
  }
  bool isOfEntries() const {
    return Indices >= LocalIndices::EntryIndices &&
           Indices <= LocalIndices::EntryValues;
  }
  bool isDistinct() const { return Indices >= LocalIndices::Distinct; }
  /// Returns true for row numbers of rows in the order of the global value.
  bool isRowNumbers() const {
    return Indices == LocalIndices::RowNumbers && Order == InOrder;
  }
  bool isRowIndices() const {
    return Indices == LocalIndices::RowIndices && Order == InOrder;
  }
  /// Returns true for row numbers of any kind, of rows in any order.
  bool countsRows() const {
    return Indices == LocalIndices::RowNumbers ||
           Indices == LocalIndices::RowIndices ||
           Indices == LocalIndices::IndexRows;
  }
  bool isJoined() const {
    return L == Layout::Sharded && Order != InOrder && Order != AnyOrder;
  }

  /// Returns true if these zeros have the local shape of a value of type \p X.
  /// Zeros fit every layout, but a shard of zeros has fewer rows than zeros for
  /// all rows.
  bool hasSizeOf(const ReplicationType &X) const {
    return isNothing() || X.isNothing() ||
           (isSharded() ? X.isSharded() && X.Axis == Axis : !X.isSharded());
  }
  /// Returns true for an absent contribution: zeros that match any shape.
  bool isNothing() const {
    return Zero && L == Layout::Replicated && Order == AnyOrder;
  }

  static ReplicationType nothing() {
    ReplicationType T;
    T.Zero = true;
    T.Order = AnyOrder;
    return T;
  }
  static ReplicationType replicated(int K = 0) {
    ReplicationType T;
    T.setPower(K);
    return T;
  }
  static ReplicationType sharded(int Axis, int K = 0) {
    ReplicationType T = replicated(K);
    T.L = Layout::Sharded;
    T.setAxis(Axis);
    return T;
  }
  static ReplicationType partial(int K, Combine Op = Combine::Sum) {
    ReplicationType T = replicated(K);
    T.L = Layout::Partial;
    T.Op = Op;
    return T;
  }
  static ReplicationType whole() {
    ReplicationType T;
    T.Whole = true;
    return T;
  }
  static ReplicationType varying(NodeId Cause) {
    ReplicationType T;
    T.L = Layout::Varying;
    T.Cause = Cause;
    return T;
  }
  /// Sets the scale exponent. An exponent out of range stays out of range
  /// (isPowerKnown), and the value becomes Varying.
  void setPower(int Power) {
    K = static_cast<int8_t>(std::clamp(Power, -MaxPower - 1, MaxPower + 1));
  }
  bool isPowerKnown() const { return K >= -MaxPower && K <= MaxPower; }
  static constexpr int MaxPower = 100;
  /// Sets the axis. An axis that no tensor can have becomes NoAxis, and the
  /// value becomes Varying.
  void setAxis(int64_t Number) {
    Axis =
        Number >= 0 && Number < MaxRank ? static_cast<uint8_t>(Number) : NoAxis;
  }
  bool isAxisKnown() const { return Axis != NoAxis; }
  static constexpr uint8_t NoAxis = UINT8_MAX;
  /// Returns true if the value is trivially replicated, and Zero, Whole and
  /// Assumes are not set. This holds for most tensors.
  bool isPlain() const { return isTrue() && !Zero && !Whole && Assumes == 0; }
  bool isTrue() const { return L == Layout::Replicated && K == 0 && !Symbolic; }
  bool isWholeSize() const { return Whole && Symbolic; }
  bool isReplicated() const { return L == Layout::Replicated; }
  bool isSharded() const { return L == Layout::Sharded; }
  bool isPartial() const { return L == Layout::Partial; }
  bool isVarying() const { return L == Layout::Varying; }
  /// Returns true if no rule relates the local values to the global value, not
  /// even as local indices.
  bool isUnrelated() const {
    return isVarying() && Indices == LocalIndices::None;
  }
  bool sameAs(const ReplicationType &O) const {
    return L == O.L && K == O.K && Symbolic == O.Symbolic &&
           (L != Layout::Sharded || (Axis == O.Axis && Order == O.Order)) &&
           (L != Layout::Partial || Op == O.Op);
  }
  bool operator==(const ReplicationType &O) const = default;
  /// Returns the type as remarks print it, such as "Sharded(0) k=1".
  std::string str() const;
};

static_assert(sizeof(ReplicationType) == 16);

/// A collective request: a node that must be inserted so that every rule holds.
struct Demand {
  enum KindTy : uint8_t {
    /// Tensor Source becomes Replicated k=0 for all its users. If Source is a
    /// concatenation of rows, its node then reads the rows of all replicas.
    Reduce,
    Gather, ///< Input Index is gathered along Axis, for User alone.
    Scale,  ///< Input Index is multiplied by N^Power, for User alone.
    Count,  ///< Input Index, a number of rows, is summed, for User alone.
  };
  KindTy Kind;
  Endpoint Source;
  NodeId User = NoNode;
  unsigned Index = 0;
  int Power = 0;
  unsigned Axis = 0;
  bool Uneven = false; ///< Gather: replicas may have unequally many rows.
  Combine Op = Combine::Sum;
  NodeId Because = NoNode; ///< The node whose rule asked.
};

/// Options of the choice of unreplicated nodes.
struct KeepOptions {
  llvm::ArrayRef<NodeId> Fetched; ///< Nodes whose value is fetched.
  llvm::ArrayRef<NodeId> Fed;     ///< Unreplicated so that users can feed them.
  llvm::ArrayRef<NodeId> Moved;   ///< Unreplicated so that less data is sent.
  /// The user lets a batch norm use the statistics of one replica's rows.
  bool LocalBatchNorm = false;
};

class TypeAnalysis {
public:
  /// Infers all types of \p G as if all demands were met, and collects demands,
  /// up to a fixpoint. \p Order is topologicalOrder(G). With \p KeepOnce, nodes
  /// whose value no rule relates become unreplicated and read the rows of all
  /// replicas.
  TypeAnalysis(const Graph &G, llvm::ArrayRef<NodeId> Order,
               const DimAnalysis &Dims, const VariableIndex &Vars,
               const KeepOptions *KeepOnce = nullptr);

  /// Nodes that must be unreplicated so that every value has a known relation
  /// to the global value.
  struct KeptNodes {
    std::vector<NodeId> Nodes; ///< In node order.
    /// The nodes of Nodes whose value no rule relates, each with the reason.
    std::vector<std::pair<NodeId, std::string>> Causes;
    /// Nodes that should be unreplicated but cannot be, each with the reason.
    std::vector<std::pair<NodeId, std::string>> Refused;
  };
  const KeptNodes &kept() const { return Kept; }

  /// Returns the type of a tensor after all demanded reductions.
  ReplicationType type(Endpoint E) const {
    ReplicationType Type = natural(E);
    return Type.isPartial() && Reduced[Dims.outputIndex(E)] ? reducedType(Type)
                                                            : Type;
  }
  /// Returns the type that the producer's rule infers, before a reduction of
  /// \p E.
  ReplicationType natural(Endpoint E) const {
    return Dims.validPort(E) ? Types[Dims.outputIndex(E)]
                             : ReplicationType::varying(E.Node);
  }
  /// Returns the type of \p E for a user that computes with its elements. If
  /// the elements are local sizes, the type tells how to combine their values.
  ReplicationType number(Endpoint E) const {
    ReplicationType Type = type(E);
    return Type.isJoined() || Type.Symbolic ? numberOf(E, Type) : Type;
  }

  /// Returns the k of each element of \p E, an integer tensor that is computed
  /// from local sizes. The global element is N^k times the local element.
  /// Returns nothing if a k is unknown.
  std::optional<llvm::SmallVector<int64_t, 4>> sizePowers(Endpoint E) const;

  /// Returns the axis along which a replica reads its shard of \p E, which is
  /// Whole. Returns -1 if each replica reads the whole tensor. Returns nothing
  /// if the axis is not known, if there are several, or if \p E holds sizes.
  std::optional<int> wholeAxis(Endpoint E) const;

  /// Returns the number of blocks if \p E consists, on every replica, of
  /// equally long blocks of rows in the order of the global value. Returns 0
  /// otherwise, or if the blocks are too many to join.
  unsigned blocks(Endpoint E) const;

  /// Returns the demands, sorted by kind and then by node. A finished program
  /// has none.
  const std::vector<Demand> &demands() const { return Demands; }

  /// Infers the types of new nodes, which meet the demands. Drops the demands.
  /// \p Order is the new topological order.
  void extend(llvm::ArrayRef<NodeId> Order);

  /// Returns the reason for a Varying result of \p N whose origin is \p N.
  std::string reason(NodeId N) const;

  /// Returns the inputs of updates with values that are not proved, as (node,
  /// input), in node order.
  const std::vector<std::pair<NodeId, unsigned>> &unprovedWrites() const {
    return Unproved;
  }
  /// Returns true if \p N reads or writes a variable with a non-default policy.
  /// Under the policy, \p N may write a value that is not the value of the
  /// single-device step.
  bool usesState(NodeId N) const { return anyStates() && stateOf(N); }
  /// Returns true if the policy of a variable makes \p Type Varying.
  bool isByPolicy(const ReplicationType &Type) const {
    return anyStates() && Type.isVarying() && Type.Cause != NoNode &&
           (States.contains(Type.Cause) || stateOf(Type.Cause));
  }
  /// Returns true if \p N or its input \p I, as in unprovedWrites(), uses a
  /// variable with a non-default policy.
  bool usesState(NodeId N, unsigned I) const {
    return anyStates() && (stateOf(N) || (I < Vars.update(G, N).NumVars &&
                                          stateOf(G.input(N, I))));
  }
  /// Returns true if some variable has a non-default policy.
  bool anyStates() const { return !States.empty(); }
  /// Returns true if \p N reads a variable whose copies are not aggregated. A
  /// run outside of the step must not read \p N, because it would get only the
  /// value of copy 0.
  bool readsUnaggregated(NodeId N) const {
    const VariableState *S = anyStates() ? stateOf(N) : nullptr;
    return S && S->OnRead && S->How == Aggregation::None &&
           (G.isOp(N, op::ReadVariableOp) || G.isOp(N, op::Identity));
  }
  /// Returns the nodes that introduce assumptions: (node, bits of Assumption).
  /// All of them reach a write or a result.
  const std::vector<std::pair<NodeId, uint8_t>> &assumptions() const {
    return Sources;
  }

  /// Returns the unreplicated ops with an effect that run under a predicate on
  /// which replicas may disagree. Omits ops with a per-replica operand. Each is
  /// a pair (node, predicate). The pairs are in node order.
  const std::vector<std::pair<NodeId, Endpoint>> &localEffects() const {
    return LocalEffects;
  }

  /// Returns the operands, as (node, input), that need a collective inside a
  /// loop, where a collective is impossible.
  const std::vector<std::pair<NodeId, unsigned>> &refusedInside() const {
    return RefusedInside;
  }

  /// Returns a predicate of \p N, if any, on which replicas may disagree.
  std::optional<Endpoint> localPredicate(NodeId N) const {
    auto It = LocalPredicates.find(N);
    return It == LocalPredicates.end() ? std::nullopt
                                       : std::optional(It->second);
  }

  /// Returns the nodes that find or send rows (trait::FindsRows, SendsRows) and
  /// have a user that cannot use local row indices. These nodes must select
  /// among the rows of all replicas. Each node is listed once.
  const std::vector<NodeId> &unusableNumbers() const { return Unusable; }

  /// Returns, in node order, the nodes whose integer was assumed to be a size
  /// of the single-device step (DimAnalysis::shared) but differs between
  /// replicas.
  std::vector<NodeId> differing() const;

  /// One part of a concatenation order: the order of its rows and their number.
  /// The number is Rows, or Size if only its size variable is known. An order
  /// of a single part is different. Without Size, it is the order of the Rows
  /// rows that a Where selected from rows in the order Order. With Size, it is
  /// that of Size blocks of Rows rows each.
  struct OrderedPart {
    uint32_t Order;
    DimId Size;
    Sym Rows;
    bool operator==(const OrderedPart &O) const = default;
    bool operator<(const OrderedPart &O) const {
      auto Key = [](const OrderedPart &P) {
        return std::tuple(P.Order, P.Size, P.Rows.C, P.Rows.B, P.Rows.R,
                          P.Rows.B == 0 ? 0 : P.Rows.Rows, P.Rows.Ragged);
      };
      return Key(*this) < Key(O);
    }
  };
  using OrderedParts = llvm::SmallVector<OrderedPart, 2>;

private:
  friend class TypeContext;
  friend class TypeInference;
  /// Implements number() for a type that is Symbolic or joined.
  ReplicationType numberOf(Endpoint E, ReplicationType Type) const;
  /// Returns the axis along which each replica has a shard of \p E. Returns -1
  /// if there is none, and -2 if the axis is not known or there are several.
  int localAxis(Endpoint E) const;
  static ReplicationType reducedType(ReplicationType Type) {
    ReplicationType Result = ReplicationType::replicated();
    Result.Assumes = Type.Assumes;
    return Result;
  }
  /// The state of a variable with a non-default policy: the joint type of its
  /// copies (VariableStates.cpp).
  struct VariableState {
    ReplicationType Type;
    Aggregation How = Aggregation::None;
    bool OnRead = false;
    NodeId Initial = NoNode; ///< The assignment of the initial value.
  };
  void findStates();
  /// Returns the state of the variable that is input 0 of \p N, or null.
  const VariableState *stateOf(NodeId N) const {
    if (G.node(N).NumData == 0)
      return nullptr;
    return stateOf(G.input(N, 0));
  }
  const VariableState *stateOf(Endpoint E) const {
    NodeId Var = Vars.variableOf(E);
    auto It = Var == NoNode ? States.end() : States.find(Var);
    return It == States.end() ? nullptr : &It->second;
  }

  const Graph &G;
  const DimAnalysis &Dims;
  const VariableIndex &Vars;
  llvm::DenseMap<NodeId, VariableState> States; ///< By variable.
  std::vector<ReplicationType> Types;           ///< By output: see natural().
  std::vector<bool> Reduced; ///< By output: a reduction is demanded.
  std::vector<Demand> Demands;
  llvm::UniqueVector<OrderedParts> Orders; ///< By ReplicationType::Order.
  std::vector<NodeId> Unusable;
  KeptNodes Kept;
  llvm::DenseMap<NodeId, std::string> Reasons;
  std::vector<std::pair<NodeId, unsigned>> Unproved;
  std::vector<std::pair<NodeId, uint8_t>> Sources;
  std::vector<std::pair<NodeId, Endpoint>> LocalEffects;
  std::vector<std::pair<NodeId, unsigned>> RefusedInside;
  llvm::DenseMap<NodeId, Endpoint> LocalPredicates; ///< By node.
};

} // namespace graft

#endif // GRAFT_LIB_INFER_TYPES_TYPES_H
