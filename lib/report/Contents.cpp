//===- lib/report/Contents.cpp - the contents of a file ---------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "lib/report/Contents.h"

#include "lib/graph/Walk.h"
#include "lib/infer/graph/BatchSources.h"
#include "lib/infer/graph/Variables.h"
#include "lib/io/functions/SavedFunctions.h"
#include "lib/io/inline/Functions.h"
#include "lib/io/read/Sniff.h"
#include "lib/ops/OpTable.h"
#include "lib/ops/Ops.h"
#include "lib/strategy/Resources.h"

#include "tensorflow/core/protobuf/meta_graph.pb.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSet.h"

#include <set>

using namespace llvm;

namespace graft {
namespace {

std::string shapeText(const std::optional<ShapeValue> &Shape) {
  if (!Shape || Shape->UnknownRank)
    return "";
  std::vector<std::string> Dims;
  for (int64_t Dim : Shape->Dims)
    Dims.push_back(Dim < 0 ? "?" : itostr(Dim));
  return "[" + join(Dims, ", ") + "]";
}

uint64_t bytesOfShape(unsigned Type, const std::optional<ShapeValue> &Shape) {
  if (!Shape || Shape->UnknownRank)
    return 0;
  uint64_t Bytes = bytesOf(Type);
  for (int64_t Dim : Shape->Dims)
    Bytes *= Dim < 0 ? 0 : static_cast<uint64_t>(Dim);
  return Bytes;
}

class Reader {
public:
  explicit Reader(const Module &M) : M(M), G(M.graph()), Vars(G) {}
  Contents read();

private:
  DenseSet<NodeId> checkpointNames() const;
  void inputs();
  void variables();
  void countOp(StringRef Op);
  void names();

  const Module &M;
  const Graph &G;
  VariableIndex Vars;
  Contents Found;
  StringSet<> Frames, Calls;
};

/// Returns the nodes from which Savers compute the names of their files.
DenseSet<NodeId> Reader::checkpointNames() const {
  std::vector<NodeId> Names;
  for (NodeId N = 0; N < G.size(); ++N) {
    StringRef Op = G.isLive(N) ? G.opName(N) : "";
    if ((Op == op::SaveV2 || Op == op::Save || Op == op::RestoreV2 ||
         Op == op::Restore) &&
        G.node(N).NumData != 0)
      Names.push_back(G.input(N, 0).Node);
  }
  DenseSet<NodeId> Found;
  walkInputs(G, std::move(Names), Along::Data, Found);
  return Found;
}

/// Lists the feeds that an op reads, and the elements of queues and iterators.
void Reader::inputs() {
  DenseSet<NodeId> Names = checkpointNames();
  for (NodeId N = 0; N < G.size(); ++N) {
    if (!G.isLive(N) || !G.hasUses(N) || Names.contains(N) ||
        (!G.opName(N).starts_with(op::Placeholder) && !readsBatch(G, N)))
      continue;
    for (uint32_t Port : readOutputs(G, N))
      Found.Inputs.push_back({feedName(G, {N, Port}),
                              typeName(G.outputType(N, Port)),
                              shapeText(sourceShape(G, {N, Port}))});
  }
}

void Reader::variables() {
  Found.Variables = Vars.variables().size();
  for (NodeId Var : Vars.variables())
    if (auto Type = G.typeAttr(Var, "dtype"))
      Found.VariableBytes += bytesOfShape(*Type, G.shapeAttr(Var, "shape"));
  for (const VariableRow &Row : listVariables(G, Vars, declaredVariables(M))) {
    ++Found.Trained;
    Found.TrainedBytes += Row.Bytes;
  }
}

/// Counts an op of the graph or of a function.
void Reader::countOp(StringRef Op) {
  const OpDef *Def = findOp(Op);
  UpdateKind Kind = Def ? Def->update().Kind : UpdateKind::None;
  if (Kind == UpdateKind::Apply || Kind == UpdateKind::Scatter)
    ++Found.Updates[Op.str()];
  if (Op == op::While || Op == op::StatelessWhile)
    ++Found.ControlFlow["loop"];
  if (Op == op::If || Op == op::StatelessIf || Op == op::Case ||
      Op == op::StatelessCase)
    ++Found.ControlFlow["conditional"];
  bool HasResult = !Def || !Def->outputs().empty();
  bool IsOurs = Op.starts_with("_") || Calls.contains(Op);
  IsOurs |= Op == op::PartitionedCall || Op == op::StatefulPartitionedCall;
  Found.Changes |= Kind == UpdateKind::Apply || Kind == UpdateKind::Scatter ||
                   Kind == UpdateKind::AssignAdd;
  if (HasResult && Kind == UpdateKind::None && !IsOurs &&
      ruleOf(Op).Op.empty() && !isOnceOp(Op))
    ++Found.WithoutRule[Op.str()];
}

/// Returns the arguments that a caller passes, `(x: float [?, 4])`.
std::string argumentsText(const tensorflow::FunctionDef &Def,
                          const SavedFunction &F) {
  std::vector<std::string> Texts;
  for (const auto &[I, Arg] : enumerate(Def.signature().input_arg())) {
    if (I >= F.Captured.First)
      break;
    std::string Text = Arg.name() + ": " + typeName(Arg.type());
    auto It = Def.arg_attr().find(static_cast<uint32_t>(I));
    if (It != Def.arg_attr().end()) {
      auto Shapes = It->second.attr().find("_output_shapes");
      if (Shapes != It->second.attr().end() &&
          Shapes->second.list().shape_size() == 1) {
        const auto &Shape = Shapes->second.list().shape(0);
        ShapeValue Value;
        Value.UnknownRank = Shape.unknown_rank();
        for (const auto &Dim : Shape.dim())
          Value.Dims.push_back(Dim.size());
        Text += " " + shapeText(Value);
      }
    }
    Texts.push_back(std::move(Text));
  }
  return "(" + join(Texts, ", ") + ")";
}

/// Reads the names that the export states.
void Reader::names() {
  const tensorflow::MetaGraphDef *Meta = M.metaGraph();
  if (!Meta)
    return;
  auto Collection = [&](const char *Key) {
    std::vector<std::string> Names;
    auto It = Meta->collection_def().find(Key);
    if (It != Meta->collection_def().end())
      Names.assign(It->second.node_list().value().begin(),
                   It->second.node_list().value().end());
    StringSet<> Seen;
    erase_if(Names, [&](StringRef Name) { return !Seen.insert(Name).second; });
    return Names;
  };
  Found.TrainOps = Collection("train_op");
  Found.Losses = Collection("losses");
  // Each conditional has a context for either branch.
  auto Branches = Meta->collection_def().find("cond_context");
  if (Branches != Meta->collection_def().end())
    Found.ControlFlow["conditional"] +=
        (Branches->second.bytes_list().value_size() + 1) / 2;
  for (const auto &[Key, Signature] : Meta->signature_def())
    Found.Signatures.push_back(Key);
  sort(Found.Signatures);
  if (!hasSavedFunctions(*Meta))
    return;
  FunctionLibrary Library(G);
  Found.Inputs.clear();
  for (const SavedFunction &F : findSavedFunctions(*Meta, Library).Called)
    Found.Functions.push_back(F.Shown +
                              argumentsText(*Library.find(F.Name), F));
}

Contents Reader::read() {
  Found.Kind = kindName(M.Kind).str();
  for (StringRef Part : M.graphBytes())
    Found.Bytes += Part.size();
  Calls = functionNames(G);
  for (NodeId N = 0; N < G.size(); ++N) {
    if (!G.isLive(N))
      continue;
    ++Found.Nodes;
    countOp(G.opName(N));
    if (G.isOp(N, op::Enter) || G.isOp(N, op::RefEnter))
      if (auto Frame = G.stringAttr(N, "frame_name");
          Frame && Frames.insert(*Frame).second)
        ++Found.ControlFlow["loop"];
  }
  forEachBodyNode(G, [&](StringRef Op, StringRef) { countOp(Op); });
  inputs();
  variables();
  names();
  return std::move(Found);
}

} // namespace

Contents contentsOf(const Module &M) { return Reader(M).read(); }

} // namespace graft
