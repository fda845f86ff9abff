//===- lib/extract/Extract.cpp - a part of a graph --------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "lib/extract/Extract.h"

#include "lib/graph/Walk.h"
#include "lib/infer/graph/Loops.h"
#include "lib/io/ModuleVerifier.h"
#include "lib/io/Serialize.h"
#include "lib/ops/Ops.h"
#include "lib/support/Wire.h"

#include "tensorflow/core/framework/function.pb.h"
#include "tensorflow/core/protobuf/meta_graph.pb.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringSet.h"

#include <map>

using namespace llvm;

namespace graft {

NodeSet nodesBehind(const Graph &G, ArrayRef<NodeId> Ends) {
  NodeSet Found(G.size());
  walkInputs(G, Ends.vec(), Along::All, Found);
  return Found;
}

NodeSet nodesAround(const Graph &G, ArrayRef<NodeId> Middle, unsigned Hops) {
  NodeSet Found(G.size());
  std::vector<NodeId> Edge;
  auto Add = [&](NodeId N) {
    if (!Found[N])
      Edge.push_back(N);
    Found[N] = true;
  };
  for (NodeId N : Middle)
    Add(N);
  for (unsigned Hop = 0; Hop < Hops && !Edge.empty(); ++Hop)
    for (NodeId N : std::exchange(Edge, {})) {
      for (Endpoint E : G.inputs(N))
        Add(E.Node);
      G.forEachUse(N, [&](Use U) { Add(U.User); });
    }
  return Found;
}

/// Returns true if no placeholder can replace \p E, which is data input \p
/// Index of \p User.
static bool isBound(const Graph &G, Endpoint E, NodeId User, unsigned Index) {
  if (G.dataInputs(E.Node).empty() || G.isRefOutput(E.Node, E.Port) ||
      G.isRefInput(User, Index))
    return true;
  unsigned Type = G.outputType(E);
  return Type == DT_INVALID || Type == DT_RESOURCE || Type == DT_VARIANT ||
         Type >= RefTypeOffset;
}

void completeSelection(const Graph &G, NodeSet &Kept) {
  std::unique_ptr<LoopInfo> Loops = LoopInfo::find(G);
  std::vector<NodeId> First;
  for (NodeId N = 0; N < G.size(); ++N)
    if (Kept[N] && G.isLive(N))
      First.push_back(N);
  Kept.assign(G.size(), false);
  walk::close(std::move(First), Kept, walk::Everywhere,
              [&](NodeId N, std::vector<NodeId> &Next) {
                for (unsigned I = 0; I < G.node(N).NumData; ++I)
                  if (isBound(G, G.input(N, I), N, I))
                    Next.push_back(G.input(N, I).Node);
                if (Loops)
                  append_range(Next, Loops->nest(N));
              });
}

/// Returns the shape of \p E, unknown if `_output_shapes` does not have it.
static ShapeValue shapeOf(const Graph &G, Endpoint E) {
  auto Shapes = G.shapeListAttr(E.Node, "_output_shapes");
  if (Shapes && E.Port < Shapes->size())
    return (*Shapes)[E.Port];
  ShapeValue Unknown;
  Unknown.UnknownRank = true;
  return Unknown;
}

namespace {

/// Removes nodes and replaces their outputs by placeholders.
class Cut {
public:
  Cut(Graph &G, const NodeSet &Kept) : G(G), Kept(Kept) {}

  void run();

private:
  void connect(NodeId N);
  Endpoint placeholder(Endpoint E);

  Graph &G;
  const NodeSet &Kept;
  std::map<std::pair<NodeId, uint32_t>, NodeId> Placeholders;
};

Endpoint Cut::placeholder(Endpoint E) {
  auto [It, New] = Placeholders.try_emplace({E.Node, E.Port}, NoNode);
  if (!New)
    return {It->second, 0};
  unsigned Type = G.outputType(E);
  std::string Shape = encodeShapeAttr(shapeOf(G, E));
  // The placeholder of output 0 takes the name of the node, which is removed.
  std::string Name = G.name(E.Node).str();
  if (E.Port == 0)
    G.rename(E.Node, G.uniqueName(Name + "/cut"));
  else
    Name = G.uniqueName(Name + "/" + std::to_string(E.Port));
  NodeId N = It->second = G.addNode(Name, op::Placeholder, {}, E.Node);
  G.setTypeAttr(N, "dtype", Type);
  G.setAttr(N, "shape", Shape);
  return {N, 0};
}

void Cut::connect(NodeId N) {
  std::vector<Endpoint> Inputs;
  bool Changed = false;
  for (Endpoint E : G.inputs(N)) {
    bool IsOutside = !Kept[E.Node];
    Changed |= IsOutside;
    if (!IsOutside)
      Inputs.push_back(E);
    else if (!E.isControl())
      Inputs.push_back(placeholder(E));
  }
  if (Changed)
    G.setInputs(N, Inputs);
}

void Cut::run() {
  NodeId Size = G.size();
  for (NodeId N = 0; N < Size; ++N)
    if (Kept[N])
      connect(N);
  for (NodeId N = 0; N < Size; ++N)
    if (G.isLive(N) && !Kept[N])
      G.setInputs(N, {});
  for (NodeId N = 0; N < Size; ++N)
    if (G.isLive(N) && !Kept[N])
      G.remove(N);
  for (NodeId N = 0; N < G.size(); ++N)
    if (G.isLive(N))
      G.keepClasses(N, [&](StringRef Class) {
        return !Class.consume_front("loc:@") || G.find(Class) != NoNode;
      });
}

} // namespace

/// Adds the functions that \p Value names, alone or in a list.
static void addFunctions(const tensorflow::AttrValue &Value,
                         std::vector<std::string> &Names) {
  if (Value.has_func())
    Names.push_back(Value.func().name());
  for (const tensorflow::NameAttrList &F : Value.list().func())
    Names.push_back(F.name());
}

/// Drops the functions that no node calls. Returns the ops of all nodes.
static StringSet<> dropFunctions(Graph &G) {
  constexpr unsigned LibraryField = 2;
  tensorflow::FunctionDefLibrary Library;
  (void)Library.ParseFromString(G.otherField(LibraryField));
  StringMap<const tensorflow::FunctionDef *> ByName;
  for (const tensorflow::FunctionDef &F : Library.function())
    ByName[F.signature().name()] = &F;
  StringMap<std::string> Gradients;
  for (const tensorflow::GradientDef &D : Library.gradient())
    Gradients[D.function_name()] = D.gradient_func();
  std::vector<std::string> Due;
  for (NodeId N = 0; N < G.size(); ++N) {
    if (!G.isLive(N))
      continue;
    // A node calls a function if its op has the name of the function.
    Due.push_back(G.opName(N).str());
    for (const AttrEntry &A : G.attrs(N)) {
      tensorflow::AttrValue Value;
      if (Value.ParseFromArray(A.Value.data(),
                               static_cast<int>(A.Value.size())))
        addFunctions(Value, Due);
    }
  }
  StringSet<> Called, Ops;
  while (!Due.empty()) {
    std::string Name = std::move(Due.back());
    Due.pop_back();
    Ops.insert(Name);
    const tensorflow::FunctionDef *F = ByName.lookup(Name);
    if (!F || !Called.insert(Name).second)
      continue;
    if (auto It = Gradients.find(Name); It != Gradients.end())
      Due.push_back(It->second);
    for (const tensorflow::NodeDef &N : F->node_def()) {
      Due.push_back(N.op());
      for (const auto &[Key, Value] : N.attr())
        addFunctions(Value, Due);
    }
  }
  tensorflow::FunctionDefLibrary Left;
  for (const tensorflow::FunctionDef &F : Library.function())
    if (Called.contains(F.signature().name()))
      *Left.add_function() = F;
  for (const tensorflow::GradientDef &D : Library.gradient())
    if (Called.contains(D.function_name()))
      *Left.add_gradient() = D;
  if (Left.function_size() != Library.function_size()) {
    std::string Field;
    wire::appendBytes(Field, LibraryField, serialize(Left));
    G.replaceOtherFields(LibraryField, Field);
  }
  return Ops;
}

/// Drops the op definitions of a MetaGraphDef that are not in \p Used.
static void dropOps(Module &M, const StringSet<> &Used) {
  if (!M.metaGraph() || !M.metaGraph()->meta_info_def().has_stripped_op_list())
    return;
  tensorflow::MetaGraphDef Meta = *M.metaGraph();
  auto &Ops =
      *Meta.mutable_meta_info_def()->mutable_stripped_op_list()->mutable_op();
  Ops.erase(std::remove_if(Ops.begin(), Ops.end(),
                           [&](const tensorflow::OpDef &Op) {
                             return !Used.contains(Op.name());
                           }),
            Ops.end());
  M.setMetaGraph(std::move(Meta));
}

void extract(Module &M, NodeSet Kept) {
  Graph &G = M.graph();
  completeSelection(G, Kept);
  Cut(G, Kept).run();
  dropOps(M, dropFunctions(G));
  dropDangling(M);
}

} // namespace graft
