//===- lib/io/functions/FunctionGraph.h - a body as a graph -----*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
// The body of a function is a graph that is fed its arguments and fetched its
// results. Variables that it captures are arguments, too: handles. In the graph
// they are variables again, each under its own name, and once:
//
//     train(x, w) {                            x = Placeholder
//       r = ReadVariableOp(w)                  w = VarHandleOp
//       y = MatMul(x, r)              ⇄        r = ReadVariableOp(w)
//       return y, run r                        y = MatMul(x, r)
//     }                                        result_0 = Identity(y)
//                                              effects = NoOp(^r)
//
// Back again, what is no longer needed is left out, and whatever uses an
// argument's handle has no device: TensorFlow puts it where the variable is.
//
//===----------------------------------------------------------------------===//

#ifndef GRAFT_LIB_IO_FUNCTIONS_FUNCTIONGRAPH_H
#define GRAFT_LIB_IO_FUNCTIONS_FUNCTIONGRAPH_H

#include "lib/io/inline/Functions.h"

#include "llvm/Support/Error.h"

#include <string>
#include <vector>

namespace graft {

/// A variable that an argument is the handle of.
struct CapturedVariable {
  std::string Name; ///< Empty: it is not known.
  tensorflow::DataType Type = tensorflow::DT_INVALID;
  tensorflow::TensorShapeProto Shape;

  bool isKnown() const { return Type != tensorflow::DT_INVALID; }
};

/// What TensorFlow passes along with each call, beside the arguments of the
/// caller: variables, tables, tensors.
struct Captures {
  /// By argument; what is no variable has none.
  std::vector<CapturedVariable> Variables;
  /// The first argument that the caller does not give.
  unsigned First = 0;
};

/// A function as a graph.
struct FunctionGraph {
  std::string Bytes;                  ///< A GraphDef.
  std::vector<std::string> Arguments; ///< The node of each.
  std::vector<std::string> Results;   ///< Likewise, of what is returned.
  std::string Effects;                ///< Running it runs all effects.
  /// The arguments that are tensors and are the same in each call.
  std::vector<std::string> Constants;
};

/// The graph of \p Def, with the functions of \p Library that it runs and
/// \p Versions, the field of a GraphDef. An error if it has an argument, or a
/// result, that no graph has.
llvm::Expected<FunctionGraph> graphOf(const tensorflow::FunctionDef &Def,
                                      const FunctionLibrary &Library,
                                      const Captures &Captured,
                                      llvm::StringRef Versions);

/// \p Def with the body \p Bytes, a GraphDef that was made of \p Like.
llvm::Expected<tensorflow::FunctionDef>
functionOf(const tensorflow::FunctionDef &Def, const FunctionGraph &Like,
           const FunctionLibrary &Library, llvm::StringRef Bytes);

} // namespace graft

#endif // GRAFT_LIB_IO_FUNCTIONS_FUNCTIONGRAPH_H
