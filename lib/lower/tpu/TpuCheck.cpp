//===- lib/lower/tpu/TpuCheck.cpp - checks of TPU computations --*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "lib/graph/Verifier.h"
#include "lib/lower/tpu/TpuForm.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/FormatVariadic.h"

#include <set>

using namespace llvm;

namespace graft {
namespace {

std::string tensorName(const Graph &G, Endpoint E) {
  return (G.name(E.Node) + ":" + Twine(E.Port)).str();
}

class Checker {
public:
  Checker(const Graph &G, const TpuComputation &C,
          const std::vector<bool> &IsMember, DiagnosticEngine &Diags)
      : G(G), C(C), IsMember(IsMember), Diags(Diags),
        Undeclared(Diags, "ops outside that read the computation") {
    for (const TpuOutput &O : C.Outputs)
      Outputs.insert({O.Tensor.Node, O.Tensor.Port});
  }

  bool check();

private:
  bool checkInput(const TpuInput &I);
  bool checkReaders(NodeId Member);

  const Graph &G;
  const TpuComputation &C;
  const std::vector<bool> &IsMember;
  DiagnosticEngine &Diags;
  ErrorCap Undeclared;
  std::set<std::pair<NodeId, uint32_t>> Outputs;
};

bool Checker::checkInput(const TpuInput &I) {
  Endpoint Read = I.Read.Node == NoNode ? I.Values[0] : I.Read;
  StringRef Name = G.name(Read.Node);
  if (I.Values.size() != (C.Crossing ? 1 : C.Replicas)) {
    Diags.error(Name, formatv("Mismatched number of replicas: this input has "
                              "{0} tensors for {1} replicas",
                              I.Values.size(), C.Replicas));
    return false;
  }
  unsigned Type = G.outputType(Read);
  if (Type == DT_INVALID) {
    Diags.error(Name, "the type of this input is not known: its op is not one "
                      "of TensorFlow's");
    return false;
  }
  for (Endpoint E : I.Values) {
    if (unsigned Other = G.outputType(E); Other != Type) {
      Diags.error(Name,
                  formatv("Replicas must have matching input types: '{0}' has "
                          "type number {1} and '{2}' has number {3}",
                          tensorName(G, Read), Type, tensorName(G, E), Other));
      return false;
    }
    if (IsMember[E.Node]) {
      Diags.error(G.name(E.Node), "is an input of the computation and a part "
                                  "of it: take it out of the computation");
      return false;
    }
  }
  return true;
}

/// Reports ops outside of the computation that read a tensor of \p Member,
/// although the computation does not return that tensor.
bool Checker::checkReaders(NodeId Member) {
  bool Good = true;
  for (Use U : G.uses(Member)) {
    Endpoint E = G.input(U);
    if (E.isControl() || IsMember[U.User] || Outputs.count({E.Node, E.Port}))
      continue;
    Undeclared.error(G.name(U.User),
                     "Undeclared output of TPU computation: this op outside "
                     "reads '" +
                         tensorName(G, E) +
                         "'; add that to the outputs, or this op to what the "
                         "computation includes");
    Good = false;
  }
  return Good;
}

bool Checker::check() {
  bool Good = true;
  for (NodeId M : C.Members) {
    if (auto Cluster = G.stringAttr(M, TpuClusterAttr);
        Cluster && !G.hasAttr(M, "_cloned")) {
      Diags.error(G.name(M),
                  "TPU computations cannot be nested: this op is in '" +
                      Cluster->str() + "' already");
      Good = false;
    }
    for (unsigned I = 0; I < G.node(M).NumData; ++I) {
      Endpoint E = G.input(M, I);
      if (!G.isRefOutput(E.Node, E.Port))
        continue;
      Diags.error(G.name(M),
                  "Non-resource Variables are not supported inside TPU "
                  "computations: this op reads the reference '" +
                      tensorName(G, E) + "'");
      Good = false;
      break;
    }
    Good &= checkReaders(M);
  }
  for (const TpuInput &I : C.Inputs)
    Good &= checkInput(I);
  for (const TpuOutput &O : C.Outputs)
    if (G.outputType(O.Tensor) == DT_INVALID) {
      Diags.error(G.name(O.Tensor.Node),
                  formatv("output {0} does not exist or has no known type",
                          O.Tensor.Port));
      Good = false;
    }
  for (Endpoint S : C.Sums)
    if (!IsMember[S.Node]) {
      Diags.error(
          G.name(S.Node),
          "is summed over the replicas but is not part of the computation");
      Good = false;
    }
  return Good;
}

} // namespace

bool checkTpuComputation(const Graph &G, const TpuComputation &C,
                         const std::vector<bool> &IsMember,
                         DiagnosticEngine &Diags) {
  return Checker(G, C, IsMember, Diags).check();
}

} // namespace graft
