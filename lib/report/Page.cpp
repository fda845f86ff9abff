//===- lib/report/Page.cpp - a report for a browser -------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
// Replaces the marks {{...}} of page.html by texts. The report is compressed
// (to a thirtieth for a large graph) and encoded in base64, so that no text in
// it can end its HTML element.
//
//===----------------------------------------------------------------------===//

#include "lib/report/Page.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSwitch.h"
#include "llvm/Support/Base64.h"
#include "llvm/Support/Compression.h"

using namespace llvm;

namespace graft {

static constexpr char Template[] =
#include "embedded/page.inc"
    ;
static constexpr char Style[] =
#include "embedded/style.inc"
    ;
static constexpr char Dagre[] =
#include "embedded/dagre.min.inc"
    ;
static constexpr char Licence[] =
#include "embedded/dagre.inc"
    ;
static constexpr char Tables[] =
#include "embedded/tables.inc"
    ;
static constexpr char Graph[] =
#include "embedded/graph.inc"
    ;
static constexpr char Steps[] =
#include "embedded/steps.inc"
    ;
static constexpr char Sections[] =
#include "embedded/sections.inc"
    ;

std::string reportPage(StringRef Json) {
  SmallVector<uint8_t, 0> Packed;
  compression::zlib::compress(arrayRefFromStringRef(Json), Packed);
  std::string Report = encodeBase64(Packed);
  std::string Out;
  StringRef Rest = Template;
  while (!Rest.empty()) {
    auto [Text, Behind] = Rest.split("{{");
    auto [Mark, After] = Behind.split("}}");
    Out += Text;
    Out += StringSwitch<StringRef>(Mark)
               .Case("style", Style)
               .Case("licence", Licence)
               .Case("report", Report)
               .Case("dagre", Dagre)
               .Case("tables", Tables)
               .Case("graph", Graph)
               .Case("steps", Steps)
               .Case("sections", Sections)
               .Default("");
    Rest = After;
  }
  return Out;
}

} // namespace graft
