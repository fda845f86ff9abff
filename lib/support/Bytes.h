//===- lib/support/Bytes.h - words of bytes, equality, hashes ---*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
// Operations on names and keys of a graph. They are inline, because most names
// are so short that a call costs more than the work.
//
//===----------------------------------------------------------------------===//

#ifndef GRAFT_LIB_SUPPORT_BYTES_H
#define GRAFT_LIB_SUPPORT_BYTES_H

#include "llvm/ADT/StringRef.h"

#include <cstdint>
#include <cstring>

namespace graft {

inline uint32_t load32(const char *P) {
  uint32_t V;
  std::memcpy(&V, P, sizeof V);
  return V;
}

inline uint64_t load64(const char *P) {
  uint64_t V;
  std::memcpy(&V, P, sizeof V);
  return V;
}

/// Copies \p Size bytes and returns the end of the copy. Fast for names: up to
/// 64 bytes are copied by a few moves of words that may overlap.
inline char *copyBytes(char *Out, const char *From, size_t Size) {
  struct Words {
    uint64_t A, B;
  };
  if (Size > 64) {
    std::memcpy(Out, From, Size);
  } else if (Size >= 16) {
    Words First, Last, Second, Third;
    std::memcpy(&First, From, 16);
    std::memcpy(&Last, From + Size - 16, 16);
    if (Size > 32) {
      std::memcpy(&Second, From + 16, 16);
      std::memcpy(&Third, From + Size - 32, 16);
      std::memcpy(Out + 16, &Second, 16);
      std::memcpy(Out + Size - 32, &Third, 16);
    }
    std::memcpy(Out, &First, 16);
    std::memcpy(Out + Size - 16, &Last, 16);
  } else if (Size >= 8) {
    uint64_t First = load64(From), Last = load64(From + Size - 8);
    std::memcpy(Out, &First, 8);
    std::memcpy(Out + Size - 8, &Last, 8);
  } else if (Size >= 4) {
    uint32_t First = load32(From), Last = load32(From + Size - 4);
    std::memcpy(Out, &First, 4);
    std::memcpy(Out + Size - 4, &Last, 4);
  } else {
    for (size_t I = 0; I < Size; ++I)
      Out[I] = From[I];
  }
  return Out + Size;
}

/// Returns true if the \p Size bytes at \p A and at \p B are equal.
inline bool equalBytes(const char *A, const char *B, size_t Size) {
  // Names differ more often in their ends than in their beginnings.
  if (Size > 16)
    return load64(A + Size - 8) == load64(B + Size - 8) &&
           std::memcmp(A, B, Size - 8) == 0;
  // Two words that may overlap.
  if (Size >= 8)
    return ((load64(A) ^ load64(B)) |
            (load64(A + Size - 8) ^ load64(B + Size - 8))) == 0;
  if (Size >= 4)
    return ((load32(A) ^ load32(B)) |
            (load32(A + Size - 4) ^ load32(B + Size - 4))) == 0;
  for (size_t I = 0; I < Size; ++I)
    if (A[I] != B[I])
      return false;
  return true;
}

inline bool equalBytes(llvm::StringRef A, llvm::StringRef B) {
  return A.size() == B.size() && equalBytes(A.begin(), B.begin(), A.size());
}

/// Returns true if two texts are equal. They are usually at the same address,
/// and then the function reads no byte of them.
inline bool isSameText(llvm::StringRef A, llvm::StringRef B) {
  return A.size() == B.size() &&
         (A.data() == B.data() || equalBytes(A.begin(), B.begin(), A.size()));
}

/// Returns a hash of \p Text for tables in memory. Multiplies and folds 16
/// bytes in a step. The last 16 bytes may overlap those of the step before.
inline uint32_t hashBytes(llvm::StringRef Text) {
  constexpr uint64_t K0 = 0xa0761d6478bd642f, K1 = 0xe7037ed1a0b428db;
  auto Mix = [](uint64_t A, uint64_t B) {
    auto Product = static_cast<unsigned __int128>(A) * B;
    return static_cast<uint64_t>(Product) ^
           static_cast<uint64_t>(Product >> 64);
  };
  const char *P = Text.data();
  size_t Size = Text.size();
  uint64_t Hash = Size ^ K0, A = 0, B = 0;
  if (Size > 16) {
    const char *Last = P + Size - 16;
    do {
      Hash = Mix(load64(P) ^ K1, load64(P + 8) ^ Hash);
      P += 16;
    } while (P < Last);
    A = load64(Last);
    B = load64(Last + 8);
  } else if (Size >= 8) {
    A = load64(P);
    B = load64(P + Size - 8);
  } else if (Size >= 4) {
    A = load32(P);
    B = load32(P + Size - 4);
  } else if (Size > 0) {
    A = static_cast<uint8_t>(P[0]) | static_cast<uint8_t>(P[Size / 2]) << 8 |
        static_cast<uint8_t>(P[Size - 1]) << 16;
  }
  Hash = Mix(A ^ K1, B ^ Hash);
  return static_cast<uint32_t>(Hash ^ Hash >> 32);
}

} // namespace graft

#endif // GRAFT_LIB_SUPPORT_BYTES_H
