//===- lib/infer/batch/FullBatch.cpp - graphs without a batch ---*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
// A layer of a graph network multiplies the examples h by a matrix a. Both axes
// of a are batch axes. A replica with a shard of the matrix would need all
// examples, and the next layer needs the whole result of the first layer.
//
//     h1 = Relu*(MatMul*(a/split, h0))      a/split: [b, b]
//     h2 = MatMul*(a/split, h1)
//
// Each feed has a separate symbolic batch size, so the inferred sizes of two
// axes are equal only if the graph requires it. A sparse tensor is treated as a
// matrix with two batch axes only if its products and their other factors all
// have rows of the batch.
//
//===----------------------------------------------------------------------===//

#include "lib/infer/batch/FullBatch.h"

#include "lib/infer/graph/BatchSources.h"
#include "lib/ops/Ops.h"

using namespace llvm;

namespace graft {

/// Returns the shard of \p E if \p E is split, otherwise \p E: the tensor that
/// a replica reads.
static Endpoint readOf(const Graph &G, Endpoint E) {
  Endpoint Result = E;
  G.forEachUse(E.Node, [&](Use U) {
    if (G.node(U.User).Kind == Inserted::Split && G.input(U.User, 0) == E)
      Result = {U.User, 0};
  });
  return Result;
}

/// Returns true if two axes of \p Shape may have the same size. This check only
/// avoids a needless inference of sizes.
static bool mayBeSquare(const ShapeValue &Shape) {
  for (size_t I = 0; !Shape.UnknownRank && I < Shape.Dims.size(); ++I)
    for (size_t J = I + 1; J < Shape.Dims.size(); ++J)
      if (Shape.Dims[I] == Shape.Dims[J] && Shape.Dims[I] != 1)
        return true;
  return false;
}

FullBatch::FullBatch(const Graph &G, ArrayRef<Feed> Feeds) : G(G) {
  std::vector<bool> Seen(G.size());
  bool AnySparse = false;
  for (const Feed &F : Feeds) {
    AnySparse |= F.Sparse;
    auto Shape = sourceShape(G, F.At);
    if (!F.Sparse && Shape && mayBeSquare(*Shape))
      Dense.push_back({F.At.Node, readOf(G, F.At)});
  }
  enum : uint8_t { Other, Product, SparseProduct };
  SmallVector<uint8_t, 64> Roles;
  for (uint32_t Op = 0; Op < G.numOps(); ++Op) {
    StringRef Name = G.opNameOf(Op);
    bool IsProduct = Name == op::MatMul || Name.starts_with(op::BatchMatMul);
    bool IsSparse = AnySparse && Name == op::SparseTensorDenseMatMul;
    Roles.push_back(IsProduct ? Product : IsSparse ? SparseProduct : Other);
  }
  for (NodeId N = 0; N < G.size(); ++N) {
    uint8_t Role = Roles[G.node(N).Op];
    if (Role == Other || !G.isLive(N) || G.node(N).NumData < 2)
      continue;
    if (Role == Product) {
      for (Endpoint E : G.dataInputs(N)) {
        if (Seen[E.Node] || !G.isOp(E.Node, op::Const))
          continue;
        Seen[E.Node] = true;
        if (auto Value = constValue(G, E.Node, 0);
            Value && mayBeSquare(Value->Shape))
          Dense.push_back({E.Node, E});
      }
      continue;
    }
    Endpoint Indices = G.input(N, 0);
    bool IsFed = any_of(
        Feeds, [&](const Feed &F) { return F.Sparse && F.At == Indices; });
    if (!IsFed || G.boolAttr(N, "adjoint_a").value_or(false))
      continue;
    auto It = find_if(Sparse,
                      [&](const Products &P) { return P.Indices == Indices; });
    if (It == Sparse.end())
      It = Sparse.insert(It, {Indices, {}});
    It->Nodes.push_back(N);
  }
  erase_if(Sparse, [](const Products &P) { return P.Nodes.size() < 2; });
}

/// Returns true if \p A and \p B are the same per-replica size of one batch.
static bool areRows(const DimTable &Table, DimId A, DimId B) {
  auto S = Table.sym(A), T = Table.sym(B);
  return S && T && S->isLocal() && S->Ragged == 0 && *S == *T;
}

bool FullBatch::isFull(const Products &P, const DimAnalysis &Dims) const {
  SmallVector<DimId, 4> Given, Taken;
  for (NodeId N : P.Nodes) {
    bool Turned = G.boolAttr(N, "adjoint_b").value_or(false);
    if (auto Shape = Dims.shape(readOf(G, {N, 0})); Shape && !Shape->empty())
      Given.push_back((*Shape)[0]);
    if (auto Shape = Dims.shape(G.input(N, 3)); Shape && Shape->size() == 2)
      Taken.push_back((*Shape)[Turned ? 1 : 0]);
  }
  return any_of(Given, [&](DimId A) {
    return any_of(Taken, [&](DimId B) { return areRows(Dims.table(), A, B); });
  });
}

bool FullBatch::refuse(const DimAnalysis &Dims, DiagnosticEngine &Diags) const {
  auto Refuse = [&](NodeId N, StringRef What) {
    Diags.error(G.name(N),
                ("there is no batch to split: this " + What +
                 " has a row and a column for each example, so each example "
                 "depends on all the others; train on one device, or on "
                 "batches of examples that do not depend on each other")
                    .str());
    return true;
  };
  for (const Matrix &M : Dense) {
    auto Shape = Dims.shape(M.Tensor);
    for (size_t I = 0; Shape && I < Shape->size(); ++I)
      for (size_t J = I + 1; J < Shape->size(); ++J)
        if (areRows(Dims.table(), (*Shape)[I], (*Shape)[J]))
          return Refuse(M.Source,
                        G.isOp(M.Source, op::Const) ? "constant" : "feed");
  }
  for (const Products &P : Sparse)
    if (isFull(P, Dims))
      return Refuse(P.Indices.Node, "sparse tensor");
  return false;
}

} // namespace graft
