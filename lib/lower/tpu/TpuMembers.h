//===- lib/lower/tpu/TpuMembers.h - the ops of a computation ----*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#ifndef GRAFT_LIB_LOWER_TPU_TPUMEMBERS_H
#define GRAFT_LIB_LOWER_TPU_TPUMEMBERS_H

#include "lib/lower/tpu/TpuForm.h"

namespace graft {

/// What else says which ops belong to a computation, and which do not.
struct TpuMemberOptions {
  std::vector<std::string> Include; ///< Names of ops, as of files in a shell.
  std::vector<Endpoint> Captures;   ///< Tensors, and control edges for ops.
  std::vector<Endpoint> SplitFeeds; ///< What no computation may capture.
};

/// Fills in the members of \p C, whose inputs, outputs and operations are
/// known: all that these need, by data and by control, up to inputs, what is
/// captured, placeholders and handles of variables. A loop is a member as a
/// whole. False after an error.
bool findTpuMembers(const Graph &G, TpuComputation &C,
                    const TpuMemberOptions &Options, DiagnosticEngine &Diags);

} // namespace graft

#endif // GRAFT_LIB_LOWER_TPU_TPUMEMBERS_H
