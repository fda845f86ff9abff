//===- test/fuzz/reader_fuzzer.cpp - any bytes as a file --------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
// Any bytes are read as each kind of file, verified, and written in each
// format. No step may crash, and a file that no pass touched keeps its bytes. A
// file with the marker of graft is also folded and certified.
//
//===----------------------------------------------------------------------===//

#include "support/Require.h"

#include "lib/certify/Certify.h"
#include "lib/driver/Picture.h"
#include "lib/io/ModuleVerifier.h"
#include "lib/io/inline/Inline.h"
#include "lib/io/read/Read.h"
#include "lib/io/read/Sniff.h"
#include "lib/io/write/Write.h"
#include "lib/program/Program.h"

#include <optional>

using namespace graft;

namespace {

std::string write(const Module &M, OutputFormat Format) {
  StringSink Sink;
  requireSuccess(writeModule(M, Format, Sink), "writing what was read");
  return std::move(Sink.Text);
}

/// Returns \p M as text, or nothing: text has no strings that are not UTF-8.
std::optional<std::string> print(const Module &M) {
  StringSink Sink;
  if (llvm::Error E = writeModule(M, OutputFormat::Text, Sink)) {
    require(!llvm::toString(std::move(E)).empty(), "an error has a message");
    return std::nullopt;
  }
  return std::move(Sink.Text);
}

llvm::Expected<Module> read(llvm::StringRef Bytes, const ReadOptions &Options) {
  return readModule(llvm::MemoryBuffer::getMemBuffer(
                        Bytes, "fuzz", /*RequiresNullTerminator=*/false),
                    Options);
}

/// Checks that printed text is read as the same module, except for unknown
/// fields, which text does not have.
void checkText(const Module &M) {
  std::optional<std::string> Text = print(M);
  if (!Text)
    return;
  auto Again =
      read(*Text, {.Kind = M.Kind, .Form = ReadOptions::Encoding::Text});
  if (!Again)
    return llvm::consumeError(Again.takeError());
  require(print(*Again) == Text, "text is printed as it was read");
}

/// Returns true if \p G has the marker that graft wrote it.
bool isStamped(const Graph &G) {
  for (NodeId N = 0; N < G.size(); ++N)
    if (G.isLive(N) && G.hasAttr(N, StampAttr))
      return true;
  return false;
}

void check(llvm::StringRef Bytes, InputKind Kind) {
  auto M = read(Bytes, {.Kind = Kind});
  if (!M) {
    require(!llvm::toString(M.takeError()).empty(), "an error has a message");
    return;
  }
  std::string Written = write(*M, OutputFormat::Binary);
  // Only the graph of a GraphItem is written.
  auto Found = sniffBinary(Bytes, Kind);
  bool Inside = M->Text || (Found && *Found == InputKind::GraphItem);
  if (!Found)
    llvm::consumeError(Found.takeError());
  require(Inside || Written == Bytes, "an empty pipeline writes the input");
  DiagnosticEngine Diags;
  if (!verifyModule(*M, Diags)) {
    require(Diags.hasErrors(), "a refusal has a reason");
    return;
  }
  checkText(*M);
  write(*M, OutputFormat::Summary);
  llvm::cantFail(pictureText(*M, {}));
  if (isStamped(M->graph())) {
    auto Input = llvm::cantFail(read(Bytes, {.Kind = Kind}));
    certify::check(Input, M->graph(), Diags);
  }
  if (!mayCall(M->graph()))
    return;
  // A legal graph without errors of inlining can be written and verified.
  M->graph().markVerified();
  if (inlineCalls(M->graph()).Errors.empty()) {
    write(*M, OutputFormat::Binary);
    verifyModule(*M, Diags);
  }
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *Data, size_t Size) {
  llvm::StringRef Bytes(reinterpret_cast<const char *>(Data), Size);
  for (InputKind Kind :
       {InputKind::Auto, InputKind::GraphDef, InputKind::MetaGraph,
        InputKind::SavedModel, InputKind::GraphItem})
    check(Bytes, Kind);
  return 0;
}
