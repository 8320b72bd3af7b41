// A pool's report about its memory.
#include "memory/pool/pool_state.h"

#include <algorithm>
#include <chrono>

namespace kernwright {
namespace {

std::string state_name(SegmentHeap::State state) {
  switch (state) {
    case SegmentHeap::State::used:
      return "used";
    case SegmentHeap::State::held:
      return "held";
    default:
      return "free";
  }
}

template <typename Visitor>
void for_each_block(const SegmentHeap& heap, Visitor&& visit) {
  for (const auto& [address, segment] : heap.segments()) {
    for (const SegmentHeap::Block* block = segment.first; block != nullptr; block = block->right) {
      visit(*block);
    }
  }
}

void add_segments(const SegmentHeap& heap, bool belongs_to_graph,
                  std::vector<SnapshotSegment>& list) {
  for (const auto& [address, segment] : heap.segments()) {
    SnapshotSegment& entry = list.emplace_back();
    entry.address = address;
    entry.bytes = segment.bytes;
    entry.belongs_to_graph = belongs_to_graph;
    for (const SegmentHeap::Block* block = segment.first; block != nullptr; block = block->right) {
      const bool in_use = block->lane == nullptr;
      entry.blocks.push_back({block->address, block->bytes, in_use ? block->requested : 0,
                              state_name(block->state),
                              in_use ? block->stream : SegmentHeap::find_owner(*block),
                              in_use ? block->site : LaunchSite{}});
    }
  }
}

}  // namespace

HistorySample PoolResource::State::moment() const noexcept {
  const std::chrono::duration<double> age = std::chrono::steady_clock::now() - begin;
  return {age.count(), stats.allocations + stats.frees, stats.used, stats.reserved,
          heap.largest_free()};
}

std::vector<HistorySample> PoolResource::State::whole_history() const {
  std::vector<HistorySample> samples = history.samples();
  samples.push_back(moment());
  return samples;
}

MemoryStats PoolResource::State::whole_stats() const noexcept {
  MemoryStats whole = stats;
  whole.padding = block_bytes - stats.used;
  whole.cached = stats.reserved - block_bytes;
  whole.limit = limit;
  whole.blocks = stats.allocations - stats.frees;
  whole.segments = stats.driver_allocs - stats.driver_frees;
  return whole;
}

MemoryStats PoolResource::stats() const {
  const std::lock_guard lock(state_->mutex);
  return state_->whole_stats();
}

MemorySnapshot PoolResource::snapshot() const {
  MemorySnapshot snapshot;
  snapshot.resource = name();
  const std::lock_guard lock(state_->mutex);
  snapshot.stats = state_->whole_stats();
  add_segments(state_->heap, false, snapshot.segments);
  for (const auto& arena : state_->arenas) add_segments(arena->heap, true, snapshot.segments);
  snapshot.history = state_->whole_history();
  return snapshot;
}

std::vector<HistorySample> PoolResource::history() const {
  const std::lock_guard lock(state_->mutex);
  return state_->whole_history();
}

std::vector<AllocationRecord> PoolResource::records() const {
  std::vector<AllocationRecord> list;
  {
    const std::lock_guard lock(state_->mutex);
    const auto note = [&](const SegmentHeap::Block& block) {
      if (block.lane != nullptr) return;
      list.push_back({block.address, block.requested, block.stream, block.stamp, block.site});
    };
    for_each_block(state_->heap, note);
    for (const auto& arena : state_->arenas) for_each_block(arena->heap, note);
  }
  std::sort(list.begin(), list.end(),
            [](const auto& a, const auto& b) { return a.serial < b.serial; });
  return list;
}

}  // namespace kernwright
