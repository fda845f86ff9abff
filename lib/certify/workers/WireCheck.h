//===- lib/certify/workers/WireCheck.h - messages as they must be ---------===//
//
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#ifndef GRAFT_LIB_CERTIFY_WORKERS_WIRECHECK_H
#define GRAFT_LIB_CERTIFY_WORKERS_WIRECHECK_H

#include "lib/certify/workers/Join.h"

namespace graft {

/// The copies of variables that the exchange of \p F takes from the chief after
/// \p Refreshed, a node of it, or none.
std::vector<OwnCopy> refreshedBy(const WorkerFile &F, NodeId Refreshed);

/// The queues of \p F to which a run puts a mark, by name.
std::vector<MessageQueue> markedBy(const WorkerFile &F);

/// The numbers of messages of worker \p From that are one in a run of name
/// \p Name of the chief, whose file \p F is.
std::vector<Endpoint> sameNumbers(const WorkerFile &F, unsigned Name,
                                  unsigned From);

/// Whether two values of an attribute are the same. In a text file fields that
/// are zero are left out.
bool sameValue(llvm::StringRef A, llvm::StringRef B);

/// Whether the exchange of messages of file \p File of \p Files is, node for
/// node, what Messages writes for what the file sends and takes.
bool checkWire(WorkersJoin &Join, llvm::ArrayRef<WorkerFile> Files,
               unsigned File);

} // namespace graft

#endif // GRAFT_LIB_CERTIFY_WORKERS_WIRECHECK_H
