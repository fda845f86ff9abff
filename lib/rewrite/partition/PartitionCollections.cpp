//===- lib/rewrite/partition/PartitionCollections.cpp - variables by name -===//
//
// SPDX-License-Identifier: Apache-2.0
//
// Replaces the VariableDef of a partitioned variable by one for each part, as
// TensorFlow does for a PartitionedVariable. Each VariableDef states the slice
// and the key of its part. So a Saver that is built after the import writes the
// same checkpoints. In collections of tensors, the parts replace the variable.
//
//===----------------------------------------------------------------------===//

#include "lib/io/ControlContexts.h"
#include "lib/ops/Ops.h"
#include "lib/rewrite/partition/PartitionEdit.h"

#include "tensorflow/core/framework/variable.pb.h"
#include "tensorflow/core/protobuf/meta_graph.pb.h"

using namespace llvm;

namespace graft {

void PartitionEditor::keep(StringRef Name) {
  auto E = G.findEndpoint(Name);
  if (E && !E->isControl() && Name.contains(':'))
    Kept.insert(E->Node);
}

void PartitionEditor::keepNamed() {
  if (!M.metaGraph())
    return;
  for (const auto &[Key, Collection] : M.metaGraph()->collection_def())
    for (const std::string &Name : Collection.node_list().value())
      keep(Name);
  for (const auto &[Key, Signature] : M.metaGraph()->signature_def())
    for (const auto &[Output, Info] : Signature.outputs())
      keep(Info.name());
}

/// Returns a node with the value of part \p Part. \p Snapshot is the read that
/// the VariableDef declares.
NodeId PartitionEditor::snapshotOf(const PartitionedVariable &Of,
                                   StringRef Snapshot, unsigned Part) {
  auto Declared = G.findEndpoint(Snapshot);
  // Keras declares an Identity of the read.
  while (Declared && !PartReads.contains(Declared->Node) &&
         G.isOp(Declared->Node, op::Identity) &&
         G.node(Declared->Node).NumInputs == 1)
    Declared = G.input(Declared->Node, 0);
  auto It = Declared ? PartReads.find(Declared->Node) : PartReads.end();
  if (It != PartReads.end())
    return It->second[Part];
  auto [Own, New] = OwnReads.try_emplace(Of.Var);
  if (New)
    for (NodeId Var : Clones[Of.Var]) {
      bool IsHandle = G.isOp(Var, op::VarHandleOp);
      AttrRun Attrs;
      Attrs.type(IsHandle ? "dtype" : "T", Of.Type);
      Own->second.push_back(add(Var, IsHandle ? "Read/ReadVariableOp" : "read",
                                IsHandle ? op::ReadVariableOp : op::Identity,
                                Endpoint{Var, 0}, Attrs));
    }
  return Own->second[Part];
}

/// Returns the name of the variable that the VariableDef \p Bytes declares.
static StringRef declaredName(StringRef Bytes) {
  StringRef Name;
  wire::Field F;
  for (wire::Reader R(Bytes); R.next(F);)
    if (F.Number == tensorflow::VariableDef::kVariableNameFieldNumber &&
        F.WireType == wire::Type::Bytes)
      Name = F.Bytes;
  return Name.split(':').first;
}

/// Returns the partitioned variable that an entry of a tensor collection names.
static const PartitionedVariable *
variableNamed(const StringMap<const PartitionedVariable *> &ByName,
              StringRef Name) {
  auto [Node, Port] = Name.split(':');
  return Port.empty() || Port == "0" ? ByName.lookup(Node) : nullptr;
}

void PartitionEditor::declareParts() {
  if (!M.metaGraph())
    return;
  StringMap<const PartitionedVariable *> ByName;
  for (const PartitionedVariable &Of : Plan.variables())
    ByName[Of.Name] = &Of;
  std::vector<std::pair<std::string, tensorflow::CollectionDef>> Changed;
  for (const auto &[Key, Collection] : M.metaGraph()->collection_def()) {
    tensorflow::CollectionDef New;
    bool Any = false;
    if (Collection.kind_case() == tensorflow::CollectionDef::kNodeList) {
      for (const std::string &Name : Collection.node_list().value()) {
        const PartitionedVariable *Of = variableNamed(ByName, Name);
        Any |= Of != nullptr;
        for (unsigned I = 0; Of && I < Of->parts(); ++I)
          New.mutable_node_list()->add_value(
              (G.name(Clones[Of->Var][I]) + ":0").str());
        if (!Of)
          New.mutable_node_list()->add_value(Name);
      }
      if (Any)
        Changed.push_back({Key, std::move(New)});
      continue;
    }
    if (Collection.kind_case() != tensorflow::CollectionDef::kBytesList)
      continue;
    for (const std::string &Bytes : Collection.bytes_list().value()) {
      // Entries that are not VariableDefs do not name a partitioned variable.
      const PartitionedVariable *Of = ByName.lookup(declaredName(Bytes));
      tensorflow::VariableDef V;
      if (Of && !V.ParseFromString(Bytes))
        Of = nullptr;
      if (!Of || !G.findEndpoint(V.initializer_name())) {
        New.mutable_bytes_list()->add_value(Bytes);
        continue;
      }
      Any = true;
      for (unsigned I = 0; I < Of->parts(); ++I)
        New.mutable_bytes_list()->add_value(
            declare(V, *Of, I).SerializeAsString());
    }
    if (Any)
      Changed.push_back({Key, std::move(New)});
  }
  llvm::sort(Changed,
             [](const auto &A, const auto &B) { return A.first < B.first; });
  for (const auto &[Key, Collection] : Changed)
    M.setCollection(Key, Collection);
  if (Vars.anySwitched() || !Old.empty())
    pruneContexts(M);
}

tensorflow::VariableDef PartitionEditor::declare(tensorflow::VariableDef V,
                                                 const PartitionedVariable &Of,
                                                 unsigned Part) {
  NodeId Var = Clones[Of.Var][Part];
  auto *Slice = V.mutable_save_slice_info_def();
  if (Slice->full_name().empty()) {
    Slice->set_full_name(Of.Name);
    Slice->clear_full_shape();
    Slice->clear_var_offset();
    for (int64_t Size : Of.Shape) {
      Slice->add_full_shape(Size);
      Slice->add_var_offset(0);
    }
  }
  Slice->clear_var_shape();
  for (int64_t Size : Of.Shape)
    Slice->add_var_shape(Size);
  auto Axis = static_cast<int>(Of.Cut.Axis);
  if (Axis < Slice->var_offset_size())
    Slice->set_var_offset(Axis, Slice->var_offset(Axis) + Of.Offsets[Part]);
  Slice->set_var_shape(Axis, Of.Cut.Sizes[Part]);
  V.set_variable_name((G.name(Var) + ":0").str());
  if (!V.snapshot_name().empty())
    V.set_snapshot_name(
        (G.name(snapshotOf(Of, V.snapshot_name(), Part)) + ":0").str());
  auto Initializer = G.findEndpoint(V.initializer_name());
  if (!Initializer)
    return V;
  // Any other initializer is kept, because several variables may use it.
  if (auto It = Clones.find(Initializer->Node); It != Clones.end())
    V.set_initializer_name(G.name(It->second[Part]).str());
  if (auto It = SplitOf.find(Initializer->Node);
      It != SplitOf.end() && !V.initial_value_name().empty())
    V.set_initial_value_name((G.name(It->second) + ":" + Twine(Part)).str());
  return V;
}

} // namespace graft
