// Copies between host and device on streams of their own, one for each direction.
#pragma once

#include "core/event.h"
#include "core/stream.h"
#include "driver/driver_api.h"

#include <chrono>
#include <cstddef>
#include <memory>
#include <optional>

namespace kernwright {

class Device;
class TransferLane;

/// A copy in flight. A shared reference; an empty one is done. Thread-safe.
class Transfer {
 public:
  Transfer() = default;

  /// Blocks the host until the data is where it belongs. Throws what the copy met, and Timeout.
  void wait(std::optional<std::chrono::nanoseconds> timeout = std::nullopt) const;
  /// Never blocks; true also when the copy failed, which wait() then says.
  bool done() const;
  /// Later work of `stream` waits for the device's part: uploaded memory may be used, downloaded
  /// memory overwritten. Blocks the host only until the copy is queued; for pageable memory this
  /// includes the staging or receiving. Throws errors of the copy.
  void wait_on(const Stream& stream) const;

 private:
  friend class TransferLane;
  struct State;
  explicit Transfer(std::shared_ptr<State> state) : state_(std::move(state)) {}
  std::shared_ptr<State> state_;
};

/// Copies of plain bytes, in the order of the calls for each direction; both directions and kernels
/// of other streams overlap. Page-locked memory is copied at once. Pageable memory has one thread
/// for each direction, so the caller never waits. Uploads pass through that thread's ring of
/// page-locked chunks; the driver writes downloads directly. Thread-safe. The destructor waits for
/// copies in flight.
class TransferEngine {
 public:
  struct Options {
    std::size_t chunk_bytes = std::size_t{4} << 20;  ///< of the staging memory
    int chunks = 4;                                  ///< at least 2
    int priority = 0;                                ///< of both streams
  };
  /// Throws InvalidArgument for no room in a chunk or fewer than two. Staging memory is made when
  /// it is first needed.
  explicit TransferEngine(Device& device) : TransferEngine(device, Options()) {}
  TransferEngine(Device& device, const Options& options);
  ~TransferEngine();
  TransferEngine(const TransferEngine&) = delete;
  TransferEngine& operator=(const TransferEngine&) = delete;

  Device& device() const noexcept { return device_; }
  const Stream& upload_stream() const noexcept;
  const Stream& download_stream() const noexcept;

  /// Copies after the present work of `after` (empty: at once, the memory is ready). The host
  /// memory must stay until the transfer is done; `keep` is held at least as long. Throws
  /// InvalidArgument for a stream of another device, CaptureError for a captured one.
  Transfer upload(CUdeviceptr to, const void* from, std::size_t bytes, const Stream& after = {},
                  std::shared_ptr<const void> keep = {});
  Transfer download(void* to, CUdeviceptr from, std::size_t bytes, const Stream& after = {},
                    std::shared_ptr<const void> keep = {});

 private:
  Device& device_;
  std::shared_ptr<TransferLane> up_;
  std::shared_ptr<TransferLane> down_;
};

}  // namespace kernwright
