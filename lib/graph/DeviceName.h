//===- lib/graph/DeviceName.h - device strings ------------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#ifndef GRAFT_LIB_GRAPH_DEVICENAME_H
#define GRAFT_LIB_GRAPH_DEVICENAME_H

#include "llvm/ADT/StringRef.h"

#include <optional>
#include <string>

namespace graft {

/// A parsed device string. A part that is omitted, or that is `*`, is empty.
struct DeviceName {
  std::string Job;
  std::optional<unsigned> Replica;
  std::optional<unsigned> Task;
  std::string Type; ///< In upper case.
  std::optional<unsigned> Index;

  /// Parses a device that TensorFlow accepts on a node:
  /// `/job:w/task:1/device:GPU:0`, `/device:CPU:*`, `/CPU:1`, `cpu:1`. Returns
  /// nothing for other text. The empty string is a device without parts.
  static std::optional<DeviceName> parse(llvm::StringRef Text);

  /// Returns the full form, `/job:w/replica:0/task:1/device:GPU:0`, without
  /// missing parts. Two strings for the same device have the same full form.
  std::string str() const;

  /// Returns true if one device can have both names: common parts are equal.
  bool agrees(const DeviceName &Other) const;
};

/// Returns the job and the task of \p Device, `w:1`, if it names both.
std::optional<std::string> jobAndTask(llvm::StringRef Device);

/// Returns true if one device can have both names, which may be empty.
bool canBeOneDevice(llvm::StringRef A, llvm::StringRef B);

} // namespace graft

#endif // GRAFT_LIB_GRAPH_DEVICENAME_H
