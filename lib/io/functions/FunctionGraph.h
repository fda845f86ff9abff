//===- lib/io/functions/FunctionGraph.h - a body as a graph -----*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
// Converts the body of a function into a graph and back. Arguments become feeds
// and results become fetches. The handle of a captured variable is an argument,
// too, and becomes a variable:
//
//     train(x, w) {                            x = Placeholder
//       r = ReadVariableOp(w)                  w = VarHandleOp
//       y = MatMul(x, r)              ⇄        r = ReadVariableOp(w)
//       return y, run r                        y = MatMul(x, r)
//     }                                        result_0 = Identity(y)
//                                              effects = NoOp(^r)
//
// The conversion back drops unneeded nodes. A node that takes an argument as a
// handle has no device, because TensorFlow places the node on the device of the
// variable.
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
  std::string Name; ///< Empty if not known.
  tensorflow::DataType Type = tensorflow::DT_INVALID;
  tensorflow::TensorShapeProto Shape;

  bool isKnown() const { return Type != tensorflow::DT_INVALID; }
};

/// The values that TensorFlow adds to the arguments of each call: variables,
/// tables, tensors.
struct Captures {
  /// By argument. The entry of an argument that is no variable has no name and
  /// no type.
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
  /// Further tensors that the body must have, `add:0`.
  std::vector<std::string> Named;
  /// The arguments that are tensors with the same value in each call.
  std::vector<std::string> Constants;
};

/// Returns the graph of \p Def, with the functions of \p Library that \p Def
/// runs. The graph also has \p Versions, the field of a GraphDef. Returns an
/// error if an argument or a result cannot be a node of a graph.
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
