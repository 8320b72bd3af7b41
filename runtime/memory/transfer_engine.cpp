// The engine's two lanes, and waiting for copies in flight.
#include "memory/transfer_engine.h"

#include "base/errors.h"
#include "base/format.h"
#include "core/device.h"
#include "core/lifecycle.h"
#include "memory/transfer_lane.h"
#include "memory/transfer_pacer.h"

#include <algorithm>
#include <thread>

namespace kernwright {

using std::chrono::steady_clock;

void Transfer::wait(std::optional<std::chrono::nanoseconds> timeout) const {
  if (state_ == nullptr) return;
  require_driver_allowed();  // a forked child has no thread to serve the copy
  State& state = *state_;
  const auto late = [&]() -> Timeout {
    return Timeout(format("a transfer on {} is not done after {} s",
                          state.device_part.device().identify(),
                          std::chrono::duration<double>(*timeout).count()));
  };
  const auto deadline = steady_clock::now() + timeout.value_or(std::chrono::nanoseconds(0));
  {
    std::unique_lock lock(state.mutex);
    const auto arrived = [&] { return state.queued; };
    if (!timeout) {
      state.changed.wait(lock, arrived);
    } else if (!state.changed.wait_until(lock, deadline, arrived)) {
      throw late();
    }
    if (state.failure) std::rethrow_exception(state.failure);
  }
  if (!timeout) return state.device_part.synchronize();
  std::chrono::microseconds pause{1};
  while (!state.device_part.done()) {
    if (steady_clock::now() >= deadline) throw late();
    std::this_thread::sleep_for(pause);
    pause = std::min(2 * pause, std::chrono::microseconds(1000));
  }
}

bool Transfer::done() const {
  if (state_ == nullptr) return true;
  require_driver_allowed();
  {
    const std::lock_guard lock(state_->mutex);
    if (state_->failure) return true;
    if (!state_->queued) return false;
  }
  return state_->device_part.done();
}

void Transfer::wait_on(const Stream& stream) const {
  if (state_ == nullptr) return;
  require_driver_allowed();
  {
    std::unique_lock lock(state_->mutex);
    state_->changed.wait(lock, [&] { return state_->queued; });
    if (state_->failure) std::rethrow_exception(state_->failure);
  }
  (stream ? stream : Stream::legacy(state_->device_part.device())).wait(state_->device_part);
}

TransferEngine::TransferEngine(Device& device, const Options& options)
    : device_(device), options_(options) {
  if (options.chunk_bytes == 0 || options.chunks < 2) {
    throw InvalidArgument(
        format("a transfer engine with {} chunks of {} bytes: it needs at least 2 chunks of 1 byte",
               options.chunks, options.chunk_bytes));
  }
  for (Direction& direction : directions_) direction.pacer = std::make_shared<TransferPacer>();
  lane(Way::up, TransferClass::normal);
  lane(Way::down, TransferClass::normal);
}

TransferEngine::~TransferEngine() {
  for (Direction& direction : directions_) {
    for (const auto& lane :
         direction.lanes) {  // higher classes first: lower ones may wait for them
      if (lane != nullptr) lane->stop();
    }
    direction.pacer->clear();
  }
}

TransferLane& TransferEngine::lane(Way way, TransferClass kind) {
  const std::lock_guard lock(mutex_);
  Direction& direction = directions_[static_cast<std::size_t>(way)];
  std::shared_ptr<TransferLane>& lane = direction.lanes[static_cast<std::size_t>(kind)];
  if (lane == nullptr) {
    lane = std::make_shared<TransferLane>(
        device_, way == Way::up ? TransferLane::Direction::up : TransferLane::Direction::down, kind,
        direction.pacer, options_);
  }
  return *lane;
}

const Stream& TransferEngine::upload_stream(TransferClass kind) {
  return lane(Way::up, kind).stream();
}

const Stream& TransferEngine::download_stream(TransferClass kind) {
  return lane(Way::down, kind).stream();
}

Transfer TransferEngine::upload(CUdeviceptr to, const void* from, std::size_t bytes,
                                const Stream& after, std::shared_ptr<const void> keep,
                                TransferClass kind) {
  if (bytes == 0) return {};
  return lane(Way::up, kind).submit(to, const_cast<void*>(from), bytes, after, std::move(keep));
}

Transfer TransferEngine::download(void* to, CUdeviceptr from, std::size_t bytes,
                                  const Stream& after, std::shared_ptr<const void> keep,
                                  TransferClass kind) {
  if (bytes == 0) return {};
  return lane(Way::down, kind).submit(from, to, bytes, after, std::move(keep));
}

}  // namespace kernwright
