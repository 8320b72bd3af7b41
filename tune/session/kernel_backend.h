// Compiles a kernel for each configuration, and runs it on devices behind workers.
#pragma once

#include "core/device.h"
#include "jit/program.h"
#include "tune/measure/measurement.h"
#include "tune/session/trial_backend.h"
#include "worker/device/remote_device.h"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace kernwright {

/// A configuration's program: a text with its defines, a kernel in it, and a launch.
struct KernelPlan {
  Program program;
  std::string name{};  ///< empty: the only kernel there is
  Dim3 grid{};
  Dim3 block{};
  Dim3 cluster{0, 0, 0};
  std::uint32_t shared_bytes = 0;
};

/// Memory of kernels: its contents before each trial.
struct TuningBuffer {
  std::span<const std::byte> bytes;  ///< their owner lives longer
  /// Filled with 0xff instead, NaN as a float: unwritten elements become visible.
  bool is_poisoned = false;
  bool is_compared = false;  ///< KernelBackendOptions::check looks at it
};

/// One argument: a place in a buffer, or the bytes of a value.
struct TuningArgument {
  std::optional<std::size_t> buffer{};
  std::uint64_t offset = 0;
  std::vector<std::byte> value{};
};

/// The contents of a writable buffer after a launch.
struct TuningOutput {
  std::size_t buffer = 0;
  std::span<const std::byte> bytes;
};

struct KernelBackendOptions {
  std::function<KernelPlan(std::uint64_t index)> plan;
  std::vector<TuningBuffer> buffers{};
  /// Contents of __constant__ and __device__ variables, by their C++ names.
  std::map<std::string, std::span<const std::byte>> symbols{};
  /// One a parameter. Buffers behind pointers to const are not restored between trials.
  std::function<std::vector<TuningArgument>(const ObjectCode&, const KernelSignature&)> arguments;
  /// The error in the outputs, or nothing. In the lane's thread. Null: nothing is checked.
  std::function<std::optional<std::string>(std::span<const TuningOutput>)> check{};
  /// Configurations that tell which outputs are free: those whose contents before a launch do not
  /// matter. The first one decides that is right, and would not be right without writing an output.
  /// Empty: the configuration 0.
  std::vector<std::uint64_t> references{};
  /// The answer, one for each buffer, where it is known already.
  std::optional<std::vector<bool>> free_outputs{};
  MeasurePlan measure{};  ///< the number of samples is the session's
  unsigned compile_lanes = 1;
  /// KERNWRIGHT_DEVICE of each worker: "sim", "cuda:1". At least one.
  std::vector<std::string> devices{"sim"};
  WorkerOptions worker{};
};

/// Code goes through the caches, so the winner is compiled already. Each device is a process of its
/// own; a lost one is replaced, with its buffers.
///
/// Each verified launch gets fresh inputs. Free outputs hold other bytes before each one, so a
/// kernel that leaves an element out is wrong, whatever the given contents are.
class KernelBackend final : public TrialBackend {
 public:
  /// Code is compiled for `device`; it must outlive this object. Throws InvalidArgument.
  KernelBackend(Device& device, KernelBackendOptions options);
  ~KernelBackend() override;

  /// Starts the first device and makes its buffers, so their errors come at once. Throws the errors
  /// of RemoteDevice.
  const DeviceFacts& open(const WaitLimits& limits = {});
  /// Compiles one configuration and launches it once, on the first device, with the check.
  void try_once(std::uint64_t index, const WaitLimits& limits = {});
  /// The free outputs, as KernelBackendOptions::free_outputs takes them; found on the first device.
  std::vector<bool> free_outputs(const WaitLimits& limits = {});

  unsigned compile_lanes() const override { return options_.compile_lanes; }
  unsigned device_lanes() const override { return static_cast<unsigned>(lanes_.size()); }
  bool is_isolated() const override { return options_.worker.in_process == nullptr; }
  bool has_clock() const override { return !device_.is_simulated(); }
  TrialWorkRef plan(std::uint64_t index) override;
  CompiledTrial compile(TrialWork& work, const WaitLimits& limits) override;
  void bind(TrialWork& work) override;
  void prepare(unsigned lane, const WaitLimits& limits) override;
  KernelResources load(unsigned lane, TrialWork& work, const WaitLimits& limits) override;
  std::optional<std::string> verify(unsigned lane, TrialWork& work, unsigned launches,
                                    const WaitLimits& limits) override;
  TrialSamples sample(unsigned lane, TrialWork& work, unsigned count, double cap_ms,
                      const WaitLimits& limits) override;

 private:
  struct Work;
  struct Lane;
  struct FreeOutputs {
    std::vector<bool> free;
    bool is_sure = true;  ///< it writes each other output, or needs the given contents
  };
  Lane& ready(unsigned lane, const WaitLimits& limits);
  const RemoteBuffer* original(Lane& lane, std::size_t buffer, const WaitLimits& limits);
  void restore(Lane& lane, const WaitLimits& limits, std::span<const std::size_t> except = {});
  void fill_symbols(Lane& lane, const Work& work, const WaitLimits& limits) const;
  void find_free_outputs(unsigned lane, const WaitLimits& limits);
  std::vector<bool> searched_free_outputs(unsigned lane, const WaitLimits& limits);
  std::optional<FreeOutputs> trial_free_outputs(unsigned lane, std::uint64_t index,
                                                const WaitLimits& limits);
  bool is_right_on(unsigned lane, Work& work, const std::vector<bool>& poisoned, unsigned turn,
                   const WaitLimits& limits);
  std::vector<std::size_t> candidates(const Lane& lane, const Work& work) const;
  bool is_right_unwritten(const Work& work, std::span<const std::byte> outputs,
                          std::size_t unwritten) const;
  void poison_outputs(Lane& lane, const Work& work, const std::vector<bool>& poisoned,
                      unsigned turn, const WaitLimits& limits);
  std::optional<std::string> verified_launches(Lane& lane, Work& work, unsigned count,
                                               const WaitLimits& limits);
  std::optional<std::string> changed_constant(Lane& lane, const Work& work,
                                              const WaitLimits& limits);
  std::optional<std::string> outcome(Lane& lane, const Work& work, const WaitLimits& limits);
  RemoteLaunch make_launch(Lane& lane, const Work& work) const;

  Device& device_;
  KernelBackendOptions options_;
  std::vector<std::unique_ptr<Lane>> lanes_;
  std::mutex free_mutex_;
  std::optional<std::vector<bool>> free_;  ///< under free_mutex_ until it is set
};

}  // namespace kernwright
