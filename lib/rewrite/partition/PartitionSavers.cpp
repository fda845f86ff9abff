//===- lib/rewrite/partition/PartitionSavers.cpp - checkpoints of parts ---===//
//
// SPDX-License-Identifier: Apache-2.0
//
// An entry of SaveV2 or RestoreV2 for a partitioned variable becomes one entry
// for each part. Each has the key of the variable and the slice of the part. So
// checkpoints have the same contents as for the whole variable:
//
//     SaveV2(.., ["w"], [""], w)  →  SaveV2(.., ["w", "w"],
//                                        ["10 4 0,5:0,4", "10 4 5,5:0,4"],
//                                        w/part_0, w/part_1)
//
// An entry for a slice of a larger variable is partitioned further. Savers of
// other forms read and write the whole value, like all other users.
//
//===----------------------------------------------------------------------===//

#include "lib/graph/AttrWire.h"
#include "lib/ops/Ops.h"
#include "lib/rewrite/partition/PartitionEdit.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"

using namespace llvm;

namespace graft {

namespace {

/// Inputs of SaveV2 in front of the tensors.
constexpr unsigned SaveArgs = 3;

/// Returns the strings of the constant vector \p N, or nullopt if \p N is
/// another node or has an unusual encoding.
std::optional<std::vector<std::string>> stringVector(const Graph &G, NodeId N) {
  if (!G.isOp(N, op::Const) || G.typeAttr(N, "dtype") != unsigned(DT_STRING))
    return std::nullopt;
  auto Value = G.attr(N, "value");
  auto Tensor = Value ? bytesField(*Value, AttrTensor) : std::nullopt;
  auto Shape = Tensor ? bytesField(*Tensor, TensorShape) : std::nullopt;
  if (!Shape)
    return std::nullopt;
  ShapeValue S = parseShape(*Shape);
  if (S.UnknownRank || S.Dims.size() != 1 || S.Dims[0] < 0)
    return std::nullopt;
  std::vector<std::string> Strings;
  wire::Reader R(*Tensor);
  for (wire::Field F; R.next(F);)
    if (F.Number == TensorString)
      Strings.push_back(F.Bytes.str());
  auto Size = static_cast<size_t>(S.Dims[0]);
  if (Strings.empty() || Strings.size() > Size)
    return std::nullopt;
  // The last string is repeated for all elements that follow.
  Strings.resize(Size, Strings.back());
  return Strings;
}

std::string encodeStringVector(ArrayRef<std::string> Strings) {
  std::string Tensor, Value;
  ShapeValue Shape;
  Shape.Dims.push_back(static_cast<int64_t>(Strings.size()));
  wire::appendInt(Tensor, TensorType, DT_STRING);
  wire::appendBytes(Tensor, TensorShape, encodeShape(Shape));
  for (const std::string &S : Strings)
    wire::appendBytes(Tensor, TensorString, S);
  wire::appendBytes(Value, AttrTensor, Tensor);
  return Value;
}

/// A slice in a checkpoint: the shape of the whole variable, and one part.
struct Slice {
  SmallVector<int64_t, 4> Shape, Offsets, Sizes;
};

/// Parses \p Text as a slice. An empty text means the whole of \p Of. Returns
/// nullopt if the slice does not have the shape of \p Of.
std::optional<Slice> parseSlice(StringRef Text, const PartitionedVariable &Of) {
  Slice S;
  if (Text.empty()) {
    S.Shape = S.Sizes = Of.Shape;
    S.Offsets.assign(Of.rank(), 0);
    return S;
  }
  SmallVector<StringRef, 8> Words, Axes;
  Text.split(Words, ' ');
  Words.pop_back_val().split(Axes, ':');
  if (Words.size() != Of.rank() || Axes.size() != Of.rank())
    return std::nullopt;
  for (auto [Word, Axis, Own] : zip_equal(Words, Axes, Of.Shape)) {
    int64_t Whole, Offset = 0, Size;
    if (Word.getAsInteger(10, Whole))
      return std::nullopt;
    Size = Whole;
    auto [Begin, Length] = Axis.split(',');
    if (Axis != "-" &&
        (Begin.getAsInteger(10, Offset) || Length.getAsInteger(10, Size)))
      return std::nullopt;
    if (Size != Own || Offset < 0 || Offset + Size > Whole)
      return std::nullopt;
    S.Shape.push_back(Whole);
    S.Offsets.push_back(Offset);
    S.Sizes.push_back(Size);
  }
  return S;
}

std::string printSlice(Slice S, const PartitionedVariable &Of, unsigned Part) {
  S.Offsets[Of.Cut.Axis] += Of.Offsets[Part];
  S.Sizes[Of.Cut.Axis] = Of.Cut.Sizes[Part];
  std::string Text;
  for (int64_t Size : S.Shape)
    Text += itostr(Size) + " ";
  for (auto [I, Offset, Size] : enumerate(S.Offsets, S.Sizes))
    Text += (I == 0 ? "" : ":") + itostr(Offset) + "," + itostr(Size);
  return Text;
}

} // namespace

PartitionEditor::SaverEntries *PartitionEditor::entriesOf(NodeId N) {
  auto [It, New] = Entries.try_emplace(N);
  if (New) {
    auto Names = stringVector(G, G.input(N, 1).Node);
    auto Slices = stringVector(G, G.input(N, 2).Node);
    if (Names && Slices && Names->size() == Slices->size())
      It->second = std::make_unique<SaverEntries>(
          SaverEntries{std::move(*Names), std::move(*Slices)});
  }
  return It->second.get();
}

/// Returns true if the slice of entry \p Index of \p N can be partitioned like
/// \p Of.
bool PartitionEditor::canExpand(NodeId N, unsigned Index,
                                const PartitionedVariable &Of) {
  SaverEntries *Its = entriesOf(N);
  return Its && Index < Its->Slices.size() &&
         parseSlice(Its->Slices[Index], Of);
}

/// Records the entries of savers whose value is \p Value. Returns true if \p
/// Value has no other users.
bool PartitionEditor::findSavedFrom(Endpoint Value, Endpoint From,
                                    const PartitionedVariable &Of) {
  bool All = true;
  for (Use U : G.uses(Value.Node)) {
    if (!G.isData(U))
      continue;
    unsigned Index = U.Index - SaveArgs;
    if (G.isOp(U.User, op::SaveV2) && U.Index >= SaveArgs &&
        G.input(U) == Value && canExpand(U.User, Index, Of))
      Saved[U.User].push_back({Index, &Of, From});
    else
      All = false;
  }
  return All;
}

void PartitionEditor::findSaved(const PartitionedVariable &Of) {
  SmallVector<std::pair<Endpoint, PartitionedUse>, 8> From;
  Vars.forEachUse(G, Of.Var, [&](Use U) {
    PartitionedUse Kind = classifyUse(G, Vars, U);
    if (Kind == PartitionedUse::Read)
      From.push_back({{U.User, 0}, Kind});
    else if (Kind == PartitionedUse::Value && G.isOp(U.User, op::SaveV2))
      From.push_back({G.input(U), Kind});
  });
  llvm::sort(From, [](const auto &A, const auto &B) {
    return std::pair(A.first.Node, A.first.Port) <
           std::pair(B.first.Node, B.first.Port);
  });
  From.erase(std::unique(From.begin(), From.end()), From.end());
  for (auto [Value, Kind] : From) {
    findSavedFrom(Value, Value, Of);
    if (Kind != PartitionedUse::Read)
      continue;
    // Look through a device copy in front of the saver.
    for (Use U : G.uses(Value.Node))
      if (U.Index == 0 && G.isOp(U.User, op::Identity) &&
          G.node(U.User).NumInputs == 1 && G.hasUses(U.User) &&
          findSavedFrom({U.User, 0}, Value, Of))
        PassedOn.insert(U.User);
  }
}

/// Records the outputs of RestoreV2 that only an assignment of \p Of reads.
void PartitionEditor::findRestored(const PartitionedVariable &Of) {
  SmallVector<NodeId, 4> Assigns;
  Vars.forEachUse(G, Of.Var, [&](Use U) {
    if (U.Index == 0 && Vars.update(G, U.User).Kind == UpdateKind::Assign)
      Assigns.push_back(U.User);
  });
  for (NodeId Assign : Assigns) {
    auto IsOnlyUse = [&](Endpoint E, NodeId By) {
      return !G.anyUse(E.Node, [&](Use U) {
        return U.User != By && (!G.isData(U) || G.input(U) == E);
      });
    };
    SmallVector<NodeId, 2> Places;
    NodeId By = Assign;
    Endpoint E = G.input(Assign, 1);
    while (G.isOp(E.Node, op::Identity) && G.node(E.Node).NumInputs == 1 &&
           IsOnlyUse(E, By)) {
      Places.push_back(E.Node);
      By = E.Node;
      E = G.input(E.Node, 0);
    }
    if (!G.isOp(E.Node, op::RestoreV2) || !canExpand(E.Node, E.Port, Of))
      continue;
    auto &Uses = RestoreUses[E.Node];
    if (Uses.empty())
      for (Use U : G.uses(E.Node))
        if (G.isData(U))
          ++Uses[G.input(U).Port];
    if (Uses[E.Port] != 1)
      continue;
    Restored[E.Node].push_back({E.Port, &Of, Assign});
    append_range(Leftover, Places);
  }
}

/// Replaces each entry of the saver or restorer \p N that is in \p Of by one
/// entry for each part of its variable.
void PartitionEditor::expandEntries(NodeId N, const EntryMap &Of) {
  SaverEntries &Its = *entriesOf(N);
  std::vector<std::string> Names, Slices;
  std::string Types;
  SmallVector<unsigned, 4> OldTypes = G.typeListAttr(N, "dtypes");
  for (unsigned I = 0; I < Its.Names.size(); ++I) {
    const PartitionedVariable *Cut = Of.lookup(I);
    auto Whole = Cut ? parseSlice(Its.Slices[I], *Cut) : std::nullopt;
    for (unsigned P = 0; P < (Cut ? Cut->parts() : 1); ++P) {
      Names.push_back(Its.Names[I]);
      Slices.push_back(Cut ? printSlice(*Whole, *Cut, P) : Its.Slices[I]);
      Types += static_cast<char>(OldTypes[I]);
    }
  }
  G.setAttr(N, "dtypes", encodeTypeListAttr(Types));
  G.removeAttr(N, "_output_shapes");
  for (auto [Index, Strings] :
       {std::pair(1U, &Names), std::pair(2U, &Slices)}) {
    NodeId Const = G.input(N, Index).Node;
    std::string Value = encodeStringVector(*Strings);
    if (G.anyUse(Const, [&](Use U) { return U.User != N; })) {
      AttrRun Attrs;
      Attrs.type("dtype", DT_STRING).raw("value", Value);
      G.setInput(N, Index,
                 {add(N, Index == 1 ? "tensor_names" : "shape_and_slices",
                      op::Const, {}, Attrs),
                  0});
      continue;
    }
    G.setAttr(Const, "value", Value);
    G.removeAttr(Const, "_output_shapes");
  }
}

void PartitionEditor::rewriteRestores() {
  for (auto &[N, List] : Restored) {
    EntryMap Of;
    for (const RestoredEntry &E : List)
      Of[E.Index] = E.Of;
    SmallVector<uint32_t, 16> Ports;
    uint32_t Next = 0;
    for (unsigned I = 0; I < entriesOf(N)->Names.size(); ++I) {
      Ports.push_back(Next);
      const PartitionedVariable *Cut = Of.lookup(I);
      Next += Cut ? Cut->parts() : 1;
    }
    expandEntries(N, Of);
    for (Use U : G.uses(N))
      if (G.isData(U))
        G.setInput(U.User, U.Index, {N, Ports[G.input(U).Port]});
    for (const RestoredEntry &E : List)
      for (unsigned P = 0; P < E.Of->parts(); ++P)
        PartValues[E.Assign].push_back({N, Ports[E.Index] + P});
  }
}

void PartitionEditor::rewriteSaves() {
  for (auto &[N, List] : Saved) {
    EntryMap Of;
    SmallDenseMap<unsigned, Endpoint> From;
    for (const SavedEntry &E : List) {
      Of[E.Index] = E.Of;
      From[E.Index] = E.From;
    }
    SmallVector<Endpoint, 16> Inputs;
    for (auto [I, E] : enumerate(G.dataInputs(N))) {
      unsigned Index = static_cast<unsigned>(I) - SaveArgs;
      const PartitionedVariable *Cut =
          I < SaveArgs ? nullptr : Of.lookup(Index);
      if (!Cut) {
        Inputs.push_back(E);
        continue;
      }
      Endpoint Source = From[Index];
      auto Reads = PartReads.find(Source.Node);
      for (unsigned P = 0; P < Cut->parts(); ++P)
        Inputs.push_back(Reads == PartReads.end()
                             ? partOf(Source, P)
                             : Endpoint{Reads->second[P], 0});
    }
    append_range(Inputs, G.controlInputs(N));
    G.setInputs(N, Inputs);
    expandEntries(N, Of);
  }
}

} // namespace graft
