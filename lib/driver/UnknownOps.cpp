//===- lib/driver/UnknownOps.cpp - unknown ops ------------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "lib/driver/UnknownOps.h"

#include "lib/io/inline/Functions.h"
#include "lib/ops/OpTable.h"

#include "tensorflow/core/protobuf/meta_graph.pb.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/Support/FormatVariadic.h"

using namespace llvm;

namespace graft {

void warnOfUnknownOps(const Module &M, ArrayRef<std::string> Custom,
                      DiagnosticEngine &Diags) {
  const Graph &G = M.graph();
  StringSet<> Known = functionNames(G);
  for (StringRef Op : Custom)
    Known.insert(Op);
  if (const tensorflow::MetaGraphDef *Meta = M.metaGraph())
    for (const auto &Op : Meta->meta_info_def().stripped_op_list().op())
      Known.insert(Op.name());
  // Names of ops that a runtime or a program adds begin with '_'.
  auto IsUnknown = [&](StringRef Op) {
    return !findOp(Op) && !Op.starts_with("_") && !Known.contains(Op);
  };
  // The first node with each unknown op, or NoNode if only functions have it.
  std::vector<std::pair<std::string, NodeId>> Found;
  auto See = [&](StringRef Op, NodeId N) {
    if (Known.insert(Op).second)
      Found.push_back({Op.str(), N});
  };
  std::vector<bool> Unknown(G.numOps());
  for (uint32_t Op = 0; Op < G.numOps(); ++Op)
    Unknown[Op] = !G.opDefOf(Op) && IsUnknown(G.opNameOf(Op));
  if (is_contained(Unknown, true))
    for (NodeId N = 0; N < G.size(); ++N)
      if (G.isLive(N) && Unknown[G.node(N).Op])
        See(G.opName(N), N);
  forEachBodyNode(G, [&](StringRef Op, StringRef) {
    if (IsUnknown(Op))
      See(Op, NoNode);
  });
  constexpr size_t Most = 8;
  std::vector<std::string> Names;
  if (!Found.empty())
    for (const OpDef &Op : allOps())
      Names.push_back(Op.Name);
  for (const auto &[Op, N] : ArrayRef(Found).take_front(Most))
    Diags.unproved(
        "unknown-op", N == NoNode ? StringRef() : G.name(N),
        formatv("TensorFlow has no op '{0}'; give --custom-ops={0} if "
                "a library of yours has it{1}",
                Op, didYouMean(Op, Names))
            .str());
  if (Found.size() > Most)
    Diags.unproved("unknown-op", "",
                   "TensorFlow does not have " +
                       std::to_string(Found.size() - Most) +
                       " more ops of the graph; name those of your libraries "
                       "with --custom-ops");
}

} // namespace graft
