//===- lib/strategy/Resources.cpp - machines and variables ------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "lib/strategy/Resources.h"

#include "lib/graph/DeviceName.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"

#include <tuple>

using namespace llvm;

namespace graft {
namespace {

/// Returns the task of node \p Index. The names of the node's devices begin
/// with the task. If only the task is known, its name is the address of the
/// node.
std::string taskOf(const ResourceSpec &Spec, size_t Index) {
  StringRef Address = Spec.Nodes[Index].Address;
  if (Address.starts_with("/"))
    return Address.str();
  return Spec.Nodes.size() == 1 ? std::string()
                                : "/job:worker/task:" + utostr(Index);
}

std::string deviceOf(const ResourceSpec &Spec, size_t Node, StringRef Type,
                     unsigned Index) {
  return (taskOf(Spec, Node) + "/device:" + Type + ":" + Twine(Index)).str();
}

/// Returns the task of \p D, with 0 for the parts that the name omits.
DeviceName taskPart(const DeviceName &D) {
  DeviceName Task;
  Task.Job = D.Job;
  Task.Replica = D.Replica.value_or(0);
  Task.Task = D.Task.value_or(0);
  return Task;
}

bool isTask(const DeviceName &D, StringRef Task) {
  auto Own = DeviceName::parse(Task);
  return Own && taskPart(*Own).str() == taskPart(D).str();
}

bool has(const ResourceNode &Node, StringRef Type, unsigned Index) {
  return (Type == "GPU" && is_contained(Node.Gpus, Index)) ||
         (Type == "CPU" && is_contained(Node.Cpus, Index));
}

/// Splits ADDRESS:GPU:0 into its parts; an address may have colons itself.
std::optional<std::tuple<std::string, std::string, unsigned>>
splitAddress(StringRef Name) {
  auto [Front, Last] = Name.rsplit(':');
  auto [Address, Type] = Front.rsplit(':');
  unsigned Index = 0;
  if (Name.starts_with("/") || Address.empty() || Type.empty() ||
      Last.getAsInteger(10, Index))
    return std::nullopt;
  return std::tuple(Address.str(), Type.upper(), Index);
}

} // namespace

std::vector<std::string> ResourceSpec::replicaDevices() const {
  std::vector<std::string> Devices;
  for (const auto &[I, Node] : enumerate(Nodes)) {
    bool OnCpus = Node.Gpus.empty();
    for (unsigned Index : OnCpus ? Node.Cpus : Node.Gpus)
      Devices.push_back(deviceOf(*this, I, OnCpus ? "CPU" : "GPU", Index));
  }
  return Devices;
}

std::vector<std::string> ResourceSpec::hostDevices() const {
  std::vector<std::string> Devices;
  for (const auto &[I, Node] : enumerate(Nodes))
    for (unsigned Index : Node.Cpus)
      Devices.push_back(deviceOf(*this, I, "CPU", Index));
  return Devices;
}

std::optional<std::string> ResourceSpec::resolve(StringRef Name) const {
  if (auto Written = splitAddress(Name)) {
    const auto &[Address, Type, Index] = *Written;
    for (const auto &[I, Node] : enumerate(Nodes))
      if (Node.Address == Address && has(Node, Type, Index))
        return deviceOf(*this, I, Type, Index);
  }
  auto D = DeviceName::parse(Name);
  if (!D || D->Type.empty())
    return std::nullopt;
  // A name without a task means the only machine. So does job localhost, its
  // name in a session without servers.
  bool AnyTask = (D->Job.empty() && !D->Task) ||
                 (D->Job == "localhost" && D->Task.value_or(0) == 0);
  if (AnyTask && Nodes.size() != 1)
    return std::nullopt;
  for (const auto &[I, Node] : enumerate(Nodes))
    if ((AnyTask || isTask(*D, taskOf(*this, I))) &&
        has(Node, D->Type, D->Index.value_or(0)))
      return deviceOf(*this, I, D->Type, D->Index.value_or(0));
  return std::nullopt;
}

std::string ResourceSpec::autodistName(StringRef Device) const {
  auto D = DeviceName::parse(Device);
  if (!D || D->Type.empty())
    return Device.str();
  for (const auto &[I, Node] : enumerate(Nodes))
    if (!StringRef(Node.Address).starts_with("/") &&
        isTask(*D, taskOf(*this, I)))
      return Node.Address + ":" + D->Type + ":" + utostr(D->Index.value_or(0));
  return Device.str();
}

ResourceSpec resourcesOf(ArrayRef<std::string> Devices) {
  ResourceSpec Spec;
  for (const std::string &Device : Devices) {
    std::string Address = "localhost", Type;
    unsigned Index = 0;
    if (auto Written = splitAddress(Device)) {
      std::tie(Address, Type, Index) = *Written;
    } else {
      DeviceName D = DeviceName::parse(Device).value_or(DeviceName());
      Type = std::exchange(D.Type, "");
      Index = std::exchange(D.Index, std::nullopt).value_or(0);
      if (std::string Task = D.str(); !Task.empty())
        Address = Task;
    }
    auto Node = find_if(Spec.Nodes, [&](const ResourceNode &N) {
      return N.Address == Address;
    });
    if (Node == Spec.Nodes.end()) {
      Spec.Nodes.emplace_back();
      Node = std::prev(Spec.Nodes.end());
      Node->Address = Address;
    }
    // All devices but CPUs count as accelerators of the machine.
    std::vector<unsigned> &List = Type == "CPU" ? Node->Cpus : Node->Gpus;
    if (!is_contained(List, Index))
      List.push_back(Index);
  }
  for (ResourceNode &Node : Spec.Nodes)
    if (Node.Cpus.empty())
      Node.Cpus.push_back(0);
  if (!Spec.Nodes.empty())
    Spec.Nodes.front().Chief = true;
  return Spec;
}

} // namespace graft
