//===- lib/support/Progress.h - what a long run is at -----------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#ifndef GRAFT_LIB_SUPPORT_PROGRESS_H
#define GRAFT_LIB_SUPPORT_PROGRESS_H

#include "llvm/ADT/Twine.h"

#include <memory>
#include <mutex>
#include <string>

namespace graft {

/// A line on stderr that says what a program is at and for how long, once it
/// has run for two seconds. It is there only while stderr is a terminal and
/// nothing else is printed: who prints holds what hide() returns, or has called
/// stop().
class Progress {
public:
  Progress();
  ~Progress();
  Progress(const Progress &) = delete;
  Progress &operator=(const Progress &) = delete;

  /// From here on the line may be shown, after \p Program and a colon. Nothing
  /// happens where stderr is no terminal.
  void start(llvm::StringRef Program);
  void stage(const llvm::Twine &What);
  /// Takes the line away for as long as what it returns lives.
  [[nodiscard]] std::unique_lock<std::mutex> hide();
  /// Takes it away for good.
  void stop();

private:
  class Line;
  std::unique_ptr<Line> Shown;
};

} // namespace graft

#endif // GRAFT_LIB_SUPPORT_PROGRESS_H
