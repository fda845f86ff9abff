//===- lib/infer/facts/LocalRuns.h - what replicas do by themselves -------===//
//
// SPDX-License-Identifier: Apache-2.0
//
// What no rule relates is computed by each replica all the same. Whether it
// runs there, and leaves the copies of variables equal, does not follow from
// types, which are all Varying. It follows from where sizes and numbers come
// from: a replica that works with what its own rows give, and nothing else that
// counts rows, does what the single-device step does on a batch of these rows,
// so nothing can fail that does not fail there. Rows of all replicas, or a
// number that counts them, beside rows of one do not fit together; nor do
// numbers from somewhere else that look up one replica's rows. Nor do sizes
// that are counted by values, as by a loop that goes on until all rows are
// done: on some of the rows that is another size than on all.
//
// Bits for every tensor, in one sweep over the nodes (more in a graph with
// loops). Symbolic sizes decide where they are known; elsewhere what is made of
// a tensor is taken to follow what that follows.
//
//===----------------------------------------------------------------------===//

#ifndef GRAFT_LIB_INFER_FACTS_LOCALRUNS_H
#define GRAFT_LIB_INFER_FACTS_LOCALRUNS_H

#include "lib/infer/facts/ProgramFacts.h"
#include "lib/ops/OpRule.h"

namespace graft {

/// What is not proved because one node is not.
struct Spoils {
  unsigned Variables = 0, Fetches = 0;
  NodeId Variable = NoNode, Fetch = NoNode; ///< The first of each.
  /// "; spoils 3 variables and the fetch 'loss'", or nothing.
  std::string str(const Graph &G) const;
};

class LocalRuns {
public:
  /// \p Facts are kept, and what they were inferred from.
  LocalRuns(const Graph &G, const ProgramFacts &Facts);

  /// Whether replicas may have other values of \p E than each other.
  bool differs(Endpoint E) const;
  /// Whether the sizes of \p E may be what the rows of one replica give.
  bool hasOwnSize(Endpoint E) const { return bits(E) & OwnSize; }
  /// Whether the copies of a variable may not be equal after \p N, which
  /// writes them, took input \p I: it has another value on each replica, or
  /// only some of them run \p N.
  bool drifts(NodeId N, unsigned I) const;

  struct Fault {
    NodeId Node;
    std::string Why;
  };
  /// Nodes that may fail on a replica, those only that take nothing from
  /// another one.
  std::vector<Fault> faults() const;
  /// What takes the value of \p N.
  Spoils spoiledBy(NodeId N) const;

private:
  enum : uint8_t {
    OwnSize = 1,   ///< A size may follow the rows of one replica.
    AllSize = 2,   ///< The same of the rows of all replicas.
    OwnNumber = 4, ///< An element may count rows of one replica.
    AllNumber = 8,
    Differs = 16,
    Rows = 32,    ///< How many elements there are follows a replica's rows.
    Length = 64,  ///< A size may follow a replica's values, not only its rows.
    OfRows = 128, ///< It is made of rows of a replica.
  };
  static uint8_t asNumbers(uint8_t Sizes) { return (Sizes & 3) << 2; }
  static uint8_t asSizes(uint8_t Numbers) { return (Numbers >> 2) & 3; }

  uint8_t bits(Endpoint E) const {
    return Bits.empty() || !Facts.Dims.validPort(E)
               ? 0
               : Bits[Facts.Dims.outputIndex(E)];
  }
  uint8_t in(NodeId N, unsigned I) const {
    return I < G.node(N).NumData ? bits(G.input(N, I)) : 0;
  }
  bool ofDims(llvm::ArrayRef<DimId> List, uint8_t &Result) const;
  bool sweep();
  uint8_t infer(NodeId N, unsigned Port) const;
  bool isOfAllRows(NodeId N, uint8_t In) const;
  const OpRule &ruleAt(NodeId N) const { return Ops[G.node(N).Op].Rule; }
  uint8_t sizeOperands(NodeId N) const;
  uint8_t lengths(NodeId N) const;
  bool isOfOwnLoop(Endpoint Flow) const;
  uint8_t sizes(NodeId N, uint8_t In) const;
  uint8_t numbers(NodeId N, unsigned Port, uint8_t In) const;
  bool altersRows(NodeId N) const;
  bool keepsRows(NodeId N, unsigned Port, uint8_t In) const;
  bool startsToDiffer(NodeId N) const;
  bool isUnproved(NodeId N) const;
  std::optional<Sym> size(Endpoint E, unsigned Axis) const;
  bool hasOwnAxis(Endpoint E, int Axis) const;
  bool isOfRows(Endpoint Index, Endpoint Table, int Axis) const;
  int64_t knownRows(Endpoint E, unsigned Axis) const;
  bool fitsInto(NodeId N, unsigned Axis, int64_t Begin, int64_t Size) const;
  bool mayLackRows(NodeId N) const;
  std::string fault(NodeId N) const;
  std::string faultOfLookup(NodeId N) const;
  std::optional<int64_t> numberOf(NodeId N, unsigned I) const;
  bool divides(Endpoint E, unsigned Axis, int64_t Parts) const;
  std::string faultOfSplit(NodeId N) const;
  std::string faultOfPart(NodeId N) const;
  bool isOther(DimId Size, DimId Wanted) const;
  std::string faultOfUpdate(NodeId N) const;
  bool fillsRows(Endpoint E, llvm::ArrayRef<DimId> Target) const;
  std::string faultOfShape(NodeId N) const;
  bool takesListOfAll(NodeId N) const;
  uint8_t comparedSizes(NodeId N) const;
  bool comparesUnknown(NodeId N) const;
  bool comparesUnknownRows(NodeId N) const;
  bool comparesUnknownLead(NodeId N) const;
  bool comparesAnyUnknown(NodeId N) const;
  bool comparesLengths(NodeId N) const;

  const Graph &G;
  const ProgramFacts &Facts;
  struct OpInfo {
    const OpRule &Rule;
    bool Starts; ///< Gives each replica another value.
  };
  std::vector<OpInfo> Ops;   ///< By op.
  std::vector<uint8_t> Bits; ///< By output; empty if all is related.
  /// The graph says how many rows a replica has. Else a number of theirs is one
  /// that the graph compares them with.
  bool IsStatic = false;
  llvm::SmallVector<int64_t, 2> Batches; ///< Sizes of static feeds.
};

} // namespace graft

#endif // GRAFT_LIB_INFER_FACTS_LOCALRUNS_H
