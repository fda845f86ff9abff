//===- lib/lower/tpu/HostGradients.cpp - gradients of host ops --*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
// TensorFlow's Python code puts the gradient of a host op into a separate host
// cluster. If both were in one cluster, they would be one node, although the
// TPU computes between them. The id of the gradient's cluster has the scope of
// the call of `tf.gradients`. TensorFlow finds this scope in the names of ops,
// so this file is the only place where a scope has a meaning. `_class` shows
// which nodes belong to a host op.
//
//===----------------------------------------------------------------------===//

#include "lib/lower/tpu/HostClusters.h"

#include "llvm/ADT/DenseSet.h"

using namespace llvm;

namespace graft {
namespace {

/// Returns the scope of the outermost gradient call in \p Name, and the rest.
std::pair<StringRef, StringRef> gradientScope(StringRef Name) {
  size_t End;
  for (size_t At = 0; (End = Name.find('/', At)) != StringRef::npos;
       At = End + 1) {
    StringRef Part = Name.slice(At, End);
    unsigned Number;
    if (Part.consume_front("gradients") &&
        (Part.empty() ||
         (Part.consume_front("_") && !Part.getAsInteger(10, Number))))
      return {Name.take_front(End), Name.drop_front(End + 1)};
  }
  return {};
}

/// Returns the suffix that a gradient adds to the id of the op: `.<scope>/uid`.
std::string uidOf(StringRef Name, bool Chained) {
  auto [Scope, Rest] = gradientScope(Name);
  if (Scope.empty())
    return "";
  return (Chained ? uidOf(Rest, true) : "") + ("." + Scope + "/uid").str();
}

} // namespace

void HostClusters::markGradients(bool Chained) {
  std::vector<NodeId> Sums;
  for (NodeId N = 0; N < G.size(); ++N) {
    if (!G.isLive(N) || G.hasAttr(N, HostClusterAttr) || isScaffold(N))
      continue;
    StringRef Name = inputName(N), Rest = gradientScope(Name).second;
    if (Rest.empty())
      continue;
    // A sum of gradients is colocated with one of them, but is in the cluster
    // of the op whose gradient reads it.
    if (G.isOp(N, "AddN") && (Rest == "AddN" || Rest.starts_with("AddN_"))) {
      Sums.push_back(N);
      continue;
    }
    auto Class = G.stringListAttr(N, "_class");
    if (!Class)
      continue;
    for (StringRef With : *Class) {
      NodeId Op = With.consume_front("loc:@") ? G.find(With) : NoNode;
      if (Op == NoNode || Of[Op] != Of[N])
        continue;
      if (auto Id = G.stringAttr(Op, HostClusterAttr)) {
        mark(N, Id->split('.').first.str() + uidOf(Name, Chained));
        break;
      }
    }
  }
  // A sum may read sums.
  DenseSet<NodeId> IsSum(Sums.begin(), Sums.end());
  while (!Sums.empty()) {
    NodeId N = Sums.back();
    Sums.pop_back();
    if (G.hasAttr(N, HostClusterAttr))
      continue;
    std::string Uid = uidOf(inputName(N), false);
    for (Use U : G.uses(N)) {
      auto Id = G.stringAttr(U.User, HostClusterAttr);
      if (!Id || !Id->ends_with(Uid) || Of[U.User] != Of[N])
        continue;
      mark(N, Id->str());
      for (Endpoint E : G.dataInputs(N))
        if (IsSum.contains(E.Node))
          Sums.push_back(E.Node);
      break;
    }
  }
}

} // namespace graft
