//===- lib/analysis/DimRules.cpp - rules for shapes -------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
// One function per family of OpRules.def, from the shape functions in
// tensorflow/core/framework/common_shape_fns.cc and tensorflow/core/ops.
//
//===----------------------------------------------------------------------===//

#include "lib/analysis/DimRules.h"

#include "llvm/Support/MathExtras.h"

using namespace llvm;

namespace graft {

DimAnalysis::DimAnalysis(const Graph &G, ArrayRef<NodeId> Order,
                         DimOptions Options)
    : G(G), Options(Options) {
  // Outputs: by the op where it has a fixed number, else by the node, else as
  // many as are used.
  std::vector<int> Fixed(G.numOps(), -1);
  for (uint32_t Op = 0; Op < G.numOps(); ++Op)
    if (const OpDef *Def = G.opDefOf(Op);
        Def && all_of(Def->outputs(), [](const ArgDef &A) {
          return !*A.NumberAttr && !*A.TypeListAttr;
        }))
      Fixed[Op] = Def->NumOutputs;
  FirstOutput.assign(G.size() + 1, 0);
  for (NodeId N = 0; N < G.size(); ++N) {
    if (!G.isLive(N))
      continue;
    unsigned Count = 0;
    if (Fixed[G.node(N).Op] >= 0) {
      Count = Fixed[G.node(N).Op];
    } else if (auto Declared = G.numOutputs(N)) {
      Count = *Declared;
    } else {
      Count = 1;
      G.forEachUse(N, [&](Use U) {
        Endpoint E = G.input(U.User, U.Index);
        if (!E.isControl())
          Count = std::max(Count, E.Port + 1);
      });
    }
    FirstOutput[N + 1] = Count;
  }
  for (NodeId N = 0; N < G.size(); ++N)
    FirstOutput[N + 1] += FirstOutput[N];
  ZeroConsts.resize(G.size());
  Shapes.resize(totalOutputs());
  Values.resize(totalOutputs());
  Pool.reserve(totalOutputs() * 2);
  DimRules(*this, Order).run();
}

DimRules::DimRules(DimAnalysis &A, ArrayRef<NodeId> Order)
    : A(A), G(A.G), Order(Order), One(A.Dims.make(int64_t(1))) {
  for (uint32_t Op = 0; Op < G.numOps(); ++Op) {
    const OpDef *Def = G.opDefOf(Op);
    Rules.push_back(rulesOf(G.opNameOf(Op)).Shape);
    ValueRules.push_back(valueRuleOf(G.opNameOf(Op)));
    Updates.push_back(Def ? Def->update() : UpdateDef());
  }
}

void DimRules::run() {
  // One or two rounds settle ordinary graphs; the bound is for safety only.
  for (unsigned Round = 0; Round < 16; ++Round) {
    A.Conflicts.clear();
    for (NodeId Node : Order)
      visit(Node);
    if (!A.Dims.takeChanged())
      break;
  }
}

void DimRules::visit(NodeId Node) {
  N = Node;
  A.Dims.beginNode();
  const struct Node &This = G.node(N);
  const UpdateDef &U = Updates[This.Op];
  if (U.Kind != UpdateKind::None && U.Grad > 0 && U.Indices < 0 &&
      U.Kind != UpdateKind::StridedSliceAssign &&
      This.NumData > unsigned(U.Grad))
    if (Dims Var = in(0), Value = in(U.Grad); Var && Value)
      sameShapes(*Var, *Value);
  if (A.numOutputs(N) == 0)
    return;
  shapeRule(Rules[This.Op]);
  valueRule(ValueRules[This.Op]);
  for (unsigned Port = 0; Port < A.numOutputs(N); ++Port)
    if (!A.Shapes[A.outputIndex({N, Port})].Known) {
      hintFromAttr();
      break;
    }
}

//===----------------------------------------------------------------------===//
// Helpers
//===----------------------------------------------------------------------===//

std::optional<int64_t> DimRules::num(unsigned I) const {
  auto V = I < numData() ? nums(I) : std::nullopt;
  if (!V || V->size() != 1)
    return std::nullopt;
  return V->front();
}

static void storeRun(std::vector<DimId> &Pool, DimRun &Run,
                     ArrayRef<DimId> List) {
  Run.First = static_cast<uint32_t>(Pool.size());
  Run.Count = static_cast<uint16_t>(List.size());
  Run.Known = true;
  Pool.insert(Pool.end(), List.begin(), List.end());
}

void DimRules::setShape(unsigned Port, ArrayRef<DimId> List) {
  if (Port >= A.numOutputs(N))
    return;
  DimRun &Run = A.Shapes[A.outputIndex({N, Port})];
  if (Run.Known) {
    sameShapes(*A.shape({N, Port}), List);
    return;
  }
  // The list may live in the pool, which grows.
  storeRun(A.Pool, Run, DimList(List.begin(), List.end()));
}

void DimRules::setValue(unsigned Port, ArrayRef<DimId> Elements) {
  if (Port >= A.numOutputs(N) || Elements.size() > 64)
    return;
  DimRun &Run = A.Values[A.outputIndex({N, Port})];
  // A later round knows more than an earlier one: what it says counts.
  if (Run.Known && Run.Count == Elements.size()) {
    DimList List(Elements.begin(), Elements.end());
    std::copy(List.begin(), List.end(), A.Pool.begin() + Run.First);
    return;
  }
  storeRun(A.Pool, Run, DimList(Elements.begin(), Elements.end()));
}

DimId DimRules::slot(unsigned Slot) {
  auto [It, New] = Slots.try_emplace((uint64_t(N) << 16) | Slot, 0);
  if (New)
    It->second = A.Dims.make();
  return It->second;
}

DimId DimRules::number(unsigned Slot, int64_t Value) {
  if (Value == 1)
    return One;
  DimId D = slot(Slot);
  A.Dims.assignNumber(D, Value);
  return D;
}

DimId DimRules::product(unsigned Slot, DimId X, DimId Y) {
  if (A.Dims.isOne(X))
    return Y;
  if (A.Dims.isOne(Y))
    return X;
  DimId D = slot(Slot);
  int64_t NX = A.Dims.number(X), NY = A.Dims.number(Y), Result;
  if (NX != UnknownSize && NY != UnknownSize && !MulOverflow(NX, NY, Result))
    A.Dims.assignNumber(D, Result);
  auto SX = A.Dims.sym(X), SY = A.Dims.sym(Y);
  if (SX && SY && !MulOverflow(SX->C, SY->C, Result))
    A.Dims.assign(D, {Result, int8_t(SX->B + SY->B), int8_t(SX->R + SY->R)});
  return D;
}

DimId DimRules::quotient(unsigned Slot, DimId X, DimId Y) {
  if (A.Dims.isOne(Y))
    return X;
  if (A.Dims.find(X) == A.Dims.find(Y) && A.Dims.isKnown(X))
    return One;
  auto SX = A.Dims.sym(X), SY = A.Dims.sym(Y);
  bool Symbolic = A.Dims.hasSym(X) || A.Dims.hasSym(Y);
  bool Exact = SX && SY && SY->C > 0 && SX->C % SY->C == 0 && SX->B >= SY->B &&
               SX->R >= SY->R;
  if (Symbolic && !Exact)
    return slot(Slot | OpaqueSlot);
  DimId D = slot(Slot);
  int64_t NX = A.Dims.number(X), NY = A.Dims.number(Y);
  if (NX != UnknownSize && NY != UnknownSize && NY > 0 && NX >= 0)
    A.Dims.assignNumber(D, NX / NY);
  if (Exact)
    A.Dims.assign(
        D, {SX->C / SY->C, int8_t(SX->B - SY->B), int8_t(SX->R - SY->R)});
  return D;
}

void DimRules::same(DimId X, DimId Y) {
  if (A.Dims.unify(X, Y))
    return;
  if (A.Dims.hasSym(X) || A.Dims.hasSym(Y))
    A.Conflicts.push_back({N, X, Y});
}

void DimRules::sameShapes(ArrayRef<DimId> X, ArrayRef<DimId> Y) {
  if (X.size() != Y.size())
    return;
  for (size_t I = 0; I < X.size(); ++I)
    same(X[I], Y[I]);
}

/// The size of a dimension of an element-wise result. A size that may be 1 at
/// run time is not taken to be the other operand's.
DimId DimRules::broadcastDim(DimId X, DimId Y) {
  if (A.Dims.isOne(X))
    return Y;
  if (A.Dims.isOne(Y))
    return X;
  if (!A.Dims.isKnown(X))
    return Y;
  if (A.Dims.isKnown(Y))
    same(X, Y);
  return X;
}

/// What the file says where no rule speaks: `_output_shapes`.
void DimRules::hintFromAttr() {
  auto Hints = G.shapeListAttr(N, "_output_shapes");
  if (!Hints)
    return;
  for (unsigned Port = 0; Port < A.numOutputs(N) && Port < Hints->size();
       ++Port) {
    const ShapeValue &Hint = (*Hints)[Port];
    if (Hint.UnknownRank || A.Shapes[A.outputIndex({N, Port})].Known)
      continue;
    DimList List;
    for (size_t I = 0; I < Hint.Dims.size(); ++I)
      List.push_back(Hint.Dims[I] < 0
                         ? slot(0x8000 + Port * 32 + I)
                         : number(0x8000 + Port * 32 + I, Hint.Dims[I]));
    setShape(Port, List);
  }
}

//===----------------------------------------------------------------------===//
// Rules
//===----------------------------------------------------------------------===//

void DimRules::shapeRule(ShapeRule Rule) {
  switch (Rule) {
  case ShapeRule::None:
    break;
  case ShapeRule::Same:
  case ShapeRule::ReadVariable:
  case ShapeRule::UpdateRef:
    if (Dims X = in(0))
      for (unsigned Port = 0; Port < A.numOutputs(N); ++Port)
        setShape(Port, *X);
    break;
  case ShapeRule::SameAll: {
    Dims First;
    for (unsigned I = 0; I < numData(); ++I) {
      Dims X = in(I);
      if (X && First)
        sameShapes(*First, *X);
      else if (X)
        First = X;
    }
    if (First)
      setShape(0, DimList(First->begin(), First->end()));
    break;
  }
  case ShapeRule::PerInput:
    for (unsigned I = 0; I < numData(); ++I)
      if (Dims X = in(I))
        setShape(I, *X);
    break;
  case ShapeRule::Broadcast:
    broadcast();
    break;
  case ShapeRule::Select: {
    Dims C = in(0), X = in(1), Y = in(2);
    if (X && Y)
      sameShapes(*X, *Y);
    // The condition may be a vector along axis 0, or a scalar.
    if (C && X && C->size() == 1 && !X->empty())
      same((*C)[0], (*X)[0]);
    else if (C && X)
      sameShapes(*C, *X);
    if (Dims S = X ? X : Y)
      setShape(0, *S);
    break;
  }
  case ShapeRule::Scalar:
    setShape(0, {});
    break;
  case ShapeRule::Const: {
    if (A.Shapes[A.outputIndex({N, 0})].Known)
      break;
    auto Tensor = constValue(G, N);
    if (!Tensor)
      break;
    A.ZeroConsts[N] = Tensor->AllZero;
    DimList Shape, Elements;
    for (size_t I = 0; I < Tensor->Shape.Dims.size(); ++I)
      Shape.push_back(number(I, Tensor->Shape.Dims[I]));
    setShape(0, Shape);
    // Every element is a variable of its own, also an element that is 1.
    for (size_t I = 0;
         Tensor->HasInts && Shape.size() <= 1 && I < Tensor->Ints.size(); ++I) {
      Elements.push_back(slot(64 + I));
      A.Dims.assignNumber(Elements.back(), Tensor->Ints[I]);
    }
    if (Tensor->HasInts && Shape.size() <= 1)
      setValue(0, Elements);
    break;
  }
  case ShapeRule::FromAttr: {
    auto Shape = G.shapeAttr(N, "shape");
    if (!Shape || Shape->UnknownRank)
      break;
    DimList List;
    for (size_t I = 0; I < Shape->Dims.size(); ++I)
      List.push_back(Shape->Dims[I] < 0 ? slot(I) : number(I, Shape->Dims[I]));
    if (A.Options.Suppose.Node == N && !List.empty())
      A.Dims.assign(List[0], {1, 1, 0});
    setShape(0, List);
    break;
  }
  case ShapeRule::ToReplicas:
  case ShapeRule::FromReplicas:
  case ShapeRule::GatherReplicas:
    crossing();
    break;
  case ShapeRule::MatMul:
    matMul(false);
    break;
  case ShapeRule::BatchMatMul:
    matMul(true);
    break;
  case ShapeRule::BiasAdd: {
    Dims X = in(0), B = in(1);
    if (!X)
      break;
    bool First = G.stringAttr(N, "data_format") == StringRef("NCHW");
    if (B && B->size() == 1 && X->size() >= 2)
      same((*X)[First ? 1 : X->size() - 1], (*B)[0]);
    setShape(0, *X);
    break;
  }
  case ShapeRule::BiasAddGrad:
    if (Dims X = in(0); X && X->size() >= 2) {
      bool First = G.stringAttr(N, "data_format") == StringRef("NCHW");
      setShape(0, (*X)[First ? 1 : X->size() - 1]);
    }
    break;
  case ShapeRule::Conv2D:
    conv2D();
    break;
  case ShapeRule::FromSizes0:
    if (Dims V = val(0))
      setShape(0, *V);
    break;
  case ShapeRule::FromSizes1:
    if (Dims V = val(1))
      setShape(0, *V);
    break;
  case ShapeRule::Pool:
    pool();
    break;
  case ShapeRule::BatchNorm: {
    Dims X = in(0), S = in(1);
    if (X)
      setShape(0, *X);
    for (unsigned Port = 1; S && Port < std::min(A.numOutputs(N), 5u); ++Port)
      setShape(Port, *S);
    break;
  }
  case ShapeRule::BatchNormGrad: {
    Dims G0 = in(0), X = in(1), S = in(2);
    if (G0 && X)
      sameShapes(*G0, *X);
    if (X)
      setShape(0, *X);
    for (unsigned Port = 1; S && Port < 3; ++Port)
      setShape(Port, *S);
    break;
  }
  case ShapeRule::Xent:
  case ShapeRule::SparseXent: {
    Dims X = in(0), L = in(1);
    if (!X || X->size() != 2)
      break;
    if (L && Rule == ShapeRule::Xent)
      sameShapes(*X, *L);
    if (L && Rule == ShapeRule::SparseXent && L->size() == 1)
      same((*X)[0], (*L)[0]);
    setShape(0, (*X)[0]);
    setShape(1, *in(0));
    break;
  }
  case ShapeRule::Reduction:
    reduction();
    break;
  case ShapeRule::ArgReduction: {
    Dims X = in(0);
    auto Axis = num(1);
    if (!X || !Axis || X->empty())
      break;
    DimList List(X->begin(), X->end());
    int64_t I = *Axis < 0 ? *Axis + int64_t(List.size()) : *Axis;
    if (I < 0 || I >= int64_t(List.size()))
      break;
    List.erase(List.begin() + I);
    setShape(0, List);
    break;
  }
  case ShapeRule::Shape:
    for (unsigned I = 0; I < numData(); ++I)
      if (Dims X = in(I)) {
        setShape(I, number(I, int64_t(X->size())));
        setValue(I, *in(I));
      }
    break;
  case ShapeRule::VariableShape:
    if (Dims X = in(0)) {
      setShape(0, number(0, int64_t(X->size())));
      setValue(0, *in(0));
    }
    break;
  case ShapeRule::Size: {
    setShape(0, {});
    if (Dims X = in(0)) {
      DimId Product = One;
      for (size_t I = 0; I < X->size(); ++I)
        Product = product(I, Product, (*in(0))[I]);
      setValue(0, Product);
    }
    break;
  }
  case ShapeRule::Rank:
    setShape(0, {});
    if (Dims X = in(0))
      setValue(0, number(0, int64_t(X->size())));
    break;
  case ShapeRule::Tile:
    tile();
    break;
  case ShapeRule::Reshape:
    reshape();
    break;
  case ShapeRule::ExpandDims: {
    Dims X = in(0);
    auto Axis = num(1);
    if (!X || !Axis)
      break;
    DimList List(X->begin(), X->end());
    int64_t I = *Axis < 0 ? *Axis + int64_t(List.size()) + 1 : *Axis;
    if (I < 0 || I > int64_t(List.size()))
      break;
    List.insert(List.begin() + I, One);
    setShape(0, List);
    break;
  }
  case ShapeRule::Squeeze: {
    Dims X = in(0);
    if (!X)
      break;
    auto Axes = G.intListAttr(N, "squeeze_dims");
    DimList List;
    for (size_t I = 0; I < X->size(); ++I) {
      bool Drop = A.Dims.isOne((*X)[I]);
      if (Axes && !Axes->empty())
        Drop = is_contained(*Axes, int64_t(I)) ||
               is_contained(*Axes, int64_t(I) - int64_t(X->size()));
      else if (!A.Dims.isKnown((*X)[I]))
        return;
      if (!Drop)
        List.push_back((*X)[I]);
    }
    setShape(0, List);
    break;
  }
  case ShapeRule::Transpose:
    transpose();
    break;
  case ShapeRule::Pack:
    pack();
    break;
  case ShapeRule::Unpack: {
    Dims X = in(0);
    int64_t Axis = G.intAttr(N, "axis").value_or(0);
    if (!X || X->empty())
      break;
    if (Axis < 0)
      Axis += int64_t(X->size());
    if (Axis < 0 || Axis >= int64_t(X->size()))
      break;
    DimList List(X->begin(), X->end());
    List.erase(List.begin() + Axis);
    for (unsigned Port = 0; Port < A.numOutputs(N); ++Port)
      setShape(Port, List);
    break;
  }
  case ShapeRule::Concat:
    concat();
    break;
  case ShapeRule::Split:
    split();
    break;
  case ShapeRule::Slice:
    slice();
    break;
  case ShapeRule::StridedSlice:
    stridedSlice(false);
    break;
  case ShapeRule::Pad:
    pad();
    break;
  case ShapeRule::Range:
    rangeValue();
    break;
  case ShapeRule::Gather:
    gather();
    break;
  case ShapeRule::Unique:
    setShape(0, slot(0));
    if (Dims X = in(0))
      setShape(1, *X);
    break;
  case ShapeRule::UnsortedSegment: {
    Dims Data = in(0), Ids = in(1), Count = val(2);
    if (!Data || !Ids || Data->size() < Ids->size())
      break;
    sameShapes(Data->take_front(Ids->size()), *Ids);
    DimList List{Count && Count->size() == 1 ? (*Count)[0] : slot(0)};
    List.append(Data->begin() + Ids->size(), Data->end());
    setShape(0, List);
    break;
  }
  case ShapeRule::OneHot: {
    Dims X = in(0), Depth = val(1);
    if (!X || G.intAttr(N, "axis").value_or(-1) != -1)
      break;
    DimList List(X->begin(), X->end());
    List.push_back(Depth && Depth->size() == 1 ? (*Depth)[0] : slot(0));
    setShape(0, List);
    break;
  }
  case ShapeRule::TopK: {
    Dims X = in(0), K = val(1);
    if (!X || X->empty())
      break;
    DimList List(X->begin(), X->end());
    List.back() = K && K->size() == 1 ? (*K)[0] : slot(0);
    setShape(0, List);
    setShape(1, List);
    break;
  }
  case ShapeRule::DynamicStitch:
    dynamicStitch();
    break;
  case ShapeRule::BroadcastGradientArgs:
    broadcastGradientArgs();
    break;
  case ShapeRule::ConcatOffset:
    concatOffset();
    break;
  }
}

void DimRules::broadcast() {
  DimList Result;
  for (unsigned I = 0; I < numData(); ++I) {
    Dims X = in(I);
    if (!X)
      return;
    DimList Next;
    size_t Rank = std::max(Result.size(), X->size());
    for (size_t D = 0; D < Rank; ++D) {
      size_t FromEnd = Rank - D;
      bool InResult = FromEnd <= Result.size(), InX = FromEnd <= X->size();
      DimId R = InResult ? Result[Result.size() - FromEnd] : One;
      DimId Y = InX ? (*X)[X->size() - FromEnd] : One;
      Next.push_back(InResult && InX ? broadcastDim(R, Y) : InX ? Y : R);
    }
    Result = Next;
  }
  setShape(0, Result);
}

void DimRules::matMul(bool Batched) {
  Dims X = in(0), Y = in(1);
  if (!X || !Y || X->size() < 2 || Y->size() < 2)
    return;
  bool TX = G.boolAttr(N, Batched ? "adj_x" : "transpose_a").value_or(false);
  bool TY = G.boolAttr(N, Batched ? "adj_y" : "transpose_b").value_or(false);
  size_t RX = X->size(), RY = Y->size();
  same((*X)[RX - (TX ? 2 : 1)], (*Y)[RY - (TY ? 1 : 2)]);
  DimList List;
  size_t Lead = std::max(RX, RY) - 2;
  for (size_t I = 0; I < Lead; ++I) {
    size_t FromEnd = Lead - I + 2;
    bool InX = FromEnd <= RX, InY = FromEnd <= RY;
    List.push_back(InX && InY
                       ? broadcastDim((*X)[RX - FromEnd], (*Y)[RY - FromEnd])
                   : InX ? (*X)[RX - FromEnd]
                         : (*Y)[RY - FromEnd]);
  }
  List.push_back((*X)[RX - (TX ? 1 : 2)]);
  List.push_back((*Y)[RY - (TY ? 2 : 1)]);
  setShape(0, List);
}

/// Output length of a window (tensorflow GetWindowedOutputSize).
static int64_t windowed(int64_t Input, int64_t Window, int64_t Dilation,
                        int64_t Stride, StringRef Padding, int64_t Extra) {
  if (Input == UnknownSize || Window == UnknownSize || Stride <= 0)
    return UnknownSize;
  int64_t Effective = (Window - 1) * Dilation + 1;
  if (Padding == "SAME")
    return (Input + Stride - 1) / Stride;
  return (Input + Extra - Effective + Stride) / Stride;
}

void DimRules::conv2D() {
  Dims X = in(0), F = in(1);
  if (!X || !F || X->size() != 4 || F->size() != 4)
    return;
  bool ChannelsFirst = G.stringAttr(N, "data_format") == StringRef("NCHW");
  auto Strides = G.intListAttr(N, "strides");
  auto Dilations = G.intListAttr(N, "dilations");
  auto Explicit = G.intListAttr(N, "explicit_paddings");
  StringRef Padding = G.stringAttr(N, "padding").value_or("");
  unsigned H = ChannelsFirst ? 2 : 1, C = ChannelsFirst ? 1 : 3;
  if (!Strides || Strides->size() != 4)
    return;
  DimList List(X->begin(), X->end());
  for (unsigned I = 0; I < 2; ++I) {
    int64_t Extra = 0;
    if (Explicit && Explicit->size() == 8)
      Extra = (*Explicit)[2 * (H + I)] + (*Explicit)[2 * (H + I) + 1];
    int64_t Size =
        windowed(A.Dims.number((*X)[H + I]), A.Dims.number((*F)[I]),
                 Dilations && Dilations->size() == 4 ? (*Dilations)[H + I] : 1,
                 (*Strides)[H + I], Padding, Extra);
    List[H + I] = Size == UnknownSize ? slot(H + I) : number(H + I, Size);
  }
  bool Depthwise = G.opName(N).starts_with("Depthwise");
  List[C] = Depthwise ? product(C, (*F)[2], (*F)[3]) : (*F)[3];
  setShape(0, List);
}

void DimRules::pool() {
  Dims X = in(0);
  auto Window = G.intListAttr(N, "ksize");
  auto Strides = G.intListAttr(N, "strides");
  if (!X || X->size() != 4 || !Window || Window->size() != 4 || !Strides ||
      Strides->size() != 4)
    return;
  StringRef Padding = G.stringAttr(N, "padding").value_or("");
  DimList List(X->begin(), X->end());
  for (unsigned I = 0; I < 4; ++I) {
    if ((*Window)[I] == 1 && (*Strides)[I] == 1)
      continue;
    int64_t Size = windowed(A.Dims.number(List[I]), (*Window)[I], 1,
                            (*Strides)[I], Padding, 0);
    List[I] = Size == UnknownSize ? slot(I) : number(I, Size);
  }
  setShape(0, List);
}

void DimRules::reduction() {
  Dims X = in(0);
  auto Axes = nums(1);
  if (!X)
    return;
  bool Keep = G.boolAttr(N, "keep_dims").value_or(false);
  if (!Axes) {
    // The rank is known even where the axes are not.
    DimList List;
    for (size_t I = 0; Keep && I < X->size(); ++I)
      List.push_back(slot(I));
    if (Keep)
      setShape(0, List);
    return;
  }
  DimList List;
  for (size_t I = 0; I < X->size(); ++I) {
    bool Reduced = is_contained(*Axes, int64_t(I)) ||
                   is_contained(*Axes, int64_t(I) - int64_t(X->size()));
    if (!Reduced)
      List.push_back((*X)[I]);
    else if (Keep)
      List.push_back(One);
  }
  setShape(0, List);
}

/// Gives \p To, which together are as large as \p From, the symbol of From: the
/// batch is the outermost factor, so the first of To takes what the others
/// leave.
void DimRules::spread(ArrayRef<DimId> From, ArrayRef<DimId> To) {
  if (!A.Dims.hasSym(From.front()) || A.Dims.hasSym(To.front()))
    return;
  Sym Total;
  for (DimId D : From) {
    auto S = A.Dims.sym(D);
    if (!S || MulOverflow(Total.C, S->C, Total.C))
      return;
    Total.B += S->B;
    Total.R += S->R;
  }
  for (DimId D : To.drop_front()) {
    auto S = A.Dims.sym(D);
    if (!S || S->C <= 0 || Total.C % S->C != 0)
      return;
    Total.C /= S->C;
    Total.B -= S->B;
    Total.R -= S->R;
  }
  if (Total.B >= 0 && Total.R >= 0)
    A.Dims.assign(To.front(), Total);
}

/// Finds the runs of dimensions of \p X and \p Y that hold the same elements.
/// Row-major order makes this unique up to dimensions of size 1.
void DimRules::matchGroups(ArrayRef<DimId> AllX, ArrayRef<DimId> AllY) {
  auto WithoutOnes = [&](ArrayRef<DimId> List) {
    DimList Result;
    llvm::copy_if(List, std::back_inserter(Result),
                  [&](DimId D) { return !A.Dims.isOne(D); });
    return Result;
  };
  DimList X = WithoutOnes(AllX), Y = WithoutOnes(AllY);
  auto AllNumbers = [&](ArrayRef<DimId> List) {
    return all_of(List, [&](DimId D) {
      return A.Dims.number(D) != UnknownSize && A.Dims.number(D) > 0;
    });
  };
  bool ByNumber = AllNumbers(X) && AllNumbers(Y);
  auto SizeOf = [&](DimId D) -> std::optional<Sym> {
    if (ByNumber)
      return Sym{A.Dims.number(D), 0, 0};
    return A.Dims.sym(D);
  };
  size_t I = 0, J = 0;
  while (I < X.size() && J < Y.size()) {
    size_t I0 = I, J0 = J;
    auto SX = SizeOf(X[I++]), SY = SizeOf(Y[J++]);
    while (SX && SY && !(*SX == *SY)) {
      auto Less = [](const Sym &P, const Sym &Q) {
        return std::tuple(P.B, P.R, P.C) < std::tuple(Q.B, Q.R, Q.C);
      };
      bool GrowX = Less(*SX, *SY);
      if (GrowX ? I == X.size() : J == Y.size())
        return;
      auto Next = SizeOf(GrowX ? X[I++] : Y[J++]);
      Sym &Grown = GrowX ? *SX : *SY;
      if (!Next || MulOverflow(Grown.C, Next->C, Grown.C))
        return;
      Grown.B += Next->B;
      Grown.R += Next->R;
    }
    if (!SX || !SY)
      return;
    ArrayRef<DimId> Left = ArrayRef(X).slice(I0, I - I0),
                    Right = ArrayRef(Y).slice(J0, J - J0);
    if (Left.size() == 1 && Right.size() == 1) {
      same(Left[0], Right[0]);
    } else {
      spread(Left, Right);
      spread(Right, Left);
    }
  }
}

void DimRules::reshape() {
  Dims V = val(1);
  if (!V)
    return;
  Dims X = in(0);
  DimList List;
  int Wild = -1;
  for (size_t I = 0; I < V->size(); ++I) {
    if (A.Dims.number((*V)[I]) == -1) {
      Wild = static_cast<int>(I);
      List.push_back(slot(I));
    } else {
      List.push_back((*V)[I]);
    }
  }
  if (Wild >= 0 && X) {
    DimId All = One, Rest = One;
    for (size_t I = 0; I < X->size(); ++I)
      All = product(64 + I, All, (*in(0))[I]);
    for (size_t I = 0; I < List.size(); ++I)
      if (int(I) != Wild)
        Rest = product(96 + I, Rest, List[I]);
    DimId Size = quotient(63, All, Rest);
    A.Dims.unify(List[Wild], Size);
    List[Wild] = Size;
  }
  setShape(0, List);
  if (X)
    matchGroups(*in(0), List);
}

void DimRules::transpose() {
  Dims X = in(0);
  auto Perm = nums(1);
  if (!X || !Perm || Perm->size() != X->size())
    return;
  DimList List;
  for (int64_t P : *Perm) {
    if (P < 0 || P >= int64_t(X->size()))
      return;
    List.push_back((*X)[P]);
  }
  setShape(0, List);
}

void DimRules::tile() {
  Dims X = in(0), M = val(1);
  if (!X || !M || M->size() != X->size())
    return;
  DimList List;
  for (size_t I = 0; I < X->size(); ++I)
    List.push_back(product(I, (*in(0))[I], (*val(1))[I]));
  setShape(0, List);
}

void DimRules::pack() {
  Dims X = in(0);
  for (unsigned I = 1; X && I < numData(); ++I)
    if (Dims Y = in(I))
      sameShapes(*X, *Y);
  if (!X)
    return;
  int64_t Axis = G.intAttr(N, "axis").value_or(0);
  if (Axis < 0)
    Axis += int64_t(X->size()) + 1;
  if (Axis < 0 || Axis > int64_t(X->size()))
    return;
  DimList List(X->begin(), X->end());
  List.insert(List.begin() + Axis, number(0, numData()));
  setShape(0, List);
}

void DimRules::concat() {
  bool Old = G.isOp(N, "Concat");
  unsigned AxisInput = Old ? 0 : numData() - 1, First = Old ? 1 : 0;
  auto Axis = num(AxisInput);
  Dims X = in(First);
  if (!Axis || !X || X->empty())
    return;
  int64_t At = *Axis < 0 ? *Axis + int64_t(X->size()) : *Axis;
  if (At < 0 || At >= int64_t(X->size()))
    return;
  DimList List(X->begin(), X->end());
  int64_t Sum = 0;
  bool Known = true;
  for (unsigned I = First; I < First + numData() - 1; ++I) {
    Dims Y = in(I);
    if (!Y || Y->size() != List.size())
      return;
    for (size_t D = 0; D < List.size(); ++D)
      if (int64_t(D) != At)
        same(List[D], (*Y)[D]);
    DimId Part = (*Y)[At];
    Known &= !A.Dims.hasSym(Part) && A.Dims.number(Part) != UnknownSize;
    if (Known)
      Sum += A.Dims.number(Part);
  }
  if (numData() > 2)
    List[At] = Known ? number(0, Sum) : slot(1);
  setShape(0, List);
}

void DimRules::split() {
  bool Uneven = G.isOp(N, "SplitV");
  Dims X = in(Uneven ? 0 : 1);
  auto Axis = num(Uneven ? 2 : 0);
  if (!X || !Axis || X->empty())
    return;
  int64_t At = *Axis < 0 ? *Axis + int64_t(X->size()) : *Axis;
  if (At < 0 || At >= int64_t(X->size()))
    return;
  DimList List(X->begin(), X->end());
  Dims Sizes = Uneven ? val(1) : std::nullopt;
  DimId Whole = List[At];
  DimId Count = number(0, A.numOutputs(N));
  for (unsigned Port = 0; Port < A.numOutputs(N); ++Port) {
    if (Uneven)
      List[At] =
          Sizes && Port < Sizes->size() && A.Dims.number((*Sizes)[Port]) != -1
              ? (*Sizes)[Port]
              : slot(64 + Port);
    else
      List[At] = quotient(1, Whole, Count);
    setShape(Port, List);
  }
}

void DimRules::slice() {
  Dims X = in(0), Size = val(2);
  auto Begin = nums(1);
  if (!X || !Size || Size->size() != X->size())
    return;
  DimList List;
  for (size_t I = 0; I < X->size(); ++I) {
    bool ToEnd = A.Dims.number((*Size)[I]) == -1;
    if (ToEnd && Begin && (*Begin)[I] == 0)
      List.push_back((*X)[I]);
    else if (ToEnd)
      List.push_back(slot(I));
    else
      List.push_back((*Size)[I]);
  }
  setShape(0, List);
}

void DimRules::pad() {
  Dims X = in(0);
  // The paddings are a [rank, 2] tensor, which is not tracked as a vector.
  if (!X || numData() < 2)
    return;
  auto Tensor = G.isOp(G.input(N, 1).Node, "Const")
                    ? constValue(G, G.input(N, 1).Node)
                    : std::nullopt;
  DimList List;
  for (size_t I = 0; I < X->size(); ++I) {
    if (!Tensor || !Tensor->HasInts || Tensor->Ints.size() != 2 * X->size()) {
      List.push_back(slot(I));
      continue;
    }
    int64_t Extra = Tensor->Ints[2 * I] + Tensor->Ints[2 * I + 1];
    int64_t Size = A.Dims.number((*in(0))[I]);
    if (Extra == 0)
      List.push_back((*in(0))[I]);
    else if (Size != UnknownSize && !A.Dims.hasSym((*in(0))[I]))
      List.push_back(number(I, Size + Extra));
    else
      List.push_back(slot(I));
  }
  setShape(0, List);
}

void DimRules::gather() {
  Dims X = in(0), Rows = in(1);
  if (!X || !Rows)
    return;
  int64_t Axis = 0;
  if (G.isOp(N, "GatherV2")) {
    auto At = num(2);
    if (!At)
      return;
    Axis = *At < 0 ? *At + int64_t(X->size()) : *At;
  }
  if (G.intAttr(N, "batch_dims").value_or(0) != 0 || Axis < 0 ||
      Axis >= int64_t(X->size()))
    return;
  DimList List(X->begin(), X->begin() + Axis);
  List.append(Rows->begin(), Rows->end());
  List.append(X->begin() + Axis + 1, X->end());
  setShape(0, List);
}

/// Crossing ops: the slice of one replica, or what all replicas have together.
void DimRules::crossing() {
  Dims X = in(0);
  if (!X)
    return;
  DimList List(X->begin(), X->end());
  int64_t Axis = G.intAttr(N, "axis").value_or(0);
  bool Concat = G.isOp(N, "_FromReplicas")
                    ? G.stringAttr(N, "combine") == StringRef("concat")
                    : !G.isOp(N, "_ToReplicas");
  if (G.isOp(N, "_FromReplicas") && !Concat) {
    setShape(0, List);
    return;
  }
  if (Axis < 0 || Axis >= int64_t(List.size()))
    return;
  DimId Old = List[Axis], New = slot(0);
  int64_t Number = A.Dims.number(Old);
  int64_t Replicas = A.Options.Unpatched ? 1 : A.Options.Replicas;
  if (Concat) {
    if (auto S = A.Dims.sym(Old))
      A.Dims.assign(New, {S->C, S->B, int8_t(S->R + 1)});
    if (Number != UnknownSize)
      A.Dims.assignNumber(New, Number * Replicas);
  } else {
    A.Dims.assign(New, {1, 1, 0});
    A.Dims.assign(Old, {1, 1, 1});
    if (Number != UnknownSize && Number % Replicas == 0)
      A.Dims.assignNumber(New, Number / Replicas);
  }
  List[Axis] = New;
  setShape(0, List);
}

} // namespace graft
