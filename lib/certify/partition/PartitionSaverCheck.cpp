//===- lib/certify/partition/PartitionSaverCheck.cpp - entries of parts ---===//
//
// SPDX-License-Identifier: Apache-2.0
//
// Checks that a saver has one entry for each part of a partitioned variable. An
// entry has the key of the variable and the slice of the part.
//
//===----------------------------------------------------------------------===//

#include "lib/certify/partition/PartitionTerms.h"
#include "lib/graph/AttrWire.h"
#include "lib/ops/Ops.h"

#include "llvm/ADT/STLExtras.h"

using namespace llvm;

namespace graft {

/// Returns the elements of the constant string vector whose attribute `value`
/// is \p Value.
static std::optional<std::vector<StringRef>>
stringsOf(std::optional<StringRef> Value) {
  auto Tensor = Value ? bytesField(*Value, AttrTensor) : std::nullopt;
  auto Shape = Tensor ? bytesField(*Tensor, 2) : std::nullopt;
  if (!Shape)
    return std::nullopt;
  ShapeValue S = parseShape(*Shape);
  if (S.UnknownRank || S.Dims.size() != 1 || S.Dims[0] < 0 ||
      S.Dims[0] > int64_t(1) << 24)
    return std::nullopt;
  std::vector<StringRef> Strings;
  wire::Reader R(*Tensor);
  for (wire::Field F; R.next(F);)
    if (F.Number == 8)
      Strings.push_back(F.Bytes);
  auto Size = static_cast<size_t>(S.Dims[0]);
  if (Strings.size() > Size || (Strings.empty() && Size != 0))
    return std::nullopt;
  if (!Strings.empty())
    Strings.resize(Size, Strings.back());
  return Strings;
}

/// Returns the types in the attribute \p Value.
static SmallVector<unsigned, 8> typesOf(StringRef Value) {
  SmallVector<unsigned, 8> Types;
  wire::Reader R(bytesField(Value, AttrList).value_or(""));
  for (wire::Field F; R.next(F);) {
    if (F.Number != ListType)
      continue;
    if (F.WireType != wire::Type::Bytes) {
      Types.push_back(static_cast<unsigned>(F.Varint));
      continue;
    }
    // The list is packed: each type is less than 128 and takes one byte.
    for (char C : F.Bytes)
      Types.push_back(static_cast<uint8_t>(C));
  }
  return Types;
}

/// Returns true if the slice \p Text begins at \p Offset along \p Axis of the
/// slice \p Whole, and has \p Size there. An empty \p Whole means the whole
/// tensor, which has \p Shape.
static bool isSliceOf(StringRef Text, StringRef Whole, unsigned Axis,
                      int64_t Offset, int64_t Size, ArrayRef<int64_t> Shape) {
  auto S = SliceSpec::parse(Text);
  auto W = Whole.empty() ? std::nullopt : SliceSpec::parse(Whole);
  if (!S || (!W && !Whole.empty()) ||
      ArrayRef<int64_t>(S->Shape) !=
          (W ? ArrayRef<int64_t>(W->Shape) : Shape) ||
      (W && ArrayRef<int64_t>(W->Sizes) != Shape))
    return false;
  for (unsigned A = 0; A < Shape.size(); ++A) {
    int64_t From = W ? W->Offsets[A] : 0;
    if (S->Offsets[A] != From + (A == Axis ? Offset : 0) ||
        S->Sizes[A] != (A == Axis ? Size : Shape[A]))
      return false;
  }
  return true;
}

namespace {

struct Entries {
  std::vector<StringRef> Names, Slices;
};

} // namespace

static std::optional<Entries> entriesOf(const InputGraph &In, NodeId I) {
  auto Of = [&](unsigned K) -> std::optional<std::vector<StringRef>> {
    Endpoint E = In.inputs(I)[K];
    if (In.opNames()[In.op(E.Node)] != op::Const)
      return std::nullopt;
    return stringsOf(In.attr(E.Node, "value"));
  };
  auto Names = Of(1), Slices = Of(2);
  if (!Names || !Slices || Names->size() != Slices->size())
    return std::nullopt;
  return Entries{std::move(*Names), std::move(*Slices)};
}

static std::optional<Entries> entriesOf(const Graph &G, NodeId P) {
  auto Of = [&](unsigned K) -> std::optional<std::vector<StringRef>> {
    NodeId N = G.input(P, K).Node;
    return G.isOp(N, op::Const) ? stringsOf(G.attr(N, "value")) : std::nullopt;
  };
  auto Names = Of(1), Slices = Of(2);
  if (!Names || !Slices || Names->size() != Slices->size())
    return std::nullopt;
  return Entries{std::move(*Names), std::move(*Slices)};
}

bool checkSaver(PartitionTerms &T, NodeId I, NodeId P) {
  const InputGraph &In = T.In;
  const Graph &G = T.G;
  bool Saves = T.inputOp(I) == op::SaveV2;
  unsigned First = 3;
  auto Fail = [&](const Twine &Why) {
    T.error(P, Why);
    return false;
  };
  if (G.opName(P) != T.inputOp(I) || In.numData(I) < First ||
      G.node(P).NumData < First || T.waitsOf(P) != T.waitsOfInput(I))
    return Fail("differs from the saver of the input");
  const PartTerm &Prefix = T.term(G.input(P, 0));
  if (Prefix.Kind != PartTerm::Same || Prefix.E != In.inputs(I)[0])
    return Fail("its checkpoint differs from that of the input");
  auto Was = entriesOf(In, I), Now = entriesOf(G, P);
  if (!Was || !Now) {
    // Entries that are not constant must be the tensors of the input.
    bool Same =
        G.node(P).NumData == In.numData(I) && T.sameAttrs(In.attrBytes(I), P);
    for (unsigned K = 1; Same && K < In.numData(I); ++K) {
      const PartTerm &X = T.term(G.input(P, K));
      Same = (X.Kind == PartTerm::Same && X.E == T.resolve(In.inputs(I)[K])) ||
             (X.Kind == PartTerm::WholeRead &&
              X.E == T.firstAlias(In.inputs(I)[K]) && X.Waits == T.waitsOf(P));
    }
    if (!Same)
      return Fail("its entries are not proved to be those of the input");
    for (unsigned K = 0; !Saves && K < G.numOutputs(P).value_or(0); ++K) {
      PartTerm X;
      X.Kind = PartTerm::Same;
      X.E = {I, K};
      T.RestoredTerms[{P, K}] = X;
    }
    return true;
  }
  // Only savers may use a constant that has changed.
  for (unsigned K : {1U, 2U}) {
    NodeId N = G.input(P, K).Node, Its = T.InputOf[N];
    if (Its == NoNode || In.attr(Its, "value") == G.attr(N, "value"))
      continue;
    bool Others = G.anyUse(N, [&](Use U) {
      return U.Index >= G.node(U.User).NumData ||
             (!G.isOp(U.User, op::SaveV2) && !G.isOp(U.User, op::RestoreV2));
    });
    if (Others)
      return Fail("its entry list is shared with another op");
    T.SaverConsts[N] = true;
  }
  SmallVector<unsigned, 8> Types, OldTypes;
  if (auto List = G.attr(P, "dtypes"))
    Types = typesOf(*List);
  if (auto List = In.attr(I, "dtypes"))
    OldTypes = typesOf(*List);
  if (Types.size() != Now->Names.size() ||
      OldTypes.size() != Was->Names.size() ||
      (Saves && (G.node(P).NumData != First + Types.size() ||
                 In.numData(I) != First + OldTypes.size())))
    return Fail("has a different number of types than entries");
  size_t At = 0;
  for (size_t K = 0; K < Was->Names.size(); ++K) {
    auto Missing = [&] {
      return Fail("has no entries for '" + Was->Names[K] + "' of the input");
    };
    auto IsEntry = [&](size_t Entry) {
      return Entry < Now->Names.size() && Now->Names[Entry] == Was->Names[K] &&
             Types[Entry] == OldTypes[K];
    };
    if (!IsEntry(At))
      return Missing();
    Endpoint Want = Saves ? In.inputs(I)[First + K] : Endpoint{I, unsigned(K)};
    if (Now->Slices[At] == Was->Slices[K]) {
      const PartTerm X = Saves ? T.term(G.input(P, First + At)) : PartTerm();
      bool Good = !Saves ||
                  (X.Kind == PartTerm::Same && X.E == T.resolve(Want)) ||
                  (X.Kind == PartTerm::WholeRead && X.E == T.firstAlias(Want) &&
                   X.Waits == T.waitsOf(P));
      if (!Good)
        return Missing();
      if (!Saves) {
        PartTerm Same;
        Same.Kind = PartTerm::Same;
        Same.E = Want;
        T.RestoredTerms[{P, unsigned(At)}] = Same;
      }
      ++At;
      continue;
    }
    if (Saves) {
      // Skip Identities between a read and the saver.
      while (T.inputOp(Want.Node) == op::Identity &&
             In.inputs(Want.Node).size() == 1 && !T.cutOf(Want) &&
             !T.cutOf(In.inputs(Want.Node)[0]))
        Want = In.inputs(Want.Node)[0];
      // The saver takes the value of a read, or a reference.
      bool IsRead = !T.cutOf(Want) && In.numData(Want.Node) > 0;
      Endpoint From = IsRead ? In.inputs(Want.Node)[0] : Want;
      const PartedVariable *C = T.cutOf(From);
      if (!C ||
          (IsRead && T.inputOp(Want.Node) !=
                         (T.isHandle(*C) ? op::ReadVariableOp : op::Identity)))
        return Missing();
      for (unsigned Part = 0; Part < C->Parts.size(); ++Part, ++At) {
        if (!IsEntry(At) ||
            !isSliceOf(Now->Slices[At], Was->Slices[K], C->Axis,
                       C->Offsets[Part], C->Sizes[Part], C->Shape))
          return Missing();
        const PartTerm &X = T.term(G.input(P, First + At));
        bool Good = X.E == T.firstAlias(From) && X.Index == Part &&
                    (IsRead ? X.Kind == PartTerm::PartRead &&
                                  X.Waits == T.waitsOfInput(Want.Node)
                            : X.Kind == PartTerm::Handle);
        if (!Good)
          return Fail("its tensor " + Twine(At) + " is not part " +
                      Twine(Part) + " of '" + Was->Names[K] + "'");
      }
      continue;
    }
    // The slices must make up the restored tensor in order.
    auto Whole = SliceSpec::parse(Was->Slices[K]);
    auto Front = SliceSpec::parse(Now->Slices[At]);
    if (!Front || (!Whole && !Was->Slices[K].empty()))
      return Missing();
    ArrayRef<int64_t> Shape = Whole ? Whole->Sizes : Front->Shape;
    if (Front->Sizes.size() != Shape.size())
      return Missing();
    unsigned Axis = 0;
    while (Axis + 1 < Shape.size() && Front->Sizes[Axis] == Shape[Axis])
      ++Axis;
    for (int64_t Next = 0; Next < Shape[Axis]; ++At) {
      auto S = IsEntry(At) ? SliceSpec::parse(Now->Slices[At]) : std::nullopt;
      int64_t Size = S && S->Sizes.size() == Shape.size() ? S->Sizes[Axis] : 0;
      if (Size <= 0 ||
          !isSliceOf(Now->Slices[At], Was->Slices[K], Axis, Next, Size, Shape))
        return Missing();
      PartTerm X;
      X.Kind = PartTerm::Slice;
      X.E = Want;
      X.Axis = Axis;
      X.Offset = Next;
      X.Size = Size;
      X.Total = Shape[Axis];
      T.RestoredTerms[{P, unsigned(At)}] = X;
      Next += Size;
    }
  }
  return At == Now->Names.size() || Fail("has more entries than the input");
}

} // namespace graft
