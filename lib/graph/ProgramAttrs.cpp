//===- lib/graph/ProgramAttrs.cpp - program state as attributes -*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "lib/graph/ProgramAttrs.h"

using namespace llvm;

namespace graft {

StringRef insertedName(Inserted Kind) {
  switch (Kind) {
  case Inserted::No:
    return "";
  case Inserted::Split:
    return "split";
  case Inserted::Merge:
    return "merge";
  case Inserted::Reduce:
    return "reduce";
  case Inserted::Gather:
    return "gather";
  case Inserted::Scale:
    return "scale";
  case Inserted::Identity:
    return "identity";
  case Inserted::Gate:
    return "gate";
  case Inserted::Constant:
    return "constant";
  case Inserted::Definition:
    return "definition";
  case Inserted::Mesh:
    return "mesh";
  case Inserted::Check:
    return "check";
  case Inserted::Refresh:
    return "refresh";
  case Inserted::Pack:
    return "pack";
  case Inserted::Compress:
    return "compress";
  case Inserted::Proxy:
    return "proxy";
  case Inserted::Accumulate:
    return "accumulate";
  }
  return "";
}

bool hasProgramState(const Node &N) {
  return N.Count != Copies::Once || N.Kind != Inserted::No ||
         N.NameSplit != 0 || N.Plan != Policy::None ||
         (N.Flags &
          (NF_LocalName | NF_Led | NF_ElidePrimary | NF_FixedDevice)) != 0;
}

SmallVector<ProgramAttr, 4> programAttrs(const Node &N) {
  SmallVector<ProgramAttr, 4> Result;
  if (N.Plan != Policy::None)
    Result.push_back({PolicyAttr, encodeStringAttr(policyName(N.Plan))});
  if (N.Count == Copies::PerReplica)
    Result.push_back({"_graft_copies", encodeStringAttr("per-replica")});
  if (N.Flags & NF_ElidePrimary)
    Result.push_back({"_graft_elide_primary", encodeBoolAttr(true)});
  if (N.Flags & NF_FixedDevice)
    Result.push_back({"_graft_fixed_device", encodeBoolAttr(true)});
  if (N.Kind != Inserted::No)
    Result.push_back(
        {"_graft_inserted", encodeStringAttr(insertedName(N.Kind))});
  if (N.Flags & NF_Led)
    Result.push_back({"_graft_led", encodeBoolAttr(true)});
  if (N.Flags & NF_LocalName)
    Result.push_back({"_graft_local_name", encodeBoolAttr(true)});
  if (N.NameSplit != 0)
    Result.push_back({"_graft_name_split", encodeIntAttr(N.NameSplit)});
  return Result;
}

} // namespace graft
