//===- lib/io/Serialize.cpp - messages to bytes ---------------------------===//
//
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "lib/io/Serialize.h"

#include "google/protobuf/io/coded_stream.h"
#include "google/protobuf/io/zero_copy_stream_impl_lite.h"

namespace graft {

std::string serialize(const google::protobuf::MessageLite &Message) {
  std::string Bytes;
  google::protobuf::io::StringOutputStream Stream(&Bytes);
  google::protobuf::io::CodedOutputStream Coded(&Stream);
  Coded.SetSerializationDeterministic(true);
  Message.SerializeToCodedStream(&Coded);
  Coded.Trim();
  return Bytes;
}

} // namespace graft
