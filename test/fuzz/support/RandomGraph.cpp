//===- test/fuzz/support/RandomGraph.cpp - bytes to a legal graph ---------===//
//
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "RandomGraph.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringRef.h"

#include <iterator>

using namespace llvm;
using tensorflow::AttrValue;
using tensorflow::FunctionDef;
using tensorflow::GraphDef;
using tensorflow::NodeDef;

namespace graft::fuzz {
namespace {

using Names = ArrayRef<const char *>;

const char *const Unary[] = {"Neg",    "Relu", "Tanh",      "Square",
                             "Exp",    "Log",  "Identity",  "StopGradient",
                             "Abs",    "Sign", "ZerosLike", "OnesLike",
                             "Softmax"};
const char *const Binary[] = {"AddV2",   "Sub",      "Mul",      "RealDiv",
                              "Maximum", "ReluGrad", "TanhGrad", "Pow"};
const char *const Compare[] = {"Greater", "LessEqual", "Equal"};
const char *const Reduce[] = {"Sum", "Mean", "Max", "Min", "Prod"};
const unsigned Types[] = {DT_FLOAT,  DT_INT32, DT_INT64, DT_BOOL,
                          DT_STRING, DT_HALF,  DT_DOUBLE};

void setShape(AttrValue &A, const std::vector<int> &Dims) {
  auto *S = A.mutable_shape();
  for (int D : Dims)
    S->add_dim()->set_size(D);
}

void setType(AttrValue &A, unsigned Type) {
  A.set_type(static_cast<tensorflow::DataType>(Type));
}

void addTypes(AttrValue &A, unsigned Type, unsigned Count) {
  A.mutable_list();
  for (unsigned I = 0; I < Count; ++I)
    A.mutable_list()->add_type(static_cast<tensorflow::DataType>(Type));
}

/// Returns the number of tensors of argument \p A of \p N.
unsigned count(const NodeDef &N, const ArgDef &A) {
  const auto &Attrs = N.attr();
  if (*A.NumberAttr)
    return Attrs.contains(A.NumberAttr) ? Attrs.at(A.NumberAttr).i() : 0;
  if (*A.TypeListAttr)
    return Attrs.contains(A.TypeListAttr)
               ? Attrs.at(A.TypeListAttr).list().type_size()
               : 0;
  return 1;
}

unsigned typeOf(const NodeDef &N, const ArgDef &A, unsigned Index) {
  const auto &Attrs = N.attr();
  if (A.Type != 0)
    return A.Type;
  if (*A.TypeAttr)
    return Attrs.contains(A.TypeAttr) ? unsigned(Attrs.at(A.TypeAttr).type())
                                      : unsigned(DT_FLOAT);
  return Attrs.at(A.TypeListAttr).list().type(Index);
}

} // namespace

Tensor Body::add(StringRef Op, std::vector<Tensor> Inputs,
                 std::vector<std::pair<std::string, unsigned>> TypeAttrs,
                 Shape Dims) {
  NodeDef &N = *List.Add();
  N.set_name("n" + std::to_string(List.size()));
  N.set_op(Op.str());
  for (Tensor &T : Inputs)
    N.add_input(std::move(T.Name));
  if (List.size() > 1 && C.once(16))
    N.add_input("^" + List.Get(C.below(List.size() - 1)).name());
  for (const auto &[Key, Type] : TypeAttrs)
    setType(attr(Key), Type);
  const OpDef *Def = findOp(Op);
  Tensor First{N.name(), DT_FLOAT, Dims};
  unsigned Port = 0;
  for (const ArgDef &A : Def->outputs())
    for (unsigned I = 0, E = count(N, A); I < E; ++I, ++Port) {
      std::string Name = N.name();
      if (IsFunction)
        Name += std::string(":") + A.Name + ":" + std::to_string(I);
      else if (Port != 0)
        Name += ":" + std::to_string(Port);
      Tensor T{Name, typeOf(N, A, I), Port == 0 ? Dims : std::nullopt};
      if (Port == 0)
        First = T;
      if (!A.IsRef && T.Type != DT_RESOURCE && T.Type != DT_VARIANT)
        know(std::move(T));
    }
  return First;
}

Tensor Body::ints(const std::vector<int> &Values, bool IsScalar) {
  Shape Dims = std::vector<int>();
  if (!IsScalar)
    Dims->push_back(static_cast<int>(Values.size()));
  Tensor T = add("Const", {}, {{"dtype", DT_INT32}}, Dims);
  auto *Value = attr("value").mutable_tensor();
  Value->set_dtype(tensorflow::DT_INT32);
  Value->mutable_tensor_shape();
  if (!IsScalar)
    Value->mutable_tensor_shape()->add_dim()->set_size(
        static_cast<int64_t>(Values.size()));
  for (int V : Values)
    Value->add_int_val(V);
  return T;
}

Tensor Body::number(unsigned Type) {
  Tensor T = add("Const", {}, {{"dtype", Type}}, std::vector<int>());
  auto *Value = attr("value").mutable_tensor();
  Value->set_dtype(static_cast<tensorflow::DataType>(Type));
  Value->mutable_tensor_shape();
  if (Type == DT_FLOAT)
    Value->add_float_val(static_cast<float>(C.below(5)));
  else if (Type == DT_INT32)
    Value->add_int_val(static_cast<int>(C.below(5)));
  else if (Type == DT_INT64)
    Value->add_int64_val(C.below(5));
  else if (Type == DT_BOOL)
    Value->add_bool_val(C.below(2) != 0);
  else if (Type == DT_STRING)
    Value->add_string_val("text");
  return T;
}

Tensor Body::pick(unsigned Type, int Rank) {
  if (Known.empty())
    return number(Type);
  size_t Start = C.below(static_cast<unsigned>(Known.size()));
  // The first that fits, beginning at the chosen place.
  for (size_t I = 0; I < Known.size(); ++I) {
    const Tensor &T = Known[(Start + I) % Known.size()];
    if (T.Type == Type &&
        (Rank < 0 || (T.Dims && T.Dims->size() == size_t(Rank))))
      return T;
  }
  return Rank < 0 ? number(Type) : pick(Type);
}

Tensor Body::pickLike(const Tensor &Other) {
  size_t Start = C.below(static_cast<unsigned>(Known.size()));
  for (size_t I = 0; I < Known.size(); ++I) {
    const Tensor &T = Known[(Start + I) % Known.size()];
    if (T.Type == Other.Type && T.Dims == Other.Dims)
      return T;
  }
  return number(Other.Type);
}

void Body::elementwise() {
  Tensor A = pick(DT_FLOAT);
  switch (C.below(6)) {
  case 0:
  case 1:
    add(Unary[C.below(std::size(Unary))], {A}, {{"T", DT_FLOAT}}, A.Dims);
    return;
  case 2:
  case 3:
    add(Binary[C.below(std::size(Binary))], {A, pickLike(A)}, {{"T", DT_FLOAT}},
        A.Dims);
    return;
  case 4: {
    Tensor P = add(Compare[C.below(std::size(Compare))], {A, pickLike(A)},
                   {{"T", DT_FLOAT}}, A.Dims);
    add("SelectV2", {P, pickLike(A), A}, {{"T", DT_FLOAT}}, A.Dims);
    return;
  }
  default: {
    Tensor B = pickLike(A);
    add("AddN", {A, B}, {{"T", DT_FLOAT}}, A.Dims);
    // The number of inputs.
    attr("N").set_i(2);
  }
  }
}

void Body::contract() {
  Tensor A = pick(DT_FLOAT, 2), B = pick(DT_FLOAT, 2);
  Shape Dims;
  bool Left = false, Right = false;
  if (A.Dims && B.Dims && A.Dims->size() == 2 && B.Dims->size() == 2) {
    // Transpose so that the inner sizes are equal, if possible.
    for (unsigned Turn = C.below(4), I = 0; I < 4; ++I, ++Turn) {
      Left = Turn & 1;
      Right = Turn & 2;
      if ((*A.Dims)[!Left] == (*B.Dims)[Right])
        break;
    }
    Dims = {{(*A.Dims)[Left], (*B.Dims)[!Right]}};
  }
  add("MatMul", {A, B}, {{"T", DT_FLOAT}}, Dims);
  attr("transpose_a").set_b(Left);
  attr("transpose_b").set_b(Right);
}

void Body::reduce() {
  Tensor A = pick(DT_FLOAT);
  unsigned Rank = A.Dims ? A.Dims->size() : 0;
  std::vector<int> Axes;
  std::vector<int> Left;
  for (unsigned I = 0; I < Rank; ++I)
    if (C.below(2) == 0)
      Axes.push_back(static_cast<int>(I));
    else
      Left.push_back((*A.Dims)[I]);
  Tensor Axis = ints(Axes);
  bool Keep = C.once(4);
  add(Reduce[C.below(std::size(Reduce))], {A, Axis},
      {{"T", DT_FLOAT}, {"Tidx", DT_INT32}},
      A.Dims && !Keep ? Shape(Left) : std::nullopt);
  attr("keep_dims").set_b(Keep);
}

void Body::reshape() {
  Tensor A = pick(DT_FLOAT);
  switch (C.below(6)) {
  case 0: {
    std::vector<int> To[] = {{-1}, {-1, 4}, {4, -1}, {-1, 2, 2}, {2, -1}};
    std::vector<int> Dims = To[C.below(std::size(To))];
    Shape Known = Dims;
    if (!A.Dims || llvm::count(*A.Dims, -1) != 1 || Dims[0] != -1)
      Known.reset();
    add("Reshape", {A, ints(Dims)}, {{"T", DT_FLOAT}, {"Tshape", DT_INT32}},
        Known);
    return;
  }
  case 1: {
    A = pick(DT_FLOAT, 2);
    Shape Turned = A.Dims;
    if (Turned && Turned->size() == 2)
      std::swap(Turned->front(), Turned->back());
    add("Transpose", {A, ints({1, 0})}, {{"T", DT_FLOAT}, {"Tperm", DT_INT32}},
        Turned);
    return;
  }
  case 2: {
    Tensor Axis = ints({static_cast<int>(C.below(2))}, true);
    add("ConcatV2", {A, pickLike(A), Axis},
        {{"T", DT_FLOAT}, {"Tidx", DT_INT32}});
    attr("N").set_i(2);
    return;
  }
  case 3: {
    add("Pack", {A, pickLike(A)}, {{"T", DT_FLOAT}});
    attr("N").set_i(2);
    attr("axis").set_i(C.below(2));
    return;
  }
  case 4:
    add("Reshape",
        {A, add("Shape", {pick(DT_FLOAT)},
                {{"T", DT_FLOAT}, {"out_type", DT_INT32}})},
        {{"T", DT_FLOAT}, {"Tshape", DT_INT32}});
    return;
  default:
    add("ExpandDims", {A, ints({0}, true)},
        {{"T", DT_FLOAT}, {"Tdim", DT_INT32}});
  }
}

/// Adds a user of a size, as a number or as a shape.
void Body::sizes() {
  Tensor A = pick(DT_FLOAT);
  Tensor S = add("Shape", {A}, {{"T", DT_FLOAT}, {"out_type", DT_INT32}});
  Tensor One = add("StridedSlice", {S, ints({0}), ints({1}), ints({1})},
                   {{"T", DT_INT32}, {"Index", DT_INT32}}, std::vector<int>());
  attr("shrink_axis_mask").set_i(1);
  switch (C.below(5)) {
  case 0:
    add("Cast", {One}, {{"SrcT", DT_INT32}, {"DstT", DT_FLOAT}},
        std::vector<int>());
    return;
  case 1:
    add("Range", {ints({0}, true), One, ints({1}, true)}, {{"Tidx", DT_INT32}},
        std::vector<int>{-1});
    return;
  case 2:
    add("Fill", {S, number(DT_FLOAT)},
        {{"T", DT_FLOAT}, {"index_type", DT_INT32}}, A.Dims);
    return;
  case 3:
    add("RandomUniform", {S}, {{"T", DT_INT32}, {"dtype", DT_FLOAT}}, A.Dims);
    return;
  default:
    add("Tile", {A, S}, {{"T", DT_FLOAT}, {"Tmultiples", DT_INT32}});
  }
}

/// Adds an op that looks up, orders or selects rows.
void Body::rows() {
  Tensor A = pick(DT_FLOAT), I = pick(DT_INT32, 1);
  switch (C.below(8)) {
  case 0:
    add("GatherV2", {A, I, ints({0}, true)},
        {{"Tparams", DT_FLOAT}, {"Tindices", DT_INT32}, {"Taxis", DT_INT32}});
    return;
  case 1:
    add("UnsortedSegmentSum", {A, I, ints({4}, true)},
        {{"T", DT_FLOAT}, {"Tindices", DT_INT32}, {"Tnumsegments", DT_INT32}});
    return;
  case 2:
    add("Unique", {I}, {{"T", DT_INT32}, {"out_idx", DT_INT32}});
    return;
  case 3:
    add("ArgMax", {A, ints({1}, true)},
        {{"T", DT_FLOAT}, {"Tidx", DT_INT32}, {"output_type", DT_INT32}},
        std::vector<int>{-1});
    return;
  case 4:
    add("TopKV2", {A, ints({1}, true)}, {{"T", DT_FLOAT}});
    return;
  case 5:
    add("ReverseV2", {A, ints({static_cast<int>(C.below(2))})},
        {{"T", DT_FLOAT}, {"Tidx", DT_INT32}}, A.Dims);
    return;
  case 6: {
    add("Split", {ints({static_cast<int>(C.below(2))}, true), A},
        {{"T", DT_FLOAT}});
    attr("num_split").set_i(2);
    for (const char *Port : {"0", "1"})
      know({last().name() + (IsFunction ? ":output:" : ":") + Port, DT_FLOAT});
    return;
  }
  default:
    add("SparseSoftmaxCrossEntropyWithLogits", {pick(DT_FLOAT, 2), I},
        {{"T", DT_FLOAT}, {"Tlabels", DT_INT32}}, std::vector<int>{-1});
  }
}

/// Adds a conditional of Switch and Merge.
void Body::conditional() {
  Tensor P = pick(DT_BOOL, 0), A = pick(DT_FLOAT);
  Tensor Off = add("Switch", {A, P}, {{"T", DT_FLOAT}}, A.Dims);
  Tensor On = Known.back();
  for (unsigned I = C.below(3); I != 0; --I)
    elementwise();
  Tensor B =
      add(Unary[C.below(std::size(Unary))], {On}, {{"T", DT_FLOAT}}, A.Dims);
  add("Merge", {Off, B}, {{"T", DT_FLOAT}}, A.Dims);
  attr("N").set_i(2);
}

void Body::call() {
  if (Functions.empty())
    return elementwise();
  const std::string &F = Functions[C.below(Functions.size())];
  Tensor A = pick(DT_FLOAT), B = pick(DT_FLOAT);
  auto Type = [&](const char *In, const char *Out) {
    addTypes(attr(In), DT_FLOAT, 2);
    if (Out)
      addTypes(attr(Out), DT_FLOAT, 2);
  };
  // Type() sets the attribute that counts the outputs, so add() found none.
  auto Outputs = [&](const Shape &Dims) {
    std::string Name = last().name();
    know({IsFunction ? Name + ":output:0" : Name, DT_FLOAT, Dims});
    know({Name + (IsFunction ? ":output:1" : ":1"), DT_FLOAT, Dims});
  };
  switch (C.below(4)) {
  case 0:
    add("If", {pick(DT_BOOL, 0), A, B}, {{"Tcond", DT_BOOL}});
    Type("Tin", "Tout");
    attr("then_branch").mutable_func()->set_name(F);
    attr("else_branch")
        .mutable_func()
        ->set_name(Functions[C.below(Functions.size())]);
    break;
  case 1:
    add("While", {A, B}, {});
    Type("T", nullptr);
    attr("cond").mutable_func()->set_name(Predicate);
    attr("body").mutable_func()->set_name(F);
    break;
  default:
    add(C.below(2) ? "PartitionedCall" : "StatefulPartitionedCall", {A, B}, {});
    Type("Tin", "Tout");
    attr("f").mutable_func()->set_name(F);
  }
  Outputs(A.Dims);
}

void Body::variable() {
  std::vector<int> To[] = {{4, 4}, {4}, {}};
  std::vector<int> Dims = To[C.below(std::size(To))];
  bool IsResource = C.below(2) == 0;
  Tensor Ref = add(IsResource ? "VarHandleOp" : "VariableV2", {},
                   {{"dtype", DT_FLOAT}}, Dims);
  attr("shared_name").set_s("");
  attr("container").set_s("");
  setShape(attr("shape"), Dims);
  // Some variables have no initializer.
  if (!C.once(8)) {
    Tensor Value = number(DT_FLOAT);
    Tensor Filled = add("Fill", {ints(Dims), Value},
                        {{"T", DT_FLOAT}, {"index_type", DT_INT32}}, Dims);
    if (IsResource)
      add("AssignVariableOp", {Ref, Filled}, {{"dtype", DT_FLOAT}});
    else
      add("Assign", {Ref, Filled}, {{"T", DT_FLOAT}});
  }
  if (IsResource)
    add("ReadVariableOp", {Ref}, {{"dtype", DT_FLOAT}}, Dims);
  else
    add("Identity", {Ref}, {{"T", DT_FLOAT}}, Dims);
  Variables.push_back({Ref, Dims, IsResource});
}

void Body::update() {
  if (Variables.empty())
    return variable();
  const Variable &V = Variables[C.below(Variables.size())];
  Tensor Grad = pickLike({"", DT_FLOAT, V.Dims});
  std::string R = V.IsResource ? "Resource" : "";
  switch (C.below(4)) {
  case 0:
    if (V.IsResource)
      add("AssignAddVariableOp", {V.Ref, Grad}, {{"dtype", DT_FLOAT}});
    else
      add("AssignAdd", {V.Ref, Grad}, {{"T", DT_FLOAT}});
    return;
  case 1: {
    Tensor Rows = pick(DT_FLOAT, 2), I = pick(DT_INT32, 1);
    if (V.IsResource)
      add("ResourceScatterAdd", {V.Ref, I, Rows},
          {{"dtype", DT_FLOAT}, {"Tindices", DT_INT32}});
    else
      add("ScatterSub", {V.Ref, I, Rows},
          {{"T", DT_FLOAT}, {"Tindices", DT_INT32}});
    return;
  }
  default:
    add(R + "ApplyGradientDescent", {V.Ref, number(DT_FLOAT), Grad},
        {{"T", DT_FLOAT}});
  }
}

void Body::effect() {
  switch (C.below(3)) {
  case 0:
    add("ScalarSummary", {number(DT_STRING), pick(DT_FLOAT, 0)},
        {{"T", DT_FLOAT}});
    return;
  case 1: {
    Tensor A = pick(DT_FLOAT), B = pick(DT_FLOAT);
    add("Print", {A, B}, {{"T", DT_FLOAT}}, A.Dims);
    addTypes(attr("U"), DT_FLOAT, 1);
    return;
  }
  default:
    add("Assert", {pick(DT_BOOL, 0), pick(DT_FLOAT)}, {});
    addTypes(attr("T"), DT_FLOAT, 1);
  }
}

/// Adds any op of the registry, with operands of the right types.
void Body::wild() {
  ArrayRef<OpDef> All = allOps();
  const OpDef &Def = All[C.below(All.size())];
  // Internal ops and collectives are refused where they are wrong, and a handle
  // needs the op that makes it.
  StringRef Op(Def.Name);
  if (Op.starts_with("Collective") || Op.starts_with("_") || Def.isStateful() ||
      any_of(Def.inputs(), [](const ArgDef &A) {
        return A.IsRef || A.Type == DT_RESOURCE || A.Type == DT_VARIANT;
      }))
    return elementwise();
  NodeDef Model;
  auto &Attrs = *Model.mutable_attr();
  for (const AttrDef &A : Def.attrs()) {
    StringRef Kind(A.Type);
    AttrValue &V = Attrs[A.Name];
    if (Kind == "type")
      setType(V, C.below(3) ? unsigned(DT_FLOAT)
                            : Types[C.below(std::size(Types))]);
    else if (Kind == "int")
      V.set_i(C.below(4));
    else if (Kind == "float")
      V.set_f(static_cast<float>(C.below(3)));
    else if (Kind == "bool")
      V.set_b(C.below(2) != 0);
    else if (Kind == "string")
      V.set_s(C.below(2) ? "SAME" : "VALID");
    else if (Kind == "shape")
      setShape(V, {-1, 4});
    else if (Kind == "list(type)")
      addTypes(V, DT_FLOAT, C.below(3));
    else if (Kind == "list(int)")
      for (unsigned I = C.below(5); I != 0; --I)
        V.mutable_list()->add_i(C.below(3));
    else
      return elementwise();
  }
  std::vector<Tensor> Inputs;
  for (const ArgDef &A : Def.inputs())
    for (unsigned I = 0, E = fuzz::count(Model, A); I < E; ++I)
      Inputs.push_back(pick(typeOf(Model, A, I)));
  // add() counts outputs before these attributes are set: it gets a NoOp.
  add("NoOp", {}, {});
  NodeDef &N = last();
  N.set_op(Op.str());
  std::vector<std::string> Control(N.input().begin(), N.input().end());
  N.clear_input();
  for (Tensor &T : Inputs)
    N.add_input(std::move(T.Name));
  for (std::string &Name : Control)
    N.add_input(std::move(Name));
  *N.mutable_attr() = std::move(Attrs);
  unsigned Port = 0;
  for (const ArgDef &A : Def.outputs())
    for (unsigned I = 0, E = fuzz::count(N, A); I < E; ++I, ++Port) {
      unsigned Type = typeOf(N, A, I);
      if (A.IsRef || Type == DT_RESOURCE || Type == DT_VARIANT)
        continue;
      know({IsFunction ? N.name() + ":" + A.Name + ":" + std::to_string(I)
                       : N.name() + ":" + std::to_string(Port),
            Type, std::nullopt});
    }
}

void Body::step() {
  using Member = void (Body::*)();
  static constexpr Member Steps[] = {
      &Body::elementwise, &Body::elementwise, &Body::contract,   &Body::reduce,
      &Body::reshape,     &Body::sizes,       &Body::rows,       &Body::call,
      &Body::wild,        &Body::effect,      &Body::conditional};
  static constexpr Member States[] = {&Body::variable, &Body::update};
  unsigned Choice = C.below(16);
  if (Choice < std::size(Steps))
    (this->*Steps[Choice])();
  else if (!IsFunction)
    (this->*States[Choice % 2])();
}

namespace {

/// Adds a function of two floats, which returns two floats or a bool.
void addFunction(GraphDef &G, Choices &C, const std::string &Name,
                 bool IsPredicate, const std::vector<std::string> &Callees) {
  FunctionDef &F = *G.mutable_library()->add_function();
  auto &S = *F.mutable_signature();
  S.set_name(Name);
  Body B(C, *F.mutable_node_def(), /*IsFunction=*/true);
  for (const char *Arg : {"a", "b"}) {
    auto &In = *S.add_input_arg();
    In.set_name(Arg);
    In.set_type(tensorflow::DT_FLOAT);
    B.know({Arg, DT_FLOAT, Shape({-1, 4})});
  }
  if (!IsPredicate) {
    B.Functions = Callees;
    B.Predicate = "predicate";
  }
  for (unsigned I = C.below(6); I != 0; --I)
    B.step();
  auto Return = [&](const char *Result, const Tensor &T) {
    auto &Out = *S.add_output_arg();
    Out.set_name(Result);
    Out.set_type(static_cast<tensorflow::DataType>(T.Type));
    (*F.mutable_ret())[Result] = T.Name;
  };
  Return("c", B.pick(IsPredicate ? DT_BOOL : DT_FLOAT, IsPredicate ? 0 : -1));
  if (!IsPredicate)
    Return("d", B.pick(DT_FLOAT));
}

} // namespace

GraphDef randomGraph(Choices &C) {
  GraphDef G;
  Body B(C, *G.mutable_node(), /*IsFunction=*/false);
  if (C.below(3) == 0) {
    addFunction(G, C, B.Predicate = "predicate", true, {});
    for (const char *Name : {"f", "g"}) {
      addFunction(G, C, Name, false, B.Functions);
      B.Functions.emplace_back(Name);
    }
  }
  bool IsStatic = C.below(2) != 0;
  for (const auto &[Type, Dims] :
       {std::pair<unsigned, std::vector<int>>{DT_FLOAT, {-1, 4}},
        {DT_INT32, {-1}}}) {
    std::vector<int> Given = Dims;
    if (IsStatic)
      Given[0] = 12;
    B.add("Placeholder", {}, {{"dtype", Type}}, Dims);
    setShape(B.attr("shape"), Given);
  }
  B.number(DT_BOOL);
  B.variable();
  while (!C.empty() && G.node_size() < 80)
    B.step();
  B.update();
  return G;
}

} // namespace graft::fuzz
