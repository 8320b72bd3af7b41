// A device in a worker process, used from its parent.
#pragma once

#include "jit/object_code.h"
#include "worker/device/check_report.h"
#include "worker/device/device_facts.h"
#include "worker/device/remote_launch.h"
#include "worker/worker.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>

namespace kernwright {

struct RemoteDeviceOptions {
  /// The device is what KERNWRIGHT_DEVICE says in the worker's environment ("sim", "cuda:1").
  /// Without a memory_limit it has memory_of_worker().
  WorkerOptions worker{};
  /// Keeps a second process ready, with its context made, that takes over at once when the first is
  /// lost. Costs the memory of one more context.
  bool keep_spare = false;
};

/// A device in a worker process, with its memory, kernels and launches. A mistake of a kernel (an
/// illegal address, an endless loop, a crash) costs only that process.
///
/// Every call waits until its work is done, and throws what went wrong with its type: DeviceFault
/// with its report (simulated device), DeviceLost, OutOfMemory, Timeout, LaunchConfigError, ...;
/// Timeout, Cancelled or Interrupted as `limits` say; WorkerLost. If the process or its context is
/// lost by that, the next call gets a new process. Memory and kernels are then gone, and
/// generation() is another number. Calls with a name (buffer, kernel) of before throw WorkerLost.
///
/// One call at a time; not thread-safe. Of no use in a forked child.
class RemoteDevice {
 public:
  explicit RemoteDevice(RemoteDeviceOptions options = {});
  /// Ends the process, with all that is on the device.
  ~RemoteDevice();
  RemoteDevice(RemoteDevice&&) noexcept;
  RemoteDevice& operator=(RemoteDevice&&) noexcept;

  /// Starts the process without waiting for it, unless a spare is there.
  void start();
  const DeviceFacts& facts(const WaitLimits& limits = {});
  /// Number of the process with the memory and the kernels, different for each process of any
  /// RemoteDevice of this program. 0 before there is one and after it was lost.
  std::uint64_t generation() const noexcept;
  /// Id of this process; -1 when there is none.
  pid_t process_id() const noexcept;
  /// The number of processes lost so far.
  int losses() const noexcept;
  /// Ends the process at once, as a loss does.
  void kill() noexcept;
  /// Ends the process if it has grown by more than half of its memory limit since the device was
  /// opened. So leftovers of earlier work do not cost later work its process. Nothing may be on the
  /// device. This is no loss.
  void renew_if_large();
  /// Ends the process, with all that kernels left in it; the next call gets another one. This is no
  /// loss.
  void renew();

  /// New memory straight from the driver, aligned to 256 bytes, never cached; 0 bytes are allowed.
  /// With `guard_bytes` (rounded up to 256) bands with a pattern lie in front of it and behind it,
  /// from its last byte on. On the simulated device bands hide what its own check of bounds finds.
  RemoteBuffer allocate(std::uint64_t bytes, std::uint64_t guard_bytes = 0,
                        const WaitLimits& limits = {});
  /// Frees it; does nothing for memory that was lost with its process.
  void release(const RemoteBuffer& buffer, const WaitLimits& limits = {});
  /// The first damaged byte of the band in front, else of the one behind; nothing: both are whole.
  std::optional<GuardDamage> check_guards(const RemoteBuffer& buffer,
                                          const WaitLimits& limits = {});

  // Bytes beyond the buffer's end throw InvalidArgument.
  void write(const RemoteBuffer& to, std::span<const std::byte> from, std::uint64_t offset = 0,
             const WaitLimits& limits = {});
  void read(const RemoteBuffer& from, std::span<std::byte> to, std::uint64_t offset = 0,
            const WaitLimits& limits = {});
  void fill(const RemoteBuffer& to, std::byte value, const WaitLimits& limits = {});
  /// With random_bytes(seed) from its first byte on.
  void fill_random(const RemoteBuffer& to, std::uint64_t seed, const WaitLimits& limits = {});
  /// Simulated device only, else InvalidArgument. From now on launches that write the buffer fault,
  /// or no longer; copies and fills go on. Buffers without bytes stay as they are.
  void set_read_only(const RemoteBuffer& buffer, bool is_read_only, const WaitLimits& limits = {});
  /// The whole of `from`, on the device. The sizes must be equal.
  void copy(const RemoteBuffer& to, const RemoteBuffer& from, const WaitLimits& limits = {});

  /// Loads the code as a new module, whose variables are fresh, also when the same code is loaded
  /// already. `name`: as ObjectCode::kernel() takes it. `origin` says where the kernel's text
  /// stands, for messages and findings.
  RemoteKernel load(const ObjectCode& code, const std::string& name, const WaitLimits& limits = {},
                    const SourceOrigin& origin = {});
  /// Fills the first bytes of a __constant__ or __device__ variable of the kernel's module, by its
  /// lowered name. Throws NameNotFound, InvalidArgument for more bytes than it has.
  void write_symbol(const RemoteKernel& kernel, const std::string& lowered,
                    std::span<const std::byte> bytes, const WaitLimits& limits = {});
  void unload(const RemoteKernel& kernel, const WaitLimits& limits = {});
  /// Checks the launch, runs it and waits for its end. Values must have the parameters' sizes
  /// (ArgumentError).
  void launch(const RemoteLaunch& launch, const WaitLimits& limits = {});

  /// Simulated device only, else InvalidArgument: launches between the two calls are checked and
  /// counted. `init` knows memory allocated between them; older memory counts as written.
  void begin_checks(const CheckOptions& options = {}, const WaitLimits& limits = {});
  CheckReport end_checks(const WaitLimits& limits = {});
  /// One launch between begin_checks() and end_checks(). An error that stops it is a finding and is
  /// not thrown. The simulated device's own limits of time and instructions are findings, too.
  CheckReport check(const RemoteLaunch& launch, const CheckOptions& options = {},
                    const WaitLimits& limits = {});

  /// Runs another task of the worker, which finds memory and kernels by DeviceState::get().
  /// `request` names them by write(ByteWriter&, RemoteLaunch): check them first by require().
  Message run(const WorkerTask& task, const WaitLimits& limits = {});
  /// Throws WorkerLost when a name in `launch` is not of the process that there is, InvalidArgument
  /// for an offset beyond its buffer.
  void require(const RemoteLaunch& launch) const;
  void require(const RemoteBuffer& buffer) const;
  void require(const RemoteKernel& kernel) const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace kernwright
