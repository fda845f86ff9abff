//===- lib/io/write/OutputFolder.cpp - a folder that is replaced *- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "lib/io/write/OutputFolder.h"

#include "lib/io/write/OutputFile.h"
#include "lib/support/Failure.h"
#include "lib/support/Temporaries.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/Process.h"
#include "llvm/Support/Signals.h"

#include <cerrno>
#include <fcntl.h>
#include <unistd.h>
#include <utility>

using namespace llvm;

namespace graft {
namespace {

Error systemFailure(const Twine &What, StringRef Path, std::error_code Reason) {
  return createStringError(Reason,
                           What + " '" + Path + "': " + Reason.message());
}

std::error_code lastError() { return {errno, std::generic_category()}; }

std::string inside(StringRef Folder, StringRef Name) {
  SmallString<256> Path(Folder);
  sys::path::append(Path, Name);
  return Path.str().str();
}

/// The folders of one path, to detect a link to one of them.
struct Chain {
  sys::fs::UniqueID Id;
  const Chain *Outer;

  bool has(sys::fs::UniqueID Other) const {
    return Id == Other || (Outer && Outer->has(Other));
  }
};

class Walk {
public:
  explicit Walk(StringRef Root) : Root(Root) {}

  Error run(const std::string &Relative, const Chain *Outer,
            function_ref<bool(StringRef)> Leaves) {
    std::string Path = inside(Root, Relative);
    sys::fs::file_status Status;
    if (std::error_code Reason = sys::fs::status(Path, Status))
      return systemFailure("cannot read", Path, Reason);
    if (Outer && Outer->has(Status.getUniqueID()))
      return failure("'" + Path +
                     "': is a link to a folder that contains the link");
    Chain This{Status.getUniqueID(), Outer};
    std::error_code Reason;
    std::vector<std::string> Names;
    for (sys::fs::directory_iterator I(Path, Reason), End; I != End && !Reason;
         I.increment(Reason))
      Names.push_back(sys::path::filename(I->path()).str());
    if (Reason)
      return systemFailure("cannot read", Path, Reason);
    sort(Names);
    size_t Before = Files.size();
    for (const std::string &Name : Names) {
      if (Leaves(Name))
        continue;
      std::string Below = Relative;
      if (!Below.empty())
        Below += '/';
      Below += Name;
      std::string Whole = inside(Root, Below);
      if (std::error_code Why = sys::fs::status(Whole, Status))
        return systemFailure("cannot read", Whole, Why);
      if (sys::fs::is_directory(Status)) {
        if (Error E = run(Below, &This, [](StringRef) { return false; }))
          return E;
      } else if (sys::fs::is_regular_file(Status)) {
        Files.push_back(Below);
      } else {
        return failure("'" + Whole + "': is neither a file nor a folder");
      }
    }
    if (Files.size() == Before && !Relative.empty())
      Files.push_back(Relative + "/");
    return Error::success();
  }

  std::vector<std::string> Files;

private:
  StringRef Root;
};

/// Copies one file. It is an error if the file changes meanwhile.
Error copyFile(const std::string &From, const std::string &To) {
  sys::fs::file_status Before, After;
  int FD = -1;
  std::error_code Reason = sys::fs::status(From, Before);
  if (!Reason)
    Reason = createTemporary(To, [&] {
      return sys::fs::openFileForWrite(To, FD, sys::fs::CD_CreateNew);
    });
  if (!Reason)
    Reason = sys::fs::copy_file(From, FD);
  if (FD >= 0 && ::close(FD) != 0 && !Reason)
    Reason = lastError();
  if (!Reason)
    Reason = sys::fs::status(From, After);
  if (Reason)
    return systemFailure("cannot copy", From, Reason);
  if (Before.getSize() != After.getSize() ||
      Before.getLastModificationTime() != After.getLastModificationTime())
    return failure("'" + From + "': was changed while it was copied");
  return Error::success();
}

Error linkFile(const std::string &From, const std::string &To) {
  std::error_code Reason = createTemporary(To, [&]() -> std::error_code {
    return ::linkat(AT_FDCWD, From.c_str(), AT_FDCWD, To.c_str(),
                    AT_SYMLINK_FOLLOW) == 0
               ? std::error_code()
               : lastError();
  });
  return Reason ? systemFailure("--link: cannot link to", From, Reason)
                : Error::success();
}

bool haveSameBytes(const std::string &A, const std::string &B) {
  bool Same = false;
  if (!sys::fs::equivalent(A, B, Same) && Same)
    return true;
  auto Read = [](StringRef Path) {
    return MemoryBuffer::getFile(Path, /*IsText=*/false,
                                 /*RequiresNullTerminator=*/false);
  };
  uint64_t SizeA = 0, SizeB = 0;
  if (sys::fs::file_size(A, SizeA) || sys::fs::file_size(B, SizeB) ||
      SizeA != SizeB)
    return false;
  auto OfA = Read(A), OfB = Read(B);
  return OfA && OfB && (*OfA)->getBuffer() == (*OfB)->getBuffer();
}

bool leavesNothing(StringRef) { return false; }

/// Returns an error unless \p Path may be replaced. It must be an empty folder
/// or the folder of a SavedModel, and no link to such a folder. \p Shown is the
/// user's name for the folder.
Error checkReplaced(const std::string &Path, StringRef Shown) {
  sys::fs::file_status Status;
  std::error_code Reason = sys::fs::status(Path, Status, /*follow=*/false);
  if (!Reason && sys::fs::is_directory(Status)) {
    if (sys::fs::directory_iterator(Path, Reason) ==
            sys::fs::directory_iterator() ||
        sys::fs::is_regular_file(inside(Path, "saved_model.pb")) ||
        sys::fs::is_regular_file(inside(Path, "saved_model.pbtxt")))
      return Error::success();
  }
  return failure(
      "-o: '" + Shown +
      "' is not the folder of a SavedModel, so --force does not replace it; "
      "give another name, or remove it");
}

} // namespace

Expected<std::vector<std::string>>
listFolder(StringRef Path, function_ref<bool(StringRef)> Leaves) {
  Walk W(Path);
  if (Error E = W.run("", nullptr, Leaves))
    return E;
  sort(W.Files);
  return std::move(W.Files);
}

OutputFolder::~OutputFolder() {
  if (!Name.empty())
    remove();
}

std::string OutputFolder::path(StringRef File) const {
  return inside(Name, File);
}

std::string OutputFolder::add(StringRef File) {
  sys::RemoveFileOnSignal(path(File));
  Files.push_back(File.str());
  return path(File);
}

Error OutputFolder::exists() const {
  return failure("-o: '" + Shown +
                 "' exists; give --force to replace the folder");
}

Error OutputFolder::create(StringRef Path, bool MayExist) {
  Shown = Target = Path.rtrim('/').str();
  SmallString<256> Real;
  sys::fs::file_status Status;
  std::error_code Reason = sys::fs::status(Target, Status, /*follow=*/false);
  if (Reason && Reason != std::errc::no_such_file_or_directory)
    return systemFailure("cannot write", Path, Reason);
  if (!Reason) {
    if (!sys::fs::is_directory(Target))
      return failure("cannot write '" + Target +
                     "': a SavedModel is a folder, but this path is not one; "
                     "give another name");
    if (!MayExist)
      return exists();
    if (std::error_code Why = sys::fs::real_path(Target, Real))
      return systemFailure("cannot write", Path, Why);
    Target = Real.str().str();
    if (Error E = checkReplaced(Target, Shown))
      return E;
  }
  Reason = std::make_error_code(std::errc::file_exists);
  for (unsigned Try = 0; Try < 100 && Reason == std::errc::file_exists; ++Try) {
    Name = temporaryName(Target, Try);
    Reason = createTemporaryFolder(Name);
  }
  if (!Reason)
    return Error::success();
  Name.clear();
  return systemFailure("cannot write", Path, Reason);
}

std::error_code OutputFolder::makeFolder(StringRef Relative) {
  if (Relative.empty() || Folders.contains(Relative))
    return {};
  if (std::error_code Reason = makeFolder(sys::path::parent_path(Relative)))
    return Reason;
  if (std::error_code Reason = createTemporaryFolder(path(Relative)))
    return Reason;
  Folders.insert(Relative);
  return {};
}

Error OutputFolder::copy(StringRef From, ArrayRef<std::string> Copied,
                         bool Link) {
  for (StringRef File : Copied) {
    bool IsFolder = File.ends_with("/");
    StringRef Folder =
        IsFolder ? File.drop_back() : sys::path::parent_path(File);
    if (std::error_code Reason = makeFolder(Folder))
      return systemFailure("cannot write", path(Folder), Reason);
    if (IsFolder)
      continue;
    Files.push_back(File.str());
    if (Error E = (Link ? linkFile : copyFile)(inside(From, File), path(File)))
      return E;
  }
  return Error::success();
}

bool OutputFolder::isUnchanged() const {
  auto Old = listFolder(Target, leavesNothing),
       New = listFolder(Name, leavesNothing);
  if (!Old || !New) {
    consumeError(Old.takeError());
    consumeError(New.takeError());
    return false;
  }
  return *Old == *New && all_of(*Old, [&](StringRef File) {
    return File.ends_with("/") ||
           haveSameBytes(inside(Target, File), path(File));
  });
}

Error OutputFolder::keep(bool Replace) {
  Uninterrupted Whole;
  sys::fs::file_status Status;
  bool Exists = !sys::fs::status(Target, Status, /*follow=*/false);
  if (Exists && !Replace)
    return exists();
  auto Mode = static_cast<sys::fs::perms>(0777 & ~sys::fs::getUmask());
  for (StringRef Folder : Folders.keys())
    // Best effort: some file systems have no permissions to set.
    if (std::error_code Ignored = sys::fs::setPermissions(path(Folder), Mode))
      continue;
  [[maybe_unused]] std::error_code Ignored =
      sys::fs::setPermissions(Name, Mode);
  // Swaps the old folder with the new one, so that the destination always
  // exists. The old folder is removed after that.
  if (std::error_code Reason =
          Exists ? swapPaths(Name, Target) : sys::fs::rename(Name, Target))
    return systemFailure("cannot write", Target, Reason);
  // Checks again, because the old folder may not be the one that create()
  // checked.
  if (Exists)
    if (Error E = checkReplaced(Name, Shown)) {
      // If the folder cannot be swapped back, keeps all of its files.
      if (swapPaths(Name, Target))
        release();
      return E;
    }
  if (Exists)
    remove();
  else
    release();
  return Error::success();
}

void OutputFolder::remove() {
  Uninterrupted Whole;
  [[maybe_unused]] std::error_code Ignored = removeFolder(Name);
  release();
}

/// Forgets the temporary folder, which was removed or renamed.
void OutputFolder::release() {
  for (StringRef File : Files)
    sys::DontRemoveFileOnSignal(path(File));
  for (StringRef Folder : Folders.keys())
    releaseTemporaryFolder(path(Folder));
  releaseTemporaryFolder(Name);
  Name.clear();
}

} // namespace graft
