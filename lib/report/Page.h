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

/// Whether what is called \p File is a page, and not JSON.
inline bool isPage(llvm::StringRef File) { return File.ends_with(".html"); }

/// The page that shows \p Json, a report of docs/Report.md. All that it takes
/// is in it.
std::string reportPage(llvm::StringRef Json);

} // namespace graft

#endif // GRAFT_LIB_REPORT_PAGE_H
