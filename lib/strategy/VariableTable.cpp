//===- lib/strategy/VariableTable.cpp - the variables of a graph ----------===//
//
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "lib/ops/Ops.h"
#include "lib/strategy/Resources.h"

#include "lib/infer/graph/Topology.h"
#include "lib/infer/sizes/Dims.h"
#include "lib/io/VariableCollections.h"

#include "llvm/ADT/STLExtras.h"

#include <memory>

using namespace llvm;

namespace graft {

unsigned bytesOf(unsigned Type) {
  switch (Type) {
  case DT_DOUBLE:
  case DT_INT64:
    return 8;
  case DT_FLOAT:
  case DT_INT32:
    return 4;
  case DT_INT16:
  case DT_HALF:
  case DT_BFLOAT16:
    return 2;
  case DT_UINT8:
  case DT_INT8:
  case DT_BOOL:
    return 1;
  default:
    return 0;
  }
}

namespace {

/// Returns the nodes that are computed from variables. A write of another
/// value, such as an initial or a restored one, is not part of a step.
std::vector<bool> computedOfVariables(const Graph &G,
                                      const VariableIndex &Vars) {
  std::vector<bool> Computed(G.size());
  std::vector<NodeId> Work(Vars.variables().begin(), Vars.variables().end());
  while (!Work.empty()) {
    NodeId N = Work.back();
    Work.pop_back();
    G.forEachUse(N, [&](Use U) {
      if (!G.isData(U) || Computed[U.User] || Vars.isUpdate(G, U.User))
        return;
      Computed[U.User] = true;
      Work.push_back(U.User);
    });
  }
  return Computed;
}

class Table {
public:
  Table(const Graph &G, const VariableIndex &Vars)
      : G(G), Vars(Vars), Computed(computedOfVariables(G, Vars)) {}

  bool isInStep(NodeId Update) const {
    UpdateDef U = Vars.update(G, Update);
    return U.Kind != UpdateKind::Assign || U.Grad < 0 ||
           Computed[G.input(Update, U.Grad).Node];
  }

  /// Calls \p F(Update, Index) for each update of \p Var in the step; Index is
  /// the position of \p Var among the variables of the update.
  template <typename Fn> void forEachUpdate(NodeId Var, Fn F) const {
    Vars.forEachUse(G, Var, [&](Use U) {
      if (Vars.isUpdate(G, U.User) &&
          U.Index < Vars.update(G, U.User).NumVars && isInStep(U.User))
        F(U.User, U.Index);
    });
  }

  bool isUpdated(NodeId Var) const {
    bool Updated = false;
    forEachUpdate(Var, [&](NodeId, unsigned) { Updated = true; });
    return Updated;
  }

  VariableRow row(NodeId Var);

private:
  uint64_t rowsOf(Endpoint Indices);

  const Graph &G;
  const VariableIndex &Vars;
  std::vector<bool> Computed;
  std::vector<NodeId> Order;
  std::unique_ptr<DimAnalysis> Dims; ///< Only if a variable is sparse.
};

/// Returns the number of elements of \p Indices, or 0 if the shape is not
/// known. For the output of a Unique, counts the elements of its input: the
/// size of the output is known only in the step.
uint64_t Table::rowsOf(Endpoint Indices) {
  while (Indices.Port == 0 &&
         (G.isOp(Indices.Node, op::Unique) ||
          G.isOp(Indices.Node, op::UniqueV2) ||
          G.isOp(Indices.Node, op::Identity) || G.isOp(Indices.Node, op::Cast)))
    Indices = G.input(Indices.Node, 0);
  if (!Dims) {
    Order = topologicalOrder(G);
    DimOptions Options;
    Options.Unpatched = true;
    Dims = std::make_unique<DimAnalysis>(G, Order, Options);
  }
  auto Shape = Dims->shape(Indices);
  if (!Shape)
    return 0;
  uint64_t Rows = 1;
  for (DimId D : *Shape) {
    int64_t Size = Dims->table().number(D);
    if (Size < 0 || __builtin_mul_overflow(Rows, uint64_t(Size), &Rows))
      return 0;
  }
  return Rows;
}

VariableRow Table::row(NodeId Var) {
  VariableRow Row;
  Row.Node = Var;
  Row.Name = G.name(Var).str();
  Row.Type = G.typeAttr(Var, "dtype").value_or(DT_INVALID);
  auto Shape = G.shapeAttr(Var, "shape");
  // The shape [] of the op Variable means that the shape is not known.
  if (Shape && !Shape->UnknownRank &&
      !(Shape->Dims.empty() && G.isOp(Var, op::Variable)) &&
      all_of(Shape->Dims, [](int64_t Size) { return Size >= 0; })) {
    uint64_t Bytes = bytesOf(Row.Type);
    bool Fits = true;
    for (int64_t Size : Shape->Dims)
      Fits &= !__builtin_mul_overflow(Bytes, uint64_t(Size), &Bytes);
    if (Fits && Bytes != 0) {
      Row.Shape.assign(Shape->Dims.begin(), Shape->Dims.end());
      Row.Bytes = Bytes;
    }
  }
  bool Any = false, Dense = false;
  forEachUpdate(Var, [&](NodeId Update, unsigned) {
    Any = true;
    Dense |= Vars.update(G, Update).Indices < 0;
  });
  Row.Sparse = Any && !Dense;
  if (Row.Sparse)
    forEachUpdate(Var, [&](NodeId Update, unsigned) {
      Row.RowsPerStep =
          std::max(Row.RowsPerStep,
                   rowsOf(G.input(Update, Vars.update(G, Update).Indices)));
    });
  return Row;
}

} // namespace

std::vector<NodeId> declaredVariables(const Module &M) {
  const Graph &G = M.graph();
  std::vector<NodeId> Vars;
  for (const NamedGradient &Gradient : M.Gradients)
    if (auto E = G.findEndpoint(Gradient.Variable))
      Vars.push_back(E->Node);
  append_range(Vars, variablesOf(M, "trainable_variables"));
  return Vars;
}

std::vector<VariableRow> listVariables(const Graph &G,
                                       const VariableIndex &Vars,
                                       ArrayRef<NodeId> Declared) {
  Table T(G, Vars);
  std::vector<NodeId> Trained(Declared.begin(), Declared.end());
  if (Trained.empty())
    for (NodeId Var : Vars.variables())
      T.forEachUpdate(Var, [&](NodeId Update, unsigned Index) {
        if (Index == 0 && Vars.update(G, Update).Kind == UpdateKind::Apply)
          Trained.push_back(Var);
      });
  if (Trained.empty())
    for (NodeId Var : Vars.variables())
      if (isFloating(G.typeAttr(Var, "dtype").value_or(DT_INVALID)) &&
          T.isUpdated(Var) && T.row(Var).Bytes != 0)
        Trained.push_back(Var);
  sort(Trained);
  Trained.erase(llvm::unique(Trained), Trained.end());
  std::vector<VariableRow> Rows;
  for (NodeId Var : Trained)
    if (Var < G.size() && G.isLive(Var))
      Rows.push_back(T.row(Var));
  return Rows;
}

} // namespace graft
