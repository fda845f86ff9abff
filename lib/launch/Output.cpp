//===- lib/launch/Output.cpp - the output of processes ----------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "lib/launch/Output.h"

#include "lib/support/Diagnostics.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/Process.h"

#include <cerrno>
#include <climits>
#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

using namespace llvm;

namespace graft {

/// The number of queued bytes from which on nothing more is read.
static constexpr size_t MaxKept = 1 << 18;
/// Longer lines are split.
static constexpr size_t MaxLine = 1 << 20;

void Output::follow(int From, int To, StringRef Name, unsigned Color) {
  ::fcntl(From, F_SETFL, O_NONBLOCK);
  std::string Prefix = ("[" + Name + "] ").str();
  StringRef NoColor = ::getenv("NO_COLOR");
  if (To != 0 && NoColor.empty() && sys::Process::FileDescriptorHasColors(To))
    Prefix = "\033[" + std::to_string(31 + Color % 6) + "m[" + Name.str() +
             "]\033[0m ";
  Streams.push_back({From, To, std::move(Prefix), ""});
}

void Output::say(const Twine &Message) {
  add(STDERR_FILENO, "graft-launch: " + escapeControls(Message.str()) + "\n");
}

void Output::add(int To, const Twine &Text) {
  std::string New = Text.str();
  Kept += New.size();
  if (!Queue.empty() && Queue.back().To == To)
    Queue.back().Text += New;
  else
    Queue.push_back({To, std::move(New)});
}

void Output::show(Stream &S, StringRef Line) {
  if (S.To != 0)
    add(S.To, S.Prefix + Line + "\n");
}

/// Returns true if it read something.
bool Output::readSome(Stream &S) {
  // The size of a pipe: one read gets all that an ended process left.
  static char Buffer[1 << 16];
  ssize_t Count;
  do
    Count = ::read(S.From, Buffer, sizeof Buffer);
  while (Count < 0 && errno == EINTR);
  if (Count < 0 && errno == EAGAIN)
    return false;
  if (Count <= 0) {
    if (!S.Line.empty())
      show(S, S.Line);
    ::close(S.From);
    S.From = -1;
    return false;
  }
  StringRef Rest(Buffer, static_cast<size_t>(Count));
  for (size_t End; (End = Rest.find('\n')) != StringRef::npos;
       Rest = Rest.drop_front(End + 1)) {
    S.Line += Rest.take_front(End);
    show(S, S.Line);
    S.Line.clear();
  }
  S.Line += Rest;
  if (S.Line.size() > MaxLine) {
    show(S, S.Line);
    S.Line.clear();
  }
  return true;
}

void Output::read() {
  for (Stream &S : Streams)
    readSome(S);
  erase_if(Streams, [](const Stream &S) { return S.From < 0; });
}

void Output::close() {
  for (Stream &S : Streams) {
    while (readSome(S)) {
    }
    if (S.From < 0)
      continue;
    if (!S.Line.empty())
      show(S, S.Line);
    ::close(S.From);
  }
  Streams.clear();
}

void Output::writeSome() {
  Part &First = Queue.front();
  // A pipe that takes any bytes takes PIPE_BUF bytes without blocking.
  StringRef Text = StringRef(First.Text).substr(First.Written, PIPE_BUF);
  ssize_t Count = ::write(First.To, Text.data(), Text.size());
  if (Count < 0 && (errno == EINTR || errno == EAGAIN))
    return;
  if (Count < 0) {
    // An error of stderr cannot be reported.
    if (First.To == STDOUT_FILENO && StdoutError == 0)
      StdoutError = errno;
    Count = static_cast<ssize_t>(First.Text.size() - First.Written);
  }
  First.Written += static_cast<size_t>(Count);
  Kept -= static_cast<size_t>(Count);
  if (First.Written == First.Text.size()) {
    Queue.pop_front();
  } else if (First.Written > MaxKept) {
    First.Text.erase(0, First.Written);
    First.Written = 0;
  }
}

void Output::turn(int Wake, int Milliseconds) {
  std::vector<pollfd> Polled = {{Wake, POLLIN, 0}};
  bool Writes = !Queue.empty(), Reads = Kept < MaxKept;
  if (Writes)
    Polled.push_back({Queue.front().To, POLLOUT, 0});
  if (Reads)
    for (const Stream &S : Streams)
      Polled.push_back({S.From, POLLIN, 0});
  if (::poll(Polled.data(), Polled.size(), Milliseconds) <= 0)
    return;
  if (Writes && Polled[1].revents != 0)
    writeSome();
  if (Reads)
    read();
}

} // namespace graft
