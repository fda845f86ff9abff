//===- lib/io/ModuleVerifier.cpp - names around the graph -------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "lib/io/ModuleVerifier.h"

#include "lib/graph/CopyWord.h"
#include "lib/graph/Verifier.h"
#include "lib/io/LibraryVerifier.h"

#include "tensorflow/core/framework/variable.pb.h"
#include "tensorflow/core/protobuf/control_flow.pb.h"
#include "tensorflow/core/protobuf/meta_graph.pb.h"
#include "tensorflow/core/protobuf/queue_runner.pb.h"

#include "llvm/ADT/StringSwitch.h"
#include "llvm/Support/FormatVariadic.h"

#include <functional>
#include <set>

using namespace llvm;

namespace graft {
namespace {

/// The place of a name, such as "collection 'train_op'". TensorFlow looks up
/// the names in a collection only when they are used.
struct Place {
  std::string Where;
  bool IsCollection;
};

using Visitor = std::function<void(const Place &, StringRef Name)>;

/// The message type of the bytes of a collection, as TensorFlow registers it.
enum class BytesKind : uint8_t {
  Opaque,
  Variable,
  Saver,
  QueueRunner,
  CondContext,
  WhileContext,
};

BytesKind bytesKind(StringRef Collection) {
  return StringSwitch<BytesKind>(Collection)
      .Cases("variables", "trainable_variables", "local_variables",
             "model_variables", "moving_average_variables", "metric_variables",
             "global_step", BytesKind::Variable)
      .Cases("concatenated_variables", "trainable_resource_variables",
             BytesKind::Variable)
      .Case("savers", BytesKind::Saver)
      .Case("queue_runners", BytesKind::QueueRunner)
      .Case("cond_context", BytesKind::CondContext)
      .Case("while_context", BytesKind::WhileContext)
      .Default(BytesKind::Opaque);
}

class NameWalk {
public:
  NameWalk(const tensorflow::MetaGraphDef &Meta, Visitor Visit)
      : Meta(Meta), Visit(std::move(Visit)) {}

  void run() {
    if (Meta.has_saver_def())
      saver({"saver_def", false}, Meta.saver_def());
    // The order of Protobuf's maps is random.
    std::map<StringRef, const tensorflow::CollectionDef *> Collections;
    for (const auto &[Key, Value] : Meta.collection_def())
      Collections[Key] = &Value;
    for (auto [Key, Value] : Collections)
      collection(Key, *Value);
    std::map<StringRef, const tensorflow::SignatureDef *> Signatures;
    for (const auto &[Key, Value] : Meta.signature_def())
      Signatures[Key] = &Value;
    for (auto [Key, Value] : Signatures) {
      Place P{formatv("signature '{0}'", Key), false};
      tensors(P, Value->inputs());
      // The output of an init signature is the name of an operation, not of a
      // tensor. The lookup accepts both.
      tensors(P, Value->outputs());
    }
    for (const tensorflow::AssetFileDef &Asset : Meta.asset_file_def())
      tensor({"asset_file_def", false}, Asset.tensor_info());
  }

private:
  void name(const Place &P, StringRef Name) {
    if (!Name.empty())
      Visit(P, Name);
  }

  void saver(const Place &P, const tensorflow::SaverDef &S) {
    name(P, S.filename_tensor_name());
    name(P, S.save_tensor_name());
    name(P, S.restore_op_name());
  }

  template <typename Map> void tensors(const Place &P, const Map &Infos) {
    std::map<StringRef, const tensorflow::TensorInfo *> Sorted;
    for (const auto &[Key, Value] : Infos)
      Sorted[Key] = &Value;
    for (auto [Key, Value] : Sorted)
      tensor(P, *Value);
  }

  void tensor(const Place &P, const tensorflow::TensorInfo &T) {
    name(P, T.name());
    name(P, T.coo_sparse().values_tensor_name());
    name(P, T.coo_sparse().indices_tensor_name());
    name(P, T.coo_sparse().dense_shape_tensor_name());
    for (const tensorflow::TensorInfo &C : T.composite_tensor().components())
      tensor(P, C);
  }

  void values(const Place &P, const tensorflow::ValuesDef &V) {
    for (const std::string &Name : V.values())
      name(P, Name);
  }

  void cond(const Place &P, const tensorflow::CondContextDef &C) {
    name(P, C.pred_name());
    name(P, C.pivot_name());
    values(P, C.values_def());
    nested(P, C.nested_contexts());
  }

  void loop(const Place &P, const tensorflow::WhileContextDef &C) {
    name(P, C.pivot_name());
    name(P, C.pivot_for_pred_name());
    name(P, C.pivot_for_body_name());
    name(P, C.maximum_iterations_name());
    for (const std::string &Name : C.loop_exit_names())
      name(P, Name);
    for (const std::string &Name : C.loop_enter_names())
      name(P, Name);
    values(P, C.values_def());
    nested(P, C.nested_contexts());
  }

  template <typename List> void nested(const Place &P, const List &Contexts) {
    for (const tensorflow::ControlFlowContextDef &C : Contexts) {
      if (C.has_cond_ctxt())
        cond(P, C.cond_ctxt());
      if (C.has_while_ctxt())
        loop(P, C.while_ctxt());
    }
  }

  template <typename Message, typename Fn>
  void parsed(const std::string &Bytes, Fn Do) {
    Message M;
    // A collection of the user may have other bytes under a well-known key.
    if (M.ParseFromString(Bytes))
      Do(M);
  }

  void collection(StringRef Key, const tensorflow::CollectionDef &C) {
    Place P{formatv("collection '{0}'", Key), true};
    for (const std::string &Name : C.node_list().value())
      name(P, Name);
    BytesKind Kind = bytesKind(Key);
    for (const std::string &Bytes : C.bytes_list().value())
      switch (Kind) {
      case BytesKind::Opaque:
        break;
      case BytesKind::Variable:
        if (Variable.ParseFromString(Bytes)) {
          name(P, Variable.variable_name());
          name(P, Variable.initial_value_name());
          name(P, Variable.initializer_name());
          name(P, Variable.snapshot_name());
        }
        break;
      case BytesKind::Saver:
        parsed<tensorflow::SaverDef>(Bytes,
                                     [&](const auto &S) { saver(P, S); });
        break;
      case BytesKind::QueueRunner:
        parsed<tensorflow::QueueRunnerDef>(Bytes, [&](const auto &Q) {
          name(P, Q.queue_name());
          name(P, Q.close_op_name());
          name(P, Q.cancel_op_name());
          for (const std::string &Op : Q.enqueue_op_name())
            name(P, Op);
        });
        break;
      case BytesKind::CondContext:
        parsed<tensorflow::CondContextDef>(Bytes,
                                           [&](const auto &X) { cond(P, X); });
        break;
      case BytesKind::WhileContext:
        parsed<tensorflow::WhileContextDef>(Bytes,
                                            [&](const auto &X) { loop(P, X); });
        break;
      }
  }

  const tensorflow::MetaGraphDef &Meta;
  Visitor Visit;
  tensorflow::VariableDef Variable; ///< Reused for each of many entries.
};

/// Returns true if \p Name names copy 0 of a node without a global value.
/// \p Word is as in resolves().
bool isLocalCopy(const Graph &G, StringRef Name, StringRef Word) {
  std::string Infix = (Word + "0/").str(),
              Scope = (copyScope(Word) + "/").str();
  auto IsLocal = [&](const Twine &Program, size_t Split) {
    NodeId N = G.find(Program.str());
    return N != NoNode && G.node(N).Count == Copies::PerReplica &&
           G.node(N).Flags & NF_LocalName && G.node(N).NameSplit == Split;
  };
  Name = Name.split(':').first;
  for (size_t At = Name.find(Infix); At != StringRef::npos;
       At = Name.find(Infix, At + 1)) {
    StringRef Head = Name.take_front(At), Rest = Name.substr(At + Infix.size());
    if (At == 0 ? IsLocal(Rest, 0) || IsLocal(Scope + Rest, Scope.size() - 1)
                : Head.back() == '/' &&
                      (IsLocal(Head + Rest, At - 1) ||
                       IsLocal(Head + Scope + Rest, At + Scope.size() - 1)))
      return true;
  }
  return false;
}

/// Returns true if \p Name will exist in the written graph. Lowering moves a
/// node without a global value from its name to `replica_0/<name>`. \p Word is
/// the word in names of copies, such as `replica_`.
bool resolves(const Module &M, StringRef Name, StringRef Word) {
  const Graph &G = M.graph();
  std::optional<Endpoint> E = G.findEndpoint(Name);
  if (!E)
    return M.Lowered && isLocalCopy(G, Name, Word);
  if (!E->isControl() && Name.contains(':'))
    if (auto Outputs = G.numOutputs(E->Node); Outputs && E->Port >= *Outputs)
      return false;
  const Node &N = G.node(E->Node);
  return !M.Lowered || N.Count != Copies::PerReplica ||
         !(N.Flags & (NF_LocalName | NF_ElidePrimary));
}

std::string danglingKey(const Place &P, StringRef Name) {
  return P.Where + ": " + Name.str();
}

/// Checks that each initializer in the collections initializes all copies of
/// its variable.
void verifyDeclaredInitializers(const Module &M, StringRef Word,
                                DiagnosticEngine &Diags) {
  const Graph &G = M.graph();
  for (StringRef Key : {"variables", "local_variables"}) {
    auto It = M.metaGraph()->collection_def().find(Key.str());
    if (It == M.metaGraph()->collection_def().end())
      continue;
    for (const std::string &Bytes : It->second.bytes_list().value()) {
      tensorflow::VariableDef V;
      if (!V.ParseFromString(Bytes))
        continue;
      auto Variable = G.findEndpoint(V.variable_name());
      auto Initializer = G.findEndpoint(V.initializer_name());
      // verifyGraph checks initializers with the usual name.
      if (Variable && Initializer &&
          G.name(Initializer->Node) !=
              (G.name(Variable->Node) + "/Assign").str())
        verifyCopiesInitialized(G, Variable->Node, Initializer->Node, Word,
                                Diags);
    }
  }
}

/// Checks the collection entries from which import_meta_graph makes objects.
class Declarations {
public:
  Declarations(const Module &M, DiagnosticEngine &Diags)
      : M(M), Errors(Diags, "errors in collections") {}

  void run() {
    const tensorflow::MetaGraphDef &Meta = *M.metaGraph();
    if (Meta.has_saver_def())
      saver("saver_def", Meta.saver_def());
    std::map<StringRef, const tensorflow::CollectionDef *> Collections;
    for (const auto &[Key, Value] : Meta.collection_def())
      Collections[Key] = &Value;
    for (auto [Key, Value] : Collections)
      collection(Key, *Value);
  }

private:
  void named(StringRef Where, StringRef What, StringRef Name) {
    if (Name.empty())
      Errors.error("", Where + ": has an entry without " + What);
    else if (!resolves(M, Name, ""))
      Errors.error("", formatv("{0}: names '{1}', which does not exist in the "
                               "graph",
                               Where, Name));
  }
  void namedIfAny(StringRef Where, StringRef Name) {
    if (!Name.empty())
      named(Where, "", Name);
  }

  void saver(StringRef Where, const tensorflow::SaverDef &S) {
    if (S.save_tensor_name().empty())
      Errors.error("", Where + ": has no save_tensor_name");
    if (S.restore_op_name().empty())
      Errors.error("", Where + ": has no restore_op_name");
  }

  void cond(StringRef Where, const tensorflow::CondContextDef &C) {
    named(Where, "a pred_name", C.pred_name());
    named(Where, "a pivot_name", C.pivot_name());
    values(Where, C.values_def());
    nested(Where, C.nested_contexts());
  }

  void loop(StringRef Where, const tensorflow::WhileContextDef &C) {
    named(Where, "a pivot_name", C.pivot_name());
    namedIfAny(Where, C.pivot_for_pred_name());
    namedIfAny(Where, C.pivot_for_body_name());
    namedIfAny(Where, C.maximum_iterations_name());
    for (const std::string &Name : C.loop_exit_names())
      namedIfAny(Where, Name);
    for (const std::string &Name : C.loop_enter_names())
      namedIfAny(Where, Name);
    values(Where, C.values_def());
    nested(Where, C.nested_contexts());
  }

  /// Checks that the tensors of a context exist, tensors from outside included.
  void values(StringRef Where, const tensorflow::ValuesDef &V) {
    for (const std::string &Name : V.values())
      if (!V.external_values().contains(Name))
        namedIfAny(Where, Name);
    std::map<StringRef, StringRef> Outside;
    for (const auto &[Name, Inside] : V.external_values())
      Outside[Name] = Inside;
    for (auto [Name, Inside] : Outside)
      namedIfAny(Where, Inside);
  }

  template <typename List> void nested(StringRef Where, const List &Contexts) {
    for (const tensorflow::ControlFlowContextDef &C : Contexts) {
      if (C.has_cond_ctxt())
        cond(Where, C.cond_ctxt());
      if (C.has_while_ctxt())
        loop(Where, C.while_ctxt());
    }
  }

  template <typename Message, typename Fn>
  void parsed(StringRef Where, const std::string &Bytes, Fn Do) {
    Message Entry;
    if (Entry.ParseFromString(Bytes))
      Do(Entry);
    else
      Errors.error("", Where + ": has an entry that cannot be read as " +
                           Entry.GetTypeName());
  }

  void collection(StringRef Key, const tensorflow::CollectionDef &C) {
    std::string Where = formatv("collection '{0}'", Key);
    for (const std::string &Name : C.node_list().value())
      named(Where, "a name", Name);
    // TensorFlow does not parse the bytes of these collections.
    bool IsKept = Key == "concatenated_variables" ||
                  Key == "trainable_resource_variables";
    if (Key == "unbound_inputs" && C.has_bytes_list())
      Errors.error("", Where + ": the graph has inputs that are not bound");
    // import_meta_graph makes a Saver of these variables.
    bool IsSaved = Key == "variables" && !M.metaGraph()->has_saver_def();
    const char *NoSaver = "{0}: has {1}, and the file has no saver_def, so "
                          "TensorFlow cannot make a Saver";
    if (IsSaved && (C.has_int64_list() || C.has_float_list()))
      Errors.error("", formatv(NoSaver, Where, "numbers").str());
    std::set<std::string> Saved;
    for (const std::string &Bytes : C.bytes_list().value())
      switch (IsKept ? BytesKind::Opaque : bytesKind(Key)) {
      case BytesKind::Opaque:
        break;
      case BytesKind::Variable:
        parsed<tensorflow::VariableDef>(Where, Bytes, [&](const auto &V) {
          named(Where, "a variable_name", V.variable_name());
          named(Where, "an initializer_name", V.initializer_name());
          namedIfAny(Where, V.initial_value_name());
          // Slices of one variable are saved together, under one name.
          if (IsSaved && !V.has_save_slice_info_def() &&
              !Saved.insert(V.variable_name()).second)
            Errors.error("",
                         formatv(NoSaver, Where,
                                 "two entries for '" + V.variable_name() + "'")
                             .str());
          if (V.is_resource())
            namedIfAny(Where, V.snapshot_name());
          else
            named(Where, "a snapshot_name", V.snapshot_name());
        });
        break;
      case BytesKind::Saver:
        parsed<tensorflow::SaverDef>(Where, Bytes,
                                     [&](const auto &S) { saver(Where, S); });
        break;
      case BytesKind::QueueRunner:
        parsed<tensorflow::QueueRunnerDef>(Where, Bytes, [&](const auto &Q) {
          named(Where, "a queue_name", Q.queue_name());
          for (const std::string &Op : Q.enqueue_op_name())
            named(Where, "an enqueue_op_name", Op);
          named(Where, "a close_op_name", Q.close_op_name());
          named(Where, "a cancel_op_name", Q.cancel_op_name());
        });
        break;
      case BytesKind::CondContext:
        parsed<tensorflow::CondContextDef>(
            Where, Bytes, [&](const auto &X) { cond(Where, X); });
        break;
      case BytesKind::WhileContext:
        parsed<tensorflow::WhileContextDef>(
            Where, Bytes, [&](const auto &X) { loop(Where, X); });
        break;
      }
  }

  const Module &M;
  ErrorCap Errors;
};

} // namespace

bool holdsVariables(StringRef Collection) {
  return bytesKind(Collection) == BytesKind::Variable;
}

void dropDangling(Module &M) {
  if (!M.metaGraph())
    return;
  auto IsWhole = [&](const tensorflow::MetaGraphDef &Part) {
    bool All = true;
    NameWalk(Part, [&](const Place &, StringRef Name) {
      All = All && resolves(M, Name, "");
    }).run();
    return All;
  };
  // Each entry is checked in a separate message.
  tensorflow::MetaGraphDef Left = *M.metaGraph();
  if (Left.has_saver_def()) {
    tensorflow::MetaGraphDef Part;
    *Part.mutable_saver_def() = Left.saver_def();
    if (!IsWhole(Part))
      Left.clear_saver_def();
  }
  Left.clear_collection_def();
  for (const auto &[Key, Collection] : M.metaGraph()->collection_def()) {
    tensorflow::CollectionDef Entries = Collection;
    Entries.mutable_node_list()->clear_value();
    Entries.mutable_bytes_list()->clear_value();
    auto Keep = [&, Key = Key](const tensorflow::CollectionDef &Entry) {
      tensorflow::MetaGraphDef Part;
      (*Part.mutable_collection_def())[Key] = Entry;
      if (IsWhole(Part))
        Entries.MergeFrom(Entry);
    };
    if (Collection.has_node_list())
      for (const std::string &Name : Collection.node_list().value()) {
        tensorflow::CollectionDef Entry;
        Entry.mutable_node_list()->add_value(Name);
        Keep(Entry);
      }
    else if (Collection.has_bytes_list())
      for (const std::string &Bytes : Collection.bytes_list().value()) {
        tensorflow::CollectionDef Entry;
        Entry.mutable_bytes_list()->add_value(Bytes);
        Keep(Entry);
      }
    else
      Entries = Collection;
    if (Entries.ByteSizeLong() > 2) // More than an empty list.
      (*Left.mutable_collection_def())[Key] = Entries;
  }
  Left.clear_signature_def();
  for (const auto &[Key, Signature] : M.metaGraph()->signature_def()) {
    tensorflow::MetaGraphDef Part;
    (*Part.mutable_signature_def())[Key] = Signature;
    if (IsWhole(Part))
      Left.MergeFrom(Part);
  }
  M.setMetaGraph(std::move(Left));
}

StringSet<> findDanglingNames(const Module &M) {
  StringSet<> Result;
  std::string Word = copyWordOf(M.graph());
  if (M.metaGraph())
    NameWalk(*M.metaGraph(), [&](const Place &P, StringRef Name) {
      if (P.IsCollection && !resolves(M, Name, Word))
        Result.insert(danglingKey(P, Name));
    }).run();
  return Result;
}

bool verifyImport(const Module &M, DiagnosticEngine &Diags) {
  unsigned Before = Diags.errorCount();
  verifyDefinitions(M.graph(), Diags);
  verifyLibrary(M.graph(), Diags);
  if (M.metaGraph() && M.Kind != InputKind::SavedModel)
    Declarations(M, Diags).run();
  return Diags.errorCount() == Before;
}

bool verifyModule(const Module &M, DiagnosticEngine &Diags,
                  const Module *Original, bool Internal) {
  unsigned Before = Diags.errorCount();
  verifyGraph(M.graph(), Diags, Internal);
  if (!M.metaGraph())
    return Diags.errorCount() == Before;
  std::string Word = copyWordOf(M.graph());
  const StringSet<> &Tolerated = (Original ? Original : &M)->danglingNames();
  {
    ErrorCap Errors(Diags, "names that do not resolve");
    NameWalk(*M.metaGraph(), [&](const Place &P, StringRef Name) {
      if (!resolves(M, Name, Word) &&
          !(P.IsCollection && Tolerated.contains(danglingKey(P, Name))))
        Errors.error("", formatv("{0}: names '{1}', which does not exist in "
                                 "the graph",
                                 P.Where, Name));
    }).run();
  }
  if (hasGraftStamp(M.graph()))
    verifyDeclaredInitializers(M, Word, Diags);
  return Diags.errorCount() == Before;
}

} // namespace graft
