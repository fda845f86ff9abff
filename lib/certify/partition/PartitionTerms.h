//===- lib/certify/partition/PartitionTerms.h - terms over parts (private) ===//
//
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#ifndef GRAFT_LIB_CERTIFY_PARTITION_PARTITIONTERMS_H
#define GRAFT_LIB_CERTIFY_PARTITION_PARTITIONTERMS_H

#include "lib/graph/InputGraph.h"
#include "lib/ops/OpTable.h"
#include "lib/ops/Ops.h"
#include "lib/program/Program.h"
#include "lib/support/Diagnostics.h"

#include "llvm/ADT/DenseMap.h"

#include <map>

namespace graft {

/// A slice of a tensor in the notation of checkpoints: `10 4 0,5:0,4`.
struct SliceSpec {
  llvm::SmallVector<int64_t, 4> Shape, Offsets, Sizes;
  static std::optional<SliceSpec> parse(llvm::StringRef Text);
};

/// A variable of the whole graph that is partitioned.
struct PartedVariable {
  NodeId Var; ///< In the whole graph.
  unsigned Axis = 0;
  llvm::SmallVector<int64_t, 4> Shape;
  llvm::SmallVector<int64_t, 8> Offsets, Sizes;
  llvm::SmallVector<NodeId, 8> Parts;
  /// Returns true if \p Other is partitioned in the same way.
  bool isLike(const PartedVariable &Other) const {
    return Axis == Other.Axis && Shape == Other.Shape && Sizes == Other.Sizes;
  }
};

/// A tensor of the graph with parts, as a term over tensors of the whole graph.
struct PartTerm {
  enum KindType : uint8_t {
    None,
    Same,        ///< E.
    Handle,      ///< Part Index of the handle or reference E.
    Slice,       ///< Size elements of E along Axis at Offset, of Total.
    PartRead,    ///< The value of part Index of E, read after Waits.
    WholeRead,   ///< The value of E, read after Waits.
    Flat,        ///< The elements of E in a vector.
    Reshaped,    ///< E with the shape List.
    Count,       ///< The number of elements of E.
    Numbers,     ///< 0, 1, 2, ...: one number for each element of E.
    Shape,       ///< The shape of E.
    RowsShape,   ///< The shape of E and then List.
    PartNumber,  ///< For each element of Flat(E): its part.
    Begin,       ///< For each element of Flat(E): where its part begins.
    Local,       ///< For each element of Flat(E): its index in its part.
    SentLocal,   ///< The elements of Local(By) for part Index.
    SentNumbers, ///< The elements of Numbers(By) for part Index.
    SentRows,    ///< The rows of E whose indices By are in part Index.
    Found,       ///< The rows that a lookup of By finds in part Index of E.
    FlatLookup,  ///< The rows of E at the indices Flat(By).
    Lookup,      ///< The rows of E at the indices By.
    Initialized, ///< True if the parts List of E are initialized.
  };
  KindType Kind = None;
  /// In a slice or lookup: the operand is a value that was read from E. In
  /// SentRows: the rows were reshaped.
  bool OfValue = false;
  /// In PartNumber: all parts have one size, the only element of List. If not
  /// set, List has the offsets of all parts but the first.
  bool Even = false;
  Endpoint E, By;
  unsigned Index = 0;
  int64_t Axis = 0, Offset = 0, Size = 0, Total = 0;
  uint32_t Waits = 0;     ///< The id of the nodes that a read waits for.
  uint32_t RunsAfter = 0; ///< The id of the nodes that a lookup waits for.
  llvm::SmallVector<int64_t, 4> List;
};

/// Writes tensors of the graph with parts as terms.
class PartitionTerms {
public:
  PartitionTerms(const InputGraph &Whole, const Graph &Parts,
                 DiagnosticEngine &Diags);

  void error(NodeId N, const llvm::Twine &Message);
  void error(llvm::StringRef Name, const llvm::Twine &Message);
  /// Matches nodes by name and finds the parts. Returns false after an error.
  bool match();

  /// Returns the term of \p E. The reference stays valid.
  const PartTerm &term(Endpoint E);
  /// Returns the id of the set of nodes of the whole graph that \p P waits for.
  /// If \p IsRead, \p P reads a reference, and a wait for another read counts
  /// as a wait for the inputs of that read.
  uint32_t waitsOf(NodeId P, bool IsRead = false);
  uint32_t waitsOfInput(NodeId I);
  /// Returns the id of the set of inputs of \p I, control inputs included, but
  /// without data input \p K. Variables do not count: they are always
  /// available.
  uint32_t inputsBeside(NodeId I, unsigned K);
  /// Returns true if a read that waits for \p Waits runs when \p I does. \p
  /// Waits must be the inputs of \p I and the control inputs of the node that
  /// computes data input \p K. That node, variables and reads of references do
  /// not count.
  bool isLate(NodeId I, unsigned K, uint32_t Waits);
  /// Returns the first handle or reference with the op, inputs and attributes
  /// of \p E if the partition removed the node of \p E; otherwise \p E. So
  /// equal handles, such as two in one conditional, share one term.
  Endpoint firstAlias(Endpoint E);
  /// Returns true if \p P waits only for clones of nodes that pass a variable
  /// on. Such a clone places \p P in a conditional or a loop.
  bool waitsForContext(NodeId P);

  llvm::StringRef inputOp(NodeId I) const { return In.opNames()[In.op(I)]; }
  /// If \p E of the whole graph is a handle of a partitioned variable or a
  /// reference to it, returns that variable; otherwise null.
  const PartedVariable *cutOf(Endpoint E) const;
  bool isHandle(const PartedVariable &C) const {
    return inputOp(C.Var) == op::VarHandleOp;
  }
  /// Returns the tensor that \p E passes on through Identities that the
  /// partition removed.
  Endpoint resolve(Endpoint E) const;
  std::optional<llvm::SmallVector<int64_t, 4>> ints(Endpoint E) const;
  /// Returns true if \p P has the attributes \p Was of the whole graph.
  bool sameAttrs(llvm::StringRef Was, NodeId P) const;

  const InputGraph &In;
  const Graph &G;
  DiagnosticEngine &Diags;
  unsigned Errors = 0;
  std::vector<NodeId> InputOf; ///< By node of G: its namesake in In, or NoNode.
  std::vector<NodeId> PartsOf; ///< By node of In: its namesake in G, or NoNode.
  std::vector<bool> Explained; ///< By node: a term or a check covers it.
  std::vector<PartedVariable> Cuts;
  /// By update of a part: the update of the variable in the whole graph.
  llvm::DenseMap<NodeId, NodeId> UpdateOf;
  /// By output of a RestoreV2: its term.
  llvm::DenseMap<std::pair<NodeId, unsigned>, PartTerm> RestoredTerms;
  /// Constants that only savers use, with a value that the partition changed.
  llvm::DenseMap<NodeId, bool> SaverConsts;

  /// Returns the id of \p Set, nodes of the whole graph. Equal sets have equal
  /// ids.
  uint32_t idOf(llvm::SmallVector<NodeId, 4> Set);

private:
  bool findParts();
  PartTerm evaluate(Endpoint E);
  PartTerm evaluateNew(Endpoint E);
  PartTerm alias(Endpoint E, const PartTerm &X);
  PartTerm concat(NodeId N);
  PartTerm lookup(NodeId N);
  PartTerm stitch(NodeId N);
  PartTerm sent(Endpoint E);
  PartTerm partNumbers(NodeId N);
  PartTerm reshape(NodeId N);
  PartTerm slice(Endpoint E);
  bool isGoneAlias(NodeId I) const;
  Endpoint in(NodeId N, unsigned I) const { return G.input(N, I); }

  llvm::DenseMap<NodeId, unsigned> CutIndex; ///< By variable.
  /// By node that passes a variable on: the index of the variable, or -1.
  mutable llvm::DenseMap<NodeId, int> CutMemo;
  /// The longest chain of new nodes that a term may span.
  static constexpr unsigned MaxDepth = 1000;
  unsigned Depth = 0;
  llvm::DenseMap<NodeId, std::pair<unsigned, unsigned>> PartIndex; ///< By part.
  /// By node of the whole graph: the removed nodes that passed its handle or
  /// reference on; only the first of several equal nodes.
  llvm::DenseMap<NodeId, llvm::SmallVector<NodeId, 2>> GoneAliases;
  llvm::DenseMap<NodeId, NodeId> FirstAlias;
  std::map<std::pair<NodeId, uint32_t>, PartTerm> Known;
  std::map<llvm::SmallVector<NodeId, 4>, uint32_t> Sets;
  std::vector<const llvm::SmallVector<NodeId, 4> *> SetOf; ///< By id.
};

/// Checks the entries of \p P, the SaveV2 or RestoreV2 that is \p I in the
/// whole graph. Records the terms of restored tensors.
bool checkSaver(PartitionTerms &T, NodeId I, NodeId P);

} // namespace graft

#endif // GRAFT_LIB_CERTIFY_PARTITION_PARTITIONTERMS_H
