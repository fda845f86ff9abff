//===- passes/OrderReads.cpp - order-reads ----------------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
// Orders reads of reference variables before or after the updates of the step.
//
// The pass makes updates wait for unordered reads of the same step.
// Optimizer.compute_gradients adds a barrier after the gradients of each op.
// tf.gradients adds none, so the gradient of a product may read the weights
// while they are updated:
//
//     dx = MatMul(dy, w)                  dx = MatMul(dy, w)
//     dw = MatMul(x, dy)             →    dw = MatMul(x, dy)
//     ApplyGradientDescent(w, lr, dw)     ApplyGradientDescent(w, lr, dw, ^dx)
//
// A loss without a gradient for the weights may read them too, such as the
// gradient penalty of a critic with a bias. The update waits for this read if
// every run of the update runs the read anyway.
//
// On one device the order depends on the executor. With several replicas, one
// replica may read before the update and another replica after it. No run of
// the input does this. A run of the input that reads first computes the
// gradient that the author asked for. So the ordered graph is a normal form of
// the input, and the certificate takes its snapshot after this pass. The pass
// warns, because a single device may also read after the update.
//
// A node after an update may use a value that was read before the update. On
// one device the node sees the updated value, since a reference is the same
// memory. In another process the node would see a copy of the old value. So the
// variable is read again, which changes nothing on one device:
//
//     r = Identity(w)                     r = Identity(w)
//     average = AssignSub(a, r, ^step) →  r/late = Identity(w, ^step)
//                                         average = AssignSub(a, r/late, ^step)
//
// Some reads stay unordered, because a run of the update need not run them. The
// warning names these reads, too. Their users, such as a moving average, a
// summary or a fetch, may get the old or the new value.
//
// Relies on: inlined functions (inline-functions).
//
//===----------------------------------------------------------------------===//

#include "lib/infer/graph/LateUses.h"
#include "lib/infer/graph/ReadOrder.h"
#include "lib/infer/graph/UnorderedReads.h"
#include "lib/io/Module.h"
#include "lib/program/TensorNames.h"
#include "passes/Options.h"

#include "llvm/Support/FormatVariadic.h"

using namespace llvm;

namespace graft {
namespace {

class OrderReads final : public PassBase<OrderReads, OrderReadsOptions> {
public:
  static constexpr PassInfo Info = {
      "order-reads", "Order reads and updates of reference variables",
      "Makes an update of a reference variable wait for unordered reads of\n"
      "the same step, if each run of the update runs these reads anyway. A\n"
      "node that runs after an update, but uses an earlier read, gets a new\n"
      "read. A warning names reads that stay unordered."};

  Effect effect() const override { return Effect::Normalises; }
  PassResult run(Module &M, DiagnosticEngine &Diags) override;

private:
  std::vector<NodeId> namedFetches(const Graph &G) const;
};

std::vector<NodeId> OrderReads::namedFetches(const Graph &G) const {
  std::vector<NodeId> Nodes;
  for (StringRef Name : withoutPatterns(G, *Options.Fetch))
    if (auto E = G.findEndpoint(Name))
      Nodes.push_back(E->Node);
  return Nodes;
}

/// Returns the sentence of the warning about \p Read, the first of \p Count
/// reads.
std::string sentence(const Graph &G, OpenRead Read, size_t Count,
                     StringRef Rest) {
  std::string Message = formatv("reads a variable, and nothing in the input "
                                "orders this read and the update '{0}': {1}",
                                G.name(Read.Update), Rest);
  if (Count > 1)
    Message += formatv("; and {0} more like this", Count - 1).str();
  return Message;
}

PassResult OrderReads::run(Module &M, DiagnosticEngine &Diags) {
  Graph &G = M.graph();
  std::vector<OpenRead> Reads = findOpenReads(G);
  Statistics["reads ordered"] = Reads.size();
  if (!Reads.empty()) {
    Diags.warning("order", G.name(Reads.front().Reader),
                  sentence(G, Reads.front(), Reads.size(),
                           "in the output the read comes first, but a single "
                           "device may read the new value"));
    orderReads(G, Reads);
  }
  UnorderedReads Left = findUnorderedReads(G, namedFetches(G));
  Statistics["reads left in no order"] = Left.Count;
  if (Left.Count != 0) {
    StringRef Reader = G.name(Left.First.Reader);
    std::string Message = sentence(
        G, Left.First, Left.Count,
        Left.IsMemory
            ? "a fetch of this tensor may share the memory of the variable and "
              "get the new value, while in another task it gets a copy of the "
              "old value; fetch it after the update, or in a separate run"
            : "in a run of both, either may come first, as on a single device; "
              "add a control dependency between the two");
    if (Reads.empty())
      Diags.warning("order", Reader, std::move(Message));
    else
      Diags.addNote(Reader, Message);
  }
  std::vector<LateUse> Late = findLateUses(G).Known;
  Statistics["uses that read again"] = Late.size();
  readAgain(G, Late);
  return Reads.empty() && Late.empty() ? PassResult::Unchanged
                                       : PassResult::Changed;
}

} // namespace

GRAFT_DEFINE_PASS_WITH_OPTIONS(OrderReads)

} // namespace graft
