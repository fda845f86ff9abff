//===- lib/certify/forms/CompressCheck.h - values sent in fewer bits ------===//
//
// SPDX-License-Identifier: Apache-2.0
//
// That nothing but a rounding is lost by the form of
// lib/program/forms/Compression.h.
//
//===----------------------------------------------------------------------===//

#ifndef GRAFT_LIB_CERTIFY_FORMS_COMPRESSCHECK_H
#define GRAFT_LIB_CERTIFY_FORMS_COMPRESSCHECK_H

#include "lib/infer/graph/Variables.h"

#include "llvm/ADT/STLFunctionalExtras.h"

namespace graft {

/// What is wrong with \p N, of a compression's kind; empty if nothing is.
/// \p Erase gives the tensor of the input that one of the program stands for.
llvm::StringRef compressFault(const Graph &G, NodeId N,
                              llvm::function_ref<Endpoint(Endpoint)> Erase);

} // namespace graft

#endif // GRAFT_LIB_CERTIFY_FORMS_COMPRESSCHECK_H
