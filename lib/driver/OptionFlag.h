//===- lib/driver/OptionFlag.h - flags for options of passes ----*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#ifndef GRAFT_LIB_DRIVER_OPTIONFLAG_H
#define GRAFT_LIB_DRIVER_OPTIONFLAG_H

#include "lib/driver/Distribution.h"
#include "lib/pass/Option.h"

namespace graft {

/// The form of the flag of an option: a value, a repeated flag, or no value.
template <typename T>
using FlagFor = std::conditional_t<
    std::is_same_v<T, bool>, llvm::cl::opt<bool>,
    std::conditional_t<std::is_same_v<T, std::vector<std::string>>,
                       llvm::cl::list<std::string>,
                       llvm::cl::opt<std::string>>>;

/// A flag that sets an option of a pass. The option defines the help, default
/// and values of the flag, and the name unless \p Mods has another name.
template <typename Options, typename T> class OptionFlag : public FlagFor<T> {
public:
  template <typename... Modifiers>
  explicit OptionFlag(Option<T> Options::*Member, const Modifiers &...Mods)
      : FlagFor<T>(llvm::StringRef((Options().*Member).name()),
                   llvm::cl::cat(distributionCategory()), Mods...),
        Member(Member) {
    Options Defaults;
    Help = (Defaults.*Member).help();
    std::string Default = (Defaults.*Member).printDefault();
    if (!std::is_same_v<T, bool> && !Default.empty())
      Help += ". Default: " + Default;
    this->setDescription(Help);
    if (llvm::StringRef Words = (Defaults.*Member).words();
        !std::is_same_v<T, bool> && !Words.empty()) {
      llvm::SmallVector<llvm::StringRef, 8> Each;
      Words.split(Each, '|');
      setWords(*this, {Each.begin(), Each.end()});
    }
  }

  /// Sets the option in \p To if the flag is given.
  llvm::Error take(Options &To) const {
    Option<T> &Set = To.*Member;
    std::string Fault;
    if constexpr (std::is_same_v<T, bool>) {
      if (this->getValue())
        Set = true;
    } else if constexpr (std::is_same_v<T, std::vector<std::string>>) {
      for (const std::string &Text : *this)
        if (Fault.empty())
          Fault = Set.add(Text);
    } else if (given(*this)) {
      Fault = Set.parse(this->getValue());
    }
    return Fault.empty() ? llvm::Error::success()
                         : usageError("--" + this->ArgStr + ": " + Fault);
  }

private:
  Option<T> Options::*Member;
  std::string Help;
};

/// Writes the value of each flag to the options that follow the flag. Stops at
/// the first error.
inline llvm::Error takeAll() { return llvm::Error::success(); }
template <typename Flag, typename Options, typename... Others>
llvm::Error takeAll(const Flag &First, Options &To, Others &...Rest) {
  if (llvm::Error E = First.take(To))
    return E;
  return takeAll(Rest...);
}

} // namespace graft

#endif // GRAFT_LIB_DRIVER_OPTIONFLAG_H
