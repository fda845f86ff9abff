//===- lib/io/functions/SavedFunctions.h - functions of TensorFlow 2 ------===//
//
// SPDX-License-Identifier: Apache-2.0
//
// `tf.saved_model.load` returns objects with functions and ignores the graph of
// the SavedModel. The functions are bodies of the library. An object names each
// function, and binds variables of other objects to its last arguments.
//
// Some functions only call another function, as the function of a signature
// does. In this case only the body of the called function is rewritten, so all
// its callers run the rewritten step.
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
  std::string Name; ///< The body in the library that does the work.
  /// The paths, such as `train_step`, `signatures['train']`.
  std::vector<std::string> Paths;
  /// The first path, with the number of the trace if there are several.
  std::string Shown;
  Captures Captured;
  /// Tensors of the body, `add:0`, that the loader looks up by name: custom
  /// gradients of ops in the body read them.
  std::vector<std::string> Named;
};

struct SavedFunctions {
  /// Functions of the loaded object, its signatures, and those functions of
  /// other objects that have effects. Each body is listed once.
  std::vector<SavedFunction> Called;
  /// The paths of functions without effects that other objects have, such as
  /// the layers of a model.
  std::vector<std::string> Inner;
};

/// Returns true if TensorFlow 2 runs functions of the object graph of \p Meta
/// instead of the graph.
bool hasSavedFunctions(const tensorflow::MetaGraphDef &Meta);

SavedFunctions findSavedFunctions(const tensorflow::MetaGraphDef &Meta,
                                  const FunctionLibrary &Library);

} // namespace graft

#endif // GRAFT_LIB_IO_FUNCTIONS_SAVEDFUNCTIONS_H
