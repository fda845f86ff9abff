//===- lib/lower/expand/Render.h - one node of the expansion (private) ----===//
//
// SPDX-License-Identifier: Apache-2.0
//
// A node is split into segments once. A segment describes consecutive bytes of
// the node, and the copies that have them. The size of a copy is the sum of its
// segments, and a copy is written segment by segment.
//
//===----------------------------------------------------------------------===//

#ifndef GRAFT_LIB_LOWER_EXPAND_RENDER_H
#define GRAFT_LIB_LOWER_EXPAND_RENDER_H

#include "lib/graph/AttrWire.h"
#include "lib/graph/CopyWord.h"
#include "lib/infer/graph/BatchSources.h"
#include "lib/infer/graph/Variables.h"
#include "lib/io/OutputBuffer.h"
#include "lib/lower/expand/Expand.h"
#include "lib/lower/expand/FastNodeWriter.h"
#include "lib/program/JoinedBatches.h"
#include "lib/program/OrderedReads.h"
#include "lib/program/forms/Compression.h"
#include "lib/program/forms/LengthGather.h"
#include "lib/program/forms/RowWeight.h"
#include "lib/strategy/Record.h"

namespace graft {

using wire::bytesTag;

/// The encoded key `shared_name` of an attribute entry.
constexpr llvm::StringLiteral StringField = "\x0a\x0bshared_name";

/// Returns true if the value of the attribute \p Key may differ by copy.
inline bool differsByCopy(llvm::StringRef Key) {
  return Key == "shared_name" || Key == "seed2" || Key == "frame_name";
}

/// Returns true if \p N has a local name of merge-fetches or of a TPU
/// computation. merge-fetches renames the local node of a merged value to
/// `replica/<name>`, or to `<v>/replica/<rest>` if its name begins with the
/// variable `<v>`. Results of a TPU computation are called `<name>_<i>`. \p
/// Word is the word in the names of copies.
inline bool isRenamedLocal(const Node &N, llvm::StringRef Word) {
  if (N.Kind == Inserted::Merge && N.Count == Copies::PerReplica)
    return true;
  llvm::StringRef Mark = copyScope(Word);
  if (!(N.Flags & NF_LocalName) || N.NameSplit < Mark.size() ||
      N.NameSplit >= N.NameSize)
    return false;
  const char *At = N.NameData + N.NameSplit - Mark.size();
  return std::memcmp(At, Mark.data(), Mark.size()) == 0 &&
         (At == N.NameData || At[-1] == '/');
}

/// Returns true if the attribute \p Key of the program stays in the output,
/// because nothing else in the written graph shows it. Examples are the
/// aggregation of sync-on-read copies, the scale exponent that a reduction
/// assumes, control inputs that graft added, and the original name of an update
/// if a refresh took that name.
inline bool staysInOutput(const Node &N, llvm::StringRef Key) {
  return Key == BatchAttr || Key == SliceAttr || Key == CompressAttr ||
         Key == LengthsAttr || Key == AssumedAttr || Key == AgainAttr ||
         Key == BlocksAttr || Key == WeightAttr || Key == OrderedAttr ||
         Key == JoinedAttr ||
         (Key == OriginAttr && N.Count == Copies::Once &&
          N.Kind == Inserted::No) ||
         (Key == AggregationAttr && N.Plan == Policy::SyncOnRead);
}

/// Reads the attribute entry at the start of \p Text. Returns false unless the
/// entry has the usual form, which every writer uses: key first, all lengths
/// short.
inline bool readUsualEntry(llvm::StringRef Text, llvm::StringRef &Entry) {
  if (Text.size() < 5 || Text[0] != bytesTag(5))
    return false;
  size_t Head = 2, Length = static_cast<uint8_t>(Text[1]);
  if (Length >= 0x80) {
    if (static_cast<uint8_t>(Text[2]) >= 0x80)
      return false;
    Length = (Length & 0x7f) | static_cast<size_t>(Text[2]) << 7;
    Head = 3;
  }
  if (Length < 2 || Length > Text.size() - Head || Text[Head] != bytesTag(1))
    return false;
  auto Key = static_cast<uint8_t>(Text[Head + 1]);
  if (Key >= 0x80 || Key + 2U > Length)
    return false;
  Entry = llvm::StringRef(Text.data() + Head, Length);
  return true;
}

/// Writes to a buffer that is large enough, and records the places of the
/// replica's number and device. Small enough to live in registers.
struct CursorOut {
  char *P, *Begin;
  /// The recorded offsets; null: not needed.
  uint32_t *Numbers, *Devices;

  void head(char Tag, uint64_t Length) {
    *P++ = Tag;
    P = wire::putVarint(P, Length);
  }
  void text(llvm::StringRef Text) {
    std::memcpy(P, Text.data(), Text.size());
    P += Text.size();
  }
  void letter(char C) { *P++ = C; }
  void number(const char *Text, unsigned Length) {
    if (Numbers)
      *Numbers++ = static_cast<uint32_t>(P - Begin);
    *P++ = *Text;
    for (unsigned I = 1; I < Length; ++I)
      *P++ = Text[I];
  }
  /// Like text(), for a text that differs by copy but not in length.
  void device(llvm::StringRef Text) {
    if (Devices)
      *Devices++ = static_cast<uint32_t>(P - Begin);
    text(Text);
  }
};

/// Writes any number of bytes.
struct StreamOut {
  OutputBuffer &To;

  void head(char Tag, uint64_t Length) {
    char Buffer[11] = {Tag};
    char *End = wire::putVarint(Buffer + 1, Length);
    To.write({Buffer, static_cast<size_t>(End - Buffer)});
  }
  void text(llvm::StringRef Text) { To.write(Text); }
  void letter(char C) { To.write({&C, 1}); }
  void number(const char *Text, unsigned Length) { To.write({Text, Length}); }
  void device(llvm::StringRef Text) { To.write(Text); }
};

/// The place of the replica's number in the name of a copy. In the examples `|`
/// marks Node::NameSplit. Copy 0 of a local node has its number too.
enum class ReplicaSuffix : uint8_t {
  None,   ///< `w` stays `w`: an unreplicated node.
  Before, ///< `y` becomes `replica_1/y`: most nodes.
  Inside, ///< `w|/Read` becomes `w/replica_1/Read`: the variable is `w`.
  Short,  ///< `replica|/y` becomes `replica_1/y`: a merged value is `y`.
  Bare,   ///< `w|/Read` becomes `w/1/Read`: `w` has policy `replicated`.
};

/// Returns the length of a suffix without its number: `replica_` and `/` in
/// either order, or only `_` or `/`.
constexpr unsigned suffixSize(ReplicaSuffix Where) {
  return Where >= ReplicaSuffix::Short ? 1 : 9;
}

/// A piece of a node's bytes.
struct Segment {
  enum Kind : uint8_t {
    Literal, ///< The bytes in Data.
    Name,    ///< Field 1.
    Input,   ///< Field 3.
    Slice,   ///< Field 3: the output of a split for the replica.
    Device,  ///< Field 4: the device of the replica.
    Class,   ///< Field 5: `_class`, with the names in Classes.
    String,  ///< Field 5: `shared_name`, which holds a name.
    Frame,   ///< Field 5: `frame_name`, with the replica's number before it.
    Seed,    ///< Field 5: `seed2`, plus the replica's number.
  };
  enum Copies : uint8_t { First = 1, Others = 2, All = 3 };

  const char *Data;
  uint32_t Size;
  /// Length of the contents of the field in copy 0, and in the other copies
  /// without the digits of the number.
  uint32_t FirstLength, Length;
  uint32_t Split;
  uint32_t Port; ///< The output of the source that an input reads.
  Kind What;
  ReplicaSuffix Where;
  Copies For;
  bool Numbered; ///< All copies but copy 0 have their number in the text.
  bool Local;    ///< Copy 0 has its number too.
  bool Each;     ///< An input from each copy but copy 0.
};

/// The names of the copies of a node.
struct CopyNaming {
  LLVM_ATTRIBUTE_ALWAYS_INLINE
  CopyNaming(const ReplicaExpander &E, const Node &Source)
      : Name(Source.NameData, Source.NameSize) {
    if (E.isOnce(Source))
      return;
    Split = std::min(Source.NameSplit, Source.NameSize);
    Where = Split == 0                          ? ReplicaSuffix::Before
            : Source.Plan == Policy::Replicated ? ReplicaSuffix::Bare
                                                : ReplicaSuffix::Inside;
    if (Source.Flags & NF_LocalName) {
      Local = true;
      if (isRenamedLocal(Source, E.Word))
        Where = ReplicaSuffix::Short;
    }
  }

  llvm::StringRef Name;
  uint32_t Split = 0;
  ReplicaSuffix Where = ReplicaSuffix::None;
  bool Local = false;

  size_t firstSize() const {
    return Name.size() + (Local ? suffixSize(Where) + 1 : 0);
  }
  size_t otherSize(unsigned NumDigits) const {
    return Name.size() +
           (Where == ReplicaSuffix::None ? 0 : suffixSize(Where) + NumDigits);
  }
};

/// Returns the node called \p Name in a `_class` of \p User, or NoNode.
inline NodeId findClass(const Graph &G, NodeId User, llvm::StringRef Name) {
  NodeId With = G.colocatedWith(User);
  return With != NoNode ? With : G.find(Name);
}

/// Renders nodes of a program, one after the other.
class NodeRenderer {
public:
  explicit NodeRenderer(const ReplicaExpander &E)
      : E(E), G(E.G), Count(static_cast<unsigned>(E.Devices.size())) {
    Segments.resize_for_overwrite(32);
  }

  /// Makes \p N the node that is rendered.
  void select(NodeId N);
  /// Returns the number of bytes of copy \p Replica as a field of a GraphDef.
  /// If an unreplicated node is written as several nodes, returns the sum for
  /// all.
  uint64_t size(unsigned Replica);
  /// Writes the copy that size() counted last, or one of equal size.
  template <typename Out> Out render(Out O, unsigned Replica) const;
  /// Returns an upper bound of how often a copy contains its number.
  size_t maxNumbers() const { return NumSegments * (Classes.size() + 1); }

private:
  // The segments of a node (ExpandNode.cpp).
  LLVM_ATTRIBUTE_ALWAYS_INLINE
  Segment &add(Segment::Kind What, llvm::StringRef Text,
               Segment::Copies For = Segment::All) {
    auto Size = static_cast<uint32_t>(Text.size());
    if (NumSegments == Segments.size())
      Segments.resize_for_overwrite(Segments.size() * 2);
    Segment &I = Segments[NumSegments++];
    I = {Text.begin(),        Size, Size,  Size,  0,    0, What,
         ReplicaSuffix::None, For,  false, false, false};
    return I;
  }
  Segment &literal(llvm::StringRef Text) { return add(Segment::Literal, Text); }
  void fillName(Segment &I, const Node &Source) const;
  /// Returns the text in front of a replica number inside of a name.
  llvm::StringRef infix(ReplicaSuffix Where) const {
    return Where == ReplicaSuffix::Short  ? llvm::StringRef("_")
           : Where == ReplicaSuffix::Bare ? llvm::StringRef("/")
                                          : llvm::StringRef(E.InnerWord);
  }
  void stamp();
  Segment &copyName(Segment::Kind What, const Node &Source, Segment::Copies For,
                    uint32_t Port = 0);
  Segment &firstName(const Node &Source, Segment::Copies For, uint32_t Port);
  Segment &ownName(Segment::Kind What, llvm::StringRef Suffix = "");
  void endPart() { Parts.push_back({NumSegments, 0}); }
  void slice(const Node &Source);
  void dataInput(Endpoint Input);
  void firstInput(Endpoint Input, Segment::Copies For);
  void otherInputs(Endpoint Input);
  void controlInput(NodeId Source);
  void firstControl(NodeId Source, Segment::Copies For);
  void device();
  void field(unsigned Number, llvm::StringRef Text);
  void attribute(llvm::StringRef Key, llvm::StringRef Value);
  void attributes();
  bool rewrite(llvm::StringRef Key, llvm::StringRef Entry,
               llvm::StringRef Whole);
  bool readClasses(llvm::StringRef Entry);
  void className(llvm::StringRef Text);
  void plain();
  void fan();
  llvm::StringRef operand(llvm::StringRef Suffix);
  void constant(llvm::StringRef Suffix, llvm::StringRef Value, unsigned Type);
  void split();
  void merge();
  void keep(llvm::StringRef All, int64_t Axis);
  void scale();

  // Sizes and bytes (Render.cpp).
  size_t lengthOf(const Segment &I, unsigned Replica) const {
    if (Replica == 0)
      return I.FirstLength;
    return I.Length + (I.Numbered ? E.Numbers[Replica].Size : 0);
  }
  uint64_t seed2(unsigned Replica) const;
  uint64_t rareSize(const Segment &I, unsigned Replica);
  template <typename Out>
  void name(Out &O, const Segment &I, unsigned Replica) const;
  template <typename Out>
  void input(Out &O, const Segment &I, unsigned Replica) const;
  template <typename Out>
  void rareSegment(Out &O, const Segment &I, unsigned Replica) const;

  const ReplicaExpander &E;
  const Graph &G;
  unsigned Count; ///< The number of replicas.

  NodeId N = NoNode;
  const Node *This = nullptr;
  bool PerReplica = false;
  llvm::SmallVector<Segment, 32> Segments; ///< The first NumSegments.
  unsigned NumSegments = 0;
  llvm::SmallVector<Segment, 4> Classes; ///< Names in `_class`.
  uint64_t ClassList = 0;                ///< Size of that list, for the last
                                         ///< size().
  bool HasClasses = false;
  /// One node of the output: the end of its segments, and its size.
  struct Part {
    unsigned End;
    uint64_t Size;
  };
  llvm::SmallVector<Part, 3> Parts;
  llvm::BumpPtrAllocator Arena;
  llvm::StringSaver Saver{Arena};
};

} // namespace graft

#endif // GRAFT_LIB_LOWER_EXPAND_RENDER_H
