//===- lib/strategy/Builders.cpp - strategies by name -----------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
// AutoDist's strategy builders, with these differences: a variable whose number
// of rows is a prime does not get one part for each row, a single server gets
// variables whole, and random choices follow from a seed, the same on every
// platform.
//
//===----------------------------------------------------------------------===//

#include "lib/strategy/Builders.h"

#include "lib/strategy/Plan.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FormatVariadic.h"

#include <algorithm>
#include <set>

using namespace llvm;

namespace graft {
namespace {

/// Sebastiano Vigna's splitmix64.
class Generator {
public:
  explicit Generator(uint64_t Seed) : State(Seed) {}

  /// Returns a number below \p Bound.
  size_t below(size_t Bound) {
    State += 0x9e3779b97f4a7c15;
    uint64_t Z = State;
    Z = (Z ^ (Z >> 30)) * 0xbf58476d1ce4e5b9;
    Z = (Z ^ (Z >> 27)) * 0x94d049bb133111eb;
    return (Z ^ (Z >> 31)) % Bound;
  }

private:
  uint64_t State;
};

/// The servers and the bytes on each so far.
class Loads {
public:
  explicit Loads(std::vector<std::string> Names)
      : Servers(std::move(Names)), Bytes(Servers.size()) {
    for (size_t I = 0; I < Servers.size(); ++I)
      ByBytes.emplace(0, I);
  }

  size_t size() const { return Servers.size(); }

  /// Returns at most \p Count servers, those with the fewest bytes first, and
  /// servers with equal bytes in their order.
  std::vector<size_t> emptiest(size_t Count) const {
    std::vector<size_t> Order;
    for (auto It = ByBytes.begin(); It != ByBytes.end() && Order.size() < Count;
         ++It)
      Order.push_back(It->second);
    return Order;
  }

  /// Puts \p Sizes on the servers \p On in turn. Returns the server of each.
  std::vector<std::string> add(ArrayRef<size_t> On, ArrayRef<uint64_t> Sizes) {
    std::vector<std::string> Where;
    Where.reserve(Sizes.size());
    for (auto [I, Size] : enumerate(Sizes)) {
      size_t Server = On[I % On.size()];
      ByBytes.erase({Bytes[Server], Server});
      Bytes[Server] += Size;
      ByBytes.emplace(Bytes[Server], Server);
      Where.push_back(Servers[Server]);
    }
    return Where;
  }

private:
  std::vector<std::string> Servers;
  std::vector<uint64_t> Bytes;
  std::set<std::pair<uint64_t, size_t>> ByBytes;
};

enum class Shards : uint8_t { Even, Uneven };

/// The state that all builders share.
class Build {
public:
  Build(const ResourceSpec &Spec, const BuilderOptions &O)
      : O(O), Servers(O.Servers.empty() ? Spec.hostDevices() : O.Servers),
        Random(O.Seed) {}

  /// Returns true if there are machines that only serve variables.
  bool hasJob() const { return !O.Servers.empty(); }

  /// Puts the variable on the first server or, if \p Greedy, the least full
  /// one.
  void onServer(const VariableRow &Row, bool Greedy, VariableStrategy &V) {
    std::vector<size_t> On{0};
    if (Greedy)
      On = Servers.emptiest(1);
    V.Sync = server(Servers.add(On, Row.Bytes).front());
    V.Why = Greedy && Servers.size() > 1
                ? formatv("the one of {0} servers with the fewest bytes",
                          Servers.size())
                      .str()
                : "the first server";
  }

  void allReduced(const VariableRow &Row, VariableStrategy &V) {
    V.Sync = allReduce(Row);
    V.Why = formatv("group {0}", V.Sync.Group);
  }

  /// Partitions the variable along \p Axis. Returns false if it stays whole.
  bool cut(const VariableRow &Row, unsigned Axis, Shards How,
           VariableStrategy &V) {
    unsigned Parts = numShards(Row, Axis, How);
    if (Parts < 2)
      return false;
    V.Partitioner.assign(Row.Shape.size(), 1);
    V.Partitioner[Axis] = Parts;
    return true;
  }

  /// Puts the parts on servers in turn, on servers with the fewest bytes first.
  void partsOnServers(const VariableRow &Row, unsigned Axis,
                      VariableStrategy &V) {
    int64_t Size = Row.Shape[Axis];
    std::vector<uint64_t> Bytes;
    for (int64_t Rows : partSizes(Size, V.Partitioner[Axis]))
      Bytes.push_back(Row.Bytes / Size * Rows);
    for (const std::string &Where :
         Servers.add(Servers.emptiest(Bytes.size()), Bytes))
      V.Parts.push_back(server(Where));
    V.Sync = V.Parts.front();
    V.Why = "on the servers with the fewest bytes";
  }

  void partsAllReduced(const VariableRow &Row, unsigned Axis,
                       VariableStrategy &V) {
    for (unsigned I = 0; I < V.Partitioner[Axis]; ++I)
      V.Parts.push_back(allReduce(Row));
    V.Sync = V.Parts.front();
    V.Why = formatv("groups {0} to {1}", V.Parts.front().Group,
                    V.Parts.back().Group);
  }

  /// Returns a random axis with a size above 1. A sparse variable has its rows
  /// along axis 0, so axis 0 is returned for it.
  unsigned randomAxis(const VariableRow &Row) {
    SmallVector<unsigned, 4> Axes;
    for (const auto &[Axis, Size] : enumerate(Row.Shape))
      if (Size > 1)
        Axes.push_back(Axis);
    return Row.Sparse || Axes.empty() ? 0 : Axes[Random.below(Axes.size())];
  }

  /// Returns true if there are several servers.
  bool hasServers() {
    if (Servers.size() > 1)
      return true;
    Whole = "there is only one server";
    return false;
  }

  void skipGroup() { ++Counted; }
  /// Returns the reason why the last variable is whole, for the remark.
  std::string takeWhole() { return std::exchange(Whole, ""); }

private:
  Synchronizer server(const std::string &Where) const {
    Synchronizer S;
    S.Kind = Synchronizer::PS;
    S.Destination = Where;
    S.Proxy = O.LocalReplication;
    return S;
  }

  Synchronizer allReduce(const VariableRow &Row) {
    Synchronizer S;
    S.Spec = O.Spec;
    // Sparse gradients are gathered, not reduced.
    S.Compressor = Row.Sparse ? Synchronizer::None : O.Compressor;
    S.Group = static_cast<int>(Counted++ / O.GroupSize);
    return S;
  }

  unsigned numShards(const VariableRow &Row, unsigned Axis, Shards How);

  const BuilderOptions &O;
  Loads Servers;
  Generator Random;
  uint64_t Counted = 0; ///< Members of groups so far.
  std::string Whole;
};

/// Returns AutoDist's number of parts: the least number from 2 on that divides
/// the size or, for uneven parts, does not divide it.
unsigned Build::numShards(const VariableRow &Row, unsigned Axis, Shards How) {
  if (Row.Shape.empty() || Row.Bytes == 0 || Row.Shape[Axis] < 2) {
    Whole = Row.Bytes == 0 && Row.Shape.empty() ? "its shape is not known"
                                                : "it has one row";
    return 1;
  }
  auto Size = static_cast<uint64_t>(Row.Shape[Axis]);
  uint64_t Least = O.MinShardBytes;
  uint64_t Most =
      std::min<uint64_t>({Size, O.MaxShards, Row.Bytes / Least, MaxParts});
  if (Most < 2) {
    Whole = O.MaxShards == 1
                ? std::string("at most one part is allowed")
                : formatv("each part must have at least {0} bytes", Least);
    return 1;
  }
  for (uint64_t N = 2; N <= Most; ++N)
    if ((Size % N == 0) == (How == Shards::Even))
      return N;
  // No N fits: for Even, no N up to Most divides the size; for Uneven, each
  // does.
  return 2;
}

/// A strategy and its name.
struct Builder {
  StrategyTraits Traits;
  /// Sets the strategy of one variable. Null: buildAuto sets all together.
  void (*Make)(Build &, const VariableRow &, VariableStrategy &);
};

void ps(Build &B, const VariableRow &Row, VariableStrategy &V) {
  B.onServer(Row, /*Greedy=*/B.hasJob(), V);
}

void psLoadBalancing(Build &B, const VariableRow &Row, VariableStrategy &V) {
  B.onServer(Row, /*Greedy=*/true, V);
}

void partsOnServers(Build &B, const VariableRow &Row, Shards How,
                    VariableStrategy &V) {
  if (B.hasServers() && B.cut(Row, /*Axis=*/0, How, V))
    B.partsOnServers(Row, /*Axis=*/0, V);
  else
    psLoadBalancing(B, Row, V);
}

void partitionedPS(Build &B, const VariableRow &Row, VariableStrategy &V) {
  partsOnServers(B, Row, Shards::Even, V);
}

void unevenPartitionedPS(Build &B, const VariableRow &Row,
                         VariableStrategy &V) {
  partsOnServers(B, Row, Shards::Uneven, V);
}

void allReduce(Build &B, const VariableRow &Row, VariableStrategy &V) {
  B.allReduced(Row, V);
}

void partsAllReduced(Build &B, const VariableRow &Row, unsigned Axis,
                     VariableStrategy &V) {
  if (B.cut(Row, Axis, Shards::Even, V))
    B.partsAllReduced(Row, Axis, V);
  else
    B.allReduced(Row, V);
}

void partitionedAllReduce(Build &B, const VariableRow &Row,
                          VariableStrategy &V) {
  partsAllReduced(B, Row, /*Axis=*/0, V);
}

void randomAxisPartitionAllReduce(Build &B, const VariableRow &Row,
                                  VariableStrategy &V) {
  partsAllReduced(B, Row, B.randomAxis(Row), V);
}

/// Reduces dense gradients by all-reduce and sends rows to the server of the
/// variable. A proxy would fetch the whole variable after each update, so it is
/// made on request only.
void parallax(Build &B, const VariableRow &Row, VariableStrategy &V) {
  if (!Row.Sparse)
    return B.allReduced(Row, V);
  // Even so, the variable counts as a member of an all-reduce group.
  B.skipGroup();
  B.onServer(Row, /*Greedy=*/true, V);
  V.Why = "its gradient is sparse; " + V.Why;
}

constexpr Builder Builders[] = {
    {{"ps", /*Cuts=*/false, Policy::Shared}, ps},
    {{"ps-load-balancing", false}, psLoadBalancing},
    {{"partitioned-ps", true}, partitionedPS},
    {{"uneven-partitioned-ps", true}, unevenPartitionedPS},
    {{"all-reduce", false, Policy::Mirrored}, allReduce},
    {{"partitioned-all-reduce", true}, partitionedAllReduce},
    {{"random-axis-partition-all-reduce", true}, randomAxisPartitionAllReduce},
    {{"parallax", false}, parallax},
    {{"auto", true}, nullptr},
};

const Builder *find(StringRef Name) {
  const auto *Found = find_if(
      Builders, [&](const Builder &B) { return B.Traits.Name == Name; });
  return Found == std::end(Builders) ? nullptr : Found;
}

} // namespace

std::vector<std::string> builderNames() {
  std::vector<std::string> Names;
  for (const Builder &B : Builders)
    Names.push_back(B.Traits.Name.str());
  return Names;
}

const StrategyTraits *findBuilder(StringRef Name) {
  const Builder *Found = find(Name);
  return Found ? &Found->Traits : nullptr;
}

StrategyRecord buildStrategy(StringRef Name, ArrayRef<VariableRow> Variables,
                             const ResourceSpec &Spec,
                             const BuilderOptions &Options) {
  const Builder *Found = find(Name);
  if (!Found->Make)
    return buildAuto(Variables, Spec, Options);
  StrategyRecord R;
  R.Id = Name.str();
  R.Replicas = Spec.replicaDevices();
  Build B(Spec, Options);
  for (const VariableRow &Row : Variables) {
    VariableStrategy &V = R.Variables.emplace_back();
    V.Variable = Row.Name;
    Found->Make(B, Row, V);
    if (std::string Whole = B.takeWhole(); !Whole.empty())
      V.Why += "; not partitioned, since " + Whole;
  }
  return R;
}

} // namespace graft
