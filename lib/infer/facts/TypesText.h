//===- lib/infer/facts/TypesText.h - types as text --------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#ifndef GRAFT_LIB_INFER_FACTS_TYPESTEXT_H
#define GRAFT_LIB_INFER_FACTS_TYPESTEXT_H

#include "lib/infer/facts/ProgramFacts.h"

namespace graft {

/// Returns the types and sizes of the tensors of a program, one line for each:
///
///     grad:0 = Partial(sum) k=1 copies=2 shape=[4,1]
///     size:0 = Replicated size copies=2 shape=[] value=[b(x)]
///
/// docs/Types.md explains the words.
std::string typesText(const Graph &G, const ProgramFacts &Facts);

} // namespace graft

#endif // GRAFT_LIB_INFER_FACTS_TYPESTEXT_H
