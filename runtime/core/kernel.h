// A kernel loaded on one device, ready to launch.
#pragma once

#include "core/kernel_signature.h"
#include "core/launch_config.h"
#include "core/module.h"

#include <memory>
#include <span>
#include <string>

namespace kernwright {

struct KernelAttributes {
  int registers = 0;              ///< per thread
  int shared_bytes = 0;           ///< static shared memory of a block
  int local_bytes = 0;            ///< per thread
  int constant_bytes = 0;
  int max_threads_per_block = 0;
  int ptx_version = 0;
  int binary_version = 0;
};

/// Text for error messages about a launch: made only when something failed.
struct LaunchSite {
  std::string file;
  int line = 0;
};

/// Shared reference: copies are cheap and keep the module alive. Thread-safe.
class Kernel {
 public:
  /// Throws NameNotFound when the module lacks `signature.lowered`. Sizes and offsets of the
  /// parameters are completed from the driver where it tells them (cuFuncGetParamInfo).
  Kernel(Module module, KernelSignature signature);

  const KernelSignature& signature() const noexcept;
  const KernelAttributes& attributes() const noexcept;
  Device& device() const;
  const Module& module() const noexcept;
  CUfunction handle() const noexcept;

  /// Checks `config` against the device's and the kernel's limits. Throws LaunchConfigError with limit and value.
  void check(const LaunchConfig& config) const;
  /// Queues the kernel. `arguments[i]` points to the bytes of parameter i, copied before return.
  /// The count must equal the signature's. Checks the configuration first; asynchronous.
  void launch(const LaunchConfig& config, std::span<void* const> arguments) const;

  /// Resident blocks of `block` threads on one multiprocessor.
  int occupancy(int block, std::size_t shared_bytes = 0) const;
  /// Block size of highest occupancy.
  int suggest_block(std::size_t shared_bytes = 0) const;

 private:
  struct Box;
  std::shared_ptr<const Box> box_;
};

}  // namespace kernwright
