//===- lib/certify/forms/CompressCheck.h - values sent in fewer bits ------===//
//
// SPDX-License-Identifier: Apache-2.0
//
// A reduction in 16 bits stands for the one in 32. What is lost is an
// assumption, which the pass that inserts it warns of; that nothing but a
// rounding is lost is what is checked here:
//
//     sum = AddV2(x, read)           with error feedback only, as is all
//     narrow = Cast(sum)             that is about the residual
//     y = Cast(_Reduce(narrow))      stands for the reduction of x
//     residual = VarHandleOp()       of each replica, zeros at first
//     read = ReadVariableOp(residual)
//     lost = Sub(sum, Cast(narrow))
//     AssignVariableOp(residual, lost)
//
//===----------------------------------------------------------------------===//

#ifndef GRAFT_LIB_CERTIFY_FORMS_COMPRESSCHECK_H
#define GRAFT_LIB_CERTIFY_FORMS_COMPRESSCHECK_H

#include "lib/infer/graph/Variables.h"

#include "llvm/ADT/STLFunctionalExtras.h"

namespace graft {

/// On all nodes of a compression; it stays in outputs, where a Cast or an
/// addition does not tell what it is for.
inline constexpr llvm::StringRef CompressAttr = "_graft_compress";

/// Whether \p Type has 16 bits, and is floating.
bool isNarrow(unsigned Type);

/// The tensor that \p N, of a compression's kind, stands for; no node if it
/// stands for none.
Endpoint uncompressed(const Graph &G, NodeId N);

/// Whether \p N gives a residual its first value.
bool clearsResidual(const Graph &G, NodeId N);

/// What is wrong with \p N, of a compression's kind; empty if nothing is.
/// \p Erase gives the tensor of the input that one of the program stands for.
llvm::StringRef compressFault(const Graph &G, NodeId N,
                              llvm::function_ref<Endpoint(Endpoint)> Erase);

} // namespace graft

#endif // GRAFT_LIB_CERTIFY_FORMS_COMPRESSCHECK_H
