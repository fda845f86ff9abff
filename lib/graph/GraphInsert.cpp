//===- lib/graph/GraphInsert.cpp - inserting nodes --------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "lib/graph/AttrRun.h"

#include "llvm/ADT/STLExtras.h"

#include <cassert>

using namespace llvm;

namespace graft {

NodeId Graph::insertNode(StringRef Name, StringRef Op,
                         ArrayRef<Endpoint> Inputs, NodeId After,
                         const AttrRun &Attrs, Inserted Kind, Copies Count) {
  NodeId N = size();
  StringRef Saved = save(Name);
  if (Names.insert(N, Saved, hashBytes(Saved), nameOf()) != N) {
    Saved = save(uniqueName(Name));
    Names.insert(N, Saved, hashBytes(Saved), nameOf());
  }
  Node &New = appendNode(Saved, Op, After);
  // Nodes inserted one after the other mostly have the same attributes.
  if (StringRef Run = Attrs.str(); Run != LastRun)
    LastRun = Run.empty() ? StringRef() : save(Run);
  New.AttrData = LastRun.data();
  New.AttrSize = static_cast<uint32_t>(LastRun.size());
  New.Flags |= Attrs.flags();
  New.Kind = Kind;
  New.Count = Count;
  New.FirstEdge = static_cast<uint32_t>(EdgeSources.size());
  for (Endpoint E : Inputs) {
    assert((E.isControl() || New.NumData == New.NumInputs) &&
           "control inputs come last");
    EdgeSources.push_back(E);
    Links.emplace_back();
    link(New.FirstEdge + New.NumInputs++, N);
    New.NumData += !E.isControl();
  }
  return N;
}

bool Graph::keepClasses(NodeId N, function_ref<bool(StringRef)> Stays) {
  auto Entries = stringListAttr(N, "_class");
  if (!Entries)
    return false;
  size_t Before = Entries->size();
  llvm::erase_if(*Entries, [&](StringRef Entry) { return !Stays(Entry); });
  if (Entries->size() == Before)
    return false;
  if (Entries->empty())
    removeAttr(N, "_class");
  else
    setAttr(N, "_class", encodeStringListAttr(*Entries));
  return true;
}

void Graph::replaceOtherFields(unsigned Number, StringRef Field) {
  llvm::erase_if(Others, [&](StringRef Old) {
    wire::Reader R(Old);
    wire::Field F;
    return R.next(F) && F.Number == Number;
  });
  Others.push_back(save(Field));
  markModified();
}

} // namespace graft
