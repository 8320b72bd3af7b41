// How long a block has done nothing but wait.
#pragma once

#include "sim/exec/warp/scheduler.h"

#include <cstddef>
#include <cstdint>
#include <vector>

namespace kernwright::sim {

/// A round: each warp of a block has a time slice. In an `idle` one a warp went round in a loop
/// that may wait for other blocks; in a `plain` one warps came to barriers of the block, also
/// possible in such a loop.
enum class RoundKind : std::uint8_t { idle, plain, work };

/// Counts the rounds of one block. Not thread-safe.
class BlockWaits {
 public:
  /// A block of so many warps begins.
  void begin(std::size_t warps);
  /// The kind of a warp's slice with this end; `work` if the warp ended for good.
  RoundKind slice_kind(const Warp& warp, WarpStatus status);
  /// A round of all of them. `met`: a barrier of the block let warps go.
  void count(RoundKind kind, bool met, const std::vector<Warp>& warps);
  /// So many rounds that the block seems to wait for others.
  bool seem_long() const noexcept;
  /// The loss of the budget since the last round with work; for possibly working loops, less.
  std::uint64_t instructions() const noexcept { return waited_; }

 private:
  std::vector<std::uint64_t> executed_at_yield_;  ///< per warp
  std::uint32_t idle_rounds_ = 0;                 ///< since the last one with work
  std::uint32_t plain_rounds_ = 0;                ///< in a row without an idle one
  std::uint64_t executed_ = 0, spent_ = 0;        ///< by all warps of the block
  std::uint64_t waited_ = 0;
};

}  // namespace kernwright::sim
