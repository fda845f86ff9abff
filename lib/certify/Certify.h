//===- lib/certify/Certify.h - is an output good? ---------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
// The one entry of the certificate. What kind of output it is given, it sees
// for itself: a program, or the graph that a lowering wrote; with variables in
// parts, or not.
//
//===----------------------------------------------------------------------===//

#ifndef GRAFT_LIB_CERTIFY_CERTIFY_H
#define GRAFT_LIB_CERTIFY_CERTIFY_H

#include "lib/graph/InputGraph.h"
#include "lib/io/Module.h"
#include "lib/support/Diagnostics.h"

#include "llvm/ADT/StringSet.h"

namespace graft::certify {

/// What is claimed of an output.
enum class Claim : uint8_t {
  Step, ///< It is the step of the input.
  Parts ///< Where it has variables of the input in parts, it is the same graph.
};

/// Checks that \p Output is what is claimed of it and \p Input, a graph as it
/// was read, which is given the normal form and the parts that \p Output has.
/// Errors name the nodes; at most a dozen are reported.
bool check(Module &Input, const Graph &Output, DiagnosticEngine &Diags,
           Claim What = Claim::Step);

/// What the collections of an input say, by name.
struct Declared {
  llvm::StringSet<> Local;   ///< Variables of which each worker has its own.
  llvm::StringSet<> Trained; ///< Variables that gradients are for.
  llvm::StringSet<> Runs;    ///< What is run, beside what no op reads.
};

/// The same of several files, which are those of all workers, in any order:
/// together they are the step. If they do not make it together, each is, they
/// update the same variables but for the local ones, and none is further ahead
/// than it may be.
bool check(Module &Input, llvm::ArrayRef<const Graph *> Outputs,
           const Declared &Names, DiagnosticEngine &Diags);

/// Whether \p Output is of a worker that makes its steps by itself.
bool isByItself(const Graph &Output);
/// How many steps it may be ahead of the slowest; 0: any number.
int64_t mayBeAhead(const Graph &Output);

/// The same of a graph in memory, and a picture of what it was made of.
///
/// A picture that was taken before the first edit is as good as reading the
/// file again: reading is a function of the bytes, no pass ran between it and
/// the picture, and what the picture points to is never written again.
bool check(const InputGraph &Input, const Graph &Output,
           DiagnosticEngine &Diags, Claim What = Claim::Step);

} // namespace graft::certify

#endif // GRAFT_LIB_CERTIFY_CERTIFY_H
