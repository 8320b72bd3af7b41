// A pool's memory in captures: memory used by a graph's launches belongs to that graph alone.
#include "base/log.h"
#include "core/device.h"
#include "memory/pool/pool_state.h"

#include <algorithm>
#include <utility>

namespace kernwright {

CUdeviceptr PoolResource::allocate_in_capture(std::size_t bytes, const Stream& stream) {
  const std::shared_ptr<Capture> capture = capture_of(stream);
  if (capture == nullptr) return 0;
  const std::shared_ptr<PoolResource> self = weak_from_this().lock();
  const auto attached = capture->attachment(state_.get(), [&]() -> std::shared_ptr<void> {
    auto arena = std::make_shared<Arena>();
    {
      const std::lock_guard lock(state_->mutex);
      state_->arenas.push_back(arena);
    }
    // The graph holds this until its last launch is done.
    return {arena.get(), [this, self](void* gone) { drop_graph(*static_cast<Arena*>(gone)); }};
  });
  std::shared_ptr<Arena> arena;
  {
    const std::lock_guard lock(state_->mutex);
    for (const auto& known : state_->arenas) {
      if (known.get() == attached.get()) arena = known;
    }
  }
  return Growth(*this, bytes, stream, std::move(arena)).run();
}

bool PoolResource::belongs_to(Capture& capture, CUdeviceptr address) const {
  const std::shared_ptr<void> attached = capture.find_attachment(state_.get());
  if (attached == nullptr) return false;
  const std::lock_guard lock(state_->mutex);
  return static_cast<const Arena*>(attached.get())->heap.find(address) != nullptr;
}

/// Memory from before the capture, freed on a captured stream: recorded work may use it, and the
/// stream cannot tell the end of this use. It goes back when the capture has ended.
bool PoolResource::release_in_capture(CUdeviceptr address, std::size_t bytes,
                                      const Stream& stream) {
  const std::shared_ptr<Capture> capture = capture_of(stream);
  if (capture == nullptr) return false;
  State::Block* block = nullptr;
  {
    const std::lock_guard lock(state_->mutex);
    block = state_->heap.find(address);
    if (block == nullptr) {
      release_of_arena(address, bytes, stream);  // the graph is not gone, so the arena stays
      return true;
    }
    state_->require_freeable(block, address, bytes);
    block->state = SegmentHeap::State::held;
  }
  try {
    capture->at_end(
        [this, self = weak_from_this().lock(), address, stream] { release_held(address, stream); });
  } catch (...) {
    const std::lock_guard lock(state_->mutex);
    block->state = SegmentHeap::State::used;
    throw;
  }
  return true;
}

void PoolResource::release_held(CUdeviceptr address, const Stream& stream) {
  std::size_t bytes = 0;
  {
    const std::lock_guard lock(state_->mutex);
    State::Block* const block = state_->heap.find(address);
    block->state = SegmentHeap::State::used;
    bytes = block->requested;
  }
  release(address, bytes, stream);
}

/// Frees a block of an arena. Detaches the arena after its last block, once its graph is gone. The
/// caller holds the lock.
std::shared_ptr<PoolResource::Arena> PoolResource::release_of_arena(CUdeviceptr address,
                                                                    std::size_t bytes,
                                                                    const Stream& stream) {
  const auto [arena, block] = state_->find_in_arenas(address);
  state_->require_freeable(block, address, bytes);
  arena->note_stream(stream);
  arena->heap.give(block, state_->owner_of(stream), ++state_->clock);
  state_->note_freed(*block);
  return state_->detach_if_done(arena);
}

std::shared_ptr<PoolResource::Arena> PoolResource::State::detach_if_done(
    const Arena* arena) noexcept {
  if (!arena->graph_gone || arena->heap.used_blocks() != 0) return nullptr;
  const auto found = std::find_if(arenas.begin(), arenas.end(),
                                  [&](const auto& known) { return known.get() == arena; });
  std::shared_ptr<Arena> done = *found;
  arenas.erase(found);
  return done;
}

void PoolResource::drop_graph(const Arena& arena) noexcept {
  std::shared_ptr<Arena> done;
  {
    const std::lock_guard lock(state_->mutex);
    for (const auto& known : state_->arenas) {
      if (known.get() == &arena) known->graph_gone = true;
    }
    done = state_->detach_if_done(&arena);
  }
  if (done != nullptr) give_back_arena(*done);
}

/// Gives the memory of an unused arena to the driver.
void PoolResource::give_back_arena(Arena& arena) noexcept {
  if (!may_release(device_)) return;
  try {
    if (!upstream_->is_synchronous()) {
      for (const Stream& stream : arena.streams) stream.synchronize();
    }
  } catch (const std::exception& error) {
    log_release_failure("memory of a graph", error.what());
    return;
  }
  for (const auto& [address, segment] : arena.heap.segments()) {
    {
      const std::lock_guard lock(state_->mutex);
      state_->note_given_back(segment.bytes);
    }
    upstream_->deallocate(address, segment.bytes, {});
  }
}

}  // namespace kernwright
