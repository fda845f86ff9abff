//===- lib/certify/forms/PackCheck.h - tensors that travel as one -*- C++ -*-=//
//
// SPDX-License-Identifier: Apache-2.0
//
// Tensors are packed into one by element range and taken out of it again:
//
//     flat_i = Reshape(x_i, [-1])     pack = ConcatV2(flat_0, ..., flat_n, 0)
//     ... what works on each element by itself, such as a reduction ...
//     parts = SplitV(pack, sizes, 0)   y_i = Reshape(parts:i, shape of x_i)
//
// So y_i is x_i where sizes and shapes agree, which the certificate checks by
// what it infers itself.
//
//===----------------------------------------------------------------------===//

#ifndef GRAFT_LIB_CERTIFY_FORMS_PACKCHECK_H
#define GRAFT_LIB_CERTIFY_FORMS_PACKCHECK_H

#include "lib/infer/sizes/Dims.h"

#include "llvm/ADT/STLFunctionalExtras.h"

namespace graft {

/// Where a tensor that was taken out of a pack was put into it.
struct PackedTensor {
  NodeId Split = NoNode;  ///< SplitV.
  NodeId Concat = NoNode; ///< ConcatV2.
  Endpoint Source;        ///< What was put in.
  explicit operator bool() const { return Source.Node != NoNode; }
};

/// What \p N, the last node of a pack's kind, takes out, if it is of the form
/// above. \p Passes says which nodes may stand between: what they do to true
/// values is nothing.
PackedTensor unpacked(const Graph &G, NodeId N,
                      llvm::function_ref<bool(NodeId)> Passes);

/// What is wrong with \p N, a node of a pack's kind; empty if nothing is.
llvm::StringRef packFault(const Graph &G, const DimAnalysis &Dims, NodeId N,
                          llvm::function_ref<bool(NodeId)> Passes);

} // namespace graft

#endif // GRAFT_LIB_CERTIFY_FORMS_PACKCHECK_H
