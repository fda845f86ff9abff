//===- lib/io/write/OutputFolder.h - a folder that is replaced --*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
// A SavedModel is a folder with the graph and other files. The output folder is
// made beside its destination under another name, so that the destination is
// never incomplete.
//
//===----------------------------------------------------------------------===//

#ifndef GRAFT_LIB_IO_WRITE_OUTPUTFOLDER_H
#define GRAFT_LIB_IO_WRITE_OUTPUTFOLDER_H

#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/Support/Error.h"

#include <string>
#include <vector>

namespace graft {

/// A temporary folder beside the folder that it will replace or become. It is
/// removed unless keep() was called, also if a signal ends the program.
class OutputFolder {
public:
  OutputFolder() = default;
  OutputFolder(const OutputFolder &) = delete;
  OutputFolder &operator=(const OutputFolder &) = delete;
  ~OutputFolder();

  /// Makes the temporary folder for \p Path. If \p MayExist is true, \p Path
  /// may be an existing SavedModel. If \p Path is a symbolic link, the link's
  /// target will be replaced.
  llvm::Error create(llvm::StringRef Path, bool MayExist);
  /// Returns the path to which the file \p Name must be written.
  std::string add(llvm::StringRef Name);
  /// Copies \p Files of the folder \p From, with the folders that contain them;
  /// the name of an empty folder ends in a slash. If \p Link is true, makes
  /// hard links instead of copies.
  llvm::Error copy(llvm::StringRef From, llvm::ArrayRef<std::string> Files,
                   bool Link);
  /// Returns true if the destination has the same files with the same bytes.
  bool isUnchanged() const;
  /// Moves the folder to its destination. If \p Replace is true, it may replace
  /// a SavedModel or an empty folder. Follows no link that was created since
  /// create().
  llvm::Error keep(bool Replace);

private:
  llvm::Error exists() const;
  std::string path(llvm::StringRef Name) const;
  std::error_code makeFolder(llvm::StringRef Relative);
  void remove();
  void release();

  std::string Shown; ///< The user's name for it.
  std::string Target;
  std::string Name;          ///< The temporary folder; empty: there is none.
  llvm::StringSet<> Folders; ///< The folders in it.
  std::vector<std::string> Files;
};

/// Returns the files below the folder \p Path, as sorted names relative to it;
/// an empty folder is its name and a slash. Follows symbolic links. \p Leaves
/// returns true for files and folders directly in \p Path that are left out.
llvm::Expected<std::vector<std::string>>
listFolder(llvm::StringRef Path,
           llvm::function_ref<bool(llvm::StringRef)> Leaves);

} // namespace graft

#endif // GRAFT_LIB_IO_WRITE_OUTPUTFOLDER_H
