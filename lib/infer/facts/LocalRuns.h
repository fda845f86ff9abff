//===- lib/infer/facts/LocalRuns.h - replicas by themselves ---------------===//
//
// SPDX-License-Identifier: Apache-2.0
//
// A replica also runs nodes whose values no rule relates to the global value.
// All these values are Varying, so types do not show if a replica can run the
// nodes, or if the copies of variables stay equal. The origins of sizes and
// numbers show both. A replica that uses only sizes of its shard computes the
// single-device step on a batch of these rows, and fails only if that step
// fails, too. Three kinds of values do not fit the rows of one replica:
//
// - the rows of all replicas, and their number;
// - row numbers of another tensor, as indices of a lookup;
// - sizes that depend on values: a loop that runs until all rows are done may
//   run fewer iterations on a shard.
//
// Bits of each tensor show the rows on which its sizes and elements may depend.
// One sweep over the nodes finds the bits, or several sweeps in a graph with
// loops. A known symbolic size determines the bits. Otherwise a result is
// assumed to depend on all rows on which its operands depend.
//
//===----------------------------------------------------------------------===//

#ifndef GRAFT_LIB_INFER_FACTS_LOCALRUNS_H
#define GRAFT_LIB_INFER_FACTS_LOCALRUNS_H

#include "lib/infer/facts/ProgramFacts.h"
#include "lib/ops/OpRule.h"

namespace graft {

/// The variables and fetches that are not proved because of one node.
struct Spoils {
  unsigned Variables = 0, Fetches = 0;
  NodeId Variable = NoNode, Fetch = NoNode; ///< The first of each.
  /// Returns text such as "; affects 3 variables and the fetch 'loss'", or "".
  std::string str(const Graph &G) const;
};

class LocalRuns {
public:
  /// \p G and \p Facts must outlive this object.
  LocalRuns(const Graph &G, const ProgramFacts &Facts);

  /// Returns true if the values of \p E may differ between replicas.
  bool differs(Endpoint E) const;
  /// Returns true if a size of \p E may be per-replica.
  bool hasOwnSize(Endpoint E) const { return bits(E) & OwnSize; }
  /// Returns true if the copies of a variable that \p N writes may differ
  /// because of input \p I: its value may differ between replicas, or only some
  /// replicas may run \p N.
  bool drifts(NodeId N, unsigned I) const;

  struct Fault {
    NodeId Node;
    std::string Why;
  };
  /// Returns the nodes that may fail on a replica. Omits a node that depends on
  /// another node that may fail.
  std::vector<Fault> faults() const;
  /// Returns the variables and fetches that depend on the value of \p N.
  Spoils spoiledBy(NodeId N) const;

private:
  enum : uint8_t {
    OwnSize = 1,   ///< A size may follow the rows of one replica.
    AllSize = 2,   ///< A size may follow the rows of all replicas.
    OwnNumber = 4, ///< An element may count the rows of one replica.
    AllNumber = 8,
    Differs = 16,
    Rows = 32,    ///< The number of elements follows a replica's rows.
    Length = 64,  ///< A size may follow a replica's values, not only its rows.
    OfRows = 128, ///< The value is computed from a replica's rows.
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
    bool Starts; ///< Results of the op may differ between replicas.
  };
  std::vector<OpInfo> Ops;   ///< By op.
  std::vector<uint8_t> Bits; ///< By output; empty if all is proved.
  /// Set if the feeds have static batch sizes. Otherwise a row count is known
  /// only if the graph requires it.
  bool IsStatic = false;
  llvm::SmallVector<int64_t, 2> Batches; ///< The batch sizes of static feeds.
};

} // namespace graft

#endif // GRAFT_LIB_INFER_FACTS_LOCALRUNS_H
