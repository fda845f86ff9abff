//===- lib/io/LibraryVerifier.cpp - are these functions legal? --*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
// TensorFlow does not change a function on import and enters its body only to
// infer shapes through a call. So a fault in a body is an error only if a node
// of the graph calls the function, directly or through other functions.
// FunctionTypes.h checks the edges.
//
//===----------------------------------------------------------------------===//

#include "lib/io/LibraryVerifier.h"

#include "lib/graph/Verifier.h"
#include "lib/io/FunctionTypes.h"
#include "lib/io/Serialize.h"
#include "lib/ops/Ops.h"
#include "lib/support/Wire.h"

#include "tensorflow/core/framework/function.pb.h"

#include "google/protobuf/arena.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/Support/FormatVariadic.h"

using namespace llvm;

namespace graft {
namespace {

using tensorflow::FunctionDef;

class LibraryVerifier {
public:
  LibraryVerifier(const Graph &G, DiagnosticEngine &Diags)
      : G(G), Diags(Diags), Errors(Diags, "errors in functions") {}

  void run() {
    if (!read())
      return;
    for (const FunctionDef *Def : InOrder)
      signature(*Def);
    gradients();
    circles();
    calls();
  }

private:
  /// Parses the library. Returns false if that fails: no check is possible.
  bool read() {
    constexpr unsigned LibraryField = 2;
    if (!Library.ParseFromString(G.otherField(LibraryField))) {
      Diags.error("", "the function library of the graph cannot be read");
      return false;
    }
    for (const FunctionDef &Def : Library.function()) {
      const std::string &Name = Def.signature().name();
      auto [It, New] = ByName.try_emplace(Name, &Def);
      if (New)
        InOrder.push_back(&Def);
      else if (serialize(*It->second) != serialize(Def))
        Errors.error("", "the library has two different functions '" + Name +
                             "'; rename one");
    }
    return true;
  }

  void fault(const FunctionDef &Def, const Twine &What) {
    ++Faults;
    Errors.error("", "function '" + Def.signature().name() + "' " + What);
  }

  void signature(const FunctionDef &Def) {
    const tensorflow::OpDef &Sig = Def.signature();
    if (findOp(Sig.name()))
      fault(Def, "has the name of an op of TensorFlow: rename it");
    auto Typed = [&](const auto &Args, const char *What) {
      for (const auto &A : Args)
        if (A.type() == 0 && A.type_attr().empty() &&
            A.type_list_attr().empty())
          fault(Def, formatv("has {0} '{1}' without a type", What, A.name()));
    };
    Typed(Sig.input_arg(), "an argument");
    Typed(Sig.output_arg(), "a result");
  }

  void gradients() {
    StringMap<StringRef> Of;
    for (const tensorflow::GradientDef &D : Library.gradient()) {
      for (const std::string &Name : {D.function_name(), D.gradient_func()})
        if (!ByName.contains(Name))
          Errors.error("", "a GradientDef of the library names function '" +
                               Name + "', which does not exist");
      auto [It, New] = Of.try_emplace(D.function_name(), D.gradient_func());
      if (!New && It->second != D.gradient_func())
        Errors.error("", "function '" + D.function_name() +
                             "' has two gradients, '" + It->second + "' and '" +
                             D.gradient_func() + "'");
    }
  }

  /// Returns the function that \p Node calls, by its op or by the attribute `f`
  /// of a PartitionedCall, or null.
  const FunctionDef *callee(const tensorflow::NodeDef &Node) const {
    if (auto It = ByName.find(Node.op()); It != ByName.end())
      return It->second;
    if (Node.op() != op::PartitionedCall &&
        Node.op() != op::StatefulPartitionedCall)
      return nullptr;
    auto F = Node.attr().find("f");
    if (F == Node.attr().end())
      return nullptr;
    auto It = ByName.find(F->second.func().name());
    return It == ByName.end() ? nullptr : It->second;
  }

  /// Reports recursion, which would overflow the stack of TensorFlow.
  void circles() {
    enum State : uint8_t { Unseen, Open, Done };
    struct Frame {
      const FunctionDef *Def;
      int Next;
    };
    DenseMap<const FunctionDef *, State> States;
    std::vector<Frame> Path;
    for (const FunctionDef *Root : InOrder) {
      if (States.lookup(Root) != Unseen)
        continue;
      Path.push_back({Root, 0});
      States[Root] = Open;
      while (!Path.empty()) {
        auto &[Def, Next] = Path.back();
        if (Next == Def->node_def_size()) {
          States[Def] = Done;
          Path.pop_back();
          continue;
        }
        const FunctionDef *Callee = callee(Def->node_def(Next++));
        if (!Callee || States.lookup(Callee) == Done)
          continue;
        if (States.lookup(Callee) == Open) {
          std::string Text;
          auto It =
              find_if(Path, [&](const Frame &F) { return F.Def == Callee; });
          for (size_t Shown = 0; It != Path.end() && Shown < 10; ++It, ++Shown)
            Text += It->Def->signature().name() + " -> ";
          fault(*Callee, "calls itself: " + Text +
                             (It == Path.end() ? "" : "... -> ") +
                             Callee->signature().name() +
                             "; TensorFlow imports no such graph");
          return;
        }
        States[Callee] = Open;
        Path.push_back({Callee, 0});
      }
    }
  }

  /// Checks, once, each function that the graph calls directly or indirectly.
  void calls() {
    if (InOrder.empty())
      return;
    SmallVector<bool, 0> MayCall(G.numOps());
    for (uint32_t Op = 0; Op < G.numOps(); ++Op)
      MayCall[Op] = !G.opDefOf(Op) || G.opNameOf(Op) == op::PartitionedCall ||
                    G.opNameOf(Op) == op::StatefulPartitionedCall;
    for (NodeId N = 0; N < G.size(); ++N) {
      if (!G.isLive(N) || !MayCall[G.node(N).Op])
        continue;
      auto It = ByName.find(G.opName(N));
      if (It != ByName.end()) {
        call(N, *It->second);
        reach(*It->second);
        for (const AttrEntry &A : G.attrs(N))
          Bound[It->second].insert(A.Key);
      } else if (auto F = G.attr(N, "f")) {
        tensorflow::AttrValue V;
        if (V.ParseFromArray(F->data(), static_cast<int>(F->size())))
          if (auto Callee = ByName.find(V.func().name());
              Callee != ByName.end()) {
            // TensorFlow's import infers shapes through a call, and fails if
            // an argument is missing.
            if (G.node(N).NumData <
                unsigned(Callee->second->signature().input_arg_size()))
              call(N, *Callee->second);
            reach(*Callee->second);
            bind(*Callee->second, V.func().attr());
          }
      }
    }
    // Reached grows in the loop.
    size_t At = 0;
    while (At != Reached.size())
      for (const tensorflow::NodeDef &Node : Reached[At++]->node_def())
        if (const FunctionDef *Callee = callee(Node)) {
          reach(*Callee);
          bind(*Callee, Callee->signature().name() == Node.op()
                            ? Node.attr()
                            : Node.attr().at("f").func().attr());
        }
    for (const FunctionDef *Def : Reached)
      body(*Def);
  }

  void reach(const FunctionDef &Def) {
    if (IsReached.insert(&Def).second)
      Reached.push_back(&Def);
  }

  /// Notes that a call sets the placeholders of \p Def whose keys are in
  /// \p Attrs.
  template <typename Map> void bind(const FunctionDef &Def, const Map &Attrs) {
    for (const auto &[Key, Value] : Attrs)
      Bound[&Def].insert(Key);
  }

  /// Checks that \p N, whose op is the function \p Def, has an input for each
  /// argument of \p Def.
  void call(NodeId N, const FunctionDef &Def) {
    const tensorflow::OpDef &Sig = Def.signature();
    for (const auto &A : Sig.input_arg())
      if (!A.number_attr().empty() || !A.type_list_attr().empty())
        return;
    auto Count = static_cast<unsigned>(Sig.input_arg_size());
    if (G.node(N).NumData != Count)
      Errors.error(G.name(N),
                   formatv("function '{0}' takes {1} argument{2} and "
                           "the call has {3}",
                           Sig.name(), Count, Count == 1 ? "" : "s",
                           G.node(N).NumData)
                       .str());
  }

  void body(const FunctionDef &Def) {
    StringSet<> Names;
    for (const auto &A : Def.signature().input_arg())
      if (!Names.insert(A.name()).second)
        fault(Def, "has two arguments '" + A.name() + "'");
    for (const tensorflow::NodeDef &Node : Def.node_def())
      if (!Names.insert(Node.name()).second)
        fault(Def, "uses the name '" + Node.name() + "' twice");
    for (const auto &A : Def.signature().attr())
      Bound[&Def].insert(A.name());
    const StringSet<> &Given = Bound[&Def];
    unsigned Before = Faults;
    auto Resolves = [&](StringRef Text) {
      Text.consume_front("^");
      return Names.contains(Text.split(':').first);
    };
    for (const tensorflow::NodeDef &Node : Def.node_def()) {
      for (const std::string &Input : Node.input())
        if (!Resolves(Input))
          fault(Def, "has no node or argument for input '" + Input +
                         "' of its node '" + Node.name() + "'");
      const OpDef *Op = findOp(Node.op());
      if (!Op)
        continue;
      for (const AttrDef &A : Op->attrs()) {
        auto It = Node.attr().find(A.Name);
        if (It != Node.attr().end()) {
          // The call sets the value of a placeholder.
          if (const std::string &Key = It->second.placeholder(); !Key.empty()) {
            if (!Given.contains(Key))
              fault(Def, "has node '" + Node.name() + "', whose attribute '" +
                             A.Name + "' is '$" + Key +
                             "', which no call sets");
          } else if (std::string Fault = attrFault(A, serialize(It->second));
                     !Fault.empty()) {
            fault(Def, "has node '" + Node.name() + "', whose attribute '" +
                           A.Name + "' " + Fault);
          }
        } else if (!A.HasDefault) {
          fault(Def, "has node '" + Node.name() + "' without attribute '" +
                         A.Name + "', which " + Node.op() + " needs");
        }
      }
    }
    order(Def);
    for (const auto &A : Def.signature().output_arg()) {
      auto It = Def.ret().find(A.name());
      if (It == Def.ret().end())
        fault(Def, "has no entry in 'ret' for its result '" + A.name() + "'");
      else if (!Resolves(It->second))
        fault(Def,
              "returns '" + It->second + "', but has no such node or argument");
    }
    if (Faults == Before)
      checkFunctionTypes(Def, ByName,
                         [&](const std::string &What) { fault(Def, What); });
  }

  /// Checks that each cycle of a body is a loop.
  void order(const FunctionDef &Def) {
    auto Size = static_cast<unsigned>(Def.node_def_size());
    StringMap<unsigned> Ids;
    for (unsigned I = 0; I < Size; ++I)
      Ids[Def.node_def(static_cast<int>(I)).name()] = I;
    std::vector<SmallVector<unsigned, 2>> Users(Size), Sources(Size);
    std::vector<unsigned> Open(Size), Ready;
    for (unsigned I = 0; I < Size; ++I) {
      const tensorflow::NodeDef &Node = Def.node_def(static_cast<int>(I));
      bool IsMerge = Node.op() == op::Merge || Node.op() == op::RefMerge;
      for (StringRef Input : Node.input()) {
        bool IsControl = Input.consume_front("^");
        auto It = Ids.find(Input.split(':').first);
        if (It == Ids.end())
          continue;
        StringRef From = Def.node_def(static_cast<int>(It->second)).op();
        if (IsMerge && !IsControl &&
            (From == op::NextIteration || From == op::RefNextIteration))
          continue;
        Users[It->second].push_back(I);
        Sources[I].push_back(It->second);
        ++Open[I];
      }
      if (Open[I] == 0)
        Ready.push_back(I);
    }
    for (unsigned At = 0; At < Ready.size(); ++At)
      for (unsigned User : Users[Ready[At]])
        if (--Open[User] == 0)
          Ready.push_back(User);
    if (Ready.size() == Size)
      return;
    // Each remaining node reads another remaining node, so a walk along inputs
    // ends in a cycle.
    auto IsLeft = [&](unsigned I) { return Open[I] != 0; };
    auto At = static_cast<unsigned>(
        find_if(Open, [](unsigned Count) { return Count != 0; }) -
        Open.begin());
    for (unsigned Step = 0; Step < Size; ++Step)
      At = *find_if(Sources[At], IsLeft);
    fault(Def, "has a cycle through its node '" +
                   Def.node_def(static_cast<int>(At)).name() +
                   "': the node waits for itself");
  }

  const Graph &G;
  DiagnosticEngine &Diags;
  ErrorCap Errors;
  unsigned Faults = 0;
  google::protobuf::Arena Memory; ///< Freed as a whole.
  tensorflow::FunctionDefLibrary &Library =
      *google::protobuf::Arena::CreateMessage<tensorflow::FunctionDefLibrary>(
          &Memory);
  std::vector<const FunctionDef *> InOrder;
  FunctionsByName ByName;
  DenseSet<const FunctionDef *> IsReached;
  std::vector<const FunctionDef *> Reached; ///< The functions that are called.
  /// The attributes that calls set.
  DenseMap<const FunctionDef *, StringSet<>> Bound;
};

} // namespace

bool verifyLibrary(const Graph &G, DiagnosticEngine &Diags) {
  unsigned Before = Diags.errorCount();
  // Most graphs of version 1 have no library.
  if (!G.otherFields().empty())
    LibraryVerifier(G, Diags).run();
  return Diags.errorCount() == Before;
}

} // namespace graft
