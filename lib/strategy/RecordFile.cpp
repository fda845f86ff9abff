//===- lib/strategy/RecordFile.cpp - strategy files -------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
// A variable is `w:0` in a file and `w` in a record. Its parts, which have no
// names in a record, are `w/part_0:0` and so on.
//
//===----------------------------------------------------------------------===//

#include "lib/strategy/RecordFile.h"

#include "lib/io/read/Sniff.h"
#include "lib/support/Diagnostics.h"
#include "lib/support/Failure.h"
#include "lib/support/ReadFile.h"

#include "autodist/strategy.pb.h"

#include "google/protobuf/io/coded_stream.h"
#include "google/protobuf/io/tokenizer.h"
#include "google/protobuf/io/zero_copy_stream_impl_lite.h"
#include "google/protobuf/text_format.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/MemoryBuffer.h"

#include <map>

using namespace llvm;

namespace graft {
namespace {

namespace pb = autodist::proto;
using Wire = pb::AllReduceSynchronizer;

/// Pairs of an enum value of a file and of a record.
constexpr std::pair<Wire::Spec, Synchronizer::SpecType> SpecPairs[] = {
    {Wire::AUTO, Synchronizer::Auto},
    {Wire::NCCL, Synchronizer::Nccl},
    {Wire::RING, Synchronizer::Ring},
};
constexpr std::pair<Wire::Compressor, Synchronizer::CompressorType>
    CompressorPairs[] = {
        {Wire::NoneCompressor, Synchronizer::None},
        {Wire::HorovodCompressor, Synchronizer::Fp16},
        {Wire::HorovodCompressorEF, Synchronizer::Fp16EF},
        {Wire::Bfloat16Compressor, Synchronizer::BF16},
        {Wire::Bfloat16CompressorEF, Synchronizer::BF16EF},
};

/// Keeps the first error, with its place.
class Collector final : public google::protobuf::io::ErrorCollector {
public:
  void AddError(int Line, int Column, const std::string &What) override {
    if (!Message.empty())
      return;
    // An error of the whole file has the line -1.
    if (Line >= 0)
      Message = formatv("{0}:{1}: ", Line + 1, Column + 1);
    Message += What;
  }
  void AddWarning(int, int, const std::string &) override {}

  std::string Message;
};

/// Returns the entry that is open where a text file ends too early, or "".
std::string unclosedIn(StringRef Text) {
  namespace io = google::protobuf::io;
  Collector Ignored;
  io::ArrayInputStream Stream(Text.data(), static_cast<int>(Text.size()));
  io::Tokenizer Tokens(&Stream, &Ignored);
  Tokens.set_comment_style(io::Tokenizer::SH_COMMENT_STYLE);
  std::vector<std::pair<std::string, int>> Open; ///< Names and lines.
  std::string Name;
  while (Tokens.Next()) {
    const io::Tokenizer::Token &T = Tokens.current();
    if (T.type == io::Tokenizer::TYPE_IDENTIFIER)
      Name = T.text;
    else if (T.text == "{" || T.text == "<")
      Open.emplace_back(Name, T.line + 1);
    else if ((T.text == "}" || T.text == ">") && !Open.empty())
      Open.pop_back();
  }
  if (Open.empty())
    return "";
  return formatv("the file ends inside of the '{0}' that begins in line {1}; "
                 "its end, '}', is missing",
                 Open.back().first, Open.back().second);
}

/// Returns a message about the entry whose stated length exceeds the rest of a
/// binary file, or "".
std::string truncationOf(StringRef Bytes) {
  namespace io = google::protobuf::io;
  io::CodedInputStream Stream(reinterpret_cast<const uint8_t *>(Bytes.data()),
                              static_cast<int>(Bytes.size()));
  std::map<int, unsigned> Counts;
  while (uint32_t Tag = Stream.ReadTag()) {
    const auto *Field = pb::Strategy::descriptor()->FindFieldByNumber(
        static_cast<int>(Tag >> 3));
    uint32_t Size;
    // All fields of a strategy have a length.
    if (!Field || (Tag & 7) != 2 || !Stream.ReadVarint32(&Size))
      return "";
    unsigned Index = Counts[Field->number()]++;
    auto At = static_cast<size_t>(Stream.CurrentPosition());
    if (Size > Bytes.size() - At)
      return formatv("{0} {1} has {2} bytes from byte {3} on, but the file "
                     "ends after {4} of them",
                     Field->name(), Index, Size, At, Bytes.size() - At);
    Stream.Skip(static_cast<int>(Size));
  }
  return "";
}

/// Returns true if \p M or a message in it has an unknown field.
bool hasUnknownFields(const google::protobuf::Message &M) {
  const google::protobuf::Reflection *R = M.GetReflection();
  if (!R->GetUnknownFields(M).empty())
    return true;
  std::vector<const google::protobuf::FieldDescriptor *> Fields;
  R->ListFields(M, &Fields);
  for (const auto *F : Fields) {
    if (F->cpp_type() != google::protobuf::FieldDescriptor::CPPTYPE_MESSAGE)
      continue;
    if (!F->is_repeated()) {
      if (hasUnknownFields(R->GetMessage(M, F)))
        return true;
      continue;
    }
    for (int I = 0; I < R->FieldSize(M, F); ++I)
      if (hasUnknownFields(R->GetRepeatedMessage(M, F, I)))
        return true;
  }
  return false;
}

/// Parses a message. \p Places receives the positions of entries in text.
Expected<pb::Strategy>
parseMessage(StringRef Bytes, StringRef File,
             google::protobuf::TextFormat::ParseInfoTree &Places) {
  pb::Strategy Message;
  if (File.ends_with(".pbtxt") || looksLikeText(Bytes)) {
    google::protobuf::TextFormat::Parser Parser;
    Collector Errors;
    Parser.RecordErrorsTo(&Errors);
    Parser.WriteLocationsTo(&Places);
    Parser.SetRecursionLimit(TextDepth);
    google::protobuf::io::ArrayInputStream Stream(
        Bytes.data(), static_cast<int>(Bytes.size()));
    bool IsText = Parser.Parse(&Stream, &Message);
    // A short binary file may look like text: letters, or a comment after '#'.
    if (pb::Strategy Binary;
        (!IsText || Message.ByteSizeLong() == 0) && !File.ends_with(".pbtxt") &&
        Binary.ParseFromArray(Bytes.data(), static_cast<int>(Bytes.size())) &&
        !hasUnknownFields(Binary))
      return Binary;
    if (!IsText) {
      std::string Unclosed = unclosedIn(Bytes);
      return failure(File + ":" + Errors.Message +
                     (Unclosed.empty() ? "" : "; " + Unclosed));
    }
    // Only a text file can have a string that is not UTF-8.
    if (pb::Strategy Again; !Again.ParseFromString(Message.SerializeAsString()))
      return failure(File + ": a string is not UTF-8");
    return Message;
  }
  if (!Message.ParseFromArray(Bytes.data(), static_cast<int>(Bytes.size()))) {
    std::string Where = truncationOf(Bytes);
    return failure(File + ": is " +
                   (Where.empty() ? "malformed, or not a strategy"
                                  : "truncated: " + Where));
  }
  if (hasUnknownFields(Message))
    return failure(File + ": is not a strategy: it has unknown fields");
  return Message;
}

/// Returns `w` for `w:0`.
StringRef variableOf(StringRef Name) {
  Name.consume_back(":0");
  return Name;
}

template <typename From, typename To, size_t Size>
Error translate(From Value, const std::pair<From, To> (&List)[Size],
                StringRef Field, To &Result) {
  for (auto [Here, There] : List)
    if (Here == Value) {
      Result = There;
      return Error::success();
    }
  return failure(formatv("{0} {1} is not known", Field, int(Value)));
}

Error readSynchronizer(const pb::Strategy::Node &Node, Synchronizer &S) {
  if (Node.has_pssynchronizer()) {
    const pb::PSSynchronizer &From = Node.pssynchronizer();
    S.Kind = Synchronizer::PS;
    S.Destination = From.reduction_destination();
    S.Proxy = From.local_replication();
    S.Sync = From.sync();
    S.Staleness = From.staleness();
    return S.Staleness < 0
               ? failure("the staleness is negative; give 0 or more")
               : Error::success();
  }
  if (!Node.has_allreducesynchronizer())
    return failure("has no synchronizer; give it a PSSynchronizer or an "
                   "AllReduceSynchronizer");
  const Wire &From = Node.allreducesynchronizer();
  S.Kind = Synchronizer::AllReduce;
  S.Group = From.group();
  if (S.Group < 0)
    return failure("the group number is negative; give 0 or more");
  if (Error E = translate(From.spec(), SpecPairs, "spec", S.Spec))
    return E;
  return translate(From.compressor(), CompressorPairs, "compressor",
                   S.Compressor);
}

/// Parses a partitioner such as `1,2,1`.
Error readPartitioner(StringRef Text, std::vector<unsigned> &Parts) {
  if (Text.empty())
    return Error::success();
  SmallVector<StringRef, 4> Words;
  Text.split(Words, ',');
  for (StringRef Word : Words)
    if (Word.trim().getAsInteger(10, Parts.emplace_back()) || Parts.back() == 0)
      return failure("partitioner '" + Text +
                     "' is not a list of numbers of parts, such as 1,2,1");
  if (any_of(Parts, [](unsigned N) { return N > MaxParts; }))
    return failure("partitioner '" + Text + "' asks for more than " +
                   Twine(MaxParts) + " parts");
  if (count_if(Parts, [](unsigned N) { return N > 1; }) > 1)
    return failure(
        "partitioner '" + Text +
        "' partitions more than one axis; only one can be partitioned");
  return Error::success();
}

Error readVariable(const pb::Strategy::Node &Node, VariableStrategy &V) {
  if (Error E = readPartitioner(Node.partitioner(), V.Partitioner))
    return E;
  unsigned Count = 1;
  for (unsigned N : V.Partitioner)
    Count *= N;
  size_t Given = Node.part_config_size();
  if (Given != 0 && Given != Count)
    return failure(formatv(
        "has {0} part_config entries, but the partitioner asks for {1} parts",
        Given, Count));
  for (const pb::Strategy::Node &Part : Node.part_config()) {
    if (!Part.partitioner().empty() || Part.part_config_size() != 0)
      return failure("part '" + Part.var_name() + "' has parts itself");
    if (Error E = readSynchronizer(Part, V.Parts.emplace_back()))
      return failure("part '" + Part.var_name() +
                     "': " + toString(std::move(E)));
  }
  // If the parts have synchronizers, the variable itself needs none.
  if (!V.Parts.empty() &&
      Node.synchronizer_case() == pb::Strategy::Node::SYNCHRONIZER_NOT_SET) {
    V.Sync = V.Parts.front();
    return Error::success();
  }
  return readSynchronizer(Node, V.Sync);
}

void writeSynchronizer(const Synchronizer &S, const ResourceSpec &Spec,
                       pb::Strategy::Node &Node) {
  if (S.Kind == Synchronizer::PS) {
    pb::PSSynchronizer &To = *Node.mutable_pssynchronizer();
    if (!S.Destination.empty())
      To.set_reduction_destination(Spec.autodistName(S.Destination));
    To.set_local_replication(S.Proxy);
    To.set_sync(S.Sync);
    To.set_staleness(S.Staleness);
    return;
  }
  Wire &To = *Node.mutable_allreducesynchronizer();
  To.set_group(S.Group);
  for (auto [There, Here] : SpecPairs)
    if (Here == S.Spec)
      To.set_spec(There);
  for (auto [There, Here] : CompressorPairs)
    if (Here == S.Compressor)
      To.set_compressor(There);
}

} // namespace

Expected<StrategyRecord> parseRecord(StringRef Bytes, StringRef File) {
  google::protobuf::TextFormat::ParseInfoTree Places;
  Expected<pb::Strategy> Message = parseMessage(Bytes, File, Places);
  if (!Message)
    return Message.takeError();
  StrategyRecord R;
  R.Id = Message->id();
  R.Path = Message->path();
  for (const std::string &Device : Message->graph_config().replicas())
    R.Replicas.push_back(Device);
  const auto *Entries =
      pb::Strategy::descriptor()->FindFieldByName("node_config");
  for (const auto &[I, Node] : enumerate(Message->node_config())) {
    VariableStrategy &V = R.Variables.emplace_back();
    // Binary files have no places: the line is -1.
    if (auto At = Places.GetLocation(Entries, static_cast<int>(I));
        At.line >= 0)
      V.Place = formatv(":{0}:{1}", At.line + 1, At.column + 1);
    V.Variable = variableOf(Node.var_name()).str();
    if (V.Variable.empty())
      return failure(
          formatv("{0}{1}: node_config {2} has no var_name", File, V.Place, I));
    if (Error E = readVariable(Node, V))
      return failure(File + V.Place + ": node_config '" + Node.var_name() +
                     "': " + toString(std::move(E)));
  }
  return R;
}

Expected<StrategyRecord> readRecord(StringRef File) {
  auto Buffer = readFile(File);
  if (!Buffer)
    return fileError(File,
                     failure("cannot be read: " + Buffer.getError().message()));
  Expected<StrategyRecord> Record = parseRecord((*Buffer)->getBuffer(), File);
  if (!Record)
    return fileError(File, Record.takeError());
  return Record;
}

Error resolveDevices(StrategyRecord &Record, const ResourceSpec &Spec,
                     StringRef File) {
  auto Resolve = [&](std::string &Device, const Twine &Place,
                     const Twine &Entry) -> Error {
    auto Full = Spec.resolve(Device);
    if (!Full)
      return failure(File + Place + ": " + Entry + ": there is no device '" +
                     Device + "'; the known devices are " +
                     join(Spec.hostDevices(), ", ") +
                     " and those of the replicas");
    Device = *Full;
    return Error::success();
  };
  for (VariableStrategy &V : Record.Variables) {
    std::string Entry = "node_config '" + V.Variable + "'";
    for (const auto &[I, Part] : enumerate(V.Parts))
      if (!Part.Destination.empty())
        if (Error E = Resolve(Part.Destination, V.Place,
                              Entry + ", part " + Twine(I)))
          return E;
    if (!V.Sync.Destination.empty())
      if (Error E = Resolve(V.Sync.Destination, V.Place, Entry))
        return E;
  }
  for (std::string &Device : Record.Replicas)
    if (Error E = Resolve(Device, "", "graph_config, replicas"))
      return E;
  return Error::success();
}

std::string printRecord(const StrategyRecord &Record, const ResourceSpec &Spec,
                        bool AsText) {
  pb::Strategy Message;
  Message.set_id(Record.Id);
  Message.set_path(Record.Path);
  for (const VariableStrategy &V : Record.Variables) {
    pb::Strategy::Node &Node = *Message.add_node_config();
    Node.set_var_name(V.Variable + ":0");
    Node.set_partitioner(join(
        map_range(V.Partitioner, [](unsigned N) { return utostr(N); }), ","));
    if (V.Parts.empty())
      writeSynchronizer(V.Sync, Spec, Node);
    for (const auto &[I, Part] : enumerate(V.Parts)) {
      pb::Strategy::Node &To = *Node.add_part_config();
      To.set_var_name(V.Variable + "/part_" + utostr(I) + ":0");
      writeSynchronizer(Part, Spec, To);
    }
  }
  for (const std::string &Device : Record.Replicas)
    Message.mutable_graph_config()->add_replicas(Spec.autodistName(Device));
  std::string Out;
  if (AsText) {
    google::protobuf::TextFormat::PrintToString(Message, &Out);
    return Out;
  }
  // A message without map fields has only one encoding.
  Message.SerializeToString(&Out);
  return Out;
}

} // namespace graft
