// The engine's two lanes, and waiting for copies in flight.
#include "memory/transfer_engine.h"

#include "base/errors.h"
#include "base/format.h"
#include "core/device.h"
#include "core/lifecycle.h"
#include "memory/transfer_lane.h"

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

TransferEngine::TransferEngine(Device& device, const Options& options) : device_(device) {
  if (options.chunk_bytes == 0 || options.chunks < 2) {
    throw InvalidArgument(
        format("a transfer engine with {} chunks of {} bytes: it needs at least 2 chunks of 1 byte",
               options.chunks, options.chunk_bytes));
  }
  up_ = std::make_shared<TransferLane>(device, TransferLane::Direction::up, options);
  down_ = std::make_shared<TransferLane>(device, TransferLane::Direction::down, options);
}

TransferEngine::~TransferEngine() {
  if (up_ != nullptr) up_->stop();
  if (down_ != nullptr) down_->stop();
}

const Stream& TransferEngine::upload_stream() const noexcept { return up_->stream(); }

const Stream& TransferEngine::download_stream() const noexcept { return down_->stream(); }

Transfer TransferEngine::upload(CUdeviceptr to, const void* from, std::size_t bytes,
                                const Stream& after, std::shared_ptr<const void> keep) {
  if (bytes == 0) return {};
  return up_->submit(to, const_cast<void*>(from), bytes, after, std::move(keep));
}

Transfer TransferEngine::download(void* to, CUdeviceptr from, std::size_t bytes,
                                  const Stream& after, std::shared_ptr<const void> keep) {
  if (bytes == 0) return {};
  return down_->submit(from, to, bytes, after, std::move(keep));
}

}  // namespace kernwright
