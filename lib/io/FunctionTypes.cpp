//===- lib/io/FunctionTypes.cpp - types of edges in a function --*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
// Makes the checks of TensorFlow's InstantiateFunction, which runs for every
// call of a function.
//
//===----------------------------------------------------------------------===//

#include "lib/io/FunctionTypes.h"

#include "lib/ops/OpTable.h"

#include "tensorflow/core/framework/function.pb.h"

#include "llvm/ADT/DenseMap.h"
#include "llvm/Support/FormatVariadic.h"

#include <google/protobuf/text_format.h>

#include <algorithm>
#include <optional>

using namespace llvm;

namespace graft {
namespace {

using tensorflow::AttrValue;
using tensorflow::FunctionDef;
using tensorflow::NodeDef;

/// The types of the tensors of an argument: Count times One, or a list.
struct Types {
  int64_t Count = 0;
  unsigned One = DT_INVALID;
  std::vector<unsigned> List;

  unsigned at(int64_t I) const { return List.empty() ? One : List[I]; }
};

unsigned base(unsigned Type) {
  return Type > RefTypeOffset ? Type - RefTypeOffset : Type;
}

/// Returns an attribute or its default, or nothing if each call sets the value.
std::optional<AttrValue> attr(const NodeDef &Node, const OpDef &Op,
                              const char *Key) {
  AttrValue Value;
  if (auto It = Node.attr().find(Key); It != Node.attr().end()) {
    Value = It->second;
  } else {
    const AttrDef *Def = Op.attr(Key);
    if (!Def || !Def->HasDefault ||
        !google::protobuf::TextFormat::ParseFromString(Def->Default, &Value))
      return std::nullopt;
  }
  if (Value.value_case() == AttrValue::kPlaceholder)
    return std::nullopt;
  return Value;
}

std::optional<Types> typesOf(const NodeDef &Node, const OpDef &Op,
                             const ArgDef &A) {
  Types Result;
  if (*A.TypeListAttr) {
    auto Value = attr(Node, Op, A.TypeListAttr);
    if (!Value)
      return std::nullopt;
    for (int Type : Value->list().type())
      Result.List.push_back(base(static_cast<unsigned>(Type)));
    Result.Count = static_cast<int64_t>(Result.List.size());
    return Result;
  }
  Result.Count = 1;
  Result.One = base(A.Type);
  if (*A.NumberAttr) {
    auto Value = attr(Node, Op, A.NumberAttr);
    if (!Value || Value->i() < 0)
      return std::nullopt;
    Result.Count = Value->i();
  }
  if (*A.TypeAttr) {
    auto Value = attr(Node, Op, A.TypeAttr);
    if (!Value)
      return std::nullopt;
    Result.One = base(static_cast<unsigned>(Value->type()));
  }
  return Result;
}

/// Returns the types of an argument of a signature without attributes.
std::optional<Types> typesOf(const tensorflow::OpDef::ArgDef &A) {
  if (A.type() == 0 || !A.number_attr().empty())
    return std::nullopt;
  Types Result;
  Result.Count = 1;
  Result.One = base(static_cast<unsigned>(A.type()));
  return Result;
}

class FunctionTypes {
public:
  FunctionTypes(const FunctionDef &Def, const FunctionsByName &Functions,
                function_ref<void(const std::string &)> Fault)
      : Def(Def), Functions(Functions), Fault(Fault) {}

  void run() {
    for (const auto &A : Def.signature().input_arg())
      Arguments[A.name()] = &A;
    for (const NodeDef &Node : Def.node_def())
      Nodes[Node.name()] = &Node;
    for (const NodeDef &Node : Def.node_def())
      check(Node);
    for (const auto &A : Def.signature().output_arg()) {
      auto It = Def.ret().find(A.name());
      auto Declared = typesOf(A);
      if (It == Def.ret().end() || !Declared)
        continue;
      unsigned Type = typeOf(It->second);
      if (Type != DT_INVALID && Type != Declared->One)
        Fault(formatv("returns '{0}' of type {1} as its result '{2}' of type "
                      "{3}",
                      It->second, typeName(Type), A.name(),
                      typeName(Declared->One)));
    }
  }

private:
  const FunctionDef *callee(const NodeDef &Node) const {
    auto It = Functions.find(Node.op());
    return It == Functions.end() ? nullptr : It->second;
  }

  /// Returns the type of the one tensor that is called \p Text, or DT_INVALID.
  unsigned typeOf(StringRef Text) {
    auto [Name, Rest] = Text.split(':');
    auto [Result, Number] = Rest.split(':');
    if (auto It = Arguments.find(Name); It != Arguments.end()) {
      auto Of = typesOf(*It->second);
      if (!Of || (!Rest.empty() && Rest != "0"))
        return DT_INVALID;
      return Of->One;
    }
    auto It = Nodes.find(Name);
    int64_t Index = 0;
    if (It == Nodes.end() || Number.getAsInteger(10, Index) || Index < 0)
      return DT_INVALID;
    const Types *Of = results(*It->second, Result);
    if (!Of || Index >= Of->Count)
      return DT_INVALID;
    return Of->at(Index);
  }

  /// Returns the types of the tensors in output \p Result of \p Node, or null
  /// if they are not known.
  const Types *results(const NodeDef &Node, StringRef Result) {
    auto [It, New] = Known.try_emplace({&Node, Result});
    if (!New)
      return It->second ? &*It->second : nullptr;
    if (const OpDef *Op = findOp(Node.op())) {
      for (const ArgDef &A : Op->outputs())
        if (Result == A.Name)
          It->second = typesOf(Node, *Op, A);
    } else if (const FunctionDef *Callee = callee(Node)) {
      for (const auto &A : Callee->signature().output_arg())
        if (Result == A.name())
          It->second = typesOf(A);
    }
    return It->second ? &*It->second : nullptr;
  }

  void check(const NodeDef &Node) {
    int Next = 0;
    auto Take = [&](StringRef Name, const std::optional<Types> &Of) {
      for (int64_t I = 0; Of && I < Of->Count; ++I, ++Next) {
        if (Next == Node.input_size()) {
          Fault(formatv(
              "has node '{0}', which has fewer inputs than its op takes",
              Node.name()));
          return false;
        }
        StringRef Input = Node.input(Next);
        // `node:output` without an index may name several tensors.
        if (!Arguments.contains(Input.split(':').first) &&
            Input.count(':') != 2 && !Input.starts_with("^"))
          return false;
        unsigned Type = typeOf(Input);
        if (Input.starts_with("^") ||
            (Type != DT_INVALID && Of->at(I) != DT_INVALID &&
             Type != Of->at(I))) {
          Fault(formatv("has node '{0}', whose input {1} is '{2}' of type {3}, "
                        "but must be {4}",
                        Node.name(), Name, Input,
                        Input.starts_with("^") ? "control" : typeName(Type),
                        typeName(Of->at(I))));
          return false;
        }
      }
      return Of.has_value();
    };
    if (const OpDef *Op = findOp(Node.op())) {
      for (const ArgDef &A : Op->inputs())
        if (!Take(A.Name, typesOf(Node, *Op, A)))
          return;
    } else if (const FunctionDef *Callee = callee(Node)) {
      for (const auto &A : Callee->signature().input_arg())
        if (!Take(A.name(), typesOf(A)))
          return;
    } else {
      return;
    }
    for (; Next < Node.input_size(); ++Next)
      if (!StringRef(Node.input(Next)).starts_with("^"))
        return Fault(
            formatv("has node '{0}', which has more inputs than its op takes",
                    Node.name()));
  }

  const FunctionDef &Def;
  const FunctionsByName &Functions;
  function_ref<void(const std::string &)> Fault;
  StringMap<const tensorflow::OpDef::ArgDef *> Arguments;
  StringMap<const NodeDef *> Nodes;
  DenseMap<std::pair<const NodeDef *, StringRef>, std::optional<Types>> Known;
};

} // namespace

void checkFunctionTypes(const FunctionDef &Def,
                        const FunctionsByName &Functions,
                        function_ref<void(const std::string &)> Fault) {
  FunctionTypes(Def, Functions, Fault).run();
}

} // namespace graft
