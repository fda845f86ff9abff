//===- lib/driver/OutputCheck.h - the flag --verify-output ------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#ifndef GRAFT_LIB_DRIVER_OUTPUTCHECK_H
#define GRAFT_LIB_DRIVER_OUTPUTCHECK_H

#include "lib/certify/Certify.h"
#include "lib/io/Module.h"
#include "lib/io/write/Write.h"
#include "lib/support/Diagnostics.h"

#include "llvm/Support/Error.h"
#include "llvm/Support/MemoryBuffer.h"

namespace graft {

/// Opens \p Files, which will replace the output \p Name, as one buffer. The
/// concatenated \p Files are one message.
llvm::Expected<std::unique_ptr<llvm::MemoryBuffer>>
openWritten(llvm::ArrayRef<std::string> Files, llvm::StringRef Name);

/// Reads the output of \p M from \p Files, before these replace the output
/// \p Name. The concatenated \p Files are one message. Returns an error unless
/// the output verifies and computes the step of the input.
llvm::Error checkWritten(const Module &M, llvm::ArrayRef<std::string> Files,
                         OutputFormat Format, llvm::StringRef Name,
                         DiagnosticEngine &Diags);

/// Checks the message \p Bytes as checkWritten() checks files.
llvm::Error checkMessage(const Module &M,
                         std::unique_ptr<llvm::MemoryBuffer> Bytes,
                         OutputFormat Format, DiagnosticEngine &Diags);

/// Returns the names that the collections of \p M declare.
certify::Declared declaredBy(const Module &M);

/// Checks \p Graphs, the contents of the files of all workers. Together they
/// must compute the step of the input.
llvm::Error checkWorkers(const Module &M, llvm::ArrayRef<std::string> Graphs,
                         OutputFormat Format, DiagnosticEngine &Diags);

} // namespace graft

#endif // GRAFT_LIB_DRIVER_OUTPUTCHECK_H
