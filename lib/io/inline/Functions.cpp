//===- lib/io/inline/Functions.cpp - the function library of a graph ------===//
//
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "lib/io/inline/Functions.h"

#include "lib/graph/AttrWire.h"
#include "lib/io/Serialize.h"
#include "lib/ops/Ops.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/ADT/StringSwitch.h"

using namespace llvm;

namespace graft {

/// Field numbers of GraphDef, FunctionDefLibrary, FunctionDef, OpDef and
/// NodeDef.
enum : unsigned {
  LibraryField = 2,
  FunctionField = 1,
  SignatureField = 1,
  BodyField = 3,
  NameField = 1,
  OpField = 2,
  DeviceField = 4
};

FunctionLibrary::FunctionLibrary(const Graph &G) {
  Library->ParseFromString(G.otherField(LibraryField));
  for (const tensorflow::FunctionDef &Def : Library->function())
    ByName[Def.signature().name()] = &Def;
  findEffects();
}

FunctionRef FunctionLibrary::make(const tensorflow::NameAttrList &Call) const {
  FunctionRef F;
  F.Name = Call.name();
  F.Def = find(F.Name);
  for (const auto &[Key, Value] : Call.attr())
    F.Attrs[Key] = Value;
  return F;
}

static tensorflow::AttrValue valueOf(const Graph &G, NodeId N, StringRef Key) {
  tensorflow::AttrValue Value;
  if (auto Bytes = G.attr(N, Key);
      Bytes && !Value.ParseFromString(Bytes->str()))
    Value.Clear();
  return Value;
}

FunctionRef FunctionLibrary::get(const Graph &G, NodeId N,
                                 StringRef Key) const {
  return make(valueOf(G, N, Key).func());
}

std::vector<FunctionRef> FunctionLibrary::list(const Graph &G, NodeId N,
                                               StringRef Key) const {
  std::vector<FunctionRef> Result;
  tensorflow::AttrValue Value = valueOf(G, N, Key);
  for (const tensorflow::NameAttrList &Call : Value.list().func())
    Result.push_back(make(Call));
  return Result;
}

bool mayRunFunctions(StringRef Op) {
  return StringSwitch<bool>(Op)
      .Cases(op::PartitionedCall, op::StatefulPartitionedCall, true)
      .Cases(op::If, op::StatelessIf, op::Case, op::StatelessCase, true)
      .Cases(op::While, op::StatelessWhile, true)
      .Default(!findOp(Op));
}

std::vector<std::string>
FunctionLibrary::calledBy(const tensorflow::NodeDef &Node) const {
  std::vector<std::string> Result;
  if (!mayRunFunctions(Node.op()))
    return Result;
  auto See = [&](const std::string &Name) {
    if (find(Name))
      Result.push_back(Name);
  };
  See(Node.op());
  for (const auto &[Key, Value] : Node.attr()) {
    if (Value.has_func())
      See(Value.func().name());
    for (const tensorflow::NameAttrList &F : Value.list().func())
      See(F.name());
  }
  llvm::sort(Result); // The attributes have no order.
  return Result;
}

std::vector<std::string> FunctionLibrary::calledBy(const Graph &G,
                                                   NodeId N) const {
  if (!mayRunFunctions(G.opName(N)))
    return {};
  tensorflow::NodeDef Node;
  Node.set_op(G.opName(N).str());
  for (const AttrEntry &A : G.attrs(N))
    (*Node.mutable_attr())[A.Key.str()] = valueOf(G, N, A.Key);
  return calledBy(Node);
}

/// Calls \p F with each bytes field \p Number of \p Message.
template <typename Fn>
static void forEachBytes(StringRef Message, unsigned Number, Fn F) {
  wire::Field Each;
  for (wire::Reader R(Message); R.next(Each);)
    if (Each.Number == Number && Each.WireType == wire::Type::Bytes)
      F(Each.Bytes);
}

void forEachBodyNode(const Graph &G,
                     function_ref<void(StringRef Op, StringRef Device)> F) {
  std::string Library = G.otherField(LibraryField);
  forEachBytes(Library, FunctionField, [&](StringRef Function) {
    forEachBytes(Function, BodyField, [&](StringRef Node) {
      F(bytesField(Node, OpField).value_or(""),
        bytesField(Node, DeviceField).value_or(""));
    });
  });
}

StringSet<> functionNames(const Graph &G) {
  StringSet<> Names;
  std::string Library = G.otherField(LibraryField);
  forEachBytes(Library, FunctionField, [&](StringRef Function) {
    if (auto Signature = bytesField(Function, SignatureField))
      Names.insert(bytesField(*Signature, NameField).value_or(""));
  });
  return Names;
}

void replaceFunctions(
    Graph &G, const std::map<std::string, tensorflow::FunctionDef> &Defs) {
  for (size_t I = 0; I < G.otherFields().size(); ++I) {
    wire::Reader Outer(G.otherFields()[I]);
    wire::Field Library, F;
    if (!Outer.next(Library) || Library.Number != LibraryField ||
        Library.WireType != wire::Type::Bytes)
      continue;
    std::string Bytes;
    bool Changed = false;
    for (wire::Reader R(Library.Bytes); R.next(F);) {
      std::optional<StringRef> Name;
      if (F.Number == FunctionField && F.WireType == wire::Type::Bytes)
        if (auto Signature = bytesField(F.Bytes, SignatureField))
          Name = bytesField(*Signature, NameField);
      auto It = Name ? Defs.find(Name->str()) : Defs.end();
      if (It == Defs.end()) {
        Bytes.append(F.Whole.data(), F.Whole.size());
        continue;
      }
      wire::appendBytes(Bytes, FunctionField, serialize(It->second));
      Changed = true;
    }
    if (!Changed)
      continue;
    std::string Field;
    wire::appendBytes(Field, LibraryField, Bytes);
    G.setOtherField(I, Field);
  }
}

static bool isList(const tensorflow::OpDef::ArgDef &A) {
  return !A.number_attr().empty() || !A.type_list_attr().empty();
}

std::string FunctionLibrary::obstacle(const FunctionRef &F) const {
  if (!F.Def)
    return "the library has no function '" + F.Name + "'";
  for (const char *Key : {"_noinline", "_XlaMustCompile"})
    for (const auto &[Name, Value] : F.Def->attr())
      if (Name == Key && Value.b())
        return "function '" + F.Name + "' is marked " + Key;
  const tensorflow::OpDef &Sig = F.Def->signature();
  if (any_of(Sig.input_arg(), isList) || any_of(Sig.output_arg(), isList))
    return "function '" + F.Name + "' has an argument that is a list";
  StringSet<> Names;
  for (const auto &Arg : Sig.input_arg())
    Names.insert(Arg.name());
  for (const tensorflow::NodeDef &Node : F.Def->node_def()) {
    if (!Names.insert(Node.name()).second)
      return "function '" + F.Name + "' uses the name '" + Node.name() +
             "' twice";
    if (!findOp(Node.op()) && !find(Node.op()))
      return "function '" + F.Name + "' has op " + Node.op() +
             ", which TensorFlow does not know";
  }
  auto Resolves = [&](StringRef Text) {
    Text.consume_front("^");
    return Names.contains(Text.split(':').first);
  };
  for (const tensorflow::NodeDef &Node : F.Def->node_def())
    for (const std::string &Input : Node.input())
      if (!Resolves(Input))
        return "function '" + F.Name + "' reads '" + Input +
               "', but has no such node or argument";
  for (const auto &Arg : Sig.output_arg())
    if (auto It = F.Def->ret().find(Arg.name());
        It == F.Def->ret().end() || !Resolves(It->second))
      return "function '" + F.Name +
             "' has a result without a valid entry in 'ret'";
  return "";
}

/// Returns true if the op of \p Node has effects. Stores in \p Calls the
/// functions of the library that \p Node runs.
bool FunctionLibrary::opHasEffects(const tensorflow::NodeDef &Node,
                                   function_ref<void(StringRef)> Calls) const {
  bool IsCall = false, Unknown = false;
  auto See = [&](StringRef Name) {
    IsCall = true;
    if (find(Name))
      Calls(Name);
    else
      Unknown = true;
  };
  const OpDef *Def = findOp(Node.op());
  if (!Def)
    See(Node.op());
  else
    for (const auto &[Key, Value] : Node.attr()) {
      if (Value.has_func())
        See(Value.func().name());
      for (const tensorflow::NameAttrList &F : Value.list().func())
        See(F.name());
    }
  if (IsCall)
    return Unknown;
  if (Def->update().Kind != UpdateKind::None)
    return true;
  bool Draws = Def->attr("seed") && Def->attr("seed2");
  return Def->isStateful() && !Def->readsVariable() && !Draws &&
         !isVariableOp(Def->Name);
}

/// Walks from functions whose ops have effects to their callers. Uses no
/// recursion, because calls may nest deeply.
void FunctionLibrary::findEffects() {
  StringMap<std::vector<StringRef>> Callers;
  std::vector<StringRef> Work;
  for (const auto &Entry : ByName) {
    StringRef Name = Entry.getKey();
    bool Own = false;
    for (const tensorflow::NodeDef &Node : Entry.second->node_def())
      Own |= opHasEffects(
          Node, [&](StringRef Callee) { Callers[Callee].push_back(Name); });
    if (Own && Effects.insert(Name).second)
      Work.push_back(Name);
  }
  while (!Work.empty()) {
    StringRef Name = Work.back();
    Work.pop_back();
    for (StringRef Caller : Callers.lookup(Name))
      if (Effects.insert(Caller).second)
        Work.push_back(Caller);
  }
}

static void substitute(tensorflow::AttrValue &Value, const AttrMap &With) {
  auto In = [&](tensorflow::NameAttrList &F) {
    for (auto &[Key, Inner] : *F.mutable_attr())
      substitute(Inner, With);
  };
  if (!Value.placeholder().empty()) {
    if (auto It = With.find(Value.placeholder()); It != With.end())
      Value = It->second;
  } else if (Value.has_func()) {
    In(*Value.mutable_func());
  } else if (Value.has_list()) {
    for (tensorflow::NameAttrList &F : *Value.mutable_list()->mutable_func())
      In(F);
  }
}

AttrMap FunctionLibrary::attrsOf(const tensorflow::NodeDef &Node,
                                 const AttrMap &With) {
  AttrMap Result;
  for (const auto &[Key, Value] : Node.attr())
    substitute(Result[Key] = Value, With);
  return Result;
}

std::optional<unsigned> FunctionLibrary::portOf(StringRef Op,
                                                const AttrMap &Attrs,
                                                StringRef Output,
                                                unsigned Index) const {
  unsigned Port = 0;
  if (const OpDef *Def = findOp(Op)) {
    for (const ArgDef &A : Def->outputs()) {
      unsigned Count = 1;
      if (*A.NumberAttr || *A.TypeListAttr) {
        auto It = Attrs.find(*A.NumberAttr ? A.NumberAttr : A.TypeListAttr);
        if (It == Attrs.end())
          return std::nullopt;
        Count = *A.NumberAttr ? static_cast<unsigned>(It->second.i())
                              : It->second.list().type_size();
      }
      if (Output == A.Name)
        return Index < Count ? std::optional(Port + Index) : std::nullopt;
      Port += Count;
    }
  } else if (const tensorflow::FunctionDef *Def = find(Op)) {
    for (const auto &Arg : Def->signature().output_arg()) {
      if (Output == Arg.name())
        return Index == 0 ? std::optional(Port) : std::nullopt;
      ++Port;
    }
  }
  return std::nullopt;
}

} // namespace graft
