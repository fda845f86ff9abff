//===- lib/report/Page.h - a report for a browser ---------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#ifndef GRAFT_LIB_REPORT_PAGE_H
#define GRAFT_LIB_REPORT_PAGE_H

#include "llvm/ADT/StringRef.h"

#include <string>

namespace graft {

/// Returns true if \p File is to be a page, not JSON.
inline bool isPage(llvm::StringRef File) { return File.ends_with(".html"); }

/// Returns the page that shows \p Json, a report of docs/Report.md. The page
/// loads no other file.
std::string reportPage(llvm::StringRef Json);

} // namespace graft

#endif // GRAFT_LIB_REPORT_PAGE_H
