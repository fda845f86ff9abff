//===- lib/certify/compare/Certificate.h - is it the same step? -*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
// A translation check. It reads the input graph and the program and no decision
// of any pass: erasing the nodes that were inserted, each by what it does to
// true values (nothing), must give the input back edge for edge, and the types,
// inferred from scratch, must show that every erased node is the identity on
// true values and that everything that leaves the step is a true value.
//
//===----------------------------------------------------------------------===//

#ifndef GRAFT_LIB_CERTIFY_COMPARE_CERTIFICATE_H
#define GRAFT_LIB_CERTIFY_COMPARE_CERTIFICATE_H

#include "lib/graph/InputGraph.h"
#include "lib/support/Diagnostics.h"

namespace graft {

/// Checks that \p Program computes the step of \p Input. Errors name the nodes;
/// at most a dozen are reported. What rests on an assumption was said by the
/// pass that made it and is no error here.
bool certifyProgram(const InputGraph &Input, const Graph &Program,
                    DiagnosticEngine &Diags);
/// The same with the picture of \p Input as it is now. If \p IsComputation,
/// what nothing reads need not be in the program under its name.
bool certifyProgram(const Graph &Input, const Graph &Program,
                    DiagnosticEngine &Diags, bool IsComputation = false);

} // namespace graft

#endif // GRAFT_LIB_CERTIFY_COMPARE_CERTIFICATE_H
