// Splits of a warp: the places of its lanes, and the choice of the next one to run.
//
// Lanes of a warp at the same op of the same call depth form a split. The deepest split runs first,
// among those the one at the lowest op; because code is laid out in reverse post-order, lanes wait
// at points where they can meet again. After using up its fairness window, a split is deferred
// until every other split has run, so a lane that waits for another lane of its warp cannot starve
// it. Everything is plain data: a warp can stop at any op and go on later.
#pragma once

#include "sim/exec/warp/warp.h"

#include <array>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <vector>

namespace kernwright::sim {

inline constexpr std::int32_t kFairnessWindow = 4096;
inline constexpr std::uint32_t kMaxCallDepth = 1024;
/// Limit for one warp. Its frame has the registers of 32 threads; a GPU gives each at most 512 KiB.
inline constexpr std::size_t kMaxWarpFrameBytes = std::size_t{32} << 20;

enum class SplitState : std::uint8_t {
  ready,
  barrier,    ///< waits at a block barrier
  sync,       ///< waits at a *.sync instruction for other lanes of the warp
  cluster,    ///< waits at barrier.cluster.wait
  mbarrier,   ///< waits at mbarrier.try_wait
  warpgroup,  ///< waits at wgmma.wait_group for the other warps of its warpgroup
};

/// The reduction of bar.red; Op::flags of barrier ops.
enum class Reduction : std::uint32_t { none, count, all, any };

struct Split {
  std::uint32_t mask = 0;
  std::uint32_t pc = 0;        ///< op index
  std::uint32_t depth = 0;     ///< calls around it
  std::uint32_t function = 0;  ///< index into Program::functions
  std::byte* frame = nullptr;
  std::int32_t window = kFairnessWindow;
  std::uint32_t barrier = 0;
  SplitState state = SplitState::ready;
  bool deferred = false;
  bool gives_up = false;  ///< a wait for an mbarrier ends without success
};

/// A frame belongs to a call depth and a function: lanes of one function at one depth share it,
/// wherever they were called from. Frames live as long as the warp.
struct Frame {
  std::uint32_t function = 0;
  std::size_t size = 0;
  std::unique_ptr<std::byte, void (*)(void*)> bytes{nullptr, std::free};
};

struct Warp::Schedule {
  std::array<Split, kLanes> splits;
  std::uint32_t count = 0;
  std::uint32_t running = 0;
  std::vector<std::vector<Frame>> frames;  ///< per depth
  std::size_t frame_bytes = 0;             ///< of all frames

  Split& current() { return splits[running]; }
  /// Adds a split with `lanes` of the running one at `pc`, ready.
  Split& fork(const Warp& warp, std::uint32_t lanes, std::uint32_t pc);
  /// The running split waits at `op`, in this state.
  void park(Warp& warp, const Op* op, SplitState state);
  /// Removes a split; the last one takes its place, and stays the running one if it was.
  void remove(std::uint32_t which);
  /// The frame of `function` at `depth`; made when it is first asked for, with arbitrary bits in
  /// its registers (clear_registers).
  std::byte* frame_at(const Warp& warp, std::uint32_t depth, std::uint32_t function);
  /// The same for a call, not deeper than kMaxWarpFrameBytes: else null. If room is needed, frames
  /// below the running ones go.
  std::byte* callee_frame(const Warp& warp, std::uint32_t depth, std::uint32_t function);
  /// Null when there is none yet.
  std::byte* known_frame(std::uint32_t depth, std::uint32_t function) const;
};

enum class WarpStatus : std::uint8_t { done, waiting, yielded, faulted };

/// Places the warp at the first op of the launch's entry with `lanes` live.
void begin_warp(Warp& warp, std::uint32_t lanes);

/// Runs until all lanes exited, wait at barriers or *.sync instructions, or let other warps run.
WarpStatus run_warp(Warp& warp);

/// The same. `busy` becomes false unless all executed ops are of loops that only wait for shared
/// memory (Tables::busy_waits).
WarpStatus run_warp(Warp& warp, bool& busy);

/// True when some split of the warp can run.
bool can_run(const Warp& warp);

/// Fills the registers of a frame that may be read before they are written, for `lanes`: with
/// zeros, or as LaunchContext::register_seed says.
void clear_registers(const Warp& warp, std::uint32_t function, std::byte* frame,
                     std::uint32_t lanes);

}  // namespace kernwright::sim
