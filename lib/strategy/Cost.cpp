//===- lib/strategy/Cost.cpp - the cost of a strategy -----------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "lib/strategy/Cost.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/FormatVariadic.h"

#include <algorithm>
#include <cmath>

using namespace llvm;

namespace graft {

namespace {

/// The bytes of one index, an int64.
constexpr double IndexBytes = 8;

double wireFactor(const Synchronizer &S, unsigned Type) {
  return S.Compressor != Synchronizer::None && Type == DT_FLOAT ? 0.5 : 1;
}

} // namespace

std::string bytesText(double Bytes) {
  constexpr StringLiteral Units[] = {"B", "kB", "MB", "GB", "TB"};
  size_t Unit = 0;
  for (; Bytes >= 1000 && Unit + 1 < std::size(Units); ++Unit)
    Bytes /= 1000;
  return Unit == 0 ? formatv("{0:f0} B", Bytes).str()
                   : formatv("{0:f2} {1}", Bytes, Units[Unit]).str();
}

double bytesOfRows(const VariableRow &Row, unsigned Replicas) {
  auto Whole = static_cast<double>(Row.Bytes);
  if (Row.RowsPerStep == 0 || Row.Shape.empty() || Row.Shape[0] == 0)
    return Whole;
  double OneRow = Whole / static_cast<double>(Row.Shape[0]);
  return std::ceil(static_cast<double>(Row.RowsPerStep) / Replicas) *
         (OneRow + IndexBytes);
}

CostModel::CostModel(const ResourceSpec &Spec, LinkSpeeds Speeds)
    : Spec(Spec), Speeds(Speeds), Replicas(Spec.Nodes.size()) {
  // Devices are listed node by node.
  size_t Node = 0, Left = 0;
  auto ForEach = [&](ArrayRef<std::string> Devices, auto SizeOf, auto F) {
    Node = 0;
    Left = SizeOf(Spec.Nodes[0]);
    for (const std::string &Device : Devices) {
      while (Left == 0)
        Left = SizeOf(Spec.Nodes[++Node]);
      --Left;
      Place &P = Places[Device];
      P.Node = Node;
      F(P);
    }
  };
  ForEach(
      Spec.hostDevices(), [](const ResourceNode &N) { return N.Cpus.size(); },
      [](Place &P) { P.IsHost = true; });
  ForEach(
      Spec.replicaDevices(),
      [](const ResourceNode &N) {
        return N.Gpus.empty() ? N.Cpus.size() : N.Gpus.size();
      },
      [&](Place &P) {
        P.IsReplica = true;
        ++Replicas[P.Node];
        ++Count;
      });
}

CostModel::Place CostModel::placeOf(StringRef Device) const {
  if (auto It = Places.find(Device); It != Places.end())
    return It->second;
  // An unknown device counts as the device of the first replica.
  return {0, true, Spec.Nodes[0].Gpus.empty()};
}

size_t CostModel::nodeOf(StringRef Device) const {
  return placeOf(Device).Node;
}

Traffic CostModel::none() const {
  Traffic T;
  T.Spread.resize(Spec.Nodes.size());
  T.Collect.resize(Spec.Nodes.size());
  T.Join.resize(Spec.Nodes.size());
  return T;
}

/// Adds an all-reduce: a reduce-scatter inside each machine, a ring over the
/// machines, and an all-gather inside each machine.
void CostModel::addRing(Traffic &T, double Bytes) const {
  auto Nodes = static_cast<double>(Spec.Nodes.size());
  double Between = 2 * (Nodes - 1) / Nodes * Bytes;
  for (auto [Node, Here] : zip_equal(T.Collect, Replicas)) {
    Node.Inside += 2.0 * (Here - 1) * Bytes + 2 * Between;
    Node.Out += Between;
    Node.In += Between;
  }
}

/// Adds an all-gather of rows, which pass each replica once.
void CostModel::addGather(Traffic &T, double Bytes) const {
  size_t Nodes = Replicas.size();
  for (size_t I = 0; I < Nodes; ++I) {
    unsigned Next = Replicas[(I + 1) % Nodes];
    double Out = Nodes == 1 ? 0 : (Count - Next) * Bytes;
    T.Collect[I].Out += Out;
    T.Collect[I].In += (Count - Replicas[I]) * Bytes;
    T.Collect[I].Inside += double(Replicas[I]) * (Count - 1) * Bytes + Out;
  }
}

/// Adds \p Copies transfers of \p Bytes from machine \p From to machine \p To;
/// \p Messages of them pass the network. The network reaches the memory of a
/// host directly, and a device over the link inside its machine.
static void send(std::vector<NodeTraffic> &Part, size_t From, size_t To,
                 unsigned Copies, unsigned Messages, double Bytes,
                 bool ToHost) {
  double Inside = Copies * Bytes, Network = Messages * Bytes;
  if (From == To) {
    Part[From].Inside += Inside;
    return;
  }
  Part[From].Out += Network;
  Part[From].Messages += Messages;
  Part[To].In += Network;
  Part[To].Messages += Messages;
  Part[ToHost ? From : To].Inside += Inside;
}

void CostModel::addServer(Traffic &T, const Synchronizer &S, double Down,
                          bool Same, double Up) const {
  Place At = placeOf(S.Destination);
  T.Shared = true;
  for (size_t I = 0; I < Replicas.size(); ++I) {
    // A replica on the destination needs no transfer.
    unsigned Others = Replicas[I] - (At.IsReplica && I == At.Node ? 1 : 0);
    // TensorFlow sends a tensor only once to each task.
    unsigned Once = Same ? 1 : Others;
    send(T.Spread, At.Node, I, Others, Once, Down, /*ToHost=*/false);
    send(T.Collect, I, At.Node, Others, Others, Up, /*ToHost=*/true);
    if (!At.IsHost && I != At.Node) {
      T.Spread[At.Node].Inside += Once * Down;
      T.Collect[At.Node].Inside += Others * Up;
    }
  }
}

void CostModel::addJoined(Traffic &T, double Bytes) const {
  if (Count < 2 || Bytes == 0)
    return;
  size_t To = nodeOf(Spec.replicaDevices().front());
  double Each = Bytes / Count;
  for (size_t I = 0; I < Replicas.size(); ++I) {
    unsigned Others = Replicas[I] - (I == To ? 1 : 0);
    send(T.Join, I, To, Others, Others, Each, /*ToHost=*/true);
    if (I != To)
      T.Join[To].Inside += Others * Each;
  }
}

void CostModel::add(Traffic &T, const VariableRow &Row,
                    const VariableStrategy &S) const {
  double Rows = Row.Sparse ? bytesOfRows(Row, Count) : 0;
  auto Whole = static_cast<double>(Row.Bytes);
  auto AddPart = [&](const Synchronizer &Sync, double Share) {
    if (Count < 2)
      return;
    if (Sync.Kind == Synchronizer::PS) {
      // A proxy fetches the whole variable after each update.
      bool Same = !Row.Sparse || Sync.Proxy;
      addServer(T, Sync, (Same ? Whole : Rows) * Share, Same,
                (Row.Sparse ? Rows : Whole) * Share);
      return;
    }
    if (Row.Sparse) {
      addGather(T, Rows * Share);
      // Lengths, indices and values are gathered sequentially.
      T.Hops += 3.0 * (Count - 1);
      return;
    }
    addRing(T, Whole * wireFactor(Sync, Row.Type) * Share);
    T.Groups.insert(
        {Sync.Group, Row.Type << 8 | Sync.Compressor << 4 | Sync.Spec});
  };
  auto Axis = find_if(S.Partitioner, [](unsigned Parts) { return Parts > 1; });
  if (Axis == S.Partitioner.end() || Row.Shape.empty())
    return AddPart(S.Sync, 1);
  int64_t Size = Row.Shape[Axis - S.Partitioner.begin()];
  for (const auto &[I, Length] : enumerate(partSizes(Size, *Axis)))
    AddPart(I < S.Parts.size() ? S.Parts[I] : S.Sync,
            static_cast<double>(Length) / static_cast<double>(Size));
}

double CostModel::networkSeconds(const Traffic &T, size_t Node) const {
  const NodeTraffic &S = T.Spread[Node], &C = T.Collect[Node];
  return (std::max(S.Out, S.In) + std::max(C.Out, C.In)) /
         (Spec.Nodes[Node].Bandwidth * 1e9 / 8);
}

Prediction CostModel::predict(const Traffic &T) const {
  Prediction P;
  P.Seconds = Speeds.Compute;
  double Slowest = -1;
  auto Busiest = [&](double Bytes, double Rate, size_t Node, StringRef Link) {
    if (Bytes / Rate <= Slowest)
      return;
    Slowest = Bytes / Rate;
    P.BusiestBytes = Bytes;
    P.BusiestLink = (Spec.Nodes[Node].Address + " " + Link).str();
  };
  double Longest[3] = {0, 0, 0};
  unsigned MostReplicas = 0;
  for (size_t I = 0; I < Replicas.size(); ++I) {
    double Rate = Spec.Nodes[I].Bandwidth * 1e9 / 8;
    const NodeTraffic *Parts[] = {&T.Spread[I], &T.Collect[I], &T.Join[I]};
    NodeTraffic All;
    for (auto [Part, Time] : zip_equal(Parts, Longest))
      Time = std::max({Time, Part->Out / Rate, Part->In / Rate,
                       Part->Inside / Speeds.Inside,
                       Part->Messages * Speeds.PerMessage});
    for (const NodeTraffic *Part : Parts) {
      All.Out += Part->Out;
      All.In += Part->In;
      All.Inside += Part->Inside;
      All.Messages += Part->Messages;
    }
    Busiest(All.Out, Rate, I, "out");
    Busiest(All.In, Rate, I, "in");
    Busiest(All.Inside, Speeds.Inside, I, "inside");
    P.NetworkBytes += All.Out;
    MostReplicas = std::max(MostReplicas, Replicas[I]);
    P.Nodes.push_back(All);
  }
  double RingHops =
      2.0 * (MostReplicas - 1) + 2.0 * (double(Replicas.size()) - 1);
  double Hops =
      T.Hops + RingHops * double(T.Groups.size()) + (T.Shared ? 2 : 0);
  bool Joins =
      any_of(T.Join, [](const NodeTraffic &N) { return N.Inside > 0; });
  P.Spread = Longest[0];
  P.Collect = Longest[1];
  P.Join = Longest[2];
  P.Latencies = (Hops + (Joins ? 1 : 0)) * Speeds.Latency;
  P.Seconds += P.Spread + P.Collect + P.Join + P.Latencies;
  return P;
}

Prediction CostModel::predict(ArrayRef<VariableRow> Variables,
                              const StrategyRecord &Record,
                              double Joined) const {
  StringMap<const VariableStrategy *> ByName;
  for (const VariableStrategy &S : Record.Variables)
    ByName[S.Variable] = &S;
  Traffic T = none();
  for (const VariableRow &Row : Variables)
    if (auto It = ByName.find(Row.Name); It != ByName.end())
      add(T, Row, *It->second);
  addJoined(T, Joined);
  return predict(T);
}

} // namespace graft
