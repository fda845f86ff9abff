//===- lib/strategy/ResourceFile.cpp - resource_spec.yml --------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
// Parses AutoDist's file of machines. LLVM's parser returns a stream of YAML
// nodes that can be read once, in order. The nodes are copied to a tree first,
// so that checks may look up keys in any order.
//
//===----------------------------------------------------------------------===//

#include "lib/strategy/Resources.h"
#include "lib/support/Diagnostics.h"
#include "lib/support/ReadFile.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/YAMLParser.h"

#include <algorithm>
#include <cmath>

using namespace llvm;

namespace graft {
namespace {

/// The exclusive upper bound of device indices.
constexpr unsigned MaxIndex = 65536;
/// The maximum bandwidth in Gbit/s.
constexpr double MaxBandwidth = 1e6;
/// The maximum depth of nested sequences and mappings.
constexpr unsigned MaxYamlDepth = 16;

struct Value {
  enum KindType { Scalar, List, Map, Other };
  KindType Kind = Other;
  std::string Text;         ///< Scalar.
  bool IsPlain = false;     ///< Scalar: not in quotes.
  std::vector<Value> Items; ///< List; Map: keys and values in turn.
  std::pair<unsigned, unsigned> Place{1, 1};
};

class ResourceReader {
public:
  ResourceReader(StringRef Text, StringRef File,
                 std::vector<std::string> &Notes)
      : Text(Text), File(File), Notes(Notes),
        Stream(Text, Sources, /*ShowColors=*/false) {
    Lines.push_back(Text.begin());
    for (const char &C : Text)
      if (C == '\n')
        Lines.push_back(&C + 1);
    Sources.setDiagHandler(
        [](const SMDiagnostic &D, void *Reader) {
          auto &First = static_cast<ResourceReader *>(Reader)->Syntax;
          if (First.empty())
            First = (Twine(D.getLineNo()) + ":" + Twine(D.getColumnNo() + 1) +
                     ": " + D.getMessage())
                        .str();
        },
        this);
  }

  Expected<ResourceSpec> read();

private:
  Error failure(const Value &At, const Twine &Message) const {
    return createStringError(inconvertibleErrorCode(), where(At) + Message);
  }
  std::string where(const Value &At) const {
    return (File + ":" + Twine(At.Place.first) + ":" + Twine(At.Place.second) +
            ": ")
        .str();
  }
  void note(const Value &At, const Twine &Message) {
    Notes.push_back((where(At) + Message).str());
  }

  std::optional<std::pair<unsigned, unsigned>>
  placeOf(const yaml::Node &Node) const;
  /// Returns the line and the column of \p At.
  std::pair<unsigned, unsigned> placeAt(const char *At) const;
  Error convert(yaml::Node *From, Value &To, unsigned Depth);
  /// Refuses a key that is not among \p Known or is repeated.
  Error checkKeys(const Value &Map, StringRef What,
                  const std::vector<std::string> &Known) const;
  Error readNode(const Value &Map, ResourceNode &To);
  Error readIndices(StringRef Key, const Value &List,
                    std::vector<unsigned> &To) const;
  Error chooseChief(const Value &Nodes, ResourceSpec &Spec);

  StringRef Text, File;
  std::vector<std::string> &Notes;
  std::string Syntax; ///< The first error of the parser.
  SourceMgr Sources;
  yaml::Stream Stream;
  std::vector<const char *> Lines; ///< The starts of the lines.
  unsigned NoBandwidth = 0;        ///< Nodes without a bandwidth.
};

const Value *lookUp(const Value &Map, StringRef Key) {
  for (size_t I = 0; I < Map.Items.size(); I += 2)
    if (Map.Items[I].Text == Key)
      return &Map.Items[I + 1];
  return nullptr;
}

std::optional<std::pair<unsigned, unsigned>>
ResourceReader::placeOf(const yaml::Node &Node) const {
  // The parser gives these nodes the place of the next token.
  if (isa<yaml::NullNode, yaml::AliasNode>(Node) ||
      !Node.getSourceRange().isValid())
    return std::nullopt;
  const char *At = Node.getSourceRange().Start.getPointer();
  // The parser gives a list in brackets the place of its first item.
  if (isa<yaml::SequenceNode, yaml::MappingNode>(Node)) {
    StringRef Before =
        Text.take_front(static_cast<size_t>(At - Text.begin())).rtrim();
    if (Before.ends_with("[") || Before.ends_with("{"))
      At = Before.end() - 1;
  }
  return placeAt(At);
}

std::pair<unsigned, unsigned> ResourceReader::placeAt(const char *At) const {
  // (SourceMgr would search for the line's start, maybe in the whole file.)
  auto Line = std::upper_bound(Lines.begin(), Lines.end(), At) - Lines.begin();
  return {static_cast<unsigned>(Line),
          static_cast<unsigned>(At - Lines[Line - 1]) + 1};
}

Error ResourceReader::convert(yaml::Node *From, Value &To, unsigned Depth) {
  if (!From)
    return Error::success();
  if (auto Place = placeOf(*From))
    To.Place = *Place;
  if (Depth > MaxYamlDepth)
    return failure(To, "lists are nested too deeply");
  SmallString<32> Storage;
  if (auto *Scalar = dyn_cast<yaml::ScalarNode>(From)) {
    To.Kind = Value::Scalar;
    To.Text = Scalar->getValue(Storage).str();
    StringRef Raw = Scalar->getRawValue();
    To.IsPlain = !Raw.starts_with("'") && !Raw.starts_with("\"");
    return Error::success();
  }
  if (auto *List = dyn_cast<yaml::SequenceNode>(From)) {
    To.Kind = Value::List;
    for (yaml::Node &Item : *List)
      if (Error E = convert(&Item, To.Items.emplace_back(), Depth + 1))
        return E;
    return Error::success();
  }
  if (auto *Map = dyn_cast<yaml::MappingNode>(From)) {
    To.Kind = Value::Map;
    for (yaml::KeyValueNode &Item : *Map) {
      Value Key, Of;
      if (Error E = convert(Item.getKey(), Key, Depth + 1))
        return E;
      Of.Place = Key.Place;
      if (Error E = convert(Item.getValue(), Of, Depth + 1))
        return E;
      To.Items.push_back(std::move(Key));
      To.Items.push_back(std::move(Of));
    }
    return Error::success();
  }
  if (isa<yaml::AliasNode>(From))
    return failure(To,
                   "an alias, *NAME, is not supported; write the value out");
  return Error::success();
}

Error ResourceReader::checkKeys(const Value &Map, StringRef What,
                                const std::vector<std::string> &Known) const {
  std::vector<StringRef> Seen;
  for (size_t I = 0; I < Map.Items.size(); I += 2) {
    const Value &Key = Map.Items[I];
    if (Key.Kind != Value::Scalar)
      return failure(Map, What + " has a key that is not a word");
    if (!is_contained(Known, Key.Text))
      return failure(Key, What + " has the unknown key '" + Key.Text + "'" +
                              didYouMean(Key.Text, Known,
                                         "; it may have " + join(Known, ", ")));
    if (is_contained(Seen, Key.Text))
      return failure(Key, What + " has '" + Key.Text + "' twice");
    Seen.push_back(Key.Text);
  }
  return Error::success();
}

Error ResourceReader::readIndices(StringRef Key, const Value &List,
                                  std::vector<unsigned> &To) const {
  if (List.Kind != Value::List)
    return failure(List, "'" + Key +
                             "' is not a list of indices, such as "
                             "[0, 1]");
  To.clear();
  std::vector<bool> Seen(MaxIndex);
  for (const Value &Item : List.Items) {
    unsigned Index;
    if (Item.Kind != Value::Scalar || !Item.IsPlain ||
        StringRef(Item.Text).getAsInteger(10, Index) || Index >= MaxIndex)
      return failure(
          Item, "'" + Key +
                    "' has an entry that is not an index between 0 and " +
                    Twine(MaxIndex - 1) +
                    (Item.Text.empty() ? Twine("") : ": '" + Item.Text + "'"));
    if (Seen[Index])
      return failure(Item, "'" + Key + "' has " + Twine(Index) + " twice");
    Seen[Index] = true;
    To.push_back(Index);
  }
  sort(To);
  return Error::success();
}

Error ResourceReader::readNode(const Value &Map, ResourceNode &To) {
  if (Map.Kind != Value::Map)
    return failure(Map, "a node is not of the form {address: NAME, gpus: [0]}");
  if (Error E = checkKeys(Map, "a node",
                          {"address", "chief", "gpus", "cpus",
                           "network_bandwidth", "ssh_config"}))
    return E;
  const Value *Address = lookUp(Map, "address");
  if (!Address)
    return failure(Map, "a node has no 'address'");
  StringRef Name = Address->Text;
  if (Address->Kind != Value::Scalar || Name.empty() ||
      Name.find_first_of("/, \t\n") != StringRef::npos)
    return failure(*Address, "'address' is not the name or number of a host");
  To.Address = Name.str();
  if (const Value *Chief = lookUp(Map, "chief")) {
    std::optional<bool> Is = Chief->Kind == Value::Scalar && Chief->IsPlain
                                 ? yaml::parseBool(Chief->Text)
                                 : std::nullopt;
    if (!Is)
      return failure(*Chief, "'chief' is neither true nor false");
    To.Chief = *Is;
  }
  To.Cpus = {0};
  if (const Value *Cpus = lookUp(Map, "cpus")) {
    if (Error E = readIndices("cpus", *Cpus, To.Cpus))
      return E;
    if (To.Cpus.empty())
      return failure(*Cpus,
                     "'cpus' is empty, but a machine has at least one CPU");
  }
  if (const Value *Gpus = lookUp(Map, "gpus"))
    if (Error E = readIndices("gpus", *Gpus, To.Gpus))
      return E;
  const Value *Bandwidth = lookUp(Map, "network_bandwidth");
  if (!Bandwidth) {
    ++NoBandwidth;
    return Error::success();
  }
  if (Bandwidth->Kind != Value::Scalar || !Bandwidth->IsPlain ||
      !to_float(Bandwidth->Text, To.Bandwidth) ||
      !std::isfinite(To.Bandwidth) || To.Bandwidth <= 0 ||
      To.Bandwidth > MaxBandwidth)
    return failure(*Bandwidth, "'network_bandwidth' is not a number of Gbit/s "
                               "above 0 and up to 1000000");
  return Error::success();
}

/// Moves the chief to the front.
Error ResourceReader::chooseChief(const Value &Nodes, ResourceSpec &Spec) {
  std::vector<ResourceNode> &All = Spec.Nodes;
  if (All.size() == 1)
    All.front().Chief = true;
  auto Chief = find_if(All, [](const ResourceNode &N) { return N.Chief; });
  if (Chief == All.end())
    return failure(Nodes, "none of the nodes is the chief; give one of them "
                          "'chief: true'");
  auto Second = std::find_if(Chief + 1, All.end(),
                             [](const ResourceNode &N) { return N.Chief; });
  if (Second != All.end())
    return failure(Nodes.Items[Second - All.begin()],
                   "'" + Second->Address + "' is a second chief, after '" +
                       Chief->Address + "'");
  std::rotate(All.begin(), Chief, Chief + 1);
  return Error::success();
}

/// Returns the comma of \p Text at which a run of commas, with only comments
/// between them, is too long; or null. The parser recurses for each such comma.
/// A '#' may begin a comment or not, depending on its context, so both cases
/// are counted.
static const char *commaTooMany(StringRef Text) {
  constexpr unsigned MaxCommas = 64;
  unsigned Commas = 0, WithComments = 0;
  bool InComment = false;
  for (const char &C : Text) {
    InComment = C == '#' || (InComment && C != '\n');
    if (isSpace(C))
      continue;
    Commas = C == ',' ? Commas + 1 : 0;
    if (!InComment)
      WithComments = C == ',' ? WithComments + 1 : 0;
    if (std::max(Commas, WithComments) > MaxCommas)
      return &C;
  }
  return nullptr;
}

Expected<ResourceSpec> ResourceReader::read() {
  Value Root;
  if (const char *At = commaTooMany(Text)) {
    Root.Place = placeAt(At);
    return failure(Root,
                   "a list has too many commas with nothing between them");
  }
  auto Document = Stream.begin();
  Error E = convert(Document->getRoot(), Root, 0);
  if (!E && !Stream.failed()) {
    ++Document;
    if (Document != Stream.end() &&
        !isa_and_nonnull<yaml::NullNode>(Document->getRoot()))
      E = failure(Root, "the file has several documents");
  }
  if (Stream.failed()) {
    consumeError(std::move(E));
    return createStringError(inconvertibleErrorCode(), File + ":" + Syntax);
  }
  if (E)
    return E;
  if (Root.Kind != Value::Map)
    return failure(
        Root,
        "the file has no list 'nodes': [{address: NAME, gpus: [0]}, ...]");
  if (Error E = checkKeys(Root, "the file", {"nodes", "ssh"}))
    return E;
  const Value *Nodes = lookUp(Root, "nodes");
  if (!Nodes || Nodes->Kind != Value::List || Nodes->Items.empty())
    return failure(
        Nodes ? *Nodes : Root,
        "the file has no list 'nodes': [{address: NAME, gpus: [0]}, ...]");
  ResourceSpec Spec;
  StringMap<unsigned> Lines;
  for (const Value &Item : Nodes->Items) {
    if (Error E = readNode(Item, Spec.Nodes.emplace_back()))
      return E;
    StringRef Address = Spec.Nodes.back().Address;
    auto [It, IsNew] = Lines.try_emplace(Address, Item.Place.first);
    if (!IsNew)
      return failure(*lookUp(Item, "address"),
                     "'" + Address +
                         "' is already the address of the node in line " +
                         Twine(It->second));
  }
  if (Error E = chooseChief(*Nodes, Spec))
    return E;
  if (NoBandwidth != 0 && Spec.Nodes.size() > 1)
    note(*Nodes, Twine(NoBandwidth) + " of " + Twine(Spec.Nodes.size()) +
                     " nodes have no 'network_bandwidth': 1 Gbit/s is assumed");
  if (const Value *Ssh = lookUp(Root, "ssh"))
    note(*Ssh, "'ssh' is ignored: graft writes a graph and starts no process");
  return Spec;
}

} // namespace

Expected<ResourceSpec> parseResources(StringRef Text, StringRef File,
                                      std::vector<std::string> &Notes) {
  return ResourceReader(Text, File, Notes).read();
}

Expected<ResourceSpec> readResources(StringRef File,
                                     std::vector<std::string> &Notes) {
  if (File.empty())
    return createStringError(inconvertibleErrorCode(),
                             "the name of the file is empty");
  auto Buffer = readFile(File, /*RequiresNullTerminator=*/true);
  if (!Buffer)
    return fileError(File, createStringError(inconvertibleErrorCode(),
                                             "cannot be read: " +
                                                 Buffer.getError().message()));
  Expected<ResourceSpec> Spec =
      parseResources((*Buffer)->getBuffer(), File, Notes);
  if (!Spec)
    return fileError(File, Spec.takeError());
  return Spec;
}

} // namespace graft
