// A pool's memory in captures: memory used by a graph's launches belongs to it and to graphs that
// never run at the same time.
#include "base/log.h"
#include "core/device.h"
#include "core/graph/graph_pool.h"
#include "memory/pool/pool_state.h"

#include <algorithm>
#include <utility>

namespace kernwright {

CUdeviceptr PoolResource::allocate_in_capture(std::size_t bytes, const Stream& stream) {
  const std::shared_ptr<Capture> capture = find_capture(stream);
  if (capture == nullptr) return 0;
  GraphPool* const shared = capture->pool().get();
  bool is_first = false;
  const auto attached = capture->attachment(state_.get(), [&] {
    is_first = true;
    if (shared == nullptr) return new_arena();
    return shared->attachment(state_.get(), [&] { return new_arena(); });
  });
  if (is_first && shared != nullptr) {
    continue_arena(*static_cast<Arena*>(attached.get()), *shared);
  }
  std::shared_ptr<Arena> arena;
  {
    const std::lock_guard lock(state_->mutex);
    for (const auto& known : state_->arenas) {
      if (known.get() == attached.get()) arena = known;
    }
  }
  return Growth(*this, bytes, stream, std::move(arena)).run();
}

/// An arena for a graph or a GraphPool, which hold what comes back until the last launch is done.
std::shared_ptr<void> PoolResource::new_arena() {
  auto arena = std::make_shared<Arena>();
  {
    const std::lock_guard lock(state_->mutex);
    state_->arenas.push_back(arena);
  }
  const std::shared_ptr<PoolResource> self = weak_from_this().lock();
  return {arena.get(), [this, self](void* gone) { drop_graph(*static_cast<Arena*>(gone)); }};
}

/// Free memory of the arena serves another capture: the next launch waits for the work that used it
/// outside of graphs. Memory of a stream that is captured at this moment stays with it.
void PoolResource::continue_arena(Arena& arena, GraphPool& graphs) {
  const ContextGuard guard(device_);
  const RelaxedCapture relaxed(device_);
  std::vector<Stream> streams;
  std::vector<Event> marks;
  std::uint64_t until = 0;
  {
    const std::lock_guard lock(state_->mutex);
    streams.swap(arena.streams);
    marks.swap(arena.marks);
    until = state_->clock;
    arena.first_capture_stamp = state_->stats.allocations + 1;
  }
  std::erase_if(marks, [](const Event& mark) { return mark.done(); });
  std::vector<Stream> captured;
  for (const Stream& stream : streams) {
    if (std::optional<Event> reached = Growth::mark(stream)) {
      marks.push_back(std::move(*reached));
    } else {
      captured.push_back(stream);
    }
  }
  {
    const std::lock_guard lock(state_->mutex);
    for (const SegmentHeap::Owner owner : arena.heap.owners()) {
      const bool stays = std::any_of(captured.begin(), captured.end(), [&](const Stream& stream) {
        return state_->find_owner(stream) == owner;
      });
      if (!stays) arena.heap.settle(owner, until);
    }
    for (const Stream& stream : captured) arena.note_stream(stream);
    arena.marks.insert(arena.marks.end(), marks.begin(), marks.end());
  }
  for (const Event& mark : marks) graphs.launch_after(mark);
}

bool PoolResource::belongs_to(Capture& capture, CUdeviceptr address) const {
  const std::shared_ptr<void> attached = capture.find_attachment(state_.get());
  if (attached == nullptr) return false;
  const std::lock_guard lock(state_->mutex);
  const auto& arena = *static_cast<const Arena*>(attached.get());
  const State::Block* const block = arena.heap.find(address);
  // What an earlier graph of a GraphPool made may be freed and used again before the next launch.
  return block != nullptr && block->stamp >= arena.first_capture_stamp;
}

/// Memory from before the capture, freed on a captured stream: recorded work may use it, and the
/// stream cannot tell the end of this use. It goes back when the capture has ended.
bool PoolResource::release_in_capture(CUdeviceptr address, std::size_t bytes,
                                      const Stream& stream) {
  const std::shared_ptr<Capture> capture = find_capture(stream);
  if (capture == nullptr) return false;
  State::Block* block = nullptr;
  {
    const std::lock_guard lock(state_->mutex);
    block = state_->heap.find(address);
    if (block == nullptr) {
      release_arena_block(address, bytes, stream);  // the graph is not gone, so the arena stays
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

/// Frees a block of an arena; `mark` is the work until then of a stream that others may destroy.
/// Detaches the arena after its last block, once its graph is gone. The caller holds the lock.
std::shared_ptr<PoolResource::Arena> PoolResource::release_arena_block(CUdeviceptr address,
                                                                       std::size_t bytes,
                                                                       const Stream& stream,
                                                                       std::optional<Event> mark) {
  const auto [arena, block] = state_->find_in_arenas(address);
  state_->require_freeable(block, address, bytes);
  if (mark) arena->marks.push_back(std::move(*mark));
  if (State::stays_valid(stream)) arena->note_stream(stream ? stream : state_->legacy);
  arena->heap.give(block, state_->find_owner(stream), ++state_->clock);
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
      for (const Event& mark : arena.marks) mark.synchronize();
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
