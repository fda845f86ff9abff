//===- lib/ops/OpTable.cpp - TensorFlow's op registry -----------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "lib/ops/OpTable.h"

#include "lib/ops/Ops.h"

#include <algorithm>
#include <array>
#include <string_view>
#include <tuple>

using namespace llvm;

namespace graft {
namespace {

constexpr ArgDef Args[] = {
#define GRAFT_ARG(Name, Type, TypeAttr, NumberAttr, TypeListAttr, IsRef)       \
  {Name, Type, TypeAttr, NumberAttr, TypeListAttr, IsRef},
#include "lib/ops/OpTable.inc"
};

constexpr AttrLimit Limits[] = {
#define GRAFT_LIMIT(HasMinimum, Minimum, Types, Strings)                       \
  {HasMinimum, Minimum, Types, Strings},
#include "lib/ops/OpTable.inc"
};
static_assert(std::size(Limits) <= UINT8_MAX + 1);

constexpr AttrDef Attrs[] = {
#define GRAFT_ATTR(Name, Type, HasDefault, Limit, Default)                     \
  {Name, Type, HasDefault, Limit, Default},
#include "lib/ops/OpTable.inc"
};

constexpr OpDef Ops[] = {
#define GRAFT_OP(Name, FirstArg, NumInputs, NumOutputs, FirstAttr, NumAttrs,   \
                 Flags, RemovedIn)                                             \
  {Name,      FirstArg, NumInputs, NumOutputs,                                 \
   FirstAttr, NumAttrs, Flags,     RemovedIn},
#include "lib/ops/OpTable.inc"
};

struct NamedUpdate {
  const char *Op;
  UpdateDef Update;
};

constexpr NamedUpdate Updates[] = {
#define GRAFT_UPDATE(OpName, NumVars, Grad, Indices, Kind)                     \
  {OpName, {UpdateKind::Kind, NumVars, Grad, Indices}},
#include "lib/ops/OpTable.inc"
};

constexpr const char *Readers[] = {
#define GRAFT_READ(OpName, Handle) OpName,
#include "lib/ops/OpTable.inc"
};

constexpr const char *SharedNames[] = {
#define GRAFT_SHARED_NAME(OpName) OpName,
#include "lib/ops/OpTable.inc"
};

constexpr size_t NumOps = std::size(Ops);
constexpr uint8_t NoUpdate = 0xff;

/// The rows of the other tables by op, so that no lookup by name is needed.
struct Traits {
  std::array<uint8_t, NumOps> Update{}; ///< Index into Updates, or NoUpdate.
  std::array<bool, NumOps> Reads{};
  std::array<bool, NumOps> SharedName{};
  bool Complete = false; ///< Every row has its op.
};

/// All tables are sorted by name, so one walk over each finds their rows.
constexpr Traits AllTraits = [] {
  static_assert(std::size(Updates) < NoUpdate);
  Traits T;
  size_t U = 0, R = 0, S = 0;
  for (size_t I = 0; I < NumOps; ++I) {
    std::string_view Name = Ops[I].Name;
    T.Update[I] = NoUpdate;
    if (U < std::size(Updates) && Name == Updates[U].Op)
      T.Update[I] = static_cast<uint8_t>(U++);
    if (R < std::size(Readers) && Name == Readers[R]) {
      T.Reads[I] = true;
      ++R;
    }
    if (S < std::size(SharedNames) && Name == SharedNames[S]) {
      T.SharedName[I] = true;
      ++S;
    }
  }
  T.Complete = U == std::size(Updates) && R == std::size(Readers) &&
               S == std::size(SharedNames);
  return T;
}();
static_assert(AllTraits.Complete);

constexpr std::pair<unsigned, const char *> TypeNames[] = {
#define GRAFT_TYPE(Number, Name) {Number, Name},
#include "lib/ops/OpTable.inc"
};

} // namespace

const int GraphVersion =
#define GRAFT_GRAPH_VERSION(Consumer) Consumer;
#include "lib/ops/OpTable.inc"

    std::string typeName(unsigned Type) {
  bool IsRef = Type > RefTypeOffset;
  for (auto [Number, Name] : TypeNames)
    if (Number == (IsRef ? Type - RefTypeOffset : Type))
      return IsRef ? std::string(Name) + " ref" : Name;
  return "type number " + std::to_string(Type);
}

bool isFloating(unsigned Type) {
  unsigned T = Type > RefTypeOffset ? Type - RefTypeOffset : Type;
  return T == DT_FLOAT || T == DT_DOUBLE || T == DT_HALF || T == DT_BFLOAT16;
}

bool isComplex(unsigned Type) {
  unsigned T = Type > RefTypeOffset ? Type - RefTypeOffset : Type;
  return T == DT_COMPLEX64 || T == DT_COMPLEX128;
}

bool isVariableOp(StringRef Op) {
  return Op == op::VarHandleOp || Op == op::VariableV2 || Op == op::Variable;
}

bool isBatchRead(StringRef Op) {
  return Op.starts_with(op::QueueDequeue) || Op == op::IteratorGetNext ||
         Op == op::IteratorGetNextSync;
}

bool AttrLimit::allowsString(StringRef Value) const {
  for (StringRef Rest = Strings, One; !Rest.empty();) {
    std::tie(One, Rest) = Rest.split('|');
    if (One == Value)
      return true;
  }
  // The last string may be empty.
  return !*Strings || (Value.empty() && StringRef(Strings).ends_with("|"));
}

const AttrLimit &AttrDef::limit() const { return Limits[Limit]; }

ArrayRef<ArgDef> OpDef::inputs() const { return {Args + FirstArg, NumInputs}; }

ArrayRef<ArgDef> OpDef::outputs() const {
  return {Args + FirstArg + NumInputs, NumOutputs};
}

ArrayRef<AttrDef> OpDef::attrs() const { return {Attrs + FirstAttr, NumAttrs}; }

const AttrDef *OpDef::attr(StringRef Name) const {
  for (const AttrDef &A : attrs())
    if (Name == A.Name)
      return &A;
  return nullptr;
}

UpdateDef OpDef::update() const {
  uint8_t Row = AllTraits.Update[this - Ops];
  return Row == NoUpdate ? UpdateDef() : Updates[Row].Update;
}

bool OpDef::readsVariable() const { return AllTraits.Reads[this - Ops]; }

bool OpDef::hasSharedName() const { return AllTraits.SharedName[this - Ops]; }

ArrayRef<OpDef> allOps() { return Ops; }

const OpDef *findOp(StringRef Name) {
  const OpDef *Op = std::lower_bound(
      std::begin(Ops), std::end(Ops), Name,
      [](const OpDef &Op, StringRef Key) { return StringRef(Op.Name) < Key; });
  return Op != std::end(Ops) && Name == Op->Name ? Op : nullptr;
}

} // namespace graft
