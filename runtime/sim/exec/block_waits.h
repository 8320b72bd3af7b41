// How long a block has done nothing but wait.
#pragma once

#include "sim/exec/scheduler.h"

#include <cstddef>
#include <cstdint>
#include <vector>

namespace kernwright::sim {

/// A turn of all warps of a block. In an `idle` one a warp went round in a loop that may wait for
/// other blocks; in a `plain` one warps came to barriers of the block, as they do in such a loop,
/// too.
enum class TurnKind : std::uint8_t { idle, plain, work };

/// Counts the turns of one block. Not thread-safe.
class BlockWaits {
 public:
  /// A block of so many warps begins.
  void begin(std::size_t warps);
  /// What a warp's turn was that ended so; one that ended for good is `work`.
  TurnKind kind_of_turn(const Warp& warp, WarpStatus status);
  /// The turn of all of them. `met`: a barrier of the block let warps go.
  void count(TurnKind kind, bool met, const std::vector<Warp>& warps);
  /// So many turns that the block seems to wait for others.
  bool seem_long() const noexcept;
  /// What the budget lost since the last turn with work, for loops that may be work less.
  std::uint64_t instructions() const noexcept { return waited_; }

 private:
  std::vector<std::uint64_t> executed_at_yield_;  ///< per warp
  std::uint32_t idle_turns_ = 0;                  ///< since the last one with work
  std::uint32_t plain_turns_ = 0;                 ///< in a row without an idle one
  std::uint64_t executed_ = 0, spent_ = 0;        ///< by all warps of the block
  std::uint64_t waited_ = 0;
};

}  // namespace kernwright::sim
