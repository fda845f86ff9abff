//===- lib/driver/FileChecks.cpp - files that are written -------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "lib/driver/FileChecks.h"

#include "lib/driver/Distribution.h"
#include "lib/driver/RecordFlags.h"
#include "lib/io/read/Shards.h"
#include "lib/io/write/OutputFile.h"

#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"

using namespace llvm;

namespace graft {

/// Returns the real path of \p File after all links are followed. \p File need
/// not exist.
static SmallString<256> placeOf(StringRef File) {
  SmallString<256> Real, Whole(File);
  if (!sys::fs::real_path(File, Real))
    return Real;
  if (ErrorOr<std::string> Place = throughLinks(File))
    Whole = *Place;
  if (sys::fs::make_absolute(Whole) || !sys::path::has_relative_path(Whole))
    return Whole;
  Real = placeOf(sys::path::parent_path(Whole));
  sys::path::append(Real, sys::path::filename(Whole));
  return Real;
}

/// Returns true if \p A and \p B name one file, maybe through links.
static bool areSame(StringRef A, StringRef B) {
  bool Same = false;
  if (!sys::fs::equivalent(A, B, Same))
    return Same && sys::fs::is_regular_file(A);
  return placeOf(A) == placeOf(B);
}

/// Returns true if \p File is \p Folder or a path in \p Folder. Neither need
/// exist.
static bool isIn(StringRef File, StringRef Folder) {
  SmallString<256> Inner = placeOf(File), Outer = placeOf(Folder);
  StringRef Rest(Inner);
  return Rest.consume_front(Outer) && (Rest.empty() || Rest.starts_with("/"));
}

/// Returns true if `-o Output --shard-size` may write \p File. The number of
/// shards is not known yet.
static bool isShardOf(StringRef File, StringRef Output) {
  if (auto Shard = ShardName::parse(File))
    return areSame((Shard->Stem + Shard->Extension).str(), Output);
  StringRef Extension = sys::path::extension(File);
  StringRef Stem = File.drop_back(Extension.size());
  return Stem.consume_back("-00000-of-00001") &&
         areSame((Stem + Extension).str(), Output);
}

/// Returns the files written beside the output and the flags that name them.
static std::vector<std::pair<StringRef, std::string>>
sideFiles(const ToolOptions &O) {
  std::vector<std::pair<StringRef, std::string>> Written;
  if (!O.Depfile.empty())
    Written.push_back({"-d", O.Depfile});
  if (!O.RemarksFile.empty())
    Written.push_back({"--remarks", O.RemarksFile});
  if (!O.ReportFile.empty())
    Written.push_back({"--report", O.ReportFile});
  if (O.Passes.Strategy && !O.Passes.Strategy->Assign.Emit->empty())
    Written.push_back({"--emit-strategy", *O.Passes.Strategy->Assign.Emit});
  return Written;
}

Error checkFiles(const ToolOptions &O, StringRef Output,
                 ArrayRef<std::string> Graph) {
  std::vector<std::pair<StringRef, std::string>> Written = sideFiles(O);
  if (Output != "-" && O.Format != OutputFormat::None) {
    bool Shards = O.Write.ShardSize != 0;
    for (const std::string &File : Graph)
      if (!O.InPlace &&
          (Shards ? isShardOf(File, Output) : areSame(File, Output)))
        return usageError("-o: '" + Output +
                          "' is the input; give --in-place to replace it");
    for (const std::string &File : O.FurtherInputs)
      if (areSame(File, Output))
        return usageError("-o: '" + Output + "' is a file that is read");
    Written.push_back({"-o", Output.str()});
  }
  for (const auto &[Flag, File] : Written) {
    if (Flag != "-o")
      for (ArrayRef<std::string> Read : {Graph, ArrayRef(O.FurtherInputs)})
        for (const std::string &Input : Read)
          if (areSame(Input, File))
            return usageError(Flag + ": '" + File + "' is a file that is read");
    for (const auto &[Other, Its] : Written) {
      if (Other == Flag)
        break;
      if (areSame(Its, File))
        return usageError(Other + " and " + Flag + ": both name the file '" +
                          File + "'; give two names");
    }
  }
  return Error::success();
}

Error checkFolder(const ToolOptions &O, StringRef Output) {
  Output = Output.rtrim('/');
  if (isIn(Output, O.Input) || isIn(O.Input, Output))
    return usageError(
        "-o: '" + Output +
        "' is the input, a path in it, or a folder that contains "
        "it; graft does not rewrite the folder of a SavedModel in "
        "place: give another folder");
  for (const std::string &File : O.FurtherInputs)
    if (isIn(File, Output))
      return usageError("-o: the file '" + File +
                        "', which graft reads, is in '" + Output +
                        "'; give another folder");
  for (const auto &[Flag, File] : sideFiles(O))
    if (isIn(File, Output) || isIn(File, O.Input))
      return usageError(Flag + ": '" + File +
                        "' is in the folder of a SavedModel; give a path "
                        "outside of it");
  return Error::success();
}

} // namespace graft
