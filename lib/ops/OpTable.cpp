//===- lib/ops/OpTable.cpp - what TensorFlow's registry says ----*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "lib/ops/OpTable.h"

#include "lib/ops/Ops.h"

#include <algorithm>
#include <array>
#include <string_view>

using namespace llvm;

namespace graft {
namespace {

constexpr ArgDef Args[] = {
#define GRAFT_ARG(Name, Type, TypeAttr, NumberAttr, TypeListAttr, IsRef)       \
  {Name, Type, TypeAttr, NumberAttr, TypeListAttr, IsRef},
#include "lib/ops/OpTable.inc"
};

constexpr AttrDef Attrs[] = {
#define GRAFT_ATTR(Name, Type, HasDefault, Default)                            \
  {Name, Type, HasDefault, Default},
#include "lib/ops/OpTable.inc"
};

constexpr OpDef Ops[] = {
#define GRAFT_OP(Name, FirstArg, NumInputs, NumOutputs, FirstAttr, NumAttrs,   \
                 Flags)                                                        \
  {Name, FirstArg, NumInputs, NumOutputs, FirstAttr, NumAttrs, Flags},
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

/// What the other tables say of each op, so that nothing is looked up by name.
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

} // namespace

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
