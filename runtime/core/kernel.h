// A kernel loaded on one device, ready to launch.
#pragma once

#include "core/kernel_signature.h"
#include "core/launch/launch_config.h"
#include "core/launch/launch_site.h"
#include "core/module.h"

#include <memory>
#include <span>
#include <string>

namespace kernwright {

struct KernelAttributes {
  int registers = 0;     ///< per thread
  int shared_bytes = 0;  ///< static shared memory of a block
  int local_bytes = 0;   ///< per thread
  int constant_bytes = 0;
  int max_threads_per_block = 0;
  int ptx_version = 0;     ///< 90 for PTX target sm_90
  int binary_version = 0;  ///< 90 for code of sm_90
};

/// Shared reference: copies are cheap and keep the module alive. Thread-safe.
class Kernel {
 public:
  /// Throws NameNotFound when the module lacks `signature.lowered`. Sizes and offsets of the
  /// parameters are completed from the driver where it tells them (cuFuncGetParamInfo), and a
  /// signature with another number of parameters than the object code throws InvalidArgument.
  Kernel(Module module, KernelSignature signature);

  const KernelSignature& signature() const noexcept;
  /// May compile: see ResourceCubin of module.h.
  const KernelAttributes& attributes() const;
  Device& device() const noexcept;
  const Module& module() const noexcept;
  CUfunction handle() const noexcept;

  /// Checks `config` against the device's and the kernel's limits, before the driver sees it.
  /// Throws LaunchConfigError with limit and value, InvalidArgument for a stream of another device.
  void check(const LaunchConfig& config) const;

  /// Queues the kernel. `arguments[i]` points to the bytes of parameter i, copied before return.
  /// The count must equal the signature's (ArgumentError). Checks the configuration first;
  /// asynchronous. `site` names the caller's line for errors that show up later: it is stored as
  /// three words and resolved only when a message is made (see LaunchSite). Nothing is allocated
  /// and no lock is taken, except when a larger dynamic shared memory is asked for the first time.
  /// On a thread with a LaunchHook the hook queues the kernel.
  void launch(const LaunchConfig& config, std::span<void* const> arguments,
              const LaunchSite& site = {}) const;

  /// Resident blocks of `block` threads on one multiprocessor.
  int occupancy(int block, std::size_t shared_bytes = 0) const;
  /// Block size of highest occupancy.
  int suggest_block(std::size_t shared_bytes = 0) const;
  /// Blocks of the largest possible cluster, with `block` threads each; 0 on devices without
  /// clusters. Above 8 the size depends on the kernel and on the device's layout.
  int max_cluster(int block, std::size_t shared_bytes = 0) const;
  /// Clusters of `config` that the device runs at once; 0 on devices without clusters.
  int active_clusters(const LaunchConfig& config) const;

 private:
  struct Box;
  std::shared_ptr<const Box> box_;
};

}  // namespace kernwright
