//===- lib/certify/forms/WeightCheck.h - weights of rows --------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#ifndef GRAFT_LIB_CERTIFY_FORMS_WEIGHTCHECK_H
#define GRAFT_LIB_CERTIFY_FORMS_WEIGHTCHECK_H

#include "lib/certify/forms/InsertedForm.h"

namespace graft {

/// Reports nodes of kind Inserted::Weight that do not belong together.
void checkWeights(Comparison &C, const ProgramFacts &Facts);

} // namespace graft

#endif // GRAFT_LIB_CERTIFY_FORMS_WEIGHTCHECK_H
