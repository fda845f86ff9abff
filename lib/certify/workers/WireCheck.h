//===- lib/certify/workers/WireCheck.h - messages as they must be ---------===//
//
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#ifndef GRAFT_LIB_CERTIFY_WORKERS_WIRECHECK_H
#define GRAFT_LIB_CERTIFY_WORKERS_WIRECHECK_H

#include "lib/certify/workers/Join.h"

namespace graft {

/// Returns the copies of variables that the exchange of \p F refreshes from
/// their primaries before \p Refreshed, a node of it or NoNode.
std::vector<OwnCopy> refreshedBy(const WorkerFile &F, NodeId Refreshed);

/// Returns the queues of \p F to which a run puts a mark.
std::vector<MessageQueue> markedBy(const WorkerFile &F);

/// Returns the numbers of messages of worker \p From that a run of name \p Name
/// of the chief, whose file is \p F, compares with each other.
std::vector<Endpoint> sameNumbers(const WorkerFile &F, unsigned Name,
                                  unsigned From);

/// Returns true if two values of an attribute are the same, also if one was in
/// a text file, which leaves out fields that are zero.
bool sameValue(llvm::StringRef A, llvm::StringRef B);

/// Checks that the exchange of messages of file \p File of \p Files is, node
/// for node, the one that Messages writes for what the file sends and takes.
bool checkWire(WorkersJoin &Join, llvm::ArrayRef<WorkerFile> Files,
               unsigned File);

} // namespace graft

#endif // GRAFT_LIB_CERTIFY_WORKERS_WIRECHECK_H
