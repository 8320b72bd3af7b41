// A compiled kernel on a device of another process, launched as the judge launches it.
#pragma once

#include "core/kernel_signature.h"
#include "jit/compile/compile_wait.h"
#include "tune/judge/fill.h"
#include "tune/judge/host_case.h"
#include "worker/device/remote_device.h"

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace kernwright {

/// The contents of an argument's array before a launch.
enum class Contents : std::uint8_t {
  given,    ///< the task's inputs
  free,     ///< of any kind (Fill): they must not matter
  scratch,  ///< the same for a workspace, whose contents afterwards do not matter, either
};

/// How a launch differs from others of the same case.
struct LaunchSetting {
  std::uint64_t seed = 0;       ///< of contents, addresses and their order
  Fill fill = Fill::random;     ///< of free arrays
  std::vector<double> steps{};  ///< for each argument; but for 0: steps() in its free array
  /// On the simulated device, the order of warps and blocks; nothing: the usual one.
  std::optional<std::uint64_t> schedule{};
  /// As many launches in front of it, with the same addresses and without checks.
  std::uint64_t before = 0;
  /// The inputs of those; null: its own. Arrays have the same sizes.
  CaseRef before_case{};
  /// For a launch that asks why another one was wrong: Fill::earlier is what it was for that one.
  bool repeats = false;
};

/// The results of a launch.
struct LaunchOutcome {
  HostValues after;                   ///< the inputs with the contents of arrays afterwards
  std::string damage;                 ///< a write outside of a buffer; empty: none
  std::optional<CheckReport> report;  ///< of the simulated device
};

/// Not thread-safe. Memory lives during a call only: addresses move and nothing of a launch is
/// there in the next. Throws the errors of RemoteDevice; LaunchConfigError if the kernel's own
/// variables or its stack do not fit, OutOfMemory if its arguments do not.
class JudgedKernel {
 public:
  JudgedKernel(RemoteDevice& device, ObjectCode code, KernelSignature signature);
  ~JudgedKernel();
  JudgedKernel(const JudgedKernel&) = delete;
  JudgedKernel& operator=(const JudgedKernel&) = delete;

  RemoteDevice& device() const noexcept { return device_; }
  const KernelSignature& signature() const noexcept { return signature_; }

  /// The next launch is of a new module: its `__device__` variables are as the text says.
  void forget_module() noexcept;

  /// One launch. With `checks` on the simulated device; there a write to an array that is const in
  /// the signature is a fault.
  LaunchOutcome run(const HostCase& host_case, const std::vector<Contents>& contents,
                    const LaunchSetting& setting, const std::optional<CheckOptions>& checks,
                    const WaitLimits& limits);

  /// Runs all cases in this order, each once and in a module of its own, so that no launch can use
  /// what another one prepared. Returns the milliseconds of all but the first. GPUs only.
  std::vector<double> time(const std::vector<CaseRef>& cases, const std::vector<Contents>& contents,
                           std::uint64_t seed, std::vector<LaunchOutcome>& outcomes,
                           const WaitLimits& limits);

 private:
  class Memory;
  class Modules;
  RemoteLaunch make_launch(const HostCase& host_case, const Memory& memory,
                           const RemoteKernel& kernel) const;
  void put_in_place(const HostCase& host_case, const Memory& memory, std::size_t argument,
                    Contents contents, const LaunchSetting& setting, const WaitLimits& limits);
  void put_all_in_place(const HostCase& host_case, const Memory& memory,
                        const std::vector<Contents>& contents, const LaunchSetting& setting,
                        const WaitLimits& limits);
  void launch_before(const HostCase& host_case, const Memory& memory,
                     const std::vector<Contents>& contents, const LaunchSetting& setting,
                     const WaitLimits& limits);
  const RemoteKernel& loaded(const WaitLimits& limits);
  std::unique_ptr<Memory> memory_for(const HostCase& host_case, std::uint64_t seed,
                                     const WaitLimits& limits);

  RemoteDevice& device_;
  ObjectCode code_;
  KernelSignature signature_;
  RemoteKernel kernel_;
  /// What launches left in each argument, for Fill::earlier: those before the last one that repeats
  /// no other, and that one.
  std::vector<std::vector<std::byte>> left_, left_last_;
};

}  // namespace kernwright
