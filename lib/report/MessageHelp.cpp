//===- lib/report/MessageHelp.cpp - the meaning of messages -----*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "lib/report/MessageHelp.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SmallVector.h"

using namespace llvm;

namespace graft {

static constexpr char RemarksPage[] =
#include "embedded/Remarks.inc"
    ;

/// Returns the text of Markdown without its marks and the targets of links.
static std::string plainText(StringRef Cell) {
  std::string Out;
  Cell = Cell.trim();
  while (!Cell.empty()) {
    size_t End = Cell.find("](");
    if (Cell[0] == '[' && End != StringRef::npos) {
      Out += plainText(Cell.slice(1, End));
      Cell =
          Cell.drop_front(std::min(Cell.find(')', End), Cell.size() - 1) + 1);
      continue;
    }
    if (Cell[0] != '`')
      Out += Cell[0];
    Cell = Cell.drop_front();
  }
  return Out;
}

std::vector<MessageHelp> messageHelp() {
  std::vector<MessageHelp> All;
  bool IsRemark = false;
  SmallVector<StringRef, 0> Lines;
  StringRef(RemarksPage).split(Lines, '\n');
  for (StringRef Line : Lines) {
    if (Line.starts_with("## "))
      IsRemark = Line == "## Remarks";
    SmallVector<StringRef, 8> Cells;
    Line.split(Cells, '|');
    // | `id` | pass | it says | fields | what to do |
    if (Cells.size() != 7 || !Cells[1].trim().starts_with("`"))
      continue;
    All.push_back({Cells[1].trim(" `").str(), IsRemark, plainText(Cells[3]),
                   plainText(Cells[5])});
  }
  return All;
}

const MessageHelp *helpOf(ArrayRef<MessageHelp> All, const Diagnostic &D) {
  const auto *Found = find_if(All, [&](const MessageHelp &Each) {
    return Each.Id == D.Id && Each.IsRemark == (D.Level == Severity::Remark);
  });
  return Found == All.end() ? nullptr : Found;
}

} // namespace graft
