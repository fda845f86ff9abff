//===- lib/rewrite/partition/PartitionEdit.h - variables in parts ---------===//
//
// SPDX-License-Identifier: Apache-2.0
//
// Rewrites every user of the variables of a PartitionPlan. From a variable on,
// each node that passes it on gets one clone for each part, and its users are
// rewritten once the clones of all variables that they use are there.
//
//===----------------------------------------------------------------------===//

#ifndef GRAFT_LIB_REWRITE_PARTITION_PARTITIONEDIT_H
#define GRAFT_LIB_REWRITE_PARTITION_PARTITIONEDIT_H

#include "lib/graph/AttrRun.h"
#include "lib/io/Module.h"
#include "lib/rewrite/partition/PartitionPlan.h"

#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/StringMap.h"

namespace tensorflow {
class VariableDef;
} // namespace tensorflow

namespace graft {

class PartitionEditor {
public:
  PartitionEditor(Module &M, const VariableIndex &Vars,
                  const PartitionPlan &Plan)
      : M(M), G(M.graph()), Vars(Vars), Plan(Plan) {}

  /// Says that somebody asks for the tensor \p Name, as for those that
  /// collections and signatures name: it stays one.
  void keep(llvm::StringRef Name);
  void run();

private:
  using Nodes = llvm::SmallVector<NodeId, 8>;

  /// An entry of a SaveV2 that is the value of a variable.
  struct SavedEntry {
    unsigned Index;                ///< Of the entry.
    const PartitionedVariable *Of; ///< The variable.
    Endpoint From;                 ///< A reference, or a read.
  };
  /// An output of a RestoreV2 that only gives a variable its value.
  struct RestoredEntry {
    unsigned Index;
    const PartitionedVariable *Of;
    NodeId Assign;
  };

  //===--------------------------------------------------------------------===//
  // Nodes (PartitionNodes.cpp)
  //===--------------------------------------------------------------------===//

  /// A new node `<Of's name>/<Suffix>`, on the device of \p Of and behind it.
  NodeId add(NodeId Of, const llvm::Twine &Suffix, llvm::StringRef Op,
             llvm::ArrayRef<Endpoint> Inputs, const AttrRun &Attrs);
  /// \p Of for part \p Part, under \p Name.
  NodeId clone(NodeId Of, const llvm::Twine &Name, unsigned Part,
               llvm::ArrayRef<Endpoint> Inputs);
  /// \p Of for part \p Part, with the parts of what it uses in place.
  NodeId cloneForPart(NodeId Of, const llvm::Twine &Name, unsigned Part);
  /// Makes \p N another op. Attributes of the old one go, other than `_class`.
  void become(NodeId N, llvm::StringRef Op, llvm::ArrayRef<Endpoint> Inputs,
              const AttrRun &Attrs);
  /// The same for what has the value of \p N.
  void becomeIdentity(NodeId N, Endpoint Value, unsigned Type);
  /// \p Handle or reference of a cut variable, of part \p Part.
  Endpoint partOf(Endpoint Handle, unsigned Part) const {
    return {Clones.find(Handle.Node)->second[Part], Handle.Port};
  }
  /// The clone of \p Read, a read of \p Of, that reads part \p Part is called
  /// after the part where \p Read is called after the variable.
  std::string readName(const PartitionedVariable &Of, NodeId Read,
                       unsigned Part) const;
  /// What `constant` nodes wait for, so that they run where \p Handle is
  /// there: nothing outside of conditionals and loops.
  void enterContext(Endpoint Handle);
  NodeId constant(NodeId Of, const llvm::Twine &Suffix, unsigned Type,
                  llvm::ArrayRef<int64_t> Shape,
                  llvm::ArrayRef<int64_t> Values);
  NodeId scalar(NodeId Of, const llvm::Twine &Suffix, int64_t Value,
                unsigned Type = DT_INT32) {
    return constant(Of, Suffix, Type, {}, Value);
  }
  NodeId vector(NodeId Of, const llvm::Twine &Suffix,
                llvm::ArrayRef<int64_t> Values, unsigned Type = DT_INT32) {
    return constant(Of, Suffix, Type, {static_cast<int64_t>(Values.size())},
                    Values);
  }
  NodeId concat(NodeId Of, llvm::ArrayRef<Endpoint> Values, unsigned Type,
                int64_t Axis);
  NodeId split(NodeId Of, Endpoint Value, unsigned Type,
               llvm::ArrayRef<int64_t> Sizes, int64_t Axis);
  /// Names in `_class` of variables, and of what passed them on.
  void renameClasses();
  std::string classFor(llvm::StringRef Entry, unsigned Part) const;

  //===--------------------------------------------------------------------===//
  // Users (PartitionEdit.cpp)
  //===--------------------------------------------------------------------===//

  void makeParts(const PartitionedVariable &Of);
  void finish(NodeId Alias);
  void rewriteUser(NodeId N);
  void cloneAlias(NodeId N, const PartitionedVariable &Of);
  void rewriteRead(NodeId N, const PartitionedVariable &Of);
  void readValues(NodeId N);
  void readLate(NodeId N, const PartitionedVariable &Of);
  llvm::SmallVector<Endpoint, 8> waitsOf(NodeId N, unsigned Index) const;
  void rewriteInitialized(NodeId N, const PartitionedVariable &Of);
  void rewriteEffect(NodeId N, const PartitionedVariable &Of);
  void rewriteDenseLookup(NodeId N, const PartitionedVariable &Of);
  void becomeShape(NodeId N, const PartitionedVariable &Of,
                   llvm::StringRef TypeAttr);
  void rewriteUpdate(NodeId N);
  Nodes partReads(NodeId N, const PartitionedVariable &Of);
  void removeOld();

  //===--------------------------------------------------------------------===//
  // Rows (PartitionRows.cpp)
  //===--------------------------------------------------------------------===//

  /// Which part has the row of each index, and which row it is there.
  struct Route {
    Endpoint Flat, Part, Local;
    unsigned Type; ///< Of the indices.
  };
  Route route(NodeId N, Endpoint Ids, const PartitionedVariable &Of);
  Endpoint partition(NodeId N, const llvm::Twine &Suffix, Endpoint Data,
                     Endpoint Part, unsigned Type,
                     const PartitionedVariable &Of);
  /// Makes the lookup \p N one of the parts, which \p Params are.
  void rewriteLookup(NodeId N, const PartitionedVariable &Of,
                     llvm::ArrayRef<Endpoint> Params);
  /// The gradients and indices of each part for the sparse update \p N.
  void splitRows(NodeId N, const PartitionedVariable &Of,
                 llvm::SmallVectorImpl<Endpoint> &Values,
                 llvm::SmallVectorImpl<Endpoint> &Ids);
  /// Whether \p U looks up rows along the axis that is cut.
  bool isLookup(Use U, const PartitionedVariable &Of) const;
  /// Users of the read \p N, all of which look up rows along the axis that is
  /// cut, or ask for the shape. Nothing if there are others.
  llvm::SmallVector<NodeId, 4> lookupsOf(NodeId N,
                                         const PartitionedVariable &Of) const;

  //===--------------------------------------------------------------------===//
  // Checkpoints (PartitionSavers.cpp)
  //===--------------------------------------------------------------------===//

  /// The constants of a SaveV2 or RestoreV2.
  struct SaverEntries {
    std::vector<std::string> Names, Slices;
  };
  /// By entry, the variable that is cut.
  using EntryMap = llvm::SmallDenseMap<unsigned, const PartitionedVariable *>;

  SaverEntries *entriesOf(NodeId N);
  bool canExpand(NodeId N, unsigned Index, const PartitionedVariable &Of);
  void findSaved(const PartitionedVariable &Of);
  bool findSavedFrom(Endpoint Value, Endpoint From,
                     const PartitionedVariable &Of);
  void findRestored(const PartitionedVariable &Of);
  void expandEntries(NodeId N, const EntryMap &Of);
  void rewriteRestores();
  void rewriteSaves();
  /// Whether \p N is a saver, or passes a value on to one, and takes parts.
  bool isSaved(NodeId N) const {
    return Saved.contains(N) || PassedOn.contains(N);
  }

  //===--------------------------------------------------------------------===//
  // Collections (PartitionCollections.cpp)
  //===--------------------------------------------------------------------===//

  void keepNamed();
  void declareParts();
  tensorflow::VariableDef declare(tensorflow::VariableDef V,
                                  const PartitionedVariable &Of, unsigned Part);
  NodeId snapshotOf(const PartitionedVariable &Of, llvm::StringRef Snapshot,
                    unsigned Part);

  Module &M;
  Graph &G;
  const VariableIndex &Vars;
  const PartitionPlan &Plan;

  llvm::DenseMap<NodeId, Nodes> Clones;    ///< By alias or update, per part.
  llvm::DenseMap<NodeId, Nodes> PartReads; ///< By read, per part.
  llvm::DenseMap<NodeId, Nodes> OwnReads;  ///< By variable, reads that are new.
  llvm::DenseMap<NodeId, NodeId> SplitOf;  ///< By update, what cuts its value.
  llvm::DenseMap<NodeId, unsigned> Pending; ///< By user: variables to come.
  llvm::StringMap<NodeId> Gone;             ///< By name, what was removed.
  llvm::DenseSet<NodeId> Kept; ///< Nodes whose output is asked for.
  std::vector<NodeId> Ready, Old;
  /// The node that constants wait for.
  NodeId Context = NoNode;
  llvm::DenseMap<std::pair<NodeId, uint32_t>, NodeId> Contexts;

  llvm::MapVector<NodeId, llvm::SmallVector<SavedEntry, 4>> Saved;
  llvm::MapVector<NodeId, llvm::SmallVector<RestoredEntry, 4>> Restored;
  llvm::DenseMap<NodeId, std::unique_ptr<SaverEntries>> Entries;
  /// By RestoreV2, how often each output is used.
  llvm::DenseMap<NodeId, llvm::DenseMap<uint32_t, unsigned>> RestoreUses;
  llvm::DenseSet<NodeId> PassedOn; ///< Identities in front of savers.
  std::vector<NodeId> Leftover;    ///< Identities behind a RestoreV2.
  /// By assignment, the values of the parts where they come from a checkpoint.
  llvm::DenseMap<NodeId, llvm::SmallVector<Endpoint, 8>> PartValues;
};

} // namespace graft

#endif // GRAFT_LIB_REWRITE_PARTITION_PARTITIONEDIT_H
