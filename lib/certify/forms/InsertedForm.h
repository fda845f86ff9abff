//===- lib/certify/forms/InsertedForm.h - what a kind of nodes is ---------===//
//
// SPDX-License-Identifier: Apache-2.0
//
// What the certificate has to know of a kind of inserted nodes
// (lib/graph/Inserted.def) is one InsertedForm. The file that has the check of
// a kind defines it.
//
//===----------------------------------------------------------------------===//

#ifndef GRAFT_LIB_CERTIFY_FORMS_INSERTEDFORM_H
#define GRAFT_LIB_CERTIFY_FORMS_INSERTEDFORM_H

#include "lib/certify/forms/Comparison.h"
#include "lib/certify/forms/LoweredFile.h"

namespace graft {

struct InsertedForm {
  /// The tensor that \p E, an output of a node of this kind, stands for; \p E
  /// where only the whole of several nodes does, and no node if none does.
  /// Null: there is none.
  Endpoint (*StandsFor)(const Comparison &C, Endpoint E) = nullptr;
  /// Reports what is wrong with \p N, of this kind.
  void (*Check)(Comparison &C, const ProgramFacts &Facts, NodeId N) = nullptr;
  /// Whether \p N, which the input does not have, is of this kind. Null: it is
  /// in no file, or has a stamp there.
  bool (*Recognize)(const LoweredFile &File, NodeId N) = nullptr;
  /// By OpKind, a bit: the ops that do nothing to true values. What their
  /// parameters make of local values is for the types to say.
  uint32_t Forwards = 0;
  /// Does to each element of a tensor what it does to the tensor.
  bool IsElementwise = false;
  /// Attribute `T` is the type of input 0.
  bool IsTyped = false;
  /// Writes each copy of a variable by itself: copy 0 waits for no other.
  bool WritesCopies = false;
  /// What its ops keep and do is of one run, or of nobody but what was
  /// inserted: no other run can tell (lib/certify/compare/RunsApart.h).
  bool IsUnseen = false;
};

#define GRAFT_INSERTED(Kind, Name, Is, StandsFor)                              \
  extern const InsertedForm Kind##Form;
#include "lib/graph/Inserted.def"

/// The form of \p Kind; of Inserted::No, one that stands for nothing.
const InsertedForm &formOf(Inserted Kind);

/// The kind of \p N, which the input does not have and which has no stamp.
Inserted recognizeInserted(const LoweredFile &File, NodeId N);

/// Whether \p N was inserted and does nothing to true values, by its op.
bool forwards(const Comparison &C, NodeId N);

/// To take a value runs nothing that the input does not run for it: \p N, which
/// was inserted and is no gate, waits at gates only.
void checkWaits(Comparison &C, NodeId N);

/// Whether \p N was inserted to run what compares copies, and nothing else.
bool runsChecks(const Graph &G, NodeId N);

/// Whether \p N assigns a variable.
bool assigns(const Graph &G, NodeId N);

} // namespace graft

#endif // GRAFT_LIB_CERTIFY_FORMS_INSERTEDFORM_H
