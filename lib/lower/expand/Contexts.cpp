//===- lib/lower/expand/Contexts.cpp - control flow contexts, lowered -----===//
//
// SPDX-License-Identifier: Apache-2.0
//
// A CondContextDef or WhileContextDef lists the tensors of a branch or a body
// by name. A tensor may be local to a replica, or a merged value may have taken
// its name. Then the context has to list copy 0 of the tensor, because copy 0
// is in the branch.
//
//===----------------------------------------------------------------------===//

#include "lib/lower/expand/Contexts.h"

#include "lib/io/ControlContexts.h"
#include "lib/lower/expand/Render.h"
#include "lib/program/Program.h"

#include "llvm/ADT/StringMap.h"

using namespace llvm;

namespace graft {

std::string primaryName(const Graph &G, NodeId N, unsigned Number,
                        StringRef Word) {
  const Node &This = G.node(N);
  StringRef Name = G.name(N);
  if (This.Count == Copies::Once || !(This.Flags & NF_LocalName))
    return Name.str();
  if (This.NameSplit == 0)
    return (Word + Twine(Number) + "/" + Name).str();
  return (Name.take_front(This.NameSplit) +
          (isRenamedLocal(This, Word) ? "_" : "/") +
          (isRenamedLocal(This, Word) || This.Plan == Policy::Replicated
               ? ""
               : Word) +
          Twine(Number) + Name.drop_front(This.NameSplit))
      .str();
}

namespace {

class ContextLowering {
public:
  template <typename Context> bool drops(const Context & /*Any*/) const {
    return false;
  }
  ContextLowering(const Graph &G, std::optional<unsigned> Worker);

  void lower(tensorflow::CondContextDef &C);
  void lower(tensorflow::WhileContextDef &C);

private:
  std::string lowered(StringRef Tensor) const;
  void rename(std::string *Name) { *Name = lowered(*Name); }
  void lower(tensorflow::ValuesDef &Values);
  template <typename List> void lowerAll(List *Contexts);
  void lowerFrame(tensorflow::WhileContextDef &C);

  const Graph &G;
  std::optional<unsigned> Worker;
  std::string Word;        ///< The word in the names of copies.
  StringMap<NodeId> Moved; ///< Renamed nodes, by their names in the input
                           ///< graph.
};

ContextLowering::ContextLowering(const Graph &G, std::optional<unsigned> Worker)
    : G(G), Worker(Worker), Word(readMesh(G).Word) {
  for (NodeId N = 0; N < G.size(); ++N)
    if (G.isLive(N) && G.node(N).Kind == Inserted::No &&
        originName(G, N) != G.name(N))
      Moved[originName(G, N)] = N;
}

/// Returns the name in copy 0 of the tensor that the input graph calls \p
/// Tensor.
std::string ContextLowering::lowered(StringRef Tensor) const {
  auto [Name, Port] = Tensor.split(':');
  auto It = Moved.find(Name);
  NodeId N = It == Moved.end() ? G.find(Name) : It->second;
  std::string Result =
      N == NoNode ? Name.str() : primaryName(G, N, Worker.value_or(0), Word);
  return Port.empty() ? Result : Result + ":" + Port.str();
}

void ContextLowering::lower(tensorflow::ValuesDef &Values) {
  for (std::string &Name : *Values.mutable_values())
    rename(&Name);
  google::protobuf::Map<std::string, std::string> External;
  for (const auto &[Outside, Inside] : Values.external_values())
    External[lowered(Outside)] = lowered(Inside);
  Values.mutable_external_values()->swap(External);
}

template <typename List> void ContextLowering::lowerAll(List *Contexts) {
  for (tensorflow::ControlFlowContextDef &C : *Contexts) {
    if (C.has_cond_ctxt())
      lower(*C.mutable_cond_ctxt());
    if (C.has_while_ctxt())
      lower(*C.mutable_while_ctxt());
  }
}

void ContextLowering::lower(tensorflow::CondContextDef &C) {
  rename(C.mutable_pred_name());
  rename(C.mutable_pivot_name());
  lower(*C.mutable_values_def());
  lowerAll(C.mutable_nested_contexts());
}

/// Renames the frame of a per-replica loop, so that nodes that TensorFlow adds
/// to the loop enter the frame of copy 0.
void ContextLowering::lowerFrame(tensorflow::WhileContextDef &C) {
  if (Worker)
    return; // the frame keeps its name
  for (const std::string &Enter : C.loop_enter_names()) {
    auto E = G.findEndpoint(Enter);
    if (!E || !G.isPerReplica(E->Node) ||
        G.stringAttr(E->Node, "frame_name") != StringRef(C.context_name()))
      continue;
    C.set_context_name(Word + "0/" + C.context_name());
    return;
  }
}

void ContextLowering::lower(tensorflow::WhileContextDef &C) {
  lowerFrame(C);
  rename(C.mutable_pivot_name());
  rename(C.mutable_pivot_for_pred_name());
  rename(C.mutable_pivot_for_body_name());
  rename(C.mutable_maximum_iterations_name());
  for (std::string &Name : *C.mutable_loop_exit_names())
    rename(&Name);
  for (std::string &Name : *C.mutable_loop_enter_names())
    rename(&Name);
  lower(*C.mutable_values_def());
  lowerAll(C.mutable_nested_contexts());
}

} // namespace

void lowerContexts(Module &M, std::optional<unsigned> Worker) {
  editContexts<ContextLowering>(M, Worker);
}

} // namespace graft
