//===- lib/certify/compare/Certificate.h - is it the same step? -*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
// A translation check. It reads the input graph and the program, and no
// decision of a pass. Erasing the inserted nodes, which must do nothing to
// global values, must give back the input edge for edge. Types inferred from
// scratch must show that every erased node is the identity on global values,
// and that every value that leaves the step is a global value.
//
//===----------------------------------------------------------------------===//

#ifndef GRAFT_LIB_CERTIFY_COMPARE_CERTIFICATE_H
#define GRAFT_LIB_CERTIFY_COMPARE_CERTIFICATE_H

#include "lib/graph/InputGraph.h"
#include "lib/support/Diagnostics.h"

namespace graft {

/// Checks that \p Program computes the single-device step of \p Input. Errors
/// name the nodes; at most a dozen are reported. An assumption is no error
/// here: the pass that made it warned of it.
bool certifyProgram(const InputGraph &Input, const Graph &Program,
                    DiagnosticEngine &Diags);
/// Checks \p Program against a snapshot of \p Input as it is now. If
/// \p IsComputation, the program may lack the names of results without users.
bool certifyProgram(const Graph &Input, const Graph &Program,
                    DiagnosticEngine &Diags, bool IsComputation = false);

} // namespace graft

#endif // GRAFT_LIB_CERTIFY_COMPARE_CERTIFICATE_H
