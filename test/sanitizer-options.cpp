//===- test/sanitizer-options.cpp - defaults for sanitizers -----*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
// Linked into the programs of a sanitized build. Debian's LLVM libraries are
// not instrumented: they would be reported for writing to an arena that our
// code poisoned. So poisoning by hand is off.
//
//===----------------------------------------------------------------------===//

extern "C" const char *__asan_default_options();
extern "C" const char *__ubsan_default_options();

const char *__asan_default_options() {
  return "allow_user_poisoning=0:detect_leaks=1";
}

const char *__ubsan_default_options() { return "print_stacktrace=1"; }
