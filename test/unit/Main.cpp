//===- test/unit/Main.cpp - entry point of the unit tests -------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// The only file that compiles Catch2's runner; test files include just
// <catch2/catch.hpp>.
//
//===----------------------------------------------------------------------===//

#define CATCH_CONFIG_MAIN
#include <catch2/catch.hpp>
