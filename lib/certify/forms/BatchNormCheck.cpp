//===- lib/certify/forms/BatchNormCheck.cpp - check of batch norms --------===//
//
// SPDX-License-Identifier: Apache-2.0
//
// X, S and O are the activations, scales and offsets of the op in the input. A
// is all axes except the channel axis. n is the number of values of a channel.
//
//     m = mean of X along A           n = size(X) / size(S)
//     v = mean of (X - m)^2 along A
//     FusedBatchNorm(X, S, O, training):
//       0: FusedBatchNorm(X, S, O, m, v)   1: m   2: v * n / max(n-1, 1)
//     d, ds, do = FusedBatchNormGrad(dY, X, S, m, v) in inference
//     c = S / sqrt(v + epsilon)
//     FusedBatchNormGrad(dY, X, S, training):
//       0: d - FusedBatchNorm(X, c * ds/n, c * do/n, m, v)   1: ds   2: do
//
// Output 0 is dX = c * (dY - do/n - (X - m)/sqrt(v + epsilon) * ds/n).
//
//===----------------------------------------------------------------------===//

#include "lib/certify/forms/BatchNormCheck.h"

#include "lib/certify/forms/InsertedForm.h"
#include "lib/ops/Ops.h"

#include "llvm/ADT/StringSwitch.h"
#include "llvm/ADT/Twine.h"

using namespace llvm;

namespace graft {

/// Returns true if a definition may contain \p Op, a function of its inputs.
static bool isDefinitionOp(StringRef Op) {
  return StringSwitch<bool>(Op)
      .Cases(op::Const, op::Cast, op::Mean, "Squeeze", op::SquaredDifference,
             true)
      .Cases(op::Range, op::Transpose, op::Size, op::RealDiv, op::Sub,
             op::Maximum, op::Mul, op::AddV2, op::Rsqrt, true)
      .Cases(op::FusedBatchNorm, op::FusedBatchNormV2, op::FusedBatchNormV3,
             true)
      .Default(false);
}

BatchNormCheck::BatchNormCheck(const Comparison &C)
    : C(C), In(C.In), G(C.G), ProgramOf(C.ProgramOf) {}

bool BatchNormCheck::isGradient(NodeId I) const {
  return In.opNames()[In.op(I)].starts_with(op::FusedBatchNormGrad);
}

bool BatchNormCheck::isRewritten(NodeId I) const {
  StringRef Op = In.opNames()[In.op(I)];
  if (!Op.starts_with(op::FusedBatchNorm))
    return false;
  auto Was = In.attr(I, "is_training");
  return (!Was || *Was == encodeBoolAttr(true)) &&
         G.boolAttr(ProgramOf[I], "is_training") == false;
}

/// Returns all axes except the channel axis, for node \p I of the input.
SmallVector<int64_t, 4> BatchNormCheck::axes(NodeId I) const {
  auto Format = In.attr(I, "data_format");
  auto Is = [&](StringRef Name) { return *Format == encodeStringAttr(Name); };
  if (!Format || Is("NHWC"))
    return {0, 1, 2};
  if (Is("NCHW"))
    return {0, 2, 3};
  if (Is("NDHWC"))
    return {0, 1, 2, 3};
  if (Is("NCDHW"))
    return {0, 2, 3, 4};
  return {};
}

/// Returns the batch norm of the gradient \p I, or NoNode if none matches.
/// Returns \p I itself if it is not a gradient.
NodeId BatchNormCheck::forward(NodeId I) const {
  if (!isGradient(I))
    return I;
  ArrayRef<Endpoint> Is = In.inputs(I);
  NodeId F = Is[3].Node;
  StringRef Op = In.opNames()[In.op(F)];
  bool Fits = Op.starts_with(op::FusedBatchNorm) && !isGradient(F) &&
              Is[3] == Endpoint{F, 3} && Is[4] == Endpoint{F, 4} &&
              In.inputs(F)[0] == Is[1] && axes(I) == axes(F) &&
              attrs(ProgramOf[I]) == attrs(ProgramOf[F]);
  return Fits ? F : NoNode;
}

/// Returns, as text, the properties on which a batch norm depends besides its
/// operands and axes.
std::string BatchNormCheck::attrs(NodeId P) const {
  auto Epsilon = G.floatAttr(P, "epsilon");
  return (Twine(Epsilon ? llvm::bit_cast<uint32_t>(*Epsilon) : 0) + "," +
          Twine(G.outputType(P, 0)) + "," + Twine(G.outputType(P, 1)))
      .str();
}

static std::string list(ArrayRef<int64_t> Values) {
  std::string Text = "[";
  for (int64_t V : Values)
    Text += std::to_string(V) + ";";
  return Text + "]";
}

static std::string number(float Value) {
  return std::to_string(llvm::bit_cast<uint32_t>(Value));
}

/// Returns the term of tensor \p E of the input. The term starts with `!` if
/// the program computes another value under the name of \p E.
static std::string leaf(Endpoint E, bool Hollow = false) {
  return (Twine(Hollow ? "!" : "#") + Twine(E.Node) + ":" + Twine(E.Port))
      .str();
}

/// Returns \p E as a term over tensors of the input, with "?" for other parts.
std::string BatchNormCheck::term(Endpoint E) const {
  std::string Text;
  unsigned Budget = 256;
  appendTerm(Text, E, Budget);
  return Text;
}

void BatchNormCheck::appendTerm(std::string &Text, Endpoint E,
                                unsigned &Budget) const {
  E = C.strip(E);
  bool IsTerm = E.Node != NoNode && Budget != 0 &&
                (C.InputOf[E.Node] != NoNode ||
                 (E.Port == 0 && isDefinitionOp(G.opName(E.Node))));
  Budget -= IsTerm;
  if (!IsTerm) {
    Text += '?';
    return;
  }
  if (NodeId I = C.InputOf[E.Node]; I != NoNode) {
    Text += leaf({I, E.Port}, isHollow({I, E.Port}));
    return;
  }
  StringRef Op = G.opName(E.Node);
  if (Op == op::Const) {
    Text += constant(E.Node);
    return;
  }
  Text += Op;
  if (Op == op::Cast)
    Text += ("<" + Twine(G.outputType(E.Node, 0)) + ">").str();
  else if (Op == "Squeeze")
    Text += list(G.intListAttr(E.Node, "squeeze_dims")
                     .value_or(SmallVector<int64_t, 4>()));
  else if (Op == op::Mean)
    Text += G.boolAttr(E.Node, "keep_dims") == true ? "<kept>" : "";
  else if (Op.starts_with(op::FusedBatchNorm))
    Text += "<" + attrs(E.Node) + "," +
            G.stringAttr(E.Node, "data_format").value_or("?").str() +
            (G.boolAttr(E.Node, "is_training") == false ? ">" : ",training>");
  Text += '(';
  for (Endpoint Operand : G.dataInputs(E.Node)) {
    appendTerm(Text, Operand, Budget);
    Text += ',';
  }
  Text += ')';
}

std::string BatchNormCheck::constant(NodeId P) const {
  auto Value = constValue(G, P);
  if (!Value)
    return "?";
  if (Value->HasInts)
    return list(Value->Ints);
  auto Scalar = constScalar(G, P);
  return Scalar && Value->Type == DT_FLOAT ? number(static_cast<float>(*Scalar))
                                           : "?";
}

static std::string call(const Twine &Op, std::initializer_list<StringRef> Of) {
  std::string Text = Op.str();
  Text += '(';
  for (StringRef Operand : Of) {
    Text += Operand;
    Text += ',';
  }
  Text += ')';
  return Text;
}

/// Returns the term that defines tensor \p Want of the input. Ports 3 and 4 of
/// a gradient mean its inputs for the mean and the variance.
std::string BatchNormCheck::definition(Endpoint Want) const {
  NodeId I = forward(Want.Node);
  if (I == NoNode)
    return "";
  NodeId P = ProgramOf[Want.Node];
  SmallVector<int64_t, 4> Axes = axes(Want.Node);
  auto Epsilon = G.floatAttr(P, "epsilon");
  // If the factor is not 1, the op blends its statistics with earlier ones, so
  // they have no definition.
  if (G.floatAttr(ProgramOf[I], "exponential_avg_factor").value_or(1) != 1)
    return "";
  if (Axes.empty() || !Epsilon || G.outputType(P, 1) != DT_FLOAT)
    return "";
  std::string X = leaf(In.inputs(I)[0]), S = leaf(In.inputs(I)[1]);
  std::string Cast = "Cast<" + std::to_string(DT_FLOAT) + ">";
  std::string Float = G.outputType(P, 0) == DT_FLOAT ? X : call(Cast, {X});
  std::string Drop = "Squeeze" + list(Axes), A = list(Axes);
  std::string Kept = call("Mean<kept>", {Float, A});
  std::string M = call(Drop, {Kept});
  std::string Squares = call(op::SquaredDifference, {Float, Kept});
  std::string V = call(Drop, {call("Mean<kept>", {Squares, A})});
  std::string N = call(op::RealDiv, {call(Cast, {call(op::Size, {X})}),
                                     call(Cast, {call(op::Size, {S})})});
  bool Gradient = isGradient(Want.Node);
  if (Want.Port == (Gradient ? 3 : 1))
    return M;
  if (Want.Port == 4)
    return V;
  std::string One = number(1);
  if (!Gradient && Want.Port == 2)
    return call(
        op::Mul,
        {V, call(op::RealDiv,
                 {N, call(op::Maximum, {call(op::Sub, {N, One}), One})})});
  if (!Gradient || Want.Port != 0)
    return "";
  S = leaf(In.inputs(Want.Node)[2]);
  std::string Factor = call(
      op::Mul, {S, call(op::Rsqrt, {call(op::AddV2, {V, number(*Epsilon)})})});
  auto Part = [&](uint32_t Port) {
    return call(op::Mul,
                {Factor, call(op::RealDiv, {leaf({Want.Node, Port}), N})});
  };
  std::string Through =
      call(In.opNames()[In.op(I)] + "<" + attrs(P) + "," +
               G.stringAttr(ProgramOf[I], "data_format").value_or("?") + ">",
           {X, Part(1), Part(2), M, V});
  std::string D = leaf({Want.Node, 0}, /*Hollow=*/true);
  if (channelsFirst(Want.Node))
    D = call(op::Transpose,
             {D, Axes.size() == 3 ? "[0;3;1;2;]" : "[0;4;1;2;3;]"});
  return call(op::Sub, {D, Through});
}

bool BatchNormCheck::mayChange(NodeId I, StringRef Key) const {
  if (!isRewritten(I))
    return false;
  if (Key == "is_training")
    return true;
  if (Key != "data_format" || !isGradient(I) || !channelsFirst(I))
    return false;
  return G.stringAttr(ProgramOf[I], Key) ==
         StringRef(axes(I).size() == 3 ? "NHWC" : "NDHWC");
}

bool BatchNormCheck::means(Endpoint E, Endpoint Want) const {
  StringRef Op = In.opNames()[In.op(Want.Node)];
  if (!Op.starts_with(op::FusedBatchNorm))
    return false;
  // In training, statistics always have a definition. Other outputs have one
  // only if the op is rewritten.
  bool IsStatistic =
      !isGradient(Want.Node) && (Want.Port == 1 || Want.Port == 2);
  auto Training = In.attr(Want.Node, "is_training");
  if (Training && *Training != encodeBoolAttr(true))
    return false;
  if (!IsStatistic && !isHollow(Want))
    return false;
  std::string Is = definition(Want);
  return !Is.empty() && term(E) == Is;
}

bool BatchNormCheck::givesStatistics(NodeId I, unsigned K, Endpoint E) const {
  // The third reserve space is unused when statistics are given.
  if (K == 5 && isGradient(I))
    return true;
  // The rewritten gradient has the channels last, so its operands are
  // transposed.
  if (K < 2 && isGradient(I) && channelsFirst(I)) {
    SmallVector<int64_t, 4> Order = axes(I);
    Order.push_back(1);
    return term(E) == call(op::Transpose, {leaf(In.inputs(I)[K]), list(Order)});
  }
  if (K != 3 && K != 4)
    return false;
  std::string Is = definition({I, isGradient(I) || K == 4 ? K : 1});
  return !Is.empty() && term(E) == Is;
}

static void checkDefinition(Comparison &C, const ProgramFacts & /*Facts*/,
                            NodeId N) {
  if (!isDefinitionOp(C.G.opName(N)))
    C.mismatch(N);
}

/// Returns \p E itself: only a whole definition represents a tensor of the
/// input.
static Endpoint standsForDefinition(const Comparison & /*C*/, Endpoint E) {
  return E;
}

static bool recognizeDefinition(const LoweredFile &File, NodeId N) {
  return isDefinitionOp(File.G.opName(N));
}

const InsertedForm DefinitionForm = {.StandsFor = standsForDefinition,
                                     .Check = checkDefinition,
                                     .Recognize = recognizeDefinition};

} // namespace graft
