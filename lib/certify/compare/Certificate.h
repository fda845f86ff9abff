//===- lib/certify/compare/Certificate.h - check of a program ---*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
// A translation check. It reads only the input graph and the program, and no
// decision of a pass. Inserted nodes must not change global values: without
// them, the program must equal the input edge for edge. The certificate infers
// types from scratch. They must show that each inserted node is the identity on
// global values. They must also show that each value that leaves the step is a
// global value.
//
//===----------------------------------------------------------------------===//

#ifndef GRAFT_LIB_CERTIFY_COMPARE_CERTIFICATE_H
#define GRAFT_LIB_CERTIFY_COMPARE_CERTIFICATE_H

#include "lib/graph/InputGraph.h"
#include "lib/support/Diagnostics.h"

namespace graft {

/// Checks that \p Program computes the single-device step of \p Input. Reports
/// at most twelve errors, each with its node. An assumption of a pass is not an
/// error: the pass has warned of it.
bool certifyProgram(const InputGraph &Input, const Graph &Program,
                    DiagnosticEngine &Diags);
/// Takes a snapshot of \p Input and checks \p Program against it. If \p
/// IsComputation, the program may lack the names of results without users.
bool certifyProgram(const Graph &Input, const Graph &Program,
                    DiagnosticEngine &Diags, bool IsComputation = false);

} // namespace graft

#endif // GRAFT_LIB_CERTIFY_COMPARE_CERTIFICATE_H
