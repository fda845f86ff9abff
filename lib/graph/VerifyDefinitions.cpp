//===- lib/graph/VerifyDefinitions.cpp - nodes as their ops say -*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
// Checks that TensorFlow makes when it imports a graph: no attribute of a node
// is missing, each attribute has the kind that the op definition demands, and
// the inputs have the types that follow from the attributes. One walk over the
// attributes finds the types of inputs and outputs of each node. Nodes with the
// same types share them. A walk over the edges then compares the types.
//===----------------------------------------------------------------------===//

#include "lib/graph/Verifier.h"

#include "lib/graph/AttrCheck.h"
#include "lib/graph/FileWalk.h"
#include "lib/graph/InputGraph.h"
#include "lib/ops/Ops.h"
#include "lib/support/Bytes.h"

#include "tensorflow/core/framework/node_def.pb.h"
#include "tensorflow/core/framework/versions.pb.h"

#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FormatVariadic.h"

#include <algorithm>
#include <array>

using namespace llvm;

namespace graft {
namespace {

//===----------------------------------------------------------------------===//
// Ops
//===----------------------------------------------------------------------===//

/// The bytes of a valid attribute. Equal bytes are valid, too, and most nodes
/// have the same attributes as an earlier node.
class GoodEntry {
public:
  /// Returns true if the bytes from \p P to \p End begin with the entry.
  bool isAt(const char *P, const char *End) const {
    return Size != 0 && Size <= static_cast<size_t>(End - P) &&
           equalBytes(P, Data, Size);
  }
  const char *begin() const { return Data; }
  size_t size() const { return Size; }
  /// Keeps \p Whole unless it is so long that a comparison costs more than a
  /// check. Returns true if \p Whole was kept.
  bool keep(StringRef Whole) {
    constexpr size_t MaxSize = 128;
    if (Whole.size() > MaxSize)
      return false;
    Data = Whole.data();
    Size = Whole.size();
    return true;
  }
  /// Points to the latest equal bytes, because their pages are in memory.
  void moveTo(const char *P) { Data = P; }

private:
  const char *Data = nullptr;
  size_t Size = 0;
};

/// A good attribute that the definition does not have.
struct GoodForeign {
  GoodEntry Entry;
  StringRef Key;
};

constexpr uint8_t NoSlot = UINT8_MAX;

/// An attribute of a definition, and its last value.
struct Wanted : WantedAttr {
  using WantedAttr::WantedAttr;
  uint8_t Slot = NoSlot; ///< The slot of its value, if types depend on it.
  GoodEntry Good;        ///< Unset for lists of types in a slot.
  int64_t Number = 0;    ///< The number that Good puts into the slot.
};

/// An argument, with slots in place of attributes.
struct Arg {
  uint8_t Type;
  uint8_t TypeSlot, NumberSlot, ListSlot;
  bool IsRef;
};

/// The types of inputs and outputs of nodes, as numbers in a pool.
struct Signature {
  uint32_t First;
  uint32_t NumInputs;
  uint32_t NumOutputs;
};
constexpr uint32_t NoSignature = ~uint32_t(0);

/// The checks that follow from the definition of an op, computed once.
struct OpCheck {
  std::vector<Wanted> Attrs; ///< By name.
  SmallVector<Arg, 4> Inputs, Outputs;
  SmallVector<AttrSlot, 2> Slots;
  SmallVector<AttrSlot, 2> Defaults;
  uint64_t Required = 0; ///< Bit I: attribute I has no default.
  bool Usual = true;     ///< No lists of types, few attributes and slots.
  bool Removed = false;
  bool IsConst = false;
  /// Good attributes that the definition does not have, by their position among
  /// such attributes of a node.
  std::array<GoodForeign, 3> Foreign;
  /// Set if the definition has an attribute whose name begins with `_`.
  /// TensorFlow has no such definition.
  bool HasHidden = false;
  unsigned ConstType = DT_INVALID; ///< The type of the last good constant.
  uint64_t LastKey = 0;
  uint32_t LastSignature = NoSignature;
};

uint8_t slotOf(OpCheck &C, const char *Name) {
  if (!*Name)
    return NoSlot;
  auto It = find_if(C.Attrs, [&](const Wanted &W) { return W.Name == Name; });
  if (It == C.Attrs.end())
    return NoSlot;
  if (It->Slot == NoSlot) {
    It->Slot = static_cast<uint8_t>(C.Slots.size());
    C.Slots.emplace_back();
    AttrSlot &Default = C.Defaults.emplace_back();
    if (It->Def->HasDefault) {
      StringRef Text(It->Def->Default);
      int64_t Number;
      if (Text.consume_front("i: ") && !Text.getAsInteger(10, Number))
        Default.Number = Number;
      else if (It->Is == AttrKind::Type || It->IsList)
        while (Text.contains("DT_")) {
          StringRef Name = Text.substr(Text.find("DT_") + 3);
          Name = Name.take_while([](char C) { return isAlnum(C) || C == '_'; });
          Text = Text.substr(Text.find("DT_") + 3);
          for (unsigned Type = 1; Type < 64; ++Type)
            if (Name.lower() == typeName(Type)) {
              Default.Number = Type;
              Default.List.push_back(static_cast<uint8_t>(Type));
            }
        }
    }
  }
  return It->Slot;
}

OpCheck takeApart(const OpDef &Def, int Producer) {
  OpCheck C;
  for (const AttrDef &A : Def.attrs())
    C.Attrs.push_back(Wanted(A));
  llvm::sort(C.Attrs,
             [](const Wanted &A, const Wanted &B) { return A.Name < B.Name; });
  for (size_t I = 0; I < C.Attrs.size() && I < 64; ++I)
    C.Required |= uint64_t(!C.Attrs[I].Def->HasDefault) << I;
  C.HasHidden =
      any_of(C.Attrs, [](const Wanted &W) { return W.Name.starts_with("_"); });
  auto Add = [&](ArrayRef<ArgDef> Args, SmallVectorImpl<Arg> &To) {
    for (const ArgDef &A : Args) {
      Arg X = {A.Type, slotOf(C, A.TypeAttr), slotOf(C, A.NumberAttr),
               slotOf(C, A.TypeListAttr), A.IsRef};
      if (X.Type > RefTypeOffset)
        X.Type -= RefTypeOffset;
      C.Usual &= X.ListSlot == NoSlot;
      To.push_back(X);
    }
  };
  Add(Def.inputs(), C.Inputs);
  Add(Def.outputs(), C.Outputs);
  C.Usual &= C.Slots.size() <= 7;
  C.IsConst = StringRef(Def.Name) == op::Const;
  C.Removed = Def.RemovedIn != 0 && Producer >= Def.RemovedIn;
  return C;
}

//===----------------------------------------------------------------------===//
// Nodes
//===----------------------------------------------------------------------===//

class DefinitionCheck {
public:
  DefinitionCheck(const Graph &G, DiagnosticEngine &Diags)
      : G(G), Attrs(Diags, "attributes that do not match the op's definition"),
        Edges(Diags, "inputs that do not match the op's definition"),
        Others(Diags, "nodes that cannot be read"), Ops(G.numOps()),
        Signatures(G.size(), NoSignature) {}

  void run(int Producer) {
    bool BadOp = false;
    for (uint32_t Op = 0; Op < G.numOps(); ++Op) {
      if (const OpDef *Def = G.opDefOf(Op))
        Ops[Op] = takeApart(*Def, Producer);
      else
        BadOp |= !isUtf8(G.opNameOf(Op));
    }
    for (NodeId N = 0; BadOp && N < G.size(); ++N)
      if (G.isLive(N) && !isUtf8(G.opName(N)))
        Others.error(G.name(N), "the name of its op is not UTF-8");
    FileWalk Walk(G);
    constexpr NodeId Ahead = 6;
    for (NodeId N = 0, End = G.size(); N < End; ++N) {
      if (N + Ahead < End)
        G.prefetchAttrs(N + Ahead);
      Walk.at(N);
      if (G.isLive(N))
        node(N);
    }
    for (NodeId N = 0, End = G.size(); N < End; ++N)
      if (Signatures[N] != NoSignature)
        edges(N);
  }

private:
  /// Returns the number of the attribute of \p C called \p Key. Writers sort
  /// attributes, so it most often is \p Next.
  static size_t findAttr(const OpCheck &C, StringRef Key, size_t Next) {
    if (Next < C.Attrs.size() && equalBytes(C.Attrs[Next].Name, Key))
      return Next;
    if (!C.HasHidden && Key.starts_with("_"))
      return C.Attrs.size();
    auto It = llvm::lower_bound(
        C.Attrs, Key, [](const Wanted &W, StringRef K) { return W.Name < K; });
    return It != C.Attrs.end() && It->Name == Key ? It - C.Attrs.begin()
                                                  : C.Attrs.size();
  }

  void wrong(NodeId N, StringRef Key, const Twine &Fault) {
    Attrs.error(G.name(N), "attribute '" + Key + "' " + Fault);
  }

  void node(NodeId N) {
    const Node &This = G.node(N);
    OpCheck &C = Ops[This.Op];
    bool Known = G.opDefOf(This.Op) != nullptr;
    if (C.Removed)
      Others.error(G.name(N),
                   formatv("op {0} was removed from TensorFlow in GraphDef "
                           "version {1}, and this graph has that version or a "
                           "later one",
                           G.opName(N), G.opDef(N)->RemovedIn)
                       .str());
    for (size_t I = 0; I < C.Slots.size(); ++I) {
      C.Slots[I].Number = C.Defaults[I].Number;
      if (!C.Usual)
        C.Slots[I].List = C.Defaults[I].List;
    }
    uint64_t Seen = 0;
    bool Good = true;
    size_t Next = 0;
    Few.clear();
    if (!Foreign.empty())
      Foreign.clear();
    StringRef Run(This.AttrData, This.AttrSize);
    StringRef Entry, Value; // The tensor of a constant.
    std::optional<StringRef> Tensor;
    Wanted *ValueAttr = nullptr;
    bool IsSame = false; // The tensor is the last good one.
    size_t NumFast = std::min<size_t>(C.Attrs.size(), 64);
    AttrEntry A;
    while (!Run.empty()) {
      if (Next < NumFast && !(Seen >> Next & 1))
        if (Wanted &W = C.Attrs[Next]; W.Good.isAt(Run.begin(), Run.end())) {
          W.Good.moveTo(Run.begin());
          Run = Run.drop_front(W.Good.size());
          Seen |= uint64_t(1) << Next++;
          if (W.Slot != NoSlot)
            C.Slots[W.Slot].Number = W.Number;
          IsSame |= W.Is == AttrKind::Tensor;
          continue;
        }
      if (Few.size() < C.Foreign.size())
        if (GoodForeign &X = C.Foreign[Few.size()];
            X.Entry.isAt(Run.begin(), Run.end())) {
          X.Key = {Run.begin() + (X.Key.begin() - X.Entry.begin()),
                   X.Key.size()};
          X.Entry.moveTo(Run.begin());
          Run = Run.drop_front(X.Entry.size());
          addForeign(N, X.Key);
          continue;
        }
      wire::Reader R(Run);
      wire::Field F;
      if (!R.next(F))
        break;
      Run = Run.drop_front(F.Whole.size());
      if (!parseEntry(F, A)) {
        Good &= otherField(N, F);
        continue;
      }
      size_t I = Known ? findAttr(C, A.Key, Next) : 0;
      if (I == C.Attrs.size()) {
        foreign(N, C, F, A);
        continue;
      }
      Next = I + 1;
      Wanted &W = C.Attrs[I];
      if (I < 64 && Seen >> I & 1)
        wrong(N, A.Key, "occurs twice");
      if (I < 64)
        Seen |= uint64_t(1) << I;
      // The tensor of a constant is checked when its type is known.
      if (C.IsConst && W.Is == AttrKind::Tensor && !Entry.data()) {
        Tensor = AttrCheck::tensor(A.Value);
        if (Tensor) {
          Entry = F.Whole;
          Value = A.Value;
          ValueAttr = &W;
          continue;
        }
      }
      AttrSlot *Kept = W.Slot == NoSlot ? nullptr : &C.Slots[W.Slot];
      AttrCheck V(W, Kept);
      if (V.isGood(A.Value)) {
        if (I < 64 && !(Kept && W.IsList)) {
          W.Good.keep(F.Whole);
          W.Number = Kept ? Kept->Number : 0;
        }
        continue;
      }
      if (std::string Fault = V.fault(A.Value); !Fault.empty()) {
        wrong(N, A.Key, Fault);
        Good = false;
      }
    }
    if (!Known)
      return;
    uint64_t Missing = C.Required & ~Seen;
    if (Tensor)
      Good &= constant(N, C, *ValueAttr, Entry, Value, *Tensor,
                       Good && Missing == 0);
    if (Missing != 0) {
      for (size_t I = 0; I < C.Attrs.size(); ++I)
        if (Missing >> I & 1)
          Attrs.error(G.name(N), "has no attribute '" + C.Attrs[I].Name +
                                     "', which " + G.opName(N) + " needs");
      return;
    }
    if (!Good)
      return;
    if (C.IsConst && !Tensor &&
        !(IsSame && C.ConstType == static_cast<unsigned>(C.Slots[0].Number)))
      constant(N, static_cast<unsigned>(C.Slots[0].Number));
    Signatures[N] = signature(N, C);
  }

  /// Checks a field of a node that is no attribute.
  bool otherField(NodeId N, const wire::Field &F) {
    if (GoodOther.size() == F.Whole.size() &&
        GoodOther.isAt(F.Whole.begin(), F.Whole.end())) {
      GoodOther.moveTo(F.Whole.begin());
      return true;
    }
    // Any field that protobuf can parse is good.
    tensorflow::NodeDef Parsed;
    if (Parsed.ParseFromArray(F.Whole.data(),
                              static_cast<int>(F.Whole.size()))) {
      GoodOther.keep(F.Whole);
      return true;
    }
    Others.error(G.name(N),
                 formatv("field {0} cannot be read", F.Number).str());
    return false;
  }

  /// Checks an attribute that the definition does not have.
  void foreign(NodeId N, OpCheck &C, const wire::Field &F, const AttrEntry &A) {
    if (shortClass(F.Bytes).empty() && isGoodForeign(N, A) &&
        Few.size() < C.Foreign.size() &&
        C.Foreign[Few.size()].Entry.keep(F.Whole))
      C.Foreign[Few.size()].Key = A.Key;
    addForeign(N, A.Key);
  }

  /// Reports a repeated key: protobuf reads the last entry, but passes read the
  /// first one.
  void addForeign(NodeId N, StringRef Key) {
    bool IsNew = none_of(Few, [&](StringRef K) { return equalBytes(K, Key); });
    if (Few.size() < MaxFew)
      Few.push_back(Key);
    else
      IsNew &= Foreign.insert(Key).second;
    if (!IsNew)
      wrong(N, Key, "occurs twice");
  }

  bool isGoodForeign(NodeId N, const AttrEntry &A) {
    if (!isUtf8(A.Key))
      Others.error(G.name(N), "the name of an attribute is not UTF-8");
    else if (!isReadable(A.Value))
      wrong(N, A.Key, "cannot be read");
    else if (A.Key == ClassKey && !isStringList(A.Value))
      wrong(N, A.Key, "must be a list of strings");
    else
      return true;
    return false;
  }

  /// Returns false if \p Tensor, in \p Value of \p Entry, is malformed. A
  /// tensor that does not fit the type of the constant is reported if
  /// \p Strict.
  bool constant(NodeId N, OpCheck &C, Wanted &W, StringRef Entry,
                StringRef Value, StringRef Tensor, bool Strict) {
    auto Type = static_cast<unsigned>(C.Slots[0].Number);
    std::string Fault = tensorFault(Tensor, Type, Strict);
    if (Fault.empty()) {
      if (Strict && W.Good.keep(Entry))
        C.ConstType = Type;
      return true;
    }
    std::string OfAny = AttrCheck(W, nullptr).fault(Value);
    wrong(N, W.Name, OfAny.empty() ? Fault : OfAny);
    return OfAny.empty();
  }

  void constant(NodeId N, unsigned Type) {
    auto Value = G.attr(N, "value");
    auto Tensor = Value ? bytesField(*Value, AttrTensor) : std::nullopt;
    if (!Tensor)
      return;
    if (std::string Fault = tensorFault(*Tensor, Type, true); !Fault.empty())
      wrong(N, "value", Fault);
  }

  /// Adds the types of \p Args to the pool. Returns false for an invalid
  /// number.
  bool addTypes(NodeId N, const OpCheck &C, ArrayRef<Arg> Args) {
    for (const Arg &A : Args) {
      size_t Begin = Pool.size();
      if (A.ListSlot != NoSlot) {
        Pool.append(C.Slots[A.ListSlot].List.begin(),
                    C.Slots[A.ListSlot].List.end());
      } else {
        int64_t Count =
            A.NumberSlot == NoSlot ? 1 : C.Slots[A.NumberSlot].Number;
        if (Count < 0 || Count > INT32_MAX) {
          Attrs.error(
              G.name(N),
              formatv("has {0} inputs or outputs, which is not a valid number",
                      Count)
                  .str());
          return false;
        }
        int64_t Type =
            A.TypeSlot == NoSlot ? A.Type : C.Slots[A.TypeSlot].Number;
        Pool.append(static_cast<size_t>(Count), static_cast<uint8_t>(Type));
      }
      if (A.IsRef)
        for (size_t I = Begin; I < Pool.size(); ++I)
          Pool[I] += RefTypeOffset;
    }
    return true;
  }

  uint32_t signature(NodeId N, OpCheck &C) {
    uint64_t Key = 1;
    bool Usual = C.Usual;
    for (const AttrSlot &S : C.Slots) {
      Usual &= S.Number >= 0 && S.Number < 256;
      Key = Key << 8 | (S.Number & 0xff);
    }
    if (Usual && Key == C.LastKey)
      return C.LastSignature;
    if (Usual)
      if (auto It = ByKey.find({G.node(N).Op, Key}); It != ByKey.end()) {
        C.LastKey = Key;
        return C.LastSignature = It->second;
      }
    // An attribute may demand more inputs than fit into memory, so the number
    // is checked first. verifyGraph has checked the number of outputs.
    uint64_t Inputs = 0;
    for (const Arg &A : C.Inputs)
      Inputs += A.ListSlot != NoSlot ? C.Slots[A.ListSlot].List.size()
                : A.NumberSlot != NoSlot
                    ? std::max<int64_t>(0, C.Slots[A.NumberSlot].Number)
                    : 1;
    if (Inputs != G.node(N).NumData) {
      Edges.error(G.name(N), formatv("{0} takes {1} data input{2} and has {3}",
                                     G.opName(N), Inputs,
                                     Inputs == 1 ? "" : "s", G.node(N).NumData)
                                 .str());
      return NoSignature;
    }
    size_t First = Pool.size();
    if (!addTypes(N, C, C.Inputs))
      return NoSignature;
    size_t Middle = Pool.size();
    if (!addTypes(N, C, C.Outputs))
      return NoSignature;
    auto Id = static_cast<uint32_t>(All.size());
    All.push_back({static_cast<uint32_t>(First),
                   static_cast<uint32_t>(Middle - First),
                   static_cast<uint32_t>(Pool.size() - Middle)});
    if (Usual) {
      ByKey[{G.node(N).Op, Key}] = Id;
      C.LastKey = Key;
      C.LastSignature = Id;
    }
    return Id;
  }

  void edges(NodeId N) {
    const Signature &To = All[Signatures[N]];
    ArrayRef<Endpoint> Inputs = G.dataInputs(N);
    if (Inputs.size() != To.NumInputs) {
      Edges.error(G.name(N),
                  formatv("{0} takes {1} data input{2} and has {3}",
                          G.opName(N), To.NumInputs,
                          To.NumInputs == 1 ? "" : "s", Inputs.size())
                      .str());
      return;
    }
    for (size_t I = 0; I < Inputs.size(); ++I) {
      uint32_t Source = Signatures[Inputs[I].Node];
      if (Source == NoSignature) {
        ofUser(N, I, Inputs[I], static_cast<uint8_t>(Pool[To.First + I]));
        continue;
      }
      const Signature &From = All[Source];
      if (Inputs[I].Port >= From.NumOutputs) {
        Edges.error(G.name(N),
                    formatv("input '{0}:{1}' does not exist: {2} "
                            "has {3} output{4}",
                            G.name(Inputs[I].Node), Inputs[I].Port,
                            G.opName(Inputs[I].Node), From.NumOutputs,
                            From.NumOutputs == 1 ? "" : "s")
                        .str());
        continue;
      }
      auto Passed = static_cast<uint8_t>(
          Pool[From.First + From.NumInputs + Inputs[I].Port]);
      auto Expected = static_cast<uint8_t>(Pool[To.First + I]);
      if (Passed == Expected || Passed == Expected + RefTypeOffset)
        continue;
      // A take-first merge is not written: see verifyTypes.
      if (G.node(Inputs[I].Node).Flags & NF_ElidePrimary)
        continue;
      Edges.error(G.name(N),
                  formatv("input {0} was passed {1} from '{2}:{3}', "
                          "incompatible with expected {4}",
                          I, typeName(Passed), G.name(Inputs[I].Node),
                          Inputs[I].Port, typeName(Expected))
                      .str());
    }
  }

  /// Checks that all readers of \p From, an output of a user's own op, expect
  /// the same type. The type itself is not known.
  void ofUser(NodeId N, size_t Index, Endpoint From, unsigned Expected) {
    if (!G.opFacts(G.node(From.Node).Op).OfUser)
      return;
    if (Expected > RefTypeOffset)
      Expected -= RefTypeOffset;
    auto [It, IsNew] = Readers.try_emplace(
        {From.Node, From.Port}, std::pair<NodeId, unsigned>(N, Expected));
    auto [Other, Type] = It->second;
    if (!IsNew && Type != Expected)
      Edges.error(
          G.name(N),
          formatv("input {0} must have type {1}, but '{2}' expects type "
                  "{3} of the same output '{4}:{5}'",
                  Index, typeName(Expected), G.name(Other), typeName(Type),
                  G.name(From.Node), From.Port)
              .str());
  }

  const Graph &G;
  ErrorCap Attrs, Edges, Others;
  std::vector<OpCheck> Ops;
  std::vector<uint32_t> Signatures; ///< By node.
  std::vector<Signature> All;
  SmallString<0> Pool;
  DenseMap<std::pair<uint32_t, uint64_t>, uint32_t> ByKey;
  /// For each output of a user's own op: a reader and the type that it expects.
  DenseMap<std::pair<NodeId, uint32_t>, std::pair<NodeId, unsigned>> Readers;
  /// Keys that the definition does not have: the first few, and all others.
  static constexpr size_t MaxFew = 8;
  SmallVector<StringRef, MaxFew> Few;
  DenseSet<StringRef> Foreign;
  GoodEntry GoodOther; ///< A field that is no attribute.
};

//===----------------------------------------------------------------------===//
// Versions
//===----------------------------------------------------------------------===//

/// Checks the versions of the graph. Returns the version of its producer.
int verifyVersions(const Graph &G, DiagnosticEngine &Diags) {
  constexpr unsigned Versions = 4;
  tensorflow::VersionDef V;
  if (!V.ParseFromString(G.otherField(Versions))) {
    Diags.error("", "the versions of the graph cannot be read");
    return 0;
  }
  if (V.producer() < 0)
    Diags.error("",
                formatv("the graph has producer version {0}, but TensorFlow "
                        "needs version 0 or later",
                        V.producer())
                    .str());
  if (V.min_consumer() > GraphVersion)
    Diags.error("", formatv("the graph has min consumer version {0}, above "
                            "version {1} of TensorFlow",
                            V.min_consumer(), GraphVersion)
                        .str());
  if (is_contained(V.bad_consumers(), GraphVersion))
    Diags.error("", formatv("the graph disallows consumer version {0}, which "
                            "TensorFlow has",
                            GraphVersion)
                        .str());
  return V.producer();
}

} // namespace

std::string attrFault(const AttrDef &Def, StringRef Value) {
  WantedAttr W(Def);
  AttrCheck V(W, nullptr);
  return V.isGood(Value) ? "" : V.fault(Value);
}

bool verifyDefinitions(const Graph &G, DiagnosticEngine &Diags) {
  unsigned Before = Diags.errorCount();
  int Producer = verifyVersions(G, Diags);
  DefinitionCheck(G, Diags).run(Producer);
  return Diags.errorCount() == Before;
}

} // namespace graft
