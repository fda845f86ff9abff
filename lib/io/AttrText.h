//===- lib/io/AttrText.h - attributes as text -------------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
// The values of attributes in the text form of graphs (docs/ProgramFormat.md):
//
//     T=float  axis=-1  shape=[?,4]  _class=["loc:@w"]  value=[[1,2],[3,4]]
//
// The text does not say the kind of the value. The definition of the op says
// it, or else the form of the value shows it.
//
//===----------------------------------------------------------------------===//

#ifndef GRAFT_LIB_IO_ATTRTEXT_H
#define GRAFT_LIB_IO_ATTRTEXT_H

#include "tensorflow/core/framework/attr_value.pb.h"

#include "llvm/ADT/StringRef.h"

#include <string>

namespace graft {

/// The op whose attribute is read, for the kind of the value.
struct AttrPlace {
  llvm::StringRef Op;
  llvm::StringRef Key;
  int TensorType = 0; ///< The DataType of a tensor that does not say its type.
};

/// Returns \p Text in quotes, as C escapes it. Text after \p Limit bytes is
/// left out and marked by dots.
std::string quoted(llvm::StringRef Text, size_t Limit = SIZE_MAX);

/// Returns short text, for people: it leaves out the elements of large tensors
/// and the ends of long strings.
std::string attrText(const tensorflow::AttrValue &Value);

/// Returns text from which AttrTextReader reads exactly \p Value.
std::string wholeAttrText(const tensorflow::AttrValue &Value,
                          const AttrPlace &Place);

/// Reads values from the front of a text.
class AttrTextReader {
public:
  explicit AttrTextReader(llvm::StringRef Text) : Rest(Text) {}

  /// Reads one value. Returns false if there is none; error() then says why,
  /// and rest() begins at the fault.
  bool read(tensorflow::AttrValue &Value, const AttrPlace &Place);
  /// Reads a text in quotes.
  bool readQuoted(std::string &Text);

  llvm::StringRef rest() const { return Rest; }
  const std::string &error() const { return Fault; }

private:
  bool fail(std::string Message);
  bool consume(char C);
  bool comma();
  bool readKind(tensorflow::AttrValue &Value, llvm::StringRef Kind,
                int TensorType);
  bool readList(tensorflow::AttrValue::ListValue &List, llvm::StringRef Kind,
                int TensorType);
  bool readInteger(int64_t &Value);
  bool readFloat(float &Value);
  bool readShape(tensorflow::TensorShapeProto &Shape);
  bool readFunction(tensorflow::NameAttrList &Function);
  bool readTensor(tensorflow::TensorProto &Tensor, int Type);
  bool readTypedTensor(tensorflow::TensorProto &Tensor);
  bool readNested(tensorflow::TensorProto &Tensor, unsigned Depth,
                  unsigned &Count);
  bool readElement(tensorflow::TensorProto &Tensor);
  llvm::StringRef word() const;
  llvm::StringRef kindOf(bool InList) const;

  llvm::StringRef Rest;
  unsigned Depth = 0; ///< Functions within functions.
  std::string Fault;
};

} // namespace graft

#endif // GRAFT_LIB_IO_ATTRTEXT_H
