//===- lib/lower/expand/Render.cpp - items to sizes and bytes ---*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "lib/lower/expand/Render.h"

using namespace llvm;

namespace graft {

namespace {

constexpr StringLiteral FrameField = "\x0a\x0a"
                                     "frame_name",
                        SeedField = "\x0a\x05seed2";

bool stands(const Segment &I, unsigned Replica) {
  return I.For & (Replica == 0 ? Segment::First : Segment::Others);
}

/// Returns the size of a field with a one-byte tag, the length and the
/// contents.
uint64_t fieldSize(uint64_t Size) { return wire::bytesFieldSize(Size); }

/// Returns the size of the contents of an entry for a string.
uint64_t stringEntrySize(StringRef Key, uint64_t Size) {
  return Key.size() + fieldSize(fieldSize(Size));
}

uint64_t seedEntrySize(uint64_t Seed2) {
  return SeedField.size() + fieldSize(1 + wire::varintSize(Seed2));
}

} // namespace

uint64_t NodeRenderer::seed2(unsigned Replica) const {
  int64_t Seed = G.intAttr(N, "seed").value_or(0);
  int64_t Seed2 = G.intAttr(N, "seed2").value_or(0);
  // If both seeds are 0, TensorFlow seeds each copy at random, so the copies
  // differ without an offset.
  return static_cast<uint64_t>(Seed2) + (Seed != 0 || Seed2 != 0 ? Replica : 0);
}

//===----------------------------------------------------------------------===//
// Sizes
//===----------------------------------------------------------------------===//

uint64_t NodeRenderer::rareSize(const Segment &I, unsigned Replica) {
  switch (I.What) {
  case Segment::Class:
    ClassList = 0;
    for (const Segment &C : Classes)
      ClassList += fieldSize(lengthOf(C, Replica));
    return fieldSize(ClassField.size() + fieldSize(fieldSize(ClassList)));
  case Segment::String:
    return fieldSize(stringEntrySize(StringField, lengthOf(I, Replica)));
  case Segment::Frame:
    return fieldSize(stringEntrySize(FrameField, lengthOf(I, Replica)));
  case Segment::Seed:
    return fieldSize(seedEntrySize(seed2(Replica)));
  default: { // an input from each copy
    uint64_t Size = 0;
    for (ReplicaExpander::Span S : E.Rows.back().Spans)
      Size += fieldSize(lengthOf(I, S.First)) * S.Count;
    return Size;
  }
  }
}

uint64_t NodeRenderer::size(unsigned Replica) {
  uint64_t Total = 0, Device = E.deviceOf(N, Replica).size();
  if (Device != 0)
    Device = fieldSize(Device);
  const Segment *I = Segments.begin();
  for (Part &P : Parts) {
    P.Size = 0;
    for (const Segment *End = Segments.begin() + P.End; I != End; ++I) {
      if (!stands(*I, Replica))
        continue;
      if (I->What == Segment::Literal)
        P.Size += I->Size;
      else if (I->What <= Segment::Slice && !I->Each)
        P.Size += fieldSize(lengthOf(*I, Replica));
      else if (I->What == Segment::Device)
        P.Size += Device;
      else
        P.Size += rareSize(*I, Replica);
    }
    Total += fieldSize(P.Size);
  }
  return Total;
}

//===----------------------------------------------------------------------===//
// Bytes
//===----------------------------------------------------------------------===//

template <typename Out>
LLVM_ATTRIBUTE_ALWAYS_INLINE void NodeRenderer::name(Out &O, const Segment &I,
                                                     unsigned Replica) const {
  StringRef Name(I.Data, I.Size);
  if (I.Where == ReplicaSuffix::None || (Replica == 0 && !I.Local)) {
    O.text(Name);
    return;
  }
  const auto &Number = E.Numbers[Replica];
  if (I.Where == ReplicaSuffix::Before) {
    O.text(E.Word);
    O.number(Number.Text, Number.Size);
    O.letter('/');
    O.text(Name);
    return;
  }
  O.text(Name.take_front(I.Split));
  O.text(infix(I.Where));
  O.number(Number.Text, Number.Size);
  O.text(Name.drop_front(I.Split));
}

template <typename Out>
LLVM_ATTRIBUTE_ALWAYS_INLINE void NodeRenderer::input(Out &O, const Segment &I,
                                                      unsigned Replica) const {
  O.head(bytesTag(3), lengthOf(I, Replica));
  if (I.Port == ControlPort)
    O.letter('^');
  name(O, I, Replica);
  if (I.What == Segment::Slice) {
    if (Replica != 0) {
      const auto &Number = E.Numbers[Replica];
      O.letter(':');
      O.number(Number.Text, Number.Size);
    }
  } else if (I.Port != 0 && I.Port != ControlPort) {
    ReplicaExpander::Number Port(I.Port);
    O.letter(':');
    O.text({Port.Text, Port.Size});
  }
}

template <typename Out>
void NodeRenderer::rareSegment(Out &O, const Segment &I,
                               unsigned Replica) const {
  auto StringEntry = [&](StringRef Key) {
    uint64_t Size = lengthOf(I, Replica);
    O.head(bytesTag(5), stringEntrySize(Key, Size));
    O.text(Key);
    O.head(bytesTag(2), fieldSize(Size));
    O.head(bytesTag(2), Size);
    name(O, I, Replica);
  };
  switch (I.What) {
  case Segment::String:
    return StringEntry(StringField);
  case Segment::Frame:
    return StringEntry(FrameField);
  case Segment::Seed: {
    uint64_t Seed2 = seed2(Replica);
    char Text[10];
    char *End = wire::putVarint(Text, Seed2);
    O.head(bytesTag(5), seedEntrySize(Seed2));
    O.text(SeedField);
    O.head(bytesTag(2), 1 + wire::varintSize(Seed2));
    O.letter('\x18');
    O.text({Text, static_cast<size_t>(End - Text)});
    return;
  }
  default: // an input from each copy
    for (unsigned R = 1; R < Count; ++R)
      input(O, I, R);
  }
}

template <typename Out>
Out NodeRenderer::render(Out O, unsigned Replica) const {
  const Segment *I = Segments.begin();
  for (const Part &P : Parts) {
    O.head(bytesTag(1), P.Size);
    for (const Segment *End = Segments.begin() + P.End; I != End; ++I) {
      if (!stands(*I, Replica))
        continue;
      switch (I->What) {
      case Segment::Literal:
        O.text({I->Data, I->Size});
        continue;
      case Segment::Name:
        O.head(bytesTag(1), lengthOf(*I, Replica));
        name(O, *I, Replica);
        continue;
      case Segment::Input:
      case Segment::Slice:
        if (I->Each)
          break;
        input(O, *I, Replica);
        continue;
      case Segment::Device: {
        StringRef Device = E.deviceOf(N, Replica);
        if (Device.empty())
          continue;
        O.head(bytesTag(4), Device.size());
        if (!PerReplica || This->Flags & NF_FixedDevice) {
          O.text(Device);
        } else if (Replica != 0 && E.Rows[This->Device].IsNumbered) {
          const auto &Number = E.Numbers[Replica];
          O.text(Device.drop_back(Number.Size));
          O.number(Number.Text, Number.Size);
        } else {
          O.device(Device);
        }
        continue;
      }
      case Segment::Class:
        O.head(bytesTag(5),
               ClassField.size() + fieldSize(fieldSize(ClassList)));
        O.text(ClassField);
        O.head(bytesTag(2), fieldSize(ClassList));
        O.head(bytesTag(1), ClassList);
        for (const Segment &C : Classes) {
          O.head(bytesTag(2), lengthOf(C, Replica));
          if (C.What == Segment::Class)
            O.text(ClassPrefix);
          name(O, C, Replica);
        }
        continue;
      default:
        break;
      }
      // Out of line, and on a copy of O, so that O can stay in registers.
      Out Rest = O;
      rareSegment(Rest, *I, Replica);
      if constexpr (std::is_same_v<Out, CursorOut>)
        O = Rest;
    }
  }
  return O;
}

template CursorOut NodeRenderer::render(CursorOut, unsigned) const;
template StreamOut NodeRenderer::render(StreamOut, unsigned) const;

} // namespace graft
