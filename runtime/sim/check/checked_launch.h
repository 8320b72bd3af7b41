// One launch under checks: the state common to its blocks.
#pragma once

#include "base/hash.h"
#include "sim/check/checked_program.h"
#include "sim/check/history/global_shadow.h"
#include "sim/check/order/clock.h"
#include "sim/check/report/findings.h"
#include "sim/checks.h"
#include "sim/exec/watcher.h"

#include <atomic>
#include <cstdint>
#include <mutex>
#include <unordered_map>
#include <vector>

namespace kernwright::sim {

/// Gives every block its own ticks and knows the block of each tick. One for the process; ticks of
/// earlier launches are below those of later ones.
class Ticks {
 public:
  static constexpr int kChunkShift = 8;
  static constexpr std::uint32_t kChunks = 1u << 23;

  Ticks();
  ~Ticks();
  Ticks(const Ticks&) = delete;
  Ticks& operator=(const Ticks&) = delete;

  /// First tick not owned by any block. `*wrapped` is true when ticks began anew: older shadows
  /// then have no meaning. Only while nothing runs.
  std::uint32_t begin_launch(bool* wrapped);
  /// First tick of a fresh chunk for the block; the last chunk of all is given out again and again.
  std::uint32_t take(std::uint32_t block) noexcept;
  std::uint32_t owner(std::uint32_t tick) const noexcept { return owners_[tick >> kChunkShift]; }

 private:
  std::atomic<std::uint32_t> next_{1};
  std::uint32_t* owners_ = nullptr;  ///< by chunk
};

/// Made by the launching thread; thread-safe where blocks use it.
class CheckedLaunch final : public LaunchWatcher {
 public:
  /// A seed chooses the next warp before each access to memory; 0: warps run as without checks.
  /// `width` as for run_grid().
  CheckedLaunch(const CheckedProgram& program, CheckSet checks, GlobalShadow& shadow, Ticks& ticks,
                std::uint64_t seed, int width);

  std::unique_ptr<Watcher> watch(const WatchedBlocks& blocks) override;

  const CheckedProgram& program;
  const CheckSet checks;
  const bool alone;  ///< all blocks run on one host thread
  GlobalShadow& shadow;
  Ticks& ticks;
  std::uint32_t first_tick = 0;  ///< of the launch

  /// A synchronisation variable as those within reach of each other see it.
  struct Variable {
    std::uint64_t address = 0;
    std::uint64_t group = 0;  ///< the block or cluster; 0: all
    bool operator==(const Variable&) const = default;
  };
  /// The past published at the variable; null for none.
  SharedPast published(const Variable& variable);
  void publish(const Variable& variable, const SharedPast& past);

  /// Findings of a worker, each under a key of its place; of equal ones the farthest race
  /// stays, or the lowest block's.
  using Found = std::unordered_map<std::uint64_t, Finding>;
  void collect(Found& found);
  /// Everything found, in the order of the program's places. After the last block.
  std::vector<Finding> take();

 private:
  std::mutex mutex_;  // guards all below
  Found found_;
  struct Hash {
    std::size_t operator()(const Variable& variable) const noexcept {
      return mixed(mix(variable.group, variable.address));
    }
  };
  std::unordered_map<Variable, SharedPast, Hash> variables_;
};

}  // namespace kernwright::sim
