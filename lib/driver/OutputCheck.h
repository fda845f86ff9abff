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

/// Opens the bytes that will replace the output \p Name: \p Files, one after
/// the other, are the bytes of one message.
llvm::Expected<std::unique_ptr<llvm::MemoryBuffer>>
openWritten(llvm::ArrayRef<std::string> Files, llvm::StringRef Name);

/// Reads the output of \p M before it replaces the file \p Name: \p Files, one
/// after the other, are the bytes of one message. The output must verify and
/// compute the step of the input.
llvm::Error checkWritten(const Module &M, llvm::ArrayRef<std::string> Files,
                         OutputFormat Format, llvm::StringRef Name,
                         DiagnosticEngine &Diags);

/// Checks the message \p Bytes in the same way.
llvm::Error checkMessage(const Module &M,
                         std::unique_ptr<llvm::MemoryBuffer> Bytes,
                         OutputFormat Format, DiagnosticEngine &Diags);

/// Returns the names that the collections of \p M declare.
certify::Declared declaredBy(const Module &M);

/// Checks \p Graphs, the files of all workers, in the same way.
llvm::Error checkWorkers(const Module &M, llvm::ArrayRef<std::string> Graphs,
                         OutputFormat Format, DiagnosticEngine &Diags);

} // namespace graft

#endif // GRAFT_LIB_DRIVER_OUTPUTCHECK_H
