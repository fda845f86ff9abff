//===- passes/TpuReplicate.cpp - tpu-replicate ------------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
// Brings one computation of a plain graph into the form of TensorFlow's
// `tpu.replicate`. Options name the computation. Its ops are marked with the
// name of their cluster. The computation reads and returns one tensor for each
// replica.
//
//     x = Placeholder()         split = Split(split_dim, x)
//     y = AddV2(x, c)      →    input0 = TPUReplicatedInput(split, split:1)
//                               replicated_input_0 = Identity(input0)
//                               cluster/y = AddV2(replicated_input_0, c)
//                               Identity = Identity(cluster/y)
//                               output0 = TPUReplicatedOutput(Identity)
//                               y = ConcatV2(output0, output0:1, y/axis)
//
// Members are the nodes that the outputs need, up to inputs and captures. This
// pass finds them and the inputs of each replica; lib/lower/tpu/TpuForm.h
// builds the graph.
//
// A replicated program needs no such options: its step is the computation
// (lib/lower/tpu/TpuProgram.h), and this pass is its lowering.
//
// The file is long because it reads and checks an option for each argument of
// tpu.replicate.
//
// Relies on: nothing, or on a finished program.
//
//===----------------------------------------------------------------------===//

#include "lib/infer/graph/Topology.h"
#include "lib/infer/sizes/Dims.h"
#include "lib/io/Module.h"
#include "lib/lower/tpu/HostClusters.h"
#include "lib/lower/tpu/TpuForm.h"
#include "lib/lower/tpu/TpuMembers.h"
#include "lib/lower/tpu/TpuProgram.h"
#include "lib/ops/Ops.h"
#include "lib/support/ReadFile.h"
#include "passes/Options.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSwitch.h"
#include "llvm/Support/FormatVariadic.h"

#include <algorithm>
#include <map>

using namespace llvm;

namespace graft {
namespace {

class TpuReplicate final : public PassBase<TpuReplicate, TpuReplicateOptions> {
public:
  static constexpr PassInfo Info = {
      "tpu-replicate", "Bring a computation into the form that TPUs run",
      "Marks the ops that `outputs` and `include` need, up to `inputs` and "
      "`captures`,\n"
      "as one cluster, as `tf.compat.v1.tpu.replicate` does. Outputs of\n"
      "placeholders and handles of variables are always captured. Lists are\n"
      "separated by commas, options by commas or spaces.\n"
      "\n"
      "Without `inputs` and `outputs`: lowers a replicated program. Its step\n"
      "is the computation, and all other nodes are expanded."};

  PassResult run(Module &M, DiagnosticEngine &Diags) override;

private:
  bool readMetadata(Module &M);
  bool readFeeds();
  bool readInputs();
  bool readInput(StringRef Text);
  bool readOutputs();
  bool readCombine(bool IsChosen);
  bool readShapes();
  bool readSums();
  std::optional<Endpoint> tensor(StringRef Option, StringRef Text);
  bool fail(StringRef Node, const Twine &Message) {
    Diags->error(Node, Message.str());
    return false;
  }
  const DimAnalysis &dims();
  void warnStatic();
  bool findMembers();
  bool addVariables();
  void splitInputs();

  static constexpr int Copy = -1;
  Graph *G = nullptr;
  DiagnosticEngine *Diags = nullptr;
  TpuComputation C;
  bool IsProgram = false; ///< Set if the input is a replicated program.
  std::map<std::pair<NodeId, uint32_t>, int> Feeds; ///< Axis, or Copy.
  std::vector<std::pair<Endpoint, int>> Splits;     ///< Inputs, and the axis.
  std::unique_ptr<DimAnalysis> Dims;
};

//===----------------------------------------------------------------------===//
// Options
//===----------------------------------------------------------------------===//

bool TpuReplicate::readMetadata(Module &M) {
  C.Replicas = IsProgram ? readMesh(*G).replicas() : *Options.Replicas;
  if (C.Replicas == 0)
    return fail("", "replicas: give the number of replicas here or as "
                    "--replicas");
  C.CoresPerReplica = Options.CoresPerReplica;
  C.AllowSoftPlacement = Options.AllowSoftPlacement;
  C.UseSpmd = Options.UseSpmd;
  C.UseTpu = Options.UseTpu;
  C.Device = Options.Device;
  C.StepMarkerLocation = Options.StepMarkerLocation;
  if (StringRef File = *Options.Topology; !File.empty()) {
    auto Buffer = readFile(File);
    if (!Buffer)
      return fail("", "topology: cannot read '" + File +
                          "': " + Buffer.getError().message());
    C.Topology = (*Buffer)->getBuffer();
    M.Files.push_back(File.str());
  }
  for (StringRef Text : *Options.DeviceAssignment)
    if (Text.getAsInteger(10, C.DeviceAssignment.emplace_back()))
      return fail("", "device-assignment: '" + Text + "' is not a number");
  if (C.Topology.empty() != C.DeviceAssignment.empty())
    return fail("", "topology and device-assignment: give both or none");
  if (C.DeviceAssignment.size() % (uint64_t(C.Replicas) * C.CoresPerReplica))
    return fail("", formatv("device-assignment: {0} numbers are not the "
                            "coordinates of {1} replicas with {2} cores each",
                            C.DeviceAssignment.size(), C.Replicas,
                            C.CoresPerReplica));
  return true;
}

/// Returns the tensor called \p Text in the list \p Option.
std::optional<Endpoint> TpuReplicate::tensor(StringRef Option, StringRef Text) {
  auto E = G->findEndpoint(Text);
  if (!E || E->isControl()) {
    fail("", Option + ": the graph has no tensor '" + Text +
                 "': give NODE or NODE:OUTPUT");
    return std::nullopt;
  }
  auto Count = G->numOutputs(E->Node);
  if (Count && E->Port >= *Count) {
    fail(G->name(E->Node),
         Option + formatv(": there is no output {0}", E->Port).str());
    return std::nullopt;
  }
  return E;
}

bool TpuReplicate::readFeeds() {
  for (StringRef Rule : *Options.Feed) {
    auto [Name, How] = Rule.split('=');
    auto E = tensor("feed", Name);
    if (!E)
      return false;
    int Axis = 0;
    StringRef Text = How;
    if (How == "copy")
      Axis = Copy;
    else if (!How.empty() && How != "split" &&
             (!Text.consume_front("split(") || !Text.consume_back(")") ||
              Text.getAsInteger(10, Axis) || Axis < 0))
      return fail("", "feed: '" + How +
                          "' is not a way to feed a replica of a TPU; use "
                          "split, split(AXIS) or copy");
    Feeds[{E->Node, E->Port}] = Axis;
  }
  return true;
}

bool TpuReplicate::readInput(StringRef Text) {
  TpuInput I;
  if (Text.contains('|')) {
    SmallVector<StringRef, 8> Names;
    Text.split(Names, '|');
    for (StringRef Name : Names) {
      auto E = tensor("inputs", Name);
      if (!E)
        return false;
      I.Values.push_back(*E);
    }
    I.Read = I.Values[0];
    C.Inputs.push_back(std::move(I));
    return true;
  }
  auto E = tensor("inputs", Text);
  if (!E)
    return false;
  I.Read = *E;
  auto Feed = Feeds.find({E->Node, E->Port});
  int Axis = Feed == Feeds.end() ? 0 : Feed->second;
  if (Axis != Copy)
    Splits.push_back({*E, Axis});
  // Inputs are split only after all options were checked.
  I.Values.assign(C.Replicas, *E);
  C.Inputs.push_back(std::move(I));
  return true;
}

bool TpuReplicate::readInputs() {
  for (StringRef Text : *Options.Inputs)
    if (!readInput(Text))
      return false;
  return true;
}

/// Reads the shapes to which inputs are padded, such as 8x?x3.
bool TpuReplicate::readShapes() {
  ArrayRef<std::string> Shapes = *Options.MaximumShapes;
  if (!Shapes.empty() && Shapes.size() != C.Inputs.size())
    return fail("", formatv("maximum-shapes: {0} shapes for {1} inputs",
                            Shapes.size(), C.Inputs.size()));
  for (size_t I = 0; I < Shapes.size(); ++I) {
    if (Shapes[I] == "none")
      continue;
    SmallVector<StringRef, 4> Sizes;
    StringRef(Shapes[I]).split(Sizes, 'x');
    ShapeValue &Maximum = C.Inputs[I].Maximum.emplace();
    for (StringRef Size : Sizes) {
      int64_t Number = -1;
      if (Size != "?" &&
          (Size.getAsInteger(10, Number) || Number < 0 || Number > INT32_MAX))
        return fail("", "maximum-shapes: '" + Shapes[I] +
                            "' is neither sizes such as 8x?x3 nor none");
      Maximum.Dims.push_back(Number);
    }
  }
  return true;
}

bool TpuReplicate::readOutputs() {
  for (StringRef Text : *Options.Outputs) {
    if (!Text.starts_with("^")) {
      if (!C.Operations.empty())
        return fail("", "outputs: '" + Text +
                            "' comes after an operation; a computation "
                            "returns zero or more tensors followed by zero or "
                            "more operations");
      auto E = tensor("outputs", Text);
      if (!E)
        return false;
      C.Outputs.push_back({*E, {}});
      continue;
    }
    NodeId N = G->find(Text.drop_front());
    if (N == NoNode)
      return fail("",
                  "outputs: the graph has no op '" + Text.drop_front() + "'");
    C.Operations.push_back(N);
  }
  return true;
}

const DimAnalysis &TpuReplicate::dims() {
  if (!Dims)
    Dims = std::make_unique<DimAnalysis>(*G, topologicalOrder(*G),
                                         DimOptions{.Unpatched = true});
  return *Dims;
}

/// Reads how each output is combined outside. Without `combine`, scalars are
/// averaged and other outputs are concatenated, which is usual but not proved.
bool TpuReplicate::readCombine(bool IsChosen) {
  ArrayRef<std::string> Rules = *Options.Combine;
  if (IsChosen && Rules.size() != C.Outputs.size())
    return fail("", formatv("combine: {0} rules for {1} tensors in outputs",
                            Rules.size(), C.Outputs.size()));
  for (size_t I = 0; I < C.Outputs.size(); ++I) {
    auto &[E, How] = C.Outputs[I];
    if (!IsChosen) {
      // The value of an output that is no member is outside of the computation.
      if (C.Replicas == 1 ||
          !std::binary_search(C.Members.begin(), C.Members.end(), E.Node))
        continue;
      auto Shape = dims().shape(E);
      bool IsScalar = Shape && Shape->empty();
      How = {IsScalar ? TpuCombine::Mean : TpuCombine::Concat, 0};
      Diags->unproved("combine", G->name(E.Node),
                      formatv("output {0} is assumed to be the {1} of the "
                              "replicas' outputs; choose with combine=",
                              E.Port, IsScalar ? "mean" : "concatenation"));
      continue;
    }
    StringRef Axis = Rules[I];
    auto Kind = StringSwitch<std::optional<TpuCombine::How>>(Rules[I])
                    .Case("mean", TpuCombine::Mean)
                    .Case("sum", TpuCombine::Sum)
                    .Case("first", TpuCombine::First)
                    .Default(std::nullopt);
    if (Kind)
      How.Kind = *Kind;
    else if (Axis.consume_front("concat(") && Axis.consume_back(")") &&
             !Axis.getAsInteger(10, How.Axis))
      How.Kind = TpuCombine::Concat;
    else
      return fail("", "combine: '" + Rules[I] +
                          "' is none of concat(AXIS), mean, sum and first");
  }
  return true;
}

/// Warns about a split of an axis with a static size. Constants may still hold
/// the size of the whole batch, where TensorFlow would have traced the size of
/// a shard.
void TpuReplicate::warnStatic() {
  for (auto [E, Axis] : Splits) {
    auto Shape = dims().shape(E);
    if (C.Replicas == 1 || !Shape || size_t(Axis) >= Shape->size() ||
        dims().table().number((*Shape)[Axis]) < 0)
      continue;
    // For axis 0 the analysis can find constants that may be the batch size.
    NodeId Held = NoNode;
    if (Axis == 0) {
      DimAnalysis Supposed(*G, topologicalOrder(*G),
                           {.Unpatched = true, .Suppose = {{E, 0}}});
      for (NodeId M : C.Members)
        if (Held == NoNode && G->isOp(M, op::Const) &&
            Supposed.isSymbolic({M, 0}))
          Held = M;
      if (Held == NoNode)
        continue;
    }
    Diags->unproved(
        "static-split", G->name(E.Node),
        formatv("is split along axis {0} of static size {1}, and constants of "
                "the computation may hold that size{2}; export the graph with "
                "an unknown size",
                Axis, dims().table().number((*Shape)[Axis]),
                Held == NoNode ? std::string()
                               : (", as '" + G->name(Held) + "' does").str()));
  }
}

bool TpuReplicate::readSums() {
  for (StringRef Text : *Options.CrossReplicaSum) {
    auto E = tensor("cross-replica-sum", Text);
    if (!E)
      return false;
    C.Sums.push_back(*E);
  }
  return true;
}

/// Finds the members of the computation, up to its inputs and captures.
bool TpuReplicate::findMembers() {
  TpuMemberOptions Rules;
  for (StringRef Text : *Options.Captures) {
    bool IsOp = Text.consume_front("^");
    if (IsOp && G->find(Text) == NoNode)
      return fail("", "captures: the graph has no op '" + Text + "'");
    auto E = IsOp ? Endpoint{G->find(Text), ControlPort}
                  : tensor("captures", Text).value_or(Endpoint());
    if (E.Node == NoNode)
      return false;
    Rules.Captures.push_back(E);
  }
  Rules.Include.assign(Options.Include->begin(), Options.Include->end());
  for (auto [Tensor, Axis] : Feeds)
    if (Axis != Copy)
      Rules.SplitFeeds.push_back({Tensor.first, Tensor.second});
  return findTpuMembers(*G, C, Rules, *Diags);
}

bool TpuReplicate::addVariables() {
  std::vector<TpuVariableRule> Variables;
  for (const auto *Option :
       {&Options.MirroredVariables, &Options.ReplicatedVariables,
        &Options.PackedVariables})
    for (const std::string &Text : **Option)
      Variables.push_back({Option->name(), Text,
                           Option == &Options.MirroredVariables,
                           Option == &Options.PackedVariables});
  return addTpuVariables(*G, C, Variables, *Diags);
}

void TpuReplicate::splitInputs() {
  for (auto [E, Axis] : Splits) {
    auto It = find_if(C.Inputs, [&, E = E](const TpuInput &I) {
      return I.Read == E && I.Values[0] == E;
    });
    It->Values = splitForReplicas(*G, E, C.Replicas, Axis, C.Device);
  }
}

PassResult TpuReplicate::run(Module &M, DiagnosticEngine &D) {
  G = &M.graph();
  Diags = &D;
  C = {};
  Feeds.clear();
  Splits.clear();
  Dims.reset();
  IsProgram = readMesh(*G).Node != NoNode && Options.Inputs->empty() &&
              Options.Outputs->empty();
  if (IsProgram) {
    SmallVector<StringRef, 4> Fetches(Options.Fetch->begin(),
                                      Options.Fetch->end());
    return readMetadata(M) && lowerStepToTpu(M, C, Fetches, D)
               ? PassResult::Changed
               : PassResult::Failure;
  }
  if (!readMetadata(M) || !readFeeds() || !readInputs() || !readShapes() ||
      !readOutputs() || !findMembers() ||
      !readCombine(!Options.Combine->empty()))
    return PassResult::Failure;
  warnStatic();
  if (!readSums() || !addVariables())
    return PassResult::Failure;
  splitInputs();
  if (!padTpuInputs(*G, C, D))
    return PassResult::Failure;
  Statistics["members"] += C.Members.size();
  if (!buildTpuForm(*G, C, D) || !HostClusters(*G).moveCores(D))
    return PassResult::Failure;
  warnUnsupportedOps(*G, D);
  return PassResult::Changed;
}

} // namespace

GRAFT_DEFINE_PASS_WITH_OPTIONS(TpuReplicate)

} // namespace graft
