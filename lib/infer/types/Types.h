//===- lib/infer/types/Types.h - replication types --------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
// For every tensor of a replicated program, how the tensors of the replicas
// relate to the tensor of the single-device step, the *true* value:
//
//     true = N^-k * combine(local_0, ..., local_{N-1})
//
// where combine picks any (Replicated), concatenates along an axis (Sharded),
// or adds, takes the minimum, ... (Partial). Varying means that no relation is
// known. Gradients are found by these types, not by names or optimizers: what
// reaches a write and is Partial must be reduced.
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
/// As in CombineAttr and in remarks: "sum".
llvm::StringRef combineName(Combine Op);

/// What a type rests on besides the graph (a bit mask).
enum Assumption : uint8_t {
  AssumesLocalBatchNorm = 1, ///< Statistics of one replica's rows.
  AssumesRandomDraw = 2,     ///< Equal in distribution, not in value.
  AssumesReduction = 4,      ///< A reduction that was asked for, not proved.
};

/// Of what is Varying: indices that are right within a replica, and what
/// belongs to them. Any other op than those that move or use them drops the
/// mark.
enum class LocalIndices : uint8_t {
  None,
  /// Numbers of rows. Plus where the rows of the replica begin, and
  /// concatenated along Axis, they are the true value.
  RowNumbers,
  RowIndices, ///< The same of the first of the last axis only.
  IndexRows,  ///< Those transposed: the first of the first axis.
  /// A tensor that a batch norm keeps for its gradient. Only its kernel knows
  /// the size; it is right for the gradient on the same replica.
  ForGradient,
  // The entries of a sparse tensor in the rows of the replica, in the order of
  // the whole; which may go from row to row and back. Cause is what slices it
  // (lib/program/forms/EntrySlice.h).
  EntryIndices, ///< Those of the rows are counted from the replica's first.
  EntryRows,    ///< The rows alone, counted so.
  EntryValues,  ///< A row for each along axis 0, a function of what it is.
  // A sparse matrix with the rows of the replica: the rows of its elements,
  // what else there is of each, and rows before columns. What has one Cause
  // belongs together, in its order.
  HitRows,
  HitValues,
  HitIndices,
  // What a replica finds without repetitions, Cause is the Unique. A row of
  // Distinct is a function of the value that it stands for. Rows of Sums, for
  // those values, are terms of a sum over the replicas. Numbers say which of
  // the values each row along Axis has. All are those of all replicas, one
  // after the other.
  Distinct,
  DistinctNumbers,
  DistinctSums,
  AllDistinct,
  AllDistinctNumbers,
  AllDistinctSums,
};

struct ReplicationType {
  Layout L = Layout::Replicated;
  Combine Op = Combine::Sum; ///< Of Partial.
  LocalIndices Indices = LocalIndices::None;
  uint8_t Assumes = 0;
  bool Zero : 1 = false;     ///< All zeros: has every k, see hasSizeOf().
  bool Symbolic : 1 = false; ///< An integer made of local sizes.
  /// The true value of what is computed once, on the rows of all replicas. What
  /// reads it per replica sees it split, or as it is (TypeContext::operand).
  bool Whole : 1 = false;
  uint8_t Axis = 0;      ///< Of Sharded, and of row numbers.
  int8_t K = 0;          ///< The power of N, see above.
  uint32_t Order = 0;    ///< Of the rows of Sharded, or numbered, see below.
  NodeId Cause = NoNode; ///< Of Varying: where it began.

  /// Orders of rows: that of the true value; any, since all rows are equal; the
  /// others are those of parts that were joined along the axis (TypeAnalysis).
  /// Their concatenation has the rows of the true value, in another order.
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
  /// Numbers of rows that are in the order of the true value.
  bool isRowNumbers() const {
    return Indices == LocalIndices::RowNumbers && Order == InOrder;
  }
  bool isRowIndices() const {
    return Indices == LocalIndices::RowIndices && Order == InOrder;
  }
  /// The same of rows in any order.
  bool countsRows() const {
    return Indices == LocalIndices::RowNumbers ||
           Indices == LocalIndices::RowIndices ||
           Indices == LocalIndices::IndexRows;
  }
  bool isJoined() const {
    return L == Layout::Sharded && Order != InOrder && Order != AnyOrder;
  }

  /// Whether zeros are as large as what has type \p X: they have every layout,
  /// but those of the rows of one replica are not those of all rows.
  bool hasSizeOf(const ReplicationType &X) const {
    return isNothing() || X.isNothing() ||
           (isSharded() ? X.isSharded() && X.Axis == Axis : !X.isSharded());
  }
  /// What is not there, and is nobody's: zeros of every size.
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
  /// A power that is too large to count stays so: the value is Varying then.
  void setPower(int Power) {
    K = static_cast<int8_t>(std::clamp(Power, -MaxPower - 1, MaxPower + 1));
  }
  bool isPowerKnown() const { return K >= -MaxPower && K <= MaxPower; }
  static constexpr int MaxPower = 100;
  /// An axis that no tensor has stays so: the value is Varying then.
  void setAxis(int64_t Number) {
    Axis =
        Number >= 0 && Number < MaxRank ? static_cast<uint8_t>(Number) : NoAxis;
  }
  bool isAxisKnown() const { return Axis != NoAxis; }
  static constexpr uint8_t NoAxis = UINT8_MAX;
  /// The true value and nothing else to say of it: most of a graph.
  bool isPlain() const { return isTrue() && !Zero && !Whole && Assumes == 0; }
  bool isTrue() const { return L == Layout::Replicated && K == 0 && !Symbolic; }
  bool isWholeSize() const { return Whole && Symbolic; }
  bool isReplicated() const { return L == Layout::Replicated; }
  bool isSharded() const { return L == Layout::Sharded; }
  bool isPartial() const { return L == Layout::Partial; }
  bool isVarying() const { return L == Layout::Varying; }
  /// No rule says what the replicas have, not even indices of their own rows.
  bool isUnrelated() const {
    return isVarying() && Indices == LocalIndices::None;
  }
  bool sameAs(const ReplicationType &O) const {
    return L == O.L && K == O.K && Symbolic == O.Symbolic &&
           (L != Layout::Sharded || (Axis == O.Axis && Order == O.Order)) &&
           (L != Layout::Partial || Op == O.Op);
  }
  bool operator==(const ReplicationType &O) const = default;
  /// "Sharded(0) k=1", as in remarks.
  std::string str() const;
};

static_assert(sizeof(ReplicationType) == 16);

/// Something that must be inserted so that every rule holds.
struct Demand {
  enum KindTy : uint8_t {
    /// Tensor Source becomes Replicated k=0 for all its users; what joins rows
    /// then reads the rows of all replicas.
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

/// Of what is computed once.
struct KeepOptions {
  llvm::ArrayRef<NodeId> Fetched; ///< Nodes whose value is wanted.
  llvm::ArrayRef<NodeId> Fed;     ///< Kept for those who feed them.
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
    /// Those of them where no rule related replicas, and why.
    std::vector<std::pair<NodeId, std::string>> Causes;
    /// What would have to be computed once and cannot be, and why.
    std::vector<std::pair<NodeId, std::string>> Refused;
  };
  const KeptNodes &kept() const { return Kept; }

  /// The type of a tensor, with the demanded reductions in place.
  ReplicationType type(Endpoint E) const {
    ReplicationType Type = natural(E);
    return Type.isPartial() && Reduced[Dims.outputIndex(E)] ? reducedType(Type)
                                                            : Type;
  }
  /// The type that the rule of the producer gives, without a reduction of E.
  ReplicationType natural(Endpoint E) const {
    return Dims.validPort(E) ? Types[Dims.outputIndex(E)]
                             : ReplicationType::varying(E.Node);
  }
  /// The type of \p E used as a number: local sizes become values.
  ReplicationType number(Endpoint E) const {
    ReplicationType Type = type(E);
    return Type.isJoined() || Type.Symbolic ? numberOf(E, Type) : Type;
  }

  /// Of integers that are made of local sizes: by which power of N each element
  /// of the true value exceeds the local one. None if that is not known.
  std::optional<llvm::SmallVector<int64_t, 4>> sizePowers(Endpoint E) const;

  /// Along which axis a replica has rows of \p E, which is Whole; -1: along
  /// none, it has all of it; nothing if that is not known, or there are several
  /// axes, or \p E holds sizes.
  std::optional<int> wholeAxis(Endpoint E) const;

  /// Of rows that every replica has in equal blocks, each in the order of the
  /// true value: how many blocks there are; 0 for anything else, and for more
  /// than anybody would join.
  unsigned blocks(Endpoint E) const;

  /// What has to be inserted, in node order; empty for a finished program.
  const std::vector<Demand> &demands() const { return Demands; }

  /// Infers the types of nodes that are new and forgets the demands, which are
  /// met now. \p Order is the new topological order.
  void extend(llvm::ArrayRef<NodeId> Order);

  /// Why \p N is Varying at the node where that began.
  std::string reason(NodeId N) const;

  /// Inputs of update ops whose value no rule could relate: (node, input), in
  /// node order.
  const std::vector<std::pair<NodeId, unsigned>> &unprovedWrites() const {
    return Unproved;
  }
  /// Whether \p N reads or writes a variable that has a policy of its own. It
  /// may write what the policy asks for, be it the value of the single-device
  /// step or not.
  bool usesState(NodeId N) const { return anyStates() && stateOf(N); }
  /// Whether \p Type is Varying since a variable's policy says so.
  bool isByPolicy(const ReplicationType &Type) const {
    return anyStates() && Type.isVarying() && Type.Cause != NoNode &&
           (States.contains(Type.Cause) || stateOf(Type.Cause));
  }
  /// The same of what unprovedWrites() says: input \p I of \p N.
  bool usesState(NodeId N, unsigned I) const {
    return anyStates() && (stateOf(N) || (I < Vars.update(G, N).NumVars &&
                                          stateOf(G.input(N, I))));
  }
  /// Whether a variable has a policy of its own.
  bool anyStates() const { return !States.empty(); }
  /// Whether \p N reads a variable of which the copies have no value together:
  /// its name gives that of copy 0, and nobody outside of the step may ask.
  bool readsUnaggregated(NodeId N) const {
    const VariableState *S = anyStates() ? stateOf(N) : nullptr;
    return S && S->OnRead && S->How == Aggregation::None &&
           (G.isOp(N, op::ReadVariableOp) || G.isOp(N, op::Identity));
  }
  /// Nodes that introduce assumptions: (node, bits). What they compute reaches
  /// a write or a result, or it would not be there.
  const std::vector<std::pair<NodeId, uint8_t>> &assumptions() const {
    return Sources;
  }

  /// Ops that exist once for their effect and run under a predicate that
  /// replicas may disagree on, although no value that they take says so: (node,
  /// predicate), in node order.
  const std::vector<std::pair<NodeId, Endpoint>> &localEffects() const {
    return LocalEffects;
  }

  /// Operands (node, input) that replicas would have to exchange inside a loop,
  /// which they cannot.
  const std::vector<std::pair<NodeId, unsigned>> &refusedInside() const {
    return RefusedInside;
  }

  /// The predicate that \p N runs under and replicas may disagree on, if there
  /// is one.
  std::optional<Endpoint> localPredicate(NodeId N) const {
    auto It = LocalPredicates.find(N);
    return It == LocalPredicates.end() ? std::nullopt
                                       : std::optional(It->second);
  }

  /// Where nodes whose row numbers, each replica's own, somebody cannot use:
  /// they must select among the rows of all replicas. Each of them once.
  const std::vector<NodeId> &unusableNumbers() const { return Unusable; }

  /// Nodes, in order, whose integer was taken to be a size of the single-device
  /// step (DimAnalysis::shared) and is another one on replicas.
  std::vector<NodeId> differing() const;

  /// One of the parts that an order of rows is made of: its own order, and how
  /// many rows it has (a symbol, or a size that is only known to be one size).
  /// A single part is of those of its order that a Where, which counts them,
  /// selects; or, with both, as many parts as the size says, each with so many
  /// rows.
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
  /// number() of what is Symbolic or joined.
  ReplicationType numberOf(Endpoint E, ReplicationType Type) const;
  /// Along which axis each replica has a share of \p E; -1: along none; -2: not
  /// known, or along several.
  int localAxis(Endpoint E) const;
  static ReplicationType reducedType(ReplicationType Type) {
    ReplicationType Result = ReplicationType::replicated();
    Result.Assumes = Type.Assumes;
    return Result;
  }
  /// What the copies of a variable with a policy of its own are together
  /// (VariableStates.cpp).
  struct VariableState {
    ReplicationType Type;
    Aggregation How = Aggregation::None;
    bool OnRead = false;
    NodeId Initial = NoNode; ///< The assignment of the initial value.
  };
  void findStates();
  /// The state of the variable that \p N takes first, or null.
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
