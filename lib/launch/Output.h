//===- lib/launch/Output.h - the output of processes ------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
// Shows the lines of several processes, each after the name of its task.
// Writing never blocks: text that cannot be written yet is queued. While the
// queue is long, no more text is read, so that the processes wait.
//
//===----------------------------------------------------------------------===//

#ifndef GRAFT_LIB_LAUNCH_OUTPUT_H
#define GRAFT_LIB_LAUNCH_OUTPUT_H

#include "llvm/ADT/StringRef.h"
#include "llvm/ADT/Twine.h"

#include <deque>
#include <string>
#include <vector>

namespace graft {

class Output {
public:
  /// Shows each line from the pipe \p From on \p To (1 or 2) after `[Name] `,
  /// in \p Color if \p To is a terminal. If \p To is 0 the lines are read and
  /// not shown. Closes the pipe at the end.
  void follow(int From, int To, llvm::StringRef Name, unsigned Color);

  /// Adds a message of the launcher after all earlier lines and messages.
  void say(const llvm::Twine &Message);

  /// Waits until it can read or write, \p Wake is readable, or \p Milliseconds
  /// have passed (-1: no limit). Then reads and writes without waiting.
  void turn(int Wake, int Milliseconds);

  /// Reads once from each pipe, without waiting.
  void read();
  /// Reads the rest of all pipes without waiting and closes them.
  void close();

  /// Returns true if everything is written.
  bool empty() const { return Queue.empty(); }
  /// Returns the errno of a failed write to stdout, or 0.
  int error() const { return StdoutError; }

private:
  struct Stream {
    int From, To;
    std::string Prefix;
    std::string Line; ///< The beginning of an incomplete line.
  };
  struct Part {
    int To;
    std::string Text;
    size_t Written = 0;
  };

  bool readSome(Stream &S);
  void show(Stream &S, llvm::StringRef Line);
  void add(int To, const llvm::Twine &Text);
  void writeSome();

  std::vector<Stream> Streams;
  std::deque<Part> Queue;
  size_t Kept = 0; ///< Bytes in the queue.
  int StdoutError = 0;
};

} // namespace graft

#endif // GRAFT_LIB_LAUNCH_OUTPUT_H
