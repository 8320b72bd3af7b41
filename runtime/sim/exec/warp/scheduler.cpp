// Picks, merges and runs the splits of a warp.
#include "sim/exec/warp/scheduler.h"

#include "base/hash.h"
#include "sim/code/dispatch.h"
#include "sim/code/program.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <memory>
#include <new>

namespace kernwright::sim {
namespace {

/// Fills one register of a frame for all lanes.
void fill_constant(std::byte* frame, const FrameConstant& constant) {
  std::byte* to = frame + constant.offset;
  if (constant.bytes == kPredicateWidth) {
    const std::uint32_t all = constant.bits != 0 ? kAllLanes : 0;
    std::memcpy(to, &all, sizeof all);
    return;
  }
  const std::array<std::uint64_t, 2> lane{constant.bits, 0};
  std::memcpy(to, &lane, constant.bytes);
  for (std::size_t done = constant.bytes; done < kLanes * constant.bytes; done *= 2)
    std::memcpy(to + done, to, done);
}

constexpr std::array<std::uint32_t, kLanes> kLaneBits = [] {
  std::array<std::uint32_t, kLanes> bits{};
  for (std::size_t i = 0; i < kLanes; ++i) bits[i] = 1u << i;
  return bits;
}();

bool comes_before(const Split& x, const Split& y) {
  return x.depth != y.depth ? x.depth > y.depth : x.pc < y.pc;
}

/// The ready split to run next, or count when there is none.
std::uint32_t pick(Warp::Schedule& schedule) {
  std::uint32_t best = schedule.count;
  bool any_deferred = false;
  for (std::uint32_t i = 0; i < schedule.count; ++i) {
    const Split& split = schedule.splits[i];
    if (split.state != SplitState::ready) continue;
    any_deferred |= split.deferred;
    if (split.deferred) continue;
    if (best == schedule.count || comes_before(split, schedule.splits[best])) best = i;
  }
  if (best != schedule.count || !any_deferred) return best;
  for (std::uint32_t i = 0; i < schedule.count; ++i) schedule.splits[i].deferred = false;
  return pick(schedule);
}

/// Joins every ready split at the place of `schedule.running`.
void merge_running(Warp::Schedule& schedule) {
  for (std::uint32_t i = 0; i < schedule.count;) {
    Split& kept = schedule.splits[schedule.running];
    const Split& other = schedule.splits[i];
    if (i == schedule.running || other.state != SplitState::ready || other.pc != kept.pc ||
        other.depth != kept.depth || other.frame != kept.frame) {
      ++i;
      continue;
    }
    kept.mask |= other.mask;
    kept.window = std::min(kept.window, other.window);
    schedule.remove(i);
  }
}

std::uint32_t pending_op(const Warp::Schedule& schedule) {
  const Split& running = schedule.splits[schedule.running];
  std::uint32_t lowest = ~0u;
  for (std::uint32_t i = 0; i < schedule.count; ++i) {
    const Split& split = schedule.splits[i];
    if (i == schedule.running || split.state != SplitState::ready || split.deferred ||
        split.depth != running.depth) {
      continue;
    }
    lowest = std::min(lowest, split.pc);
  }
  return lowest;
}

/// Makes the next split the running one. Null when none is ready.
const Op* activate(Warp& warp) {
  Warp::Schedule& schedule = *warp.schedule;
  const std::uint32_t next = pick(schedule);
  if (next == schedule.count) return nullptr;
  schedule.running = next;
  if (schedule.count > 1) merge_running(schedule);
  const Split& split = schedule.current();
  warp.pending = schedule.count > 1 ? pending_op(schedule) : ~0u;
  warp.frame = split.frame;
  warp.window = split.window;
  warp.stop = Stop::none;
  // NOTE: full code needs the words of lane_mask too: families built for size have masked handlers.
  if (split.mask != kAllLanes || warp.mask != kAllLanes) warp.set_mask(split.mask);
  warp.code = split.mask == kAllLanes ? warp.program->full.data() : warp.program->masked.data();
  return warp.code + split.pc;
}

}  // namespace

Split& Warp::Schedule::fork(const Warp& warp, std::uint32_t lanes, std::uint32_t pc) {
  Split& split = splits[count++];
  split = current();
  split.mask = lanes;
  split.pc = pc;
  split.window = warp.window;
  split.state = SplitState::ready;
  split.deferred = false;
  return split;
}

void Warp::Schedule::park(Warp& warp, const Op* op, SplitState state) {
  Split& split = current();
  split.pc = warp.op_index(op);
  split.state = state;
  split.window = warp.window;
  warp.stop = Stop::barrier;
}

void Warp::Schedule::remove(std::uint32_t which) {
  const std::uint32_t last = --count;
  // NOTE: a copy waits for the recent writes of its parts, so a split is not copied onto itself.
  if (which != last) splits[which] = splits[last];
  if (running == last) running = which;
}

std::byte* Warp::Schedule::known_frame(std::uint32_t depth, std::uint32_t function) const {
  if (frames.size() <= depth) return nullptr;
  for (const Frame& known : frames[depth]) {
    if (known.function == function) return known.bytes.get();
  }
  return nullptr;
}

std::byte* Warp::Schedule::frame_at(const Warp& warp, std::uint32_t depth, std::uint32_t function) {
  if (std::byte* const known = known_frame(depth, function)) return known;
  const FunctionInfo& info = warp.program->functions[function];
  Frame made;
  made.function = function;
  made.size = info.frame_bytes;
  made.bytes.reset(static_cast<std::byte*>(std::aligned_alloc(64, made.size)));
  if (made.bytes == nullptr) throw std::bad_alloc();
  std::memset(made.bytes.get(), 0, kFrameHeaderBytes);
  std::memset(made.bytes.get() + info.areas_begin, 0, made.size - info.areas_begin);
  for (FrameConstant constant : info.constants) {
    if (constant.in_shared) constant.bits += warp.rank_bits;
    fill_constant(made.bytes.get(), constant);
  }
  if (frames.size() <= depth) frames.resize(depth + 1);
  frame_bytes += made.size;
  frames[depth].push_back(std::move(made));
  return frames[depth].back().bytes.get();
}

std::byte* Warp::Schedule::callee_frame(const Warp& warp, std::uint32_t depth,
                                        std::uint32_t function) {
  if (std::byte* const known = known_frame(depth, function)) return known;
  const std::size_t size = warp.program->functions[function].frame_bytes;
  if (frame_bytes + size > kMaxWarpFrameBytes) {
    std::uint32_t deepest = 0;
    for (std::uint32_t i = 0; i < count; ++i) deepest = std::max(deepest, splits[i].depth);
    while (frames.size() > deepest + 1) {
      for (const Frame& unused : frames.back()) frame_bytes -= unused.size;
      frames.pop_back();
    }
    if (frame_bytes + size > kMaxWarpFrameBytes) return nullptr;
  }
  return frame_at(warp, depth, function);
}

void Warp::set_mask(std::uint32_t lanes) noexcept {
  mask = lanes;
  for (std::size_t i = 0; i < kLanes; ++i) {
    // One bit a lane, not a shift by i: processors without AVX2 have no vectors of those.
    lane_mask[i] = 0u - static_cast<std::uint32_t>((lanes & kLaneBits[i]) != 0);
  }
}

namespace {

/// The contents of registers that nobody wrote: zeros, or random bits under
/// LaunchContext::register_seed.
class Leftovers {
 public:
  explicit Leftovers(const Warp& warp) : seed_(warp.worker->launch->register_seed) {
    if (seed_ != 0) seed_ = mix(mix(seed_, warp.block->linear_index), warp.index);
  }
  std::uint64_t next() { return seed_ == 0 ? 0 : splitmix_at(seed_, ++count_); }

 private:
  std::uint64_t seed_, count_ = 0;
};

}  // namespace

void clear_registers(const Warp& warp, std::uint32_t function, std::byte* frame,
                     std::uint32_t lanes) {
  Leftovers leftovers(warp);
  for (const FrameConstant& reg : warp.program->functions[function].zeroed) {
    std::byte* at = frame + reg.offset;
    if (lanes == kAllLanes && warp.worker->launch->register_seed == 0) {
      std::memset(at, 0, reg.bytes == kPredicateWidth ? sizeof lanes : reg.bytes * kLanes);
    } else if (reg.bytes == kPredicateWidth) {
      auto& bits = *reinterpret_cast<std::uint32_t*>(at);
      bits = (bits & ~lanes) | (static_cast<std::uint32_t>(leftovers.next()) & lanes);
    } else {
      for (std::uint32_t m = lanes; m != 0; m &= m - 1) {
        std::byte* const lane = at + static_cast<std::size_t>(std::countr_zero(m)) * reg.bytes;
        for (std::size_t done = 0; done < reg.bytes; done += sizeof(std::uint64_t)) {
          const std::uint64_t bits = leftovers.next();
          std::memcpy(lane + done, &bits, std::min<std::size_t>(sizeof bits, reg.bytes - done));
        }
      }
    }
  }
}

void begin_warp(Warp& warp, std::uint32_t lanes) {
  const std::uint32_t entry = warp.worker->launch->function;
  Warp::Schedule& schedule = *warp.schedule;
  // Made in place: a copy would wait for its parts to reach memory.
  Split& split = *std::construct_at(&schedule.splits[0]);
  split.mask = lanes;
  const FunctionInfo& info = warp.program->functions[entry];
  split.pc = schedule.frames.empty() ? info.first_op : info.block_op;
  split.function = entry;
  split.frame = schedule.frames.empty() ? schedule.frame_at(warp, 0, entry)
                                        : schedule.frames.front().front().bytes.get();
  schedule.count = lanes == 0 ? 0 : 1;
  schedule.running = 0;
  warp.live = lanes;
  warp.executed = warp.charged = 0;
  const std::uint64_t budget = warp.worker->launch->instruction_budget;
  warp.budget = budget != 0 ? budget : ~std::uint64_t{0};
  if (!info.zeroed.empty()) clear_registers(warp, entry, split.frame, kAllLanes);
  if (info.stack_bytes != 0) {
    auto* const tops = reinterpret_cast<std::uint32_t*>(split.frame + kLocalTopOffset);
    std::fill_n(tops, kLanes, info.local_bytes);
  }
}

bool can_run(const Warp& warp) {
  const Warp::Schedule& schedule = *warp.schedule;
  return std::any_of(schedule.splits.begin(), schedule.splits.begin() + schedule.count,
                     [](const Split& split) { return split.state == SplitState::ready; });
}

namespace {

/// Runs the warp's splits by `run`; its argument is the op to continue with.
template <typename F>
WarpStatus run_by(Warp& warp, F run) {
  for (;;) {
    const Op* const op = activate(warp);
    if (op == nullptr) {
      return warp.schedule->count == 0 ? WarpStatus::done : WarpStatus::waiting;
    }
    run(op);
    if (warp.stop == Stop::fault) return WarpStatus::faulted;
    if (warp.stop != Stop::yield) continue;
    // Other splits of this warp first; when all have run, other warps.
    Warp::Schedule& schedule = *warp.schedule;
    bool others = false;
    for (std::uint32_t i = 0; i < schedule.count; ++i) {
      others |= schedule.splits[i].state == SplitState::ready && !schedule.splits[i].deferred;
    }
    if (others) continue;
    for (std::uint32_t i = 0; i < schedule.count; ++i) schedule.splits[i].deferred = false;
    return WarpStatus::yielded;
  }
}

}  // namespace

WarpStatus run_warp(Warp& warp) {
  return run_by(warp, [&](const Op* op) {
    do {
      op = op->fn(op, warp);
    } while (op != nullptr);
  });
}

WarpStatus run_warp(Warp& warp, bool& busy) {
  const std::vector<bool>& known = warp.program->tables->busy_waits;
  return run_by(warp, [&](const Op* op) {
    do {
      busy = busy && known[warp.op_index(op)];
      op = op->fn(op, warp);
    } while (op != nullptr);
  });
}

}  // namespace kernwright::sim
