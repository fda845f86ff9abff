//===- lib/io/ControlContexts.cpp - collections of control flow -*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "lib/io/ControlContexts.h"

using namespace llvm;

namespace graft {

namespace {

/// Removes the names of missing tensors from contexts.
class ContextPruning {
public:
  explicit ContextPruning(const Graph &G) : G(G) {}

  bool drops(const tensorflow::CondContextDef &C) const {
    return isGone(C.pred_name()) || isGone(C.pivot_name());
  }
  bool drops(const tensorflow::WhileContextDef &C) const {
    return isGone(C.pivot_name()) || isGone(C.pivot_for_pred_name()) ||
           isGone(C.pivot_for_body_name());
  }

  void lower(tensorflow::CondContextDef &C) { pruneValues(C); }
  void lower(tensorflow::WhileContextDef &C) {
    prune(*C.mutable_loop_enter_names());
    prune(*C.mutable_loop_exit_names());
    pruneValues(C);
  }

private:
  void prune(google::protobuf::RepeatedPtrField<std::string> &Names) const {
    Names.erase(std::remove_if(
                    Names.begin(), Names.end(),
                    [this](const std::string &Name) { return isGone(Name); }),
                Names.end());
  }

  template <typename Context> void pruneValues(Context &C) {
    tensorflow::ValuesDef &Values = *C.mutable_values_def();
    prune(*Values.mutable_values());
    google::protobuf::Map<std::string, std::string> External;
    for (const auto &[Outside, Inside] : Values.external_values())
      if (!isGone(Outside) && !isGone(Inside))
        External[Outside] = Inside;
    Values.mutable_external_values()->swap(External);
    auto &Nested = *C.mutable_nested_contexts();
    Nested.erase(
        std::remove_if(
            Nested.begin(), Nested.end(),
            [this](const tensorflow::ControlFlowContextDef &Inner) {
              return (Inner.has_cond_ctxt() && drops(Inner.cond_ctxt())) ||
                     (Inner.has_while_ctxt() && drops(Inner.while_ctxt()));
            }),
        Nested.end());
    for (tensorflow::ControlFlowContextDef &Inner : Nested) {
      if (Inner.has_cond_ctxt())
        lower(*Inner.mutable_cond_ctxt());
      if (Inner.has_while_ctxt())
        lower(*Inner.mutable_while_ctxt());
    }
  }

  bool isGone(StringRef Name) const {
    auto E = G.findEndpoint(Name);
    return !E || (!E->isControl() && Name.contains(':') &&
                  E->Port >= G.numOutputs(E->Node).value_or(~0U));
  }

  const Graph &G;
};

} // namespace

void pruneContexts(Module &M) { editContexts<ContextPruning>(M); }

} // namespace graft
