//===- lib/graph/Verifier.h - is this graph legal? --------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
// Reports graphs that TensorFlow refuses, silently changes or hangs on. The
// checks run on load, between passes and before the output is written.
//
//===----------------------------------------------------------------------===//

#ifndef GRAFT_LIB_GRAPH_VERIFIER_H
#define GRAFT_LIB_GRAPH_VERIFIER_H

#include "lib/graph/Graph.h"
#include "lib/support/Diagnostics.h"

namespace graft {

/// Checks names, ports, numbers of inputs and outputs, ranks, cycles, `_class`
/// and devices. In an output of graft, also checks collectives and
/// initializers. Reports to \p Diags and returns true if there was no error. If
/// \p Internal is true, names may start with `_`, as in graphs that a runtime
/// dumped. TensorFlow cannot import such names.
bool verifyGraph(const Graph &G, DiagnosticEngine &Diags,
                 bool Internal = false);

/// Checks only the numbers of outputs: each must be valid, and the total must
/// fit the size of the graph. Part of verifyGraph, and run after functions are
/// inlined.
bool verifyOutputCounts(const Graph &G, DiagnosticEngine &Diags);

/// Checks only collectives. Groups must be complete, and their members must
/// agree and be on distinct devices. Every user of a result must wait for a
/// barrier that runs all members.
bool verifyCollectives(const Graph &G, DiagnosticEngine &Diags);

/// Checks further rules of importing a graph in which verifyGraph found no
/// error: versions, the attributes of each node by the definition of its op,
/// and the types of its inputs. Shape functions, which TensorFlow runs too, are
/// not known here.
bool verifyDefinitions(const Graph &G, DiagnosticEngine &Diags);

/// Returns the fault of \p Value, an AttrValue of an attribute that \p Def
/// defines, as TensorFlow sees it, or "".
std::string attrFault(const AttrDef &Def, llvm::StringRef Value);

/// Checks the types of edges and the presence of attributes by the op table.
/// Not part of verifyGraph. For an input graph, call verifyDefinitions instead.
/// Call this for a written graph, and for inlined functions, whose bodies
/// TensorFlow checks only when they are called.
bool verifyTypes(const Graph &G, DiagnosticEngine &Diags);

/// Checks that every copy `<variable>/replica_<i>` of a lowered graph is
/// assigned by a control input of \p Initializer, which assigns the variable
/// itself. \p Word is `replica_` or its substitute.
void verifyCopiesInitialized(const Graph &G, NodeId Variable,
                             NodeId Initializer, llvm::StringRef Word,
                             DiagnosticEngine &Diags);

/// Returns true if graft made this graph: a node has the marker attribute.
bool hasGraftStamp(const Graph &G);

/// Reports the first errors of one kind, then the number of further ones.
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
