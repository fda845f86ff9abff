//===- lib/pass/Registry.h - passes by name ---------------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#ifndef GRAFT_LIB_PASS_REGISTRY_H
#define GRAFT_LIB_PASS_REGISTRY_H

#include "lib/pass/Pass.h"

namespace graft {

/// The passes that a pipeline can name, sorted by name. passes/Registry.cpp
/// registers each pass explicitly, because a linker may drop the static
/// initializers of a static library.
class PassRegistry {
public:
  struct Entry {
    std::unique_ptr<Pass> Prototype; ///< Its options have their defaults.
    bool Hidden;                     ///< Not listed: a pass for tests.
    llvm::StringRef name() const { return Prototype->info().Name; }
  };

  void add(std::unique_ptr<Pass> Prototype, bool Hidden = false);

  /// The entry called \p Name, or null.
  const Entry *find(llvm::StringRef Name) const;
  llvm::ArrayRef<Entry> entries() const { return Entries; }
  /// Names of the passes that are listed.
  std::vector<std::string> names() const;

private:
  std::vector<Entry> Entries;
};

/// Adds hidden passes (`test-edit`) that edit the graph, fail, or report a
/// false result, for the tests of the pass manager.
void registerTestPasses(PassRegistry &Registry);

/// All passes of passes/Passes.def.
void registerAllPasses(PassRegistry &Registry);

} // namespace graft

#endif // GRAFT_LIB_PASS_REGISTRY_H
