// A launch in pieces that are queued one by one, so that other work gets in between.
#pragma once

#include "core/launch/launch_config.h"
#include "core/launch/launch_site.h"
#include "driver/driver_types.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <utility>

namespace kernwright {

class Kernel;

/// What a launch does: a kernel's function and its blocks; or a graph, or a piece of one. Equal
/// work takes about the same time.
using WorkKey = std::pair<const void*, std::uint64_t>;

/// Two words of 32 bits for a launch that stops when it is told to, as the device sees them: the
/// order to stop (not 0), which the device only reads, and the next block or tile. Both or none.
struct YieldAddresses {
  CUdeviceptr order = 0;  ///< in memory of the device, or page-locked memory of the host
  CUdeviceptr next = 0;   ///< in memory of the device: each block or tile adds 1
  explicit operator bool() const noexcept { return next != 0; }
};

/// Not thread-safe.
class LaunchPieces {
 public:
  virtual ~LaunchPieces() = default;
  virtual std::size_t left() const noexcept = 0;  ///< pieces not queued yet
  virtual WorkKey next() const noexcept = 0;      ///< of the next one
  /// What is left, in pieces as long as the next one: the last one may be shorter.
  virtual double amount() const noexcept { return static_cast<double>(left()); }
  virtual void queue() = 0;  ///< queues the next one
  /// Not 0: one piece, all that is left, which stops when it is told to (PieceRequest::words). It
  /// is queued again until the second word has become this number.
  virtual std::uint64_t yields_until() const noexcept { return 0; }
};

/// How a launch is to be cut.
struct PieceRequest {
  double launch_us = 0;     ///< measured time of the whole launch; 0: not known
  double latency_us = 0;    ///< longest wanted time of a piece
  int multiprocessors = 1;  ///< that the launch runs on
  /// Multiprocessors that pieces leave to others where that needs no more rounds of blocks, or one.
  int spare = 0;
  /// Blocks of a piece at most; 0: as many as the times allow.
  std::uint64_t most_blocks = 0;
  /// If given, the launch may be one that stops when it is told to.
  YieldAddresses words = {};

  /// The multiprocessors for pieces: at least seven of eight.
  int used_multiprocessors() const noexcept {
    return multiprocessors - std::min(spare, multiprocessors / 8);
  }
};

/// Cuts the launch of a kernel; null when it cannot be cut, and when that would not pay.
using LaunchCutter = std::function<std::unique_ptr<LaunchPieces>(
    const Kernel&, const LaunchConfig&, std::span<void* const>, const LaunchSite&,
    const PieceRequest&)>;

}  // namespace kernwright
