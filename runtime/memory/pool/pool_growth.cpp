// A pool's slow paths: memory of other streams, new segments, and making room for them.
#include "base/errors.h"
#include "base/format.h"
#include "base/log.h"
#include "base/math.h"
#include "core/device.h"
#include "memory/pool/pool_state.h"

#include <algorithm>
#include <limits>
#include <optional>
#include <utility>

namespace kernwright {
namespace {

/// Whether the host may query the stream or record an event: not during a capture of it or of a
/// stream it synchronises with. The answer holds as long as the caller has a CaptureHold.
bool may_ask(const Stream& stream) {
  CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
  const CUresult result = stream.device().driver().cuStreamIsCapturing(stream.handle(), &status);
  return result != CUDA_ERROR_STREAM_CAPTURE_IMPLICIT && status == CU_STREAM_CAPTURE_STATUS_NONE;
}

}  // namespace

std::optional<Event> PoolResource::Growth::mark(const Stream& stream) {
  Event reached(stream.device(), false);
  const CaptureHold held;
  if (!may_ask(stream)) return std::nullopt;
  reached.record(stream);
  return reached;
}

/// CUDA_SUCCESS when the work before the last free is done, CUDA_ERROR_NOT_READY when not. NOTE:
/// called with the lock held, and a thread with Python's GIL may wait for it. So the caller raises
/// errors later: their messages need the GIL.
CUresult PoolResource::Growth::ask(const Device& device,
                                   const State::FreeingStream& other) noexcept {
  const DriverApi& api = device.driver();
  if (other.last_free) return api.cuEventQuery(other.last_free->handle());
  const CaptureHold held;
  return may_ask(other.stream) ? api.cuStreamQuery(other.stream.handle()) : CUDA_ERROR_NOT_READY;
}

PoolResource::Growth::Growth(PoolResource& pool, std::size_t bytes, const Stream& stream)
    : Growth(pool, bytes, stream, nullptr) {}

PoolResource::Growth::Growth(PoolResource& pool, std::size_t bytes, const Stream& stream,
                             std::shared_ptr<Arena> arena)
    : pool_(pool),
      state_(*pool.state_),
      bytes_(bytes),
      need_(SizeClass::holding(bytes).bytes()),
      stream_(stream),
      owner_(pool.state_->find_owner(stream)),
      arena_(std::move(arena)),
      heap_(arena_ != nullptr ? arena_->heap : pool.state_->heap) {}

CUdeviceptr PoolResource::Growth::run() {
  const ContextGuard guard(pool_.device_);
  const RelaxedCapture relaxed(pool_.device_);
  {
    const std::lock_guard growing(state_.growth);
    if (const CUdeviceptr address = search(true)) return address;
  }
  // Others are asked without our lock, because they may be looking for memory as well.
  constexpr int kNotCaches = 1;
  while (reclaim_memory(pool_.device_, need_, &pool_, limited_ ? kNotCaches : 0) != 0) {
    const std::lock_guard growing(state_.growth);
    if (const CUdeviceptr address = search(false)) return address;
  }
  {
    const std::lock_guard growing(state_.growth);
    if (const CUdeviceptr address = search(false)) return address;
  }
  fail();
}

CUdeviceptr PoolResource::Growth::search(bool first) {
  limited_ = false;
  if (const CUdeviceptr address = take_owned()) return address;
  if (const CUdeviceptr address = take_idle()) return address;
  if (const std::size_t segment = first ? comfortable_segment() : 0) {
    if (const CUdeviceptr address = grow(segment)) return address;
    if (segment > need_) {
      if (const CUdeviceptr address = grow(tight_segment())) return address;
    }
  }
  if (const CUdeviceptr address = take_busy()) return address;
  settle_all(pool_);
  if (const CUdeviceptr address = take_owned()) return address;
  make_room();
  if (const CUdeviceptr address = grow(tight_segment())) return address;
  // The driver has too little: give everything back, and try once more.
  if (give_back(pool_, 0) != 0) {
    if (const CUdeviceptr address = grow(tight_segment())) return address;
  }
  return tight_segment() > need_ ? grow(need_) : 0;
}

CUdeviceptr PoolResource::Growth::take_owned() {
  const std::lock_guard lock(state_.mutex);
  Block* const block = heap_.take(bytes_, owner_);
  return block != nullptr ? state_.hand_out(block, bytes_, owner_, true) : 0;
}

/// A block of another stream without pending work. Its free memory then serves every stream.
CUdeviceptr PoolResource::Growth::take_idle() {
  if (arena_ != nullptr) return 0;
  // NOTE: the query runs under the lock. Otherwise memory could be freed between answer and use.
  std::unique_lock lock(state_.mutex);
  for (const SegmentHeap::Owner donor : heap_.donors(bytes_, owner_)) {
    const auto found = state_.streams.find(donor);
    if (found == state_.streams.end()) continue;
    const CUresult answer = ask(pool_.device_, found->second);
    if (answer == CUDA_ERROR_NOT_READY) continue;
    if (answer != CUDA_SUCCESS) {
      lock.unlock();
      pool_.device_.fail(answer, "cuStreamQuery");
    }
    heap_.settle(donor, state_.clock);
    state_.forget_stream(donor);
    if (Block* const block = heap_.take(bytes_, owner_)) {
      return state_.hand_out(block, bytes_, owner_, true);
    }
  }
  return 0;
}

void PoolResource::Growth::settle_idle(PoolResource& pool) {
  State& state = *pool.state_;
  std::unique_lock lock(state.mutex);
  std::vector<SegmentHeap::Owner> idle;
  for (const auto& [owner, stream] : state.streams) {
    const CUresult answer = ask(pool.device_, stream);
    if (answer == CUDA_ERROR_NOT_READY) continue;
    if (answer != CUDA_SUCCESS) {
      lock.unlock();
      pool.device_.fail(answer, "cuStreamQuery");
    }
    idle.push_back(owner);
  }
  for (const SegmentHeap::Owner owner : idle) {
    state.heap.settle(owner, state.clock);
    state.forget_stream(owner);
  }
  constexpr std::size_t kCrowd = 16;
  state.crowd = std::max(kCrowd, 2 * state.streams.size());
  state.crowded.store(false, std::memory_order_relaxed);
}

/// Makes `target` wait for the work of `donor` until the last free. Without an event of that free,
/// it records `freed`.
CUresult PoolResource::Growth::wait_for(const Stream& target, const State::FreeingStream& donor,
                                        const Event& freed) noexcept {
  const DriverApi& api = pool_.device_.driver();
  CUevent mark = freed.handle();
  if (donor.last_free) {
    mark = donor.last_free->handle();
  } else {
    const CaptureHold held;
    if (!may_ask(donor.stream)) return CUDA_ERROR_NOT_READY;
    const CUresult recorded = api.cuEventRecord(mark, donor.stream.handle());
    if (recorded != CUDA_SUCCESS) return recorded;
  }
  return api.cuStreamWaitEvent(target.handle(), mark, CU_EVENT_WAIT_DEFAULT);
}

/// Memory of a stream at work: ours waits for it on the device.
CUdeviceptr PoolResource::Growth::take_busy() {
  if (arena_ != nullptr || pool_.is_host_accessible()) return 0;
  const Stream target = stream_ ? stream_ : state_.legacy;
  if (!may_ask(target)) return 0;
  const Event freed(pool_.device_, false);
  const std::lock_guard lock(state_.mutex);
  for (const SegmentHeap::Owner donor : heap_.donors(bytes_, owner_)) {
    const auto found = state_.streams.find(donor);
    if (found == state_.streams.end()) continue;
    // A refusal tells nothing of this request: there are other ways to memory.
    if (wait_for(target, found->second, freed) != CUDA_SUCCESS) continue;
    Block* const block = heap_.take_from(donor, bytes_);
    if (block == nullptr) continue;
    ++state_.stats.stream_waits;
    return state_.hand_out(block, bytes_, owner_, true);
  }
  return 0;
}

std::size_t PoolResource::Growth::room() const {
  const std::lock_guard lock(state_.mutex);
  if (state_.limit == 0) return std::numeric_limits<std::size_t>::max();
  return state_.limit - std::min<std::size_t>(state_.limit, state_.stats.reserved);
}

/// The size of a new segment within the bound of the overhead; 0 when there is none.
std::size_t PoolResource::Growth::comfortable_segment() const {
  const Options& options = state_.options;
  const std::size_t tight = tight_segment();
  std::uint64_t reserved = 0;
  std::uint64_t peak = 0;
  {
    const std::lock_guard lock(state_.mutex);
    reserved = state_.stats.reserved;
    peak = std::max(state_.stats.used_peak, state_.stats.used + bytes_);
  }
  const double scaled = options.overhead * static_cast<double>(peak);
  constexpr double kHuge = 9.0e18;
  const std::uint64_t bound =
      std::max<std::uint64_t>(options.slack, static_cast<std::uint64_t>(std::min(scaled, kHuge)));
  const auto fits = [&](std::size_t segment) {
    return segment <= bound && reserved <= bound - segment;
  };
  const std::size_t step =
      round_up(std::min<std::size_t>(reserved / 8, options.largest_step), options.smallest_segment);
  if (arena_ == nullptr && step > tight && fits(step) && step <= room()) return step;
  return fits(tight) ? tight : 0;
}

/// Not larger than the request needs, but for whole smallest segments.
std::size_t PoolResource::Growth::tight_segment() const {
  const std::size_t rounded = round_up(need_, state_.options.smallest_segment);
  return rounded <= room() ? rounded : need_;
}

CUdeviceptr PoolResource::Growth::grow(std::size_t segment_bytes) {
  if (segment_bytes > room()) {
    limited_ = true;
    return 0;
  }
  MemoryResource& upstream = *pool_.upstream_;
  CUdeviceptr address = 0;
  try {
    const NoReclaim ours;  // this thread holds locks of the pool
    address = upstream.allocate(segment_bytes, stream_);
  } catch (const OutOfMemory&) {
    return 0;
  }
  try {
    return add_segment(address, segment_bytes);
  } catch (...) {
    upstream.deallocate(address, segment_bytes, stream_);
    throw;
  }
}

/// The request's block in a new segment. When this throws, the segment is not ours.
CUdeviceptr PoolResource::Growth::add_segment(CUdeviceptr address, std::size_t segment_bytes) {
  const bool in_order = arena_ == nullptr && !pool_.upstream_->is_synchronous();
  // The pool cannot keep memory for a stream without an id.
  const bool anonymous = owner_ == SegmentHeap::kSettled;
  if (in_order && anonymous) stream_.synchronize();
  const std::lock_guard lock(state_.mutex);
  if (in_order && !anonymous) state_.freeing_stream(stream_, owner_);
  heap_.add(address, segment_bytes, in_order ? owner_ : SegmentHeap::kSettled);
  Block* block = nullptr;
  try {
    block = heap_.take(bytes_, owner_);
  } catch (...) {
    heap_.remove(address);
    throw;
  }
  state_.note_reserved(segment_bytes);
  return state_.hand_out(block, bytes_, owner_, false);
}

/// Free segments go where a new one would leave too little room.
void PoolResource::Growth::make_room() {
  const std::size_t wanted = tight_segment();
  std::size_t keep = 0;
  {
    const std::lock_guard lock(state_.mutex);
    const double peak =
        static_cast<double>(std::max(state_.stats.used_peak, state_.stats.used + bytes_));
    double bound =
        std::max(static_cast<double>(state_.options.slack), state_.options.overhead * peak);
    if (state_.limit != 0) bound = std::min(bound, static_cast<double>(state_.limit));
    keep = bound > static_cast<double>(wanted) ? static_cast<std::size_t>(bound) - wanted : 0;
  }
  give_back(pool_, keep);
}

void PoolResource::Growth::settle_all(PoolResource& pool) {
  State& state = *pool.state_;
  std::vector<std::pair<SegmentHeap::Owner, State::FreeingStream>> waits;
  std::uint64_t until = 0;
  {
    const std::lock_guard lock(state.mutex);
    until = state.clock;
    for (const SegmentHeap::Owner owner : state.heap.owners()) {
      const auto found = state.streams.find(owner);
      if (found != state.streams.end()) waits.emplace_back(owner, found->second);
    }
  }
  for (const auto& [owner, other] : waits) {
    if (other.last_free) {
      other.last_free->synchronize();
    } else {
      const std::optional<Event> freed = mark(other.stream);
      if (!freed) continue;
      freed->synchronize();
    }
    const std::lock_guard lock(state.mutex);
    state.heap.settle(owner, until);
    if (!state.heap.owns(owner)) state.forget_stream(owner);
  }
}

std::size_t PoolResource::Growth::give_back(PoolResource& pool, std::size_t keep) {
  State& state = *pool.state_;
  std::vector<SegmentHeap::FreeSegment> going;
  std::size_t given = 0;
  {
    const std::lock_guard lock(state.mutex);
    auto segments = state.heap.free_segments();
    std::erase_if(segments, [](const auto& s) { return s.owner != SegmentHeap::kSettled; });
    std::sort(segments.begin(), segments.end(),
              [](const auto& a, const auto& b) { return a.bytes > b.bytes; });
    going.reserve(segments.size());
    for (const SegmentHeap::FreeSegment& segment : segments) {
      if (state.stats.reserved <= keep) break;
      state.heap.remove(segment.address);
      state.note_given_back(segment.bytes);
      going.push_back(segment);
      given += segment.bytes;
    }
  }
  for (const SegmentHeap::FreeSegment& segment : going) {
    pool.upstream_->deallocate(segment.address, segment.bytes, {});
  }
  return given;
}

void PoolResource::Growth::fail() {
  std::size_t limit = 0;
  {
    const std::lock_guard lock(state_.mutex);
    ++state_.stats.failures;
    limit = state_.limit;
  }
  throw_out_of_memory(pool_.device_, bytes_, pool_.stats(), pool_.records(),
                      limited_ ? format("over the limit of {} bytes", limit) : "");
}

PoolResource::~PoolResource() {
  withdraw_reclaimer(*this);
  if (!may_release(device_)) return;
  try {
    trim(0);
    const MemoryStats left = stats();
    if (left.blocks == 0) return;
    log_release_failure(
        format("PoolResource of {}", device_.label()),
        format("{} bytes in {} allocations are still in use and will never be freed: {}", left.used,
               left.blocks, describe_holders(records())));
  } catch (const std::exception& error) {
    log_release_failure(format("PoolResource of {}", device_.label()), error.what());
  }
}

}  // namespace kernwright
