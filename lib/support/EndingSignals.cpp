//===- lib/support/EndingSignals.cpp - signals that end programs *- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "lib/support/EndingSignals.h"

#include <csignal>

namespace graft {

EndingSignals::EndingSignals() {
  std::vector<int> All = {SIGHUP,  SIGINT,    SIGQUIT,  SIGTERM, SIGUSR1,
                          SIGUSR2, SIGALRM,   SIGXCPU,  SIGIO,   SIGPROF,
                          SIGPWR,  SIGSTKFLT, SIGVTALRM};
  for (int Signal = SIGRTMIN; Signal <= SIGRTMAX; ++Signal)
    All.push_back(Signal);
  for (int Signal : All) {
    struct sigaction Action;
    bool IsIgnored = sigaction(Signal, nullptr, &Action) == 0 &&
                     Action.sa_handler == SIG_IGN;
    (IsIgnored ? Ignored : Ending).push_back(Signal);
  }
}

void EndingSignals::install(void (*Handler)(int)) const {
  struct sigaction End = {};
  End.sa_handler = Handler;
  End.sa_flags = SA_ONSTACK;
  sigemptyset(&End.sa_mask);
  for (int Signal : Ending)
    sigaction(Signal, &End, nullptr);
  for (int Signal : Ignored)
    std::signal(Signal, SIG_IGN);
}

} // namespace graft
