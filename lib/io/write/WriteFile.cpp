//===- lib/io/write/WriteFile.cpp - bytes to files --------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "lib/io/write/OutputFile.h"
#include "lib/io/write/Write.h"
#include "lib/support/Escape.h"
#include "lib/support/Temporaries.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Process.h"

#include <deque>
#include <unistd.h>

using namespace llvm;

namespace graft {
namespace {

Error cannotWrite(StringRef Path, std::error_code Reason) {
  return createStringError(Reason,
                           "cannot write '" + Path + "': " + Reason.message());
}

Error writeTo(int FD, StringRef Name, function_ref<Error(ByteSink &)> Produce) {
  FileSink Sink(FD);
  if (Error E = Produce(Sink))
    return E;
  if (std::error_code Reason = Sink.finish())
    return cannotWrite(Name, Reason);
  return Error::success();
}

/// The files of one output, written one at a time.
class OutputFiles {
public:
  explicit OutputFiles(ArrayRef<std::string> Paths) : Paths(Paths) {}

  ByteSink &next() {
    end();
    size_t Index = Files.size();
    Files.emplace_back();
    if (!Reason)
      fail(Files.back().create(Paths[Index]), Index);
    return Sink.emplace(Files.back().descriptor(), Reason);
  }

  /// Ends the last file.
  Error finish() {
    end();
    return Reason ? cannotWrite(Paths[Failed], Reason) : Error::success();
  }

  /// Replaces all destinations or none. The first destination is hidden first
  /// and replaced last, so that no set of files looks complete if the machine
  /// fails in between.
  Error keep() {
    Uninterrupted Whole;
    if (Files.size() == 1) {
      fail(Files.front().keep(), 0);
      return finish();
    }
    fail(Files.front().hide(), 0);
    for (size_t I = Files.size(); I-- > 0 && !Reason;)
      fail(Files[I].replace(), I);
    if (Reason)
      for (OutputFile &File : Files)
        File.restore();
    return finish();
  }

  std::vector<std::string> temporaries() const {
    std::vector<std::string> Names;
    Names.reserve(Files.size());
    for (const OutputFile &File : Files)
      Names.push_back(File.temporary());
    return Names;
  }
  bool areUnchanged() const {
    return all_of(Files, [](const OutputFile &F) { return F.isUnchanged(); });
  }

private:
  void end() {
    if (!Sink)
      return;
    size_t Index = Files.size() - 1;
    fail(Sink->finish(), Index);
    fail(Files.back().close(), Index);
    Sink.reset();
  }
  void fail(std::error_code R, size_t Index) {
    if (R && !Reason) {
      Reason = R;
      Failed = Index;
    }
  }

  ArrayRef<std::string> Paths;
  std::deque<OutputFile> Files;
  std::optional<FileSink> Sink;
  std::error_code Reason; ///< The first error, with file number Failed.
  size_t Failed = 0;
};

} // namespace

Error writeFiles(ArrayRef<std::string> Paths, const WriteOptions &Options,
                 function_ref<Error(function_ref<ByteSink &()> Next)> Produce) {
  for (const std::string &Path : Paths)
    if (sys::fs::is_directory(Path))
      return createStringError(inconvertibleErrorCode(),
                               "cannot write '" + Path + "': is a directory");
  OutputFiles Files(Paths);
  Error Produced = Produce([&]() -> ByteSink & { return Files.next(); });
  // If writing failed, that error is the cause of the producer's error.
  if (Error E = Files.finish()) {
    consumeError(std::move(Produced));
    return E;
  }
  if (Produced)
    return Produced;
  if (Options.Check)
    if (Error E = Options.Check(Files.temporaries()))
      return E;
  if (Options.WriteIfChanged && Files.areUnchanged())
    return Error::success();
  return Files.keep();
}

Error writeFile(StringRef Path, const WriteOptions &Options,
                function_ref<Error(ByteSink &)> Produce) {
  if (Options.Format == OutputFormat::None)
    return Error::success();
  if (Path == "-") {
    if (Options.Format == OutputFormat::Binary && !Options.Force &&
        sys::Process::StandardOutIsDisplayed())
      return createStringError(
          inconvertibleErrorCode(),
          "standard output is a terminal: name a file with -o, ask for text "
          "with -S, or force binary output with -f");
    return writeTo(STDOUT_FILENO, "<stdout>", Produce);
  }
  sys::fs::file_status Status;
  if (!sys::fs::status(Path, Status) && sys::fs::exists(Status) &&
      !sys::fs::is_regular_file(Status) && !sys::fs::is_directory(Status)) {
    // A device or a pipe cannot be replaced.
    int FD;
    if (std::error_code Reason =
            sys::fs::openFileForWrite(Path, FD, sys::fs::CD_OpenExisting))
      return cannotWrite(Path, Reason);
    Error E = writeTo(FD, Path, Produce);
    ::close(FD);
    return E;
  }
  return writeFiles(Path.str(), Options, [&](function_ref<ByteSink &()> Next) {
    return Produce(Next());
  });
}

Expected<std::string> depfileText(StringRef Target,
                                  ArrayRef<std::string> Inputs) {
  std::string Out;
  if (Error E = makeName(Target).moveInto(Out))
    return E;
  Out += ':';
  for (const std::string &Input : Inputs) {
    Expected<std::string> Name = makeName(Input);
    if (!Name)
      return Name.takeError();
    Out += " \\\n  " + *Name;
  }
  return Out + "\n";
}

} // namespace graft
