//===- lib/program/forms/RowRepeat.cpp - rows that repeat -----------------===//
//
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "lib/program/forms/RowRepeat.h"

#include "lib/ops/Ops.h"
#include "lib/ops/ProgramOps.h"

#include <cmath>
#include <numeric>

using namespace llvm;

namespace graft {

/// Returns the number of shards if \p Rest is the number of rows modulo \p
/// Replicas.
static unsigned shards(unsigned Replicas, unsigned Rest) {
  return std::gcd(Replicas, Rest);
}

std::string timesTable(unsigned Replicas, unsigned Rank, unsigned Axis) {
  SmallVector<int64_t, 16> Values;
  for (unsigned Rest = 0; Rest < Replicas; ++Rest)
    for (unsigned I = 0; I < Rank; ++I)
      Values.push_back(I == Axis ? Replicas / shards(Replicas, Rest) : 1);
  return encodeIntTensor(DT_INT32, {int64_t(Replicas), int64_t(Rank)}, Values);
}

static bool isReal(unsigned Type) {
  return isFloating(Type) || isComplex(Type);
}

bool isScaleDivision(unsigned Type, int64_t Power, int64_t Share) {
  return !isReal(Type) && (Power < 0 || Share > 0);
}

std::string scaleTable(unsigned Replicas, unsigned Type,
                       ArrayRef<int64_t> Powers, int64_t Share) {
  SmallVector<double, 16> Values;
  for (unsigned Rest = 0; Rest < Replicas; ++Rest)
    for (int64_t Power : Powers) {
      double Shards = shards(Replicas, Rest);
      double Factor = std::pow(Shards, static_cast<double>(Power)) *
                      std::pow(Shards / Replicas, static_cast<double>(Share));
      Values.push_back(isScaleDivision(Type, Power, Share) ? 1 / Factor
                                                           : Factor);
    }
  SmallVector<int64_t, 2> Shape = {int64_t(Replicas)};
  if (Powers.size() != 1)
    Shape.push_back(static_cast<int64_t>(Powers.size()));
  if (isReal(Type))
    return encodeFloatTensor(Type, Shape, Values);
  SmallVector<int64_t, 16> Ints;
  for (double Value : Values)
    Ints.push_back(std::llround(Value));
  return encodeIntTensor(Type, Shape, Ints);
}

/// Returns true if \p N and its \p Operands wait for no node.
static bool isFree(const Graph &G, NodeId N, ArrayRef<unsigned> Operands) {
  return G.controlInputs(N).empty() && all_of(Operands, [&](unsigned I) {
           return G.controlInputs(G.input(N, I).Node).empty();
         });
}

bool isFreeOp(const Graph &G, Endpoint E, StringRef Op, unsigned NumData) {
  return E.Port == 0 && G.isOp(E.Node, Op) &&
         G.node(E.Node).NumData == NumData && G.controlInputs(E.Node).empty();
}

std::optional<RowLookup> rowLookup(const Graph &G, Endpoint E) {
  if (E.Port != 0 || !G.isOp(E.Node, op::GatherV2) ||
      G.node(E.Node).NumData != 3)
    return std::nullopt;
  NodeId Table = G.input(E.Node, 0).Node;
  if (!G.isOp(Table, op::Const) || !isFree(G, E.Node, {0, 2}) ||
      constScalar(G, G.input(E.Node, 2).Node) != 0.0)
    return std::nullopt;
  return RowLookup{Table, G.input(E.Node, 1)};
}

std::optional<std::pair<Endpoint, int64_t>> takenElement(const Graph &G,
                                                         Endpoint E) {
  if (E.Port != 0 || !G.isOp(E.Node, op::GatherV2) ||
      G.node(E.Node).NumData != 3 || !isFree(G, E.Node, {1, 2}))
    return std::nullopt;
  auto Index = constScalar(G, G.input(E.Node, 1).Node);
  if (!Index || !(*Index >= 0) || *Index > 255 ||
      constScalar(G, G.input(E.Node, 2).Node) != 0.0)
    return std::nullopt;
  return std::pair(G.input(E.Node, 0), static_cast<int64_t>(*Index));
}

std::optional<RowCount> rowCount(const Graph &G, Endpoint E) {
  auto Size = takenElement(G, E);
  if (!Size || !isFree(G, E.Node, {0}) ||
      !G.isOp(Size->first.Node, op::Shape) ||
      G.node(Size->first.Node).NumData != 1)
    return std::nullopt;
  return RowCount{G.input(Size->first.Node, 0), Size->second};
}

SmallVector<int64_t, 4> statedPowers(const Graph &G, NodeId N) {
  if (auto List = G.intListAttr(N, PowersAttr))
    return SmallVector<int64_t, 4>(*List);
  return {G.intAttr(N, PowerAttr).value_or(0)};
}

/// Returns operand 0 of \p E and the value of operand 1 if \p E is an op \p Op
/// and operand 1 is a positive constant.
static std::optional<std::pair<Endpoint, int64_t>>
withNumber(const Graph &G, Endpoint E, StringRef Op) {
  if (E.Port != 0 || !G.isOp(E.Node, Op) || G.node(E.Node).NumData != 2 ||
      !isFree(G, E.Node, 1))
    return std::nullopt;
  auto Number = constScalar(G, G.input(E.Node, 1).Node);
  if (!Number || !(*Number >= 1) || *Number > 1e15)
    return std::nullopt;
  return std::pair(G.input(E.Node, 0), static_cast<int64_t>(*Number));
}

/// Returns the RowRest that \p Rest computes, for any number of replicas.
static std::optional<RowRest> rowRest(const Graph &G, Endpoint Rest) {
  auto Modulo = withNumber(G, Rest, op::FloorMod);
  if (!Modulo)
    return std::nullopt;
  RowRest Result;
  Result.Replicas = Modulo->second;
  Endpoint Rows = Result.Units = Modulo->first;
  if (auto Units = withNumber(G, Rows, op::FloorDiv))
    std::tie(Rows, Result.Unit) = *Units;
  auto Count = rowCount(G, Rows);
  // A GatherV2 is no fed number: it counts rows in a way that rowCount() does
  // not accept.
  if (!Count && G.isOp(Rows.Node, op::GatherV2))
    return std::nullopt;
  Result.Of = Count ? Count->Of : Rows;
  Result.Axis = Count ? Count->Axis : -1;
  return Result;
}

std::optional<RowRest> rowRest(const Graph &G, Endpoint Rest,
                               unsigned Replicas) {
  auto Result = rowRest(G, Rest);
  return Result && Result->Replicas == Replicas ? Result : std::nullopt;
}

bool followsOther(const Graph &G, NodeId Split) {
  if (G.node(Split).NumData != 2)
    return false;
  auto Lookup = rowLookup(G, G.input(Split, 1));
  auto Rest = Lookup ? rowRest(G, Lookup->Rest) : std::nullopt;
  return Rest && (Rest->Of != G.input(Split, 0) ||
                  Rest->Axis != G.intAttr(Split, "axis").value_or(0));
}

NodeId keptMember(const Graph &G, NodeId N) {
  if (G.node(N).Kind != Inserted::Gather || !G.isOp(N, op::StridedSlice) ||
      G.node(N).NumData != 4)
    return NoNode;
  NodeId Member = G.input(N, 0).Node;
  return G.isOp(Member, op::CollectiveGather) ? Member : NoNode;
}

std::optional<unsigned> keptAxis(const Graph &G, NodeId Slice) {
  if (!G.isOp(Slice, op::StridedSlice) || G.node(Slice).NumData != 4)
    return std::nullopt;
  auto Begin = constValue(G, G.input(Slice, 1).Node),
       Strides = constValue(G, G.input(Slice, 3).Node);
  auto AreAll = [](const TensorValue &Vector, int64_t Value) {
    return Vector.Shape.Dims.size() == 1 &&
           all_of(Vector.Ints, [&](int64_t I) { return I == Value; });
  };
  if (!Begin || !Strides || !AreAll(*Begin, 0) || !AreAll(*Strides, 1) ||
      Begin->Ints.empty() || Begin->Ints.size() > 32 ||
      Begin->Ints.size() != Strides->Ints.size())
    return std::nullopt;
  // Each axis has a bit in the masks, which have 32.
  auto Axis = static_cast<unsigned>(Begin->Ints.size() - 1);
  for (StringRef Mask : {"begin_mask", "end_mask"})
    if (G.intAttr(Slice, Mask).value_or(0) != (int64_t(1) << Axis) - 1)
      return std::nullopt;
  for (StringRef Mask : {"ellipsis_mask", "new_axis_mask", "shrink_axis_mask"})
    if (G.intAttr(Slice, Mask).value_or(0) != 0)
      return std::nullopt;
  return Axis;
}

bool isRowOperand(const Graph &G, NodeId N, unsigned I) {
  if (I == 2 && keptMember(G, N) != NoNode)
    return true;
  return I == 1 && G.node(N).NumData == 2 && isProgramOp(G.opName(N)) &&
         !(G.isOp(N, ToReplicasOp) && followsOther(G, N));
}

std::optional<ScalePowers> scalePowers(const Graph &G, const RowLookup &Lookup,
                                       unsigned Type, bool Divides,
                                       unsigned Replicas) {
  auto Bytes = G.attr(Lookup.Table, "value");
  auto Table = Bytes ? tensorValue(*Bytes, 1 << 16) : std::nullopt;
  if (!Table || Table->Shape.Dims.empty() ||
      Table->Shape.Dims[0] != int64_t(Replicas))
    return std::nullopt;
  // No product of sizes in a step has a larger power.
  constexpr int64_t Largest = 8;
  auto Is = [&](ArrayRef<int64_t> Powers, int64_t Share) {
    return all_of(Powers,
                  [&](int64_t Power) {
                    return isScaleDivision(Type, Power, Share) == Divides;
                  }) &&
           scaleTable(Replicas, Type, Powers, Share) == *Bytes;
  };
  if (Table->Shape.Dims.size() == 1) {
    for (int64_t Share : {0, 1, 2, -1, -2, 3, -3})
      for (int64_t Power = -Largest; Power <= Largest; ++Power)
        if (Is(Power, Share))
          return ScalePowers{{Power}, Share};
    return std::nullopt;
  }
  // The first row of the table is for rest 0, for which n is N.
  ScalePowers Result;
  for (size_t I = 0; Table->HasInts && I < size_t(Table->Shape.Dims[1]) &&
                     I < Table->Ints.size();
       ++I)
    for (int64_t Power = 0; Power <= Largest; ++Power)
      if (static_cast<double>(Table->Ints[I]) ==
          std::pow(double(Replicas), double(Power))) {
        Result.Powers.push_back(Power);
        break;
      }
  return Is(Result.Powers, 0) ? std::optional(Result) : std::nullopt;
}

} // namespace graft
