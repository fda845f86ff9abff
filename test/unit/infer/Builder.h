//===- test/unit/infer/Builder.h - small programs ---------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
// Builds programs for tests of the analyses, one line for each node:
//
//     Builder B;
//     B.feed("x", {-1, 4});            // x, and x/split for each replica
//     B.ints("axis", {0});
//     B.op("Mean", "g", {"x/split", "axis"});
//     CHECK(B.type("g") == "Partial(sum) k=1");
//
//===----------------------------------------------------------------------===//

#ifndef GRAFT_TEST_UNIT_INFER_BUILDER_H
#define GRAFT_TEST_UNIT_INFER_BUILDER_H

#include "lib/infer/batch/SpreadCopies.h"
#include "lib/infer/facts/ProgramFacts.h"
#include "lib/program/Program.h"

#include <catch2/catch.hpp>

#include <memory>
#include <string>
#include <vector>

namespace graft {

class Builder {
public:
  explicit Builder(unsigned Replicas = 4) {
    std::vector<std::string> Names;
    for (unsigned I = 0; I < Replicas; ++I)
      Names.push_back("/device:CPU:" + std::to_string(I));
    std::vector<llvm::StringRef> Devices(Names.begin(), Names.end());
    NodeId N = op("_GraftMesh", "graft/mesh", {});
    G.setIntAttr(N, "replicas", Replicas);
    G.setAttr(N, "devices", encodeStringListAttr(Devices));
    G.node(N).Kind = Inserted::Mesh;
  }

  /// Adds a node; inputs as in a file. T is \p Type.
  NodeId op(llvm::StringRef Op, llvm::StringRef Name,
            std::vector<std::string> Inputs, unsigned Type = DT_FLOAT) {
    llvm::SmallVector<Endpoint, 4> Ends;
    for (const std::string &Text : Inputs) {
      auto E = G.findEndpoint(Text);
      INFO("input " << Text << " of " << Name.str());
      REQUIRE(E);
      Ends.push_back(*E);
    }
    NodeId N = G.addNode(Name, Op, Ends, NoNode);
    const OpDef *Def = findOp(Op);
    if (Def ? Def->attr("T") != nullptr : Op != MeshOp)
      G.setTypeAttr(N, "T", Type);
    if (Def && Def->attr("N"))
      G.setIntAttr(N, "N",
                   static_cast<int64_t>(Op == "ConcatV2" ? Ends.size() - 1
                                                         : Ends.size()));
    Facts.reset();
    return N;
  }

  NodeId placeholder(llvm::StringRef Name, llvm::ArrayRef<int64_t> Dims,
                     unsigned Type = DT_FLOAT) {
    return shaped("Placeholder", Name, Dims, Type);
  }
  NodeId variable(llvm::StringRef Name, llvm::ArrayRef<int64_t> Dims) {
    return shaped("VarHandleOp", Name, Dims, DT_FLOAT);
  }
  NodeId shaped(llvm::StringRef Op, llvm::StringRef Name,
                llvm::ArrayRef<int64_t> Dims, unsigned Type) {
    NodeId N = op(Op, Name, {});
    ShapeValue Shape;
    Shape.Dims.append(Dims.begin(), Dims.end());
    G.setAttr(N, "shape", encodeShapeAttr(Shape));
    G.setTypeAttr(N, "dtype", Type);
    return N;
  }

  /// Adds a placeholder and its slice `<name>/split`.
  NodeId feed(llvm::StringRef Name, llvm::ArrayRef<int64_t> Dims,
              unsigned Type = DT_FLOAT, int64_t Axis = 0) {
    placeholder(Name, Dims, Type);
    NodeId N = op("_ToReplicas", (Name + "/split").str(), {Name.str()}, Type);
    G.setIntAttr(N, "axis", Axis);
    inserted(N, Inserted::Split);
    return N;
  }

  /// Marks \p N as a per-replica node that graft inserted.
  NodeId inserted(NodeId N, Inserted Kind) {
    G.node(N).Kind = Kind;
    G.node(N).Count = Copies::PerReplica;
    return N;
  }

  NodeId ints(llvm::StringRef Name, std::vector<int64_t> Values) {
    return constant(Name, DT_INT32,
                    encodeIntTensor(DT_INT32, int64_t(Values.size()), Values));
  }
  NodeId integer(llvm::StringRef Name, int64_t Value) {
    return constant(Name, DT_INT32, encodeIntTensor(DT_INT32, {}, Value));
  }
  NodeId number(llvm::StringRef Name, double Value) {
    return constant(Name, DT_FLOAT, encodeFloatTensor(DT_FLOAT, {}, Value));
  }
  NodeId floats(llvm::StringRef Name, llvm::ArrayRef<int64_t> Dims,
                double Value) {
    return constant(Name, DT_FLOAT, encodeFloatTensor(DT_FLOAT, Dims, Value));
  }

  /// Adds element \p I of the shape of \p Of, an integer scalar.
  NodeId sizeOf(llvm::StringRef Name, llvm::StringRef Of, int64_t I) {
    std::string S = Name.str();
    op("Shape", S + "/shape", {Of.str()});
    ints(S + "/from", {I});
    ints(S + "/to", {I + 1});
    ints(S + "/by", {1});
    NodeId N = op("StridedSlice", S,
                  {S + "/shape", S + "/from", S + "/to", S + "/by"}, DT_INT32);
    G.setTypeAttr(N, "Index", DT_INT32);
    G.setIntAttr(N, "shrink_axis_mask", 1);
    return N;
  }

  NodeId cast(llvm::StringRef Name, const std::string &Input, unsigned From,
              unsigned To) {
    NodeId N = op("Cast", Name, {Input});
    G.setTypeAttr(N, "SrcT", From);
    G.setTypeAttr(N, "DstT", To);
    return N;
  }

  /// Returns the facts. Users of per-replica nodes are made per-replica first.
  const ProgramFacts &facts(bool Unpatched = false) {
    if (!Facts) {
      VariableIndex Vars(G);
      std::vector<NodeId> Work;
      for (NodeId N = 0; N < G.size(); ++N)
        if (G.isLive(N) && G.node(N).Count == Copies::PerReplica)
          Work.push_back(N);
      spreadCopies(G, Vars, Work);
      DimOptions Options;
      Options.Unpatched = Unpatched;
      Options.Replicas = readMesh(G).replicas();
      Facts = std::make_unique<ProgramFacts>(G, Options);
    }
    return *Facts;
  }

  Endpoint end(const std::string &Text) {
    auto E = G.findEndpoint(Text);
    INFO(Text);
    REQUIRE(E);
    return *E;
  }
  /// Returns the sizes: "1*b,4", or "unknown".
  std::string shape(const std::string &Text) {
    return list(facts().Dims.shape(end(Text)));
  }
  std::string value(const std::string &Text) {
    return list(facts().Dims.value(end(Text)));
  }
  std::string type(const std::string &Text) {
    return facts().Types.natural(end(Text)).str();
  }
  std::string numberType(const std::string &Text) {
    return facts().Types.number(end(Text)).str();
  }
  /// Returns all demands: "reduce g -1", "gather u:0 axis 0", "scale a:1 2".
  std::vector<std::string> demands() {
    static constexpr const char *Ops[] = {"sum", "min", "max", "and", "or"};
    std::vector<std::string> Result;
    for (const Demand &D : facts().Types.demands()) {
      std::string Power = " " + std::to_string(D.Power);
      std::string At =
          D.User == NoNode
              ? G.name(D.Source.Node).str()
              : (G.name(D.User) + ":" + llvm::Twine(D.Index)).str();
      if (D.Kind == Demand::Reduce)
        Result.push_back("reduce " + At + " " + Ops[int(D.Op)] + Power);
      else if (D.Kind == Demand::Gather)
        Result.push_back("gather " + At + " axis " + std::to_string(D.Axis) +
                         Power);
      else
        Result.push_back("scale " + At + Power);
    }
    return Result;
  }

  Graph G;

private:
  NodeId constant(llvm::StringRef Name, unsigned Type,
                  const std::string &Value) {
    NodeId N = op("Const", Name, {});
    G.setTypeAttr(N, "dtype", Type);
    G.setAttr(N, "value", Value);
    return N;
  }
  std::string list(std::optional<llvm::ArrayRef<DimId>> Dims) {
    if (!Dims)
      return "unknown";
    std::string Text;
    for (DimId D : *Dims)
      Text += (Text.empty() ? "" : ",") + facts().Dims.describe(D);
    return Text;
  }

  std::unique_ptr<ProgramFacts> Facts;
};

} // namespace graft

#endif // GRAFT_TEST_UNIT_INFER_BUILDER_H
