//===- lib/infer/batch/SparseFeeds.cpp - feeds of sparse tensors *- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
// A sparse tensor is three dense ones, none of which has a row for each row of
// the batch: to split one along its axis 0 would be wrong. So what is made of
// them exists once, for the whole batch. Where it gives dense rows these are
// the batch, and are split; what it reads of the replicas, such as the gradient
// of those rows, is merged as for every op that exists once.
//
//     y = SparseTensorDenseMatMul(i, v, s, w)
//     h = Tanh*(y/split)                      y/split = _ToReplicas(y) axis=0
//     g = SparseTensorDenseMatMul(i, v, s, _FromReplicas(dy)) adjoint_a
//
//===----------------------------------------------------------------------===//

#include "lib/infer/batch/SparseFeeds.h"

#include "lib/infer/graph/BatchSources.h"
#include "lib/ops/Ops.h"

#include "llvm/ADT/StringSwitch.h"

#include <array>

using namespace llvm;

namespace graft {
namespace {

/// Which arguments of an op are a sparse tensor, when there is one.
std::optional<std::array<unsigned, 3>> sparseArguments(const OpDef *Def) {
  if (!Def)
    return std::nullopt;
  std::array<int, 3> At = {-1, -1, -1};
  ArrayRef<ArgDef> Args = Def->inputs();
  for (size_t I = 0; I < Args.size(); ++I) {
    if (*Args[I].NumberAttr || *Args[I].TypeListAttr)
      return std::nullopt;
    StringRef Name = Args[I].Name;
    int Part = Name.ends_with("indices")  ? 0
               : Name.ends_with("values") ? 1
               : Name.ends_with("shape")  ? 2
                                          : -1;
    if (Part >= 0 && At[Part] < 0)
      At[Part] = static_cast<int>(I);
  }
  if (StringRef(Def->Name).find("Sparse") == StringRef::npos || At[0] < 0 ||
      At[1] < 0 || At[2] < 0)
    return std::nullopt;
  return std::array<unsigned, 3>{unsigned(At[0]), unsigned(At[1]),
                                 unsigned(At[2])};
}

/// Whether output 0 of \p N has a dense row for each row of a sparse tensor, or
/// for each segment.
bool givesRows(const Graph &G, NodeId N) {
  StringRef Op = G.opName(N);
  if (Op == op::SparseTensorDenseMatMul)
    return !G.boolAttr(N, "adjoint_a").value_or(false);
  return StringSwitch<bool>(Op)
      .Cases(op::SparseToDense, op::SegmentSum, op::SegmentMean, true)
      .Cases(op::SparseSegmentSum, op::SparseSegmentMean,
             op::SparseSegmentSqrtN, true)
      .Cases(op::SparseSegmentSumWithNumSegments,
             op::SparseSegmentMeanWithNumSegments,
             op::SparseSegmentSqrtNWithNumSegments, true)
      .Default(false);
}

/// The ParseExample of fed records that make sparse tensors.
std::vector<NodeId> sparseParsers(const Graph &G, ArrayRef<Feed> Feeds) {
  std::vector<NodeId> Parsers;
  for (const Feed &F : Feeds) {
    if (F.Axis != 0 || G.outputType(F.At.Node, F.At.Port) != DT_STRING)
      continue;
    G.forEachUse(F.At.Node, [&](Use Split) {
      if (G.node(Split.User).Kind != Inserted::Split ||
          G.input(Split.User, 0) != F.At)
        return;
      G.forEachUse(Split.User, [&](Use U) {
        if (U.Index == 0 && G.opName(U.User).starts_with(op::ParseExample) &&
            firstDenseFeature(G, U.User) != 0)
          Parsers.push_back(U.User);
      });
    });
  }
  return Parsers;
}

} // namespace

void findSparseFeeds(const Graph &G, std::vector<Feed> &Feeds) {
  std::vector<std::optional<std::array<unsigned, 3>>> Arguments;
  bool Any = false;
  for (uint32_t Op = 0; Op < G.numOps(); ++Op) {
    Arguments.push_back(sparseArguments(G.opDefOf(Op)));
    Any |= Arguments.back().has_value();
  }
  if (!Any)
    return;
  for (NodeId N = 0; N < G.size(); ++N) {
    const auto &Args = Arguments[G.node(N).Op];
    if (!Args || !G.isLive(N))
      continue;
    std::array<Feed *, 3> Parts = {};
    for (size_t I = 0; I < Parts.size(); ++I)
      for (Feed &F : Feeds)
        if (F.At == G.input(N, (*Args)[I]) && !F.Named)
          Parts[I] = &F;
    // An output's shape may be a constant; indices and values belong together.
    if (Parts[0] && Parts[1])
      for (Feed *F : Parts)
        if (F)
          F->Sparse = true;
  }
}

std::vector<Endpoint> keepSparseOnce(Graph &G, const VariableIndex &Vars,
                                     ArrayRef<Feed> Feeds) {
  std::vector<Endpoint> Rows;
  std::vector<NodeId> Work;
  // Reshapes that take a size from a sparse tensor.
  std::vector<NodeId> Shaped;
  auto Follow = [&](NodeId N, uint32_t Port) {
    G.forEachUse(N, [&](Use U) {
      if (G.input(U.User, U.Index) != Endpoint{N, Port})
        return;
      bool IsShape = U.Index == 1 && G.isOp(U.User, op::Reshape);
      (IsShape ? Shaped : Work).push_back(U.User);
    });
  };
  for (const Feed &F : Feeds)
    if (F.Sparse)
      Follow(F.At.Node, F.At.Port);
  for (NodeId N : sparseParsers(G, Feeds)) {
    // It reads what is fed, not the rows of a replica.
    G.setInput(N, 0, G.input(G.input(N, 0).Node, 0));
    G.setBoolAttr(N, OnceAttr, true);
    unsigned First = firstDenseFeature(G, N);
    for (unsigned Port = 0, E = G.numOutputs(N).value_or(0); Port < E; ++Port)
      if (Port < First)
        Follow(N, Port);
      else
        Rows.push_back({N, Port});
  }
  while (!Work.empty() || !Shaped.empty()) {
    bool IsShaped = Work.empty();
    std::vector<NodeId> &From = IsShaped ? Shaped : Work;
    NodeId N = From.back();
    From.pop_back();
    if (Vars.isUpdate(G, N) || G.hasAttr(N, OnceAttr) || G.opDef(N) == nullptr)
      continue;
    G.setBoolAttr(N, OnceAttr, true);
    if (IsShaped || givesRows(G, N)) {
      Rows.push_back({N, 0});
      continue;
    }
    // Which rows are empty is said of each row.
    bool Fills = G.isOp(N, op::SparseFillEmptyRows);
    if (Fills)
      Rows.push_back({N, 2});
    for (unsigned Port = 0, E = G.numOutputs(N).value_or(0); Port < E; ++Port)
      if (!Fills || Port != 2)
        Follow(N, Port);
  }
  llvm::sort(Rows, [](Endpoint A, Endpoint B) {
    return std::pair(A.Node, A.Port) < std::pair(B.Node, B.Port);
  });
  return Rows;
}

} // namespace graft
