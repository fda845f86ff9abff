//===- lib/certify/forms/ProxyCheck.h - copies of shared variables *- C++ -*-=//
//
// SPDX-License-Identifier: Apache-2.0
//
// Checks that proxies (lib/program/forms/Proxy.h) have the value of their
// variable wherever they are read.
//
//===----------------------------------------------------------------------===//

#ifndef GRAFT_LIB_CERTIFY_FORMS_PROXYCHECK_H
#define GRAFT_LIB_CERTIFY_FORMS_PROXYCHECK_H

#include "lib/graph/InputGraph.h"
#include "lib/infer/facts/ProgramFacts.h"

#include "llvm/ADT/DenseMap.h"

namespace graft {

struct Comparison;

/// Finds, by ops and edges, which nodes of the lowered graph \p L belong to a
/// proxy. \p In is the input; \p Word is the word in the names of copies.
std::vector<bool> findProxies(const Graph &L, const Graph &In,
                              llvm::StringRef Word);

class ProxyCheck {
public:
  /// Keeps a reference to \p C, in which nodes are already matched.
  explicit ProxyCheck(Comparison &C);

  /// Returns the tensor of the program that has the value of \p E, an output of
  /// a node of kind proxy. Returns no node if there is none.
  Endpoint standsFor(Endpoint E) const;
  /// Returns the update whose gate is \p N, or NoNode. Users of the update wait
  /// for its gate.
  NodeId updateOf(NodeId N) const {
    auto It = UpdateOf.find(N);
    return It == UpdateOf.end() ? NoNode : It->second;
  }
  /// Returns true if a node of the program may read \p A where the input reads
  /// \p B. Both must read, without control inputs, one variable that has a
  /// proxy. \p B may pass through Identities without control inputs.
  bool areSameRead(Endpoint A, Endpoint B) const;
  /// Returns true if \p Read reads a variable that has a proxy, and \p Update
  /// writes that variable. An update may wait for such a read although the
  /// input has no such edge: on the replicas, the reads for which it waits in
  /// the input read the proxy instead.
  bool isReadOf(NodeId Read, NodeId Update) const;
  /// Returns true if \p N, of kind proxy, is a part of a proxy.
  bool isPart(NodeId N) const { return Parts.contains(N); }

  /// Checks that proxies have the value of their variable wherever they are
  /// read, by the analysis results \p Facts.
  void check(const ProgramFacts &Facts) const;

private:
  struct Proxy {
    NodeId Node = NoNode;
    NodeId Var = NoNode;  ///< The shared variable.
    NodeId Read = NoNode; ///< A read of Var that waits for nothing.
    llvm::SmallVector<NodeId, 2> Reads, Refreshes;
  };

  void collect(NodeId P);
  void checkRefresh(const ProgramFacts &Facts, const Proxy &P, NodeId F) const;
  void checkUpdate(const Proxy &P, NodeId U, NodeId F) const;
  void checkReads(const ProgramFacts &Facts, const Proxy &P,
                  const llvm::DenseMap<NodeId, NodeId> &RefreshOf) const;
  void checkLookups(const ProgramFacts &Facts) const;
  bool readsBefore(NodeId Var, NodeId Update) const;
  void checkOrder(const Proxy &P, NodeId Update) const;

  Comparison &C;
  const InputGraph &In;
  const Graph &G;
  const std::vector<NodeId> &InputOf;
  std::vector<Proxy> Proxies;
  llvm::DenseSet<NodeId> Parts;
  llvm::DenseMap<NodeId, NodeId> UpdateOf; ///< The update, by gate N.
  llvm::DenseMap<NodeId, uint32_t> ByNode; ///< Index in Proxies, by P and RP.
  llvm::DenseMap<NodeId, uint32_t>
      ByVar; ///< Index in Proxies, by input variable.
};

} // namespace graft

#endif // GRAFT_LIB_CERTIFY_FORMS_PROXYCHECK_H
