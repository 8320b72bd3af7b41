// A worker's objects on its device: memory, kernels, a stream, and shared bytes.
#pragma once

#include "core/device.h"
#include "core/kernel.h"
#include "memory/buffer.h"
#include "worker/device/check_report.h"
#include "worker/device/remote_launch.h"
#include "worker/device/shared_memory.h"

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <vector>

namespace kernwright {

/// Device memory with its guard bands.
struct GuardedBuffer {
  Buffer memory;
  std::uint64_t guard_bytes = 0;  ///< of each band
  std::uint64_t bytes = 0;        ///< between them
  std::uint64_t guard_seed = 0;   ///< of the bands' pattern

  CUdeviceptr address() const noexcept { return memory.address() + guard_bytes; }
};

/// A launch with its objects found and its arguments in place. Must not be moved: `pointers` point
/// into it.
struct ResolvedLaunch {
  Kernel kernel;
  LaunchConfig config;
  std::vector<std::vector<std::byte>> values;
  std::vector<void*> pointers;

  /// Queues it on config.stream.
  void start() { kernel.launch(config, pointers); }
};

/// The worker's one object; made with its context by the first get(). Tasks come one after the
/// other, so it needs no lock. Unknown ids throw InvalidArgument.
class DeviceState {
 public:
  /// The state of this process; KERNWRIGHT_DEVICE chooses the device.
  static DeviceState& get();

  Device& device() noexcept { return device_; }
  const Stream& stream() const noexcept { return stream_; }

  void share(SharedMemory memory);
  /// The first `bytes` of the memory shared with the parent, page-locked on a GPU.
  std::span<std::byte> shared(std::uint64_t bytes);

  std::uint64_t allocate(std::uint64_t bytes, std::uint64_t guard_bytes);
  void release(std::uint64_t buffer);
  GuardedBuffer& buffer(std::uint64_t id);
  /// The first damaged byte of the band in front of a buffer, else of the one behind it.
  std::optional<GuardDamage> guard_damage(std::uint64_t buffer);
  /// Writes random_bytes(seed) to device memory.
  void write_random(CUdeviceptr to, std::uint64_t bytes, std::uint64_t seed);
  /// Launches that write the buffer fault from now on, or no longer. Simulated device only, for
  /// buffers with bytes and without guard bands: else InvalidArgument.
  void set_read_only(std::uint64_t buffer, bool is_read_only);

  std::uint64_t load(const Kernel& kernel);
  void unload(std::uint64_t kernel);
  const Kernel& kernel(std::uint64_t id) const;

  /// Throws ArgumentError for a value of another size than its parameter's.
  std::unique_ptr<ResolvedLaunch> resolve(const RemoteLaunch& launch);

  void begin_checks(const CheckOptions& options);
  CheckReport end_checks();

 private:
  explicit DeviceState(Device& device);
  std::optional<GuardDamage> damage_in_band(CUdeviceptr at, std::uint64_t bytes,
                                            std::uint64_t seed);

  struct Checks;
  Device& device_;
  Stream stream_;
  std::shared_ptr<MemoryResource> resource_;
  SharedMemory shared_;
  std::uint64_t last_id_ = 0;
  std::map<std::uint64_t, GuardedBuffer> buffers_;
  std::map<std::uint64_t, Kernel> kernels_;
  std::unique_ptr<Checks> checks_;
};

}  // namespace kernwright
