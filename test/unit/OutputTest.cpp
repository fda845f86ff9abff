//===- test/unit/OutputTest.cpp - files and folders replaced ----*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "lib/io/write/OutputFolder.h"
#include "lib/io/write/Write.h"
#include "lib/support/Temporaries.h"

#include <catch2/catch.hpp>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <sys/wait.h>
#include <unistd.h>

using namespace graft;
namespace fs = std::filesystem;

namespace {

/// A folder that is removed after the test.
class Scratch {
public:
  Scratch() {
    std::string Name = (fs::temp_directory_path() / "graft-XXXXXX").string();
    REQUIRE(mkdtemp(Name.data()) != nullptr);
    Root = Name;
  }
  ~Scratch() { fs::remove_all(Root); }
  Scratch(const Scratch &) = delete;
  Scratch &operator=(const Scratch &) = delete;

  fs::path operator/(const char *Name) const { return Root / Name; }
  size_t size() const {
    return static_cast<size_t>(
        std::distance(fs::directory_iterator(Root), fs::directory_iterator()));
  }

private:
  fs::path Root;
};

void put(const fs::path &Path, const char *Text) {
  fs::create_directories(Path.parent_path());
  std::ofstream(Path) << Text;
}

std::string get(const fs::path &Path) {
  std::ifstream In(Path);
  return {std::istreambuf_iterator<char>(In), {}};
}

bool fails(llvm::Error E) {
  bool Failed = bool(E);
  llvm::consumeError(std::move(E));
  return Failed;
}

TEST_CASE("a folder is removed, and nothing behind its links") {
  Scratch S;
  put(S / "victim/precious", "x");
  put(S / "folder/deep/file", "x");
  fs::create_directory_symlink(S / "victim", S / "folder/deep/link");
  CHECK(!removeFolder((S / "folder").string()));
  CHECK(!fs::exists(S / "folder"));
  fs::create_directory_symlink(S / "victim", S / "folder");
  CHECK(!removeFolder((S / "folder").string()));
  CHECK(!fs::is_symlink(S / "folder"));
  CHECK(get(S / "victim/precious") == "x");
}

TEST_CASE("only the folder of a SavedModel is replaced") {
  Scratch S;
  std::string Out = (S / "out").string();
  put(S / "out/precious", "x");
  OutputFolder Other;
  CHECK(fails(Other.create(Out, true)));
  put(S / "out/saved_model.pb", "old");
  OutputFolder New;
  REQUIRE(!New.create(Out, true));
  put(New.add("saved_model.pb"), "new");
  CHECK(!fails(New.keep(true)));
  CHECK(get(S / "out/saved_model.pb") == "new");
  CHECK(!fs::exists(S / "out/precious"));
  CHECK(S.size() == 1);
}

TEST_CASE("a link that comes to be in the place of an output is not followed") {
  Scratch S;
  std::string Out = (S / "out").string();
  put(S / "victim/saved_model.pb", "precious");
  put(S / "out/saved_model.pb", "old");
  {
    OutputFolder New;
    REQUIRE(!New.create(Out, true));
    put(New.add("saved_model.pb"), "new");
    fs::rename(S / "out", S / "moved");
    fs::create_directory_symlink("victim", S / "out");
    CHECK(fails(New.keep(true)));
  }
  CHECK(get(S / "victim/saved_model.pb") == "precious");
  CHECK(fs::is_symlink(S / "out"));
  CHECK(S.size() == 3);
}

TEST_CASE("of several files all are replaced or none") {
  Scratch S;
  std::vector<std::string> Paths;
  for (const char *Name : {"w-0", "w-1", "w-2", "w-3"})
    Paths.push_back((S / Name).string());
  put(S / "w-0", "old 0");
  put(S / "w-2", "old 2");
  size_t Bad = 0;
  WriteOptions O;
  O.Check = [&](llvm::ArrayRef<std::string> Temporary) {
    // Removes a temporary file, or puts a folder in the place of an output.
    if (Bad < Temporary.size())
      fs::remove(Temporary[Bad]);
    else if (Bad - Temporary.size() < Temporary.size())
      fs::create_directory(Paths[Bad - Temporary.size()]);
    return llvm::Error::success();
  };
  auto Write = [&] {
    return writeFiles(Paths, O, [&](llvm::function_ref<ByteSink &()> Next) {
      for (size_t I = 0; I < Paths.size(); ++I)
        Next().write("new");
      return llvm::Error::success();
    });
  };
  for (size_t I : {0U, 1U, 2U, 3U, 5U, 7U}) {
    Bad = I;
    CHECK(fails(Write()));
    CHECK(get(S / "w-0") == "old 0");
    CHECK(get(S / "w-2") == "old 2");
    bool IsThere = I > 3;
    CHECK(S.size() == (IsThere ? 3U : 2U));
    if (IsThere)
      fs::remove(Paths[I - 4]);
  }
  Bad = 8;
  CHECK(!fails(Write()));
  for (const std::string &Path : Paths)
    CHECK(get(Path) == "new");
  CHECK(S.size() == 4);
}

TEST_CASE("signals wait for the end of what is not to be interrupted") {
  int Pipe[2];
  REQUIRE(pipe(Pipe) == 0);
  pid_t Child = fork();
  REQUIRE(Child >= 0);
  if (Child == 0) {
    {
      Uninterrupted Outer;
      {
        Uninterrupted Inner;
        kill(getpid(), SIGHUP);
      }
      if (write(Pipe[1], ".", 1) != 1)
        _exit(2);
    }
    _exit(0);
  }
  close(Pipe[1]);
  int Status = 0;
  REQUIRE(waitpid(Child, &Status, 0) == Child);
  CHECK((WIFSIGNALED(Status) && WTERMSIG(Status) == SIGHUP));
  char Byte;
  CHECK(read(Pipe[0], &Byte, 1) == 1);
  close(Pipe[0]);
}

} // namespace
