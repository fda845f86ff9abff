//===- lib/pass/Option.h - options of passes --------------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
// An option is declared once, as a member of the options of its pass:
//
//   struct PaintOptions : PassOptions {
//     Option<unsigned> Coats{*this, "coats", "How many coats", 2, {.Least =
//     1}};
//   };
//
// The pass reads the member; parsing and printing of pipelines, --help-pass,
// docs/Passes.md and flags that set it (lib/driver/OptionFlag.h) read the rest.
//
//===----------------------------------------------------------------------===//

#ifndef GRAFT_LIB_PASS_OPTION_H
#define GRAFT_LIB_PASS_OPTION_H

#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringRef.h"

#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <type_traits>
#include <vector>

namespace graft {

class PassOptions;

/// The number that "64M" and the like are: at most \p Limit.
std::optional<uint64_t> parseSize(llvm::StringRef Text, uint64_t Limit);

/// Which texts are values of an option.
struct OptionSyntax {
  uint64_t Least = 0;            ///< Of numbers.
  uint64_t Most = UINT64_MAX;    ///< Of numbers.
  llvm::StringLiteral Words{""}; ///< Of an enum: its values, `a|b|c`.
  char Separator = ';';          ///< Of a list.
  /// Its text may have commas: one goes on unless an option follows.
  bool TakesCommas = false;
};

/// What all options have in common.
class OptionBase {
public:
  /// An option of \p Of, of which it is a member.
  OptionBase(PassOptions &Of, const char *Name, std::string Help,
             const OptionSyntax &Syntax);
  virtual ~OptionBase() = default;

  const char *name() const { return Name; }
  const std::string &help() const { return Help; }
  /// The help with the form of a list, for who writes pipelines.
  std::string describe() const {
    return isList() ? Help + " (separated by " + Syntax.Separator + ")" : Help;
  }
  bool takesCommas() const {
    return Syntax.TakesCommas || Syntax.Separator == ',';
  }
  /// Whether it was set, be it to its default.
  bool isGiven() const { return Given; }

  /// Sets the value that \p Text is. Returns what is wrong with \p Text; empty:
  /// nothing.
  std::string parse(llvm::StringRef Text) {
    clear();
    return add(Text);
  }
  /// The same, but of a list more values.
  std::string add(llvm::StringRef Text) {
    Given = true;
    return read(Text);
  }
  virtual std::string print() const = 0;
  /// The default as text; empty: there is none.
  virtual std::string printDefault() const = 0;
  virtual bool isDefault() const = 0;
  virtual bool isList() const = 0;

protected:
  OptionBase(const OptionBase &) = default;
  OptionBase &operator=(const OptionBase &) = default;

  virtual void clear() = 0;
  virtual std::string read(llvm::StringRef Text) = 0;

  // What the types of values share.
  std::string readNumber(llvm::StringRef Text, uint64_t Most,
                         uint64_t &To) const;
  std::string readWord(llvm::StringRef Text, uint64_t &To) const;
  std::string readList(llvm::StringRef Text,
                       std::vector<std::string> &To) const;
  std::string word(uint64_t Index) const;
  std::string printList(const std::vector<std::string> &List) const;

  const char *Name;
  std::string Help;
  OptionSyntax Syntax;
  bool Given = false;
};

/// An option whose value is a T: a flag, a number, an enum whose values are
/// 0, 1, ..., a string or a list of strings.
template <typename T> class Option final : public OptionBase {
  static constexpr bool IsBool = std::is_same_v<T, bool>;
  static constexpr bool IsString = std::is_same_v<T, std::string>;
  static constexpr bool IsNumber = std::is_integral_v<T> && !IsBool;

public:
  using ValueType = T;

  Option(PassOptions &Of, const char *Name, std::string Help, T Default = {},
         const OptionSyntax &Syntax = {})
      : OptionBase(Of, Name, std::move(Help), Syntax), Value(Default),
        Default(std::move(Default)) {
    if constexpr (IsBool)
      this->Syntax.Words = "false|true";
  }

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
      if (Default < Syntax.Least)
        return "";
    return print(Default);
  }
  bool isDefault() const override { return Value == Default; }
  bool isList() const override { return std::is_class_v<T> && !IsString; }

private:
  std::string print(const T &Of) const {
    if constexpr (IsString)
      return Of;
    else if constexpr (IsNumber)
      return std::to_string(Of);
    else if constexpr (IsBool || std::is_enum_v<T>)
      return word(static_cast<uint64_t>(Of));
    else
      return printList(Of);
  }

  void clear() override {
    if constexpr (!IsString && std::is_class_v<T>)
      Value.clear();
  }

  std::string read(llvm::StringRef Text) override {
    uint64_t Number = 0;
    std::string Fault;
    if constexpr (IsString) {
      Value = Text.str();
      return Fault;
    } else if constexpr (IsNumber) {
      Fault = readNumber(Text, std::numeric_limits<T>::max(), Number);
    } else if constexpr (IsBool || std::is_enum_v<T>) {
      Fault = readWord(Text, Number);
    } else {
      return readList(Text, Value);
    }
    if constexpr (!std::is_class_v<T>)
      if (Fault.empty())
        Value = static_cast<T>(Number);
    return Fault;
  }

  T Value, Default;
};

/// The options of a pass: a base of a struct whose members are its options.
class PassOptions {
public:
  /// The options in the order of their declaration.
  llvm::SmallVector<const OptionBase *, 8> all() const;
  /// The option called \p Name, or null.
  OptionBase *find(llvm::StringRef Name);

private:
  friend class OptionBase;
  /// Where they are in the object, so that it can be copied.
  llvm::SmallVector<uint16_t, 8> Offsets;
};

} // namespace graft

#endif // GRAFT_LIB_PASS_OPTION_H
