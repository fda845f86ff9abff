//===- lib/graph/Graph.h - the graph that passes edit -----------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
// A TensorFlow graph as flat arrays: 32-bit node ids, interned ops and devices,
// inputs as (node, port) with control inputs last. Every edit updates an index
// of users. Attributes stay the raw bytes of the file until they are read.
// Names, attributes and node bodies are slices of the mapped input; the data of
// edits lives in an arena that dies with the graph.
//
// Between passes a Graph is a *replicated program* (docs/Design.md): each node
// is marked as unreplicated or per-replica. A printed program has this mark,
// and the other fields of Node marked "program", as attributes with the prefix
// `_graft_`. The reader restores the fields, so that any pass can run alone on
// a text file.
//
//===----------------------------------------------------------------------===//

#ifndef GRAFT_LIB_GRAPH_GRAPH_H
#define GRAFT_LIB_GRAPH_GRAPH_H

#include "lib/ops/OpTable.h"
#include "lib/support/NameTable.h"

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/ADT/iterator_range.h"
#include "llvm/Support/Allocator.h"
#include "llvm/Support/Error.h"
#include "llvm/Support/StringSaver.h"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace graft {

class AttrRun;

using NodeId = uint32_t;
inline constexpr NodeId NoNode = ~NodeId(0);

/// Port of a control edge.
inline constexpr uint32_t ControlPort = ~uint32_t(0);

/// One input of a node: an output of another node, or a control edge.
struct Endpoint {
  NodeId Node = NoNode;
  uint32_t Port = 0;
  bool isControl() const { return Port == ControlPort; }
  bool operator==(const Endpoint &O) const {
    return Node == O.Node && Port == O.Port;
  }
  bool operator!=(const Endpoint &O) const { return !(*this == O); }
};

/// How many copies of a node run in one step (program).
enum class Copies : uint8_t { Once, PerReplica };

/// The purpose of a node that graft added (program). Each kind has a global
/// value. Replacing each added node by this value restores the input.
enum class Inserted : uint8_t {
  No, ///< From the input.
#define GRAFT_INSERTED(Kind, Name, Is, StandsFor) Kind,
#include "lib/graph/Inserted.def"
};

/// The policy of a variable (program).
enum class Policy : uint8_t {
  None,
  Mirrored,   ///< Equal copies.
  SyncOnRead, ///< Copies that differ, aggregated when read outside the step.
  Replicated, ///< Mirrored, with copies that are called `<v>/<i>`.
  Shared,     ///< One variable, which every replica uses.
  Host,       ///< Shared, on the host; replicas read a copy of its value.
};

/// Returns true if all replicas share one variable.
constexpr bool isShared(Policy Plan) { return Plan >= Policy::Shared; }

inline constexpr llvm::StringRef PolicyAttr = "_graft_policy";

/// Returns "mirrored", "sync-on-read", ...; "" for Policy::None.
llvm::StringRef policyName(Policy Plan);
/// Returns the policy that is called \p Name, or None.
Policy parsePolicy(llvm::StringRef Name);

/// Properties of a node, in Node::Flags (program unless said otherwise).
enum NodeFlag : uint8_t {
  NF_Dead = 1,          ///< Removed. Not visited, not written.
  NF_Modified = 2,      ///< The bytes read from the input are outdated.
  NF_LocalName = 4,     ///< Copy 0 is `replica_0/<name>`: its value is local.
  NF_Led = 8,           ///< Copy 0 waits for the other copies.
  NF_ElidePrimary = 16, ///< Copy 0 does not exist; its users read its input.
  NF_FixedDevice = 32,  ///< Every copy is on the device of the node.
  NF_MayHaveClass = 64, ///< If unset, there is no attribute `_class`.
  NF_MayHaveGraft = 128 ///< If unset, there is no attribute `_graft_*`.
};

struct Node {
  const char *NameData = nullptr;
  const char *AttrData = nullptr; ///< Run of NodeDef fields other than 1 to 4.
  const char *RawData = nullptr;  ///< The NodeDef as read, or null.
  uint32_t NameSize = 0;
  uint32_t AttrSize = 0;
  uint32_t RawSize = 0;
  uint32_t Op = 0;     ///< Index for Graph::opName.
  uint32_t Device = 0; ///< Index for Graph::deviceName; 0 is "".
  uint32_t FirstEdge = 0;
  uint32_t NumInputs = 0;
  uint32_t NumData = 0; ///< The first NumData inputs are data inputs.
  uint32_t FirstUse = ~uint32_t(0); ///< Head of the list of uses.
  NodeId After = NoNode; ///< A new node follows this one in the output.
  /// The offset of `/replica_<i>` in the name of copy i (program); 0: its name
  /// is `replica_<i>/<name>`.
  uint32_t NameSplit = 0;
  Copies Count = Copies::Once;
  Inserted Kind = Inserted::No;
  Policy Plan = Policy::None;
  uint8_t Flags = 0;

  bool isDead() const { return Flags & NF_Dead; }
};

/// An attribute: its key and the wire bytes of its AttrValue.
struct AttrEntry {
  llvm::StringRef Key;
  llvm::StringRef Value;
  llvm::StringRef Whole; ///< The field-5 entry, tag and length included.
};

/// A shape attribute or a constant's shape. Dimensions of -1 are unknown.
struct ShapeValue {
  bool UnknownRank = false;
  llvm::SmallVector<int64_t, 4> Dims;
};

/// A use of a node: input \p Index of \p User.
struct Use {
  NodeId User;
  uint32_t Index;
};

/// The properties of an op that are the same for all of its nodes.
struct OpFacts {
  /// An unknown number: it depends on attributes, or the op has no definition.
  static constexpr uint32_t Open = ~uint32_t(0);

  const OpDef *Def = nullptr;
  uint32_t Inputs = Open;  ///< Number of data inputs.
  uint32_t Outputs = Open; ///< Number of outputs.
  bool RefInputs = false;  ///< An input takes a reference.
  bool RefOutputs = false; ///< An output is a reference.
  bool OfUser = false;     ///< An op of neither TensorFlow nor graft.
};

class Graph {
public:
  Graph();
  Graph(const Graph &) = delete;
  Graph &operator=(const Graph &) = delete;
  ~Graph();

  //===--------------------------------------------------------------------===//
  // Reading
  //===--------------------------------------------------------------------===//

  /// Builds the graph of the serialized GraphDef \p Bytes, which must outlive
  /// it. Errors name the offset or the node: malformed wire format, a node
  /// without name or op, a duplicate name, an input that does not resolve, a
  /// data input after a control input.
  llvm::Error parse(llvm::StringRef Bytes) {
    return parse(llvm::ArrayRef(Bytes));
  }
  /// Parses a GraphDef in several parts, each of which has whole fields.
  /// Errors about bytes then begin with `part <number>: `.
  llvm::Error parse(llvm::ArrayRef<llvm::StringRef> Parts);

  /// The other fields of the GraphDef (versions, library, unknown) as read.
  llvm::ArrayRef<llvm::StringRef> otherFields() const { return Others; }
  /// Returns the contents of the message in field \p Number of otherFields():
  /// its parts one after the other, as protobuf merges them.
  std::string otherField(unsigned Number) const;

  /// Declares that the parsed bytes are large mapped files: see FileWalk.
  void setLargeParts(llvm::ArrayRef<llvm::StringRef> Parts) {
    LargeParts.assign(Parts.begin(), Parts.end());
  }
  llvm::ArrayRef<llvm::StringRef> largeParts() const { return LargeParts; }

  /// The number of nodes that were read, before any edit. Smaller ids are nodes
  /// of the input, in the order of the file.
  NodeId numInputNodes() const { return InputCount; }
  /// One more than the largest id; dead nodes count.
  NodeId size() const { return static_cast<NodeId>(Nodes.size()); }
  /// The number of nodes that are not dead.
  NodeId numLive() const { return Live; }

  const Node &node(NodeId N) const { return Nodes[N]; }
  Node &node(NodeId N) { return Nodes[N]; }
  bool isLive(NodeId N) const { return !Nodes[N].isDead(); }

  llvm::StringRef name(NodeId N) const {
    return {Nodes[N].NameData, Nodes[N].NameSize};
  }
  /// Returns the node called \p Name, or NoNode.
  NodeId find(llvm::StringRef Name) const;
  /// Returns the tensor or control edge that \p Text ("x", "x:1", "^x") names.
  std::optional<Endpoint> findEndpoint(llvm::StringRef Text) const;

  llvm::StringRef opName(NodeId N) const { return OpNames[Nodes[N].Op]; }
  /// The op's definition, or null if TensorFlow's registry has none.
  const OpDef *opDef(NodeId N) const { return Ops[Nodes[N].Op].Def; }
  /// The number of distinct ops; a per-op table is indexed by node(N).Op.
  uint32_t numOps() const { return static_cast<uint32_t>(OpNames.size()); }
  llvm::StringRef opNameOf(uint32_t Op) const { return OpNames[Op]; }
  const OpDef *opDefOf(uint32_t Op) const { return Ops[Op].Def; }
  const OpFacts &opFacts(uint32_t Op) const { return Ops[Op]; }
  bool isOp(NodeId N, llvm::StringRef Name) const { return opName(N) == Name; }

  /// Returns true if each replica has a copy of \p N.
  bool isPerReplica(NodeId N) const {
    return Nodes[N].Count == Copies::PerReplica;
  }

  llvm::StringRef device(NodeId N) const {
    return DeviceNames[Nodes[N].Device];
  }
  llvm::StringRef deviceName(uint32_t Id) const { return DeviceNames[Id]; }
  uint32_t numDevices() const {
    return static_cast<uint32_t>(DeviceNames.size());
  }

  llvm::ArrayRef<Endpoint> inputs(NodeId N) const {
    return {EdgeSources.data() + Nodes[N].FirstEdge, Nodes[N].NumInputs};
  }
  llvm::ArrayRef<Endpoint> dataInputs(NodeId N) const {
    return {EdgeSources.data() + Nodes[N].FirstEdge, Nodes[N].NumData};
  }
  llvm::ArrayRef<Endpoint> controlInputs(NodeId N) const {
    return inputs(N).drop_front(Nodes[N].NumData);
  }
  Endpoint input(NodeId N, unsigned I) const { return inputs(N)[I]; }
  Endpoint input(Use U) const { return input(U.User, U.Index); }
  /// Returns true if \p U is a data input and not a control input.
  bool isData(Use U) const { return U.Index < Nodes[U.User].NumData; }

  /// Calls \p F(Use) for each use of \p N, data and control. \p F must not
  /// edit the graph: collect first (uses()).
  template <typename Fn> void forEachUse(NodeId N, Fn F) const {
    for (uint32_t E = Nodes[N].FirstUse; E != NoEdge; E = Links[E].Next)
      F(Use{Links[E].User, E - Nodes[Links[E].User].FirstEdge});
  }
  /// Returns true if \p F(Use) is true for a use of \p N. Stops at the first.
  template <typename Fn> bool anyUse(NodeId N, Fn F) const {
    for (uint32_t E = Nodes[N].FirstUse; E != NoEdge; E = Links[E].Next)
      if (F(Use{Links[E].User, E - Nodes[Links[E].User].FirstEdge}))
        return true;
    return false;
  }
  /// Returns the uses of \p N, sorted by user and index.
  llvm::SmallVector<Use, 8> uses(NodeId N) const;
  bool hasUses(NodeId N) const { return Nodes[N].FirstUse != NoEdge; }

  //===--------------------------------------------------------------------===//
  // Attributes
  //===--------------------------------------------------------------------===//

  /// Returns the raw AttrValue bytes of \p Key, or nothing.
  std::optional<llvm::StringRef> attr(NodeId N, llvm::StringRef Key) const;
  bool hasAttr(NodeId N, llvm::StringRef Key) const {
    return attr(N, Key).has_value();
  }
  /// Prefetches the attributes of \p N, which are far from the node in memory.
  void prefetchAttrs(NodeId N) const {
    if (const char *Data = Nodes[N].AttrData) {
      __builtin_prefetch(Data);
      __builtin_prefetch(Data + 64);
    }
  }
  /// Returns all attributes, in the order of the file.
  llvm::SmallVector<AttrEntry, 8> attrs(NodeId N) const;

  /// Return typed values. A missing scalar attribute has the default of the op.
  /// The result is nothing if there is no value or a value of another kind.
  std::optional<int64_t> intAttr(NodeId N, llvm::StringRef Key) const;
  std::optional<bool> boolAttr(NodeId N, llvm::StringRef Key) const;
  std::optional<float> floatAttr(NodeId N, llvm::StringRef Key) const;
  std::optional<unsigned> typeAttr(NodeId N, llvm::StringRef Key) const;
  std::optional<llvm::StringRef> stringAttr(NodeId N,
                                            llvm::StringRef Key) const;
  std::optional<ShapeValue> shapeAttr(NodeId N, llvm::StringRef Key) const;
  std::optional<llvm::SmallVector<int64_t, 4>>
  intListAttr(NodeId N, llvm::StringRef Key) const;
  std::optional<llvm::SmallVector<ShapeValue, 2>>
  shapeListAttr(NodeId N, llvm::StringRef Key) const;
  /// Returns the types of a list(type) attribute; none if it is missing.
  llvm::SmallVector<unsigned, 4> typeListAttr(NodeId N,
                                              llvm::StringRef Key) const;
  std::optional<llvm::SmallVector<llvm::StringRef, 2>>
  stringListAttr(NodeId N, llvm::StringRef Key) const;

  /// Returns the number of outputs of \p N by its op's definition, or nothing
  /// for an unknown op.
  std::optional<unsigned> numOutputs(NodeId N) const;
  /// Returns the DataType of output \p Port, or DT_INVALID if it is not known.
  /// For a reference returns the type of the variable. For an op of the user's
  /// own (OfUser) returns the type that a reader expects.
  unsigned outputType(NodeId N, uint32_t Port) const;
  unsigned outputType(Endpoint E) const { return outputType(E.Node, E.Port); }
  /// The types of all outputs by the op's definition; none without one.
  llvm::SmallVector<unsigned, 4> outputTypes(NodeId N) const;
  /// Returns the DataType that data input \p Index of \p N takes, or DT_INVALID
  /// if it is not known.
  unsigned inputType(NodeId N, unsigned Index) const;
  /// Returns true if output \p Port is a reference to a variable.
  bool isRefOutput(NodeId N, uint32_t Port) const;
  /// Returns true if the op's definition has a reference as input \p Index.
  bool isRefInput(NodeId N, unsigned Index) const;

  //===--------------------------------------------------------------------===//
  // Edits. Each one keeps names, inputs and uses consistent.
  //===--------------------------------------------------------------------===//

  /// Adds a node. \p Name must be new (see uniqueName); \p After is the node
  /// that it follows in the output. Control inputs come last.
  NodeId addNode(llvm::StringRef Name, llvm::StringRef Op,
                 llvm::ArrayRef<Endpoint> Inputs, NodeId After);
  /// Returns \p Name, or \p Name with the first free suffix `_1`, `_2`, ...
  std::string uniqueName(llvm::StringRef Name) const;
  /// Adds a node of the kind \p Kind with \p Attrs and \p Count copies under
  /// the name uniqueName(\p Name). \p Inputs must not point into the graph.
  NodeId insertNode(llvm::StringRef Name, llvm::StringRef Op,
                    llvm::ArrayRef<Endpoint> Inputs, NodeId After,
                    const AttrRun &Attrs, Inserted Kind = Inserted::No,
                    Copies Count = Copies::Once);
  void rename(NodeId N, llvm::StringRef NewName);
  /// Sets the op of \p N to \p Op. Inputs and attributes stay.
  void setOp(NodeId N, llvm::StringRef Op);
  void setDevice(NodeId N, llvm::StringRef Device);
  void setPolicy(NodeId N, Policy Plan) {
    Nodes[N].Plan = Plan;
    touch(N);
  }
  void setInput(NodeId N, unsigned Index, Endpoint Source);
  void setInputs(NodeId N, llvm::ArrayRef<Endpoint> Inputs);
  /// Adds control input \p Source to \p N unless \p N has it.
  void addControlInput(NodeId N, NodeId Source);
  /// Makes every data user of \p From read \p To instead, except \p Except.
  void replaceUses(Endpoint From, Endpoint To, NodeId Except = NoNode);
  /// Removes \p N, which must have no uses.
  void remove(NodeId N);

  /// Sets an attribute to the AttrValue \p Value (wire bytes).
  void setAttr(NodeId N, llvm::StringRef Key, llvm::StringRef Value);
  void setIntAttr(NodeId N, llvm::StringRef Key, int64_t Value);
  void setBoolAttr(NodeId N, llvm::StringRef Key, bool Value);
  void setTypeAttr(NodeId N, llvm::StringRef Key, unsigned Type);
  void setStringAttr(NodeId N, llvm::StringRef Key, llvm::StringRef Value);
  void removeAttr(NodeId N, llvm::StringRef Key);
  /// Drops the entries of the `_class` of \p N for which \p Stays is false.
  /// Returns true if there were any.
  bool keepClasses(NodeId N, llvm::function_ref<bool(llvm::StringRef)> Stays);

  /// Replaces field \p Index of otherFields() by \p Field, tag included.
  void setOtherField(size_t Index, llvm::StringRef Field) {
    Others[Index] = save(Field);
    markModified();
  }
  /// Replaces all other fields of the GraphDef with the number \p Number by
  /// \p Field, tag included.
  void replaceOtherFields(unsigned Number, llvm::StringRef Field);

  /// Returns true if the graph was edited since it was read.
  bool modified() const { return Changed; }
  /// Marks the graph as modified after a direct edit of fields of a Node, which
  /// the graph cannot detect.
  void markModified() {
    Changed = true;
    ++Revision;
  }
  /// A number that grows with every edit.
  uint64_t revision() const { return Revision; }

  /// Returns the node that the only entry of `_class` of \p N names. Returns
  /// NoNode if the caller must look up the node: `_class` may be absent, new or
  /// in another form, or the node may have a new name.
  NodeId colocatedWith(NodeId N) const {
    NodeId With = N < Colocated.size() ? Colocated[N] : NoNode;
    return With != NoNode && hasReadName(With) ? With : NoNode;
  }
  /// Notes that the only entry of `_class` of \p N names \p With.
  void noteColocation(NodeId N, NodeId With) {
    if (N >= Colocated.size())
      Colocated.resize(N + 1, NoNode);
    Colocated[N] = With;
  }

  /// Notes that the graph is verified now, so that a later verification can
  /// skip the nodes that did not change.
  void markVerified() {
    VerifiedCount = size();
    LostNames.clear();
  }
  /// Returns true if the name, op, device, inputs and attributes of \p N did
  /// not change since the graph was verified.
  bool isAsVerified(NodeId N) const {
    return N < VerifiedCount && !(Nodes[N].Flags & NF_Modified);
  }
  /// Returns true if the graph still has all names of the verified graph.
  bool hasVerifiedNames() const;

  /// Copies \p Text into the arena of the graph.
  llvm::StringRef save(const llvm::Twine &Text) { return Saver.save(Text); }

  /// Returns a hash of all written data, to check that a pass with the result
  /// Unchanged did not change the graph.
  uint64_t fingerprint() const;

  /// Returns live node ids in output order: input order, with each new node
  /// after the node that it derives from.
  std::vector<NodeId> order() const;

private:
  friend class AttrRun;
  static constexpr uint32_t NoEdge = ~uint32_t(0);
  struct Link {
    NodeId User;
    uint32_t Next;
    uint32_t Prev;
  };

  enum class Fault : uint8_t { None, Malformed, NoName, NoOp, TooLarge };
  struct Inputs;

  llvm::Error parseNodes(llvm::ArrayRef<llvm::StringRef> Parts, Inputs &In);
  Fault parseNode(Inputs &In, llvm::StringRef Body);
  bool parseRest(Inputs &In, llvm::StringRef Body, const char *From,
                 llvm::StringRef &Op);
  void addInput(Inputs &In, llvm::StringRef Text);
  llvm::Error indexNames();
  template <typename T, typename Fn>
  bool lookUp(llvm::ArrayRef<T> List, Fn F) const;
  llvm::Error resolveInputs(const Inputs &In);
  void addClass(Inputs &In, llvm::StringRef Entry);
  void resolveClasses(const Inputs &In);
  void linkInputs();
  void readProgramAttrs(NodeId N);
  char *putAttr(NodeId N, llvm::StringRef Key, uint64_t ValueSize);
  /// Adds a node whose name is saved and in the table.
  Node &appendNode(llvm::StringRef Name, llvm::StringRef Op, NodeId After);
  /// Returns the NF_MayHave flags for an attribute.
  static uint8_t attrFlags(llvm::StringRef Key);
  void forgetColocation(NodeId N, llvm::StringRef Key) {
    if (N < Colocated.size() && Key == "_class")
      Colocated[N] = NoNode;
  }
  /// Returns true if \p N is live under the name that was read.
  bool hasReadName(NodeId N) const {
    const Node &This = Nodes[N];
    return !This.isDead() && This.RawData && This.NameData >= This.RawData &&
           This.NameData < This.RawData + This.RawSize;
  }
  uint32_t internOp(llvm::StringRef Name) {
    uint32_t Hash = hashBytes(Name);
    uint32_t Id =
        OpIds.find(Name, Hash, [this](uint32_t I) { return OpNames[I]; });
    return Id != NameTable::None ? Id : addOp(Name, Hash);
  }
  uint32_t addOp(llvm::StringRef Name, uint32_t Hash);
  uint32_t internDevice(llvm::StringRef Name);
  void link(uint32_t Edge, NodeId User) {
    Node &Source = Nodes[EdgeSources[Edge].Node];
    Links[Edge] = {User, Source.FirstUse, NoEdge};
    if (Source.FirstUse != NoEdge)
      Links[Source.FirstUse].Prev = Edge;
    Source.FirstUse = Edge;
  }
  void unlink(uint32_t Edge);
  void touch(NodeId N) {
    Nodes[N].Flags |= NF_Modified;
    markModified();
  }
  /// Removes `^` or `:port` from \p Text and returns the port.
  static uint32_t splitPort(llvm::StringRef &Text);
  auto nameOf() const {
    return [this](NodeId N) { return name(N); };
  }
  void eraseName(NodeId N);

  std::vector<Node> Nodes;
  std::vector<Endpoint> EdgeSources;
  std::vector<Link> Links;
  NameTable Names;
  std::vector<llvm::StringRef> OpNames;
  std::vector<OpFacts> Ops;
  std::vector<llvm::StringRef> DeviceNames;
  NameTable OpIds;
  NameTable DeviceIds;
  uint32_t LastDevice = 0; ///< The device of the last lookup.
  std::vector<llvm::StringRef> Others;
  llvm::StringRef LastRun; ///< Attributes of the last inserted node.
  llvm::BumpPtrAllocator Arena;
  llvm::StringSaver Saver{Arena};
  std::vector<llvm::StringRef> LargeParts;
  std::vector<NodeId> Colocated; ///< See colocatedWith.
  NodeId InputCount = 0;
  NodeId Live = 0;
  NodeId VerifiedCount = 0;
  /// The names that were erased since the graph was verified.
  std::vector<llvm::StringRef> LostNames;
  uint64_t Revision = 0;
  bool Changed = false;
};

//===----------------------------------------------------------------------===//
// Values
//===----------------------------------------------------------------------===//

/// AttrValue bytes of simple values.
std::string encodeIntAttr(int64_t Value);
std::string encodeBoolAttr(bool Value);
std::string encodeTypeAttr(unsigned Type);
std::string encodeStringAttr(llvm::StringRef Value);
std::string encodeStringListAttr(llvm::ArrayRef<llvm::StringRef> Values);
std::string encodeShapeAttr(const ShapeValue &Shape);
std::string encodeIntListAttr(llvm::ArrayRef<int64_t> Values);
/// A list of types; \p Types holds one DataType per character.
std::string encodeTypeListAttr(llvm::StringRef Types);

/// A constant tensor, decoded as far as passes need it.
struct TensorValue {
  unsigned Type = DT_INVALID;
  ShapeValue Shape;
  int64_t NumElements = 0;
  /// The elements of an integer tensor, if there are at most MaxInts.
  llvm::SmallVector<int64_t, 4> Ints;
  bool HasInts = false;
  /// Set if every element is zero (numeric tensors only).
  bool AllZero = false;
};

/// Decodes the tensor in the AttrValue \p Value; nothing if it is malformed.
std::optional<TensorValue> tensorValue(llvm::StringRef Value,
                                       int64_t MaxInts = 64);
/// Decodes the value of the Const node \p N; nothing if it is malformed.
std::optional<TensorValue> constValue(const Graph &G, NodeId N,
                                      int64_t MaxInts = 64);

/// Returns the tensor in the AttrValue \p Value with another shape if all of
/// its elements are equal. The encoding is that of a tensor of the new shape.
std::optional<std::string> resizeSplat(llvm::StringRef Value,
                                       llvm::ArrayRef<int64_t> Shape);

/// Returns the only element of a numeric Const node, if it has one element.
std::optional<double> constScalar(const Graph &G, NodeId N);

/// Returns the AttrValue bytes of a string scalar.
std::string encodeStringTensor(llvm::StringRef Value);
/// Return the AttrValue bytes of an integer or floating tensor.
std::string encodeIntTensor(unsigned Type, llvm::ArrayRef<int64_t> Shape,
                            llvm::ArrayRef<int64_t> Values);
std::string encodeFloatTensor(unsigned Type, llvm::ArrayRef<int64_t> Shape,
                              llvm::ArrayRef<double> Values);

} // namespace graft

#endif // GRAFT_LIB_GRAPH_GRAPH_H
