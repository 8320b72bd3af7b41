// The pool's quick paths: cached memory, and its return.
#include "memory/pool/pool_resource.h"

#include "base/errors.h"
#include "base/format.h"
#include "base/log.h"
#include "core/device.h"
#include "memory/allocation_site.h"
#include "memory/pool/pool_state.h"

#include <algorithm>
#include <utility>

namespace kernwright {
namespace {

/// Bit of the owners for one free on the per-thread stream, whose handle means another stream in
/// each thread.
constexpr std::uint64_t kAnonymous = std::uint64_t{1} << 63;

std::shared_ptr<MemoryResource> require_upstream(std::shared_ptr<MemoryResource> upstream) {
  if (upstream == nullptr) throw InvalidArgument("a pool needs a resource to take memory from");
  return upstream;
}

}  // namespace

void PoolResource::Arena::note_stream(const Stream& stream) {
  const bool known = std::any_of(streams.begin(), streams.end(),
                                 [&](const Stream& other) { return other.id() == stream.id(); });
  if (!known) streams.push_back(stream);
}

PoolResource::State::State(Device& device, const Options& given)
    : options(given), legacy(Stream::legacy(device)), limit(given.limit) {}

CUdeviceptr PoolResource::State::hand_out(Block* block, std::size_t bytes, Owner stream,
                                          bool hit) noexcept {
  block->requested = bytes;
  block->stream = stream;
  block->site = current_allocation_site();
  block->stamp = ++stats.allocations;
  block_bytes += block->bytes;
  stats.used += bytes;
  stats.used_peak = std::max(stats.used_peak, stats.used);
  ++(hit ? stats.hits : stats.misses);
  sample(false);
  return block->address;
}

void PoolResource::State::require_freeable(const Block* block, CUdeviceptr address,
                                           std::size_t bytes) {
  if (block != nullptr && block->state == SegmentHeap::State::used && block->requested == bytes) {
    return;
  }
  ++stats.refused_frees;
  if (block == nullptr) {
    throw InvalidArgument(
        format("cannot free {:#x}: no memory of this pool starts there", address));
  }
  if (block->state != SegmentHeap::State::used) {
    throw InvalidArgument(format("cannot free {:#x}: it was freed already", address));
  }
  throw InvalidArgument(format("cannot free {} bytes at {:#x}: {} were allocated there", bytes,
                               address, block->requested));
}

void PoolResource::State::note_freed(const Block& block) noexcept {
  block_bytes -= block.bytes;
  stats.used -= block.requested;
  ++stats.frees;
  sample(false);
}

PoolResource::State::FreeingStream& PoolResource::State::freeing_stream(const Stream& stream,
                                                                        Owner owner) {
  if (latest != nullptr && latest_owner == owner) return *latest;
  auto [entry, is_new] = streams.try_emplace(owner);
  if (is_new) {
    entry->second.stream = stream ? stream : legacy;
    if (streams.size() > crowd) crowded.store(true, std::memory_order_relaxed);
  }
  latest = &entry->second;
  latest_owner = owner;
  return *latest;
}

void PoolResource::State::forget_stream(Owner owner) noexcept {
  if (latest_owner == owner) latest = nullptr;
  streams.erase(owner);
}

void PoolResource::State::sample(bool always) noexcept {
  const std::uint64_t operation = stats.allocations + stats.frees;
  if (!always && !history.is_due(operation)) return;
  history.add(moment());
}

void PoolResource::State::note_reserved(std::size_t bytes) noexcept {
  stats.reserved += bytes;
  stats.reserved_peak = std::max(stats.reserved_peak, stats.reserved);
  ++stats.driver_allocs;
  sample(true);
}

void PoolResource::State::note_given_back(std::size_t bytes) noexcept {
  stats.reserved -= bytes;
  ++stats.driver_frees;
  sample(true);
}

std::pair<PoolResource::Arena*, SegmentHeap::Block*> PoolResource::State::find_in_arenas(
    CUdeviceptr address) const noexcept {
  for (const auto& arena : arenas) {
    if (Block* const block = arena->heap.find(address)) return {arena.get(), block};
  }
  return {nullptr, nullptr};
}

PoolResource::PoolResource(std::shared_ptr<MemoryResource> upstream)
    : PoolResource(std::move(upstream), Options()) {}

PoolResource::PoolResource(std::shared_ptr<MemoryResource> upstream, Options options)
    : upstream_(require_upstream(std::move(upstream))), device_(upstream_->device()) {
  if (options.smallest_segment < kGranule || options.smallest_segment % kGranule != 0 ||
      options.smallest_segment > std::size_t{1} << 40 || !(options.overhead >= 1)) {
    throw InvalidArgument(
        format("a pool with segments of {} bytes and an overhead of {}: segments are multiples of "
               "256 bytes, and the overhead is at least 1",
               options.smallest_segment, options.overhead));
  }
  state_ = std::make_unique<State>(device_, options);
  register_reclaimer(*this);
}

CUdeviceptr PoolResource::try_allocate(std::size_t bytes, const Stream& stream) {
  device_.require_usable();
  require_allocatable(device_, bytes, stream);
  if (any_capture() || state_->crowded.load(std::memory_order_relaxed)) return 0;
  const State::Owner owner = state_->find_owner(stream);
  const std::lock_guard lock(state_->mutex);
  State::Block* const block = state_->heap.take(bytes, owner);
  return block != nullptr ? state_->hand_out(block, bytes, owner, true) : 0;
}

CUdeviceptr PoolResource::allocate(std::size_t bytes, const Stream& stream) {
  if (const CUdeviceptr address = try_allocate(bytes, stream)) return address;
  if (state_->crowded.load(std::memory_order_relaxed)) let_idle_streams_go();
  if (any_capture()) {
    if (const CUdeviceptr address = allocate_in_capture(bytes, stream)) return address;
  }
  return Growth(*this, bytes, stream).run();
}

/// Frees memory without a call of the driver: the handle of the stream stays valid.
void PoolResource::release(CUdeviceptr address, std::size_t bytes, const Stream& stream) {
  if (stream && &stream.device() != &device_) {
    throw InvalidArgument(
        format("memory of {} cannot be freed on {}", device_.identify(), stream.identify()));
  }
  device_.require_usable();
  if (any_capture() && release_in_capture(address, bytes, stream)) return;
  const State::Owner owner = state_->find_owner(stream);
  if (!State::stays_valid(stream)) return release_marked(address, bytes, stream);
  std::shared_ptr<Arena> done;
  {
    const std::lock_guard lock(state_->mutex);
    State::Block* const block = state_->heap.find(address);
    if (block == nullptr) {
      done = release_arena_block(address, bytes, stream);
    } else {
      state_->require_freeable(block, address, bytes);
      state_->freeing_stream(stream, owner);
      state_->heap.give(block, owner, ++state_->clock);
      state_->note_freed(*block);
    }
  }
  if (done != nullptr) give_back_arena(*done);
}

bool PoolResource::try_release(CUdeviceptr address, std::size_t bytes,
                               const Stream& stream) noexcept {
  if (!may_release(device_) || any_capture() || !State::stays_valid(stream)) return false;
  const std::unique_lock lock(state_->mutex, std::try_to_lock);
  // release() notes the first free on a stream.
  const State::Owner owner = state_->find_owner(stream);
  if (!lock || state_->latest == nullptr || state_->latest_owner != owner) return false;
  State::Block* const block = state_->heap.find(address);
  if (block == nullptr || block->state != SegmentHeap::State::used || block->requested != bytes) {
    return false;
  }
  state_->heap.give(block, owner, ++state_->clock);
  state_->note_freed(*block);
  return true;
}

/// Frees memory of a borrowed stream, which may vanish: an event marks the end of its work.
void PoolResource::release_marked(CUdeviceptr address, std::size_t bytes, const Stream& stream) {
  const bool anonymous = stream.handle() == kStreamPerThread;
  State::Owner owner = stream.id();
  std::optional<Event> event;
  State::Block* block = nullptr;
  {
    const std::lock_guard lock(state_->mutex);
    block = state_->heap.find(address);
    if (block != nullptr) {
      state_->require_freeable(block, address, bytes);
      if (anonymous) owner = kAnonymous | ++state_->anonymous;
      event = state_->freeing_stream(stream, owner).last_free;
      block->state = SegmentHeap::State::held;
    }
  }
  // The next steps may throw: the block then stays held, because its stream may still use it.
  if (block == nullptr) {
    event.emplace(device_, false).record(stream);
    std::shared_ptr<Arena> done;
    {
      const std::lock_guard lock(state_->mutex);
      done = release_arena_block(address, bytes, stream, std::move(event));
    }
    if (done != nullptr) give_back_arena(*done);
    return;
  }
  if (!event) event.emplace(device_, false);
  event->record(stream);
  const std::lock_guard lock(state_->mutex);
  state_->freeing_stream(stream, owner).last_free = std::move(event);
  state_->heap.give(block, owner, ++state_->clock);
  state_->note_freed(*block);
}

/// Lets go of streams without pending work. The pool keeps streams alive for their free memory, and
/// programs with many short-lived streams would otherwise keep them all.
void PoolResource::let_idle_streams_go() {
  const ContextGuard guard(device_);
  const RelaxedCapture relaxed(device_);
  Growth::settle_idle(*this);
}

void PoolResource::deallocate(CUdeviceptr address, std::size_t bytes,
                              const Stream& stream) noexcept {
  // In a forked child, at exit and on a lost device there is nobody to use the memory again.
  if (!may_release(device_)) return;
  try {
    release(address, bytes, stream);
  } catch (const std::exception& error) {
    log_release_failure("PoolResource", error.what());
  }
}

std::size_t PoolResource::trim(std::size_t bytes_to_keep) {
  const ContextGuard guard(device_);
  const RelaxedCapture relaxed(device_);
  const std::lock_guard growing(state_->growth);
  Growth::settle_all(*this);
  return Growth::give_back(*this, bytes_to_keep);
}

std::size_t PoolResource::reclaim(std::size_t) {
  const ContextGuard guard(device_);
  const RelaxedCapture relaxed(device_);
  // Whoever holds the lock looks for memory itself, and may wait for us.
  const std::unique_lock growing(state_->growth, std::try_to_lock);
  if (!growing) return 0;
  Growth::settle_all(*this);
  return Growth::give_back(*this, 0);
}

void PoolResource::set_limit(std::size_t bytes) {
  const auto refuse_below_use = [&](std::uint64_t used) {
    if (bytes != 0 && bytes < used) throw_limit_below_use(device_, bytes, used);
  };
  const auto used = [&] {
    const std::lock_guard lock(state_->mutex);
    return state_->block_bytes;
  };
  refuse_below_use(used());
  if (bytes != 0 && stats().reserved > bytes) trim(bytes);
  const std::lock_guard lock(state_->mutex);
  refuse_below_use(state_->block_bytes);
  state_->limit = bytes;
}

void PoolResource::note_eviction() noexcept {
  const std::lock_guard lock(state_->mutex);
  ++state_->stats.evictions;
}

}  // namespace kernwright
