//===- lib/lower/expand/FastNodeWriter.cpp - copy 0 and 1 at once ---------===//
//
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "lib/lower/expand/FastNodeWriter.h"

#include "lib/lower/expand/Render.h"
#include "lib/ops/Ops.h"
#include "lib/support/Bytes.h"

using namespace llvm;

namespace graft {

/// The places of the next byte of copy 0 and of the other copy. The cursor
/// lives in registers while a node is rendered.
struct FastNodeWriter::DualCursor {
  char *First, *Other;
  const char *OtherBegin;
  uint32_t *Number;
  const char *Word;   ///< CopyWordSize letters, in the names of copies.
  const char *Digits; ///< The digits of the other copy's number.
  unsigned NumDigits;
  size_t Text = 0; ///< Bytes of names and attributes so far.

  /// Returns true if there is room for \p Size more bytes of text.
  bool takes(size_t Size) {
    Text += Size;
    return Text <= MaxText;
  }
  // Inlined, because a call would cost more than the copy, and the compiler
  // would not inline hardened code by itself.
  LLVM_ATTRIBUTE_ALWAYS_INLINE __attribute__((flatten)) static char *
  put(char *P, StringRef Text) {
    return copyBytes(P, Text.data(), Text.size());
  }
  static char *head(char *P, unsigned Field, uint64_t Length) {
    *P++ = bytesTag(Field);
    return wire::putVarint(P, Length);
  }
  template <bool WithOther> void text(StringRef Text) {
    First = put(First, Text);
    if (WithOther)
      Other = put(Other, Text);
  }
  void number() {
    *Number++ = static_cast<uint32_t>(Other - OtherBegin);
    Other = put(Other, Digits, NumDigits);
  }
  /// Copies a few bytes.
  static char *put(char *P, const char *Text, unsigned Size) {
    *P++ = *Text;
    for (unsigned I = 1; I < Size; ++I)
      *P++ = Text[I];
    return P;
  }
  /// Writes a name with a number in it; \p Mark is where the number begins.
  LLVM_ATTRIBUTE_ALWAYS_INLINE
  char *numbered(char *P, const CopyNaming &F, const char *Digits,
                 unsigned NumDigits, char *&Mark) const {
    if (F.Where != ReplicaSuffix::Before) {
      P = put(P, F.Name.take_front(F.Split));
      *P++ = F.Where == ReplicaSuffix::Short ? '_' : '/';
    }
    if (F.Where <= ReplicaSuffix::Inside)
      P = put(P, StringRef(Word, CopyWordSize));
    Mark = P;
    P = put(P, Digits, NumDigits);
    if (F.Where == ReplicaSuffix::Before)
      *P++ = '/';
    return put(P, F.Name.drop_front(F.Split));
  }
  LLVM_ATTRIBUTE_ALWAYS_INLINE
  void firstName(const CopyNaming &F) {
    char *Mark;
    First = F.Local ? numbered(First, F, "0", 1, Mark) : put(First, F.Name);
  }
  LLVM_ATTRIBUTE_ALWAYS_INLINE
  void otherName(const CopyNaming &F) {
    if (F.Where == ReplicaSuffix::None) {
      Other = put(Other, F.Name);
      return;
    }
    char *Mark;
    Other = numbered(Other, F, Digits, NumDigits, Mark);
    *Number++ = static_cast<uint32_t>(Mark - OtherBegin);
  }

  /// Writes the head of an input, and the `^` of a control input.
  LLVM_ATTRIBUTE_ALWAYS_INLINE
  static char *inputHead(char *P, size_t NameSize, uint32_t Port,
                         unsigned PortSize) {
    P = head(P, 3, NameSize + (Port == ControlPort ? 1 : PortSize));
    if (Port == ControlPort)
      *P++ = '^';
    return P;
  }
  struct PortText {
    explicit PortText(uint32_t Port) {
      if (Port == 0 || Port == ControlPort)
        return;
      ReplicaExpander::Number Digits(Port);
      Text[0] = ':';
      std::memcpy(Text + 1, Digits.Text, Digits.Size);
      Size = Digits.Size + 1U;
    }
    char Text[12];
    unsigned Size = 0;
  };
  LLVM_ATTRIBUTE_ALWAYS_INLINE
  void firstInput(const CopyNaming &F, uint32_t Port) {
    PortText Suffix(Port);
    First = inputHead(First, F.firstSize(), Port, Suffix.Size);
    firstName(F);
    if (Suffix.Size != 0)
      First = put(First, Suffix.Text, Suffix.Size);
  }
  LLVM_ATTRIBUTE_ALWAYS_INLINE
  void otherInput(const CopyNaming &F, uint32_t Port) {
    PortText Suffix(Port);
    Other = inputHead(Other, F.otherSize(NumDigits), Port, Suffix.Size);
    otherName(F);
    if (Suffix.Size != 0)
      Other = put(Other, Suffix.Text, Suffix.Size);
  }
};

//===----------------------------------------------------------------------===//
// Inputs
//===----------------------------------------------------------------------===//

template <bool WithOther>
LLVM_ATTRIBUTE_ALWAYS_INLINE bool FastNodeWriter::input(DualCursor &P,
                                                        Endpoint Input) const {
  const Node &Source = G.node(Input.Node);
  CopyNaming F(E, Source);
  if (!P.takes(F.Name.size()))
    return false;
  if (E.isSplit(Source)) {
    P.firstInput(F, 0);
    if (WithOther) {
      P.Other = DualCursor::head(P.Other, 3, F.Name.size() + 1 + P.NumDigits);
      P.Other = DualCursor::put(P.Other, F.Name);
      *P.Other++ = ':';
      P.number();
    }
    return true;
  }
  if (LLVM_LIKELY(!(Source.Flags & NF_ElidePrimary))) {
    P.firstInput(F, Input.Port);
    if (WithOther)
      P.otherInput(F, Input.Port);
    return true;
  }
  // The source is a take-first merge, or a device copy that copy 0 does not
  // need.
  Endpoint Real = Input;
  while (G.node(Real.Node).Flags & NF_ElidePrimary &&
         !E.isSplit(G.node(Real.Node)))
    Real = G.input(Real.Node, 0);
  CopyNaming RealForm(E, G.node(Real.Node));
  uint32_t Port = E.isSplit(G.node(Real.Node)) ? 0 : Real.Port;
  if (!P.takes(RealForm.Name.size()))
    return false;
  P.firstInput(RealForm, Port);
  if (!WithOther)
    return true;
  if (Source.Count == Copies::PerReplica) {
    P.otherInput(F, Input.Port);
    return true;
  }
  if (RealForm.Local)
    return false;
  RealForm.Where = ReplicaSuffix::None;
  P.otherInput(RealForm, Port);
  return true;
}

template <bool WithOther>
LLVM_ATTRIBUTE_ALWAYS_INLINE bool FastNodeWriter::control(DualCursor &P,
                                                          NodeId Source) const {
  const Node &From = G.node(Source);
  if (From.Flags & NF_ElidePrimary)
    return false;
  CopyNaming F(E, From);
  bool IsEach =
      !WithOther && F.Where != ReplicaSuffix::None && !(From.Flags & NF_Led);
  if (!P.takes(IsEach ? (F.Name.size() + FieldExtra) * Count : F.Name.size()))
    return false;
  P.firstInput(F, ControlPort);
  if (WithOther)
    P.otherInput(F, ControlPort);
  if (IsEach)
    others(P, F);
  return true;
}

/// Adds control inputs to copy 0 or an unreplicated node: one from each copy
/// but copy 0.
void FastNodeWriter::others(DualCursor &P, const CopyNaming &F) const {
  char *Mark;
  for (unsigned R = 1; R < Count; ++R) {
    const auto &Number = E.Numbers[R];
    P.First = DualCursor::inputHead(P.First, F.otherSize(Number.Size),
                                    ControlPort, 0);
    P.First = P.numbered(P.First, F, Number.Text, Number.Size, Mark);
  }
}

//===----------------------------------------------------------------------===//
// Attributes
//===----------------------------------------------------------------------===//

using Cursor = FastNodeWriter::DualCursor;

/// Writes the fields around a name in an entry: a list of strings in `_class`,
/// or a string.
static char *classHeads(char *P, size_t Size) {
  Size += ClassPrefix.size();
  uint64_t List = wire::bytesFieldSize(Size);
  uint64_t Value = wire::bytesFieldSize(List);
  P = Cursor::head(P, 5, ClassField.size() + wire::bytesFieldSize(Value));
  P = Cursor::put(P, ClassField);
  P = Cursor::head(P, 2, Value);
  P = Cursor::head(P, 1, List);
  P = Cursor::head(P, 2, Size);
  return Cursor::put(P, ClassPrefix);
}
static char *stringHeads(char *P, size_t Size) {
  uint64_t Value = wire::bytesFieldSize(Size);
  P = Cursor::head(P, 5, StringField.size() + wire::bytesFieldSize(Value));
  P = Cursor::put(P, StringField);
  P = Cursor::head(P, 2, Value);
  return Cursor::head(P, 2, Size);
}

/// Writes attributes in the usual form, with at most one short `_class`. Leaves
/// nodes with other attributes that differ by replica to NodeRenderer.
template <bool WithOther>
bool FastNodeWriter::attributes(DualCursor &P, NodeId N) const {
  const Node &This = G.node(N);
  StringRef Rest(This.AttrData, This.AttrSize);
  if (!P.takes(Rest.size()))
    return false;
  bool Rewrites = WithOther && E.Rewrites[This.Op];
  if (!Rewrites && !(This.Flags & (NF_MayHaveClass | NF_MayHaveGraft))) {
    if (!Rest.empty())
      P.text<WithOther>(Rest);
    return true;
  }
  bool HasClass = false, HasShared = false;
  const char *Begin = Rest.data(); // from here on nothing was written yet
  auto Flush = [&](const char *End) {
    if (End != Begin)
      P.text<WithOther>({Begin, static_cast<size_t>(End - Begin)});
  };
  while (!Rest.empty()) {
    StringRef Entry;
    if (!readUsualEntry(Rest, Entry))
      return false;
    const char *Start = Rest.data();
    Rest = Rest.drop_front(Entry.end() - Start);
    StringRef Key = Entry.substr(2, static_cast<size_t>(Entry[1]));
    if (Key.starts_with("_")) {
      if (Key == ClassKey) {
        StringRef Name = shortClass(Entry);
        NodeId With =
            Name.consume_front(ClassPrefix) ? findClass(G, N, Name) : NoNode;
        if (HasClass || With == NoNode || !P.takes(Name.size()))
          return false;
        HasClass = true;
        CopyNaming F(E, G.node(With));
        Flush(Start);
        P.First = classHeads(P.First, F.firstSize());
        P.firstName(F);
        if (WithOther) {
          P.Other = classHeads(P.Other, F.otherSize(P.NumDigits));
          P.otherName(F);
        }
      } else if (Key.starts_with("_graft_") && !staysInOutput(This, Key)) {
        Flush(Start);
      } else {
        continue;
      }
    } else if (Rewrites && differsByCopy(Key)) {
      if (Key != "shared_name" || HasShared)
        return false;
      HasShared = true;
      // The node name identifies a reference variable without a shared name.
      if (!G.isOp(N, op::VarHandleOp) &&
          G.stringAttr(N, Key).value_or("").empty())
        continue;
      CopyNaming F(E, This);
      if (!P.takes(F.Name.size()))
        return false;
      Flush(Start);
      P.First = DualCursor::put(
          P.First, {Start, static_cast<size_t>(Entry.end() - Start)});
      P.Other = stringHeads(P.Other, F.otherSize(P.NumDigits));
      P.otherName(F);
    } else {
      continue;
    }
    Begin = Entry.end();
  }
  Flush(Rest.begin());
  // A handle without a shared name needs one, which NodeRenderer adds.
  return !Rewrites || HasShared || !G.isOp(N, op::VarHandleOp);
}

//===----------------------------------------------------------------------===//
// Nodes
//===----------------------------------------------------------------------===//

template <bool WithOther>
bool FastNodeWriter::renderAs(NodeId N, unsigned Replica) {
  const Node &This = G.node(N);
  if (This.NumInputs > MaxFields)
    return false;
  DualCursor P{First + Head,
               Other + Head,
               Other + Head,
               Numbers,
               E.Word.data(),
               nullptr,
               0};
  if (WithOther) {
    P.Digits = E.Numbers[Replica].Text;
    P.NumDigits = E.Numbers[Replica].Size;
  }
  CopyNaming Own(E, This);
  StringRef Op = E.OpFields[This.Op];
  if (!P.takes(Own.Name.size() + Op.size()))
    return false;
  P.First = DualCursor::head(P.First, 1, Own.firstSize());
  P.firstName(Own);
  if (WithOther) {
    P.Other = DualCursor::head(P.Other, 1, Own.otherSize(P.NumDigits));
    P.otherName(Own);
  }
  P.text<WithOther>(Op);
  ArrayRef<Endpoint> Inputs = G.inputs(N);
  for (unsigned I = 0; I < This.NumData; ++I)
    if (!input<WithOther>(P, Inputs[I]))
      return false;
  for (unsigned I = This.NumData; I < Inputs.size(); ++I)
    if (!control<WithOther>(P, Inputs[I].Node))
      return false;
  if (WithOther && This.Flags & NF_Led) {
    if (!P.takes((Own.Name.size() + FieldExtra) * Count))
      return false;
    others(P, Own);
  }
  HasDevice = false;
  StringRef Device0 = E.deviceOf(N, 0), Device1 = E.deviceOf(N, Replica);
  const ReplicaExpander::DeviceRow &Row = E.Rows[This.Device];
  if (Row.Longest > MaxDevice || Device0.size() > MaxDevice)
    return false;
  if (!Device0.empty())
    P.First =
        DualCursor::put(DualCursor::head(P.First, 4, Device0.size()), Device0);
  if (WithOther && !Device1.empty()) {
    P.Other = DualCursor::head(P.Other, 4, Device1.size());
    if (This.Flags & NF_FixedDevice) {
      P.Other = DualCursor::put(P.Other, Device1);
    } else if (Row.IsNumbered) {
      P.Other = DualCursor::put(P.Other, Device1.drop_back(P.NumDigits));
      P.number();
    } else {
      Device = static_cast<uint32_t>(P.Other - P.OtherBegin);
      HasDevice = true;
      P.Other = DualCursor::put(P.Other, Device1);
    }
  }
  if (!attributes<WithOther>(P, N))
    return false;
  // Heads end where the bodies begin.
  auto Finish = [](char *Body, const char *End, char *&Begin, size_t &Size) {
    uint64_t Length = End - Body;
    Begin = Body - 1 - wire::varintSize(Length);
    DualCursor::head(Begin, 1, Length);
    Size = End - Begin;
  };
  Finish(First + Head, P.First, FirstBegin, FirstSize);
  if (WithOther)
    Finish(Other + Head, P.Other, OtherBegin, OtherSize);
  NumNumbers = P.Number - Numbers;
  return true;
}

bool FastNodeWriter::render(NodeId N, unsigned Replica) {
  const Node &This = G.node(N);
  if (E.Program[This.Op] != E.Plain)
    return false;
  if (This.Count == Copies::Once)
    return renderAs<false>(N, 0);
  return !E.RandomOps[This.Op] && renderAs<true>(N, Replica);
}

} // namespace graft
