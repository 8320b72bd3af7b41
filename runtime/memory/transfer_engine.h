// Copies between host and device on streams of their own, one for each direction.
#pragma once

#include "core/event.h"
#include "core/stream.h"
#include "driver/driver_api.h"

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>

namespace kernwright {

class Device;
class TransferLane;
class TransferPacer;

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

/// Which copies of a direction go first. A copy engine cannot be interrupted, so only best-effort
/// copies are cut into pieces whatever their memory; two pieces are in flight at most.
enum class TransferClass : std::uint8_t { urgent, normal, best_effort };

/// The class of this thread's copies that name none; `normal` outside of all scopes. A best-effort
/// copy through transfer.h, too, is then cut into pieces, of which two are in flight at most.
TransferClass thread_transfer_class() noexcept;

/// Makes `kind` that class while it lives. Scopes of a thread end in the reverse order of their
/// beginning.
class TransferScope {
 public:
  explicit TransferScope(TransferClass kind) noexcept;
  ~TransferScope();
  TransferScope(const TransferScope&) = delete;
  TransferScope& operator=(const TransferScope&) = delete;

 private:
  const TransferClass former_;
};

/// Copies of plain bytes, in the order of the calls for each direction and class; both directions
/// and kernels of other streams overlap. Page-locked memory is copied at once. Pageable memory has
/// one thread for each direction and class, so the caller never waits. Uploads pass through that
/// thread's ring of page-locked chunks; the driver writes downloads directly.
///
/// Between two pieces a copy waits for all copies of a higher class that have begun: these are
/// behind two pieces of best-effort copies at most. Thread-safe. The destructor waits for copies in
/// flight.
class TransferEngine {
 public:
  struct Options {
    std::size_t chunk_bytes = std::size_t{4} << 20;  ///< of the staging memory
    int chunks = 4;                                  ///< at least 2
    int priority = 0;                                ///< of the streams
  };
  /// Throws InvalidArgument for no room in a chunk or fewer than two. Staging memory is made when
  /// it is first needed.
  explicit TransferEngine(Device& device) : TransferEngine(device, Options()) {}
  TransferEngine(Device& device, const Options& options);
  ~TransferEngine();
  TransferEngine(const TransferEngine&) = delete;
  TransferEngine& operator=(const TransferEngine&) = delete;

  Device& device() const noexcept { return device_; }
  /// The stream of the class; made when it is first needed.
  const Stream& upload_stream(TransferClass kind = TransferClass::normal);
  const Stream& download_stream(TransferClass kind = TransferClass::normal);

  /// Copies after the present work of `after` (empty: at once, the memory is ready). The host
  /// memory must stay until the transfer is done; `keep` is held at least as long. Throws
  /// InvalidArgument for a stream of another device, CaptureError for a captured one.
  Transfer upload(CUdeviceptr to, const void* from, std::size_t bytes, const Stream& after = {},
                  std::shared_ptr<const void> keep = {},
                  TransferClass kind = TransferClass::normal);
  Transfer download(void* to, CUdeviceptr from, std::size_t bytes, const Stream& after = {},
                    std::shared_ptr<const void> keep = {},
                    TransferClass kind = TransferClass::normal);

 private:
  enum class Way : std::uint8_t { up, down };
  /// One direction: a lane for each class, null before its first use.
  struct Direction {
    std::shared_ptr<TransferPacer> pacer;
    std::array<std::shared_ptr<TransferLane>, 3> lanes;
  };
  TransferLane& lane(Way way, TransferClass kind);

  Device& device_;
  const Options options_;
  std::mutex mutex_;  ///< guards the lanes
  std::array<Direction, 2> directions_;
};

}  // namespace kernwright
