//===- lib/infer/facts/NumberSets.cpp - many sets that share parts --------===//
//
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "lib/infer/facts/NumberSets.h"

#include "llvm/ADT/bit.h"

namespace graft {

NumberSets::NumberSets(uint64_t Count) {
  unsigned Top = 0;
  while ((uint64_t(32) << Top) < Count)
    ++Top;
  Levels.resize(Top + 1);
}

uint32_t NumberSets::intern(unsigned At, Pair Set) {
  Level &L = Levels[At];
  if (Set == Pair(0, 0))
    return None;
  auto [It, New] = L.Ids.try_emplace(Set, static_cast<uint32_t>(L.Sets.size()));
  if (New)
    L.Sets.push_back(Set);
  return It->second;
}

uint32_t NumberSets::single(unsigned At, uint32_t Number) {
  if (At == 0)
    return intern(0, {uint32_t(1) << (Number & 31), 0});
  uint32_t Part = single(At - 1, Number);
  bool Upper = (Number >> (At + 4)) & 1;
  return intern(At, Upper ? Pair(0, Part) : Pair(Part, 0));
}

uint32_t NumberSets::unite(unsigned At, uint32_t A, uint32_t B) {
  if (A == B || B == None)
    return A;
  if (A == None)
    return B;
  if (A > B)
    std::swap(A, B);
  auto [It, New] = Levels[At].Unions.try_emplace({A, B}, 0);
  if (!New)
    return It->second;
  Pair X = Levels[At].Sets[A], Y = Levels[At].Sets[B];
  uint32_t Both = At == 0 ? intern(0, {X.first | Y.first, 0})
                          : intern(At, {unite(At - 1, X.first, Y.first),
                                        unite(At - 1, X.second, Y.second)});
  Levels[At].Unions[{A, B}] = Both;
  return Both;
}

uint32_t NumberSets::firstOutside(uint32_t A, uint32_t B) {
  uint32_t First = 0;
  for (unsigned At = top(); At != 0; --At) {
    Pair X = Levels[At].Sets[A], Y = Levels[At].Sets[B];
    bool Upper = unite(At - 1, X.first, Y.first) == Y.first;
    First |= uint32_t(Upper) << (At + 4);
    A = Upper ? X.second : X.first;
    B = Upper ? Y.second : Y.first;
  }
  return First +
         llvm::countr_zero(Levels[0].Sets[A].first & ~Levels[0].Sets[B].first);
}

} // namespace graft
