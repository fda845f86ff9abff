//===- lib/certify/partition/PartitionTerms.h - what parts compute (private) =//
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

/// A slice of a tensor as checkpoints write it: `10 4 0,5:0,4`.
struct SliceSpec {
  llvm::SmallVector<int64_t, 4> Shape, Offsets, Sizes;
  static std::optional<SliceSpec> parse(llvm::StringRef Text);
};

/// A variable of the whole graph that is in parts.
struct PartedVariable {
  NodeId Var; ///< In the whole graph.
  unsigned Axis = 0;
  llvm::SmallVector<int64_t, 4> Shape;
  llvm::SmallVector<int64_t, 8> Offsets, Sizes;
  llvm::SmallVector<NodeId, 8> Parts;
  /// Whether \p Other is cut in the same way.
  bool isLike(const PartedVariable &Other) const {
    return Axis == Other.Axis && Shape == Other.Shape && Sizes == Other.Sizes;
  }
};

/// What a tensor of the graph with parts is, in tensors of the whole graph.
struct PartTerm {
  enum KindType : uint8_t {
    None,
    Same,        ///< E.
    Handle,      ///< Part Index of the handle or reference E.
    Slice,       ///< Of E along Axis: Size elements at Offset, of Total.
    PartRead,    ///< The value of part Index of E, read after Waits.
    WholeRead,   ///< The value of E, read after Waits.
    Flat,        ///< The elements of E in a vector.
    Reshaped,    ///< E with the shape List.
    Count,       ///< How many elements E has.
    Numbers,     ///< From 0, as many as E has elements.
    Shape,       ///< The shape of E.
    RowsShape,   ///< The shape of E and then List.
    PartNumber,  ///< Of each of Flat(E): its part; List: where parts begin.
    Begin,       ///< Of each of Flat(E): where its part begins, by List.
    Local,       ///< Of each of Flat(E): its number in its part, by List.
    SentLocal,   ///< Those of Local(By) that are sent to part Index.
    SentNumbers, ///< The same of Numbers(By).
    SentRows,    ///< The same of the rows of E.
    Found,       ///< What part Index of E has for those of By.
    FlatLookup,  ///< The rows of E that Flat(By) says.
    Lookup,      ///< The rows of E that By says.
    Initialized, ///< Whether the parts List of E have values.
  };
  KindType Kind = None;
  bool OfValue = false; ///< E is a read reference, or was read before a lookup.
  bool Even = false;    ///< PartNumber: List is the size of the parts.
  Endpoint E, By;
  unsigned Index = 0;
  int64_t Axis = 0, Offset = 0, Size = 0, Total = 0;
  uint32_t Waits = 0;     ///< Of a read: the nodes that it waits for.
  uint32_t RunsAfter = 0; ///< The same of a lookup in what was read.
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
  /// The set of nodes of the whole graph that \p P waits for. A read of a
  /// reference may wait for another one.
  uint32_t waitsOf(NodeId P, bool IsRead = false);
  uint32_t waitsOfInput(NodeId I);
  /// All that \p I waits for beside data input \p K, but for variables, which
  /// are always there.
  uint32_t inputsBeside(NodeId I, unsigned K);
  /// Whether \p Waits are all that \p I and what gives its data input \p K wait
  /// for, but for that input, and for variables and reads of references, which
  /// are always there.
  bool isLate(NodeId I, unsigned K, uint32_t Waits);
  /// Of handles and references that are gone and alike, as those of one
  /// conditional, the first: they have one term.
  Endpoint firstAlias(Endpoint E);
  /// Whether what \p P waits for says only where it is, in a conditional or a
  /// loop: clones of what passes a variable on.
  bool waitsForContext(NodeId P);

  llvm::StringRef inputOp(NodeId I) const { return In.opNames()[In.op(I)]; }
  /// The variable that \p E of the whole graph is a handle or reference of, if
  /// it is in parts.
  const PartedVariable *cutOf(Endpoint E) const;
  bool isHandle(const PartedVariable &C) const {
    return inputOp(C.Var) == op::VarHandleOp;
  }
  /// The tensor that \p E is without identities that are gone.
  Endpoint resolve(Endpoint E) const;
  std::optional<llvm::SmallVector<int64_t, 4>> ints(Endpoint E) const;
  /// Whether attributes \p Was of the whole graph are those of \p P.
  bool sameAttrs(llvm::StringRef Was, NodeId P) const;

  const InputGraph &In;
  const Graph &G;
  DiagnosticEngine &Diags;
  unsigned Errors = 0;
  std::vector<NodeId> InputOf; ///< By node: of the same name, or NoNode.
  std::vector<NodeId> PartsOf; ///< By node of the whole graph: the same.
  std::vector<bool> Explained; ///< By node: a term or a check covers it.
  std::vector<PartedVariable> Cuts;
  /// Updates of a part: the update of the whole graph that they belong to.
  llvm::DenseMap<NodeId, NodeId> UpdateOf;
  /// By output of a RestoreV2 that has entries for parts: its term.
  llvm::DenseMap<std::pair<NodeId, unsigned>, PartTerm> RestoredTerms;
  /// Constants of savers that are others now.
  llvm::DenseMap<NodeId, bool> SaverConsts;

  /// A number for a set of nodes of the input.
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
  /// By what passes a variable on: the index of the variable, or -1.
  mutable llvm::DenseMap<NodeId, int> CutMemo;
  /// How many new nodes stand one behind another in a term.
  static constexpr unsigned MaxDepth = 1000;
  unsigned Depth = 0;
  llvm::DenseMap<NodeId, std::pair<unsigned, unsigned>> PartIndex; ///< By part.
  /// What passes a variable on and is gone, by what it reads: the first of
  /// those that are alike.
  llvm::DenseMap<NodeId, llvm::SmallVector<NodeId, 2>> GoneAliases;
  llvm::DenseMap<NodeId, NodeId> FirstAlias;
  std::map<std::pair<NodeId, uint32_t>, PartTerm> Known;
  std::map<llvm::SmallVector<NodeId, 4>, uint32_t> Sets;
  std::vector<const llvm::SmallVector<NodeId, 4> *> SetOf; ///< By id.
};

/// Checks entries of SaveV2 or RestoreV2 \p P, which is \p I of the whole
/// graph; notes the terms of what is restored.
bool checkSaver(PartitionTerms &T, NodeId I, NodeId P);

} // namespace graft

#endif // GRAFT_LIB_CERTIFY_PARTITION_PARTITIONTERMS_H
