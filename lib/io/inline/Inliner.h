//===- lib/io/inline/Inliner.h - how calls are replaced (private) -*- C++ -*-=//
//
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#ifndef GRAFT_LIB_IO_INLINE_INLINER_H
#define GRAFT_LIB_IO_INLINE_INLINER_H

#include "lib/graph/CopyWord.h"
#include "lib/io/inline/Functions.h"
#include "lib/io/inline/Inline.h"

namespace graft {

enum class CallKind : uint8_t { None, Call, If, Case, While };

class Inliner {
public:
  Inliner(Graph &G, const InlineOptions &Options)
      : G(G), Options(Options), Library(G), Limit(limit()) {
    if (Options.Like)
      LikeScope = copyWordOf(*Options.Like) + "0/";
  }

  InlineResult run();

private:
  using Ends = llvm::SmallVector<Endpoint, 8>;

  /// A call to replace. Chains contains the chain of functions around the call.
  struct Work {
    NodeId Node;
    uint32_t Chain;
  };
  struct Link {
    std::string Function;
    uint32_t Outer;
    NodeId Call;
  };
  /// The replacement of a call.
  struct Body {
    Ends Outputs;
    /// Control inputs that wait for all effects.
    Ends Effects;
  };
  /// The place at which the body of a call is inlined.
  struct Site {
    llvm::StringRef Prefix;
    NodeId After;
    uint32_t Chain;
    /// The control inputs of nodes without inputs.
    Ends Pivot;
  };

  CallKind kindOf(NodeId N) const;
  NodeId findLike(NodeId N) const;
  void look(NodeId N, uint32_t Chain);
  std::vector<FunctionRef> functions(NodeId N, CallKind Kind) const;
  std::string obstacle(NodeId N, CallKind Kind, uint32_t Chain,
                       llvm::ArrayRef<FunctionRef> Functions) const;
  bool isInside(llvm::StringRef Function, uint32_t Chain) const;

  uint64_t limit() const;
  bool isExhausted() const { return Made > Limit; }
  Body exhausted(const FunctionRef &F, uint32_t Chain, NodeId Call);
  Body instantiate(const FunctionRef &F, llvm::ArrayRef<Endpoint> Args,
                   const Site &At);
  Body branches(NodeId N, llvm::ArrayRef<Endpoint> Predicates,
                llvm::ArrayRef<FunctionRef> Functions, Ends Args,
                const Site &At, unsigned Level);
  void call(NodeId N, const FunctionRef &F, uint32_t Chain);
  void conditional(NodeId N, CallKind Kind,
                   llvm::ArrayRef<FunctionRef> Functions, uint32_t Chain);
  void loop(NodeId N, llvm::ArrayRef<FunctionRef> Functions, uint32_t Chain);
  void replace(NodeId N, const Body &B);
  void dropClasses(NodeId N);
  Ends controls(NodeId N) const;
  Ends witness(NodeId N);
  unsigned typeOf(Endpoint E) const;
  void wantType(llvm::StringRef Who, Endpoint E, unsigned Want,
                const llvm::Twine &What);
  void waitForEffects(Body &B, llvm::StringRef Prefix, NodeId After);

  NodeId add(llvm::StringRef Prefix, llvm::StringRef Name, llvm::StringRef Op,
             llvm::ArrayRef<Endpoint> Inputs, NodeId After,
             const AttrMap &Attrs = {});
  /// Adds a node with attribute T.
  Endpoint typed(llvm::StringRef Prefix, llvm::StringRef Name,
                 llvm::StringRef Op, llvm::ArrayRef<Endpoint> Inputs,
                 NodeId After, AttrMap Attrs = {});

  Graph &G;
  const InlineOptions &Options;
  FunctionLibrary Library;
  /// The bytes of added nodes, which have a limit. A chain of functions that
  /// each call the next function twice makes exponentially many nodes.
  uint64_t Made = 0;
  uint64_t Limit;
  std::string LikeScope;  ///< The scope of copies 0 in Options.Like.
  uint32_t OpsSeen = 0;   ///< The ops that witness() has seen.
  bool CanBeDead = false; ///< Set if one of these ops makes dead outputs.
  std::vector<Work> Queue;
  std::vector<Link> Chains;
  llvm::StringSet<> Gone; ///< The names of removed calls.
  uint32_t Device = 0;    ///< The device of the current call.
  InlineResult Result;
};

} // namespace graft

#endif // GRAFT_LIB_IO_INLINE_INLINER_H
