// Asynchronous copies of a block: bulk groups, and deferred copies.
#pragma once

#include "sim/code/op.h"

#include <cstdint>
#include <deque>
#include <functional>
#include <vector>

namespace kernwright::sim {

/// Copies run when they are issued, or, with a seed, as late as PTX allows: those of bulk groups
/// when their thread waits for the group, the others when the cluster cannot go on without them, in
/// an order chosen by the seed. A program with a too early read then sees old bytes.
class BulkCopies {
 public:
  /// Moves the bytes; false after it reported a finding through its warp.
  using Move = std::function<bool()>;

  /// A new block begins; nothing means at once.
  void reset(std::uint64_t seed, std::uint32_t threads);
  bool deferred() const noexcept { return seed_ != 0; }

  /// A copy that reports its end to a barrier in shared memory.
  bool issue(Move move);
  /// A copy of the open bulk group of `thread`.
  bool issue_in_group(std::uint32_t thread, Move move);
  void commit(std::uint32_t thread);
  /// Runs the groups committed by `thread` until at most `left` are open.
  bool wait(std::uint32_t thread, std::uint32_t left);
  /// Runs one of the copies without a waiting call; false when there is none. `ok` becomes the
  /// copy's result.
  bool run_one(bool& ok);
  /// Runs everything: the block's threads have exited.
  bool finish();

 private:
  struct Groups {
    std::vector<Move> open;
    std::deque<std::vector<Move>> committed;
  };
  static bool run(std::vector<Move>& moves);

  std::uint64_t seed_ = 0, state_ = 0;
  std::vector<Move> waiting_;
  std::vector<Groups> groups_;  ///< per thread; empty unless deferred
};

}  // namespace kernwright::sim
