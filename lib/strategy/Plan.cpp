//===- lib/strategy/Plan.cpp - strategies side by side ----------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "lib/strategy/Plan.h"

#include "lib/support/Escape.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/raw_ostream.h"

using namespace llvm;

namespace graft {
namespace {

struct Totals {
  double Bytes = 0;
  unsigned Sparse = 0;
  /// Sparse variables without a known number of rows per step, and variables
  /// without a known shape.
  unsigned NoRows = 0, NoShape = 0;

  explicit Totals(ArrayRef<VariableRow> Variables) {
    for (const VariableRow &Row : Variables) {
      Bytes += static_cast<double>(Row.Bytes);
      Sparse += Row.Sparse;
      NoRows += Row.Sparse && Row.RowsPerStep == 0 && Row.Bytes != 0;
      NoShape += Row.Bytes == 0;
    }
  }
};

std::string counted(size_t Count, StringRef Noun) {
  return formatv("{0} {1}{2}", Count, Noun, Count == 1 ? "" : "s");
}

} // namespace

std::vector<PlanRow> makePlan(ArrayRef<VariableRow> Variables,
                              const ResourceSpec &Spec,
                              const BuilderOptions &Options,
                              JoinedBytes Joined) {
  CostModel Model(Spec);
  std::vector<PlanRow> Rows;
  std::vector<std::string> Names = builderNames();
  std::rotate(Names.begin(), llvm::find(Names, "auto"), Names.end());
  Rows.reserve(Names.size());
  for (const std::string &Name : Names)
    Rows.push_back(
        {Name,
         Model.predict(Variables, buildStrategy(Name, Variables, Spec, Options),
                       Joined.PerStep)});
  // The order of names breaks ties.
  StringMap<size_t> Place;
  for (const auto &[I, Row] : enumerate(Rows))
    Place[Row.Strategy] = I;
  sort(Rows, [&](const PlanRow &A, const PlanRow &B) {
    return std::pair(A.Cost.Seconds, Place[A.Strategy]) <
           std::pair(B.Cost.Seconds, Place[B.Strategy]);
  });
  return Rows;
}

std::string planText(ArrayRef<PlanRow> Rows, ArrayRef<VariableRow> Variables,
                     const ResourceSpec &Spec, JoinedBytes Joined) {
  Totals T(Variables);
  std::string Text = formatv("{0} on {1}: {2}, {3}, {4} of them sparse\n",
                             counted(Spec.replicaDevices().size(), "replica"),
                             counted(Spec.Nodes.size(), "node"),
                             counted(Variables.size(), "variable"),
                             bytesText(T.Bytes), T.Sparse);
  if (T.NoRows != 0)
    Text += formatv("{0}: the number of rows that a step touches is not known, "
                    "so all rows are counted\n",
                    counted(T.NoRows, "sparse variable"));
  if (T.NoShape != 0)
    Text +=
        formatv("{0}: the shape is not known, so the variable is not counted\n",
                counted(T.NoShape, "variable"));
  if (Joined.PerStep > 0)
    Text += formatv("{0} are gathered in each step for nodes that are computed "
                    "once: counted for each strategy\n",
                    bytesText(Joined.PerStep));
  if (Joined.PerRow > 0)
    Text += formatv(
        "{0} are gathered for each row of the batch for nodes that are "
        "computed once: not counted, since the batch size is not known\n",
        bytesText(Joined.PerRow));
  size_t LinkWidth = StringRef("busiest link").size();
  for (const PlanRow &Row : Rows)
    LinkWidth = std::max(LinkWidth, Row.Cost.BusiestLink.size());
  auto Line = [&](StringRef Strategy, StringRef Step, StringRef Ratio,
                  std::string Link, StringRef Bytes, StringRef Network) {
    Link.resize(LinkWidth, ' ');
    Text += formatv("{0,-34}{1,12}{2,8}  {3}{4,12}{5,15}\n", Strategy, Step,
                    Ratio, Link, Bytes, Network);
  };
  Line("strategy", "step (ms)", "ratio", "busiest link", "bytes",
       "network bytes");
  double Best = Rows.empty() ? 0 : Rows.front().Cost.Seconds;
  for (const PlanRow &Row : Rows)
    Line(Row.Strategy, formatv("{0:f3}", Row.Cost.Seconds * 1e3).str(),
         formatv("{0:f2}", Best > 0 ? Row.Cost.Seconds / Best : 1).str(),
         Row.Cost.BusiestLink, bytesText(Row.Cost.BusiestBytes),
         bytesText(Row.Cost.NetworkBytes));
  return Text;
}

std::string planYaml(ArrayRef<PlanRow> Rows, ArrayRef<VariableRow> Variables,
                     const ResourceSpec &Spec, JoinedBytes Joined) {
  Totals T(Variables);
  std::string Text = formatv(
      "replicas: {0}\nnodes: {1}\nvariables: {2}\nvariable-bytes: "
      "{3:f0}\nsparse-variables: {4}\nunknown-rows: {5}\n"
      "unknown-shapes: {6}\njoined-bytes: {7:f0}\njoined-bytes-per-row: "
      "{8:f0}\nstrategies:\n",
      Spec.replicaDevices().size(), Spec.Nodes.size(), Variables.size(),
      T.Bytes, T.Sparse, T.NoRows, T.NoShape, Joined.PerStep, Joined.PerRow);
  for (const PlanRow &Row : Rows)
    Text += formatv("  - strategy: {0}\n    seconds: {1:f9}\n    busiest-link: "
                    "{2}\n    busiest-bytes: {3:f0}\n    network-bytes: "
                    "{4:f0}\n",
                    Row.Strategy, Row.Cost.Seconds,
                    yamlString(Row.Cost.BusiestLink), Row.Cost.BusiestBytes,
                    Row.Cost.NetworkBytes);
  return Text;
}

std::string planJson(ArrayRef<PlanRow> Rows, ArrayRef<VariableRow> Variables,
                     const ResourceSpec &Spec, JoinedBytes Joined) {
  Totals T(Variables);
  return jsonText(1, [&](json::OStream &J) {
    auto Count = [&](StringRef Key, auto Value) {
      J.attribute(Key, static_cast<int64_t>(Value));
    };
    J.object([&] {
      Count("replicas", Spec.replicaDevices().size());
      Count("nodes", Spec.Nodes.size());
      Count("variables", Variables.size());
      Count("variable-bytes", T.Bytes);
      Count("sparse-variables", T.Sparse);
      Count("unknown-rows", T.NoRows);
      Count("unknown-shapes", T.NoShape);
      Count("joined-bytes", Joined.PerStep);
      Count("joined-bytes-per-row", Joined.PerRow);
      J.attributeArray("strategies", [&] {
        for (const PlanRow &Row : Rows)
          J.object([&] {
            J.attribute("strategy", Row.Strategy);
            J.attribute("seconds", Row.Cost.Seconds);
            J.attribute("busiest-link", utf8(Row.Cost.BusiestLink));
            Count("busiest-bytes", Row.Cost.BusiestBytes);
            Count("network-bytes", Row.Cost.NetworkBytes);
          });
      });
    });
  });
}

} // namespace graft
