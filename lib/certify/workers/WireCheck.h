//===- lib/certify/workers/WireCheck.h - check of the exchange ------------===//
//
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#ifndef GRAFT_LIB_CERTIFY_WORKERS_WIRECHECK_H
#define GRAFT_LIB_CERTIFY_WORKERS_WIRECHECK_H

#include "lib/certify/workers/Join.h"

namespace graft {

/// Returns the variable copies that the exchange of \p F refreshes from their
/// primaries before its node \p Refreshed runs. Returns none if \p Refreshed is
/// NoNode.
std::vector<OwnCopy> refreshedBy(const WorkerFile &F, NodeId Refreshed);

/// Returns the queues of \p F into which a run puts a mark, which makes earlier
/// messages obsolete (Messages.h).
std::vector<MessageQueue> markedBy(const WorkerFile &F);

/// Returns the message numbers of worker \p From that the chief compares with
/// each other in a run of name \p Name. \p F is the file of the chief.
std::vector<Endpoint> sameNumbers(const WorkerFile &F, unsigned Name,
                                  unsigned From);

/// Returns true if two attribute values are equal. A value from a text file may
/// lack fields that are zero.
bool sameValue(llvm::StringRef A, llvm::StringRef B);

/// Checks that the message exchange of file \p File is, node for node, the one
/// that Messages writes for the messages of the file.
bool checkWire(WorkersJoin &Join, llvm::ArrayRef<WorkerFile> Files,
               unsigned File);

} // namespace graft

#endif // GRAFT_LIB_CERTIFY_WORKERS_WIRECHECK_H
