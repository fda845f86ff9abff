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
#include "llvm/ADT/STLFunctionalExtras.h"

namespace graft {

class ProxyCheck {
public:
  using ErrorFn = llvm::function_ref<void(NodeId, const llvm::Twine &)>;

  /// \p InputOf has, by node of \p G, the node of \p In that it is, and must
  /// outlive this.
  ProxyCheck(const InputGraph &In, const Graph &G,
             const std::vector<NodeId> &InputOf);

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
  void check(const ProgramFacts &Facts, ErrorFn Error) const;

private:
  struct Proxy {
    NodeId Node = NoNode;
    NodeId Var = NoNode;  ///< Of the input.
    NodeId Read = NoNode; ///< A read of Var that waits for nothing.
    llvm::SmallVector<NodeId, 2> Reads, Refreshes;
  };

  void collect(NodeId P);
  void checkRefresh(const ProgramFacts &Facts, const Proxy &P, NodeId F,
                    ErrorFn Error) const;
  void checkUpdate(const Proxy &P, NodeId U, NodeId F, ErrorFn Error) const;
  void checkReads(const ProgramFacts &Facts, const Proxy &P,
                  const llvm::DenseMap<NodeId, NodeId> &RefreshOf,
                  ErrorFn Error) const;
  void checkLookups(const ProgramFacts &Facts, ErrorFn Error) const;
  bool readsBefore(NodeId Var, NodeId Update) const;

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
