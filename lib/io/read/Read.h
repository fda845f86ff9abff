//===- lib/io/read/Read.h - files to modules --------------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#ifndef GRAFT_LIB_IO_READ_READ_H
#define GRAFT_LIB_IO_READ_READ_H

#include "lib/io/Module.h"

#include "llvm/Support/raw_ostream.h"

namespace graft {

struct ReadOptions {
  InputKind Kind = InputKind::Auto;
  enum class Encoding : uint8_t { Auto, Binary, Text };
  Encoding Form = Encoding::Auto;
  /// Selects the MetaGraphDef of a SavedModel with exactly these tags. Without
  /// tags, MetaGraph selects it by number.
  std::vector<std::string> Tags = {};
  size_t MetaGraph = 0;
};

/// An error in a file, with the place if the file is text.
class InputError : public llvm::ErrorInfo<InputError> {
public:
  static char ID;
  InputError(std::string File, std::string Message, unsigned Line = 0,
             unsigned Column = 0)
      : File(std::move(File)), Message(std::move(Message)), Line(Line),
        Column(Column) {}

  void log(llvm::raw_ostream &OS) const override;
  std::error_code convertToErrorCode() const override {
    return llvm::inconvertibleErrorCode();
  }

  std::string File;
  std::string Message; ///< May start with `node 'x': `.
  unsigned Line;       ///< 1-based, or 0.
  unsigned Column;
};

/// Maps \p Path, or reads standard input for `-`. For a SavedModel directory it
/// opens the file in it. The buffer's identifier is the name for messages.
llvm::Expected<std::unique_ptr<llvm::MemoryBuffer>>
openInput(llvm::StringRef Path);

/// Reads the graph file in \p Buffer, whose identifier is its name.
llvm::Expected<Module> readModule(std::unique_ptr<llvm::MemoryBuffer> Buffer,
                                  const ReadOptions &Options = {});

/// Reads the graph file at \p Path (`-`: standard input).
llvm::Expected<Module> readModule(llvm::StringRef Path,
                                  const ReadOptions &Options = {});

} // namespace graft

#endif // GRAFT_LIB_IO_READ_READ_H
