//===- lib/pass/Option.h - options of passes --------------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
// An option is declared once, as a member of the options of its pass:
//
//   struct PaintOptions : PassOptions {
//     Option<unsigned> Coats{*this, "coats", "How many coats", 2, /*Least=*/1};
//   };
//
// The pass reads the member. The declaration also defines the text in
// pipelines, --help-pass, docs/Passes.md, and the flag that sets the option
// (lib/driver/OptionFlag.h).
//
//===----------------------------------------------------------------------===//

#ifndef GRAFT_LIB_PASS_OPTION_H
#define GRAFT_LIB_PASS_OPTION_H

#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringRef.h"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <type_traits>
#include <vector>

namespace graft {

class PassOptions;

using Strings = std::vector<std::string>;

/// Returns the number in \p Text ("64M") if the number is at most \p Limit.
std::optional<uint64_t> parseSize(llvm::StringRef Text, uint64_t Limit);

/// The common base of all options.
class OptionBase {
public:
  /// An option that is a member of \p Of.
  OptionBase(PassOptions &Of, const char *Name, std::string Help);
  virtual ~OptionBase() = default;

  const char *name() const { return Name; }
  const std::string &help() const { return Help; }
  /// Returns true if the option was set, even to its default.
  bool isGiven() const { return Given; }

  /// Sets the value from \p Text. Returns the fault of \p Text, or "".
  std::string parse(llvm::StringRef Text) {
    clear();
    return add(Text);
  }
  /// Sets the value like parse(), but appends to the values of a list.
  std::string add(llvm::StringRef Text) {
    Given = true;
    return read(Text);
  }
  virtual std::string print() const = 0;
  /// The default as text; empty if there is none.
  virtual std::string printDefault() const = 0;
  virtual bool isDefault() const = 0;
  /// The values, `a|b|c`, of an option with a fixed set of values; else empty.
  virtual llvm::StringRef words() const = 0;
  /// The separator of a list's values; '\0' if the option is no list.
  virtual char separator() const = 0;
  /// Returns true if a comma is a part of the value unless an option follows.
  virtual bool takesCommas() const = 0;

protected:
  OptionBase(const OptionBase &) = default;
  OptionBase &operator=(const OptionBase &) = default;

  virtual void clear() = 0;
  virtual std::string read(llvm::StringRef Text) = 0;

  bool Given = false;

private:
  const char *Name;
  std::string Help;
};

// Conversions of each type from text. They return the fault of the text, or "".
std::string readNumber(llvm::StringRef Text, uint64_t Least, uint64_t Most,
                       uint64_t &To);
std::string readWord(llvm::StringRef Text, llvm::StringRef Words, uint64_t &To);
std::string readList(llvm::StringRef Text, char Separator, Strings &To);

/// Returns the names of the values 0, 1, ... of an enum, as `a|b|c`. Each enum
/// has an overload.
constexpr llvm::StringLiteral wordsOf(bool) { return "false|true"; }

/// An option whose value is a T: a bool, a number, an enum, a string or a list
/// of strings.
template <typename T, char Separator = ';', bool TakesCommas = Separator == ','>
class Option final : public OptionBase {
  static constexpr bool IsString = std::is_same_v<T, std::string>;
  static constexpr bool IsList = std::is_class_v<T> && !IsString;
  static constexpr bool IsNumber =
      std::is_integral_v<T> && !std::is_same_v<T, bool>;

public:
  /// \p Least and \p Most are bounds of a number.
  Option(PassOptions &Of, const char *Name, std::string Help, T Default = {},
         uint64_t Least = 0, uint64_t Most = UINT64_MAX)
      : OptionBase(Of, Name, std::move(Help)), Value(Default),
        Default(std::move(Default)), Least(Least), Most(Most) {}

  operator const T &() const { return Value; }
  const T &operator*() const { return Value; }
  const T *operator->() const { return &Value; }
  Option &operator=(T New) {
    Value = std::move(New);
    Given = true;
    return *this;
  }

  std::string print() const override { return print(Value); }
  std::string printDefault() const override {
    if constexpr (IsNumber)
      if (Default < Least)
        return "";
    return print(Default);
  }
  bool isDefault() const override { return Value == Default; }
  llvm::StringRef words() const override {
    if constexpr (IsString || IsList || IsNumber)
      return "";
    else
      return wordsOf(T());
  }
  char separator() const override { return IsList ? Separator : '\0'; }
  bool takesCommas() const override { return IsList && TakesCommas; }

private:
  static std::string print(const T &Of) {
    if constexpr (IsString) {
      return Of;
    } else if constexpr (IsList) {
      return llvm::join(Of, llvm::StringRef(&Between, 1));
    } else if constexpr (IsNumber) {
      return std::to_string(Of);
    } else {
      llvm::SmallVector<llvm::StringRef, 8> Words;
      wordsOf(T()).split(Words, '|');
      return Words[static_cast<size_t>(Of)].str();
    }
  }

  void clear() override {
    if constexpr (IsList)
      Value.clear();
  }

  std::string read(llvm::StringRef Text) override {
    if constexpr (IsString) {
      Value = Text.str();
      return "";
    } else if constexpr (IsList) {
      return readList(Text, Separator, Value);
    } else {
      uint64_t Number = 0;
      std::string Fault;
      if constexpr (IsNumber)
        Fault = readNumber(
            Text, Least,
            std::min<uint64_t>(Most, std::numeric_limits<T>::max()), Number);
      else
        Fault = readWord(Text, wordsOf(T()), Number);
      if (Fault.empty())
        Value = static_cast<T>(Number);
      return Fault;
    }
  }

  static constexpr char Between = Separator;
  T Value, Default;
  uint64_t Least, Most;
};

/// The base of a struct whose members are the options of a pass.
class PassOptions {
public:
  /// The options in the order of their declaration.
  llvm::SmallVector<const OptionBase *, 8> all() const;
  /// The option called \p Name, or null.
  OptionBase *find(llvm::StringRef Name);

private:
  friend class OptionBase;
  /// The offsets of the options in the object, so that it can be copied.
  llvm::SmallVector<uint16_t, 8> Offsets;
};

} // namespace graft

#endif // GRAFT_LIB_PASS_OPTION_H
