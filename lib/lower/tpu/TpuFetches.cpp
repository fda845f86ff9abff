//===- lib/lower/tpu/TpuFetches.cpp - names of a TPU computation *- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
// An op inside of a computation can be neither fetched nor run by itself. So a
// node outside combines the values of the replicas, and gets the name that the
// output has in the plain graph:
//
//     y = MatMul(x, w)    →    cluster/y = MatMul(replicated_input_0, w)
//                              ...
//                              y = ConcatV2(output_0_shard_0, ..., y/axis)
//
//===----------------------------------------------------------------------===//

#include "lib/lower/tpu/TpuForm.h"
#include "lib/ops/Ops.h"

#include "lib/graph/AttrRun.h"

#include "llvm/ADT/DenseMap.h"
#include "llvm/Support/FormatVariadic.h"

#include <map>

using namespace llvm;

namespace graft {
namespace {

class Fetches {
public:
  Fetches(Graph &G, const TpuComputation &C, const TpuForm &Form,
          DiagnosticEngine &Diags)
      : G(G), C(C), Form(Form), Diags(Diags) {}

  bool run();

private:
  using Ports = std::map<uint32_t, size_t>; ///< From a port to the number of
                                            ///< its output.

  NodeId insert(const Twine &Name, StringRef Op, ArrayRef<Endpoint> Inputs,
                const AttrRun &Attrs);
  NodeId constant(const Twine &Name, unsigned Type, StringRef Value);
  NodeId combine(const Twine &Name, size_t Output);
  NodeId combinePorts(StringRef Name, const Ports &Of);
  void rename(NodeId N);

  Graph &G;
  const TpuComputation &C;
  const TpuForm &Form;
  DiagnosticEngine &Diags;
  NodeId After = NoNode;
};

NodeId Fetches::insert(const Twine &Name, StringRef Op,
                       ArrayRef<Endpoint> Inputs, const AttrRun &Attrs) {
  NodeId N = G.insertNode(Name.str(), Op, Inputs, After, Attrs);
  G.setDevice(N, C.Device);
  return N;
}

NodeId Fetches::constant(const Twine &Name, unsigned Type, StringRef Value) {
  return insert(Name, op::Const, {},
                AttrRun().type("dtype", Type).raw("value", Value));
}

/// Adds nodes that compute, from all replicas, the value that output number \p
/// Output has in the plain graph. Returns the last one, called \p Name.
NodeId Fetches::combine(const Twine &Name, size_t Output) {
  TpuCombine How = C.Outputs[Output].Combine;
  SmallVector<Endpoint, 8> Shards;
  for (NodeId N : Form.Shards[Output])
    Shards.push_back({N, 0});
  unsigned Type = G.outputType(Shards[0].Node, 0);
  AttrRun Typed;
  Typed.type("T", Type);
  if (Shards.size() == 1 || How.Kind == TpuCombine::First)
    return insert(Name, op::Identity, Shards[0], Typed);
  auto Count = static_cast<int64_t>(Shards.size());
  AttrRun Counted = Typed;
  Counted.integer("N", Count);
  if (How.Kind == TpuCombine::Concat) {
    NodeId Axis = constant(Name + "/axis", DT_INT32,
                           encodeIntTensor(DT_INT32, {}, How.Axis));
    Shards.push_back({Axis, 0});
    return insert(Name, op::ConcatV2, Shards, Counted.type("Tidx", DT_INT32));
  }
  if (How.Kind == TpuCombine::Sum)
    return insert(Name, op::AddN, Shards, Counted);
  NodeId Sum = insert(Name + "/sum", op::AddN, Shards, Counted);
  NodeId Number =
      constant(Name + "/replicas", Type,
               encodeFloatTensor(Type, {}, static_cast<double>(Shards.size())));
  return insert(Name, op::RealDiv, {{Sum, 0}, {Number, 0}}, Typed);
}

/// Adds one node with the outputs \p Of. An output that the computation does
/// not return becomes a string constant that explains this: an op that expects
/// a number refuses a string.
NodeId Fetches::combinePorts(StringRef Name, const Ports &Of) {
  if (Of.size() == 1 && Of.begin()->first == 0)
    return combine(Name, Of.begin()->second);
  SmallVector<Endpoint, 8> Values;
  std::string Types;
  for (uint32_t Port = 0; Port <= Of.rbegin()->first; ++Port) {
    auto It = Of.find(Port);
    NodeId N;
    if (It != Of.end()) {
      N = combine(Name + "/output_" + Twine(Port), It->second);
    } else {
      std::string Text =
          formatv("{0}:{1} is no output of {2}", Name, Port, Form.Cluster);
      std::string Tensor, Value;
      wire::appendInt(Tensor, 1, DT_STRING);
      wire::appendBytes(Tensor, 2, "");
      wire::appendBytes(Tensor, 8, Text);
      wire::appendBytes(Value, AttrTensor, Tensor);
      N = constant(Name + "/no_output_" + Twine(Port), DT_STRING, Value);
    }
    Values.push_back({N, 0});
    Types += static_cast<char>(G.outputType(N, 0));
  }
  return insert(Name, op::IdentityN, Values,
                AttrRun().raw("T", encodeTypeListAttr(Types)));
}

void Fetches::rename(NodeId N) {
  G.rename(N, G.uniqueName((Form.Cluster + "/" + G.name(N)).str()));
}

bool Fetches::run() {
  std::map<NodeId, Ports> Outputs; // by member
  for (size_t I = 0; I < C.Outputs.size(); ++I) {
    Endpoint E = C.Outputs[I].Tensor;
    if (G.stringAttr(E.Node, TpuClusterAttr) != StringRef(Form.Cluster))
      continue;
    if (C.Outputs[I].Combine.Kind == TpuCombine::Mean && C.Replicas > 1 &&
        !isFloating(G.outputType(E))) {
      Diags.error(G.name(E.Node),
                  formatv("output {0} has no mean: its type is not "
                          "floating-point; combine it by sum, first or concat",
                          E.Port));
      return false;
    }
    Outputs[E.Node].try_emplace(E.Port, I);
  }
  After = Form.Shards.empty() ? Form.Runs.back() : Form.Shards.back().back();
  DenseMap<NodeId, NodeId> NewNode;
  for (const auto &[N, Of] : Outputs) {
    std::string Name = G.name(N).str();
    rename(N);
    NewNode[N] = combinePorts(Name, Of);
  }
  SmallVector<Endpoint, 8> All;
  for (const auto &Shards : Form.Shards)
    for (NodeId N : Shards)
      All.push_back({N, ControlPort});
  for (NodeId N : Form.Runs)
    All.push_back({N, ControlPort});
  for (NodeId N : C.Operations) {
    if (NewNode.count(N))
      continue;
    std::string Name = G.name(N).str();
    rename(N);
    NewNode[N] = insert(Name, op::NoOp, All, {});
  }
  for (Use U : Form.Readers) {
    Endpoint E = G.input(U);
    E.Node = NewNode.lookup(E.Node);
    G.setInput(U.User, U.Index, E);
  }
  return true;
}

} // namespace

bool nameTpuFetches(Graph &G, const TpuComputation &C, const TpuForm &Form,
                    DiagnosticEngine &Diags) {
  return Fetches(G, C, Form, Diags).run();
}

} // namespace graft
