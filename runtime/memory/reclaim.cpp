// The list of the reclaimers.
#include "memory/reclaim.h"

#include "memory/memory_resource.h"

#include <algorithm>
#include <condition_variable>
#include <limits>
#include <memory>
#include <mutex>
#include <vector>

namespace kernwright {
namespace {

struct Entry {
  Reclaimer* reclaimer;
  int busy = 0;  ///< calls in progress
};

/// Leaked on purpose: pools may outlive every other static object.
struct Registry {
  std::mutex mutex;
  std::condition_variable idle;
  std::vector<Entry> list;

  Entry* find(const Reclaimer* reclaimer) {
    const auto at = std::find_if(list.begin(), list.end(),
                                 [&](const Entry& entry) { return entry.reclaimer == reclaimer; });
    return at != list.end() ? &*at : nullptr;
  }
};

Registry& registry() {
  static auto* const instance = new Registry;
  return *instance;
}

thread_local int forbidden = 0;

/// One call; withdraw_reclaimer() waits for its end.
std::size_t ask(Reclaimer* reclaimer, std::size_t bytes) {
  Registry& all = registry();
  {
    const std::lock_guard lock(all.mutex);
    Entry* const entry = all.find(reclaimer);
    if (entry == nullptr) return 0;
    ++entry->busy;
  }
  const auto done = [&] {
    const std::lock_guard lock(all.mutex);
    if (Entry* const entry = all.find(reclaimer)) --entry->busy;
    all.idle.notify_all();
  };
  std::size_t given = 0;
  try {
    given = reclaimer->reclaim(bytes);
  } catch (...) {
    done();
    throw;
  }
  done();
  return given;
}

}  // namespace

NoReclaim::NoReclaim() noexcept { ++forbidden; }

NoReclaim::~NoReclaim() { --forbidden; }

bool is_reclaim_forbidden() noexcept { return forbidden != 0; }

void register_reclaimer(Reclaimer& reclaimer) {
  Registry& all = registry();
  const std::lock_guard lock(all.mutex);
  all.list.push_back({&reclaimer});
}

void withdraw_reclaimer(Reclaimer& reclaimer) noexcept {
  Registry& all = registry();
  std::unique_lock lock(all.mutex);
  all.idle.wait(lock, [&] {
    const Entry* const entry = all.find(&reclaimer);
    return entry == nullptr || entry->busy == 0;
  });
  std::erase_if(all.list, [&](const Entry& entry) { return entry.reclaimer == &reclaimer; });
}

std::size_t reclaim_memory(const Device& device, std::size_t bytes, const Reclaimer* except,
                           int first) {
  if (forbidden != 0) return 0;
  std::vector<Reclaimer*> asked;
  {
    Registry& all = registry();
    const std::lock_guard lock(all.mutex);
    for (const Entry& entry : all.list) {
      Reclaimer* const reclaimer = entry.reclaimer;
      if (reclaimer == except || &reclaimer->device() != &device) continue;
      if (reclaimer->reclaim_order() >= first) asked.push_back(reclaimer);
    }
    std::stable_sort(asked.begin(), asked.end(), [](const Reclaimer* a, const Reclaimer* b) {
      return a->reclaim_order() < b->reclaim_order();
    });
  }
  std::size_t given = 0;
  bool moved = false;
  for (Reclaimer* const reclaimer : asked) {
    if (given >= bytes) break;
    const std::size_t more = ask(reclaimer, bytes - given);
    moved = moved || (more != 0 && reclaimer->reclaim_order() != 0);
    given += more;
  }
  // Evicted content left its memory to the caches it came from.
  for (Reclaimer* const reclaimer : asked) {
    if (moved && reclaimer->reclaim_order() == 0) ask(reclaimer, bytes);
  }
  return given;
}

std::vector<Partition> make_partitions(Device& device, std::span<const PartitionRequest> requests) {
  try {
    return Partition::make(device, requests);
  } catch (const PartitionError&) {
    const std::shared_ptr<MemoryResource> pool = known_default_resource(device);
    if (pool == nullptr) throw;
    pool->trim(std::numeric_limits<std::size_t>::max());  // gives nothing back
  }
  return Partition::make(device, requests);
}

PartitionRules settled_partition_rules(Device& device) {
  if (const auto pool = known_default_resource(device)) pool->let_idle_streams_go();
  return partition_rules(device);
}

}  // namespace kernwright
