//===- lib/infer/batch/SparseFeeds.cpp - feeds of sparse tensors *- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
// A sparse tensor consists of three dense tensors. None of these has a row for
// each row of the batch, so a split along axis 0 would be wrong. Therefore the
// nodes that use them are unreplicated and work on the whole batch. The dense
// rows that they compute are rows of the batch, and are split. Operands from
// the replicas, such as the gradient of those rows, are merged as for every
// unreplicated op.
//
//     y = SparseTensorDenseMatMul(i, v, s, w)
//     h = Tanh*(y/split)                      y/split = _ToReplicas(y) axis=0
//     g = SparseTensorDenseMatMul(i, v, s, _FromReplicas(dy)) adjoint_a
//
// The same holds for the values of a ragged tensor, and for the tensors that
// assign the values to rows. The dense rows of a ragged tensor are sums of
// segments.
//
// If only matrix products and conversions to a dense tensor read a sparse
// tensor, each replica reads the entries of its rows instead
// (lib/program/forms/EntrySlice.h).
//
//===----------------------------------------------------------------------===//

#include "lib/infer/batch/SparseFeeds.h"

#include "lib/graph/Walk.h"
#include "lib/infer/graph/BatchSources.h"
#include "lib/infer/graph/Topology.h"
#include "lib/infer/sizes/Dims.h"
#include "lib/ops/OpRule.h"
#include "lib/ops/Ops.h"

#include "llvm/ADT/BitVector.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/StringSwitch.h"

using namespace llvm;

namespace graft {
namespace {

/// The inputs of an op that are the parts of a sparse tensor. Losses of
/// sequences need no shape.
struct SparseArguments {
  int Indices = -1, Values = -1, Shape = -1;
};

/// Returns the sparse operands of an op. The inputs of one sparse tensor have a
/// common prefix: `a_indices`, `a_values` and `a_shape`.
SmallVector<SparseArguments, 2> sparseArguments(const OpDef *Def) {
  if (!Def)
    return {};
  MapVector<StringRef, SparseArguments> Named;
  SparseArguments Only;
  ArrayRef<ArgDef> Args = Def->inputs();
  for (size_t I = 0; I < Args.size(); ++I) {
    if (*Args[I].NumberAttr || *Args[I].TypeListAttr)
      return {};
    StringRef Name = Args[I].Name;
    auto Take = [&](StringRef Part, int SparseArguments::*Where) {
      StringRef Prefix = Name;
      if (!Prefix.consume_back(Part))
        return;
      for (SparseArguments *Found : {&Named[Prefix], &Only})
        if (Found->*Where < 0)
          Found->*Where = static_cast<int>(I);
    };
    Take("indices", &SparseArguments::Indices);
    Take("values", &SparseArguments::Values);
    Take("shape", &SparseArguments::Shape);
  }
  bool IsSparse = StringRef(Def->Name).contains("Sparse");
  SmallVector<SparseArguments, 2> Found;
  for (auto &[Prefix, A] : Named) {
    // The prefix of the shape may differ: `sparse_indices`, `sparse_values` and
    // `output_shape`, or `indices`, `values` and `dense_shape`.
    if (A.Shape < 0 && IsSparse)
      A.Shape = Only.Shape;
    if (A.Indices >= 0 && A.Values >= 0 && (A.Shape >= 0 || !Prefix.empty()))
      Found.push_back(A);
  }
  return Found;
}

/// Returns true if output 0 of \p N is dense, with a row for each row of a
/// sparse tensor or for each segment.
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

/// Returns the tensor that \p E only renames or casts.
Endpoint sameNumbers(const Graph &G, Endpoint E) {
  return through(G, E, op::Cast, op::Identity);
}

/// Returns the indices of a sparse tensor if \p N sums rows by the first column
/// of these indices, as embedding_lookup_sparse does. Otherwise returns an
/// invalid endpoint.
Endpoint indicesOfSegments(const Graph &G, NodeId N) {
  if (!givesRows(G, N) || !G.opName(N).contains("Segment"))
    return {};
  unsigned Ids = G.opName(N).starts_with("Sparse") ? 2 : 1;
  Endpoint E = sameNumbers(G, G.input(N, Ids));
  return G.isOp(E.Node, op::StridedSlice) ? G.input(E.Node, 0) : Endpoint{};
}

/// Returns the tensors with a value for each row that \p N sums: row numbers of
/// a table, and weights.
SmallVector<Endpoint, 4> valuesOfSegments(const Graph &G, NodeId N) {
  SmallVector<Endpoint, 4> Found;
  DenseSet<NodeId> Seen;
  SmallVector<Endpoint, 8> Work = {
      G.input(N, G.opName(N).starts_with("Sparse") ? 1 : 0)};
  // About a dozen nodes of a lookup are between these values and the sum.
  constexpr unsigned Most = 64;
  while (!Work.empty() && Seen.size() < Most) {
    Endpoint E = Work.pop_back_val();
    if (!Seen.insert(E.Node).second)
      continue;
    StringRef Op = G.opName(E.Node);
    if (Op == op::Mul)
      append_range(Work, ArrayRef({G.input(E.Node, 0), G.input(E.Node, 1)}));
    else if (Op == op::Gather || Op == op::GatherV2 || Op == op::ResourceGather)
      Work.push_back(G.input(E.Node, 1));
    else if (Op == op::Unique || Op == op::Cast || Op == op::Identity ||
             Op == op::Reshape || Op == op::ExpandDims)
      Work.push_back(G.input(E.Node, 0));
    else
      Found.push_back(E);
  }
  return Found;
}

/// Returns the ParseExample nodes that parse sparse tensors from fed records.
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

/// Returns true if \p F has rank \p Rank and an unknown first dimension.
bool hasUnknownRows(const Graph &G, const Feed &F, size_t Rank) {
  auto Shape = sourceShape(G, F.At);
  return Shape && !Shape->UnknownRank && Shape->Dims.size() == Rank &&
         Shape->Dims[0] < 0;
}

} // namespace

void findSparseFeeds(const Graph &G, std::vector<Feed> &Feeds) {
  std::vector<SmallVector<SparseArguments, 2>> Arguments;
  Arguments.reserve(G.numOps());
  std::vector<bool> Takes(G.numOps());
  for (uint32_t Op = 0; Op < G.numOps(); ++Op) {
    Arguments.push_back(sparseArguments(G.opDefOf(Op)));
    Takes[Op] = !Arguments.back().empty() || G.opNameOf(Op).contains("Segment");
  }
  if (!is_contained(Takes, true))
    return;
  DenseMap<std::pair<NodeId, uint32_t>, Feed *> ByTensor;
  for (Feed &F : Feeds)
    if (!F.Named)
      ByTensor.try_emplace({F.At.Node, F.At.Port}, &F);
  auto FeedOf = [&](Endpoint E) {
    return E.Node == NoNode ? nullptr : ByTensor.lookup({E.Node, E.Port});
  };
  auto FeedAt = [&](NodeId N, int Input) {
    return Input < 0 ? nullptr : FeedOf(G.input(N, unsigned(Input)));
  };
  for (NodeId N = 0; N < G.size(); ++N) {
    if (!Takes[G.node(N).Op] || !G.isLive(N))
      continue;
    for (SparseArguments A : Arguments[G.node(N).Op]) {
      Feed *Indices = FeedAt(N, A.Indices), *Values = FeedAt(N, A.Values);
      // The shape may be a constant, but indices and values must both be feeds.
      if (!Indices || !Values)
        continue;
      for (Feed *F : {Indices, Values, FeedAt(N, A.Shape)})
        if (F)
          F->Sparse = true;
    }
    Feed *Indices = FeedOf(indicesOfSegments(G, N));
    if (!Indices || !hasUnknownRows(G, *Indices, 2))
      continue;
    for (Endpoint E : valuesOfSegments(G, N))
      if (Feed *Values = FeedOf(E); Values && hasUnknownRows(G, *Values, 1))
        Indices->Sparse = Values->Sparse = true;
  }
}

namespace {

/// The inputs of an op that combines values by segment: the values, their
/// segments, and the number of segments.
struct SegmentArguments {
  int Values = -1, Ids = -1, Count = -1;
};

/// Returns the inputs that \p N combines by segment. Returns nothing if Unique
/// computes the segments, since a segment then holds the repetitions of one
/// value, not a row.
std::optional<SegmentArguments> segmentArguments(const Graph &G, NodeId N) {
  const OpDef *Def = G.opName(N).contains("Segment") ? G.opDef(N) : nullptr;
  SegmentArguments A;
  for (size_t I = 0; Def && I < Def->inputs().size(); ++I) {
    StringRef Name = Def->inputs()[I].Name;
    int *Its = Name == "data"           ? &A.Values
               : Name == "segment_ids"  ? &A.Ids
               : Name == "num_segments" ? &A.Count
                                        : nullptr;
    if (Its)
      *Its = static_cast<int>(I);
  }
  if (A.Values < 0 || A.Ids < 0 ||
      G.opName(sameNumbers(G, G.input(N, A.Ids)).Node).starts_with(op::Unique))
    return std::nullopt;
  return A;
}

/// Calls \p Do with each operand of \p N, an op on ragged tensors, that is a
/// values tensor or a partition. Parts is true for a partition.
void forEachRaggedOperand(const Graph &G, NodeId N,
                          function_ref<void(Endpoint, bool Parts)> Do) {
  const OpDef *Def = G.opName(N).contains("Ragged") ? G.opDef(N) : nullptr;
  unsigned I = 0;
  for (const ArgDef &A : Def ? Def->inputs() : ArrayRef<ArgDef>()) {
    if (*A.TypeListAttr)
      return;
    auto Count = *A.NumberAttr ? G.intAttr(N, A.NumberAttr).value_or(0) : 1;
    StringRef Name = A.Name;
    bool Parts = Name.contains("splits") || Name.contains("row_partition"),
         Values = Name.ends_with("values");
    for (; Count > 0 && I < G.node(N).NumData; --Count, ++I)
      if (Parts || Values)
        Do(G.input(N, I), Parts);
  }
}

/// Returns the nodes with a path from \p From on which all tensors are
/// integers.
BitVector integersOf(const Graph &G, ArrayRef<Endpoint> From) {
  BitVector Found(G.size());
  SmallVector<Endpoint, 16> Work(From);
  while (!Work.empty()) {
    Endpoint At = Work.pop_back_val();
    G.forEachUse(At.Node, [&](Use U) {
      if (!G.isData(U) || (is_contained(From, At) && G.input(U) != At) ||
          Found[U.User])
        return;
      unsigned Type = G.outputType(U.User, 0);
      if (Type != DT_INT32 && Type != DT_INT64 && Type != DT_BOOL)
        return;
      Found.set(U.User);
      Work.push_back({U.User, 0});
    });
  }
  return Found;
}

/// Finds the feeds that partition values, and the feeds of the values.
class RaggedFinder {
public:
  RaggedFinder(const Graph &G, std::vector<Feed> &Feeds) : G(G), Feeds(Feeds) {
    for (Feed &F : Feeds)
      if (!F.Named && !F.Sparse)
        ByTensor.try_emplace({F.At.Node, F.At.Port}, &F);
  }

  void run();

private:
  Feed *feedOf(Endpoint E, size_t Rank) const;
  Endpoint lengthsOf(NodeId N) const;
  Endpoint countedBy(NodeId N) const;
  void parts(Endpoint E);
  void segments(NodeId N, const SegmentArguments &A);
  DimAnalysis sizes() const;
  void settle();

  const Graph &G;
  std::vector<Feed> &Feeds;
  DenseMap<std::pair<NodeId, uint32_t>, Feed *> ByTensor;
  std::vector<Endpoint> Partitions; ///< The tensors that partition values.
  std::vector<Endpoint> Values;     ///< The partitioned values.
  /// Fed segments, and the fed row numbers that look up their values.
  std::vector<std::pair<Feed *, SmallVector<Feed *, 2>>> Fed;
};

/// Returns the feed \p E if it has rank \p Rank and an unknown size, or null.
Feed *RaggedFinder::feedOf(Endpoint E, size_t Rank) const {
  E = sameNumbers(G, E);
  Feed *F = ByTensor.lookup({E.Node, E.Port});
  return F && hasUnknownRows(G, *F, Rank) ? F : nullptr;
}

/// Returns the row splits from which \p N computes row lengths:
/// `splits[1:] - splits[:-1]`.
Endpoint RaggedFinder::lengthsOf(NodeId N) const {
  auto Slice = [&](unsigned I, int64_t Begin, int64_t End) {
    Endpoint E = G.input(N, I);
    if (!G.isOp(E.Node, op::StridedSlice))
      return Endpoint{};
    auto Is = [&](unsigned Operand, int64_t Number, StringRef Mask) {
      if (Number == 0)
        return G.intAttr(E.Node, Mask) == 1;
      auto Value = constValue(G, G.input(E.Node, Operand).Node);
      return G.intAttr(E.Node, Mask).value_or(0) == 0 && Value &&
             Value->Ints == ArrayRef<int64_t>(Number);
    };
    bool IsIt = Is(1, Begin, "begin_mask") && Is(2, End, "end_mask");
    return IsIt ? G.input(E.Node, 0) : Endpoint{};
  };
  if (!G.isOp(N, op::Sub) || isFloating(G.outputType(N, 0)))
    return {};
  Endpoint Next = Slice(0, 1, 0);
  return Next == Slice(1, 0, -1) ? Next : Endpoint{};
}

/// Returns the row lengths from which \p N computes row splits: a cumulative
/// sum that begins with 0.
Endpoint RaggedFinder::countedBy(NodeId N) const {
  if (!G.isOp(N, op::ConcatV2) || G.node(N).NumData != 3 ||
      isFloating(G.outputType(N, 0)))
    return {};
  auto First = constValue(G, G.input(N, 0).Node);
  NodeId Sums = sameNumbers(G, G.input(N, 1)).Node;
  return First && First->AllZero && First->NumElements == 1 &&
                 G.isOp(Sums, op::Cumsum)
             ? G.input(Sums, 0)
             : Endpoint{};
}

void RaggedFinder::parts(Endpoint E) {
  if (E.Node == NoNode)
    return;
  Partitions.push_back(E);
  if (Feed *F = feedOf(E, 1))
    F->Sparse = F->Ragged = F->Parts = true;
}

void RaggedFinder::segments(NodeId N, const SegmentArguments &A) {
  // A constant number of segments is no batch size.
  if (A.Count >= 0 &&
      G.isOp(sameNumbers(G, G.input(N, A.Count)).Node, op::Const))
    return;
  Feed *Ids = feedOf(G.input(N, A.Ids), 1);
  SmallVector<Feed *, 2> Its;
  for (Endpoint E : Ids ? valuesOfSegments(G, N) : SmallVector<Endpoint, 4>())
    if (Feed *F = feedOf(E, 1))
      Its.push_back(F);
  if (!Its.empty())
    Fed.push_back({Ids, std::move(Its)});
}

/// Infers the sizes under the assumption that each possible batch axis of a
/// feed is a batch axis.
DimAnalysis RaggedFinder::sizes() const {
  DimOptions Options;
  Options.Unpatched = true;
  for (const Feed &F : Feeds) {
    auto Shape = sourceShape(G, F.At);
    bool Open = Shape && !Shape->UnknownRank && !Shape->Dims.empty() &&
                Shape->Dims[0] < 0 && !F.Named;
    if (Open || F.Axis >= 0)
      Options.Suppose.push_back(
          {F.At, static_cast<unsigned>(F.Named ? F.Axis : 0)});
  }
  return DimAnalysis(G, topologicalOrder(G), Options);
}

/// Marks the feeds that have as many rows as the partitioned values, since the
/// values are not rows of the batch. Marks fed segments and their values only
/// if no other feed has as many rows.
void RaggedFinder::settle() {
  DimAnalysis Dims = sizes();
  auto RowsOf = [&](Endpoint E) -> std::optional<DimId> {
    auto Shape = Dims.shape(E);
    if (!Shape || Shape->empty())
      return std::nullopt;
    return Dims.table().find(Shape->front());
  };
  auto HasRows = [&](const Feed &F, DimId Rows) {
    auto Shape = sourceShape(G, F.At);
    return Shape && !Shape->UnknownRank && !Shape->Dims.empty() &&
           RowsOf(F.At) == Rows;
  };
  for (Endpoint E : Values)
    if (auto Rows = RowsOf(E))
      for (Feed &F : Feeds)
        if (!F.Named && HasRows(F, *Rows) && sourceShape(G, F.At)->Dims[0] < 0)
          F.Sparse = F.Ragged = true;
  for (auto &[Ids, Its] : Fed) {
    auto Rows = RowsOf(Ids->At);
    auto All = Its;
    All.push_back(Ids);
    if (!Rows || any_of(Feeds, [&](Feed &F) {
          return is_contained(All, &F) != HasRows(F, *Rows);
        }))
      continue;
    for (Feed *F : All)
      F->Sparse = F->Ragged = true;
    Ids->Parts = true;
  }
}

void RaggedFinder::run() {
  bool Any = false;
  for (uint32_t Op = 0; Op < G.numOps(); ++Op)
    Any |=
        G.opNameOf(Op).contains("Segment") || G.opNameOf(Op).contains("Ragged");
  if (!Any || ByTensor.empty())
    return;
  for (NodeId N = 0; N < G.size(); ++N) {
    if (!G.isLive(N))
      continue;
    parts(lengthsOf(N));
    if (Endpoint E = countedBy(N); E.Node != NoNode) {
      parts(E);
      Partitions.push_back({N, 0});
    }
    forEachRaggedOperand(G, N, [&](Endpoint E, bool Parts) {
      if (Parts)
        parts(E);
      else
        Values.push_back(E);
    });
  }
  BitVector OfPartition = integersOf(G, Partitions);
  for (NodeId N = 0; N < G.size(); ++N)
    if (auto A = G.isLive(N) ? segmentArguments(G, N) : std::nullopt) {
      if (OfPartition[G.input(N, A->Ids).Node])
        Values.push_back(G.input(N, A->Values));
      else
        segments(N, *A);
    }
  if (!Values.empty() || !Fed.empty())
    settle();
}

} // namespace

void findRaggedFeeds(const Graph &G, std::vector<Feed> &Feeds) {
  RaggedFinder(G, Feeds).run();
}

namespace {

/// Returns the last nodes that combine the values of ragged \p Feeds by
/// segment. Their results have a row for each row of the batch.
BitVector rowsOfRagged(const Graph &G, ArrayRef<Feed> Feeds) {
  BitVector Rows(G.size());
  SmallVector<Endpoint, 4> Parting;
  for (const Feed &F : Feeds)
    if (F.Sparse && F.Parts)
      Parting.push_back(F.At);
  if (Parting.empty())
    return Rows;
  BitVector OfPartition = integersOf(G, Parting), OfBatch(G.size());
  for (Endpoint E : Parting)
    OfPartition.set(E.Node);
  std::vector<NodeId> Splits, Work;
  for (NodeId N = 0; N < G.size(); ++N)
    if (G.isLive(N) && G.node(N).Kind == Inserted::Split)
      Splits.push_back(N);
  walkUsers(G, std::move(Splits), Along::Data, OfBatch);
  BitVector Leads(G.size());
  for (NodeId N = 0; N < G.size(); ++N) {
    if (!G.isLive(N))
      continue;
    if (auto A = segmentArguments(G, N)) {
      NodeId Count = A->Count < 0 ? NoNode : G.input(N, A->Count).Node;
      if (OfPartition[G.input(N, A->Ids).Node] &&
          (Count == NoNode || OfPartition[Count] || OfBatch[Count])) {
        Rows.set(N);
        Work.push_back(G.input(N, A->Values).Node);
      }
    } else if (G.isOp(N, op::RaggedTensorToTensor)) {
      forEachRaggedOperand(G, N, [&](Endpoint E, bool Parts) {
        if (Parts && OfPartition[E.Node])
          Rows.set(N);
        else if (!Parts)
          Work.push_back(E.Node);
      });
    }
  }
  walkInputs(G, std::move(Work), Along::Data, Leads);
  Leads.flip();
  Rows &= Leads;
  return Rows;
}

/// Returns the sparse operand of \p N if \p N works on the rows of one sparse
/// operand. Its other operands are dense.
std::optional<SparseArguments> takesEntries(const Graph &G, NodeId N) {
  if (G.isOp(N, op::SparseTensorDenseMatMul))
    return SparseArguments{0, 1, 2};
  if (G.isOp(N, op::SparseToDense))
    return SparseArguments{0, 2, 1};
  return std::nullopt;
}

/// Finds the sparse tensors of which each replica needs only the entries of its
/// rows.
class EntryFinder {
public:
  EntryFinder(const Graph &G, std::vector<Feed> &Feeds) : G(G) {
    for (Feed &F : Feeds) {
      if (F.Sparse && !F.Named && F.Axis < 0)
        Fed.try_emplace({F.At.Node, F.At.Port}, &F);
      if (F.Sparse || F.Axis >= 0)
        Roots.push_back(F.At.Node);
    }
  }

  std::vector<SparseFeed> run();

private:
  enum Part { Indices, Values, Shape };
  bool passes(NodeId N, Part Of) const;
  Endpoint rootOf(Endpoint E, Part Of) const;
  bool onlyEntries(Endpoint E, Part Of) const;
  void add(NodeId N, const SparseArguments &A);
  Feed *feedOf(Endpoint E) const { return Fed.lookup({E.Node, E.Port}); }

  const Graph &G;
  DenseMap<std::pair<NodeId, uint32_t>, Feed *> Fed;
  std::vector<NodeId> Roots; ///< The feeds that follow the batch.
  BitVector OfBatch;         ///< The nodes that depend on Roots.
  DenseSet<NodeId> Entries;  ///< The nodes with takesEntries().
  /// The sparse tensors by indices. One without valid Indices is ignored.
  MapVector<std::pair<NodeId, uint32_t>, SparseFeed> Found;
};

/// Returns true if \p N passes entries on, or maps the value of each entry.
bool EntryFinder::passes(NodeId N, Part Of) const {
  if (G.node(N).NumData != 1)
    return false;
  if (G.isOp(N, op::Identity) || (G.isOp(N, op::Cast) && Of != Indices))
    return true;
  return Of == Values && (ruleOf(G.opName(N)).Is & trait::Elementwise) != 0;
}

Endpoint EntryFinder::rootOf(Endpoint E, Part Of) const {
  constexpr unsigned MaxDepth = 16;
  for (unsigned Depth = 0; Depth < MaxDepth && passes(E.Node, Of); ++Depth)
    E = G.input(E.Node, 0);
  return E;
}

/// Returns true if only ops of Entries compute dense rows from \p E. Other
/// readers are unreplicated and read the whole tensor.
bool EntryFinder::onlyEntries(Endpoint E, Part Of) const {
  DenseSet<NodeId> Seen;
  bool Fits = true;
  walkFrom({E.Node}, Seen, [&](NodeId N, std::vector<NodeId> &Next) {
    bool IsEntries = N == E.Node;
    G.forEachUse(N, [&](Use U) {
      if (!Fits || !G.isData(U) || (IsEntries && G.input(U) != E))
        return;
      auto A = takesEntries(G, U.User);
      if (A && Entries.contains(U.User) &&
          static_cast<int>(U.Index) == (Of == Indices ? A->Indices : A->Values))
        return;
      Fits &= !givesRows(G, U.User) && !G.isOp(U.User, op::CTCLoss) &&
              !G.isOp(U.User, op::CTCLossV2) &&
              !G.isOp(U.User, op::SparseFillEmptyRows);
      Next.push_back(U.User);
    });
  });
  return Fits;
}

void EntryFinder::add(NodeId N, const SparseArguments &A) {
  Endpoint I = rootOf(G.input(N, A.Indices), Indices),
           V = rootOf(G.input(N, A.Values), Values),
           S = rootOf(G.input(N, A.Shape), Shape);
  auto [It, New] = Found.try_emplace({I.Node, I.Port});
  SparseFeed &F = It->second;
  // If the dense factor has rows of the batch, the sparse matrix has a column
  // for each row of the batch, so its rows cannot be split without its columns.
  bool IsSquare = G.isOp(N, op::SparseTensorDenseMatMul) &&
                  !G.boolAttr(N, "adjoint_a").value_or(false) &&
                  OfBatch[G.input(N, 3).Node];
  bool Fits = !IsSquare && feedOf(I) && feedOf(V) &&
              G.outputType(I) == DT_INT64 && G.outputType(S) == DT_INT64 &&
              (feedOf(S) || G.isOp(S.Node, op::Const) ||
               G.opName(S.Node).starts_with(op::Placeholder));
  if (New && Fits)
    F = {I, V, S, {}};
  else if (!Fits || F.Values != V || F.Shape != S)
    F.Indices = {};
  if (Fits)
    Entries.insert(N);
  // The first use of the shape on the path to this op.
  Use Last{N, static_cast<unsigned>(A.Shape)};
  for (Endpoint E = G.input(N, A.Shape); E != S; E = G.input(E.Node, 0))
    Last = {E.Node, 0};
  F.OfShape.push_back(Last);
}

std::vector<SparseFeed> EntryFinder::run() {
  if (Fed.empty())
    return {};
  OfBatch.resize(G.size());
  walkUsers(G, {Roots.begin(), Roots.end()}, Along::Data, OfBatch);
  for (NodeId N = 0; N < G.size(); ++N)
    if (G.isLive(N))
      if (auto A = takesEntries(G, N))
        add(N, *A);
  DenseMap<std::pair<NodeId, uint32_t>, unsigned> Times;
  for (auto &[At, F] : Found)
    ++Times[{F.Values.Node, F.Values.Port}],
        ++Times[{F.Shape.Node, F.Shape.Port}];
  std::vector<SparseFeed> Result;
  for (auto &[At, F] : Found) {
    if (F.Indices.Node == NoNode ||
        Times[{F.Values.Node, F.Values.Port}] != 1 ||
        !onlyEntries(F.Indices, Indices) || !onlyEntries(F.Values, Values))
      continue;
    // If no other sparse tensor has this fed shape, all users of the shape read
    // the per-replica shape.
    if (feedOf(F.Shape) && Times[{F.Shape.Node, F.Shape.Port}] == 1) {
      auto All = G.uses(F.Shape.Node);
      F.OfShape.assign(All.begin(), All.end());
    }
    erase_if(F.OfShape, [&](Use U) {
      return !G.isData(U) || G.input(U.User, U.Index) != F.Shape;
    });
    for (Endpoint E : {F.Indices, F.Values, F.Shape})
      if (Feed *Its = feedOf(E))
        Its->InRows = true;
    Result.push_back(std::move(F));
  }
  return Result;
}

} // namespace

std::vector<SparseFeed> sparseFeedsInRows(const Graph &G,
                                          std::vector<Feed> &Feeds) {
  return EntryFinder(G, Feeds).run();
}

std::vector<SparseRows> keepSparseOnce(Graph &G, const VariableIndex &Vars,
                                       ArrayRef<Feed> Feeds) {
  std::vector<SparseRows> Rows;
  std::vector<NodeId> Work;
  // Reshapes with a size computed from a sparse tensor.
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
    if (F.Sparse && !F.InRows)
      Follow(F.At.Node, F.At.Port);
  for (NodeId N : sparseParsers(G, Feeds)) {
    // The parser reads the whole feed, not the shard of a replica.
    G.setInput(N, 0, G.input(G.input(N, 0).Node, 0));
    G.setBoolAttr(N, OnceAttr, true);
    unsigned First = firstDenseFeature(G, N);
    for (unsigned Port = 0, E = G.numOutputs(N).value_or(0); Port < E; ++Port)
      if (Port < First)
        Follow(N, Port);
      else
        Rows.push_back({{N, Port}, 0});
  }
  BitVector OfRagged = rowsOfRagged(G, Feeds);
  while (!Work.empty() || !Shaped.empty()) {
    bool IsShaped = Work.empty();
    std::vector<NodeId> &From = IsShaped ? Shaped : Work;
    NodeId N = From.back();
    From.pop_back();
    if (Vars.isUpdate(G, N) || G.hasAttr(N, OnceAttr) || G.opDef(N) == nullptr)
      continue;
    G.setBoolAttr(N, OnceAttr, true);
    if (IsShaped || OfRagged[N] || givesRows(G, N)) {
      Rows.push_back({{N, 0}, 0});
      continue;
    }
    // CTCLoss returns a loss for each row, and a gradient of shape [time, rows,
    // classes].
    if (G.isOp(N, op::CTCLoss) || G.isOp(N, op::CTCLossV2)) {
      Rows.push_back({{N, 0}, 0});
      Rows.push_back({{N, 1}, 1});
      continue;
    }
    // Output 2 of SparseFillEmptyRows marks each row that was empty.
    bool Fills = G.isOp(N, op::SparseFillEmptyRows);
    if (Fills)
      Rows.push_back({{N, 2}, 0});
    for (unsigned Port = 0, E = G.numOutputs(N).value_or(0); Port < E; ++Port)
      if (!Fills || Port != 2)
        Follow(N, Port);
  }
  llvm::sort(Rows, [](const SparseRows &A, const SparseRows &B) {
    return std::pair(A.At.Node, A.At.Port) < std::pair(B.At.Node, B.At.Port);
  });
  return Rows;
}

} // namespace graft
