//===- lib/io/functions/FunctionGraph.h - a body as a graph -----*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
// The body of a function is a graph: its arguments are feeds, its results are
// fetches. Captured variables are arguments, too: handles. The graph has them
// as variables again, each once and under its own name:
//
//     train(x, w) {                            x = Placeholder
//       r = ReadVariableOp(w)                  w = VarHandleOp
//       y = MatMul(x, r)              ⇄        r = ReadVariableOp(w)
//       return y, run r                        y = MatMul(x, r)
//     }                                        result_0 = Identity(y)
//                                              effects = NoOp(^r)
//
// On the way back, unneeded nodes are left out. A node that takes the handle of
// an argument has no device: TensorFlow places it on the variable's device.
//
//===----------------------------------------------------------------------===//

#ifndef GRAFT_LIB_IO_FUNCTIONS_FUNCTIONGRAPH_H
#define GRAFT_LIB_IO_FUNCTIONS_FUNCTIONGRAPH_H

#include "lib/io/inline/Functions.h"

#include "llvm/Support/Error.h"

#include <string>
#include <vector>

namespace graft {

/// A variable whose handle is an argument.
struct CapturedVariable {
  std::string Name; ///< Empty: not known.
  tensorflow::DataType Type = tensorflow::DT_INVALID;
  tensorflow::TensorShapeProto Shape;

  bool isKnown() const { return Type != tensorflow::DT_INVALID; }
};

/// The values that TensorFlow adds to the arguments of each call: variables,
/// tables, tensors.
struct Captures {
  /// By argument; unknown if it is no variable.
  std::vector<CapturedVariable> Variables;
  /// The first argument that the caller does not pass.
  unsigned First = 0;
};

/// A function as a graph.
struct FunctionGraph {
  std::string Bytes;                  ///< A GraphDef.
  std::vector<std::string> Arguments; ///< The node of each argument.
  std::vector<std::string> Results;   ///< The node of each result.
  std::string Effects;                ///< A node that runs all effects.
  /// The arguments that are tensors with the same value in each call.
  std::vector<std::string> Constants;
};

/// Returns the graph of \p Def with the functions of \p Library that it runs
/// and \p Versions, the field of a GraphDef. Returns an error if a graph cannot
/// have an argument or a result of it.
llvm::Expected<FunctionGraph> graphOf(const tensorflow::FunctionDef &Def,
                                      const FunctionLibrary &Library,
                                      const Captures &Captured,
                                      llvm::StringRef Versions);

/// Returns \p Def with the body \p Bytes, a GraphDef that was made from
/// \p Like.
llvm::Expected<tensorflow::FunctionDef>
functionOf(const tensorflow::FunctionDef &Def, const FunctionGraph &Like,
           const FunctionLibrary &Library, llvm::StringRef Bytes);

} // namespace graft

#endif // GRAFT_LIB_IO_FUNCTIONS_FUNCTIONGRAPH_H
