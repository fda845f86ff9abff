//===- lib/report/RemarksFile.h - messages for programs ---------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
// The forms in which --remarks=FILE says what was done: docs/Remarks.md.
//
//===----------------------------------------------------------------------===//

#ifndef GRAFT_LIB_REPORT_REMARKSFILE_H
#define GRAFT_LIB_REPORT_REMARKSFILE_H

#include "lib/support/Diagnostics.h"

#include "llvm/Support/JSON.h"

#include <string>

namespace graft {

/// How --remarks=FILE writes them.
enum class RemarksFormat : uint8_t {
  Text,
  Yaml,
  OptYaml, ///< As LLVM's compilers write remarks.
  Json,
  Sarif,
};

/// What \p File is called after: `.json`, `.sarif`, `.opt.yaml`, `.txt`, or
/// else YAML.
RemarksFormat remarksFormatOf(llvm::StringRef File);

/// A stream of YAML documents.
std::string remarksYaml(const DiagnosticEngine &Diags);
/// An array of JSON objects with the same fields.
std::string remarksJson(const DiagnosticEngine &Diags);
/// The fields of \p D in the object that \p J is in, with what to do about it
/// if \p Help is given.
void remarkFields(llvm::json::OStream &J, const Diagnostic &D,
                  llvm::StringRef Help = "");
/// The stream that LLVM's -fsave-optimization-record writes, about \p File.
std::string remarksOptYaml(const DiagnosticEngine &Diags, llvm::StringRef File);
/// A SARIF 2.1.0 log about \p File, whose rules are those of docs/Remarks.md.
std::string remarksSarif(const DiagnosticEngine &Diags, llvm::StringRef File);

} // namespace graft

#endif // GRAFT_LIB_REPORT_REMARKSFILE_H
