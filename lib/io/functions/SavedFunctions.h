//===- lib/io/functions/SavedFunctions.h - what TensorFlow 2 runs *- C++ -*-==//
//
// SPDX-License-Identifier: Apache-2.0
//
// `tf.saved_model.load` gives objects with functions, and leaves the graph of
// the SavedModel alone. The functions are bodies of the library; each is named
// by an object, and has the variables of others bound to its last arguments.
//
// A function that does nothing but call another one, as that of a signature, is
// that one: who rewrites a body rewrites what all its callers do.
//
//===----------------------------------------------------------------------===//

#ifndef GRAFT_LIB_IO_FUNCTIONS_SAVEDFUNCTIONS_H
#define GRAFT_LIB_IO_FUNCTIONS_SAVEDFUNCTIONS_H

#include "lib/io/functions/FunctionGraph.h"

namespace tensorflow {
class MetaGraphDef;
} // namespace tensorflow

namespace graft {

/// A function that a user of the loaded object calls.
struct SavedFunction {
  std::string Name; ///< In the library: the body that does the work.
  /// Where it is: `train_step`, `signatures['train']`.
  std::vector<std::string> Paths;
  /// The first of them, with the number of the trace if there are several.
  std::string Shown;
  Captures Captured;
};

struct SavedFunctions {
  /// Functions of the loaded object and its signatures, and those of other
  /// objects that change something, each body once.
  std::vector<SavedFunction> Called;
  /// The places of functions of other objects, which change nothing (the layers
  /// of a model).
  std::vector<std::string> Inner;
};

/// Whether TensorFlow 2 runs functions of the object graph of \p Meta, and not
/// the graph.
bool hasSavedFunctions(const tensorflow::MetaGraphDef &Meta);

SavedFunctions findSavedFunctions(const tensorflow::MetaGraphDef &Meta,
                                  const FunctionLibrary &Library);

} // namespace graft

#endif // GRAFT_LIB_IO_FUNCTIONS_SAVEDFUNCTIONS_H
