//===- lib/io/write/TextPrinter.h - wire bytes to text ----------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#ifndef GRAFT_LIB_IO_WRITE_TEXTPRINTER_H
#define GRAFT_LIB_IO_WRITE_TEXTPRINTER_H

#include "google/protobuf/descriptor.h"

#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/StringRef.h"

#include <algorithm>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

namespace graft {

/// Text under construction. A writer reserves space once per line.
class TextBuffer {
public:
  size_t size() const { return Size; }
  void truncate(size_t To) { Size = To; }
  llvm::StringRef text() const { return {Data.get(), Size}; }

  /// Returns space for \p Count more bytes. The caller then calls commit() with
  /// the end of the used bytes.
  char *room(size_t Count) {
    // The result is never null, even if Count is 0.
    if (Capacity - Size <= Count)
      grow(Count);
    return Data.get() + Size;
  }
  void commit(const char *End) { Size = End - Data.get(); }

  void append(llvm::StringRef Text) {
    char *P = room(Text.size());
    std::memcpy(P, Text.data(), Text.size());
    Size += Text.size();
  }

private:
  void grow(size_t Count) {
    Capacity = std::max<size_t>(2 * Capacity, Size + Count + 4096);
    std::unique_ptr<char[]> New(new char[Capacity]);
    if (Size != 0)
      std::memcpy(New.get(), Data.get(), Size);
    Data = std::move(New);
  }

  std::unique_ptr<char[]> Data;
  size_t Size = 0;
  size_t Capacity = 0;
};

/// Prints messages in wire form as TextFormat does.
class TextPrinter {
public:
  /// Appends the fields of a message of type \p Type, \p Level deep in braces.
  /// Returns false if protobuf would not read it; then the text is useless.
  bool print(llvm::StringRef Bytes, const google::protobuf::Descriptor *Type,
             unsigned Level) {
    return message(Bytes, infoOf(Type), Level, Level);
  }

  /// Prints field \p Number of a message of \p Type. The value of the field is
  /// the message \p Bytes.
  bool field(llvm::StringRef Bytes, const google::protobuf::Descriptor *Type,
             unsigned Number, unsigned Level);

  TextBuffer Out;

private:
  using FieldDescriptor = google::protobuf::FieldDescriptor;

  struct MessageInfo;
  struct FieldInfo {
    const FieldDescriptor *Field = nullptr; ///< Null: not printed here.
    std::string Value;                      ///< `name: `
    std::string Open;                       ///< `name {\n`
    FieldDescriptor::Type Type = FieldDescriptor::TYPE_INT32;
    bool Repeated = false;
    bool Present = false; ///< Printed even if it has its default value.
    bool Map = false;
    uint64_t OneOf = 0; ///< A bit for its oneof.
    const MessageInfo *Message = nullptr;
  };
  struct MessageInfo {
    const google::protobuf::Descriptor *Type = nullptr;
    std::vector<FieldInfo> Fields; ///< By number.
  };
  struct Entry {
    llvm::StringRef Key;
    llvm::StringRef Value;
    uint64_t Number = 0;
  };

  const MessageInfo &infoOf(const google::protobuf::Descriptor *Type);
  bool message(llvm::StringRef Bytes, const MessageInfo &Info, unsigned Level,
               unsigned Depth);
  bool usual(llvm::StringRef Bytes, const MessageInfo &Info, unsigned Level,
             unsigned Depth);
  bool unusual(llvm::StringRef Bytes, const MessageInfo &Info, unsigned Level,
               unsigned Depth);
  bool nested(llvm::StringRef Bytes, const FieldInfo &F, unsigned Level,
              unsigned Depth);
  bool string(llvm::StringRef Bytes, const FieldInfo &F, unsigned Level);
  bool number(uint64_t Bits, const FieldInfo &F, unsigned Level);
  bool packed(llvm::StringRef Bytes, const FieldInfo &F, unsigned Level);
  bool readEntry(llvm::StringRef Bytes, const FieldInfo &Map, Entry &E) const;
  bool entries(size_t First, const FieldInfo &Map, unsigned Level,
               unsigned Depth);

  llvm::DenseMap<const google::protobuf::Descriptor *,
                 std::unique_ptr<MessageInfo>>
      Infos;
  std::vector<Entry> MapEntries; ///< A stack for the maps being printed.
  bool Invalid = false; ///< Set if protobuf would not read the message.
};

} // namespace graft

#endif // GRAFT_LIB_IO_WRITE_TEXTPRINTER_H
