//===- test/fuzz/support/RandomGraph.h - bytes to a legal graph ---------*- C++
//-*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
// Every string of bytes is a graph: each few bytes choose the next node. Names,
// ports, numbers of inputs and element types are right, and shapes fit for the
// most frequent ops. Any other op of the registry occurs too, with operands of
// the right types.
//
//===----------------------------------------------------------------------===//

#ifndef GRAFT_TEST_FUZZ_SUPPORT_RANDOMGRAPH_H
#define GRAFT_TEST_FUZZ_SUPPORT_RANDOMGRAPH_H

#include "lib/ops/OpTable.h"

#include "tensorflow/core/framework/graph.pb.h"

#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace graft::fuzz {

/// Choices read from bytes; the first choice if no bytes are left.
class Choices {
public:
  Choices(const uint8_t *Data, size_t Size) : Data(Data), End(Data + Size) {}
  bool empty() const { return Data == End; }
  unsigned below(unsigned N) {
    unsigned V = byte();
    return (N > 256 ? V << 8 | byte() : V) % N;
  }
  bool once(unsigned In) { return !empty() && below(In) == 0; }

private:
  unsigned byte() { return empty() ? 0 : *Data++; }
  const uint8_t *Data, *End;
};

/// The sizes of a tensor; -1 is the batch size. None: unknown here.
using Shape = std::optional<std::vector<int>>;

struct Tensor {
  std::string Name; ///< As an input names it.
  unsigned Type = DT_FLOAT;
  Shape Dims = std::nullopt;
};

/// The nodes of a graph, or of a function.
class Body {
public:
  using Nodes = google::protobuf::RepeatedPtrField<tensorflow::NodeDef>;

  Body(Choices &C, Nodes &List, bool IsFunction)
      : C(C), List(List), IsFunction(IsFunction) {}

  /// Adds \p T to the tensors that later nodes may read.
  void know(Tensor T) { Known.push_back(std::move(T)); }
  /// Adds a node of \p Op and its outputs, and returns the first of them.
  Tensor add(llvm::StringRef Op, std::vector<Tensor> Inputs,
             std::vector<std::pair<std::string, unsigned>> Types,
             Shape Dims = std::nullopt);
  tensorflow::NodeDef &last() { return *List.rbegin(); }
  tensorflow::AttrValue &attr(const std::string &Key) {
    return (*last().mutable_attr())[Key];
  }

  Tensor ints(const std::vector<int> &Values, bool IsScalar = false);
  Tensor number(unsigned Type);
  /// Returns a tensor of \p Type and, if possible, of \p Rank (-1: any).
  Tensor pick(unsigned Type, int Rank = -1);
  Tensor pickLike(const Tensor &Other);

  void step();
  std::vector<std::string> Functions; ///< From (float, float) to the same.
  std::string Predicate;              ///< From (float, float) to bool.

private:
  friend tensorflow::GraphDef randomGraph(Choices &C);

  void elementwise();
  void contract();
  void reduce();
  void reshape();
  void sizes();
  void rows();
  void conditional();
  void call();
  void variable();
  void update();
  void effect();
  void wild();

  Choices &C;
  Nodes &List;
  bool IsFunction;
  std::vector<Tensor> Known;
  struct Variable {
    Tensor Ref;
    Shape Dims;
    bool IsResource;
  };
  std::vector<Variable> Variables;
};

/// Returns a training step, or something like it.
tensorflow::GraphDef randomGraph(Choices &C);

} // namespace graft::fuzz

#endif // GRAFT_TEST_FUZZ_SUPPORT_RANDOMGRAPH_H
