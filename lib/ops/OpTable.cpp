//===- lib/ops/OpTable.cpp - what TensorFlow's registry says ----*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "lib/ops/OpTable.h"

#include <algorithm>

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

/// The entry of a table sorted by name, or null.
template <typename T, size_t N, typename NameOf>
const T *findSorted(const T (&Table)[N], StringRef Name, NameOf Get) {
  const T *It = std::lower_bound(std::begin(Table), std::end(Table), Name,
                                 [&](const T &Entry, StringRef Key) {
                                   return StringRef(Get(Entry)) < Key;
                                 });
  return It != std::end(Table) && Name == Get(*It) ? It : nullptr;
}

const char *nameItself(const char *Name) { return Name; }

} // namespace

bool isFloating(unsigned Type) {
  unsigned T = Type > RefTypeOffset ? Type - RefTypeOffset : Type;
  return T == DT_FLOAT || T == DT_DOUBLE || T == DT_HALF || T == DT_BFLOAT16;
}

bool isVariableOp(StringRef Op) {
  return Op == "VarHandleOp" || Op == "VariableV2" || Op == "Variable";
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
  const NamedUpdate *U =
      findSorted(Updates, Name, [](const NamedUpdate &E) { return E.Op; });
  return U ? U->Update : UpdateDef();
}

bool OpDef::readsVariable() const {
  return findSorted(Readers, Name, nameItself) != nullptr;
}

bool OpDef::hasSharedName() const {
  return findSorted(SharedNames, Name, nameItself) != nullptr;
}

ArrayRef<OpDef> allOps() { return Ops; }

const OpDef *findOp(StringRef Name) {
  return findSorted(Ops, Name, [](const OpDef &Op) { return Op.Name; });
}

} // namespace graft
