//===- lib/lower/tpu/TpuMembers.h - the ops of a computation ----*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#ifndef GRAFT_LIB_LOWER_TPU_TPUMEMBERS_H
#define GRAFT_LIB_LOWER_TPU_TPUMEMBERS_H

#include "lib/lower/tpu/TpuForm.h"

namespace graft {

/// Options that add ops to a computation, or keep ops and feeds out of it.
struct TpuMemberOptions {
  std::vector<std::string> Include; ///< Patterns of names, with the wildcards
                                    ///< of a shell.
  std::vector<Endpoint> Captures;   ///< Captured tensors. A control edge
                                    ///< captures its op.
  std::vector<Endpoint> SplitFeeds; ///< Feeds that members may not read whole.
};

/// Finds the members of \p C: all ops on which its outputs and operations
/// depend, by data or control, up to inputs, captures, placeholders and handles
/// of variables. If an op of a loop is a member, all ops of the loop are.
/// Returns false after an error.
bool findTpuMembers(const Graph &G, TpuComputation &C,
                    const TpuMemberOptions &Options, DiagnosticEngine &Diags);

} // namespace graft

#endif // GRAFT_LIB_LOWER_TPU_TPUMEMBERS_H
