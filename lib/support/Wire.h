//===- lib/support/Wire.h - protobuf wire format ----------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
// Readers and writers of protobuf's wire format over borrowed bytes
// (https://protobuf.dev/programming-guides/encoding). Graphs are read and
// written with these instead of with message objects, which cost about sixty
// times a copy of the bytes.
//
//===----------------------------------------------------------------------===//

#ifndef GRAFT_LIB_SUPPORT_WIRE_H
#define GRAFT_LIB_SUPPORT_WIRE_H

#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Compiler.h"

#include <cstdint>
#include <cstring>
#include <string>

namespace graft::wire {

enum class Type : uint8_t {
  Varint = 0,
  Fixed64 = 1,
  Bytes = 2,
  Group = 3, ///< Deprecated, but legal in unknown fields.
  Fixed32 = 5
};

/// Number of bytes of \p V as a varint.
inline unsigned varintSize(uint64_t V) {
  return static_cast<unsigned>((64 - __builtin_clzll(V | 1) + 6) / 7);
}

/// Size of a length-delimited field with a one-byte tag and \p Len bytes.
inline uint64_t bytesFieldSize(uint64_t Len) {
  return 1 + varintSize(Len) + Len;
}

/// The tag of a length-delimited field, of one byte.
constexpr char bytesTag(unsigned Field) {
  return static_cast<char>(Field << 3 | unsigned(Type::Bytes));
}

inline char *putVarint(char *P, uint64_t V) {
  while (V >= 0x80) {
    *P++ = static_cast<char>(V | 0x80);
    V >>= 7;
  }
  *P++ = static_cast<char>(V);
  return P;
}

inline void appendVarint(std::string &S, uint64_t V) {
  char Buffer[10];
  S.append(Buffer, putVarint(Buffer, V) - Buffer);
}

inline void appendTag(std::string &S, unsigned Field, Type T) {
  appendVarint(S, (uint64_t(Field) << 3) | unsigned(T));
}

inline void appendBytes(std::string &S, unsigned Field, llvm::StringRef V) {
  appendTag(S, Field, Type::Bytes);
  appendVarint(S, V.size());
  S.append(V.data(), V.size());
}

inline void appendInt(std::string &S, unsigned Field, uint64_t V) {
  appendTag(S, Field, Type::Varint);
  appendVarint(S, V);
}

/// Reads a length of one or two bytes at \p P, which is before \p End, and
/// moves \p P behind the length. Returns false, with an unspecified \p P, if
/// the length has another form or ends beyond \p End.
inline bool shortLength(const char *&P, const char *End, uint64_t &Length) {
  Length = static_cast<uint8_t>(*P++);
  if (Length >= 0x80) {
    if (P == End || static_cast<uint8_t>(*P) >= 0x80)
      return false;
    Length += (uint64_t(static_cast<uint8_t>(*P++)) << 7) - 0x80;
  }
  return Length <= static_cast<uint64_t>(End - P);
}

/// Reads the field \p Tag, a tag of one byte, and its contents from the front
/// of \p P. Returns false, with \p P unchanged, if there is another field or an
/// unusual form of this one.
inline bool takeBytes(const char *&P, const char *End, char Tag,
                      llvm::StringRef &Contents) {
  if (End - P < 2 || *P != Tag)
    return false;
  const char *Body = P + 1;
  uint64_t Length;
  if (!shortLength(Body, End, Length))
    return false;
  Contents = llvm::StringRef(Body, Length);
  P = Body + Length;
  return true;
}

/// One field of a message: its number, type, value and the bytes that hold it
/// (tag included).
struct Field {
  unsigned Number = 0;
  Type WireType = Type::Varint;
  uint64_t Varint = 0;   ///< Varint, Fixed32 and Fixed64 values.
  llvm::StringRef Bytes; ///< Contents of a length-delimited field.
  llvm::StringRef Whole; ///< Tag, length and contents.
};

/// Walks the fields of one message. A malformed field stops the walk with
/// failed() set; nothing is ever read beyond the message.
class Reader {
public:
  explicit Reader(llvm::StringRef Message)
      : Cursor(Message.begin()), End(Message.end()) {}

  bool failed() const { return Failed; }
  const char *position() const { return Cursor; }

  /// Moves to the next field; returns false at the end or if it is malformed.
  bool next(Field &F) {
    // Nearly every field has a one-byte tag, and contents with a length of one
    // or two bytes or a value of one byte.
    if (End - Cursor >= 2 && static_cast<uint8_t>(*Cursor - 8) < 0x78) {
      const char *Start = Cursor, *Body = Start + 1;
      auto Tag = static_cast<uint8_t>(*Start);
      uint64_t Length;
      if ((Tag & 7) == 2 && shortLength(Body, End, Length)) {
        F.Number = Tag >> 3;
        F.WireType = Type::Bytes;
        F.Bytes = llvm::StringRef(Body, Length);
        Cursor = Body + Length;
        F.Whole = llvm::StringRef(Start, Cursor - Start);
        return true;
      }
      if ((Tag & 7) == 0 && static_cast<uint8_t>(*Body) < 0x80) {
        F.Number = Tag >> 3;
        F.WireType = Type::Varint;
        F.Varint = static_cast<uint8_t>(*Body);
        Cursor = Body + 1;
        F.Whole = llvm::StringRef(Start, 2);
        return true;
      }
    }
    return Cursor != End && nextUnusual(F);
  }

  /// Reads one varint (for packed fields).
  bool varint(uint64_t &V) {
    // Tags and most lengths are one byte.
    if (Cursor != End && static_cast<uint8_t>(*Cursor) < 0x80) {
      V = static_cast<uint8_t>(*Cursor++);
      return true;
    }
    V = 0;
    for (unsigned Shift = 0; Shift < 70 && Cursor != End; Shift += 7) {
      auto Byte = static_cast<uint8_t>(*Cursor++);
      V |= Shift < 64 ? uint64_t(Byte & 0x7f) << Shift : 0;
      if (Byte < 0x80)
        return true;
    }
    return false;
  }

private:
  /// Reads any legal field; there are bytes left.
  LLVM_ATTRIBUTE_NOINLINE bool nextUnusual(Field &F) {
    const char *Start = Cursor;
    uint64_t Tag;
    if (!varint(Tag) || Tag >> 3 == 0 || Tag >> 3 > 0x1fffffff)
      return fail();
    F.Number = static_cast<unsigned>(Tag >> 3);
    F.WireType = static_cast<Type>(Tag & 7);
    switch (Tag & 7) {
    case 0:
      if (!varint(F.Varint))
        return fail();
      break;
    case 1:
      if (!fixed(F.Varint, 8))
        return fail();
      break;
    case 2: {
      uint64_t Length;
      if (!varint(Length) || Length > static_cast<uint64_t>(End - Cursor))
        return fail();
      F.Bytes = llvm::StringRef(Cursor, Length);
      Cursor += Length;
      break;
    }
    case 3:
      if (!skipGroup(F.Number))
        return fail();
      break;
    case 5:
      if (!fixed(F.Varint, 4))
        return fail();
      break;
    default:
      return fail();
    }
    F.Whole = llvm::StringRef(Start, Cursor - Start);
    return true;
  }
  bool fixed(uint64_t &V, unsigned Size) {
    if (End - Cursor < static_cast<ptrdiff_t>(Size))
      return false;
    V = 0;
    std::memcpy(&V, Cursor, Size);
    Cursor += Size;
    return true;
  }
  /// Moves behind the end of group \p Number. Groups may nest.
  bool skipGroup(unsigned Number) {
    llvm::SmallVector<unsigned, 4> Open{Number};
    while (!Open.empty()) {
      uint64_t Tag, Ignored;
      if (Cursor == End || !varint(Tag) || Tag >> 3 == 0)
        return false;
      switch (Tag & 7) {
      case 0:
        if (!varint(Ignored))
          return false;
        break;
      case 1:
      case 5:
        if (!fixed(Ignored, (Tag & 7) == 1 ? 8 : 4))
          return false;
        break;
      case 2:
        if (!varint(Ignored) || Ignored > static_cast<uint64_t>(End - Cursor))
          return false;
        Cursor += Ignored;
        break;
      case 3:
        Open.push_back(static_cast<unsigned>(Tag >> 3));
        break;
      case 4:
        if (Open.pop_back_val() != Tag >> 3)
          return false;
        break;
      default:
        return false;
      }
    }
    return true;
  }
  bool fail() {
    Failed = true;
    Cursor = End;
    return false;
  }

  const char *Cursor;
  const char *End;
  bool Failed = false;
};

} // namespace graft::wire

#endif // GRAFT_LIB_SUPPORT_WIRE_H
