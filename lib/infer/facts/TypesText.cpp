//===- lib/infer/facts/TypesText.cpp - types as text ------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "lib/infer/facts/TypesText.h"

#include "lib/graph/ProgramAttrs.h"
#include "lib/program/Program.h"

using namespace llvm;

namespace graft {
namespace {

class TypesPrinter {
public:
  TypesPrinter(const Graph &G, const ProgramFacts &Facts) : G(G), Facts(Facts) {
    Replicas = Facts.Dims.replicas();
  }

  std::string line(NodeId N, unsigned Port) const;

private:
  std::string type(const ReplicationType &Type) const;
  std::string size(DimId D) const;
  std::string sizes(ArrayRef<DimId> List) const;

  const Graph &G;
  const ProgramFacts &Facts;
  unsigned Replicas;
};

std::string TypesPrinter::type(const ReplicationType &Type) const {
  ReplicationType Plain = Type;
  Plain.Zero = false;
  std::string Out = Plain.str();
  if (Type.Zero)
    Out += Type.isNothing() ? " nothing" : " zero";
  if (Type.Symbolic)
    Out += " size";
  if (Type.isRowNumbers())
    Out += " rows(" + std::to_string(Type.Axis) + ")";
  else if (Type.Indices == LocalIndices::ForGradient)
    Out += " kept";
  else if (Type.Indices != LocalIndices::None)
    Out += " indices";
  if (Type.Assumes & AssumesLocalBatchNorm)
    Out += " assumes=batch-norm";
  if (Type.Assumes & AssumesRandomDraw)
    Out += " assumes=draw";
  if (Type.Assumes & AssumesReduction)
    Out += " assumes=reduction";
  return Out;
}

std::string TypesPrinter::size(DimId D) const {
  std::optional<Sym> S = Facts.Dims.table().sym(D);
  if (!S)
    return Facts.Dims.table().isSame(D) ? "same" : "?";
  if (S->isNumber())
    return std::to_string(S->C);
  std::string Out = S->C == 1 && S->B != 0 ? "" : std::to_string(S->C);
  auto Factor = [&](const std::string &Of, int Power) {
    if (Power != 0)
      Out += (Out.empty() ? "" : "*") + Of +
             (Power == 1 ? "" : "^" + std::to_string(Power));
  };
  NodeId Rows = S->B == 0        ? NoNode
                : S->Ragged != 0 ? Facts.Dims.counterOf(S->Ragged)
                                 : Facts.Dims.table().rowsOf(*S).Node;
  if (S->B != 0)
    Factor((S->Ragged != 0 ? "r(" : "b(") + G.name(Rows).str() + ")", S->B);
  Factor("N", S->R);
  return Out;
}

std::string TypesPrinter::sizes(ArrayRef<DimId> List) const {
  std::string Out = "[";
  for (DimId D : List)
    Out += (Out.size() == 1 ? "" : ",") + size(D);
  return Out + "]";
}

std::string TypesPrinter::line(NodeId N, unsigned Port) const {
  std::string Out = originName(G, N).str() + ":" + std::to_string(Port) +
                    " = " + type(Facts.Types.type({N, Port}));
  if (G.isPerReplica(N))
    Out += " copies=" + std::to_string(Replicas);
  if (Inserted Kind = G.node(N).Kind; Kind != Inserted::No)
    Out += (" inserted=" + insertedName(Kind)).str();
  if (auto Shape = Facts.Dims.shape({N, Port}))
    Out += " shape=" + sizes(*Shape);
  if (auto Value = Facts.Dims.value({N, Port}))
    Out += " value=" + sizes(*Value);
  return Out + "\n";
}

} // namespace

std::string typesText(const Graph &G, const ProgramFacts &Facts) {
  TypesPrinter Printer(G, Facts);
  std::string Out;
  for (NodeId N = 0; N < G.size(); ++N)
    if (G.isLive(N))
      for (unsigned Port = 0; Port < Facts.Dims.numOutputs(N); ++Port)
        Out += Printer.line(N, Port);
  return Out;
}

} // namespace graft
