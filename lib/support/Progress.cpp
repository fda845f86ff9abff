//===- lib/support/Progress.cpp - the progress of a long run ----*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "lib/support/Progress.h"

#include "lib/support/Diagnostics.h"

#include "llvm/Support/Process.h"
#include "llvm/Support/raw_ostream.h"

#include <chrono>
#include <condition_variable>
#include <csignal>
#include <thread>

using namespace llvm;

namespace graft {

static constexpr std::chrono::milliseconds Delay{2000}, Interval{200};

/// The printing thread. The other threads cannot print while a stage runs.
class Progress::Line {
public:
  explicit Line(StringRef Program) : Program(Program), Begin(Clock::now()) {
    // The new thread must handle no signal. It inherits the mask of this
    // thread, which blocks all signals until the new thread has started.
    sigset_t All, Mine;
    sigfillset(&All);
    pthread_sigmask(SIG_SETMASK, &All, &Mine);
    Printer = std::thread([this] { run(); });
    pthread_sigmask(SIG_SETMASK, &Mine, nullptr);
  }
  ~Line() {
    {
      std::lock_guard<std::mutex> Lock(Mutex);
      Ends = true;
      erase();
    }
    Woken.notify_one();
    Printer.join();
  }
  Line(const Line &) = delete;
  Line &operator=(const Line &) = delete;

  void stage(std::string What) {
    std::lock_guard<std::mutex> Lock(Mutex);
    At = std::move(What);
  }
  std::unique_lock<std::mutex> hide() {
    std::unique_lock<std::mutex> Lock(Mutex);
    erase();
    return Lock;
  }

private:
  using Clock = std::chrono::steady_clock;

  void run() {
    std::unique_lock<std::mutex> Lock(Mutex);
    auto IsOver = [this] { return Ends; };
    if (Woken.wait_for(Lock, Delay, IsOver))
      return;
    do
      print();
    while (!Woken.wait_for(Lock, Interval, IsOver));
  }
  void print() {
    if (At.empty())
      return;
    auto Seconds =
        std::chrono::duration_cast<std::chrono::seconds>(Clock::now() - Begin);
    std::string Text = Program + ": " + escapeControls(At) + ", " +
                       std::to_string(Seconds.count()) + " s";
    // A wrapped line would not be erased.
    if (unsigned Columns = sys::Process::StandardErrColumns(); Columns > 1)
      Text.resize(std::min<size_t>(Text.size(), Columns - 1));
    errs() << "\r\033[K" << Text;
    IsThere = true;
  }
  void erase() {
    if (IsThere)
      errs() << "\r\033[K";
    IsThere = false;
  }

  std::string Program, At;
  Clock::time_point Begin;
  std::mutex Mutex;
  std::condition_variable Woken;
  bool Ends = false, IsThere = false;
  std::thread Printer;
};

Progress::Progress() = default;
Progress::~Progress() = default;

void Progress::start(StringRef Program) {
  if (sys::Process::StandardErrIsDisplayed())
    Shown = std::make_unique<Line>(Program);
}

void Progress::stage(const Twine &What) {
  if (Shown)
    Shown->stage(What.str());
}

std::unique_lock<std::mutex> Progress::hide() {
  return Shown ? Shown->hide() : std::unique_lock<std::mutex>();
}

void Progress::stop() { Shown.reset(); }

} // namespace graft
