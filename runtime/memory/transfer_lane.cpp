// Serving copies: uploads of pageable memory through the ring of chunks, all others directly.
#include "memory/transfer_lane.h"

#include "base/errors.h"
#include "base/format.h"
#include "base/log.h"
#include "core/device.h"
#include "core/graph/capture.h"
#include "core/lifecycle.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <iterator>
#include <thread>
#include <utility>

namespace kernwright {
namespace {

/// Pieces of best-effort copies in flight: one is copied while the next is queued.
constexpr int kPieces = 2;

TransferEngine::Options class_options(TransferEngine::Options options, TransferClass kind) {
  if (kind == TransferClass::best_effort) options.chunks = kPieces;
  return options;
}

}  // namespace

void Transfer::State::mark_queued(std::exception_ptr error) {
  const std::lock_guard lock(mutex);
  queued = true;
  failure = std::move(error);
  changed.notify_all();
}

TransferLane::TransferLane(Device& device, Direction direction, TransferClass kind,
                           std::shared_ptr<TransferPacer> pacer,
                           const TransferEngine::Options& options)
    : device_(device),
      direction_(direction),
      kind_(kind),
      pacer_(std::move(pacer)),
      options_(class_options(options, kind)),
      stream_(Stream::create(device, options.priority)) {}

Transfer TransferLane::submit(CUdeviceptr on_device, void* on_host, std::size_t bytes,
                              const Stream& after, std::shared_ptr<const void> keep) {
  if (after && &after.device() != &device_) {
    throw InvalidArgument(
        format("memory of {} cannot be used on {}", device_.identify(), after.identify()));
  }
  const ContextGuard guard(device_);
  Job job{.on_device = on_device,
          .on_host = static_cast<std::byte*>(on_host),
          .bytes = bytes,
          .is_page_locked = is_page_locked(device_, on_host),
          .after = std::nullopt,
          .keep = std::move(keep),
          .state = std::make_shared<Transfer::State>(device_)};
  if (after) {
    refuse_in_capture(device_, after.handle(), "a transfer");
    job.after.emplace(device_, false).record(after);
  }
  const std::shared_ptr<Transfer::State> state = job.state;
  const std::vector<KeptObject> finished = take_finished();  // dropped at the end, without the lock
  std::unique_lock lock(mutex_);
  const bool is_at_once = job.is_page_locked && kind_ != TransferClass::best_effort;
  if (is_at_once && jobs_.empty() && !is_serving_) {
    is_serving_ = true;  // keeps the order of the jobs while the lock is open
    lock.unlock();
    pacer_->enter(kind_, Transfer(state), job.after);
    serve(job);
    lock.lock();
    is_serving_ = false;
    changed_.notify_all();
    return Transfer(state);
  }
  if (!has_thread_) {
    std::thread([self = shared_from_this()] { self->run(); }).detach();
    has_thread_ = true;
  }
  pacer_->enter(kind_, Transfer(state), job.after);
  jobs_.push_back(std::move(job));
  changed_.notify_all();
  return Transfer(state);
}

void TransferLane::stop() noexcept {
  if (!may_call_driver()) return;  // the thread may be gone, or must be left alone
  std::unique_lock lock(mutex_);
  stopping_ = true;
  changed_.notify_all();
  changed_.wait(lock, [&] { return !has_thread_ && !is_serving_; });
  lock.unlock();
  try {
    stream_.synchronize();
  } catch (const DeviceLost&) {
    // Nothing runs there any more.
  } catch (const std::exception& error) {
    log_release_failure("a transfer engine", error.what());
  }
  kept_.clear();
  stream_ = {};  // here, as the thread may let go of the lane later
}

/// For good: a job makes no call after it has told its end. Errors here meet each job again, and
/// are told there.
void TransferLane::enter_context() noexcept {
  try {
    device_.require_usable();
    device_.driver().cuCtxSetCurrent(device_.context());
  } catch (const std::exception&) {
    return;
  }
}

void TransferLane::run() {
  enter_context();
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [&] { return (!jobs_.empty() && !is_serving_) || stopping_; });
    if (jobs_.empty()) break;
    Job job = std::move(jobs_.front());
    jobs_.pop_front();
    is_serving_ = true;
    lock.unlock();
    serve(job);
    lock.lock();
    is_serving_ = false;
    changed_.notify_all();
  }
  lock.unlock();
  release_ring();
  lock.lock();
  has_thread_ = false;
  changed_.notify_all();
}

void TransferLane::serve(Job& job) {
  try {
    const ContextGuard guard(device_);
    if (job.after) stream_.wait(*job.after);
    if (direction_ == Direction::up && !job.is_page_locked) {
      stage_up(job);
    } else if (kind_ == TransferClass::best_effort) {
      copy_in_pieces(job);
    } else {
      copy_directly(job);
    }
  } catch (...) {
    job.state->mark_queued(std::current_exception());
  }
  if (job.keep == nullptr) return;
  const std::lock_guard lock(mutex_);
  kept_.push_back({job.state->device_part, std::move(job.keep)});
}

/// Into pageable memory the driver copies before it returns, faster than through the ring: 15.8
/// GB/s where emptying chunks gave 6.9 (bench/copy_bandwidth.py, H200).
void TransferLane::copy_directly(const Job& job) {
  copy_piece(job, 0, job.bytes);
  job.state->device_part.record(stream_);
  job.state->mark_queued();
}

void TransferLane::copy_piece(const Job& job, std::size_t begin, std::size_t bytes) {
  if (direction_ == Direction::up) {
    copy_to_device(device_, job.on_device + begin, job.on_host + begin, bytes, stream_);
  } else {
    copy_to_host(device_, job.on_host + begin, job.on_device + begin, bytes, stream_);
  }
}

/// Gives way to higher classes before each piece, and keeps few of them in flight.
void TransferLane::copy_in_pieces(const Job& job) {
  std::array<std::optional<Event>, kPieces> ends;
  if (job.after) job.after->synchronize();  // else its pieces would be in flight all that time
  std::size_t turn = 0;
  for (std::size_t done = 0; done < job.bytes; ++turn) {
    std::optional<Event>& end = ends[turn % ends.size()];
    if (end) end->synchronize();
    pacer_->wait_turn(kind_);
    const std::size_t piece = std::min(options_.chunk_bytes, job.bytes - done);
    copy_piece(job, done, piece);
    if (!end) end.emplace(device_, false);
    end->record(stream_);
    done += piece;
  }
  job.state->device_part.record(stream_);
  job.state->mark_queued();
}

/// Objects kept by finished copies.
std::vector<TransferLane::KeptObject> TransferLane::take_finished() {
  std::vector<KeptObject> candidates;
  {
    const std::lock_guard lock(mutex_);
    candidates.swap(kept_);
  }
  const auto finished =
      std::stable_partition(candidates.begin(), candidates.end(),
                            [](const KeptObject& entry) { return !entry.event.done(); });
  std::vector<KeptObject> gone(std::make_move_iterator(finished),
                               std::make_move_iterator(candidates.end()));
  candidates.erase(finished, candidates.end());
  const std::lock_guard lock(mutex_);
  kept_.insert(kept_.end(), std::make_move_iterator(candidates.begin()),
               std::make_move_iterator(candidates.end()));
  return gone;
}

void TransferLane::prepare_ring() {
  if (!ring_.empty()) return;
  std::vector<Chunk> made(static_cast<std::size_t>(options_.chunks));
  for (Chunk& chunk : made) {
    chunk.memory = PinnedBuffer(device_, options_.chunk_bytes);
    chunk.event.emplace(device_, false);
  }
  ring_ = std::move(made);
}

/// Waits for the chunk's last copy.
void TransferLane::empty(Chunk& chunk) {
  if (!chunk.is_used) return;
  chunk.event->synchronize();
  chunk.is_used = false;
}

/// The ring's memory may be used by others from then on, so its copies must be done.
void TransferLane::release_ring() noexcept {
  try {
    for (Chunk& chunk : ring_) empty(chunk);
  } catch (const DeviceLost&) {
    // Nothing runs there any more.
  } catch (const std::exception& error) {
    log_release_failure("the staging memory of a transfer engine", error.what());
  }
  ring_.clear();
}

void TransferLane::stage_up(const Job& job) {
  prepare_ring();
  std::size_t turn = 0;
  for (std::size_t done = 0; done < job.bytes; ++turn) {
    Chunk& chunk = ring_[turn % ring_.size()];
    empty(chunk);
    pacer_->wait_turn(kind_);
    const std::size_t piece = std::min(options_.chunk_bytes, job.bytes - done);
    std::memcpy(chunk.memory.data(), job.on_host + done, piece);
    copy_to_device(device_, job.on_device + done, chunk.memory.data(), piece, stream_);
    chunk.is_used = true;
    chunk.event->record(stream_);
    done += piece;
  }
  job.state->device_part.record(stream_);
  job.state->mark_queued();
}

}  // namespace kernwright
