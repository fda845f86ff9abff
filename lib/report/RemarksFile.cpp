//===- lib/report/RemarksFile.cpp - messages for programs -------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "lib/report/RemarksFile.h"

#include "lib/report/MessageHelp.h"
#include "lib/support/Escape.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSwitch.h"
#include "llvm/Support/Path.h"

using namespace llvm;

namespace graft {

RemarksFormat remarksFormatOf(StringRef File) {
  if (File.ends_with(".opt.yaml"))
    return RemarksFormat::OptYaml;
  return StringSwitch<RemarksFormat>(sys::path::extension(File))
      .Case(".json", RemarksFormat::Json)
      .Case(".sarif", RemarksFormat::Sarif)
      .Case(".txt", RemarksFormat::Text)
      .Default(RemarksFormat::Yaml);
}

//===----------------------------------------------------------------------===//
// YAML
//===----------------------------------------------------------------------===//

static void printYamlFact(raw_ostream &OS, const FactValue &Value) {
  if (const auto *Number = std::get_if<int64_t>(&Value)) {
    OS << *Number;
  } else if (const auto *List = std::get_if<std::vector<std::string>>(&Value)) {
    OS << '[';
    ListSeparator Comma;
    for (const std::string &Each : *List) {
      OS << Comma << yamlString(Each);
    }
    OS << ']';
  } else {
    OS << yamlString(std::get<std::string>(Value));
  }
}

std::string remarksYaml(const DiagnosticEngine &Diags) {
  std::string Out;
  raw_string_ostream OS(Out);
  for (const Diagnostic &D : Diags.all()) {
    StringRef Level = severityName(D.Level);
    OS << "--- !" << char(toUpper(Level[0])) << Level.drop_front() << '\n';
    auto Line = [&](StringRef Key, StringRef Value) {
      if (Value.empty())
        return;
      OS << Key << ": " << yamlString(Value) << '\n';
    };
    Line("Id", D.Id);
    Line("Pass", D.Pass);
    Line("Function", D.Function);
    Line("Node", D.Node);
    Line("File", D.File);
    if (D.Line != 0)
      OS << "Line: " << D.Line << '\n';
    Line("Message", D.Message);
    if (!D.Facts.empty())
      OS << "Facts:\n";
    for (const auto &[Key, Value] : D.Facts) {
      OS << "  " << yamlString(Key) << ": ";
      printYamlFact(OS, Value);
      OS << '\n';
    }
    if (!D.Notes.empty())
      OS << "Notes:\n";
    for (const auto &[Node, Message] : D.Notes) {
      OS << "  - " << yamlString(withNode(Node, Message)) << '\n';
    }
    OS << "...\n";
  }
  return Out;
}

//===----------------------------------------------------------------------===//
// LLVM's YAML
//===----------------------------------------------------------------------===//

/// Returns the kind of LLVM's remarks for \p D: passed, missed or failed, or an
/// analysis that explains other remarks.
static StringRef llvmKind(const Diagnostic &D) {
  if (D.Level == Severity::Error)
    return "Failure";
  if (D.Level == Severity::Warning)
    return "Missed";
  return StringSwitch<StringRef>(D.Id)
      .Cases("once", "spread", "loop", "local", "Missed")
      .Cases("feed", "fed-size", "batch", "constant", "strategy", "Analysis")
      .Cases("types", "worker", "Analysis")
      .Default("Passed");
}

/// Prints the text of \p D as arguments, one after the other; a list has an
/// argument for each element.
static void printArgs(raw_ostream &OS, const Diagnostic &D) {
  auto Arg = [&](StringRef Key, StringRef Value) {
    OS << "  - " << Key << ": " << llvmYamlString(Value) << '\n';
  };
  OS << "Args:\n";
  Arg("String", D.Message);
  for (const auto &[Key, Value] : D.Facts) {
    Arg("String", "; " + Key + " ");
    if (const auto *List = std::get_if<std::vector<std::string>>(&Value)) {
      for (const auto &[I, Each] : enumerate(*List)) {
        if (I != 0)
          Arg("String", ", ");
        Arg(Key, Each);
      }
    } else {
      Arg(Key, factText(Value));
    }
  }
  for (const auto &[Node, Message] : D.Notes) {
    Arg("String", "; note: ");
    Arg("Note", withNode(Node, Message));
  }
}

std::string remarksOptYaml(const DiagnosticEngine &Diags, StringRef File) {
  std::string Out;
  raw_string_ostream OS(Out);
  for (const Diagnostic &D : Diags.all()) {
    OS << "--- !" << llvmKind(D) << '\n'
       << "Pass: " << llvmYamlString(D.Pass.empty() ? "graft-opt" : D.Pass)
       << "\nName: "
       << llvmYamlString(D.Id.empty() ? severityName(D.Level) : StringRef(D.Id))
       << '\n';
    if (D.Line != 0)
      OS << "DebugLoc: { File: "
         << llvmYamlString(D.File.empty() ? File : StringRef(D.File))
         << ", Line: " << D.Line << ", Column: " << D.Column << " }\n";
    // LLVM's field for a function contains the node.
    OS << "Function: "
       << llvmYamlString(D.Node.empty() ? "(graph)" : StringRef(D.Node))
       << '\n';
    printArgs(OS, D);
    OS << "...\n";
  }
  return Out;
}

//===----------------------------------------------------------------------===//
// JSON and SARIF
//===----------------------------------------------------------------------===//

static void attribute(json::OStream &J, StringRef Key, StringRef Value) {
  if (!Value.empty())
    J.attribute(Key, utf8(Value));
}

static json::Value factJson(const FactValue &Value) {
  if (const auto *Number = std::get_if<int64_t>(&Value))
    return *Number;
  if (const auto *List = std::get_if<std::vector<std::string>>(&Value)) {
    json::Array Out;
    for (const std::string &Each : *List)
      Out.push_back(utf8(Each));
    return Out;
  }
  return utf8(std::get<std::string>(Value));
}

static void facts(json::OStream &J, StringRef Name, const Diagnostic &D) {
  if (!D.Facts.empty())
    J.attributeObject(Name, [&] {
      for (const auto &[Key, Value] : D.Facts)
        J.attribute(Key, factJson(Value));
    });
}

void remarkFields(json::OStream &J, const Diagnostic &D, StringRef Help) {
  attribute(J, "Level", severityName(D.Level));
  attribute(J, "Id", D.Id);
  attribute(J, "Pass", D.Pass);
  attribute(J, "Function", D.Function);
  attribute(J, "Node", D.Node);
  attribute(J, "File", D.File);
  if (D.Line != 0)
    J.attribute("Line", D.Line);
  attribute(J, "Message", D.Message);
  facts(J, "Facts", D);
  if (!D.Notes.empty())
    J.attributeArray("Notes", [&] {
      for (const auto &[Node, Message] : D.Notes)
        J.value(utf8(withNode(Node, Message)));
    });
  attribute(J, "Help", Help);
}

std::string remarksJson(const DiagnosticEngine &Diags) {
  return jsonText(1, [&](json::OStream &J) {
    J.array([&] {
      for (const Diagnostic &D : Diags.all())
        J.object([&] { remarkFields(J, D); });
    });
  });
}

namespace {

class SarifWriter {
public:
  SarifWriter(json::OStream &J, StringRef File) : J(J), File(File) {}

  void log(const DiagnosticEngine &Diags);

private:
  void text(StringRef Key, StringRef Text) {
    J.attributeObject(Key, [&] { attribute(J, "text", Text); });
  }
  void driver();
  void result(const Diagnostic &D);
  void location(StringRef Of, StringRef Node, unsigned Line, unsigned Column);

  json::OStream &J;
  StringRef File;
  std::vector<MessageHelp> Rules = messageHelp();
};

/// Returns the id of a rule. A remark and a warning may share an id, but rules
/// may not.
std::string ruleId(StringRef Id, bool IsRemark) {
  return ((IsRemark ? "remark/" : "") + Id).str();
}

void SarifWriter::driver() {
  J.attribute("name", "graft-opt");
  J.attribute("semanticVersion", GRAFT_VERSION);
  J.attributeArray("rules", [&] {
    for (const MessageHelp &Rule : Rules)
      J.object([&] {
        J.attribute("id", ruleId(Rule.Id, Rule.IsRemark));
        text("shortDescription", Rule.Says);
        text("help", Rule.ToDo);
        J.attributeObject("defaultConfiguration", [&] {
          J.attribute("level", Rule.IsRemark ? "note" : "warning");
        });
      });
  });
}

void SarifWriter::location(StringRef Of, StringRef Node, unsigned Line,
                           unsigned Column) {
  J.attributeObject("physicalLocation", [&] {
    J.attributeObject("artifactLocation",
                      [&] { J.attribute("uri", fileUri(Of)); });
    if (Line != 0)
      J.attributeObject("region", [&] {
        J.attribute("startLine", Line);
        if (Column != 0)
          J.attribute("startColumn", Column);
      });
  });
  if (!Node.empty())
    J.attributeArray("logicalLocations", [&] {
      J.object([&] {
        attribute(J, "fullyQualifiedName", Node);
        J.attribute("kind", "node");
      });
    });
}

void SarifWriter::result(const Diagnostic &D) {
  bool IsRemark = D.Level == Severity::Remark;
  if (const MessageHelp *Rule = helpOf(Rules, D)) {
    J.attribute("ruleId", ruleId(D.Id, IsRemark));
    J.attribute("ruleIndex", Rule - Rules.data());
  }
  J.attribute("level", IsRemark ? "note" : severityName(D.Level));
  text("message", D.Message);
  J.attributeArray("locations", [&] {
    J.object([&] {
      location(D.File.empty() ? File : StringRef(D.File), D.Node, D.Line,
               D.Column);
    });
  });
  if (!D.Notes.empty())
    J.attributeArray("relatedLocations", [&] {
      for (const auto &[Node, Message] : D.Notes)
        J.object([&, &Node = Node, &Message = Message] {
          location(File, Node, 0, 0);
          text("message", Message);
        });
    });
  J.attributeObject("properties", [&] {
    attribute(J, "pass", D.Pass);
    attribute(J, "function", D.Function);
    facts(J, "facts", D);
  });
}

void SarifWriter::log(const DiagnosticEngine &Diags) {
  J.object([&] {
    J.attribute("$schema", "https://docs.oasis-open.org/sarif/sarif/v2.1.0/"
                           "errata01/os/schemas/sarif-schema-2.1.0.json");
    J.attribute("version", "2.1.0");
    J.attributeArray("runs", [&] {
      J.object([&] {
        J.attributeObject(
            "tool", [&] { J.attributeObject("driver", [&] { driver(); }); });
        J.attributeArray("results", [&] {
          for (const Diagnostic &D : Diags.all())
            J.object([&] { result(D); });
        });
      });
    });
  });
}

} // namespace

std::string remarksSarif(const DiagnosticEngine &Diags, StringRef File) {
  return jsonText(1,
                  [&](json::OStream &J) { SarifWriter(J, File).log(Diags); });
}

} // namespace graft
