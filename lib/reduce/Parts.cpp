//===- lib/reduce/Parts.cpp - parts of a graph to leave out -----*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "lib/reduce/Parts.h"

#include "lib/extract/Extract.h"
#include "lib/infer/graph/Topology.h"
#include "lib/io/Serialize.h"
#include "lib/ops/Ops.h"
#include "lib/support/Wire.h"

#include "tensorflow/core/framework/attr_value.pb.h"
#include "tensorflow/core/framework/function.pb.h"
#include "tensorflow/core/protobuf/meta_graph.pb.h"

#include "llvm/ADT/STLExtras.h"

#include <map>
#include <set>

using namespace llvm;

namespace graft {
namespace {

//===----------------------------------------------------------------------===//
// Nodes and edges
//===----------------------------------------------------------------------===//

/// Replaces a node with users by a placeholder, and removes the nodes that only
/// this node needs.
class Nodes final : public PartKind {
public:
  StringRef name() const override { return "nodes"; }
  size_t count(const Module &M) const override { return M.graph().numLive(); }
  void leaveOut(Module &M, const std::vector<bool> &Gone) const override {
    const Graph &G = M.graph();
    std::vector<NodeId> Order = topologicalOrder(G);
    NodeSet Kept(G.size(), true), Serves(G.size());
    for (size_t I = Order.size(); I-- > 0;) {
      NodeId N = Order[I];
      bool OnlyServes =
          G.hasUses(N) && !G.anyUse(N, [&](Use U) { return !Serves[U.User]; });
      bool IsRead = G.anyUse(N, [&](Use U) { return Kept[U.User]; });
      Serves[N] = OnlyServes || (Gone[I] && IsRead);
      Kept[N] = !Gone[I] && !OnlyServes;
    }
    extract(M, std::move(Kept));
  }
};

/// Parts that are places in a graph. Leaving out a place means to edit it.
class Places : public PartKind {
public:
  using Visitor = function_ref<void(NodeId N, StringRef Key)>;

  size_t count(const Module &M) const override {
    size_t Count = 0;
    visit(M.graph(), [&](NodeId, StringRef) { ++Count; });
    return Count;
  }
  void leaveOut(Module &M, const std::vector<bool> &Gone) const override {
    std::vector<std::pair<NodeId, std::string>> Found;
    size_t I = 0;
    visit(M.graph(), [&](NodeId N, StringRef Key) {
      if (Gone[I++])
        Found.emplace_back(N, Key.str());
    });
    for (const auto &[N, Key] : Found)
      edit(M.graph(), N, Key);
  }

protected:
  virtual void visit(const Graph &G, Visitor Visit) const = 0;
  virtual void edit(Graph &G, NodeId N, StringRef Key) const = 0;
  template <typename Fn> static void forEachNode(const Graph &G, Fn F) {
    for (NodeId N = 0; N < G.size(); ++N)
      if (G.isLive(N))
        F(N);
  }
};

/// Skips a node: its users read one of its inputs, of the same type, instead.
/// Control-flow nodes stay, because without them there are no frames.
class Steps final : public Places {
public:
  StringRef name() const override { return "steps"; }

protected:
  void visit(const Graph &G, Visitor Visit) const override {
    forEachNode(G, [&](NodeId N) {
      if (instead(G, N).Node != NoNode)
        Visit(N, "");
    });
  }
  void edit(Graph &G, NodeId N, StringRef /*Key*/) const override {
    // An earlier edit may have removed that input.
    Endpoint Instead = instead(G, N);
    if (Instead.Node == NoNode)
      return;
    G.replaceUses({N, 0}, Instead);
    if (!G.hasUses(N))
      G.remove(N);
  }

private:
  static Endpoint instead(const Graph &G, NodeId N) {
    if (G.isOp(N, op::Merge) || G.isOp(N, op::Switch) || G.isOp(N, op::Enter) ||
        G.isOp(N, op::Exit) || G.isOp(N, op::NextIteration))
      return {};
    bool IsRead = false, OnlyFirst = true;
    G.forEachUse(N, [&](Use U) {
      IsRead |= G.isData(U);
      OnlyFirst &= !G.isData(U) || G.input(U).Port == 0;
    });
    if (!IsRead || !OnlyFirst || G.isRefOutput(N, 0))
      return {};
    for (Endpoint E : G.dataInputs(N))
      if (!G.isRefOutput(E.Node, E.Port) && E.Node != N &&
          G.outputType(E) == G.outputType(N, 0))
        return E;
    return {};
  }
};

class ControlInputs final : public Places {
public:
  StringRef name() const override { return "control inputs"; }

protected:
  void visit(const Graph &G, Visitor Visit) const override {
    forEachNode(G, [&](NodeId N) {
      for (Endpoint E : G.controlInputs(N))
        Visit(N, G.name(E.Node));
    });
  }
  void edit(Graph &G, NodeId N, StringRef Key) const override {
    std::vector<Endpoint> Inputs(G.inputs(N));
    NodeId From = G.find(Key);
    erase_if(Inputs,
             [&](Endpoint E) { return E.isControl() && E.Node == From; });
    G.setInputs(N, Inputs);
  }
};

//===----------------------------------------------------------------------===//
// Devices, attributes and constants
//===----------------------------------------------------------------------===//

class Devices final : public Places {
public:
  StringRef name() const override { return "devices"; }

protected:
  void visit(const Graph &G, Visitor Visit) const override {
    forEachNode(G, [&](NodeId N) {
      if (!G.device(N).empty())
        Visit(N, "");
    });
  }
  void edit(Graph &G, NodeId N, StringRef /*Key*/) const override {
    G.setDevice(N, "");
  }
};

/// Attributes that an op does not need.
class OptionalAttributes final : public Places {
public:
  StringRef name() const override { return "attributes"; }

protected:
  void visit(const Graph &G, Visitor Visit) const override {
    forEachNode(G, [&](NodeId N) {
      const OpDef *Def = G.opDef(N);
      for (const AttrEntry &A : G.attrs(N)) {
        const AttrDef *Of = Def ? Def->attr(A.Key) : nullptr;
        if (Of ? Of->HasDefault : Def != nullptr || A.Key.starts_with("_"))
          Visit(N, A.Key);
      }
    });
  }
  void edit(Graph &G, NodeId N, StringRef Key) const override {
    G.removeAttr(N, Key);
  }
};

/// Replaces the elements of a constant by zeros or empty strings, which the
/// file does not spell out.
class Constants final : public Places {
public:
  StringRef name() const override { return "constants"; }

protected:
  void visit(const Graph &G, Visitor Visit) const override {
    forEachNode(G, [&](NodeId N) {
      if (G.isOp(N, op::Const))
        if (auto Value = G.attr(N, "value"); Value && splat(*Value) != *Value)
          Visit(N, "value");
    });
  }
  void edit(Graph &G, NodeId N, StringRef Key) const override {
    if (auto Value = G.attr(N, Key))
      G.setAttr(N, Key, splat(*Value));
  }

private:
  static std::string splat(StringRef Value) {
    tensorflow::AttrValue A;
    if (!A.ParseFromArray(Value.data(), static_cast<int>(Value.size())) ||
        !A.has_tensor())
      return Value.str();
    const tensorflow::TensorProto &Old = A.tensor();
    tensorflow::TensorProto New;
    New.set_dtype(Old.dtype());
    *New.mutable_tensor_shape() = Old.tensor_shape();
    *A.mutable_tensor() = New;
    return serialize(A);
  }
};

//===----------------------------------------------------------------------===//
// Declarations and functions
//===----------------------------------------------------------------------===//

/// Entries of collections, signatures, the saver and other fields of a
/// MetaGraphDef.
class Declarations final : public PartKind {
public:
  StringRef name() const override { return "declarations"; }
  size_t count(const Module &M) const override {
    if (!M.metaGraph())
      return 0;
    tensorflow::MetaGraphDef Meta = *M.metaGraph();
    size_t Count = 0;
    filter(Meta, [&] {
      ++Count;
      return true;
    });
    return Count;
  }
  void leaveOut(Module &M, const std::vector<bool> &Gone) const override {
    tensorflow::MetaGraphDef Meta = *M.metaGraph();
    size_t I = 0;
    filter(Meta, [&] { return !Gone[I++]; });
    M.setMetaGraph(std::move(Meta));
  }

private:
  template <typename List>
  static void filterList(List &L, function_ref<bool()> Stays) {
    List Left;
    for (const auto &Value : L)
      if (Stays())
        *Left.Add() = Value;
    L = std::move(Left);
  }
  template <typename Map> static std::set<std::string> keysOf(const Map &M) {
    std::set<std::string> Keys;
    for (const auto &[Key, Value] : M)
      Keys.insert(Key);
    return Keys;
  }
  /// Calls \p Stays for each entry, in order, and removes the entry if it
  /// returns false.
  static void filter(tensorflow::MetaGraphDef &Meta,
                     function_ref<bool()> Stays) {
    if (Meta.has_saver_def() && !Stays())
      Meta.clear_saver_def();
    if (Meta.has_object_graph_def() && !Stays())
      Meta.clear_object_graph_def();
    if (Meta.asset_file_def_size() != 0 && !Stays())
      Meta.clear_asset_file_def();
    if (Meta.meta_info_def().has_stripped_op_list() && !Stays())
      Meta.mutable_meta_info_def()->clear_stripped_op_list();
    auto &Collections = *Meta.mutable_collection_def();
    for (const std::string &Key : keysOf(Collections)) {
      tensorflow::CollectionDef &C = Collections[Key];
      if (C.has_node_list())
        filterList(*C.mutable_node_list()->mutable_value(), Stays);
      else if (C.has_bytes_list())
        filterList(*C.mutable_bytes_list()->mutable_value(), Stays);
      else if (!Stays())
        C.Clear();
      if (C.node_list().value_size() == 0 && C.bytes_list().value_size() == 0 &&
          (C.has_node_list() || C.has_bytes_list() ||
           C.kind_case() == tensorflow::CollectionDef::KIND_NOT_SET))
        Collections.erase(Key);
    }
    auto &Signatures = *Meta.mutable_signature_def();
    for (const std::string &Key : keysOf(Signatures))
      if (!Stays())
        Signatures.erase(Key);
  }
};

/// Nodes of function bodies that no other node of the body reads and that are
/// no result of the function.
class BodyNodes final : public PartKind {
public:
  StringRef name() const override { return "nodes of functions"; }
  size_t count(const Module &M) const override {
    tensorflow::FunctionDefLibrary Library = libraryOf(M.graph());
    size_t Count = 0;
    for (tensorflow::FunctionDef &F : *Library.mutable_function())
      Count += ends(F).size();
    return Count;
  }
  void leaveOut(Module &M, const std::vector<bool> &Gone) const override {
    tensorflow::FunctionDefLibrary Library = libraryOf(M.graph());
    size_t I = 0;
    for (tensorflow::FunctionDef &F : *Library.mutable_function()) {
      std::set<std::string> Names;
      for (const std::string &Name : ends(F))
        if (Gone[I++])
          Names.insert(Name);
      auto &Nodes = *F.mutable_node_def();
      Nodes.erase(std::remove_if(Nodes.begin(), Nodes.end(),
                                 [&](const tensorflow::NodeDef &N) {
                                   return Names.count(N.name()) != 0;
                                 }),
                  Nodes.end());
      auto &Controls = *F.mutable_control_ret();
      for (auto It = Controls.begin(); It != Controls.end();)
        It = Names.count(It->second) ? Controls.erase(It) : std::next(It);
      auto &Outputs = *F.mutable_signature()->mutable_control_output();
      Outputs.erase(std::remove_if(Outputs.begin(), Outputs.end(),
                                   [&](const std::string &Output) {
                                     return Controls.count(Output) == 0;
                                   }),
                    Outputs.end());
    }
    std::string Field;
    wire::appendBytes(Field, LibraryField, serialize(Library));
    M.graph().replaceOtherFields(LibraryField, Field);
  }

private:
  static constexpr unsigned LibraryField = 2;

  static tensorflow::FunctionDefLibrary libraryOf(const Graph &G) {
    tensorflow::FunctionDefLibrary Library;
    (void)Library.ParseFromString(G.otherField(LibraryField));
    return Library;
  }
  static std::vector<std::string> ends(const tensorflow::FunctionDef &F) {
    std::set<StringRef> Read;
    auto Take = [&](StringRef Name) {
      Name.consume_front("^");
      Read.insert(Name.split(':').first);
    };
    for (const tensorflow::NodeDef &N : F.node_def())
      for (const std::string &Input : N.input())
        Take(Input);
    for (const auto &[Name, Tensor] : F.ret())
      Take(Tensor);
    std::vector<std::string> Result;
    for (const tensorflow::NodeDef &N : F.node_def())
      if (!Read.count(N.name()))
        Result.push_back(N.name());
    return Result;
  }
};

} // namespace

std::vector<std::unique_ptr<PartKind>> allPartKinds() {
  std::vector<std::unique_ptr<PartKind>> Kinds;
  Kinds.push_back(std::make_unique<Nodes>());
  Kinds.push_back(std::make_unique<Steps>());
  Kinds.push_back(std::make_unique<ControlInputs>());
  Kinds.push_back(std::make_unique<BodyNodes>());
  Kinds.push_back(std::make_unique<Declarations>());
  Kinds.push_back(std::make_unique<OptionalAttributes>());
  Kinds.push_back(std::make_unique<Devices>());
  Kinds.push_back(std::make_unique<Constants>());
  return Kinds;
}

} // namespace graft
