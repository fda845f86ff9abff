//===- lib/support/Escape.h - names in other languages ----------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
// One function for each language that a name may have to be said in. Whatever
// bytes a name has, whoever reads the language gets that name and nothing else.
// A terminal has escapeControls() of Diagnostics.h.
//
//===----------------------------------------------------------------------===//

#ifndef GRAFT_LIB_SUPPORT_ESCAPE_H
#define GRAFT_LIB_SUPPORT_ESCAPE_H

#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"
#include "llvm/Support/JSON.h"

#include <string>

namespace graft {

/// How many bytes at the front of \p Text are one character that can be shown;
/// 0 for controls, marks that turn the direction of writing, what is no
/// character, and bytes that are no UTF-8.
unsigned shownLength(llvm::StringRef Text);

/// \p Text for a string of JSON, which is UTF-8: other bytes become U+FFFD.
std::string utf8(llvm::StringRef Text);

/// The document that \p Write makes, of lines if there is an \p Indent. What
/// cannot be shown is `\uXXXX` in it.
std::string jsonText(unsigned Indent,
                     llvm::function_ref<void(llvm::json::OStream &)> Write);

/// A string of YAML, in double quotes.
std::string yamlString(llvm::StringRef Text);

/// A string of the YAML of LLVM's remarks, in single quotes: its readers take
/// what is between them as it is. What cannot be shown is `\xNN` in it.
std::string llvmYamlString(llvm::StringRef Text);

/// A name, or a label, of Graphviz, in double quotes.
std::string dotString(llvm::StringRef Text);

/// A reference of RFC 3986 to the file \p Path.
std::string fileUri(llvm::StringRef Path);

/// The name of a file in a rule of Make; an error if Make has no way to say it.
llvm::Expected<std::string> makeName(llvm::StringRef File);

} // namespace graft

#endif // GRAFT_LIB_SUPPORT_ESCAPE_H
