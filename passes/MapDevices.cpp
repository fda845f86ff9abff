//===- passes/MapDevices.cpp - map-devices ----------------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
// Moves nodes from one device to another, in the graph and in the functions of
// its library: a graph may be used longer than the machines for which it was
// made.
//
//     map=/gpu:0=/cpu:0
//     y = MatMul(x, w) @/job:a/device:GPU:0  →  y = MatMul(x, w)
//                                                   @/job:a/device:CPU:0
//
// A rule OLD=NEW applies to every device that has all parts of OLD, and
// replaces these parts by NEW, which may be empty. The first rule that matches
// applies. The computation stays the same, so the result is a normal form of
// the input.
//
// Relies on: nothing.
//
//===----------------------------------------------------------------------===//

#include "lib/graph/DeviceName.h"
#include "lib/io/Module.h"
#include "lib/io/inline/Functions.h"
#include "passes/Options.h"

#include "llvm/ADT/STLExtras.h"

#include <set>

using namespace llvm;

namespace graft {
namespace {

class MapDevices final : public PassBase<MapDevices, MapDevicesOptions> {
public:
  static constexpr PassInfo Info = {
      "map-devices", "Move what is on one device to another",
      "Changes the devices of nodes, in functions too."};

  Effect effect() const override { return Effect::Normalises; }
  PassResult run(Module &M, DiagnosticEngine &Diags) override;

private:
  struct Rule {
    std::string Text; ///< The text before the `=`.
    DeviceName Old, New;
    bool Fits = false; ///< Set if a device matches.
  };

  bool read(DiagnosticEngine &Diags);
  std::optional<std::string> mapped(StringRef Device);
  bool mapFunctions(Graph &G);

  std::vector<Rule> Rules;
  std::set<std::string> Seen; ///< Devices, in full.
};

bool MapDevices::read(DiagnosticEngine &Diags) {
  for (StringRef Text : *Options.Map) {
    auto [Old, New] = Text.split('=');
    auto From = DeviceName::parse(Old), To = DeviceName::parse(New);
    if (Old.empty() || !From || !To || !Text.contains('=')) {
      Diags.error("", "'" + Text.str() +
                          "' does not have the form OLD=NEW with two devices, "
                          "such as /gpu:0=/cpu:0");
      return false;
    }
    Rules.push_back({Old.str(), *From, *To});
  }
  return true;
}

/// Returns the new device for \p Device, if a rule matches it.
std::optional<std::string> MapDevices::mapped(StringRef Device) {
  auto Its = DeviceName::parse(Device);
  if (Device.empty() || !Its)
    return std::nullopt;
  Seen.insert(Its->str());
  for (Rule &R : Rules) {
    const DeviceName &Old = R.Old, &New = R.New;
    if ((!Old.Job.empty() && Old.Job != Its->Job) ||
        (Old.Replica && Old.Replica != Its->Replica) ||
        (Old.Task && Old.Task != Its->Task) ||
        (!Old.Type.empty() && Old.Type != Its->Type) ||
        (Old.Index && Old.Index != Its->Index))
      continue;
    R.Fits = true;
    DeviceName To = *Its;
    if (!Old.Job.empty() || !New.Job.empty())
      To.Job = New.Job;
    if (Old.Replica || New.Replica)
      To.Replica = New.Replica;
    if (Old.Task || New.Task)
      To.Task = New.Task;
    if (!Old.Type.empty() || !New.Type.empty())
      To.Type = New.Type;
    if (Old.Index || New.Index)
      To.Index = New.Index;
    return To.str();
  }
  return std::nullopt;
}

bool MapDevices::mapFunctions(Graph &G) {
  FunctionLibrary Library(G);
  std::map<std::string, tensorflow::FunctionDef> Changed;
  Library.forEach([&](const tensorflow::FunctionDef &Def) {
    std::optional<tensorflow::FunctionDef> New;
    for (int I = 0; I < Def.node_def_size(); ++I)
      if (auto To = mapped(Def.node_def(I).device())) {
        if (!New)
          New = Def;
        New->mutable_node_def(I)->set_device(*To);
      }
    if (New)
      Changed[Def.signature().name()] = std::move(*New);
  });
  replaceFunctions(G, Changed);
  return !Changed.empty();
}

PassResult MapDevices::run(Module &M, DiagnosticEngine &Diags) {
  if (!read(Diags))
    return PassResult::Failure;
  Graph &G = M.graph();
  std::vector<std::optional<std::string>> To;
  // The devices before the edit. The edit adds new devices behind these.
  std::vector<std::string> Old;
  Old.reserve(G.numDevices());
  for (uint32_t D = 0; D < G.numDevices(); ++D)
    Old.push_back(G.deviceName(D).str());
  std::vector<bool> Used(Old.size());
  for (NodeId N = 0; N < G.size(); ++N)
    if (G.isLive(N))
      Used[G.node(N).Device] = true;
  To.reserve(Old.size());
  for (auto [Device, IsUsed] : zip(Old, Used))
    To.push_back(IsUsed ? mapped(Device) : std::nullopt);
  unsigned Moved = 0;
  for (NodeId N = 0; N < G.size(); ++N) {
    uint32_t D = G.node(N).Device;
    if (!G.isLive(N) || D >= To.size() || !To[D] || *To[D] == Old[D])
      continue;
    G.setDevice(N, *To[D]);
    ++Moved;
  }
  bool Changed = mapFunctions(G) || Moved != 0;
  for (const Rule &R : Rules)
    if (!R.Fits) {
      Diags.error("", "no node is on '" + R.Text + "'; the input " +
                          (Seen.empty() ? "names no device"
                                        : "names " + join(Seen, ", ")));
      return PassResult::Failure;
    }
  Statistics["nodes moved"] = Moved;
  return Changed ? PassResult::Changed : PassResult::Unchanged;
}

} // namespace

GRAFT_DEFINE_PASS_WITH_OPTIONS(MapDevices)

} // namespace graft
