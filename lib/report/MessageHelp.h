//===- lib/report/MessageHelp.h - what a message means ----------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
// The rows of the tables of docs/Remarks.md, which is compiled in: what a page
// says of a message and what a report says of it is one text.
//
//===----------------------------------------------------------------------===//

#ifndef GRAFT_LIB_REPORT_MESSAGEHELP_H
#define GRAFT_LIB_REPORT_MESSAGEHELP_H

#include "lib/support/Diagnostics.h"

#include "llvm/ADT/ArrayRef.h"

#include <string>
#include <vector>

namespace graft {

/// What is said of all messages with one id.
struct MessageHelp {
  std::string Id;
  bool IsRemark = false; ///< Else it is one of a warning.
  std::string Says;      ///< What it says, as plain text.
  std::string ToDo;      ///< What to do about it, likewise.
};

/// All of them, in the order of the page.
std::vector<MessageHelp> messageHelp();

/// What \p All says of \p D, or null.
const MessageHelp *helpOf(llvm::ArrayRef<MessageHelp> All, const Diagnostic &D);

} // namespace graft

#endif // GRAFT_LIB_REPORT_MESSAGEHELP_H
