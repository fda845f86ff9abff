//===- tools/graft-opt/Signals.cpp - fatal signals --------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "Signals.h"

#include "lib/io/read/InputFile.h"
#include "lib/support/InternalError.h"
#include "lib/support/Temporaries.h"

#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Compiler.h"
#include "llvm/Support/ErrorHandling.h"

#include <csignal>
#include <cstring>
#include <exception>
#include <new>
#include <unistd.h>

using namespace llvm;

namespace graft {
namespace {

void endQuietly(int Signal) {
  removeTemporaries();
  // The parent process sees the signal as the end of the program.
  std::signal(Signal, SIG_DFL);
  sigset_t This;
  sigemptyset(&This);
  sigaddset(&This, Signal);
  pthread_sigmask(SIG_UNBLOCK, &This, nullptr);
  raise(Signal);
}

/// Signals of a fault of the program. SIGBUS is a fault unless another process
/// truncated a mapped file: see catchLostPages.
constexpr int FaultSignals[] = {SIGABRT, SIGSEGV, SIGILL, SIGFPE,
                                SIGBUS,  SIGTRAP, SIGSYS};

/// Ends the program after a fault. Uses no allocation and no stream, because
/// the state of the program is unknown.
void endFaulty(int Signal) {
  // A fault in here ends the program at once.
  for (int Any : FaultSignals)
    std::signal(Any, SIG_DFL);
  const char *What = sigdescr_np(Signal);
  for (StringRef Part :
       {StringRef("graft: internal error: "),
        StringRef(What ? What : "a signal"),
        StringRef("; this is a fault of graft: please report it, with the "
                  "command line and the input\n")}) {
    [[maybe_unused]] ssize_t Ignored =
        ::write(STDERR_FILENO, Part.data(), Part.size());
  }
  removeTemporaries();
  ::_exit(InternalErrorStatus);
}

void endWithoutMemory() {
  constexpr StringLiteral Message = "graft-opt: error: out of memory\n";
  removeTemporaries();
  [[maybe_unused]] ssize_t Ignored =
      ::write(STDERR_FILENO, Message.data(), Message.size());
  ::_exit(1);
}

} // namespace

void SignalHandlers::install() const {
  Ending.install(endQuietly);
  // A closed pipe and a limit on file sizes become errors of write() and do not
  // end the program.
  std::signal(SIGPIPE, SIG_IGN);
  std::signal(SIGXFSZ, SIG_IGN);
#if !LLVM_ADDRESS_SANITIZER_BUILD
  // A sanitizer reports faults in more detail.
  struct sigaction Fault = {};
  Fault.sa_handler = endFaulty;
  Fault.sa_flags = SA_ONSTACK | SA_NODEFER;
  sigemptyset(&Fault.sa_mask);
  for (int Signal : FaultSignals)
    sigaction(Signal, &Fault, nullptr);
#endif
  catchLostPages();
  install_fatal_error_handler(
      [](void *, const char *Reason, bool) { internalError(Reason); });
  std::set_terminate([] { internalError("an exception that nobody catches"); });
  std::set_new_handler(endWithoutMemory);
  install_bad_alloc_error_handler(
      [](void *, const char *, bool) { endWithoutMemory(); });
}

} // namespace graft
