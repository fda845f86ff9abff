//===- lib/launch/Tasks.cpp - tasks and their settings ----------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "lib/launch/Tasks.h"

#include "lib/support/Escape.h"

#include "llvm/ADT/ScopeExit.h"

#include <netinet/in.h>
#include <set>
#include <sys/socket.h>
#include <unistd.h>

using namespace llvm;

namespace graft {

std::vector<Task> tasksOf(const ClusterSpec &Cluster) {
  std::vector<Task> Result;
  for (const char *Job : {"chief", "worker", "ps", "evaluator"})
    if (auto It = Cluster.Jobs.find(Job); It != Cluster.Jobs.end())
      for (unsigned I = 0; I < It->second.size(); ++I)
        Result.push_back({Job, I});
  return Result;
}

/// Binds \p Wanted, or any free port if it is 0. Returns the port, or 0 on
/// failure. \p Held gets the socket that reserves it.
static unsigned bindPort(unsigned Wanted, std::vector<int> &Held) {
  int Socket = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (Socket < 0)
    return 0;
  Held.push_back(Socket);
  // Old connections do not block a wanted port. If the system chooses the
  // ports, SO_REUSEADDR would let two sockets share one.
  int Reuse = Wanted != 0;
  ::setsockopt(Socket, SOL_SOCKET, SO_REUSEADDR, &Reuse, sizeof Reuse);
  sockaddr_in Address = {};
  Address.sin_family = AF_INET;
  Address.sin_port = htons(static_cast<uint16_t>(Wanted));
  socklen_t Size = sizeof Address;
  auto *Any = reinterpret_cast<sockaddr *>(&Address);
  if (::bind(Socket, Any, Size) != 0 || ::getsockname(Socket, Any, &Size) != 0)
    return 0;
  return ntohs(Address.sin_port);
}

Error choosePorts(ClusterSpec &Cluster, unsigned Base) {
  std::set<unsigned> Used;
  for (const auto &[Job, Addresses] : Cluster.Jobs)
    for (StringRef Address : Addresses) {
      unsigned Port = 0;
      Address.rsplit(':').second.getAsInteger(10, Port);
      Used.insert(Port);
    }
  std::vector<int> Held;
  auto Release = make_scope_exit([&] {
    for (int Socket : Held)
      ::close(Socket);
  });
  unsigned Next = Base;
  for (const Task &T : tasksOf(Cluster)) {
    std::string &Address = Cluster.Jobs[T.Job][T.Index];
    StringRef Host = StringRef(Address).rsplit(':').first;
    if (!StringRef(Address).ends_with(":0"))
      continue;
    unsigned Port = 0;
    // Used contains 0, because the addresses to fill in have port 0.
    while (Base == 0 ? Used.contains(Port) : Port == 0 && Next <= 65535) {
      Port = Base == 0 || !Used.contains(Next) ? bindPort(Next, Held) : 0;
      if (Base == 0 && Port == 0)
        return createStringError(inconvertibleErrorCode(),
                                 "no port of this machine is free: " +
                                     Twine(strerror(errno)));
      Next += Base != 0;
    }
    if (Port == 0)
      return createStringError(inconvertibleErrorCode(),
                               "--port-base: too few ports from " +
                                   Twine(Base) +
                                   " on are free; give a lower port");
    Used.insert(Port);
    Address = ((Host.empty() ? "localhost" : Host) + ":" + Twine(Port)).str();
  }
  return Error::success();
}

std::string tfConfig(const ClusterSpec &Cluster, const Task &T) {
  return jsonText(0, [&](json::OStream &J) {
    J.object([&] {
      J.attributeObject("cluster", [&] {
        for (const auto &[Job, Addresses] : Cluster.Jobs)
          J.attributeArray(Job, [&] {
            for (const std::string &Address : Addresses)
              J.value(utf8(Address));
          });
      });
      J.attributeObject("task", [&] {
        J.attribute("type", T.Job);
        J.attribute("index", T.Index);
      });
    });
  });
}

std::string fillIn(StringRef Argument, const Task &T) {
  std::string Result = Argument.str();
  for (const auto &[Name, Value] :
       {std::pair("{task}", T.str()), std::pair("{job}", T.Job),
        std::pair("{index}", std::to_string(T.Index))})
    for (size_t At = 0; (At = Result.find(Name, At)) != std::string::npos;
         At += Value.size())
      Result.replace(At, strlen(Name), Value);
  return Result;
}

} // namespace graft
