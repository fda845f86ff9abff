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

/// What was written before it replaces the output \p Name: \p Files, one after
/// the other, are the bytes of one message.
llvm::Expected<std::unique_ptr<llvm::MemoryBuffer>>
openWritten(llvm::ArrayRef<std::string> Files, llvm::StringRef Name);

/// Reads what was written of \p M before it replaces the output \p Name:
/// \p Files, one after the other, are the bytes of one message. They must
/// verify, and be the step of the input.
llvm::Error checkWritten(const Module &M, llvm::ArrayRef<std::string> Files,
                         OutputFormat Format, llvm::StringRef Name,
                         DiagnosticEngine &Diags);

/// The same of the message \p Bytes.
llvm::Error checkMessage(const Module &M,
                         std::unique_ptr<llvm::MemoryBuffer> Bytes,
                         OutputFormat Format, DiagnosticEngine &Diags);

/// What the collections of \p M say.
certify::Declared declaredBy(const Module &M);

/// The same of \p Graphs, the files of all workers.
llvm::Error checkWorkers(const Module &M, llvm::ArrayRef<std::string> Graphs,
                         OutputFormat Format, DiagnosticEngine &Diags);

} // namespace graft

#endif // GRAFT_LIB_DRIVER_OUTPUTCHECK_H
