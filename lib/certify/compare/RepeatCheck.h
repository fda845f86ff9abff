//===- lib/certify/compare/RepeatCheck.h - rows that repeat -----*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#ifndef GRAFT_LIB_CERTIFY_COMPARE_REPEATCHECK_H
#define GRAFT_LIB_CERTIFY_COMPARE_REPEATCHECK_H

#include "lib/certify/forms/Comparison.h"

namespace graft {

/// Checks that a program which repeats rows has the values of the single-device
/// step for any number of rows (lib/infer/facts/RepeatedRows.h).
void checkRepeats(Comparison &C, const ProgramFacts &Facts);

} // namespace graft

#endif // GRAFT_LIB_CERTIFY_COMPARE_REPEATCHECK_H
