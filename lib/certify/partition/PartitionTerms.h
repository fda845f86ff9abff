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
    Numbers,     ///< From 0, as many numbers as E has elements.
    Shape,       ///< The shape of E.
    RowsShape,   ///< The shape of E and then List.
    PartNumber,  ///< The part of each of Flat(E); List: where parts begin.
    Begin,       ///< Where the part of each of Flat(E) begins, by List.
    Local,       ///< The number in its part of each of Flat(E), by List.
    SentLocal,   ///< The elements of Local(By) that are sent to part Index.
    SentNumbers, ///< The elements of Numbers(By) that are sent there.
    SentRows,    ///< The rows of E that are sent there.
    Found,       ///< The rows of part Index of E at the indices By.
    FlatLookup,  ///< The rows of E at the indices Flat(By).
    Lookup,      ///< The rows of E at the indices By.
    Initialized, ///< Tells if the parts List of E have values.
  };
  KindType Kind = None;
  bool OfValue = false; ///< E is a read reference, or was read before a lookup.
  bool Even = false;    ///< PartNumber: List is the size of the parts.
  Endpoint E, By;
  unsigned Index = 0;
  int64_t Axis = 0, Offset = 0, Size = 0, Total = 0;
  uint32_t Waits = 0;     ///< The nodes that a read waits for.
  uint32_t RunsAfter = 0; ///< The nodes that a lookup waits for.
  llvm::SmallVector<int64_t, 4> List;
};

/// Writes tensors of the graph with parts as terms.
class PartitionTerms {
public:
  PartitionTerms(const InputGraph &Whole, const Graph &Parts,
                 DiagnosticEngine &Diags);

  void error(NodeId N, const llvm::Twine &Message);
  void error(llvm::StringRef Name, const llvm::Twine &Message);
  /// Matches nodes by name and finds the parts. False after an error.
  bool match();

  /// The term of \p E, which stays valid.
  const PartTerm &term(Endpoint E);
  /// Returns the set of nodes of the whole graph that \p P waits for. If
  /// \p IsRead, \p P reads a reference and may wait for another such read.
  uint32_t waitsOf(NodeId P, bool IsRead = false);
  uint32_t waitsOfInput(NodeId I);
  /// Returns the nodes of all inputs of \p I, data and control, but for data
  /// input \p K and variables, which are always there.
  uint32_t inputsBeside(NodeId I, unsigned K);
  /// Returns true if \p Waits are all that \p I and the producer of its data
  /// input \p K wait for. That input, variables and reads of references do not
  /// count: they are always there.
  bool isLate(NodeId I, unsigned K, uint32_t Waits);
  /// Returns the first of the handles or references that are gone and alike,
  /// such as those of one conditional: they have one term.
  Endpoint firstAlias(Endpoint E);
  /// Returns true if \p P waits only for clones of nodes that pass a variable
  /// on: they place it in a conditional or a loop.
  bool waitsForContext(NodeId P);

  llvm::StringRef inputOp(NodeId I) const { return In.opNames()[In.op(I)]; }
  /// Returns the partitioned variable whose handle or reference \p E of the
  /// whole graph is, or null.
  const PartedVariable *cutOf(Endpoint E) const;
  bool isHandle(const PartedVariable &C) const {
    return inputOp(C.Var) == op::VarHandleOp;
  }
  /// Returns \p E without Identities that are gone.
  Endpoint resolve(Endpoint E) const;
  std::optional<llvm::SmallVector<int64_t, 4>> ints(Endpoint E) const;
  /// Returns true if \p P has the attributes \p Was of the whole graph.
  bool sameAttrs(llvm::StringRef Was, NodeId P) const;

  const InputGraph &In;
  const Graph &G;
  DiagnosticEngine &Diags;
  unsigned Errors = 0;
  std::vector<NodeId> InputOf; ///< By node: the one of its name, or NoNode.
  std::vector<NodeId> PartsOf; ///< By node of the whole graph: likewise.
  std::vector<bool> Explained; ///< By node: a term or a check covers it.
  std::vector<PartedVariable> Cuts;
  /// By update of a part: the update of the whole graph that it belongs to.
  llvm::DenseMap<NodeId, NodeId> UpdateOf;
  /// By output of a RestoreV2: its term.
  llvm::DenseMap<std::pair<NodeId, unsigned>, PartTerm> RestoredTerms;
  /// Constants of savers that have changed.
  llvm::DenseMap<NodeId, bool> SaverConsts;

  /// Returns a number for a set of nodes of the input.
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
  /// The limit of new nodes one behind another in a term.
  static constexpr unsigned MaxDepth = 1000;
  unsigned Depth = 0;
  llvm::DenseMap<NodeId, std::pair<unsigned, unsigned>> PartIndex; ///< By part.
  /// By node that is read: the gone nodes that passed its variable on, the
  /// first of those that are alike.
  llvm::DenseMap<NodeId, llvm::SmallVector<NodeId, 2>> GoneAliases;
  llvm::DenseMap<NodeId, NodeId> FirstAlias;
  std::map<std::pair<NodeId, uint32_t>, PartTerm> Known;
  std::map<llvm::SmallVector<NodeId, 4>, uint32_t> Sets;
  std::vector<const llvm::SmallVector<NodeId, 4> *> SetOf; ///< By id.
};

/// Checks entries of the SaveV2 or RestoreV2 \p P, which is \p I of the whole
/// graph; notes the terms of restored tensors.
bool checkSaver(PartitionTerms &T, NodeId I, NodeId P);

} // namespace graft

#endif // GRAFT_LIB_CERTIFY_PARTITION_PARTITIONTERMS_H
