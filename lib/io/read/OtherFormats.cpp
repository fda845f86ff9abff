//===- lib/io/read/OtherFormats.cpp - files that are no graphs --*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
// Sources of the signatures: APPNOTE.TXT 4.3.7 (zip), the HDF5 file format
// specification II.A, schema.fbs of TensorFlow Lite (file_identifier),
// onnx.proto (ModelProto), RFC 1952 (gzip), record_writer.h of TensorFlow
// (length, checksum, data, checksum), table/format.h of LevelDB
// (kTableMagicNumber).
//
//===----------------------------------------------------------------------===//

#include "lib/io/read/OtherFormats.h"

#include "lib/io/read/Sniff.h"
#include "lib/support/Wire.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/Endian.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"

using namespace llvm;

namespace graft {
namespace {

constexpr StringLiteral ExportStep =
    "write the training step as a SavedModel with graft.keras_step(model, "
    "folder) of the Python package";
constexpr StringLiteral CheckpointText =
    "which holds values of variables and no graph; name the graph that "
    "tf.train.export_meta_graph or a Saver wrote, such as model.ckpt.meta";

/// A format whose files have \p Bytes at \p Offset.
struct Signature {
  size_t Offset;
  StringLiteral Bytes;
  StringLiteral Text;
};

constexpr Signature Signatures[] = {
    {0, "\x89HDF\r\n\x1a\n",
     "is an HDF5 file, which holds weights and no graph; load the Keras model"},
    {4, "TFL3",
     "is a TensorFlow Lite model, which has no training step; name the graph "
     "from which it was converted"},
    {0, "\x1f\x8b", "is compressed with gzip; decompress it first"},
};

/// Returns true if \p Bytes are an ONNX model: a version, and a graph in field
/// 7 or a list of operator sets in field 8.
bool isOnnx(StringRef Bytes) {
  wire::Reader R(Bytes);
  bool HasVersion = false, HasRest = false;
  for (wire::Field F; R.next(F);) {
    bool IsBytes = F.WireType == wire::Type::Bytes;
    if (F.Number == 1)
      HasVersion = !IsBytes;
    else if (F.Number == 7 || F.Number == 8)
      HasRest |= IsBytes;
    if (F.Number == 0 || F.Number > 26 || (F.Number == 1 && IsBytes))
      return false;
  }
  return HasVersion && HasRest && !R.failed();
}

/// Returns the data of the first record if \p Bytes are records.
std::optional<StringRef> firstRecord(StringRef Bytes) {
  constexpr size_t Header = 12, Footer = 4;
  if (Bytes.size() < Header + Footer)
    return std::nullopt;
  uint64_t Length = support::endian::read64le(Bytes.data());
  if (Length == 0 || Length > Bytes.size() - Header - Footer)
    return std::nullopt;
  // Another record follows, or the file ends.
  StringRef Rest = Bytes.drop_front(Header + Length + Footer);
  if (!Rest.empty() &&
      (Rest.size() < Header + Footer ||
       support::endian::read64le(Rest.data()) > Rest.size() - Header - Footer))
    return std::nullopt;
  return Bytes.substr(Header, Length);
}

/// Returns true if \p Text is a program in Python, by its first word.
bool isPython(StringRef Text) {
  if (Text.starts_with("#!"))
    return Text.take_until([](char C) { return C == '\n'; }).contains("python");
  StringRef Rest = skipComments(Text);
  StringRef Word = Rest.take_while([](char C) { return isAlnum(C); });
  return Rest.starts_with("\"\"\"") || Rest.starts_with("'''") ||
         ((Word == "import" || Word == "from" || Word == "def" ||
           Word == "class") &&
          Rest.drop_front(Word.size()).starts_with(" "));
}

} // namespace

std::optional<std::string> otherFormat(StringRef Bytes) {
  for (const Signature &S : Signatures)
    if (Bytes.drop_front(std::min(S.Offset, Bytes.size())).starts_with(S.Bytes))
      return (S.Text +
              (S.Bytes.contains("HDF") ? Twine(" and ") + ExportStep : Twine()))
          .str();
  if (Bytes.starts_with("PK\3\4")) {
    bool IsKeras = Bytes.contains("model.weights.h5") ||
                   Bytes.take_front(4096).contains("metadata.json") ||
                   Bytes.take_front(4096).contains("config.json");
    return IsKeras ? ("is a Keras archive, which holds layers and weights and "
                      "no graph; load the model and " +
                      ExportStep)
                         .str()
                   : "is a zip archive; unpack it and name the graph file or "
                     "the folder of the SavedModel";
  }
  constexpr StringLiteral TableEnd = "\x57\xfb\x80\x8b\x24\x75\x47\xdb";
  if (Bytes.ends_with(TableEnd))
    return ("is the index of a checkpoint, " + CheckpointText).str();
  if (looksLikeText(Bytes)) {
    if (isPython(Bytes))
      return "is a program in Python; run it, and let it write its graph with "
             "tf.train.export_meta_graph(\"model.meta\")";
    StringRef Text = Bytes.ltrim();
    if (Text.starts_with("{") || Text.starts_with("["))
      return "is JSON, which holds no graph for graft; for the configuration "
             "of a Keras model, load the model and " +
             ExportStep.str();
    if (Text.starts_with("model_checkpoint_path:"))
      return ("is the list of checkpoints of a folder, " + CheckpointText)
          .str();
    return std::nullopt;
  }
  if (auto Record = firstRecord(Bytes))
    return Record->contains("brain.Event")
               ? "is a file of events for TensorBoard, which graft does not "
                 "read; name the graph that tf.train.export_meta_graph wrote"
               : "is a file of records (TFRecord), which holds examples and no "
                 "graph; name the graph that reads them";
  if (isOnnx(Bytes))
    return "is an ONNX model, which has no training step of TensorFlow; name "
           "the graph of TensorFlow from which it was converted";
  return std::nullopt;
}

std::optional<std::string> otherName(StringRef Path) {
  StringRef Part = sys::path::filename(Path).rsplit(".data-").second;
  if (!Part.contains("-of-"))
    return std::nullopt;
  return ("is a part of a checkpoint, " + CheckpointText).str();
}

std::optional<std::string> otherFolder(StringRef Path) {
  std::error_code Reason;
  for (sys::fs::directory_iterator It(Path, Reason), End; !Reason && It != End;
       It.increment(Reason)) {
    StringRef Name = sys::path::filename(It->path());
    if (Name == "checkpoint" || Name.ends_with(".index"))
      return ("is a folder of checkpoints, " + CheckpointText).str();
    if (Name == "keras_metadata.pb" || Name == "variables")
      return "is a folder of a SavedModel that lacks saved_model.pb";
  }
  return std::nullopt;
}

} // namespace graft
