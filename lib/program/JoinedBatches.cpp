//===- lib/program/JoinedBatches.cpp - several elements as a batch --------===//
//
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "lib/program/JoinedBatches.h"

#include "lib/graph/AttrRun.h"
#include "lib/ops/Ops.h"

#include "llvm/ADT/STLExtras.h"

using namespace llvm;

namespace graft {

bool isJoinedBatch(const Graph &G, NodeId N) {
  return G.isOp(N, op::IdentityN) && G.node(N).Flags & NF_MayHaveGraft &&
         G.hasAttr(N, JoinedAttr);
}

static bool isIteratorRead(const Graph &G, NodeId N) {
  return G.isOp(N, op::IteratorGetNext) || G.isOp(N, op::IteratorGetNextSync);
}

bool isJoinable(const Graph &G, NodeId N) {
  auto Shapes = G.shapeListAttr(N, "output_shapes");
  auto Types = G.typeListAttr(N, "output_types");
  return isIteratorRead(G, N) && Shapes && Shapes->size() == Types.size() &&
         all_of(Types,
                [](unsigned Type) {
                  return Type != DT_VARIANT && Type != DT_RESOURCE;
                }) &&
         all_of(*Shapes, [](const ShapeValue &Shape) {
           return !Shape.UnknownRank && !Shape.Dims.empty() &&
                  Shape.Dims[0] < 0 &&
                  all_of(
                      drop_begin(Shape.Dims),
                      [](int64_t Size) { return Size >= 0; });
         });
}

static std::string encodeTypes(ArrayRef<unsigned> Types) {
  std::string Text;
  for (unsigned Type : Types)
    Text += static_cast<char>(Type);
  return encodeTypeListAttr(Text);
}

namespace {

class Joiner {
public:
  Joiner(Graph &G, NodeId Read)
      : G(G), Read(Read), Name(G.name(Read)), Device(G.device(Read)),
        Types(G.typeListAttr(Read, "output_types")),
        Shapes(*G.shapeListAttr(Read, "output_shapes")) {}

  void join(unsigned Elements);

private:
  NodeId add(const Twine &NodeName, StringRef Op, ArrayRef<Endpoint> Inputs,
             const AttrRun &Attrs, StringRef On);
  NodeId element(const Twine &NodeName, StringRef Op,
                 ArrayRef<Endpoint> Inputs);
  Endpoint constant(const Twine &NodeName, ArrayRef<int64_t> Values,
                    bool IsScalar = false);
  NodeId noRows(NodeId First);
  NodeId next(unsigned Index, NodeId Last, NodeId NoRows);

  Graph &G;
  NodeId Read, After = NoNode;
  std::string Name, Device;
  SmallVector<unsigned, 4> Types;
  SmallVector<ShapeValue, 2> Shapes;
};

} // namespace

/// Adds a node behind the last one.
NodeId Joiner::add(const Twine &NodeName, StringRef Op,
                   ArrayRef<Endpoint> Inputs, const AttrRun &Attrs,
                   StringRef On) {
  After = G.insertNode(NodeName.str(), Op, Inputs, After, Attrs);
  G.setDevice(After, On);
  return After;
}

/// Adds a node that returns an element.
NodeId Joiner::element(const Twine &NodeName, StringRef Op,
                       ArrayRef<Endpoint> Inputs) {
  AttrRun Attrs;
  for (const AttrEntry &A : G.attrs(Read))
    if (A.Key == "output_types" || A.Key == "output_shapes")
      Attrs.raw(A.Key, A.Value);
  return add(NodeName, Op, Inputs, Attrs.boolean(JoinedAttr, true), Device);
}

Endpoint Joiner::constant(const Twine &NodeName, ArrayRef<int64_t> Values,
                          bool IsScalar) {
  auto Size = static_cast<int64_t>(Values.size());
  ArrayRef<int64_t> Shape = IsScalar ? ArrayRef<int64_t>() : ArrayRef(Size);
  return {add(NodeName, op::Const, {},
              AttrRun()
                  .type("dtype", DT_INT32)
                  .raw("value", encodeIntTensor(DT_INT32, Shape, Values)),
              Device),
          0};
}

/// Returns an Optional with an element like \p First, but without rows.
NodeId Joiner::noRows(NodeId First) {
  SmallVector<Endpoint, 4> Parts;
  for (auto [Port, Shape] : enumerate(Shapes)) {
    SmallVector<int64_t, 4> Begin(Shape.Dims.size(), 0),
        Size(Shape.Dims.size(), -1);
    Size[0] = 0;
    std::string Part = Name + "/no_rows_" + std::to_string(Port);
    Endpoint At = constant(Part + "/begin", Begin),
             Of = constant(Part + "/size", Size);
    Parts.push_back(
        {add(Part, op::Slice,
             {Endpoint{First, static_cast<uint32_t>(Port)}, At, Of},
             AttrRun().type("T", Types[Port]).type("Index", DT_INT32), Device),
         0});
  }
  return add(Name + "/no_rows", op::OptionalFromValue, Parts,
             AttrRun()
                 .raw("Toutput_types", encodeTypes(Types))
                 .boolean(JoinedAttr, true),
             Device);
}

/// Returns element number \p Index, which is read after \p Last. Returns the
/// element of \p NoRows if the iterator has ended.
NodeId Joiner::next(unsigned Index, NodeId Last, NodeId NoRows) {
  std::string Part = Name + "/element_" + std::to_string(Index);
  SmallVector<Endpoint, 4> Inputs(G.inputs(Read));
  Inputs.push_back(Endpoint{Last, ControlPort});
  NodeId Taken = element(Part, op::IteratorGetNextAsOptional, Inputs);
  NodeId Given = add(Part + "/given", op::OptionalHasValue, Endpoint{Taken, 0},
                     AttrRun(), Device);
  NodeId Chosen =
      add(Part + "/chosen", op::Select,
          {Endpoint{Given, 0}, Endpoint{Taken, 0}, Endpoint{NoRows, 0}},
          AttrRun().type("T", DT_VARIANT), Device);
  return element(Part + "/value", op::OptionalGetValue, Endpoint{Chosen, 0});
}

void Joiner::join(unsigned Elements) {
  After = Read;
  SmallVector<Endpoint, 4> Inputs(G.inputs(Read));
  SmallVector<NodeId, 8> All{
      element(Name + "/element", G.opName(Read), Inputs)};
  NodeId NoRows = noRows(All[0]);
  for (unsigned I = 1; I < Elements; ++I)
    All.push_back(next(I, All.back(), NoRows));
  Endpoint Axis = constant(Name + "/axis", 0, /*IsScalar=*/true);
  SmallVector<Endpoint, 4> Joined;
  for (uint32_t Port = 0; Port < Types.size(); ++Port) {
    SmallVector<Endpoint, 8> Parts;
    for (NodeId N : All)
      Parts.push_back({N, Port});
    Parts.push_back(Axis);
    Joined.push_back(
        {add(Name + "/rows_" + std::to_string(Port), op::ConcatV2, Parts,
             AttrRun()
                 .type("T", Types[Port])
                 .type("Tidx", DT_INT32)
                 .integer("N", Elements),
             Device),
         0});
  }
  SmallVector<std::string, 4> Keys;
  for (const AttrEntry &A : G.attrs(Read))
    Keys.push_back(A.Key.str());
  for (const std::string &Key : Keys)
    G.removeAttr(Read, Key);
  G.setOp(Read, op::IdentityN);
  G.setInputs(Read, Joined);
  G.setAttr(Read, "T", encodeTypes(Types));
  G.setIntAttr(Read, JoinedAttr, Elements);
}

void joinElements(Graph &G, NodeId Read, unsigned Elements) {
  Joiner(G, Read).join(Elements);
}

void joinLike(Graph &G, const Graph &Output) {
  for (NodeId N = 0; N < Output.size(); ++N) {
    if (!Output.isLive(N) || !isJoinedBatch(Output, N))
      continue;
    NodeId Read = G.find(Output.name(N));
    auto Elements = Output.intAttr(N, JoinedAttr).value_or(0);
    if (Read != NoNode && Elements > 0 && isJoinable(G, Read))
      joinElements(G, Read, static_cast<unsigned>(Elements));
  }
}

} // namespace graft
