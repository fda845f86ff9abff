//===- lib/io/inline/Functions.h - the function library of a graph *- C++ -*-=//
//
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#ifndef GRAFT_LIB_IO_INLINE_FUNCTIONS_H
#define GRAFT_LIB_IO_INLINE_FUNCTIONS_H

#include "lib/graph/Graph.h"

#include "tensorflow/core/framework/function.pb.h"

#include "google/protobuf/arena.h"
#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/ADT/StringSet.h"

#include <map>
#include <memory>
#include <string>

namespace graft {

/// Attributes by key, in an order that is always the same.
using AttrMap = std::map<std::string, tensorflow::AttrValue>;

/// A function, and what the placeholders in its attributes stand for.
struct FunctionRef {
  std::string Name;
  const tensorflow::FunctionDef *Def = nullptr;
  AttrMap Attrs;
};

/// The FunctionDefLibrary of a graph. It is read when it is made.
class FunctionLibrary {
public:
  explicit FunctionLibrary(const Graph &G);

  const tensorflow::FunctionDef *find(llvm::StringRef Name) const {
    auto It = ByName.find(Name);
    return It == ByName.end() ? nullptr : It->second;
  }
  /// Calls \p F for each function, in the order of the file.
  template <typename Fn> void forEach(Fn F) const {
    for (const auto &Def : Library->function())
      F(Def);
  }
  /// Whether \p F(NodeDef) is true for a node of a body.
  template <typename Fn> bool anyNode(Fn F) const {
    for (const auto &Def : Library->function())
      for (const auto &Node : Def.node_def())
        if (F(Node))
          return true;
    return false;
  }
  /// The function that attribute \p Key of \p N names.
  FunctionRef get(const Graph &G, NodeId N, llvm::StringRef Key) const;
  /// The functions that attribute \p Key of \p N lists.
  std::vector<FunctionRef> list(const Graph &G, NodeId N,
                                llvm::StringRef Key) const;

  /// The functions of the library that running \p Node runs: the bodies of
  /// control flow and of calls, but not what a dataset maps.
  std::vector<std::string> calledBy(const tensorflow::NodeDef &Node) const;
  std::vector<std::string> calledBy(const Graph &G, NodeId N) const;

  /// Why \p F cannot stand in the place of a call, or "".
  std::string obstacle(const FunctionRef &F) const;
  /// Whether running \p Def does more than compute its outputs.
  bool hasEffects(const tensorflow::FunctionDef &Def) const {
    return Effects.contains(Def.signature().name());
  }

  /// The attributes of a node of a body, with what placeholders stand for.
  static AttrMap attrsOf(const tensorflow::NodeDef &Node, const AttrMap &With);
  /// The port that output \p Index of \p Output is, of a node with op \p Op.
  std::optional<unsigned> portOf(llvm::StringRef Op, const AttrMap &Attrs,
                                 llvm::StringRef Output, unsigned Index) const;

private:
  FunctionRef make(const tensorflow::NameAttrList &Call) const;
  bool opHasEffects(const tensorflow::NodeDef &Node,
                    llvm::function_ref<void(llvm::StringRef)> Calls) const;
  void findEffects();

  /// Of the messages, which are freed at once.
  std::unique_ptr<google::protobuf::Arena> Memory =
      std::make_unique<google::protobuf::Arena>();
  tensorflow::FunctionDefLibrary *Library =
      google::protobuf::Arena::CreateMessage<tensorflow::FunctionDefLibrary>(
          Memory.get());
  llvm::StringMap<const tensorflow::FunctionDef *> ByName;
  llvm::StringSet<> Effects; ///< The functions that have effects.
};

/// Whether a node with op \p Op may run functions that it names, or is called
/// like the one that it runs.
bool mayRunFunctions(llvm::StringRef Op);

/// Calls \p F with the op and the device of each node of a body, which no
/// message is made for.
void forEachBodyNode(
    const Graph &G,
    llvm::function_ref<void(llvm::StringRef Op, llvm::StringRef Device)> F);

/// The names of the functions of \p G.
llvm::StringSet<> functionNames(const Graph &G);

/// Writes \p Defs in the place of the functions that have their names. All
/// other functions of \p G stay byte for byte.
void replaceFunctions(
    Graph &G, const std::map<std::string, tensorflow::FunctionDef> &Defs);

} // namespace graft

#endif // GRAFT_LIB_IO_INLINE_FUNCTIONS_H
