//===- lib/pass/Timer.h - time of a part of a run ---------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#ifndef GRAFT_LIB_PASS_TIMER_H
#define GRAFT_LIB_PASS_TIMER_H

#include <ctime>

namespace graft {

/// Seconds; the CPU time is that of all threads.
struct Seconds {
  double Wall = 0;
  double Cpu = 0;
};

/// Adds to \p To the time from here to the end of the scope.
class Timer {
public:
  explicit Timer(Seconds &To) : To(To) { add(-1); }
  Timer(const Timer &) = delete;
  Timer &operator=(const Timer &) = delete;
  ~Timer() { add(1); }

private:
  static double read(clockid_t Clock) {
    timespec T = {};
    clock_gettime(Clock, &T);
    return static_cast<double>(T.tv_sec) +
           static_cast<double>(T.tv_nsec) * 1e-9;
  }
  void add(int Sign) {
    To.Wall += Sign * read(CLOCK_MONOTONIC);
    To.Cpu += Sign * read(CLOCK_PROCESS_CPUTIME_ID);
  }

  Seconds &To;
};

} // namespace graft

#endif // GRAFT_LIB_PASS_TIMER_H
