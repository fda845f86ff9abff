//===- lib/certify/tpu/Stack.cpp - exchanges of replicas ------------------===//
//
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "lib/certify/tpu/Stack.h"

#include "lib/ops/Ops.h"

#include "llvm/ADT/STLExtras.h"

#include <numeric>

using namespace llvm;

namespace graft {
namespace {

class Reader {
public:
  Reader(const Graph &G, const TpuFile &File) : G(G), File(File) {}

  std::optional<TpuExchange> read(NodeId N) const;

private:
  bool isNew(NodeId N, StringRef Op, unsigned NumData) const;
  bool isNumbers(Endpoint E) const;
  bool isReplica(Endpoint E) const;
  std::optional<int64_t> number(Endpoint E) const;
  std::optional<Endpoint> stacked(Endpoint E) const;
  std::optional<Endpoint> rows(Endpoint E) const;

  const Graph &G;
  const TpuFile &File;
};

/// Returns true if \p N is an inserted op of the computation: an \p Op with \p
/// NumData data inputs.
bool Reader::isNew(NodeId N, StringRef Op, unsigned NumData) const {
  return G.isOp(N, Op) && G.node(N).NumData == NumData && File.isMember(N) &&
         !File.isOfInput(N);
}

/// Returns true if \p E is [0 .. N-1].
bool Reader::isNumbers(Endpoint E) const {
  auto Value = constValue(G, E.Node, File.replicas());
  SmallVector<int64_t, 8> All(File.replicas());
  std::iota(All.begin(), All.end(), 0);
  return Value && Value->HasInts && ArrayRef(Value->Ints) == ArrayRef(All) &&
         Value->Shape.Dims.size() == 1;
}

/// Returns true if \p E is the number of the replica, as a vector of one
/// element.
bool Reader::isReplica(Endpoint E) const {
  if (File.isMember(E.Node) && G.isOp(E.Node, op::Identity))
    E = G.input(E.Node, 0);
  if (File.role(E.Node) != TpuRole::Input)
    return false;
  NodeId Split = G.input(E.Node, 0).Node;
  for (unsigned R = 0; R < File.replicas(); ++R)
    if (File.operand(E.Node, R) != Endpoint{Split, R})
      return false;
  return G.isOp(Split, op::Split) && G.node(Split).NumData == 2 &&
         G.intAttr(Split, "num_split") == File.replicas() &&
         number(G.input(Split, 0)) == 0 && isNumbers(G.input(Split, 1));
}

/// Returns the value of the scalar constant \p E.
std::optional<int64_t> Reader::number(Endpoint E) const {
  auto Value = constValue(G, E.Node);
  if (!Value || !Value->HasInts || Value->Ints.size() != 1 ||
      !Value->Shape.Dims.empty())
    return std::nullopt;
  return Value->Ints[0];
}

/// Returns x if \p E stacks the tensors x of all replicas along a new first
/// axis. x has the type of the sum.
std::optional<Endpoint> Reader::rows(Endpoint E) const {
  if (E.Port != 0 || File.role(E.Node) != TpuRole::Sum)
    return std::nullopt;
  NodeId Own = G.input(E.Node, 0).Node;
  if (!isNew(Own, op::Select, 3))
    return std::nullopt;
  NodeId Mine = G.input(Own, 0).Node, Rows = G.input(Own, 1).Node,
         Zeros = G.input(Own, 2).Node;
  if (!isNew(Mine, op::Equal, 2) || !isNumbers(G.input(Mine, 0)) ||
      !isReplica(G.input(Mine, 1)) || !isNew(Zeros, op::ZerosLike, 1) ||
      G.input(Zeros, 0) != Endpoint{Rows, 0} ||
      !isNew(Rows, op::Pack, File.replicas()) ||
      G.intAttr(Rows, "axis").value_or(0) != 0 ||
      !all_of(G.dataInputs(Rows),
              [&](Endpoint X) { return X == G.input(Rows, 0); }))
    return std::nullopt;
  return G.input(Rows, 0);
}

/// Like rows(), but x is the tensor before its conversion to that type.
std::optional<Endpoint> Reader::stacked(Endpoint E) const {
  if (auto Plain = rows(E))
    return Plain;
  bool Bits = isNew(E.Node, op::Bitcast, 1);
  if (!Bits && !isNew(E.Node, op::Cast, 1))
    return std::nullopt;
  auto Numbers = rows(G.input(E.Node, 0));
  // The conversion to 32-bit numbers and back must be lossless.
  if (!Numbers || !isNew(Numbers->Node, Bits ? op::Bitcast : op::Cast, 1) ||
      G.outputType(*Numbers) != DT_INT32)
    return std::nullopt;
  Endpoint X = G.input(Numbers->Node, 0);
  unsigned Type = G.outputType(X);
  bool Fits = Bits ? Type == DT_INT64 || Type == DT_DOUBLE
                   : Type == DT_BOOL || Type == DT_UINT8 || Type == DT_INT8 ||
                         Type == DT_INT16;
  return Fits && G.outputType(E) == Type ? std::optional(X) : std::nullopt;
}

std::optional<TpuExchange> Reader::read(NodeId N) const {
  unsigned Replicas = File.replicas();
  // With one replica, the exchange is an Identity.
  if (Replicas == 1 && isNew(N, op::Unpack, 1) &&
      G.intAttr(N, "axis").value_or(0) == 0) {
    auto X = stacked(G.input(N, 0));
    return X ? std::optional(TpuExchange{*X, op::Identity}) : std::nullopt;
  }
  if (isNew(N, op::ConcatV2, Replicas + 1)) {
    NodeId Parts = G.input(N, 0).Node;
    auto Axis = number(G.input(N, Replicas));
    if (!Axis || !isNew(Parts, op::Unpack, 1) ||
        G.intAttr(Parts, "num") != Replicas ||
        G.intAttr(Parts, "axis").value_or(0) != 0)
      return std::nullopt;
    for (unsigned R = 0; R < Replicas; ++R)
      if (G.input(N, R) != Endpoint{Parts, R})
        return std::nullopt;
    auto X = stacked(G.input(Parts, 0));
    return X ? std::optional(TpuExchange{*X, op::ConcatV2, *Axis})
             : std::nullopt;
  }
  for (StringRef Op : {op::Min, op::Max}) {
    if (!isNew(N, Op, 2))
      continue;
    auto X = stacked(G.input(N, 0));
    if (!X || number(G.input(N, 1)) != 0 ||
        G.boolAttr(N, "keep_dims").value_or(false))
      return std::nullopt;
    return TpuExchange{*X, Op};
  }
  if (!isNew(N, op::Greater, 2) ||
      File.role(G.input(N, 0).Node) != TpuRole::Sum)
    return std::nullopt;
  NodeId Ones = G.input(G.input(N, 0).Node, 0).Node;
  auto Limit = number(G.input(N, 1));
  if (!isNew(Ones, op::Cast, 1) || G.outputType({Ones, 0}) != DT_INT32 ||
      G.outputType(G.input(Ones, 0)) != DT_BOOL)
    return std::nullopt;
  if (Limit == 0)
    return TpuExchange{G.input(Ones, 0), op::Any};
  if (Limit == int64_t(Replicas) - 1)
    return TpuExchange{G.input(Ones, 0), op::All};
  return std::nullopt;
}

} // namespace

std::optional<TpuExchange> findExchange(const Graph &G, const TpuFile &File,
                                        NodeId N) {
  return Reader(G, File).read(N);
}

} // namespace graft
