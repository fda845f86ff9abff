//===- lib/io/write/OutputFolder.h - a folder that is replaced --*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
// A SavedModel is a folder: the graph, and files of other kinds that belong to
// it. The output is one, too, made beside its destination under another name,
// so that it is whole or not there.
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

/// What will replace a folder, or become one: a temporary folder beside it that
/// is removed unless it is kept, also when a signal ends the program.
class OutputFolder {
public:
  OutputFolder() = default;
  OutputFolder(const OutputFolder &) = delete;
  OutputFolder &operator=(const OutputFolder &) = delete;
  ~OutputFolder();

  /// Makes the temporary folder for \p Path, which must not be there unless it
  /// \p MayExist and is a SavedModel; through a symbolic link, the folder that
  /// it points to will be replaced.
  llvm::Error create(llvm::StringRef Path, bool MayExist);
  /// Where the file \p Name is to be written.
  std::string add(llvm::StringRef Name);
  /// Copies \p Files of the folder \p From, with the folders that they are in;
  /// the name of an empty folder ends in a slash. With \p Link they are links
  /// to the same bytes.
  llvm::Error copy(llvm::StringRef From, llvm::ArrayRef<std::string> Files,
                   bool Link);
  /// Whether the destination has the same files with the same bytes.
  bool isUnchanged() const;
  /// Becomes the destination, or with \p Replace takes its place. Nothing but a
  /// SavedModel is replaced, and no link is followed that came to be there
  /// since create().
  llvm::Error keep(bool Replace);

private:
  llvm::Error exists() const;
  std::string path(llvm::StringRef Name) const;
  std::error_code makeFolder(llvm::StringRef Relative);
  void remove();
  void release();

  std::string Shown; ///< What the user calls it.
  std::string Target;
  std::string Name;          ///< The temporary folder; empty: there is none.
  llvm::StringSet<> Folders; ///< In it.
  std::vector<std::string> Files;
};

/// The files below the folder \p Path, by names in it with slashes, sorted; of
/// a folder without any its name and a slash. Symbolic links are followed.
/// \p Leaves says which files, and folders, of the top are left out.
llvm::Expected<std::vector<std::string>>
listFolder(llvm::StringRef Path,
           llvm::function_ref<bool(llvm::StringRef)> Leaves);

} // namespace graft

#endif // GRAFT_LIB_IO_WRITE_OUTPUTFOLDER_H
