//===- tools/graft-extract/graft-extract.cpp - a part of a graph *- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
// The exit status is 0, 1 for a wrong input or name, 2 for a wrong command
// line. An error leaves the output untouched.
//
//===----------------------------------------------------------------------===//

#include "lib/extract/Extract.h"
#include "lib/io/read/Read.h"
#include "lib/io/write/Write.h"
#include "lib/support/CommandLine.h"
#include "lib/support/Diagnostics.h"
#include "lib/support/Glob.h"

#include "google/protobuf/stubs/logging.h"

#include "llvm/Support/InitLLVM.h"

using namespace llvm;
using namespace graft;

static cl::OptionCategory Extracting("Options");

static cl::opt<std::string> Input(cl::Positional, cl::cat(Extracting),
                                  cl::desc("<graph file>"));
static cl::opt<std::string> Output("o", cl::cat(Extracting), cl::init("-"),
                                   cl::value_desc("file"),
                                   cl::desc("The output; text if it ends in "
                                            ".pbtxt. Default: stdout"));
static cl::list<std::string>
    Nodes("nodes", cl::CommaSeparated, cl::cat(Extracting),
          cl::value_desc("glob"),
          cl::desc("The nodes that match; * is any text, also /, and ? is one "
                   "character"));
static cl::list<std::string>
    Around("around", cl::CommaSeparated, cl::cat(Extracting),
           cl::value_desc("node[:hops]"),
           cl::desc("A node and its neighbors within this many edges. "
                    "Default: 1"));
static cl::list<std::string>
    Fetches("fetches", cl::CommaSeparated, cl::cat(Extracting),
            cl::value_desc("node"),
            cl::desc("Nodes and all nodes that they depend on"));
static cl::opt<bool> AsText("S", cl::cat(Extracting), cl::desc("Write text"));
static cl::opt<bool> Force("f", cl::cat(Extracting),
                           cl::desc("Write binary even to a terminal"));

constexpr StringLiteral Overview =
    "graft-extract: makes a graph of a part of a graph\n\n"
    "  graft-extract model.meta --around=loss:3 -o loss.meta\n\n"
    "What the part reads from outside becomes a placeholder.\n";

constexpr std::pair<StringRef, StringRef> Exits[] = {
    {"0", "the part is written"},
    {"1", "the input or a name is at fault; the output stays as it was"},
    {"2", "the command line is at fault"}};

static int fail(Error E, int Status = ExitInput) {
  return failProgram("graft-extract", std::move(E), Status);
}

static Expected<NodeId> find(const Graph &G, StringRef Name) {
  if (NodeId N = G.find(Name); N != NoNode)
    return N;
  std::vector<std::string> All;
  All.reserve(G.size());
  for (NodeId N = 0; N < G.size(); ++N)
    All.push_back(G.name(N).str());
  return createStringError("the graph has no node '" + Name + "'" +
                           didYouMean(Name, All));
}

/// Returns the nodes that the command line names.
static Expected<NodeSet> select(const Graph &G) {
  NodeSet Kept(G.size());
  auto Add = [&](const NodeSet &Others) {
    for (NodeId N = 0; N < G.size(); ++N)
      Kept[N] = Kept[N] || Others[N];
  };
  for (const std::string &Text : Nodes) {
    Glob Pattern(Text);
    bool Any = false;
    for (NodeId N = 0; N < G.size(); ++N)
      if (Pattern.matches(G.name(N)))
        Kept[N] = Any = true;
    if (!Any)
      return createStringError("--nodes: no node matches '" + Text + "'");
  }
  for (StringRef Place : Around) {
    auto [Name, Number] = Place.rsplit(':');
    unsigned Hops = 1;
    if (Number.empty() || Number.getAsInteger(10, Hops))
      Name = Place;
    Expected<NodeId> N = find(G, Name);
    if (!N)
      return N.takeError();
    Add(nodesAround(G, *N, Hops));
  }
  std::vector<NodeId> Ends;
  for (StringRef Tensor : Fetches) {
    Expected<NodeId> N = find(G, Tensor.split(':').first);
    if (!N)
      return N.takeError();
    Ends.push_back(*N);
  }
  Add(nodesBehind(G, Ends));
  return Kept;
}

int main(int Argc, char **Argv) {
  startProgram("graft-extract");
  InitLLVM Init(Argc, Argv, /*InstallPipeSignalExitHandler=*/false);
  google::protobuf::SetLogHandler(nullptr);
  cl::SetVersionPrinter(
      [](raw_ostream &OS) { OS << "graft-extract " GRAFT_VERSION "\n"; });
  const cl::OptionCategory *Ours[] = {&Extracting};
  parseProgram(Argc, Argv, {Overview, Input, Ours, Exits});
  if (Input.empty())
    return fail(createStringError("give a graph file, or - for stdin"),
                ExitUsage);
  if (Nodes.empty() && Around.empty() && Fetches.empty())
    return fail(createStringError("say which part: --nodes, --around or "
                                  "--fetches"),
                ExitUsage);
  Expected<Module> M = readModule(Input.getValue());
  if (!M)
    return fail(M.takeError());
  Expected<NodeSet> Kept = select(M->graph());
  if (!Kept)
    return fail(Kept.takeError());
  extract(*M, std::move(*Kept));
  WriteOptions O;
  O.Force = Force;
  O.Format = AsText || StringRef(Output).ends_with(".pbtxt")
                 ? OutputFormat::Text
                 : OutputFormat::Binary;
  if (Expected<std::string> File = writeModule(*M, Output, O); !File)
    return fail(File.takeError());
  return 0;
}
