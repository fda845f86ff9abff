//===- lib/certify/forms/InsertedForm.h - the form of a kind of nodes -----===//
//
// SPDX-License-Identifier: Apache-2.0
//
// An InsertedForm describes a kind of inserted nodes (lib/graph/Inserted.def)
// to the certificate. The file that checks a kind defines the form.
//
//===----------------------------------------------------------------------===//

#ifndef GRAFT_LIB_CERTIFY_FORMS_INSERTEDFORM_H
#define GRAFT_LIB_CERTIFY_FORMS_INSERTEDFORM_H

#include "lib/certify/forms/Comparison.h"
#include "lib/certify/forms/LoweredFile.h"

namespace graft {

struct InsertedForm {
  /// Returns the tensor that \p E, an output of a node of this kind,
  /// represents. Returns \p E itself if only several nodes together represent a
  /// tensor, and no node if \p E represents none. Null: no node of this kind
  /// represents a tensor.
  Endpoint (*StandsFor)(const Comparison &C, Endpoint E) = nullptr;
  /// Reports the errors of \p N, a node of this kind.
  void (*Check)(Comparison &C, const ProgramFacts &Facts, NodeId N) = nullptr;
  /// Returns true if \p N, which the input does not have, is of this kind.
  /// Null: a written file has no such nodes, or they have the marker attribute.
  bool (*Recognize)(const LoweredFile &File, NodeId N) = nullptr;
  /// The ops that do not change global values, one bit for each OpKind. The
  /// types check how parameters of an op change local values.
  uint32_t Forwards = 0;
  /// Set if a node treats each element of a tensor by itself.
  bool IsElementwise = false;
  /// Set if attribute `T` is the type of input 0.
  bool IsTyped = false;
  /// Set if a node may write copies of a variable although copy 0 of the node
  /// does not wait for the other copies.
  bool WritesCopies = false;
  /// Set if no other run can observe the state and effects of the ops. Only
  /// inserted nodes, and nodes of the same run, can observe them
  /// (lib/certify/compare/RunsApart.h).
  bool IsUnseen = false;
};

#define GRAFT_INSERTED(Kind, Name, Is, StandsFor)                              \
  extern const InsertedForm Kind##Form;
#include "lib/graph/Inserted.def"

/// Returns the form of \p Kind; for Inserted::No, an empty form.
const InsertedForm &formOf(Inserted Kind);

/// Returns the kind of \p N, an inserted node without the marker attribute.
Inserted recognizeInserted(const LoweredFile &File, NodeId N);

/// Returns true if \p N was inserted and its op does not change global values.
bool forwards(const Comparison &C, NodeId N);

/// Checks that \p N, an inserted node that is not a gate, waits for gates only.
/// Otherwise a run that reads \p N would run more nodes than in the input.
void checkWaits(Comparison &C, NodeId N);

/// Returns true if \p N is a gate that only runs checks of copies.
bool runsChecks(const Graph &G, NodeId N);

/// Returns true if \p N assigns a variable.
bool assigns(const Graph &G, NodeId N);

} // namespace graft

#endif // GRAFT_LIB_CERTIFY_FORMS_INSERTEDFORM_H
