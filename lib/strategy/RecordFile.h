//===- lib/strategy/RecordFile.h - strategy files ---------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
// AutoDist's strategy files (proto/autodist/strategy.proto), binary or text.
//
//===----------------------------------------------------------------------===//

#ifndef GRAFT_LIB_STRATEGY_RECORDFILE_H
#define GRAFT_LIB_STRATEGY_RECORDFILE_H

#include "lib/strategy/Record.h"
#include "lib/strategy/Resources.h"

#include "llvm/Support/Error.h"

namespace graft {

/// Parses the record in \p Bytes, as text if \p File ends in `.pbtxt` or the
/// bytes look like text. Device names are not resolved. Errors name \p File,
/// the entry and, for text, line and column.
llvm::Expected<StrategyRecord> parseRecord(llvm::StringRef Bytes,
                                           llvm::StringRef File);

/// Reads the record in the file \p File.
llvm::Expected<StrategyRecord> readRecord(llvm::StringRef File);

/// Replaces the devices of \p Record by their full names in TensorFlow. An
/// error names \p File and the entry whose device is not in \p Spec.
llvm::Error resolveDevices(StrategyRecord &Record, const ResourceSpec &Spec,
                           llvm::StringRef File);

/// Returns the contents of a file of \p Record, with devices as AutoDist writes
/// them. Equal records have equal bytes.
std::string printRecord(const StrategyRecord &Record, const ResourceSpec &Spec,
                        bool AsText);

} // namespace graft

#endif // GRAFT_LIB_STRATEGY_RECORDFILE_H
