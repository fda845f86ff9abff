//===- lib/strategy/Record.cpp - a strategy, variable by variable ---------===//
//
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "lib/strategy/Record.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"

using namespace llvm;

namespace graft {

namespace {

constexpr StringLiteral Specs[] = {"auto", "nccl", "ring"};
constexpr StringLiteral Compressors[] = {"", "fp16", "fp16-ef", "bf16",
                                         "bf16-ef"};

/// Finds the index of \p Name among \p Names. Returns false if there is none.
template <typename Enum, size_t Size>
bool lookUp(StringRef Name, const StringLiteral (&Names)[Size], Enum &Result) {
  const auto *It = find(Names, Name);
  if (It == std::end(Names))
    return false;
  Result = static_cast<Enum>(It - std::begin(Names));
  return true;
}

bool takeWord(StringRef Word, Synchronizer &S) {
  auto [Key, Value] = Word.split('=');
  if (S.Kind == Synchronizer::AllReduce)
    return Key == "spec" ? lookUp(Value, Specs, S.Spec)
           : Key == "compressor"
               ? lookUp(Value, Compressors, S.Compressor)
               : Key == "group" && !Value.getAsInteger(10, S.Group);
  if (Key == "destination")
    S.Destination = Value.str();
  else if (Word == "proxy")
    S.Proxy = true;
  else if (Word == "async")
    S.Sync = false;
  else
    return Key == "staleness" && !Value.getAsInteger(10, S.Staleness);
  return true;
}

} // namespace

StringRef compressorName(Synchronizer::CompressorType Compressor) {
  return Compressors[Compressor];
}

unsigned VariableStrategy::numParts() const {
  unsigned Count = 1;
  for (unsigned N : Partitioner)
    Count *= N;
  return Count;
}

std::vector<int64_t> partSizes(int64_t Size, unsigned Parts) {
  std::vector<int64_t> Sizes(Parts, Size / Parts);
  for (int64_t I = 0; I < Size % Parts; ++I)
    ++Sizes[I];
  return Sizes;
}

std::string printSynchronizer(const Synchronizer &S) {
  std::string Text = S.Kind == Synchronizer::PS ? "ps" : "all-reduce";
  auto Add = [&](bool If, const Twine &Word) {
    if (If)
      Text += ("," + Word).str();
  };
  if (S.Kind == Synchronizer::PS) {
    Add(!S.Destination.empty(), "destination=" + S.Destination);
    Add(S.Proxy, "proxy");
    Add(!S.Sync, "async");
    Add(S.Staleness != 0, "staleness=" + Twine(S.Staleness));
    return Text;
  }
  Add(S.Spec != Synchronizer::Auto, "spec=" + Specs[S.Spec]);
  Add(S.Compressor != Synchronizer::None,
      "compressor=" + compressorName(S.Compressor));
  Add(S.Group != 0, "group=" + Twine(S.Group));
  return Text;
}

std::optional<Synchronizer> parseSynchronizer(StringRef Text) {
  SmallVector<StringRef, 4> Words;
  Text.split(Words, ',');
  Synchronizer S;
  if (Words[0] == "ps")
    S.Kind = Synchronizer::PS;
  else if (Words[0] != "all-reduce")
    return std::nullopt;
  for (StringRef Word : drop_begin(Words))
    if (!takeWord(Word, S))
      return std::nullopt;
  return S;
}

std::string printPartition(const Partition &P) {
  return (Twine(P.Axis) + ":" +
          join(map_range(P.Sizes, [](int64_t Size) { return itostr(Size); }),
               ","))
      .str();
}

std::optional<Partition> parsePartition(StringRef Text) {
  auto [Axis, Sizes] = Text.split(':');
  Partition P;
  if (Axis.getAsInteger(10, P.Axis))
    return std::nullopt;
  SmallVector<StringRef, 8> Words;
  Sizes.split(Words, ',');
  for (StringRef Word : Words)
    if (Word.getAsInteger(10, P.Sizes.emplace_back()) || P.Sizes.back() <= 0)
      return std::nullopt;
  return P;
}

std::optional<Synchronizer> synchronizerOf(const Graph &G, NodeId Var) {
  auto Text = G.stringAttr(Var, SynchronizerAttr);
  return Text ? parseSynchronizer(*Text) : std::nullopt;
}

std::optional<Partition> partitionOf(const Graph &G, NodeId Var) {
  auto Text = G.stringAttr(Var, PartitionAttr);
  return Text ? parsePartition(*Text) : std::nullopt;
}

} // namespace graft
