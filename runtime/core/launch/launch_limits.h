// The limits that a launch configuration is held against, gathered once per kernel.
#pragma once

#include "core/launch/launch_config.h"

#include <cstdint>
#include <string>

namespace kernwright {

/// The limit broken by a configuration, with its value and the limit's reason if known.
struct LimitViolation {
  std::string text;  ///< "block of 2048 threads (2048 x 1 x 1): at most 1024 threads"
  std::string note;
};

/// Limits of a device and of one kernel on it. A value.
struct LaunchLimits {
  Dim3 grid;                            ///< largest extents
  Dim3 block;                           ///< largest extents
  std::uint32_t device_threads = 0;     ///< threads of a block, any kernel
  std::uint32_t kernel_threads = 0;     ///< threads of a block of this kernel (registers)
  std::uint32_t static_shared = 0;      ///< bytes that the kernel declares itself
  std::uint32_t block_shared = 0;       ///< bytes of a block, with opt-in, static and dynamic
  std::uint32_t cluster_blocks = 0;     ///< blocks of a cluster; 0: the device has no clusters
  Dim3 required_cluster{0, 0, 0};       ///< of __cluster_dims__; 0: none
  bool cooperative = false;             ///< the device can launch cooperatively
  bool programmatic_dependent = false;  ///< the device can overlap dependent kernels
  bool launch_completion = false;       ///< the driver knows launch-completion events
  int least_priority = 0;               ///< the largest number
  int greatest_priority = 0;            ///< the smallest number

  /// True when `config` is within all limits that can be told without asking the driver. Pure
  /// arithmetic: this runs on every launch.
  bool allow(const LaunchConfig& config) const noexcept;

  /// The first limit that `config` breaks; empty when allow() is true.
  LimitViolation explain(const LaunchConfig& config) const;
};

}  // namespace kernwright
