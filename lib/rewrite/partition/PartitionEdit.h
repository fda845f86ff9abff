//===- lib/rewrite/partition/PartitionEdit.h - variables in parts ---------===//
//
// SPDX-License-Identifier: Apache-2.0
//
// Rewrites every user of the variables of a PartitionPlan. Each node that
// forwards a variable gets one clone for each part. A user is rewritten when
// the clones of all variables that it uses exist.
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

  /// Keeps the tensor \p Name whole, because a user may fetch it. Tensors that
  /// collections and signatures name are kept anyway.
  void keep(llvm::StringRef Name);
  void run();

private:
  using Nodes = llvm::SmallVector<NodeId, 8>;

  /// An entry of a SaveV2 that saves the value of a partitioned variable.
  struct SavedEntry {
    unsigned Index;                ///< The position of the entry.
    const PartitionedVariable *Of; ///< The variable.
    Endpoint From;                 ///< A reference, or a read.
  };
  /// An output of a RestoreV2 that only an assignment of a variable reads.
  struct RestoredEntry {
    unsigned Index;
    const PartitionedVariable *Of;
    NodeId Assign;
  };

  //===--------------------------------------------------------------------===//
  // Nodes (PartitionNodes.cpp)
  //===--------------------------------------------------------------------===//

  /// Adds a node `<Of's name>/<Suffix>` behind \p Of, on its device.
  NodeId add(NodeId Of, const llvm::Twine &Suffix, llvm::StringRef Op,
             llvm::ArrayRef<Endpoint> Inputs, const AttrRun &Attrs);
  /// Adds a copy of \p Of for part \p Part, under \p Name.
  NodeId clone(NodeId Of, const llvm::Twine &Name, unsigned Part,
               llvm::ArrayRef<Endpoint> Inputs);
  /// Adds a clone() that reads part \p Part of each partitioned input.
  NodeId cloneForPart(NodeId Of, const llvm::Twine &Name, unsigned Part);
  /// Turns \p N into another op. Drops its attributes, other than `_class`.
  void become(NodeId N, llvm::StringRef Op, llvm::ArrayRef<Endpoint> Inputs,
              const AttrRun &Attrs);
  /// Turns \p N into an Identity of \p Value.
  void becomeIdentity(NodeId N, Endpoint Value, unsigned Type);
  /// Returns part \p Part of \p Handle, a handle or reference.
  Endpoint partOf(Endpoint Handle, unsigned Part) const {
    return {Clones.find(Handle.Node)->second[Part], Handle.Port};
  }
  /// Returns the name of the clone of \p Read, a read of \p Of, for part \p
  /// Part. It has the part's name in place of the variable's.
  std::string readName(const PartitionedVariable &Of, NodeId Read,
                       unsigned Part) const;
  /// Sets the control input of nodes that constant() adds, so that they run in
  /// the conditional or loop of \p Handle, if there is one.
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
  /// Replaces names of variables and their aliases in `_class`.
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

  /// For each index, the part that has its row, and the row in that part.
  struct Route {
    Endpoint Flat, Part, Local;
    unsigned Type; ///< The type of the indices.
  };
  Route route(NodeId N, Endpoint Ids, const PartitionedVariable &Of);
  Endpoint partition(NodeId N, const llvm::Twine &Suffix, Endpoint Data,
                     Endpoint Part, unsigned Type,
                     const PartitionedVariable &Of);
  /// Rewrites the lookup \p N to read the parts \p Params.
  void rewriteLookup(NodeId N, const PartitionedVariable &Of,
                     llvm::ArrayRef<Endpoint> Params);
  /// Returns the gradients and indices of each part for the sparse update \p N.
  void splitRows(NodeId N, const PartitionedVariable &Of,
                 llvm::SmallVectorImpl<Endpoint> &Values,
                 llvm::SmallVectorImpl<Endpoint> &Ids);
  /// Returns true if \p U looks up rows along the partitioned axis.
  bool isLookup(Use U, const PartitionedVariable &Of) const;
  /// Returns the users of the read \p N if all of them look up rows along the
  /// partitioned axis or read the shape; else none.
  llvm::SmallVector<NodeId, 4> lookupsOf(NodeId N,
                                         const PartitionedVariable &Of) const;

  //===--------------------------------------------------------------------===//
  // Checkpoints (PartitionSavers.cpp)
  //===--------------------------------------------------------------------===//

  /// The constants of a SaveV2 or RestoreV2.
  struct SaverEntries {
    std::vector<std::string> Names, Slices;
  };
  /// The partitioned variable of each entry.
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
  /// Returns true if \p N is a saver of parts or forwards a value to a saver.
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

  llvm::DenseMap<NodeId, Nodes> Clones;     ///< By alias or update, per part.
  llvm::DenseMap<NodeId, Nodes> PartReads;  ///< By read, per part.
  llvm::DenseMap<NodeId, Nodes> OwnReads;   ///< By variable, new reads.
  llvm::DenseMap<NodeId, NodeId> SplitOf;   ///< By update, the split.
  llvm::DenseMap<NodeId, unsigned> Pending; ///< By user: missing variables.
  llvm::StringMap<NodeId> Gone;             ///< Removed nodes by name.
  llvm::DenseSet<NodeId> Kept;              ///< Nodes that may be fetched.
  std::vector<NodeId> Ready, Old;
  /// The node for which constants wait.
  NodeId Context = NoNode;
  llvm::DenseMap<std::pair<NodeId, uint32_t>, NodeId> Contexts;

  llvm::MapVector<NodeId, llvm::SmallVector<SavedEntry, 4>> Saved;
  llvm::MapVector<NodeId, llvm::SmallVector<RestoredEntry, 4>> Restored;
  llvm::DenseMap<NodeId, std::unique_ptr<SaverEntries>> Entries;
  /// By RestoreV2, the number of uses of each output.
  llvm::DenseMap<NodeId, llvm::DenseMap<uint32_t, unsigned>> RestoreUses;
  llvm::DenseSet<NodeId> PassedOn; ///< Identities in front of savers.
  std::vector<NodeId> Leftover;    ///< Identities behind a RestoreV2.
  /// By assignment from a checkpoint, the values of the parts.
  llvm::DenseMap<NodeId, llvm::SmallVector<Endpoint, 8>> PartValues;
};

} // namespace graft

#endif // GRAFT_LIB_REWRITE_PARTITION_PARTITIONEDIT_H
