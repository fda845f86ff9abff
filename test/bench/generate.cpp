//===- test/bench/generate.cpp - a training graph of any size ---*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
// Writes the graph that TensorFlow 2.21 builds for this program, node for node,
// with enough blocks for about NODES nodes:
//
//     h = x
//     for b in range(blocks):                  # scope
//     model/encoder_stack/block_<b>
//       s = h
//       for l in range(2):                     # scope feed_forward/dense_<l>
//         h = relu(bias_add(matmul(h, kernel), bias))
//       h = add(s, h, name="residual/add")
//     loss = reduce_mean(square(h - y), name="loss")
//     MomentumOptimizer(0.01, 0.9).minimize(loss, global_step, name="train_op")
//     variables_initializer(global_variables(), name="init"); Saver()
//
// It has resource variables with their initializers and slots, the backward
// graph with its tuples and AddN, a saver, `_class` and `_output_shapes`.
// test/conformance/test_scale.py compares it with a graph of TensorFlow.
//
//     generate NODES OUTPUT[.pb|.meta] [WIDTH]
//
//===----------------------------------------------------------------------===//

#include "lib/support/Wire.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <utility>
#include <vector>

using namespace graft;

namespace {

using Strings = std::vector<std::string>;
using Shape = std::vector<int64_t>; ///< -1: an unknown dimension.

enum DataType : unsigned {
  Float = 1,
  Int32 = 3,
  String = 7,
  Int64 = 9,
};

constexpr unsigned LayersPerBlock = 2;
constexpr unsigned NodesPerLayer = 51;
constexpr unsigned NodesPerBlock = LayersPerBlock * NodesPerLayer + 12;
constexpr unsigned OtherNodes = 60;

//===----------------------------------------------------------------------===//
// Values in wire format
//===----------------------------------------------------------------------===//

/// Appends elements of one type as a packed field.
std::string packed(unsigned Field, const std::string &Elements) {
  std::string S;
  wire::appendBytes(S, Field, Elements);
  return S;
}

std::string shapeBody(const Shape &Dims) {
  std::string S;
  for (int64_t D : Dims) {
    std::string Dim;
    if (D != 0)
      wire::appendInt(Dim, 1, static_cast<uint64_t>(D));
    wire::appendBytes(S, 2, Dim);
  }
  return S;
}

std::string unknownRank() {
  std::string S;
  wire::appendInt(S, 3, 1);
  return S;
}

std::string stringAttr(const std::string &V) {
  std::string S;
  wire::appendBytes(S, 2, V);
  return S;
}

std::string intAttr(int64_t V) {
  std::string S;
  wire::appendInt(S, 3, static_cast<uint64_t>(V));
  return S;
}

std::string boolAttr(bool V) {
  std::string S;
  wire::appendInt(S, 5, V ? 1 : 0);
  return S;
}

std::string typeAttr(unsigned V) {
  std::string S;
  wire::appendInt(S, 6, V);
  return S;
}

std::string shapeAttr(const Shape &V) {
  std::string S;
  wire::appendBytes(S, 7, shapeBody(V));
  return S;
}

std::string listAttr(const std::string &Body) {
  std::string S;
  wire::appendBytes(S, 1, Body);
  return S;
}

std::string classAttr(const std::string &Node) {
  return listAttr(stringAttr("loc:@" + Node)); // ListValue.s is field 2 too
}

std::string typeListAttr(const std::vector<unsigned> &Types) {
  std::string Elements;
  for (unsigned T : Types)
    wire::appendVarint(Elements, T);
  return listAttr(packed(6, Elements));
}

std::string shapeListAttr(const std::vector<std::string> &Bodies) {
  std::string S;
  for (const std::string &B : Bodies)
    wire::appendBytes(S, 7, B);
  return listAttr(S);
}

/// Returns a TensorProto attribute; \p Values are its value fields.
std::string tensorAttr(unsigned Type, const Shape &Dims,
                       const std::string &Values) {
  std::string Tensor, S;
  wire::appendInt(Tensor, 1, Type);
  wire::appendBytes(Tensor, 2, shapeBody(Dims));
  Tensor += Values;
  wire::appendBytes(S, 8, Tensor);
  return S;
}

std::string floatValue(float V) {
  return packed(5, std::string(reinterpret_cast<const char *>(&V), 4));
}

std::string intValue(unsigned Field, uint64_t V) {
  std::string Element;
  wire::appendVarint(Element, V);
  return packed(Field, Element);
}

/// Returns a FullTypeDef with one argument, or none.
std::string fullType(unsigned Id, const std::string &Argument) {
  std::string S;
  wire::appendInt(S, 1, Id);
  if (!Argument.empty())
    wire::appendBytes(S, 2, Argument);
  return S;
}

std::string content(const std::vector<int32_t> &Values) {
  std::string S;
  wire::appendBytes(
      S, 4,
      llvm::StringRef(reinterpret_cast<const char *>(Values.data()),
                      Values.size() * 4));
  return S;
}

//===----------------------------------------------------------------------===//
// The graph
//===----------------------------------------------------------------------===//

class Generator {
public:
  Generator(size_t Nodes, int64_t Width) : Width(Width) {
    size_t Wanted = Nodes > OtherNodes ? Nodes - OtherNodes : 0;
    Blocks = std::max<size_t>(1, (Wanted + NodesPerBlock / 2) / NodesPerBlock);
  }

  /// Returns the serialized GraphDef.
  std::string graph();
  /// Returns the serialized MetaGraphDef around \p Graph.
  std::string metaGraph(const std::string &Graph) const;

  size_t numNodes() const { return Count; }
  size_t numData() const { return Data; }
  size_t numControls() const { return Controls; }

private:
  using Attrs = std::vector<std::pair<std::string, std::string>>;

  /// A variable, as the rest of the graph uses it.
  struct Variable {
    std::string Name;
    std::string Initial;
    bool Trainable = false;
    unsigned Type = Float;
  };

  void node(const std::string &Name, const std::string &Op,
            const Strings &Inputs, Attrs A, const std::string &Device = "",
            const std::string &FullType = "");
  void constant(const std::string &Name, unsigned Type, const Shape &Dims,
                const std::string &Values, const std::string &Class = "",
                const Strings &Inputs = {}, const std::string &Device = "");
  void strings(const std::string &Name, const Strings &Values,
               const std::string &Device = "");
  void group(const std::string &Name, Strings Nodes, bool Manual);
  void variable(const std::string &Name, const Shape &Dims, unsigned Type,
                const std::string &Initial, bool Trainable,
                const std::string &Class);
  void tuple(const std::string &Scope, const Strings &Gradients,
             const std::vector<Shape> &Shapes);
  void shapeOf(const std::string &Name, const std::string &Of);
  void broadcastGradient(const std::string &Scope, const std::string &X,
                         const std::string &Y, const std::string &Gradient,
                         const std::string &GradientY);

  void forward();
  void layer(const std::string &Scope, const std::string &Input);
  void loss();
  void backward();
  void layerGradient(const std::string &Scope, const std::string &Input,
                     const std::string &Gradient);
  void slots();
  void updates();
  void saver();

  std::string blockScope(size_t B) const {
    return "model/encoder_stack/block_" + std::to_string(B);
  }
  std::string layerScope(size_t B, unsigned L) const {
    return blockScope(B) + "/feed_forward/dense_" + std::to_string(L);
  }
  /// Returns the input of block \p B.
  std::string blockInput(size_t B) const {
    return B == 0 ? "x" : blockScope(B - 1) + "/residual/add";
  }

  Attrs with(Attrs A, const Shape &Output) const {
    A.emplace_back("_output_shapes", shapeListAttr({shapeBody(Output)}));
    return A;
  }

  int64_t Width;
  size_t Blocks;
  std::string Out;
  size_t Count = 0, Data = 0, Controls = 0;
  uint64_t Seed = 0;
  std::vector<Variable> Vars;
  Shape Rows, Kernel, Bias;
};

void Generator::node(const std::string &Name, const std::string &Op,
                     const Strings &Inputs, Attrs A, const std::string &Device,
                     const std::string &FullType) {
  std::string Body, Entry;
  wire::appendBytes(Body, 1, Name);
  wire::appendBytes(Body, 2, Op);
  for (const std::string &I : Inputs) {
    wire::appendBytes(Body, 3, I);
    ++(I.front() == '^' ? Controls : Data);
  }
  if (!Device.empty())
    wire::appendBytes(Body, 4, Device);
  std::sort(A.begin(), A.end());
  for (const auto &[Key, Value] : A) {
    Entry.clear();
    wire::appendBytes(Entry, 1, Key);
    wire::appendBytes(Entry, 2, Value);
    wire::appendBytes(Body, 5, Entry);
  }
  if (!FullType.empty())
    wire::appendBytes(Body, 7, FullType);
  wire::appendBytes(Out, 1, Body);
  ++Count;
}

void Generator::constant(const std::string &Name, unsigned Type,
                         const Shape &Dims, const std::string &Values,
                         const std::string &Class, const Strings &Inputs,
                         const std::string &Device) {
  Attrs A = with(
      {{"dtype", typeAttr(Type)}, {"value", tensorAttr(Type, Dims, Values)}},
      Dims);
  if (!Class.empty())
    A.emplace_back("_class", classAttr(Class));
  node(Name, "Const", Inputs, std::move(A), Device);
}

void Generator::strings(const std::string &Name, const Strings &Values,
                        const std::string &Device) {
  std::string Fields;
  for (const std::string &V : Values)
    wire::appendBytes(Fields, 8, V);
  constant(Name, String, {static_cast<int64_t>(Values.size())}, Fields, "", {},
           Device);
}

/// Adds a NoOp after \p Nodes. TensorFlow sorts control inputs by name.
void Generator::group(const std::string &Name, Strings Nodes, bool Manual) {
  std::sort(Nodes.begin(), Nodes.end());
  for (std::string &N : Nodes)
    N.insert(N.begin(), '^');
  Attrs A;
  if (Manual)
    A.emplace_back("_has_manual_control_dependencies", boolAttr(true));
  node(Name, "NoOp", Nodes, std::move(A));
}

void Generator::variable(const std::string &Name, const Shape &Dims,
                         unsigned Type, const std::string &Initial,
                         bool Trainable, const std::string &Class) {
  bool IsSlot = Class != Name;
  node(Name, "VarHandleOp", {},
       with({{"_class", classAttr(Class)},
             {"allowed_devices", listAttr("")},
             {"container", stringAttr("")},
             {"debug_name", stringAttr(Name + "/")},
             {"dtype", typeAttr(Type)},
             {"shape", shapeAttr(Dims)},
             {"shared_name", stringAttr(Name)}},
            {}));
  Attrs Colocated;
  if (IsSlot)
    Colocated.emplace_back("_class", classAttr(Class));
  node(Name + "/IsInitialized/VarIsInitializedOp", "VarIsInitializedOp", {Name},
       with(Colocated, {}));
  node(Name + "/Assign", "AssignVariableOp", {Name, Initial},
       {{"_has_manual_control_dependencies", boolAttr(true)},
        {"dtype", typeAttr(Type)},
        {"validate_shape", boolAttr(false)}});
  Colocated.emplace_back("dtype", typeAttr(Type));
  node(Name + "/Read/ReadVariableOp", "ReadVariableOp", {Name},
       with(Colocated, Dims));
  Vars.push_back({Name, Initial, Trainable, Type});
}

void Generator::layer(const std::string &Scope, const std::string &Input) {
  std::string K = Scope + "/kernel", I = K + "/Initializer/random_uniform";
  auto Class = std::make_pair("_class", classAttr(K));
  auto T = std::make_pair("T", typeAttr(Float));
  auto Dim = static_cast<int32_t>(Width);
  constant(I + "/shape", Int32, {2}, content({Dim, Dim}), K);
  constant(I + "/min", Float, {}, floatValue(-0.5F), K);
  constant(I + "/max", Float, {}, floatValue(0.5F), K);
  node(I + "/RandomUniform", "RandomUniform", {I + "/shape"},
       with({{"T", typeAttr(Int32)},
             Class,
             {"dtype", typeAttr(Float)},
             {"seed", intAttr(87654321)},
             {"seed2", intAttr(static_cast<int64_t>(++Seed))}},
            Kernel));
  node(I + "/sub", "Sub", {I + "/max", I + "/min"}, with({T, Class}, {}));
  node(I + "/mul", "Mul", {I + "/RandomUniform", I + "/sub"},
       with({T, Class}, Kernel));
  node(I, "AddV2", {I + "/mul", I + "/min"}, with({T, Class}, Kernel));
  variable(K, Kernel, Float, I, true, K);
  std::string B = Scope + "/bias";
  constant(B + "/Initializer/zeros", Float, Bias, floatValue(0), B);
  variable(B, Bias, Float, B + "/Initializer/zeros", true, B);

  auto DType = std::make_pair("dtype", typeAttr(Float));
  std::string MatMul = Scope + "/MatMul", Add = Scope + "/BiasAdd";
  node(MatMul + "/ReadVariableOp", "ReadVariableOp", {K},
       with({DType}, Kernel));
  node(MatMul, "MatMul", {Input, MatMul + "/ReadVariableOp"},
       with({T,
             {"grad_a", boolAttr(false)},
             {"grad_b", boolAttr(false)},
             {"transpose_a", boolAttr(false)},
             {"transpose_b", boolAttr(false)}},
            Rows));
  node(Add + "/ReadVariableOp", "ReadVariableOp", {B}, with({DType}, Bias));
  node(Add, "BiasAdd", {MatMul, Add + "/ReadVariableOp"},
       with({T, {"data_format", stringAttr("NHWC")}}, Rows));
  node(Scope + "/Relu", "Relu", {Add}, with({T}, Rows));
}

void Generator::forward() {
  for (const char *Name : {"x", "y"})
    node(Name, "Placeholder", {},
         with({{"dtype", typeAttr(Float)}, {"shape", shapeAttr(Rows)}}, Rows));
  for (size_t B = 0; B < Blocks; ++B) {
    std::string H = blockInput(B);
    for (unsigned L = 0; L < LayersPerBlock; ++L) {
      layer(layerScope(B, L), H);
      H = layerScope(B, L) + "/Relu";
    }
    node(blockScope(B) + "/residual/add", "AddV2", {blockInput(B), H},
         with({{"T", typeAttr(Float)}}, Rows));
  }
}

void Generator::loss() {
  auto T = std::make_pair("T", typeAttr(Float));
  node("sub", "Sub", {blockInput(Blocks), "y"}, with({T}, Rows));
  node("Square", "Square", {"sub"}, with({T}, Rows));
  constant("Const", Int32, {2}, content({0, 1}));
  node(
      "loss", "Mean", {"Square", "Const"},
      with({T, {"Tidx", typeAttr(Int32)}, {"keep_dims", boolAttr(false)}}, {}));
  constant("global_step/Initializer/zeros", Int64, {}, intValue(10, 0),
           "global_step");
  variable("global_step", {}, Int64, "global_step/Initializer/zeros", false,
           "global_step");
}

/// Adds the tuple that makes the gradients of one op wait for each other.
void Generator::tuple(const std::string &Scope, const Strings &Gradients,
                      const std::vector<Shape> &Shapes) {
  std::string Deps = Scope + "/tuple/group_deps";
  group(Deps, Gradients, true);
  for (size_t I = 0; I < Gradients.size(); ++I)
    node(Scope + "/tuple/control_dependency" +
             (I ? "_" + std::to_string(I) : ""),
         "Identity", {Gradients[I], "^" + Deps},
         with({{"T", typeAttr(Float)}, {"_class", classAttr(Gradients[I])}},
              Shapes[I]));
}

void Generator::shapeOf(const std::string &Name, const std::string &Of) {
  // TFT_PRODUCT[TFT_SHAPE_TENSOR[TFT_INT32]]
  static const std::string FullType =
      fullType(3, fullType(1005, fullType(207, "")));
  node(Name, "Shape", {Of},
       with({{"T", typeAttr(Float)}, {"out_type", typeAttr(Int32)}}, {2}), "",
       FullType);
}

/// Adds the gradients of X op Y: TensorFlow allows for different shapes.
void Generator::broadcastGradient(const std::string &Scope,
                                  const std::string &X, const std::string &Y,
                                  const std::string &Gradient,
                                  const std::string &GradientY) {
  auto T = std::make_pair("T", typeAttr(Float));
  std::string Args = Scope + "/BroadcastGradientArgs";
  shapeOf(Scope + "/Shape", X);
  shapeOf(Scope + "/Shape_1", Y);
  node(Args, "BroadcastGradientArgs", {Scope + "/Shape", Scope + "/Shape_1"},
       {{"T", typeAttr(Int32)},
        {"_output_shapes", shapeListAttr({shapeBody({-1}), shapeBody({-1})})}});
  for (const char *Suffix : {"", "_1"}) {
    bool Second = *Suffix;
    node(Scope + "/Sum" + Suffix, "Sum",
         {Second ? GradientY : Gradient, Args + (Second ? ":1" : "")},
         with({T, {"Tidx", typeAttr(Int32)}, {"keep_dims", boolAttr(true)}},
              {-1, -1}));
    node(Scope + "/Reshape" + Suffix, "Reshape",
         {Scope + "/Sum" + Suffix, Scope + "/Shape" + Suffix},
         with({T,
               {"Tshape", typeAttr(Int32)},
               {"_has_manual_control_dependencies", boolAttr(true)}},
              Rows));
  }
  tuple(Scope, {Scope + "/Reshape", Scope + "/Reshape_1"}, {Rows, Rows});
}

void Generator::layerGradient(const std::string &Scope,
                              const std::string &Input,
                              const std::string &Gradient) {
  auto T = std::make_pair("T", typeAttr(Float));
  auto Manual =
      std::make_pair("_has_manual_control_dependencies", boolAttr(true));
  std::string G = "gradients/" + Scope;
  std::string Relu = G + "/Relu_grad/ReluGrad", Add = G + "/BiasAdd_grad";
  node(Relu, "ReluGrad", {Gradient, Scope + "/Relu"}, with({T, Manual}, Rows));
  node(Add + "/BiasAddGrad", "BiasAddGrad", {Relu},
       with({T, Manual, {"data_format", stringAttr("NHWC")}}, Bias));
  tuple(Add, {Relu, Add + "/BiasAddGrad"}, {Rows, Bias});
  std::string D = Add + "/tuple/control_dependency", M = G + "/MatMul_grad";
  node(M + "/MatMul", "MatMul", {D, Scope + "/MatMul/ReadVariableOp"},
       with({T,
             Manual,
             {"grad_a", boolAttr(true)},
             {"grad_b", boolAttr(false)},
             {"transpose_a", boolAttr(false)},
             {"transpose_b", boolAttr(true)}},
            Rows));
  node(M + "/MatMul_1", "MatMul", {Input, D},
       with({T,
             Manual,
             {"grad_a", boolAttr(false)},
             {"grad_b", boolAttr(true)},
             {"transpose_a", boolAttr(true)},
             {"transpose_b", boolAttr(false)}},
            Kernel));
  tuple(M, {M + "/MatMul", M + "/MatMul_1"}, {Rows, Kernel});
}

void Generator::backward() {
  auto T = std::make_pair("T", typeAttr(Float));
  auto TInt = std::make_pair("T", typeAttr(Int32));
  std::string G = "gradients", L = "gradients/loss_grad";
  constant(G + "/Shape", Int32, {0}, "");
  constant(G + "/grad_ys_0/Const", Float, {}, floatValue(1));
  node(G + "/grad_ys_0", "Fill", {G + "/Shape", G + "/grad_ys_0/Const"},
       with({T, {"index_type", typeAttr(Int32)}}, {}));
  constant(L + "/Reshape/shape", Int32, {2}, content({1, 1}));
  node(L + "/Reshape", "Reshape", {G + "/grad_ys_0", L + "/Reshape/shape"},
       with({T, {"Tshape", typeAttr(Int32)}}, {1, 1}));
  shapeOf(L + "/Shape", "Square");
  node(L + "/Tile", "Tile", {L + "/Reshape", L + "/Shape"},
       with({T, {"Tmultiples", typeAttr(Int32)}}, Rows));
  shapeOf(L + "/Shape_1", "Square");
  constant(L + "/Size", Int32, {}, intValue(7, 2));
  node(L + "/add", "AddV2", {"Const", L + "/Size"}, with({TInt}, {2}));
  node(L + "/mod", "FloorMod", {L + "/add", L + "/Size"}, with({TInt}, {2}));
  constant(L + "/GatherV2/axis", Int32, {}, intValue(7, 0));
  node(L + "/GatherV2", "GatherV2",
       {L + "/Shape_1", L + "/mod", L + "/GatherV2/axis"},
       with({{"Taxis", typeAttr(Int32)},
             {"Tindices", typeAttr(Int32)},
             {"Tparams", typeAttr(Int32)},
             {"batch_dims", intAttr(0)}},
            {2}));
  constant(L + "/Const", Int32, {1}, intValue(7, 0));
  node(L + "/Prod", "Prod", {L + "/GatherV2", L + "/Const"},
       with({TInt, {"Tidx", typeAttr(Int32)}, {"keep_dims", boolAttr(false)}},
            {}));
  node(L + "/Cast", "Cast", {L + "/Prod"},
       with({{"SrcT", typeAttr(Int32)},
             {"DstT", typeAttr(Float)},
             {"Truncate", boolAttr(false)}},
            {}));
  node(L + "/truediv", "RealDiv", {L + "/Tile", L + "/Cast"},
       with({T, {"_has_manual_control_dependencies", boolAttr(true)}}, Rows));
  constant(G + "/Square_grad/Const", Float, {}, floatValue(2), "",
           {"^" + L + "/truediv"});
  node(G + "/Square_grad/Mul", "Mul", {"sub", G + "/Square_grad/Const"},
       with({T}, Rows));
  node(G + "/Square_grad/Mul_1", "Mul",
       {L + "/truediv", G + "/Square_grad/Mul"}, with({T}, Rows));
  node(G + "/sub_grad/Neg", "Neg", {G + "/Square_grad/Mul_1"}, with({T}, Rows));
  broadcastGradient(G + "/sub_grad", blockInput(Blocks), "y",
                    G + "/Square_grad/Mul_1", G + "/sub_grad/Neg");

  std::string Gradient = G + "/sub_grad/tuple/control_dependency";
  for (size_t B = Blocks; B-- > 0;) {
    std::string Scope = G + "/" + blockScope(B) + "/residual/add_grad";
    std::string Deps = Scope + "/tuple/control_dependency";
    broadcastGradient(Scope, blockInput(B),
                      layerScope(B, LayersPerBlock - 1) + "/Relu", Gradient,
                      Gradient);
    std::string Inner = Deps + "_1";
    for (unsigned I = LayersPerBlock; I-- > 0;) {
      layerGradient(layerScope(B, I),
                    I == 0 ? blockInput(B) : layerScope(B, I - 1) + "/Relu",
                    Inner);
      Inner =
          G + "/" + layerScope(B, I) + "/MatMul_grad/tuple/control_dependency";
    }
    if (B == 0)
      return;
    Gradient = G + "/AddN";
    if (B + 1 < Blocks)
      Gradient += "_" + std::to_string(Blocks - 1 - B);
    node(Gradient, "AddN", {Deps, Inner},
         with({T, {"N", intAttr(2)}, {"_class", classAttr(Scope + "/Reshape")}},
              Rows));
  }
}

void Generator::slots() {
  std::vector<Variable> Trainable;
  for (const Variable &V : Vars)
    if (V.Trainable)
      Trainable.push_back(V);
  for (const Variable &V : Trainable) {
    std::string Name = V.Name + "/Momentum",
                Initial = Name + "/Initializer/zeros";
    bool IsKernel = llvm::StringRef(V.Name).ends_with("/kernel");
    const Shape &Dims = IsKernel ? Kernel : Bias;
    constant(Initial, Float, Dims, floatValue(0), V.Name);
    variable(Name, Dims, Float, Initial, false, V.Name);
  }
}

void Generator::updates() {
  constant("train_op/learning_rate", Float, {}, floatValue(0.01F));
  constant("train_op/momentum", Float, {}, floatValue(0.9F));
  Strings Updates;
  for (const Variable &V : Vars) {
    if (!V.Trainable)
      continue;
    llvm::StringRef Scope = V.Name;
    bool IsKernel = Scope.consume_back("/kernel");
    Scope.consume_back("/bias");
    std::string Name = "train_op/update_" + V.Name + "/ResourceApplyMomentum";
    std::string Gradient = "gradients/" + Scope.str() +
                           (IsKernel ? "/MatMul_grad" : "/BiasAdd_grad") +
                           "/tuple/control_dependency_1";
    node(Name, "ResourceApplyMomentum",
         {V.Name, V.Name + "/Momentum", "train_op/learning_rate", Gradient,
          "train_op/momentum"},
         {{"T", typeAttr(Float)},
          {"_class", classAttr(V.Name)},
          {"_has_manual_control_dependencies", boolAttr(true)},
          {"use_locking", boolAttr(false)},
          {"use_nesterov", boolAttr(false)}});
    Updates.push_back(Name);
  }
  group("train_op/update", Updates, true);
  constant("train_op/Const", Int64, {}, intValue(10, 1), "global_step",
           {"^train_op/update"});
  node("train_op", "AssignAddVariableOp", {"global_step", "train_op/Const"},
       {{"_class", classAttr("global_step")}, {"dtype", typeAttr(Int64)}});
  Strings Assigns;
  for (const Variable &V : Vars)
    Assigns.push_back(V.Name + "/Assign");
  group("init", Assigns, false);
}

void Generator::saver() {
  std::vector<Variable> Sorted = Vars;
  std::sort(
      Sorted.begin(), Sorted.end(),
      [](const Variable &A, const Variable &B) { return A.Name < B.Name; });
  Strings Names, Slices(Sorted.size()), SaveInputs, Assigns;
  std::vector<unsigned> Types;
  std::vector<std::string> Shapes(Sorted.size(), unknownRank());
  for (const Variable &V : Sorted) {
    Names.push_back(V.Name);
    Types.push_back(V.Type);
  }
  std::string Model;
  wire::appendBytes(Model, 8, "model");
  constant("save/filename/input", String, {}, Model);
  for (auto [Name, From] : {std::pair("save/filename", "save/filename/input"),
                            std::pair("save/Const", "save/filename")})
    node(Name, "PlaceholderWithDefault", {From},
         with({{"dtype", typeAttr(String)}, {"shape", shapeAttr({})}}, {}));
  strings("save/SaveV2/tensor_names", Names);
  strings("save/SaveV2/shape_and_slices", Slices);
  SaveInputs = {"save/Const", "save/SaveV2/tensor_names",
                "save/SaveV2/shape_and_slices"};
  for (const Variable &V : Sorted)
    SaveInputs.push_back(V.Name + "/Read/ReadVariableOp");
  node("save/SaveV2", "SaveV2", SaveInputs,
       {{"_has_manual_control_dependencies", boolAttr(true)},
        {"dtypes", typeListAttr(Types)}});
  node(
      "save/control_dependency", "Identity", {"save/Const", "^save/SaveV2"},
      with({{"T", typeAttr(String)}, {"_class", classAttr("save/Const")}}, {}));
  strings("save/RestoreV2/tensor_names", Names, "/device:CPU:0");
  strings("save/RestoreV2/shape_and_slices", Slices, "/device:CPU:0");
  node("save/RestoreV2", "RestoreV2",
       {"save/Const", "save/RestoreV2/tensor_names",
        "save/RestoreV2/shape_and_slices"},
       {{"_output_shapes", shapeListAttr(Shapes)},
        {"dtypes", typeListAttr(Types)}},
       "/device:CPU:0");
  for (size_t I = 0; I < Sorted.size(); ++I) {
    std::string Suffix = I ? "_" + std::to_string(I) : "";
    node("save/Identity" + Suffix, "Identity",
         {"save/RestoreV2" + (I ? ":" + std::to_string(I) : "")},
         {{"T", typeAttr(Types[I])},
          {"_output_shapes", shapeListAttr({unknownRank()})}});
    Assigns.push_back("save/AssignVariableOp" + Suffix);
    node(Assigns.back(), "AssignVariableOp",
         {Sorted[I].Name, "save/Identity" + Suffix},
         {{"_has_manual_control_dependencies", boolAttr(true)},
          {"dtype", typeAttr(Types[I])},
          {"validate_shape", boolAttr(false)}});
  }
  group("save/restore_all", Assigns, false);
}

std::string Generator::graph() {
  Rows = {-1, Width};
  Kernel = {Width, Width};
  Bias = {Width};
  Out.reserve(Blocks * NodesPerBlock * 450);
  forward();
  loss();
  backward();
  slots();
  updates();
  saver();
  std::string Versions;
  wire::appendInt(Versions, 1, 2474); // TensorFlow 2.21
  wire::appendBytes(Out, 4, Versions);
  return std::move(Out);
}

std::string Generator::metaGraph(const std::string &Graph) const {
  std::string Meta, Saver;
  wire::appendBytes(Meta, 1, "");
  wire::appendBytes(Meta, 2, Graph);
  wire::appendBytes(Saver, 1, "save/Const:0");
  wire::appendBytes(Saver, 2, "save/control_dependency:0");
  wire::appendBytes(Saver, 3, "save/restore_all");
  wire::appendInt(Saver, 4, 5); // max_to_keep
  wire::appendInt(Saver, 7, 2); // version V2
  wire::appendBytes(Meta, 3, Saver);

  auto Collection = [&](const char *Name, unsigned Kind,
                        const Strings &Values) {
    std::string List, Def, Entry;
    for (const std::string &V : Values)
      wire::appendBytes(List, 1, V);
    wire::appendBytes(Def, Kind, List);
    wire::appendBytes(Entry, 1, Name);
    wire::appendBytes(Entry, 2, Def);
    wire::appendBytes(Meta, 4, Entry);
  };
  constexpr unsigned NodeList = 1, BytesList = 2;
  Strings Global, Trainable, Step;
  for (const Variable &V : Vars) {
    std::string Def;
    wire::appendBytes(Def, 1, V.Name + ":0");
    wire::appendBytes(Def, 2, V.Name + "/Assign");
    wire::appendBytes(Def, 3, V.Name + "/Read/ReadVariableOp:0");
    wire::appendInt(Def, 5, 1); // is_resource
    wire::appendBytes(Def, 6, V.Initial + ":0");
    if (V.Trainable)
      wire::appendInt(Def, 7, 1);
    Global.push_back(Def);
    if (V.Trainable)
      Trainable.push_back(Def);
    if (V.Name == "global_step")
      Step.push_back(Def);
  }
  Collection("global_step", BytesList, Step);
  Collection("train_op", NodeList, {"train_op"});
  Collection("trainable_variables", BytesList, Trainable);
  Collection("variables", BytesList, Global);
  return Meta;
}

} // namespace

int main(int Argc, char **Argv) {
  size_t Nodes = Argc > 2 ? std::strtoull(Argv[1], nullptr, 10) : 0;
  long Width = Argc > 3 ? std::strtol(Argv[3], nullptr, 10) : 8;
  if (Nodes == 0 || Width <= 0) {
    std::fputs("usage: generate NODES OUTPUT[.pb|.meta] [WIDTH]\n", stderr);
    return 2;
  }
  Generator G(Nodes, Width);
  std::string Bytes = G.graph();
  if (llvm::StringRef(Argv[2]).ends_with(".meta"))
    Bytes = G.metaGraph(Bytes);
  std::FILE *File = std::fopen(Argv[2], "wb");
  bool Good =
      File && std::fwrite(Bytes.data(), 1, Bytes.size(), File) == Bytes.size();
  if (!File || std::fclose(File) != 0 || !Good) {
    std::perror(Argv[2]);
    return 1;
  }
  std::printf("%zu nodes, %zu bytes, %zu data and %zu control edges\n",
              G.numNodes(), Bytes.size(), G.numData(), G.numControls());
  return 0;
}
