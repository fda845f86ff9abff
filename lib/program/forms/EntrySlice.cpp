//===- lib/program/forms/EntrySlice.cpp - entries of some rows --*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "lib/program/forms/EntrySlice.h"

#include "lib/graph/AttrRun.h"
#include "lib/ops/Ops.h"
#include "lib/ops/ProgramOps.h"

#include "llvm/ADT/STLExtras.h"

using namespace llvm;

namespace graft {
namespace {

/// Matches a SparseSlice with the form.
class EntrySlice {
public:
  EntrySlice(const Graph &G, unsigned Replicas) : G(G), Replicas(Replicas) {}

  NodeId rows(NodeId N) const;

private:
  bool is(Endpoint E, StringRef Op, unsigned NumData) const {
    return E.Node != NoNode && E.Port == 0 && G.isOp(E.Node, Op) &&
           G.node(E.Node).NumData == NumData;
  }
  /// Returns true if \p E is a constant with the single element \p Value.
  bool isNumber(Endpoint E, int64_t Value) const {
    auto Is = is(E, op::Const, 0) ? constValue(G, E.Node) : std::nullopt;
    return Is && Is->HasInts && Is->NumElements == 1 && Is->Ints.size() == 1 &&
           Is->Ints[0] == Value;
  }
  /// Returns true if \p E slices \p Size elements of \p Of from \p Begin.
  bool isPart(Endpoint E, Endpoint Of, int64_t Begin, int64_t Size) const {
    return is(E, op::Slice, 3) && G.input(E.Node, 0) == Of &&
           isNumber(G.input(E.Node, 1), Begin) &&
           isNumber(G.input(E.Node, 2), Size);
  }
  /// Returns the limit of \p E if it is Range(0, limit, 1).
  Endpoint limit(Endpoint E) const {
    return is(E, op::Range, 3) && isNumber(G.input(E.Node, 0), 0) &&
                   isNumber(G.input(E.Node, 2), 1)
               ? G.input(E.Node, 1)
               : Endpoint{};
  }
  /// Returns the tensor that \p E splits among replicas along axis 0.
  Endpoint whole(Endpoint E) const {
    return E.Node != NoNode && E.Port == 0 && G.isOp(E.Node, ToReplicasOp) &&
                   G.node(E.Node).NumData != 0 && G.isPerReplica(E.Node) &&
                   G.intAttr(E.Node, "axis").value_or(0) == 0
               ? G.input(E.Node, 0)
               : Endpoint{};
  }
  /// Returns operand 0 if \p E is FloorMod*(number, n), the number of a shard.
  /// Otherwise returns \p E, the number of a replica.
  Endpoint number(Endpoint E) const {
    return is(E, op::FloorMod, 2) ? G.input(E.Node, 0) : E;
  }
  bool isCount(Endpoint E) const {
    return Replicas == 0 ? E.Node != NoNode : isNumber(E, Replicas);
  }
  bool isJoined(Endpoint E) const {
    return is(E, op::Concat, 3) && isNumber(G.input(E.Node, 0), 0);
  }

  const Graph &G;
  unsigned Replicas;
};

NodeId EntrySlice::rows(NodeId N) const {
  if (!G.isOp(N, op::SparseSlice) || G.node(N).NumData != 5 ||
      !G.isPerReplica(N))
    return NoNode;
  Endpoint Shape = G.input(N, 2), Start = G.input(N, 3), Size = G.input(N, 4);
  if (G.isPerReplica(Shape.Node) || !isJoined(Start) || !isJoined(Size))
    return NoNode;
  Endpoint Count = G.input(Size.Node, 1), Rest = G.input(Size.Node, 2);
  if (!isPart(Rest, Shape, 1, -1) || !is(Count, op::Shape, 1))
    return NoNode;
  // The zeros that are split have an element for each row of the shape.
  Endpoint Rows = G.input(Count.Node, 0), Zeros = whole(Rows);
  Endpoint All =
      is(Zeros, op::ZerosLike, 1) ? limit(G.input(Zeros.Node, 0)) : Endpoint{};
  if (!is(All, op::Squeeze, 1) || !isPart(G.input(All.Node, 0), Shape, 0, 1))
    return NoNode;
  // The slice begins after the rows of the preceding replicas.
  Endpoint First = G.input(Start.Node, 1), None = G.input(Start.Node, 2);
  if (!is(None, op::ZerosLike, 1) || G.input(None.Node, 0) != Rest ||
      !is(First, op::Mul, 2) || G.input(First.Node, 0) != Count ||
      !isCount(limit(whole(number(G.input(First.Node, 1))))))
    return NoNode;
  return Rows.Node;
}

} // namespace

NodeId rowsSliced(const Graph &G, NodeId N, unsigned Replicas) {
  return EntrySlice(G, Replicas).rows(N);
}

NodeId rowsBefore(const Graph &G, NodeId N) {
  return G.input(G.input(N, 3).Node, 1).Node;
}

NodeId entriesSliced(const Graph &G, Endpoint E, uint32_t Port,
                     unsigned Replicas) {
  // The number of ops to look through.
  constexpr unsigned MaxDepth = 16;
  for (unsigned Depth = 0; Depth < MaxDepth && E.Node != NoNode; ++Depth) {
    if (G.isOp(E.Node, op::SparseSlice))
      return E.Port == Port && rowsSliced(G, E.Node, Replicas) != NoNode
                 ? E.Node
                 : NoNode;
    bool Passes =
        G.isOp(E.Node, op::Identity) || (Port == 2 && G.isOp(E.Node, op::Cast));
    if (!Passes || E.Port != 0 || G.node(E.Node).NumData != 1)
      return NoNode;
    E = G.input(E.Node, 0);
  }
  return NoNode;
}

Endpoint splitSource(const Graph &G, NodeId Split, uint32_t Port) {
  return G.input(Split, G.isOp(Split, op::SparseSlice) ? Port : 0);
}

SmallVector<NodeId, 3> insertEntrySlice(Graph &G, StringRef Name,
                                        Endpoint Indices, Endpoint Values,
                                        Endpoint Shape, ArrayRef<Use> OfShape,
                                        unsigned Replicas) {
  SmallVector<NodeId, 3> Seeds;
  NodeId Last = Shape.Node;
  std::string Prefix = (Name + "/rows").str();
  auto Insert = [&](StringRef Suffix, StringRef Op, ArrayRef<Endpoint> Inputs,
                    const AttrRun &Attrs, Inserted Kind = Inserted::Check,
                    Copies Count = Copies::Once) {
    Last = G.insertNode(Prefix + Suffix.str(), Op, Inputs, Last, Attrs, Kind,
                        Count);
    return Endpoint{Last, 0};
  };
  auto Number = [&](StringRef Suffix, int64_t Value, bool IsVector,
                    unsigned Type = DT_INT64) {
    SmallVector<int64_t, 1> Of;
    if (IsVector)
      Of.push_back(1);
    AttrRun Attrs;
    Attrs.type("dtype", Type).raw("value", encodeIntTensor(Type, Of, Value));
    return Insert(Suffix, op::Const, {}, Attrs, Inserted::Definition);
  };
  auto UsesOf = [&](Endpoint E) {
    std::vector<Use> Found;
    for (Use U : G.uses(E.Node))
      if (G.isData(U) && G.input(U.User, U.Index) == E)
        Found.push_back(U);
    return Found;
  };
  auto OfIndices = UsesOf(Indices), OfValues = UsesOf(Values);
  auto Typed = [](StringRef Index = "") {
    AttrRun Attrs;
    Attrs.type("T", DT_INT64);
    if (!Index.empty())
      Attrs.type(Index, DT_INT64);
    return Attrs;
  };
  auto Range = [&](StringRef Suffix, Endpoint Limit) {
    Endpoint Bounds[] = {Number((Suffix + "/start").str(), 0, false), Limit,
                         Number((Suffix + "/delta").str(), 1, false)};
    return Insert(Suffix, op::Range, Bounds, AttrRun().type("Tidx", DT_INT64),
                  Inserted::Definition);
  };
  auto Split = [&](StringRef Suffix, Endpoint Of) {
    AttrRun Attrs = Typed();
    Attrs.integer("axis", 0);
    Seeds.push_back(Insert(Suffix, ToReplicasOp, Of, Attrs, Inserted::Split,
                           Copies::PerReplica)
                        .Node);
    return Endpoint{Last, 0};
  };
  auto Each = [&](StringRef Suffix, StringRef Op, ArrayRef<Endpoint> Inputs,
                  const AttrRun &Attrs) {
    return Insert(Suffix, Op, Inputs, Attrs, Inserted::Check,
                  Copies::PerReplica);
  };
  Endpoint Zero = Number("/first/begin", 0, true),
           One = Number("/first/size", 1, true),
           Rest = Number("/rest/size", -1, true);
  Endpoint First =
      Insert("/first", op::Slice, {Shape, Zero, One}, Typed("Index"));
  Endpoint Limit = Insert("/all/limit", op::Squeeze, First,
                          Typed().raw("squeeze_dims", encodeIntListAttr({})),
                          Inserted::Definition);
  Endpoint Zeros =
      Insert("/zeros", op::ZerosLike, Range("/all", Limit), Typed());
  Endpoint Rows = Split("", Zeros);
  Rest = Insert("/rest", op::Slice, {Shape, One, Rest}, Typed("Index"));
  Endpoint None = Insert("/none", op::ZerosLike, Rest, Typed());
  Endpoint Replica =
      Split("/replica", Range("/replicas", Number("/replicas/limit", Replicas,
                                                  /*IsVector=*/false)));
  Endpoint Axis = Number("/axis", 0, /*IsVector=*/false, DT_INT32);
  Endpoint Count = Each("/count", op::Shape, Rows, Typed("out_type"));
  Endpoint Before = Each("/before", op::Mul, {Count, Replica}, Typed());
  auto Join = [&](StringRef Suffix, Endpoint X, Endpoint Y) {
    AttrRun Attrs = Typed();
    Attrs.integer("N", 2);
    return Each(Suffix, op::Concat, {Axis, X, Y}, Attrs);
  };
  Endpoint Start = Join("/start", Before, None);
  Endpoint Size = Join("/size", Count, Rest);
  Endpoint Parts[] = {Indices, Values, Shape, Start, Size};
  NodeId N = Insert("/entries", op::SparseSlice, Parts,
                    AttrRun().type("T", G.outputType(Values)), Inserted::Split,
                    Copies::PerReplica)
                 .Node;
  Seeds.push_back(N);
  for (Use U : OfIndices)
    G.setInput(U.User, U.Index, {N, 0});
  for (Use U : OfValues)
    G.setInput(U.User, U.Index, {N, 1});
  for (Use U : OfShape)
    G.setInput(U.User, U.Index, {N, 2});
  return Seeds;
}

} // namespace graft
