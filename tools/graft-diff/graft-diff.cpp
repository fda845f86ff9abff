//===- tools/graft-diff/graft-diff.cpp - two graphs compared ----*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
// The exit status is that of diff: 0 if the graphs are equal, 1 if they differ,
// 2 after an error.
//
//===----------------------------------------------------------------------===//

#include "lib/diff/Print.h"
#include "lib/io/read/Read.h"
#include "lib/support/CommandLine.h"

#include "google/protobuf/stubs/logging.h"

#include "llvm/Support/InitLLVM.h"
#include "llvm/Support/WithColor.h"

using namespace llvm;
using namespace graft;

static cl::OptionCategory Comparing("Options");

static cl::list<std::string> Files(cl::Positional, cl::cat(Comparing),
                                   cl::desc("<graph file> <graph file>"));
static cl::opt<bool> Names("names", cl::cat(Comparing),
                           cl::desc("Compare names of inserted nodes, too"));
static cl::opt<bool>
    Brief("q", cl::cat(Comparing),
          cl::desc("Print nothing; the exit status is the answer"));
static cl::alias BriefLong("quiet", cl::aliasopt(Brief), cl::desc("The same"));

enum class Format : uint8_t { Text, Json };
static cl::opt<Format>
    As("format", cl::cat(Comparing), cl::desc("The format of the answer"),
       cl::values(clEnumValN(Format::Text, "text", "for people (default)"),
                  clEnumValN(Format::Json, "json", "for scripts")));

constexpr StringLiteral Overview =
    "graft-diff: says what is different about two graphs\n\n"
    "  graft-diff model.x2.meta model.x4.meta\n\n"
    "Nodes are matched by their inputs and their users. Order, defaults and "
    "names of inserted nodes do not count.\n";

constexpr std::pair<StringRef, StringRef> Exits[] = {
    {"0", "the graphs are the same"},
    {"1", "something is different"},
    {"2", "trouble: the command line, or a file"}};

static int fail(Error E) {
  return failProgram("graft-diff", std::move(E), ExitUsage);
}

int main(int Argc, char **Argv) {
  startProgram("graft-diff", ExitUsage);
  InitLLVM Init(Argc, Argv, /*InstallPipeSignalExitHandler=*/false);
  google::protobuf::SetLogHandler(nullptr);
  cl::SetVersionPrinter(
      [](raw_ostream &OS) { OS << "graft-diff " GRAFT_VERSION "\n"; });
  const cl::OptionCategory *Ours[] = {&Comparing, &getColorCategory()};
  parseProgram(Argc, Argv, {Overview, Files, Ours, Exits});
  if (Files.size() != 2)
    return fail(createStringError("give two graph files"));
  Expected<Module> A = readModule(Files[0]);
  if (!A)
    return fail(A.takeError());
  Expected<Module> B = readModule(Files[1]);
  if (!B)
    return fail(B.takeError());
  DiffOptions O;
  O.Names = Names;
  GraphDiff D = compareModules(*A, *B, O);
  // LLVM defines --color.
  bool Colors = WithColor(outs()).colorsEnabled();
  outs().enable_colors(Colors);
  if (!Brief && As == Format::Json)
    printJson(outs(), D, Files[0], Files[1]);
  else if (!Brief)
    printText(outs(), D, Files[0], Files[1], Colors);
  return D.All.empty() ? 0 : 1;
}
