// A pool's report about its memory.
#include "memory/pool/pool_state.h"

#include <algorithm>

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

void add_segments(const SegmentHeap& heap, bool of_graph, std::vector<SnapshotSegment>& list) {
  for (const auto& [address, segment] : heap.segments()) {
    SnapshotSegment& entry = list.emplace_back();
    entry.address = address;
    entry.bytes = segment.bytes;
    entry.belongs_to_graph = of_graph;
    for (const SegmentHeap::Block* block = segment.first; block != nullptr; block = block->right) {
      const bool in_use = block->lane == nullptr;
      entry.blocks.push_back({block->address, block->bytes, in_use ? block->requested : 0,
                              state_name(block->state),
                              in_use ? block->stream : SegmentHeap::owner_of(*block),
                              in_use ? block->site : LaunchSite{}});
    }
  }
}

}  // namespace

MemorySnapshot PoolResource::snapshot() const {
  MemorySnapshot snapshot;
  snapshot.resource = name();
  snapshot.stats = stats();
  const std::lock_guard lock(state_->mutex);
  add_segments(state_->heap, false, snapshot.segments);
  for (const auto& arena : state_->arenas) add_segments(arena->heap, true, snapshot.segments);
  snapshot.history = state_->history.samples();
  return snapshot;
}

std::vector<HistorySample> PoolResource::history() const {
  const std::lock_guard lock(state_->mutex);
  return state_->history.samples();
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
