//===- lib/report/RemarksFile.h - messages for programs ---------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
// The formats of --remarks=FILE: docs/Remarks.md.
//
//===----------------------------------------------------------------------===//

#ifndef GRAFT_LIB_REPORT_REMARKSFILE_H
#define GRAFT_LIB_REPORT_REMARKSFILE_H

#include "lib/support/Diagnostics.h"

#include "llvm/Support/JSON.h"

#include <string>

namespace graft {

/// The format of a remarks file.
enum class RemarksFormat : uint8_t {
  Text,
  Yaml,
  OptYaml, ///< The format of LLVM's compilers.
  Json,
  Sarif,
};

/// Returns the format by the ending of \p File: `.json`, `.sarif`, `.opt.yaml`,
/// `.txt`, or else YAML.
RemarksFormat remarksFormatOf(llvm::StringRef File);

/// Returns a stream of YAML documents.
std::string remarksYaml(const DiagnosticEngine &Diags);
/// Returns an array of JSON objects with the same fields.
std::string remarksJson(const DiagnosticEngine &Diags);
/// Writes the fields of \p D into the open object of \p J. Adds the advice
/// \p Help unless it is empty.
void remarkFields(llvm::json::OStream &J, const Diagnostic &D,
                  llvm::StringRef Help = "");
/// Returns a stream in the form of LLVM's -fsave-optimization-record, for \p
/// File.
std::string remarksOptYaml(const DiagnosticEngine &Diags, llvm::StringRef File);
/// Returns a SARIF 2.1.0 log for \p File, with the rules of docs/Remarks.md.
std::string remarksSarif(const DiagnosticEngine &Diags, llvm::StringRef File);

} // namespace graft

#endif // GRAFT_LIB_REPORT_REMARKSFILE_H
