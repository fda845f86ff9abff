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

/// Attributes by key, always in the same order.
using AttrMap = std::map<std::string, tensorflow::AttrValue>;

/// A function and the values of the placeholders in its attributes.
struct FunctionRef {
  std::string Name;
  const tensorflow::FunctionDef *Def = nullptr;
  AttrMap Attrs;
};

/// The FunctionDefLibrary of a graph, parsed by the constructor.
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
  /// Returns true if \p F(NodeDef) is true for a node of a body.
  template <typename Fn> bool anyNode(Fn F) const {
    for (const auto &Def : Library->function())
      for (const auto &Node : Def.node_def())
        if (F(Node))
          return true;
    return false;
  }
  /// Returns the function that attribute \p Key of \p N names.
  FunctionRef get(const Graph &G, NodeId N, llvm::StringRef Key) const;
  /// Returns the functions that attribute \p Key of \p N lists.
  std::vector<FunctionRef> list(const Graph &G, NodeId N,
                                llvm::StringRef Key) const;

  /// Returns the functions of the library that \p Node runs: the bodies of
  /// control flow and of calls, but not the functions that a dataset maps.
  std::vector<std::string> calledBy(const tensorflow::NodeDef &Node) const;
  std::vector<std::string> calledBy(const Graph &G, NodeId N) const;

  /// Returns the reason why \p F cannot replace a call, or "".
  std::string obstacle(const FunctionRef &F) const;
  /// Returns true if \p Def does more than compute its outputs.
  bool hasEffects(const tensorflow::FunctionDef &Def) const {
    return Effects.contains(Def.signature().name());
  }

  /// Returns the attributes of a node of a body, with placeholders replaced.
  static AttrMap attrsOf(const tensorflow::NodeDef &Node, const AttrMap &With);
  /// Returns the port of tensor \p Index of \p Output of a node with op \p Op.
  std::optional<unsigned> portOf(llvm::StringRef Op, const AttrMap &Attrs,
                                 llvm::StringRef Output, unsigned Index) const;

private:
  FunctionRef make(const tensorflow::NameAttrList &Call) const;
  bool opHasEffects(const tensorflow::NodeDef &Node,
                    llvm::function_ref<void(llvm::StringRef)> Calls) const;
  void findEffects();

  /// Owns the messages, which are freed as a whole.
  std::unique_ptr<google::protobuf::Arena> Memory =
      std::make_unique<google::protobuf::Arena>();
  tensorflow::FunctionDefLibrary *Library =
      google::protobuf::Arena::CreateMessage<tensorflow::FunctionDefLibrary>(
          Memory.get());
  llvm::StringMap<const tensorflow::FunctionDef *> ByName;
  llvm::StringSet<> Effects; ///< The functions with effects.
};

/// Returns true if a node with op \p Op may run functions, which its attributes
/// or the op itself name.
bool mayRunFunctions(llvm::StringRef Op);

/// Calls \p F with the op and the device of each node of a body, without
/// parsing messages.
void forEachBodyNode(
    const Graph &G,
    llvm::function_ref<void(llvm::StringRef Op, llvm::StringRef Device)> F);

/// Returns the names of the functions of \p G.
llvm::StringSet<> functionNames(const Graph &G);

/// Replaces the functions that have the names of \p Defs. All other functions
/// of \p G stay byte for byte.
void replaceFunctions(
    Graph &G, const std::map<std::string, tensorflow::FunctionDef> &Defs);

} // namespace graft

#endif // GRAFT_LIB_IO_INLINE_FUNCTIONS_H
