//===- test/unit/infer/RulesTest.cpp - entries of ops -----------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "lib/infer/rules/Rules.h"

#include "lib/ops/OpTable.h"

#include "llvm/ADT/StringSet.h"

#include <catch2/catch.hpp>

using namespace graft;

static llvm::SmallVector<llvm::ArrayRef<OpRule>, 32> allFamilies() {
  return {
#define GRAFT_FAMILY(Name) families::Name(),
#include "lib/infer/rules/Families.def"
  };
}

TEST_CASE("an op has one entry, and exists", "[rules]") {
  llvm::StringSet<> Seen;
  for (llvm::ArrayRef<OpRule> Family : allFamilies())
    for (const OpRule &Rule : Family) {
      INFO(Rule.Op.str());
      CHECK(Seen.insert(Rule.Op).second);
      CHECK((findOp(Rule.Op) || Rule.Op.starts_with("_")));
      CHECK(&ruleOf(Rule.Op) == &Rule);
    }
  CHECK(Seen.size() > 500);
}

TEST_CASE("letters of rows name every operand and result", "[rules]") {
  for (llvm::ArrayRef<OpRule> Family : allFamilies())
    for (const OpRule &Rule : Family) {
      INFO(Rule.Op.str());
      CHECK(Rule.Inputs.empty() == Rule.Outputs.empty());
      for (char Letter : Rule.Inputs)
        CHECK(llvm::StringRef("rltmp0123456789").contains(Letter));
      for (char Letter : Rule.Outputs)
        CHECK(llvm::StringRef("rti+0123456789").contains(Letter));
    }
}
