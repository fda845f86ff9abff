//===- lib/launch/Output.h - what processes say -----------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
// Lines of several processes, whole, each behind the name of its task. Nothing
// here waits for a reader: what cannot be written yet is kept, and while much
// is kept no more is read, so that the processes wait.
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
  /// Shows each line that comes out of the pipe \p From, which it closes, on
  /// \p To, 1 or 2, behind `[Name] `; of \p Color if that is a terminal. With
  /// \p To 0 it is read and not shown.
  void follow(int From, int To, llvm::StringRef Name, unsigned Color);

  /// A message of the launcher, after what it was told before.
  void say(const llvm::Twine &Message);

  /// Reads and writes what can be, or waits for it, or for \p Wake, or for some
  /// \p Milliseconds, unless they are -1.
  void turn(int Wake, int Milliseconds);

  /// Reads what is there, once from each pipe.
  void read();
  /// Reads what is left and closes all pipes.
  void close();

  /// Whether all is written.
  bool empty() const { return Queue.empty(); }
  /// errno of a write to stdout that went wrong, or 0.
  int error() const { return StdoutError; }

private:
  struct Stream {
    int From, To;
    std::string Prefix;
    std::string Line; ///< What came of a line that is not complete.
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
