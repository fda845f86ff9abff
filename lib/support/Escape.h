//===- lib/support/Escape.h - names in other languages ----------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
// Functions that write a name in a language such as JSON. A reader of the
// language then reads exactly this name, whatever its bytes are. For terminals
// see escapeControls() of Diagnostics.h.
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

/// Returns the size of the first character of \p Text if it can be shown; 0 for
/// controls, marks that change the direction of writing, noncharacters, and
/// bytes that are not UTF-8.
unsigned shownLength(llvm::StringRef Text);

/// Returns \p Text for a JSON string: bytes that are not UTF-8 become U+FFFD.
std::string utf8(llvm::StringRef Text);

/// Returns the document that \p Write writes, in lines if \p Indent is not 0.
/// Characters that cannot be shown are written `\uXXXX`.
std::string jsonText(unsigned Indent,
                     llvm::function_ref<void(llvm::json::OStream &)> Write);

/// Returns a YAML string, in double quotes.
std::string yamlString(llvm::StringRef Text);

/// Returns a string, in single quotes, for the YAML of LLVM's remarks. Readers
/// of this YAML do not unescape. Bytes that cannot be shown are written `\xNN`.
std::string llvmYamlString(llvm::StringRef Text);

/// Returns a name or a label of Graphviz, in double quotes.
std::string dotString(llvm::StringRef Text);

/// Returns \p Text as one word of a POSIX shell, in single quotes if needed.
std::string shellWord(llvm::StringRef Text);

/// Returns an RFC 3986 reference to the file \p Path.
std::string fileUri(llvm::StringRef Path);

/// Returns a file name in a rule of Make; an error if Make cannot express it.
llvm::Expected<std::string> makeName(llvm::StringRef File);

} // namespace graft

#endif // GRAFT_LIB_SUPPORT_ESCAPE_H
