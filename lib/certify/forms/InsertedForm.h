//===- lib/certify/forms/InsertedForm.h - the form of a kind of nodes -----===//
//
// SPDX-License-Identifier: Apache-2.0
//
// An InsertedForm has all that the certificate must know of a kind of inserted
// nodes (lib/graph/Inserted.def). The file that checks a kind defines it.
//
//===----------------------------------------------------------------------===//

#ifndef GRAFT_LIB_CERTIFY_FORMS_INSERTEDFORM_H
#define GRAFT_LIB_CERTIFY_FORMS_INSERTEDFORM_H

#include "lib/certify/forms/Comparison.h"
#include "lib/certify/forms/LoweredFile.h"

namespace graft {

struct InsertedForm {
  /// Returns the tensor that \p E, an output of a node of this kind, stands
  /// for: \p E itself if only several nodes together do, no node if it stands
  /// for none. Null: no node of the kind stands for a tensor.
  Endpoint (*StandsFor)(const Comparison &C, Endpoint E) = nullptr;
  /// Reports the errors of \p N, a node of this kind.
  void (*Check)(Comparison &C, const ProgramFacts &Facts, NodeId N) = nullptr;
  /// Returns true if \p N, which the input does not have, is of this kind.
  /// Null: such nodes are not in files, or have the marker attribute there.
  bool (*Recognize)(const LoweredFile &File, NodeId N) = nullptr;
  /// The ops, one bit for each OpKind, that do nothing to global values. The
  /// types check what their parameters do to local values.
  uint32_t Forwards = 0;
  /// Set if a node treats each element of a tensor by itself.
  bool IsElementwise = false;
  /// Set if attribute `T` is the type of input 0.
  bool IsTyped = false;
  /// Set if copies of a variable are written one by one: copy 0 does not wait.
  bool WritesCopies = false;
  /// Set if only one run or inserted nodes can tell what its ops keep and do:
  /// no other run can (lib/certify/compare/RunsApart.h).
  bool IsUnseen = false;
};

#define GRAFT_INSERTED(Kind, Name, Is, StandsFor)                              \
  extern const InsertedForm Kind##Form;
#include "lib/graph/Inserted.def"

/// Returns the form of \p Kind; for Inserted::No, one that stands for nothing.
const InsertedForm &formOf(Inserted Kind);

/// Returns the kind of \p N, which is not of the input and has no marker.
Inserted recognizeInserted(const LoweredFile &File, NodeId N);

/// Returns true if \p N was inserted and its op does nothing to global values.
bool forwards(const Comparison &C, NodeId N);

/// Checks that \p N, which was inserted and is no gate, waits for gates only:
/// to read a value must not run more than in the input.
void checkWaits(Comparison &C, NodeId N);

/// Returns true if \p N is a gate that only runs checks of copies.
bool runsChecks(const Graph &G, NodeId N);

/// Returns true if \p N assigns a variable.
bool assigns(const Graph &G, NodeId N);

} // namespace graft

#endif // GRAFT_LIB_CERTIFY_FORMS_INSERTEDFORM_H
