//===- lib/certify/forms/ProxyCheck.h - copies of shared variables *- C++ -*-=//
//
// SPDX-License-Identifier: Apache-2.0
//
// That proxies (lib/program/forms/Proxy.h) have the value of their variable
// wherever they are read.
//
//===----------------------------------------------------------------------===//

#ifndef GRAFT_LIB_CERTIFY_FORMS_PROXYCHECK_H
#define GRAFT_LIB_CERTIFY_FORMS_PROXYCHECK_H

#include "lib/graph/InputGraph.h"
#include "lib/infer/facts/ProgramFacts.h"

#include "llvm/ADT/DenseMap.h"

namespace graft {

struct Comparison;

/// By node of the lowered graph \p L: whether it belongs to a proxy, as its
/// ops and edges say. \p In is the input; \p Word is in the names of copies.
std::vector<bool> findProxies(const Graph &L, const Graph &In,
                              llvm::StringRef Word);

class ProxyCheck {
public:
  /// When \p C, which is kept, has found which node is which.
  explicit ProxyCheck(Comparison &C);

  /// The tensor of the program that \p E, an output of a node of kind proxy,
  /// has the value of; no node if there is none.
  Endpoint standsFor(Endpoint E) const;
  /// The update for which \p N stands as an operation; NoNode if it is none.
  NodeId updateOf(NodeId N) const {
    auto It = UpdateOf.find(N);
    return It == UpdateOf.end() ? NoNode : It->second;
  }
  /// Whether \p A and \p B of the input are reads of one variable that has a
  /// proxy, which wait for nothing; \p B, which the input has where the program
  /// has \p A, may be passed on by Identities that wait for nothing else.
  bool areSameRead(Endpoint A, Endpoint B) const;
  /// Whether \p N, of kind proxy, is a part of a proxy.
  bool isPart(NodeId N) const { return Parts.contains(N); }

  /// Checks that proxies have the value of their variable wherever they are
  /// read, for facts of the program.
  void check(const ProgramFacts &Facts) const;

private:
  struct Proxy {
    NodeId Node = NoNode;
    NodeId Var = NoNode;  ///< Of the input.
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

  Comparison &C;
  const InputGraph &In;
  const Graph &G;
  const std::vector<NodeId> &InputOf;
  std::vector<Proxy> Proxies;
  llvm::DenseSet<NodeId> Parts;
  llvm::DenseMap<NodeId, NodeId> UpdateOf; ///< By gate N.
  llvm::DenseMap<NodeId, uint32_t> ByNode; ///< P and RP to their proxy.
  llvm::DenseMap<NodeId, uint32_t> ByVar;  ///< By variable of the input.
};

} // namespace graft

#endif // GRAFT_LIB_CERTIFY_FORMS_PROXYCHECK_H
