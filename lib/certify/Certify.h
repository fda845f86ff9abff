//===- lib/certify/Certify.h - check of an output ---------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
// The only entry point of the certificate. It accepts a program or a lowered
// graph, with or without partitioned variables.
//
//===----------------------------------------------------------------------===//

#ifndef GRAFT_LIB_CERTIFY_CERTIFY_H
#define GRAFT_LIB_CERTIFY_CERTIFY_H

#include "lib/graph/InputGraph.h"
#include "lib/io/Module.h"
#include "lib/support/Diagnostics.h"

#include "llvm/ADT/StringSet.h"

namespace graft::certify {

/// The claim about an output to check.
enum class Claim : uint8_t {
  Step, ///< The output computes the single-device step.
  Parts ///< The output is the input with partitioned variables.
};

/// Checks that the claim \p What holds for \p Output and \p Input, a graph as
/// it was read. First edits \p Input like \p Output: inlines calls, orders
/// reads, joins batches and partitions variables. Reports at most a dozen
/// errors, each with its node.
bool check(Module &Input, const Graph &Output, DiagnosticEngine &Diags,
           Claim What = Claim::Step);

/// Names from the collections of an input.
struct Declared {
  llvm::StringSet<> Local;   ///< Variables of which each worker has a copy.
  llvm::StringSet<> Trained; ///< Trained variables.
  llvm::StringSet<> Runs; ///< Nodes that callers run although they have users.
};

/// Checks the files of all workers, in any order. Together they must compute
/// the step. If workers are asynchronous, each file must compute the step, all
/// files must share their variables except local ones, and the staleness bound
/// must hold.
bool check(Module &Input, llvm::ArrayRef<const Graph *> Outputs,
           const Declared &Names, DiagnosticEngine &Diags);

/// Checks that \p Output has a node for each of the tensors \p Fetched, in the
/// form node or node:output. Patterns are ignored. check() ensures that a node
/// with a name of the input has the value of that name.
bool checkFetched(const Graph &Output, llvm::ArrayRef<std::string> Fetched,
                  DiagnosticEngine &Diags);

/// Returns true if \p Output is the file of an asynchronous worker.
bool isByItself(const Graph &Output);
/// Returns the number of steps that the worker of the file \p Output may be
/// ahead of the slowest worker; 0: no bound.
int64_t mayBeAhead(const Graph &Output);

/// Checks a graph in memory against a snapshot of its input.
///
/// The snapshot must be taken before the first edit of the graph. It then has
/// the contents of the input file, because no code writes the memory that a
/// snapshot points to.
bool check(const InputGraph &Input, const Graph &Output,
           DiagnosticEngine &Diags, Claim What = Claim::Step);

} // namespace graft::certify

#endif // GRAFT_LIB_CERTIFY_CERTIFY_H
