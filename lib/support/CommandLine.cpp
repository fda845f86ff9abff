//===- lib/support/CommandLine.cpp - flags of all programs ------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "lib/support/CommandLine.h"

#include "lib/support/Diagnostics.h"
#include "lib/support/Escape.h"

#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/raw_ostream.h"

#include <cerrno>
#include <cstdlib>
#include <fcntl.h>
#include <unistd.h>

using namespace llvm;

namespace graft {

char UsageError::ID = 0;

/// A function, because options are constructed before main.
static DenseMap<const cl::Option *, std::vector<std::string>> &words() {
  static DenseMap<const cl::Option *, std::vector<std::string>> Words;
  return Words;
}

void setWords(const cl::Option &O, std::vector<std::string> Words) {
  words()[&O] = std::move(Words);
}

std::vector<cl::Option *>
optionsOf(ArrayRef<const cl::OptionCategory *> Categories) {
  std::vector<cl::Option *> Options;
  for (const auto &[Name, O] : cl::getRegisteredOptions())
    if (any_of(O->Categories, [&](const cl::OptionCategory *C) {
          return is_contained(Categories, C);
        }))
      Options.push_back(O);
  sort(Options, [](const cl::Option *A, const cl::Option *B) {
    return A->ArgStr < B->ArgStr;
  });
  return Options;
}

/// Returns the option as it is typed: -o, --replicas.
static std::string dashed(const cl::Option &O) {
  return ((O.ArgStr.size() == 1 ? "-" : "--") + O.ArgStr).str();
}

Error checkRepeated(ArrayRef<const cl::OptionCategory *> Categories) {
  for (const cl::Option *O : optionsOf(Categories))
    // A repeated flag without a value has no effect. A list may be repeated.
    if (O->getNumOccurrencesFlag() == cl::Optional && !O->ValueStr.empty() &&
        O->getNumOccurrences() > 1)
      return make_error<UsageError>(dashed(*O) + " is given " +
                                    std::to_string(O->getNumOccurrences()) +
                                    " times, and takes one value");
  return Error::success();
}

void printOptionsJson(raw_ostream &OS, const ProgramHelp &Help) {
  OS << jsonText(1, [&](json::OStream &J) {
    J.objectBegin();
    J.attribute("overview", Help.Overview);
    J.attribute("positional", Help.Positional.HelpStr);
    J.attributeArray("options", [&] {
      for (const cl::OptionCategory *C : Help.Categories)
        for (const cl::Option *O : optionsOf(C)) {
          if (O->getOptionHiddenFlag() != cl::NotHidden)
            continue;
          J.object([&] {
            J.attribute("name", dashed(*O));
            J.attribute("category", C->getName());
            if (!O->ValueStr.empty()) {
              J.attribute("value", O->ValueStr);
              J.attribute("optional",
                          O->getValueExpectedFlag() == cl::ValueOptional);
            }
            J.attribute("repeated",
                        O->getNumOccurrencesFlag() == cl::ZeroOrMore);
            if (auto It = words().find(O); It != words().end())
              J.attribute("words", json::Array(It->second));
            J.attribute("help", O->HelpStr);
          });
        }
    });
    J.attributeArray("exits", [&] {
      for (const auto &[Status, Meaning] : Help.Exits)
        J.object([&] {
          J.attribute("status", Status);
          J.attribute("meaning", Meaning);
        });
    });
    J.objectEnd();
  });
}

/// Prints \p O and its help, in lines of at most 100 columns.
static void printOption(raw_ostream &OS, const cl::Option &O) {
  constexpr size_t Width = 100, Column = 24;
  std::string Name = dashed(O);
  if (!O.ValueStr.empty()) {
    bool MayLack = O.getValueExpectedFlag() == cl::ValueOptional;
    StringRef Between = O.ArgStr.size() == 1 ? " " : "=";
    Name += (MayLack ? "[" : "") + Between.str() + "<" + O.ValueStr.str() +
            ">" + (MayLack ? "]" : "");
  }
  OS << "  " << Name;
  size_t At = Name.size() + 2;
  if (At + 2 > Column) {
    OS << '\n';
    At = 0;
  }
  SmallVector<StringRef, 32> Words;
  O.HelpStr.split(Words, ' ', -1, /*KeepEmpty=*/false);
  bool IsFirst = true;
  for (StringRef Word : Words) {
    if (!IsFirst && At + 1 + Word.size() > Width) {
      OS << '\n';
      At = 0;
      IsFirst = true;
    }
    if (IsFirst) {
      OS.indent(static_cast<unsigned>(Column - At));
      At = Column;
    } else {
      OS << ' ';
      ++At;
    }
    OS << Word;
    At += Word.size();
    IsFirst = false;
  }
  OS << '\n';
}

void printHelpIfAsked(int Argc, char **Argv, const ProgramHelp &Help,
                      StringRef Examples, ArrayRef<StringRef> Common) {
  bool Asked = false, All = false;
  for (int I = 1; I < Argc && StringRef(Argv[I]) != "--"; ++I) {
    StringRef Word(Argv[I]);
    Asked |= Word == "--help" || Word == "-help" || Word == "-h";
    All |= Word == "--help-all" || Word == "-help-all";
  }
  if (!Asked && !All)
    return;
  raw_ostream &OS = outs();
  OS << Help.Overview << "\nusage: " << sys::path::filename(Argv[0])
     << " [options] " << Help.Positional.HelpStr << "\n\n"
     << Examples;
  if (All) {
    for (const cl::OptionCategory *C : Help.Categories) {
      OS << '\n' << C->getName() << ":\n\n";
      for (const cl::Option *O : optionsOf(C))
        if (O->getOptionHiddenFlag() == cl::NotHidden)
          printOption(OS, *O);
    }
  } else {
    OS << '\n';
    for (StringRef Name : Common)
      printOption(OS, *cl::getRegisteredOptions().lookup(Name));
    OS << "\n--help-all lists all options.\n";
  }
  std::exit(ExitGood);
}

/// Returns the message \p Text of LLVM's parser in the form of other errors.
static std::string usageText(StringRef Text) {
  Text.consume_front(": ");
  auto [First, Rest] = Text.trim().split('\n');
  if (First.consume_front("Unknown command line argument '")) {
    StringRef Word = First.split('\'').first;
    StringRef Near = Rest.split('\'').second.split('\'').first;
    std::vector<std::string> Known;
    if (!Near.empty())
      Known.push_back(Near.str());
    return ("unknown option '" + Word + "'" +
            didYouMean(Word, Known, "; --help lists the options"))
        .str();
  }
  if (First.starts_with("Too many positional"))
    return "too many files or arguments; --help shows the usage";
  if (First.starts_with("Not enough positional"))
    return "a file or an argument is missing; --help shows the usage";
  return First.str();
}

void parseOptions(int Argc, char **Argv, StringRef Overview) {
  std::string Text;
  raw_string_ostream OS(Text);
  if (cl::ParseCommandLineOptions(Argc, Argv, Overview, &OS))
    return;
  // LLVM prints an error of a value itself.
  if (Text.empty())
    std::exit(ExitUsage);
  StringRef Program = sys::path::filename(Argv[0]), Message = Text;
  // The parser may name the program by its path.
  if (!Message.consume_front(Program))
    Message.consume_front(Argv[0]);
  std::exit(
      failProgram(Program, createStringError(usageText(Message)), ExitUsage));
}

void parseProgram(int Argc, char **Argv, const ProgramHelp &Help) {
  cl::HideUnrelatedOptions(Help.Categories);
  // Positional arguments may be required: do not parse.
  if (Argc == 2 && StringRef(Argv[1]) == "--print-options-json") {
    printOptionsJson(outs(), Help);
    std::exit(ExitGood);
  }
  parseOptions(Argc, Argv, Help.Overview);
  if (Error E = checkRepeated(Help.Categories))
    std::exit(
        failProgram(sys::path::filename(Argv[0]), std::move(E), ExitUsage));
}

namespace {

struct StartedProgram {
  std::string Name;
  int Trouble;
};
StartedProgram *Started = nullptr;

} // namespace

bool flushPrinted() {
  outs().flush();
  std::error_code Fault = outs().error();
  if (!Fault)
    return true;
  // Otherwise LLVM treats the error as a bug of the program.
  outs().clear_error();
  failProgram(
      Started ? StringRef(Started->Name) : "graft",
      createStringError(Fault, "cannot write '<stdout>': " + Fault.message()));
  return false;
}

void startProgram(StringRef Program, int Trouble) {
  // A closed stream stays unusable, but messages to it are dropped.
  for (int Stream : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO})
    if (::fcntl(Stream, F_GETFD) < 0 && errno == EBADF)
      if (::open("/dev/null", Stream == STDOUT_FILENO ? O_RDONLY : O_WRONLY) !=
          Stream)
        ::_exit(Trouble);
  Started = new StartedProgram{Program.str(), Trouble};
  // Construct the streams first, so that they are destroyed after the handler.
  outs();
  errs();
  std::atexit([] {
    bool Arrived = flushPrinted();
    errs().clear_error();
    if (!Arrived)
      ::_exit(Started->Trouble);
  });
}

int failProgram(StringRef Program, Error E, int Status) {
  errs() << Program << ": error: " << escapeControls(toString(std::move(E)))
         << '\n';
  return Status;
}

} // namespace graft
