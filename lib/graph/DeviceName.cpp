//===- lib/graph/DeviceName.cpp - device strings ----------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "lib/graph/DeviceName.h"

#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringExtras.h"

using namespace llvm;

namespace graft {
namespace {

bool isIdentifier(StringRef Text) {
  return !Text.empty() && isAlpha(Text[0]) &&
         all_of(Text, [](char C) { return isAlnum(C) || C == '_'; });
}

/// Parses a number, or `*` for any.
bool parseIndex(StringRef Text, std::optional<unsigned> &Index) {
  if (Text == "*") {
    Index.reset();
    return true;
  }
  unsigned Value;
  if (Text.getAsInteger(10, Value))
    return false;
  Index = Value;
  return true;
}

bool parseDevice(ArrayRef<StringRef> Words, DeviceName &D) {
  if (Words.empty() || Words.size() > 2)
    return false;
  if (Words[0] != "*") {
    if (!isIdentifier(Words[0]))
      return false;
    D.Type = Words[0].upper();
  }
  return Words.size() == 1 || parseIndex(Words[1], D.Index);
}

bool isShortType(StringRef Word) {
  std::string Type = Word.upper();
  return Type == "CPU" || Type == "GPU" || Type == "TPU" ||
         StringRef(Type).starts_with("XLA_");
}

} // namespace

std::optional<DeviceName> DeviceName::parse(StringRef Text) {
  DeviceName D;
  Text.consume_front("/");
  if (Text.empty())
    return D;
  SmallVector<StringRef, 4> Parts;
  Text.split(Parts, '/');
  for (StringRef Part : Parts) {
    SmallVector<StringRef, 3> Words;
    Part.split(Words, ':');
    bool Good;
    if (Words[0] == "job" && Words.size() == 2) {
      Good = Words[1] == "*" || isIdentifier(Words[1]);
      D.Job = Words[1] == "*" ? "" : Words[1].str();
    } else if (Words[0] == "replica" && Words.size() == 2) {
      Good = parseIndex(Words[1], D.Replica);
    } else if (Words[0] == "task" && Words.size() == 2) {
      Good = parseIndex(Words[1], D.Task);
    } else if (Words[0] == "device") {
      Good = parseDevice(ArrayRef(Words).drop_front(), D);
    } else {
      Good = isShortType(Words[0]) && parseDevice(Words, D);
    }
    if (!Good)
      return std::nullopt;
  }
  return D;
}

std::string DeviceName::str() const {
  std::string Out;
  if (!Job.empty())
    Out += "/job:" + Job;
  if (Replica)
    Out += "/replica:" + utostr(*Replica);
  if (Task)
    Out += "/task:" + utostr(*Task);
  if (!Type.empty() || Index)
    Out += "/device:" + (Type.empty() ? "*" : Type);
  if (Index)
    Out += ":" + utostr(*Index);
  else if (!Type.empty())
    Out += ":*";
  return Out;
}

bool DeviceName::agrees(const DeviceName &Other) const {
  auto Same = [](const auto &A, const auto &B) { return !A || !B || *A == *B; };
  auto SameText = [](StringRef A, StringRef B) {
    return A.empty() || B.empty() || A == B;
  };
  return SameText(Job, Other.Job) && Same(Replica, Other.Replica) &&
         Same(Task, Other.Task) && SameText(Type, Other.Type) &&
         Same(Index, Other.Index);
}

std::optional<std::string> jobAndTask(StringRef Device) {
  auto D = DeviceName::parse(Device);
  if (!D || D->Job.empty() || !D->Task)
    return std::nullopt;
  return D->Job + ":" + std::to_string(*D->Task);
}

bool canBeOneDevice(StringRef A, StringRef B) {
  if (A == B || A.empty() || B.empty())
    return true;
  auto First = DeviceName::parse(A), Second = DeviceName::parse(B);
  return First && Second && First->agrees(*Second);
}

} // namespace graft
