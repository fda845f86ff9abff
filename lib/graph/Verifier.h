//===- lib/graph/Verifier.h - is this graph legal? --------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
// What TensorFlow refuses, silently changes or hangs on is an error here, on
// load, between passes and before the output is written.
//
//===----------------------------------------------------------------------===//

#ifndef GRAFT_LIB_GRAPH_VERIFIER_H
#define GRAFT_LIB_GRAPH_VERIFIER_H

#include "lib/graph/Graph.h"
#include "lib/support/Diagnostics.h"

namespace graft {

/// Checks names, ports, numbers of inputs and outputs, ranks, cycles, `_class`,
/// devices, and in a graph that graft made, collectives and initializers.
/// Reports to \p Diags; true when there was no error. \p Internal: names may
/// start with `_`, as those of the runtime's own nodes do, which no importer
/// takes.
bool verifyGraph(const Graph &G, DiagnosticEngine &Diags,
                 bool Internal = false);

/// The numbers of outputs alone: each is one that TensorFlow takes, and all
/// together are no more than a graph of this size can have. Part of
/// verifyGraph, and for what functions had.
bool verifyOutputCounts(const Graph &G, DiagnosticEngine &Diags);

/// The collective rules alone: groups are complete, agree, sit on distinct
/// devices, and every result is read behind a gate that runs all members.
bool verifyCollectives(const Graph &G, DiagnosticEngine &Diags);

/// What TensorFlow asks of a graph that it imports, beyond verifyGraph, which
/// found no error in it: versions, the attributes of each node by the
/// definition of its op, and the types of its inputs. Shape functions, which
/// TensorFlow runs as well, are not known here.
bool verifyDefinitions(const Graph &G, DiagnosticEngine &Diags);

/// What is wrong with the AttrValue \p Value of an attribute that is defined by
/// \p Def, as TensorFlow sees it; "" if nothing is.
std::string attrFault(const AttrDef &Def, llvm::StringRef Value);

/// The types of edges and the presence of attributes, by the op table. Not part
/// of verifyGraph: verifyDefinitions says so of an input, so this is for what
/// was written, and for what bodies of functions gave, which TensorFlow looks
/// at when they are called.
bool verifyTypes(const Graph &G, DiagnosticEngine &Diags);

/// Every copy `<variable>/replica_<i>` of a lowered graph must be assigned by a
/// control input of \p Initializer, which assigns the variable itself. \p Word
/// is `replica_` or what stands in its place.
void verifyCopiesInitialized(const Graph &G, NodeId Variable,
                             NodeId Initializer, llvm::StringRef Word,
                             DiagnosticEngine &Diags);

/// Whether graft made this graph: a node has the stamp `_graft_replicas`.
bool hasGraftStamp(const Graph &G);

/// Reports the first few of many errors of one kind, then how many more there
/// were.
class ErrorCap {
public:
  ErrorCap(DiagnosticEngine &Diags, std::string What)
      : Diags(Diags), What(std::move(What)) {}
  ~ErrorCap();
  void error(llvm::StringRef Node, const llvm::Twine &Message);

private:
  static constexpr unsigned Shown = 10;
  DiagnosticEngine &Diags;
  std::string What;
  unsigned Count = 0;
};

} // namespace graft

#endif // GRAFT_LIB_GRAPH_VERIFIER_H
