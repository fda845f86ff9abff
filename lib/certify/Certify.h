//===- lib/certify/Certify.h - is an output good? ---------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
// The only entry point of the certificate. It finds out what kind of output it
// is given: a program or a lowered graph, with or without partitioned
// variables.
//
//===----------------------------------------------------------------------===//

#ifndef GRAFT_LIB_CERTIFY_CERTIFY_H
#define GRAFT_LIB_CERTIFY_CERTIFY_H

#include "lib/graph/InputGraph.h"
#include "lib/io/Module.h"
#include "lib/support/Diagnostics.h"

#include "llvm/ADT/StringSet.h"

namespace graft::certify {

/// The claim that is checked of an output.
enum class Claim : uint8_t {
  Step, ///< It computes the single-device step.
  Parts ///< Its partitioned variables apart, it is the input.
};

/// Checks that the claim \p What holds for \p Output and \p Input, a graph as
/// it was read. Gives \p Input the normal form and the parts of \p Output.
/// Errors name the nodes; at most a dozen are reported.
bool check(Module &Input, const Graph &Output, DiagnosticEngine &Diags,
           Claim What = Claim::Step);

/// Names from the collections of an input.
struct Declared {
  llvm::StringSet<> Local;   ///< Local variables: each worker has its own.
  llvm::StringSet<> Trained; ///< Trained variables.
  llvm::StringSet<> Runs; ///< Nodes that are run, besides those without users.
};

/// Checks the files of all workers, in any order, which together must be the
/// step. If each worker steps by itself, each file must be the step, all must
/// update the same variables, apart from local ones, and none may run further
/// ahead than allowed.
bool check(Module &Input, llvm::ArrayRef<const Graph *> Outputs,
           const Declared &Names, DiagnosticEngine &Diags);

/// Returns true if \p Output is the file of a worker that steps by itself.
bool isByItself(const Graph &Output);
/// Returns how many steps it may be ahead of the slowest worker; 0: any number.
int64_t mayBeAhead(const Graph &Output);

/// Checks a graph in memory against a snapshot of its input.
///
/// A snapshot from before the first edit is as good as reading the file again:
/// reading is a function of the bytes, no pass ran in between, and the memory
/// that the snapshot points to is never written again.
bool check(const InputGraph &Input, const Graph &Output,
           DiagnosticEngine &Diags, Claim What = Claim::Step);

} // namespace graft::certify

#endif // GRAFT_LIB_CERTIFY_CERTIFY_H
