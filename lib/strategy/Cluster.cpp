//===- lib/strategy/Cluster.cpp - devices and clusters ----------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "lib/strategy/Cluster.h"

#include "lib/graph/DeviceName.h"
#include "lib/support/Diagnostics.h"
#include "lib/support/Failure.h"
#include "lib/support/ReadFile.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/MemoryBuffer.h"

using namespace llvm;

namespace graft {
namespace {

/// Turns `[line:column, byte=n]: what` into `file:line:column: what`.
std::string jsonMessage(Error E, StringRef File) {
  std::string Message = toString(std::move(E));
  StringRef Rest = Message;
  if (!Rest.consume_front("["))
    return (File + ": " + Message).str();
  auto [Place, What] = Rest.split("]: ");
  return (File + ":" + Place.split(',').first + ": " + What).str();
}

/// The maximum depth of nested objects and lists; a cluster needs three.
constexpr size_t MaxDepth = 64;

/// Refuses text that the parser would mishandle. Deep nesting would overflow
/// the stack of the parser. If an object repeats a key, the parser would lose
/// one of the values. The parser itself refuses other malformed text.
Error checkJson(StringRef Text, StringRef File) {
  auto Fail = [&](size_t At, const Twine &What) {
    StringRef Before = Text.take_front(At);
    return failure(File + ":" + Twine(Before.count('\n') + 1) + ":" +
                   Twine(At - (Before.rfind('\n') + 1) + 1) + ": " + What);
  };
  std::vector<StringSet<>> Open; ///< The keys of each object; none for a list.
  for (size_t I = 0; I < Text.size(); ++I) {
    char C = Text[I];
    if (C == '{' || C == '[') {
      if (Open.size() == MaxDepth)
        return Fail(I, "objects and lists are nested more than " +
                           Twine(MaxDepth) + " deep");
      Open.emplace_back();
    } else if ((C == '}' || C == ']') && !Open.empty()) {
      Open.pop_back();
    } else if (C == '"') {
      size_t Begin = I;
      for (++I; I < Text.size() && Text[I] != '"'; ++I)
        I += Text[I] == '\\';
      size_t After = Text.find_first_not_of(" \t\r\n", I + 1);
      if (After == StringRef::npos || Text[After] != ':' || Open.empty())
        continue;
      // Two spellings of one key are the same key.
      Expected<json::Value> Key = json::parse(Text.slice(Begin, I + 1));
      if (!Key) {
        consumeError(Key.takeError());
        return Error::success();
      }
      if (StringRef Name = Key->getAsString().value_or("");
          !Open.back().insert(Name).second)
        return Fail(Begin, "key '" + Name + "' is repeated");
    }
  }
  return Error::success();
}

Error readJob(StringRef Name, const json::Value &Value, StringRef File,
              StringSet<> &Addresses, ClusterSpec &Result) {
  constexpr StringLiteral Known[] = {"chief", "worker", "evaluator", "ps"};
  if (!is_contained(Known, Name))
    return failure(File + ": Unrecognized task_type: '" + Name +
                   "', valid task types are: chief, worker, evaluator, ps");
  const json::Array *List = Value.getAsArray();
  if (!List)
    return failure(File + ": job '" + Name +
                   "' is not a list of addresses, [\"host:port\", ...]");
  std::vector<std::string> &Tasks = Result.Jobs[Name.str()];
  for (const json::Value &Item : *List) {
    auto Address = Item.getAsString();
    unsigned Port;
    if (Address && Address->ends_with(":0")) {
      Tasks.push_back(Address->str());
      continue;
    }
    if (!Address || Address->rsplit(':').first.empty() ||
        Address->rsplit(':').second.getAsInteger(10, Port) || Port == 0 ||
        Port > 65535)
      return failure(File + ": an address of job '" + Name +
                     "' is not of the form \"host:port\"");
    if (!Addresses.insert(*Address).second)
      return failure(File + ": '" + *Address + "' is listed twice");
    Tasks.push_back(Address->str());
  }
  if (Tasks.size() > 1 && (Name == "chief" || Name == "evaluator"))
    return failure(File + ": There must be at most one '" + Name + "' job.");
  return Error::success();
}

Error readTask(const json::Object &Task, StringRef File, ClusterSpec &Result) {
  auto Type = Task.getString("type");
  auto Index = Task.getInteger("index");
  if (!Type || !Index || *Index < 0)
    return failure(File + ": 'task' is not of the form {\"type\": \"worker\", "
                          "\"index\": 0}");
  auto Job = Result.Jobs.find(Type->str());
  if (Job == Result.Jobs.end())
    return failure(File + ": `task_type` '" + *Type +
                   "' not found in cluster_spec.");
  if (static_cast<uint64_t>(*Index) >= Job->second.size())
    return failure(File + ": The `task_id` " + Twine(*Index) +
                   " exceeds the maximum id of " + *Type + ".");
  Result.TaskType = Type->str();
  Result.TaskIndex = static_cast<unsigned>(*Index);
  return Error::success();
}

} // namespace

Expected<ClusterSpec> parseCluster(StringRef Text, StringRef File) {
  if (Error E = checkJson(Text, File))
    return E;
  Expected<json::Value> Root = json::parse(Text);
  if (!Root)
    return failure(jsonMessage(Root.takeError(), File));
  const json::Object *Top = Root->getAsObject();
  const json::Object *Jobs = Top ? Top->getObject("cluster") : nullptr;
  if (!Jobs)
    return failure(File + ": has no object 'cluster', {\"cluster\": "
                          "{\"worker\": [\"host:port\", ...]}}");
  ClusterSpec Result;
  StringSet<> Addresses;
  // JSON objects are hash-ordered: sort jobs, so that messages stay the same.
  std::map<StringRef, const json::Value *> Sorted;
  for (const auto &[Name, Value] : *Jobs)
    Sorted[Name] = &Value;
  for (const auto &[Name, Value] : Sorted)
    if (Error E = readJob(Name, *Value, File, Addresses, Result))
      return E;
  if (trainingTasks(Result).empty())
    return failure(File + ": the cluster has no task of job 'worker' or "
                          "'chief'");
  if (const json::Value *Task = Top->get("task")) {
    if (!Task->getAsObject())
      return failure(File + ": 'task' is not an object");
    if (Error E = readTask(*Task->getAsObject(), File, Result))
      return E;
  }
  return Result;
}

Expected<ClusterSpec> readCluster(StringRef File) {
  if (File.empty())
    return failure("the name of the file is empty");
  auto Buffer = readFile(File, /*RequiresNullTerminator=*/true);
  if (!Buffer)
    return fileError(File,
                     failure("cannot be read: " + Buffer.getError().message()));
  Expected<ClusterSpec> Spec = parseCluster((*Buffer)->getBuffer(), File);
  if (!Spec)
    return fileError(File, Spec.takeError());
  return Spec;
}

std::vector<std::string> trainingTasks(const ClusterSpec &Cluster) {
  std::vector<std::string> Result;
  for (StringRef Job : {"chief", "worker"})
    if (auto It = Cluster.Jobs.find(Job.str()); It != Cluster.Jobs.end())
      for (size_t I = 0; I < It->second.size(); ++I)
        Result.push_back(("/job:" + Job + "/task:" + Twine(I)).str());
  return Result;
}

std::vector<std::string> serverDevices(const ClusterSpec &Cluster) {
  std::vector<std::string> Result;
  if (auto It = Cluster.Jobs.find("ps"); It != Cluster.Jobs.end())
    for (size_t I = 0; I < It->second.size(); ++I)
      Result.push_back(("/job:ps/task:" + Twine(I) + "/device:CPU:0").str());
  return Result;
}

static bool isLocal(const DeviceName &D) {
  return D.Job.empty() || D.Job == "localhost";
}

/// Checks that all workers have the same devices, numbered from 0 by type.
static Error checkWorkers(ArrayRef<DeviceName> Devices) {
  // Devices by type, then by job and task.
  std::map<std::string,
           std::map<std::pair<std::string, unsigned>, std::vector<unsigned>>>
      Types;
  std::map<std::string, unsigned> Tasks; ///< The last task plus one, by job.
  for (const DeviceName &D : Devices) {
    Types[D.Type][{D.Job, *D.Task}].push_back(*D.Index);
    Tasks[D.Job] = std::max(Tasks[D.Job], *D.Task + 1);
  }
  for (auto &[Type, Places] : Types) {
    const auto &[First, Model] = *Places.begin();
    for (const auto &[Job, Count] : Tasks)
      // A task that is not listed has no devices.
      for (unsigned Task = 0; Task < Count; ++Task) {
        auto It = Places.find({Job, Task});
        size_t Size = It == Places.end() ? 0 : It->second.size();
        if (Size != Model.size())
          return failure("--devices: All workers should have the same number "
                         "of " +
                         Type + "s: /job:" + First.first +
                         "/task:" + Twine(First.second) + " has " +
                         Twine(Model.size()) + " and /job:" + Job +
                         "/task:" + Twine(Task) + " has " + Twine(Size));
      }
    for (const auto &[Place, Indices] : Places)
      for (unsigned Index : Indices)
        if (Index >= Indices.size())
          return failure("--devices: " + Type +
                         " `device_index` on a worker should be consecutive "
                         "and start from 0: /job:" +
                         Place.first + "/task:" + Twine(Place.second) +
                         " has " + Twine(Indices.size()) +
                         ", and one has index " + Twine(Index));
  }
  return Error::success();
}

Expected<std::vector<std::string>> checkDevices(ArrayRef<std::string> List) {
  std::vector<std::string> Result;
  std::vector<DeviceName> Devices;
  StringSet<> Seen;
  for (const std::string &Text : List) {
    // An empty list on the command line becomes one empty name.
    if (Text.empty() && List.size() == 1)
      break;
    auto Device = DeviceName::parse(Text);
    if (!Device || Device->Type.empty() || !Device->Index)
      return failure("--devices: '" + Text +
                     "' is not a device with an index, such as "
                     "'/device:GPU:0'");
    std::string Full = Device->str();
    if (!Seen.insert(Full).second)
      return failure("--devices: '" + Full + "' is listed twice");
    Result.push_back(std::move(Full));
    Devices.push_back(std::move(*Device));
  }
  if (Result.empty())
    return failure("--devices: the list is empty");
  auto Local = find_if(Devices, isLocal);
  auto Remote = find_if_not(Devices, isLocal);
  if (Remote == Devices.end())
    return Result;
  if (Local != Devices.end())
    return failure("--devices: Local device should have only 'localhost' in "
                   "the job field in device string. Devices cannot have mixed "
                   "list of device strings containing both localhost and other "
                   "job types such as worker, ps etc.: '" +
                   Local->str() + "' and '" + Remote->str() + "'");
  for (const DeviceName &D : Devices)
    if (!D.Task)
      return failure("--devices: Remote device string must have task "
                     "specified, such as '/job:worker/task:0/device:CPU:0': '" +
                     D.str() + "'");
  if (areOfSeveralTasks(Result))
    if (Error E = checkWorkers(Devices))
      return E;
  return Result;
}

bool areOfSeveralTasks(ArrayRef<std::string> Devices) {
  auto Task = [](StringRef Device) {
    return Device.take_front(Device.find("/device:"));
  };
  return any_of(Devices,
                [&](StringRef D) { return Task(D) != Task(Devices.front()); });
}

} // namespace graft
