//===- lib/report/MessageHelp.h - the meaning of messages -------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
// The rows of the tables in docs/Remarks.md. That page is compiled in, so that
// it and the reports explain a message by the same text.
//
//===----------------------------------------------------------------------===//

#ifndef GRAFT_LIB_REPORT_MESSAGEHELP_H
#define GRAFT_LIB_REPORT_MESSAGEHELP_H

#include "lib/support/Diagnostics.h"

#include "llvm/ADT/ArrayRef.h"

#include <string>
#include <vector>

namespace graft {

/// The help for all messages with one id.
struct MessageHelp {
  std::string Id;
  bool IsRemark = false; ///< Unset for a warning.
  std::string Says;      ///< The meaning, as plain text.
  std::string ToDo;      ///< The advice, as plain text.
};

/// Returns all rows in the order of the page.
std::vector<MessageHelp> messageHelp();

/// Returns the element of \p All that explains \p D, or null.
const MessageHelp *helpOf(llvm::ArrayRef<MessageHelp> All, const Diagnostic &D);

} // namespace graft

#endif // GRAFT_LIB_REPORT_MESSAGEHELP_H
