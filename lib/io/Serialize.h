//===- lib/io/Serialize.h - messages to bytes -------------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#ifndef GRAFT_LIB_IO_SERIALIZE_H
#define GRAFT_LIB_IO_SERIALIZE_H

#include "google/protobuf/message_lite.h"

#include <string>

namespace graft {

/// Returns the wire form of \p Message. Equal messages have equal bytes: map
/// entries, whose order in protobuf is random, are sorted.
std::string serialize(const google::protobuf::MessageLite &Message);

} // namespace graft

#endif // GRAFT_LIB_IO_SERIALIZE_H
