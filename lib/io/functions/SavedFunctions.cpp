//===- lib/io/functions/SavedFunctions.cpp - functions of TensorFlow 2 ----===//
//
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "lib/io/functions/SavedFunctions.h"

#include "lib/ops/Ops.h"

#include "tensorflow/core/protobuf/meta_graph.pb.h"

#include "llvm/ADT/STLExtras.h"

#include <deque>

using namespace llvm;
using namespace tensorflow; // Messages only.

namespace graft {
namespace {

/// Returns the only call in \p Def if \p Def only forwards its arguments to the
/// call and returns the results, else null.
const NodeDef *onlyCall(const FunctionDef &Def,
                        const FunctionLibrary &Library) {
  const NodeDef *Call = nullptr;
  for (const NodeDef &Node : Def.node_def()) {
    StringRef Op(Node.op());
    if (Op == op::Identity || Op == op::IdentityN || Op == op::NoOp)
      continue;
    if (Call ||
        (Op != op::PartitionedCall && Op != op::StatefulPartitionedCall))
      return nullptr;
    Call = &Node;
  }
  if (!Call)
    return nullptr;
  StringSet<> Arguments;
  for (const OpDef_ArgDef &Arg : Def.signature().input_arg())
    Arguments.insert(Arg.name());
  for (StringRef Input : Call->input())
    if (!Arguments.contains(Input.split(':').first))
      return nullptr;
  auto F = Call->attr().find("f");
  return F != Call->attr().end() && Library.find(F->second.func().name())
             ? Call
             : nullptr;
}

class Finder {
public:
  Finder(const SavedObjectGraph &Objects, const FunctionLibrary &Library)
      : Objects(Objects), Library(Library) {}

  void run();

  SavedFunctions Found;

private:
  void addObject(int Id, const std::string &Path, unsigned Depth);
  void addFunction(StringRef Name, const std::string &Path,
                   const std::string &Shown, bool IsOuter);
  Captures capturesOf(const FunctionDef &Def) const;

  const SavedObjectGraph &Objects;
  const FunctionLibrary &Library;
  /// Objects to visit: their ids, paths and distances from the root.
  struct Place {
    int Id;
    std::string Path;
    unsigned Depth;
  };
  std::deque<Place> Work;
  std::vector<bool> Seen;
  StringMap<size_t> IndexOf; ///< Into Found.Called, by the name of the body.
  /// Functions without effects: the name of the body and its path.
  std::vector<std::pair<std::string, std::string>> Inner;
};

/// Returns the path of the member \p Name of the object at \p Path. Objects may
/// nest to any depth, so long paths are cut.
static std::string below(StringRef Path, StringRef Name, bool IsMap) {
  constexpr size_t Most = 400;
  if (Path.size() > Most)
    Path = "...";
  if (IsMap)
    return (Path + "['" + Name + "']").str();
  return Path.empty() ? Name.str() : (Path + "." + Name).str();
}

/// Returns the captures of \p Def that the object graph lists. These are the
/// last arguments.
Captures Finder::capturesOf(const FunctionDef &Def) const {
  Captures Result;
  unsigned Count = Def.signature().input_arg_size();
  Result.First = Count;
  auto It = Objects.concrete_functions().find(Def.signature().name());
  if (It == Objects.concrete_functions().end())
    return Result;
  const auto &Bound = It->second.bound_inputs();
  if (unsigned(Bound.size()) > Count)
    return Result;
  Result.First = Count - Bound.size();
  Result.Variables.resize(Count);
  for (auto [I, Id] : enumerate(Bound))
    if (Id >= 0 && Id < Objects.nodes_size() &&
        Objects.nodes(Id).has_variable()) {
      const SavedVariable &V = Objects.nodes(Id).variable();
      Result.Variables[Result.First + I] = {V.name(), V.dtype(), V.shape()};
    }
  return Result;
}

void Finder::addFunction(StringRef Name, const std::string &Path,
                         const std::string &Shown, bool IsOuter) {
  const FunctionDef *Def = Library.find(Name);
  if (!Def)
    return;
  bool IsInner = !IsOuter && !Library.hasEffects(*Def);
  Captures Captured = capturesOf(*Def);
  // Enters functions that only call another function, each at most once.
  StringSet<> Entered;
  while (const NodeDef *Call = onlyCall(*Def, Library)) {
    const FunctionDef *Inner = Library.find(Call->attr().at("f").func().name());
    if (!Entered.insert(Inner->signature().name()).second ||
        Inner->signature().input_arg_size() != Call->input_size())
      break;
    StringMap<unsigned> ArgumentOf;
    for (auto [I, Arg] : enumerate(Def->signature().input_arg()))
      ArgumentOf[Arg.name()] = static_cast<unsigned>(I);
    Captures Its;
    Its.First = Call->input_size();
    Its.Variables.resize(Call->input_size());
    for (auto [I, Input] : enumerate(Call->input())) {
      unsigned From = ArgumentOf.lookup(StringRef(Input).split(':').first);
      if (From < Captured.Variables.size())
        Its.Variables[I] = Captured.Variables[From];
      // Bound arguments come last, but the call may pass them in another order.
      if (From >= Captured.First && I < Its.First)
        Its.First = static_cast<unsigned>(I);
      if (From < Captured.First)
        Its.First = Call->input_size();
    }
    Captured = std::move(Its);
    Def = Inner;
  }
  if (IsInner) {
    Inner.push_back({Def->signature().name(), Shown});
    return;
  }
  auto [It, New] =
      IndexOf.try_emplace(Def->signature().name(), Found.Called.size());
  if (New)
    Found.Called.push_back(
        {Def->signature().name(), {}, Shown, std::move(Captured), {}});
  if (auto &Paths = Found.Called[It->second].Paths; !is_contained(Paths, Path))
    Paths.push_back(Path);
}

void Finder::addObject(int Id, const std::string &Path, unsigned Depth) {
  const SavedObject &Object = Objects.nodes(Id);
  bool IsOuter = Depth <= 1;
  if (Object.has_function())
    for (auto [I, Name] : enumerate(Object.function().concrete_functions()))
      addFunction(Name, Path,
                  Object.function().concrete_functions_size() == 1
                      ? Path
                      : (Path + " (trace " + Twine(I) + ")").str(),
                  IsOuter);
  if (Object.has_bare_concrete_function())
    addFunction(Object.bare_concrete_function().concrete_function_name(), Path,
                Path, IsOuter);
  // Users do not call the functions that create and fill a table.
  if (Object.has_function() || Object.has_resource())
    return;
  bool IsMap = Object.has_user_object() &&
               Object.user_object().identifier() == "signature_map";
  for (const auto &Child : Object.children())
    if (Child.node_id() >= 0 && Child.node_id() < Objects.nodes_size() &&
        !Seen[Child.node_id()])
      Work.push_back({Child.node_id(), below(Path, Child.local_name(), IsMap),
                      IsMap ? Depth : Depth + 1});
}

void Finder::run() {
  Seen.resize(Objects.nodes_size());
  Work.push_back({0, "", 0});
  // Breadth first: objects near the root have short paths.
  while (!Work.empty()) {
    Place At = std::move(Work.front());
    Work.pop_front();
    if (Seen[At.Id])
      continue;
    Seen[At.Id] = true;
    addObject(At.Id, At.Path, At.Depth);
  }
  for (const auto &[Body, Shown] : Inner)
    if (!IndexOf.contains(Body))
      Found.Inner.push_back(Shown);
  for (const SavedObject &Object : Objects.nodes())
    if (Object.has_captured_tensor())
      if (auto It = IndexOf.find(Object.captured_tensor().concrete_function());
          It != IndexOf.end())
        Found.Called[It->second].Named.push_back(
            Object.captured_tensor().name());
  sort(Found.Inner);
  Found.Inner.erase(llvm::unique(Found.Inner), Found.Inner.end());
}

} // namespace

bool hasSavedFunctions(const MetaGraphDef &Meta) {
  return Meta.object_graph_def().concrete_functions_size() != 0;
}

SavedFunctions findSavedFunctions(const MetaGraphDef &Meta,
                                  const FunctionLibrary &Library) {
  if (Meta.object_graph_def().nodes_size() == 0)
    return {};
  Finder F(Meta.object_graph_def(), Library);
  F.run();
  return std::move(F.Found);
}

} // namespace graft
