//===- lib/rewrite/partition/PartitionNodes.cpp - nodes for parts ---------===//
//
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "lib/ops/Ops.h"
#include "lib/program/Program.h"
#include "lib/rewrite/partition/PartitionEdit.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"

using namespace llvm;

namespace graft {

NodeId PartitionEditor::add(NodeId Of, const Twine &Suffix, StringRef Op,
                            ArrayRef<Endpoint> Inputs, const AttrRun &Attrs) {
  SmallString<128> Name(G.name(Of));
  Name += '/';
  Suffix.toVector(Name);
  NodeId N = G.insertNode(Name, Op, Inputs, Of, Attrs);
  G.node(N).Device = G.node(Of).Device;
  return N;
}

std::string PartitionEditor::classFor(StringRef Entry, unsigned Part) const {
  StringRef Name = Entry;
  if (!Name.consume_front(ClassPrefix))
    return Entry.str();
  NodeId Was = Gone.lookup(Name);
  auto It = Gone.contains(Name) ? Clones.find(Was) : Clones.end();
  if (It == Clones.end())
    return Entry.str();
  // The colocated variable may have fewer parts.
  ArrayRef<NodeId> Its = It->second;
  return (ClassPrefix + G.name(Part < Its.size() ? Its[Part] : Its[0])).str();
}

NodeId PartitionEditor::clone(NodeId Of, const Twine &Name, unsigned Part,
                              ArrayRef<Endpoint> Inputs) {
  AttrRun Attrs;
  for (const AttrEntry &A : G.attrs(Of)) {
    if (A.Key == "_output_shapes" || A.Key == SliceAttr)
      continue;
    if (A.Key != "_class") {
      Attrs.raw(A.Key, A.Value);
      continue;
    }
    std::vector<std::string> Names;
    for (StringRef Entry :
         G.stringListAttr(Of, "_class").value_or(SmallVector<StringRef, 2>()))
      Names.push_back(classFor(Entry, Part));
    Attrs.raw(A.Key, encodeStringListAttr(SmallVector<StringRef, 2>(
                         Names.begin(), Names.end())));
  }
  SmallString<128> Text;
  Name.toVector(Text);
  NodeId N = G.insertNode(Text, G.opName(Of), Inputs, Of, Attrs);
  G.node(N).Device = G.node(Of).Device;
  return N;
}

NodeId PartitionEditor::cloneForPart(NodeId Of, const Twine &Name,
                                     unsigned Part) {
  SmallVector<Endpoint, 8> Inputs(G.inputs(Of));
  for (Endpoint &E : Inputs)
    if (!E.isControl() && Plan.find(E))
      E = partOf(E, Part);
  return clone(Of, Name, Part, Inputs);
}

void PartitionEditor::become(NodeId N, StringRef Op, ArrayRef<Endpoint> Inputs,
                             const AttrRun &Attrs) {
  for (const AttrEntry &A : G.attrs(N))
    if (!A.Key.starts_with("_") ||
        (A.Key == "_output_shapes" && Op == op::NoOp))
      G.removeAttr(N, A.Key);
  G.setOp(N, Op);
  G.setInputs(N, Inputs);
  wire::Reader R(Attrs.str());
  wire::Field F;
  AttrEntry Entry;
  while (R.next(F))
    if (parseEntry(F, Entry))
      G.setAttr(N, Entry.Key, Entry.Value);
}

void PartitionEditor::becomeIdentity(NodeId N, Endpoint Value, unsigned Type) {
  AttrRun Attrs;
  Attrs.type("T", Type);
  become(N, op::Identity, Value, Attrs);
}

std::string PartitionEditor::readName(const PartitionedVariable &Of,
                                      NodeId Read, unsigned Part) const {
  StringRef Name = G.name(Read), Var = G.name(Of.Var);
  std::string Mark = ("part_" + Twine(Part)).str();
  if (Name.size() > Var.size() && Name.starts_with(Var) &&
      Name[Var.size()] == '/')
    return (Var + "/" + Mark + Name.substr(Var.size())).str();
  return (Name + "/" + Mark).str();
}

void PartitionEditor::enterContext(Endpoint Handle) {
  Context = NoNode;
  if (isVariableOp(G.opName(Handle.Node)))
    return;
  auto [It, New] = Contexts.try_emplace({Handle.Node, Handle.Port}, NoNode);
  if (New) {
    Endpoint First = partOf(Handle, 0);
    It->second = First.Node;
    // A control edge from a Switch would not select one of the branches.
    if (G.opName(First.Node).ends_with(op::Switch)) {
      bool IsRef = G.isRefOutput(First.Node, First.Port);
      AttrRun Attrs;
      Attrs.type("T", G.outputType(First));
      It->second = G.insertNode((G.name(First.Node) + "/pivot").str(),
                                IsRef ? op::RefIdentity : op::Identity, First,
                                First.Node, Attrs);
      G.node(It->second).Device = G.node(First.Node).Device;
    }
  }
  Context = It->second;
}

NodeId PartitionEditor::constant(NodeId Of, const Twine &Suffix, unsigned Type,
                                 ArrayRef<int64_t> Shape,
                                 ArrayRef<int64_t> Values) {
  AttrRun Attrs;
  Attrs.type("dtype", Type);
  Attrs.raw("value", encodeIntTensor(Type, Shape, Values));
  SmallVector<Endpoint, 1> Inputs;
  if (Context != NoNode)
    Inputs.push_back({Context, ControlPort});
  return add(Of, Suffix, op::Const, Inputs, Attrs);
}

NodeId PartitionEditor::concat(NodeId Of, ArrayRef<Endpoint> Values,
                               unsigned Type, int64_t Axis) {
  SmallVector<Endpoint, 8> Inputs(Values);
  Inputs.push_back({scalar(Of, "concat/axis", Axis), 0});
  AttrRun Attrs;
  Attrs.integer("N", static_cast<int64_t>(Values.size()));
  Attrs.type("T", Type).type("Tidx", DT_INT32);
  return add(Of, "concat", op::ConcatV2, Inputs, Attrs);
}

NodeId PartitionEditor::split(NodeId Of, Endpoint Value, unsigned Type,
                              ArrayRef<int64_t> Sizes, int64_t Axis) {
  // Row counts of more than 31 bits need int64.
  unsigned Length = any_of(Sizes, [](int64_t S) { return S > INT32_MAX; })
                        ? DT_INT64
                        : DT_INT32;
  NodeId Lengths = vector(Of, "split/sizes", Sizes, Length);
  NodeId Dim = scalar(Of, "split/axis", Axis);
  AttrRun Attrs;
  Attrs.integer("num_split", static_cast<int64_t>(Sizes.size()));
  Attrs.type("T", Type).type("Tlen", Length);
  return add(Of, "split", op::SplitV, {Value, {Lengths, 0}, {Dim, 0}}, Attrs);
}

void PartitionEditor::renameClasses() {
  SmallVector<StringRef, 2> Entries;
  for (NodeId N = 0; N < G.size(); ++N) {
    if (!G.isLive(N) || !(G.node(N).Flags & NF_MayHaveClass))
      continue;
    auto Old = G.stringListAttr(N, "_class");
    if (!Old)
      continue;
    std::vector<std::string> New;
    for (StringRef Entry : *Old)
      New.push_back(classFor(Entry, 0));
    if (!equal(New, *Old))
      G.setAttr(N, "_class",
                encodeStringListAttr(
                    SmallVector<StringRef, 2>(New.begin(), New.end())));
  }
}

} // namespace graft
