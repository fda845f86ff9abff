//===- test/fuzz/replay/Main.cpp - fuzzing without libFuzzer ----*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
//   <program> [-runs=N] [FILE|FOLDER]...
//
// Runs a program of test/fuzz on all files and on N more inputs, the same in
// every run: files with some bytes broken, and random bytes. So a build with
// any compiler tries again what was found once.
//
//===----------------------------------------------------------------------===//

#include "../support/Require.h"

#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"

#include <algorithm>
#include <random>
#include <string>
#include <vector>

using namespace llvm;

namespace {

using Random = std::minstd_rand;

// A larger file is no seed: breaking it takes time and says little more.
constexpr size_t Largest = 1 << 16;

void add(StringRef Path, std::vector<std::string> &Files) {
  if (!sys::fs::is_directory(Path)) {
    Files.push_back(Path.str());
    return;
  }
  std::error_code Code;
  std::vector<std::string> Inside;
  for (sys::fs::recursive_directory_iterator I(Path, Code), End;
       I != End && !Code; I.increment(Code))
    if (!sys::fs::is_directory(I->path()))
      Inside.push_back(I->path());
  // A folder has no order.
  std::sort(Inside.begin(), Inside.end());
  Files.insert(Files.end(), Inside.begin(), Inside.end());
}

std::string bytes(Random &R) {
  std::string Bytes(R() % 400, '\0');
  for (char &C : Bytes)
    C = static_cast<char>(R());
  return Bytes;
}

std::string broken(std::string Bytes, Random &R) {
  for (unsigned Times = 1 + R() % 4; Times != 0 && !Bytes.empty(); --Times) {
    size_t At = R() % Bytes.size();
    switch (R() % 4) {
    case 0:
      Bytes[At] = static_cast<char>(R());
      break;
    case 1:
      Bytes.erase(At, 1 + R() % 8);
      break;
    case 2:
      Bytes.insert(At, Bytes.substr(R() % Bytes.size(), R() % 64));
      break;
    default:
      Bytes.resize(At);
    }
  }
  return Bytes;
}

void run(StringRef Bytes) {
  // A copy, so that the sanitizer sees reads beyond it.
  std::vector<uint8_t> Copy(Bytes.begin(), Bytes.end());
  LLVMFuzzerTestOneInput(Copy.data(), Copy.size());
}

} // namespace

int main(int Argc, char **Argv) {
  unsigned Runs = 0;
  std::vector<std::string> Files, Seeds;
  for (StringRef Argument : ArrayRef(Argv + 1, Argc - 1))
    if (!Argument.consume_front("-runs="))
      add(Argument, Files);
    else if (Argument.getAsInteger(10, Runs)) {
      errs() << "-runs takes a number\n";
      return 2;
    }
  for (const std::string &File : Files) {
    auto Buffer = MemoryBuffer::getFile(File);
    if (!Buffer) {
      errs() << File << ": " << Buffer.getError().message() << '\n';
      return 2;
    }
    outs() << File << '\n';
    outs().flush();
    run((*Buffer)->getBuffer());
    if ((*Buffer)->getBufferSize() <= Largest)
      Seeds.push_back((*Buffer)->getBuffer().str());
  }
  for (unsigned I = 0; I < Runs; ++I) {
    Random R(I + 1);
    R.discard(8);
    bool Fresh = Seeds.empty() || R() % 4 == 0;
    std::string Input = Fresh ? bytes(R) : broken(Seeds[R() % Seeds.size()], R);
    outs() << "run " << I << '\n';
    outs().flush();
    run(Input);
  }
  outs() << Files.size() << " files, " << Runs << " runs\n";
  return 0;
}
