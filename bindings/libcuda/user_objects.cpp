// Objects of the program kept alive by graphs: counted references, and their holders.
#include "libcuda/user_objects.h"

#include "libcuda/functions.h"
#include "sim/device/handle_table.h"

#include <map>
#include <mutex>
#include <vector>

namespace kernwright::libcuda {
namespace {

using sim::driver_api;
using CUuserObject = struct CUuserObject_st*;

struct UserObject {
  void* data;
  CUhostFn destroy;
  unsigned long long references;
};

/// The count of references by holder and object; a graph and an executable one are told apart by
/// their handles.
using Held = std::map<CUuserObject, unsigned long long>;
struct Objects {
  std::mutex mutex;
  sim::HandleTable<CUuserObject, UserObject> table{14};
  std::map<void*, Held> held;
};
Objects& objects() {
  static auto* const instance = new Objects;
  return *instance;
}

/// Objects without references, destroyed with no lock held.
using Ended = std::vector<std::shared_ptr<UserObject>>;
void destroy(const Ended& ended) {
  for (const auto& object : ended) object->destroy(object->data);
}

CUresult drop(CUuserObject handle, unsigned long long count, Ended& ended) {
  const auto object = objects().table.find(handle);
  if (object == nullptr || count == 0 || count > object->references)
    return CUDA_ERROR_INVALID_VALUE;
  object->references -= count;
  if (object->references == 0) ended.push_back(objects().table.remove(handle));
  return CUDA_SUCCESS;
}

void drop_all(void* holder) {
  Ended ended;
  {
    const std::lock_guard lock(objects().mutex);
    const auto found = objects().held.find(holder);
    if (found == objects().held.end()) return;
    for (const auto& [handle, count] : found->second) drop(handle, count, ended);
    objects().held.erase(found);
  }
  destroy(ended);
}

void keep_same(void* holder, void* other) {
  const std::lock_guard lock(objects().mutex);
  const auto found = objects().held.find(other);
  if (found == objects().held.end()) return;
  const Held copied = found->second;
  for (const auto& [handle, count] : copied) {
    const auto object = objects().table.find(handle);
    if (object == nullptr) continue;
    object->references += count;
    objects().held[holder][handle] += count;
  }
}

CUresult create(CUuserObject* handle, void* data, CUhostFn destroy_data, unsigned int count,
                unsigned int flags) {
  constexpr unsigned kNoDestructorSync = 1;  // asked for, and all there is
  if (handle == nullptr || destroy_data == nullptr || count == 0 || flags != kNoDestructorSync)
    return CUDA_ERROR_INVALID_VALUE;
  *handle =
      objects().table.insert(std::make_shared<UserObject>(UserObject{data, destroy_data, count}));
  return CUDA_SUCCESS;
}

CUresult retain(CUuserObject handle, unsigned int count) {
  const std::lock_guard lock(objects().mutex);
  const auto object = objects().table.find(handle);
  if (object == nullptr || count == 0) return CUDA_ERROR_INVALID_VALUE;
  object->references += count;
  return CUDA_SUCCESS;
}

CUresult release(CUuserObject handle, unsigned int count) {
  Ended ended;
  CUresult result = CUDA_SUCCESS;
  {
    const std::lock_guard lock(objects().mutex);
    result = drop(handle, count, ended);
  }
  destroy(ended);
  return result;
}

CUresult check_graph(CUgraph graph) {
  std::size_t count = 0;
  return driver_api().cuGraphGetNodes(graph, nullptr, &count);
}

/// The graph takes `count` of the caller's references, or ones of its own.
CUresult graph_retain(CUgraph graph, CUuserObject handle, unsigned int count, unsigned int flags) {
  constexpr unsigned kMove = 1;
  if (count == 0 || (flags & ~kMove) != 0) return CUDA_ERROR_INVALID_VALUE;
  if (const CUresult result = check_graph(graph); result != CUDA_SUCCESS) return result;
  const std::lock_guard lock(objects().mutex);
  const auto object = objects().table.find(handle);
  if (object == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (flags != kMove) object->references += count;
  objects().held[graph][handle] += count;
  return CUDA_SUCCESS;
}

CUresult graph_release(CUgraph graph, CUuserObject handle, unsigned int count) {
  Ended ended;
  CUresult result = CUDA_SUCCESS;
  {
    const std::lock_guard lock(objects().mutex);
    const auto found = objects().held.find(graph);
    if (found == objects().held.end() || found->second[handle] < count)
      return CUDA_ERROR_INVALID_VALUE;
    result = drop(handle, count, ended);
    if (result == CUDA_SUCCESS && (found->second[handle] -= count) == 0)
      found->second.erase(handle);
  }
  destroy(ended);
  return result;
}

CUresult graph_destroy(CUgraph graph) {
  const CUresult result = driver_api().cuGraphDestroy(graph);
  if (result == CUDA_SUCCESS) drop_all(graph);
  return result;
}

CUresult executable_destroy(CUgraphExec executable) {
  const CUresult result = driver_api().cuGraphExecDestroy(executable);
  if (result == CUDA_SUCCESS) drop_all(executable);
  return result;
}

CUresult graph_clone(CUgraph* clone, CUgraph original) {
  const CUresult result = driver_api().cuGraphClone(clone, original);
  if (result == CUDA_SUCCESS) keep_same(*clone, original);
  return result;
}

}  // namespace

void keep_for(CUgraphExec executable, CUgraph graph) { keep_same(executable, graph); }

std::span<const Function> user_object_functions() {
  static const Function rows[] = {
      provide<create>("cuUserObjectCreate", "cuUserObjectCreate", 11030),
      provide<retain>("cuUserObjectRetain", "cuUserObjectRetain", 11030),
      provide<release>("cuUserObjectRelease", "cuUserObjectRelease", 11030),
      provide<graph_retain>("cuGraphRetainUserObject", "cuGraphRetainUserObject", 11030),
      provide<graph_release>("cuGraphReleaseUserObject", "cuGraphReleaseUserObject", 11030),
      provide<graph_destroy>("cuGraphDestroy", "cuGraphDestroy", 10000),
      provide<executable_destroy>("cuGraphExecDestroy", "cuGraphExecDestroy", 10000),
      provide<graph_clone>("cuGraphClone", "cuGraphClone", 10000),
  };
  return rows;
}

}  // namespace kernwright::libcuda
