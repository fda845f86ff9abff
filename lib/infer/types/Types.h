//===- lib/infer/types/Types.h - replication types --------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
// A type says, for a tensor of a replicated program, how the local values of
// the replicas relate to the value in the single-device step, the *global* or
// *true* value:
//
//     true = N^-k * combine(local_0, ..., local_{N-1})
//
// where combine picks any (Replicated), concatenates along an axis (Sharded),
// or adds, takes the minimum, ... (Partial). Varying means that no relation is
// known. These types find gradients, not names or optimizers: a Partial value
// that reaches a write must be reduced.
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

/// The assumptions of a type that the graph does not prove (a bit mask).
enum Assumption : uint8_t {
  AssumesLocalBatchNorm = 1, ///< Statistics are those of one replica's rows.
  AssumesRandomDraw = 2,     ///< Equal in distribution, not in value.
  AssumesReduction = 4,      ///< A reduction that was asked for, not proved.
};

/// A mark of Varying values: indices that are right within a replica, and
/// values that belong to them. Ops that neither move nor use them drop the
/// mark.
enum class LocalIndices : uint8_t {
  None,
  /// Row numbers. With the number of the replica's first row added, and
  /// concatenated along Axis, they are the global value.
  RowNumbers,
  RowIndices, ///< Tuples along the last axis that begin with a row number.
  IndexRows,  ///< RowIndices transposed: tuples along the first axis.
  /// A tensor that a batch norm keeps for its gradient. Only its kernel knows
  /// the size; it is right for the gradient on the same replica.
  ForGradient,
  // The entries of a sparse tensor in the rows of the replica, in the order of
  // the whole tensor, which need not be sorted by row. Cause is the node that
  // slices it (lib/program/forms/EntrySlice.h).
  EntryIndices, ///< Indices whose rows count from the replica's first row.
  EntryRows,    ///< The row numbers alone, counted from there.
  EntryValues,  ///< A row for each entry along axis 0, a function of the entry.
  // A sparse matrix with the rows of the replica: the row numbers of its
  // elements, other values of each element, and pairs of row and column.
  // Tensors with one Cause belong together and have its order.
  HitRows,
  HitValues,
  HitIndices,
  // The distinct values that a replica finds; Cause is the Unique. A row of
  // Distinct is a function of one distinct value. Each row along Axis has a
  // number, the index of its distinct value. Rows of Sums, one for each
  // distinct value, are terms of a sum over the replicas. The All kinds have
  // the rows of all replicas, one after the other.
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
  bool Zero : 1 = false;     ///< All zeros: has every k, see hasSizeOf().
  bool Symbolic : 1 = false; ///< An integer made of local sizes.
  /// The global value of an unreplicated node, computed on the rows of all
  /// replicas. A per-replica user reads it split, or as it is
  /// (TypeContext::operand).
  bool Whole : 1 = false;
  uint8_t Axis = 0;   ///< The axis of Sharded, and of row numbers.
  int8_t K = 0;       ///< The power of N, see above.
  uint32_t Order = 0; ///< The order of Sharded rows or row numbers, see below.
  NodeId Cause = NoNode; ///< The node at which Varying began.

  /// Orders of rows: that of the global value; any, since all rows are equal;
  /// the others are orders of parts that were joined along the axis
  /// (TypeAnalysis). The local values, concatenated, have the rows of the
  /// global value in another order then.
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

  /// Returns true if these zeros are as large as a value of type \p X. Zeros
  /// have every layout, but zeros for the rows of one replica are fewer than
  /// zeros for all rows.
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
  /// Sets the scale exponent. One out of range stays out of range
  /// (isPowerKnown), and the value becomes Varying.
  void setPower(int Power) {
    K = static_cast<int8_t>(std::clamp(Power, -MaxPower - 1, MaxPower + 1));
  }
  bool isPowerKnown() const { return K >= -MaxPower && K <= MaxPower; }
  static constexpr int MaxPower = 100;
  /// Sets the axis. One that no tensor has becomes NoAxis, and the value
  /// becomes Varying.
  void setAxis(int64_t Number) {
    Axis =
        Number >= 0 && Number < MaxRank ? static_cast<uint8_t>(Number) : NoAxis;
  }
  bool isAxisKnown() const { return Axis != NoAxis; }
  static constexpr uint8_t NoAxis = UINT8_MAX;
  /// Returns true for a global value without any mark: most of a graph.
  bool isPlain() const { return isTrue() && !Zero && !Whole && Assumes == 0; }
  bool isTrue() const { return L == Layout::Replicated && K == 0 && !Symbolic; }
  bool isWholeSize() const { return Whole && Symbolic; }
  bool isReplicated() const { return L == Layout::Replicated; }
  bool isSharded() const { return L == Layout::Sharded; }
  bool isPartial() const { return L == Layout::Partial; }
  bool isVarying() const { return L == Layout::Varying; }
  /// Returns true if no rule relates the local values, not even as indices of
  /// their own rows.
  bool isUnrelated() const {
    return isVarying() && Indices == LocalIndices::None;
  }
  bool sameAs(const ReplicationType &O) const {
    return L == O.L && K == O.K && Symbolic == O.Symbolic &&
           (L != Layout::Sharded || (Axis == O.Axis && Order == O.Order)) &&
           (L != Layout::Partial || Op == O.Op);
  }
  bool operator==(const ReplicationType &O) const = default;
  /// Returns the text in remarks, such as "Sharded(0) k=1".
  std::string str() const;
};

static_assert(sizeof(ReplicationType) == 16);

/// A collective request: a node that must be inserted so that every rule holds.
struct Demand {
  enum KindTy : uint8_t {
    /// Tensor Source becomes Replicated k=0 for all its users; a node that
    /// joins rows then reads the rows of all replicas.
    Reduce,
    Gather, ///< Input Index of User is gathered along Axis, for it alone.
    Scale,  ///< Input Index of User is multiplied by N^Power, for it alone.
    Count,  ///< Input Index of User, a number of rows, is added up, for it
            ///< alone.
  };
  KindTy Kind;
  Endpoint Source;
  NodeId User = NoNode;
  unsigned Index = 0;
  int Power = 0;
  unsigned Axis = 0;
  bool Uneven = false; ///< Gather: rows whose number may differ per replica.
  Combine Op = Combine::Sum;
  NodeId Because = NoNode; ///< The node whose rule asked.
};

/// The options for unreplicated nodes.
struct KeepOptions {
  llvm::ArrayRef<NodeId> Fetched; ///< Nodes whose value is wanted.
  llvm::ArrayRef<NodeId> Fed;     ///< Kept so that users can feed them.
  llvm::ArrayRef<NodeId> Moved;   ///< Kept since less is sent then.
  /// A batch norm takes the statistics of one replica's rows, as the user says.
  bool LocalBatchNorm = false;
};

class TypeAnalysis {
public:
  /// Infers all types of \p G. Demands are collected to a fixpoint and taken to
  /// be met. \p Order is topologicalOrder(G). With \p KeepOnce nodes that no
  /// rule relates are taken to be computed once, on the rows of all replicas.
  TypeAnalysis(const Graph &G, llvm::ArrayRef<NodeId> Order,
               const DimAnalysis &Dims, const VariableIndex &Vars,
               const KeepOptions *KeepOnce = nullptr);

  /// Nodes to be computed once so that everything is related.
  struct KeptNodes {
    std::vector<NodeId> Nodes; ///< In node order.
    /// The nodes among them that no rule related, and why.
    std::vector<std::pair<NodeId, std::string>> Causes;
    /// Nodes that would have to be unreplicated and cannot be, and why.
    std::vector<std::pair<NodeId, std::string>> Refused;
  };
  const KeptNodes &kept() const { return Kept; }

  /// Returns the type of a tensor, with the demanded reductions in place.
  ReplicationType type(Endpoint E) const {
    ReplicationType Type = natural(E);
    return Type.isPartial() && Reduced[Dims.outputIndex(E)] ? reducedType(Type)
                                                            : Type;
  }
  /// Returns the type that the rule of the producer gives, without a reduction
  /// of \p E.
  ReplicationType natural(Endpoint E) const {
    return Dims.validPort(E) ? Types[Dims.outputIndex(E)]
                             : ReplicationType::varying(E.Node);
  }
  /// Returns the type of \p E used as a number: local sizes become values.
  ReplicationType number(Endpoint E) const {
    ReplicationType Type = type(E);
    return Type.isJoined() || Type.Symbolic ? numberOf(E, Type) : Type;
  }

  /// Returns, for integers that are made of local sizes, the power of N by
  /// which each global element exceeds the local one. None if that is not
  /// known.
  std::optional<llvm::SmallVector<int64_t, 4>> sizePowers(Endpoint E) const;

  /// Returns the axis along which a replica has rows of \p E, which is Whole;
  /// -1 if each replica has all of it. Returns nothing if that is not known, if
  /// there are several axes, or if \p E holds sizes.
  std::optional<int> wholeAxis(Endpoint E) const;

  /// Returns the number of equal blocks of rows that every replica has, each in
  /// the order of the global value. Returns 0 for any other value, and for too
  /// many blocks to join.
  unsigned blocks(Endpoint E) const;

  /// Returns the demands by kind, and by node within a kind; empty for a
  /// finished program.
  const std::vector<Demand> &demands() const { return Demands; }

  /// Infers the types of nodes that are new and forgets the demands, which are
  /// met now. \p Order is the new topological order.
  void extend(llvm::ArrayRef<NodeId> Order);

  /// Returns why \p N is Varying, if that began at \p N.
  std::string reason(NodeId N) const;

  /// Returns the inputs of updates whose value no rule could relate: (node,
  /// input), in node order.
  const std::vector<std::pair<NodeId, unsigned>> &unprovedWrites() const {
    return Unproved;
  }
  /// Returns true if \p N reads or writes a variable that has a policy of its
  /// own. It may write what the policy asks for, even if that is not the value
  /// of the single-device step.
  bool usesState(NodeId N) const { return anyStates() && stateOf(N); }
  /// Returns true if \p Type is Varying because a variable's policy says so.
  bool isByPolicy(const ReplicationType &Type) const {
    return anyStates() && Type.isVarying() && Type.Cause != NoNode &&
           (States.contains(Type.Cause) || stateOf(Type.Cause));
  }
  /// Returns true if \p N or its input \p I, as in unprovedWrites(), uses such
  /// a variable.
  bool usesState(NodeId N, unsigned I) const {
    return anyStates() && (stateOf(N) || (I < Vars.update(G, N).NumVars &&
                                          stateOf(G.input(N, I))));
  }
  /// Returns true if a variable has a policy of its own.
  bool anyStates() const { return !States.empty(); }
  /// Returns true if \p N reads a variable whose copies are not aggregated: the
  /// name has the value of copy 0, which no run outside of the step may read.
  bool readsUnaggregated(NodeId N) const {
    const VariableState *S = anyStates() ? stateOf(N) : nullptr;
    return S && S->OnRead && S->How == Aggregation::None &&
           (G.isOp(N, op::ReadVariableOp) || G.isOp(N, op::Identity));
  }
  /// Returns the nodes that introduce assumptions: (node, bits). All of them
  /// reach a write or a result, or they would not be there.
  const std::vector<std::pair<NodeId, uint8_t>> &assumptions() const {
    return Sources;
  }

  /// Returns the unreplicated ops with an effect that run under a predicate on
  /// which replicas may disagree, although no operand shows it: (node,
  /// predicate), in node order.
  const std::vector<std::pair<NodeId, Endpoint>> &localEffects() const {
    return LocalEffects;
  }

  /// Returns the operands (node, input) that replicas would have to exchange
  /// inside a loop, which they cannot.
  const std::vector<std::pair<NodeId, unsigned>> &refusedInside() const {
    return RefusedInside;
  }

  /// Returns the predicate that \p N runs under and on which replicas may
  /// disagree, if any.
  std::optional<Endpoint> localPredicate(NodeId N) const {
    auto It = LocalPredicates.find(N);
    return It == LocalPredicates.end() ? std::nullopt
                                       : std::optional(It->second);
  }

  /// Returns the nodes, each once, that find or send rows whose per-replica
  /// numbers some user cannot use. They must select among the rows of all
  /// replicas.
  const std::vector<NodeId> &unusableNumbers() const { return Unusable; }

  /// Returns the nodes, in order, whose integer was taken to be a size of the
  /// single-device step (DimAnalysis::shared) but is another one on replicas.
  std::vector<NodeId> differing() const;

  /// One part of an order of rows: its own order, and its number of rows, as
  /// Rows or, if it is only known to be one size, as Size. A single part has
  /// another meaning: the rows of Order that the Where with row count Rows
  /// selects or, with Size and Rows, Size blocks of Rows rows each.
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
  /// Returns the axis along which each replica has a share of \p E; -1: none;
  /// -2: not known, or several.
  int localAxis(Endpoint E) const;
  static ReplicationType reducedType(ReplicationType Type) {
    ReplicationType Result = ReplicationType::replicated();
    Result.Assumes = Type.Assumes;
    return Result;
  }
  /// The joint type of the copies of a variable with a policy of its own
  /// (VariableStates.cpp).
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
  std::vector<ReplicationType> Types; ///< By output, of the producer's rule.
  std::vector<bool> Reduced;          ///< By output: a reduction is demanded.
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
