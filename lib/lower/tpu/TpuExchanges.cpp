//===- lib/lower/tpu/TpuExchanges.cpp - reductions on a TPU -----*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
// CrossReplicaSum is the only exchange of a TPU. It sums tensors of half,
// bfloat16, float and int32 (tensorflow/core/ops/tpu_cross_replica_ops.cc).
// Other exchanges become sums that do not round: rows are added to zeros, and a
// 64-bit number is summed as two 32-bit numbers.
//
//===----------------------------------------------------------------------===//

#include "lib/graph/AttrRun.h"
#include "lib/lower/expand/ScaleFactor.h"
#include "lib/lower/tpu/TpuProgram.h"
#include "lib/ops/Ops.h"
#include "lib/program/Program.h"

#include <numeric>

using namespace llvm;

namespace graft {
namespace {

class Exchanges {
public:
  Exchanges(Graph &G, TpuStep &Step, unsigned Replicas, DiagnosticEngine &Diags)
      : G(G), Step(Step), Replicas(Replicas), Diags(Diags) {}

  bool lower(NodeId N);

private:
  Endpoint add(StringRef Suffix, StringRef Op, ArrayRef<Endpoint> Inputs,
               const AttrRun &Attrs = {});
  Endpoint integers(StringRef Suffix, ArrayRef<int64_t> Shape,
                    ArrayRef<int64_t> Values);
  Endpoint cast(Endpoint E, unsigned From, unsigned To);
  Endpoint sum(Endpoint E, unsigned Type);
  Endpoint stack(Endpoint E, unsigned Type);
  Endpoint replicaIndex();
  void logical(NodeId N, Endpoint X, bool And);
  void gather(NodeId N, Endpoint X, unsigned Type, StringRef Combine);
  void scale(NodeId N, const ScaleFactor &By);
  void become(NodeId N, Endpoint E);

  Graph &G;
  TpuStep &Step;
  unsigned Replicas;
  DiagnosticEngine &Diags;
  NodeId For = NoNode; ///< The exchange that is lowered.
  Endpoint Index;      ///< The replica's number, once it is needed.
};

Endpoint Exchanges::add(StringRef Suffix, StringRef Op,
                        ArrayRef<Endpoint> Inputs, const AttrRun &Attrs) {
  SmallString<128> Name(G.name(For));
  Name += Suffix;
  NodeId N = G.insertNode(Name, Op, Inputs, For, Attrs);
  Step.Members.resize(G.size());
  Step.HostCluster.resize(G.size(), -1);
  Step.Members[N] = true;
  return {N, 0};
}

Endpoint Exchanges::integers(StringRef Suffix, ArrayRef<int64_t> Shape,
                             ArrayRef<int64_t> Values) {
  return add(Suffix, op::Const, {},
             AttrRun()
                 .type("dtype", DT_INT32)
                 .raw("value", encodeIntTensor(DT_INT32, Shape, Values)));
}

Endpoint Exchanges::cast(Endpoint E, unsigned From, unsigned To) {
  return add(
      "/cast", op::Cast, E,
      AttrRun().type("SrcT", From).type("DstT", To).boolean("Truncate", false));
}

Endpoint Exchanges::sum(Endpoint E, unsigned Type) {
  SmallVector<int64_t, 8> All(Replicas);
  std::iota(All.begin(), All.end(), 0);
  Endpoint Groups = integers("/groups", {1, int64_t(Replicas)}, All);
  return add("/sum", op::CrossReplicaSum, {E, Groups},
             AttrRun().type("T", Type));
}

/// Returns the tensors of all replicas along a new first axis.
Endpoint Exchanges::stack(Endpoint E, unsigned Type) {
  // Adding zeros keeps the bits of a value, so a 64-bit number can be stacked
  // as a pair of 32-bit numbers.
  bool Pairs = Type == DT_INT64 || Type == DT_DOUBLE;
  bool Small = Type == DT_BOOL || Type == DT_UINT8 || Type == DT_INT8 ||
               Type == DT_INT16;
  unsigned Sum = Pairs || Small ? unsigned(DT_INT32) : Type;
  if (Pairs)
    E = add("/pairs", op::Bitcast, E,
            AttrRun().type("T", Type).type("type", Sum));
  else if (Small)
    E = cast(E, Type, Sum);
  SmallVector<Endpoint, 8> Copies(Replicas, E);
  Endpoint Rows =
      add("/rows", op::Pack, Copies,
          AttrRun().integer("N", Replicas).type("T", Sum).integer("axis", 0));
  Endpoint Zeros = add("/zeros", op::ZerosLike, Rows, AttrRun().type("T", Sum));
  SmallVector<int64_t, 8> All(Replicas);
  std::iota(All.begin(), All.end(), 0);
  Endpoint Numbers = integers("/numbers", {int64_t(Replicas)}, All);
  Endpoint Mine = add("/mine", op::Equal, {Numbers, replicaIndex()},
                      AttrRun().type("T", DT_INT32));
  Endpoint Own =
      add("/own", op::Select, {Mine, Rows, Zeros}, AttrRun().type("T", Sum));
  Endpoint Result = sum(Own, Sum);
  if (Pairs)
    return add("/bits", op::Bitcast, Result,
               AttrRun().type("T", Sum).type("type", Type));
  return Small ? cast(Result, Sum, Type) : Result;
}

/// Adds the number of the replica to the inputs of the computation, and returns
/// it as a vector of one element.
Endpoint Exchanges::replicaIndex() {
  if (Index.Node != NoNode)
    return Index;
  SmallVector<int64_t, 8> All(Replicas);
  std::iota(All.begin(), All.end(), 0);
  NodeId Numbers = G.insertNode(
      "graft/replicas", op::Const, {}, For,
      AttrRun()
          .type("dtype", DT_INT32)
          .raw("value", encodeIntTensor(DT_INT32, int64_t(Replicas), All)));
  NodeId Split =
      G.insertNode("graft/replica_index", ToReplicasOp, Endpoint{Numbers, 0},
                   For, AttrRun().type("T", DT_INT32).integer("axis", 0));
  G.node(Split).Count = Copies::PerReplica;
  Step.Members.resize(G.size());
  Step.HostCluster.resize(G.size(), -1);
  Index = {Split, 0};
  Step.Inputs.push_back(Index);
  return Index;
}

/// Turns \p N into an Identity of \p E, so that its users need no edit.
void Exchanges::become(NodeId N, Endpoint E) {
  unsigned Type = G.outputType(E);
  for (StringRef Key : {StringRef(CombineAttr), StringRef(PowerAttr),
                        StringRef("axis"), StringRef("_graft_assumed")})
    G.removeAttr(N, Key);
  G.setOp(N, op::Identity);
  G.setTypeAttr(N, "T", Type);
  G.setInputs(N, E);
}

void Exchanges::logical(NodeId N, Endpoint X, bool And) {
  Endpoint Sum = sum(cast(X, DT_BOOL, DT_INT32), DT_INT32);
  Endpoint Limit = integers("/limit", {}, And ? int64_t(Replicas) - 1 : 0);
  become(N,
         add("/any", op::Greater, {Sum, Limit}, AttrRun().type("T", DT_INT32)));
}

void Exchanges::gather(NodeId N, Endpoint X, unsigned Type, StringRef Combine) {
  int64_t Axis = G.intAttr(N, "axis").value_or(0);
  Endpoint All = stack(X, Type);
  if (Combine == combine::Min || Combine == combine::Max) {
    become(N, add("/all", Combine == combine::Min ? op::Min : op::Max,
                  {All, integers("/axis", {}, int64_t(0))},
                  AttrRun()
                      .type("T", Type)
                      .type("Tidx", DT_INT32)
                      .boolean("keep_dims", false)));
    return;
  }
  Endpoint Parts = add(
      "/parts", op::Unpack, All,
      AttrRun().integer("num", Replicas).type("T", Type).integer("axis", 0));
  if (Replicas == 1) {
    become(N, Parts);
    return;
  }
  SmallVector<Endpoint, 8> Inputs;
  for (unsigned I = 0; I < Replicas; ++I)
    Inputs.push_back({Parts.Node, I});
  Inputs.push_back(integers("/axis", {}, Axis));
  become(N, add("/joined", op::ConcatV2, Inputs,
                AttrRun()
                    .integer("N", Replicas)
                    .type("T", Type)
                    .type("Tidx", DT_INT32)));
}

/// Turns \p N into its operand times \p By.
void Exchanges::scale(NodeId N, const ScaleFactor &By) {
  Endpoint Number =
      add("/factor", op::Const, {},
          AttrRun().type("dtype", By.Type).raw("value", By.Tensor));
  Endpoint X = G.input(N, 0);
  for (StringRef Key : {PowerAttr, PowersAttr})
    G.removeAttr(N, Key);
  G.setOp(N, By.Op);
  SmallVector<Endpoint, 4> Inputs{X, Number};
  Inputs.append(G.controlInputs(N).begin(), G.controlInputs(N).end());
  G.setInputs(N, Inputs);
}

bool Exchanges::lower(NodeId N) {
  StringRef Op = G.opName(N);
  For = N;
  unsigned Type = G.typeAttr(N, "T").value_or(DT_INVALID);
  if (Op == ScaleOp) {
    scale(N, scaleFactor(G, N, Replicas));
    return true;
  }
  StringRef Combine =
      Op == GatherOp ? StringRef(combine::Concat)
                     : G.stringAttr(N, CombineAttr).value_or(combine::Pick);
  Endpoint X = G.input(N, 0);
  int64_t Power = G.intAttr(N, PowerAttr).value_or(0);
  if (Combine == combine::Pick) {
    become(N, X);
    return true;
  }
  if (Combine == combine::And || Combine == combine::Or) {
    logical(N, X, Combine == combine::And);
    return true;
  }
  if (G.boolAttr(N, "uneven").value_or(false)) {
    Diags.error(originName(G, X.Node),
                "has a different number of rows on each replica, but a TPU "
                "concatenates tensors of equal shape only");
    return false;
  }
  if (Combine != combine::Sum) {
    gather(N, X, Type, Combine);
    return true;
  }
  if (Type != DT_FLOAT && Type != DT_HALF && Type != DT_BFLOAT16 &&
      Type != DT_INT32) {
    Diags.error(originName(G, X.Node),
                "is summed over the replicas, but a TPU sums half, bfloat16, "
                "float and int32 only");
    return false;
  }
  Endpoint Sum = sum(X, Type);
  become(N, Sum);
  if (Power == 0)
    return true;
  // N keeps its name and its users, so N itself becomes the scaled sum.
  scale(N, scaleFactor(Type, Power, Replicas));
  return true;
}

/// Lowers an exchange outside of the computation to a merge on a host.
void lowerOutside(Graph &G, NodeId N, const std::string &Host) {
  unsigned Type = G.typeAttr(N, "T").value_or(DT_INVALID);
  bool Gather = G.isOp(N, GatherOp);
  AttrRun Merge;
  Merge.type("T", Type).string(
      CombineAttr, Gather
                       ? StringRef(combine::Concat)
                       : G.stringAttr(N, CombineAttr).value_or(combine::Sum));
  if (Gather)
    Merge.integer("axis", G.intAttr(N, "axis").value_or(0));
  SmallString<128> Name(G.name(N));
  size_t Size = Name.size();
  Name += "/all";
  Endpoint Source = G.input(N, 0);
  NodeId Result = G.insertNode(Name, FromReplicasOp, Source, Source.Node, Merge,
                               Inserted::Merge);
  G.setDevice(Result, Host);
  if (int64_t Power = G.intAttr(N, PowerAttr).value_or(0); Power != 0) {
    Name.truncate(Size);
    Name += "/scale";
    Result = G.insertNode(Name, ScaleOp, Endpoint{Result, 0}, Result,
                          AttrRun().type("T", Type).integer("power", Power),
                          Inserted::Scale);
    G.setDevice(Result, Host);
  }
  for (StringRef Key : {CombineAttr, PowerAttr, StringRef("axis"),
                        StringRef("uneven"), AssumedAttr})
    G.removeAttr(N, Key);
  G.setOp(N, op::Identity);
  G.setInputs(N, Endpoint{Result, 0});
}

} // namespace

bool lowerTpuExchanges(Graph &G, TpuStep &Step, const Mesh &Devices,
                       DiagnosticEngine &Diags) {
  Exchanges All(G, Step, Devices.replicas(), Diags);
  for (NodeId N = 0, End = G.size(); N < End; ++N) {
    if (!G.isLive(N))
      continue;
    StringRef Op = G.opName(N);
    if (!Step.isMember(N)) {
      if (Op == ReduceOp || Op == GatherOp)
        lowerOutside(G, N, hostDevice(Devices.Devices[0]));
      continue;
    }
    if ((Op == ReduceOp || Op == GatherOp || Op == ScaleOp ||
         Op == FromReplicasOp) &&
        !All.lower(N))
      return false;
  }
  return true;
}

} // namespace graft
