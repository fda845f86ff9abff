//===- lib/support/Progress.h - the progress of a long run ------*- C++ -*-===//
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

/// A line on stderr with the stage of a program and its running time, from two
/// seconds on. It is shown only while stderr is a terminal and nothing else is
/// printed: code that prints holds the result of hide(), or has called stop().
class Progress {
public:
  Progress();
  ~Progress();
  Progress(const Progress &) = delete;
  Progress &operator=(const Progress &) = delete;

  /// Allows the line, with the prefix `PROGRAM: `, from now on. Has no effect
  /// if stderr is not a terminal.
  void start(llvm::StringRef Program);
  void stage(const llvm::Twine &What);
  /// Hides the line while the result lives.
  [[nodiscard]] std::unique_lock<std::mutex> hide();
  /// Removes the line for good.
  void stop();

private:
  class Line;
  std::unique_ptr<Line> Shown;
};

} // namespace graft

#endif // GRAFT_LIB_SUPPORT_PROGRESS_H
