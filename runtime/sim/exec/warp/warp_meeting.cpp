// How lanes of a warp wait for each other at *.sync instructions.
#include "sim/exec/warp/scheduler.h"
#include "sim/exec/watcher.h"

#include <bit>

namespace kernwright::sim {
namespace {

/// Lanes of `present` with a missing live lane in their masks.
std::uint32_t lanes_that_miss(std::uint32_t present, std::uint32_t live,
                              const std::uint32_t* members) {
  std::uint32_t lanes = 0;
  for (std::uint32_t m = present; m != 0; m &= m - 1) {
    const int lane = std::countr_zero(m);
    if ((members[lane] & live & ~present) != 0) lanes |= 1u << lane;
  }
  return lanes;
}

/// Adds the lanes already waiting at the running split's op to it.
Split& join_waiting(Warp& warp, std::uint32_t here) {
  Warp::Schedule& schedule = *warp.schedule;
  schedule.current().pc = here;
  schedule.current().window = warp.window;
  for (std::uint32_t i = 0; i < schedule.count;) {
    const Split& other = schedule.splits[i];
    if (i == schedule.running || other.state != SplitState::sync || other.pc != here ||
        other.frame != schedule.current().frame) {
      ++i;
      continue;
    }
    schedule.current().mask |= other.mask;
    schedule.remove(i);
  }
  return schedule.current();
}

/// Lanes of a split waiting at another bar.warp.sync than the running one's, with exactly this
/// mask.
std::uint32_t find_waiting(const Warp& warp, std::uint32_t split, std::uint32_t named) {
  const Warp::Schedule& schedule = *warp.schedule;
  const Split& other = schedule.splits[split];
  if (split == schedule.running || other.state != SplitState::sync) return 0;
  const ptx::Instruction* const at = warp.program->tables->instructions[other.pc];
  if (at == nullptr || at->modifiers.verb != ptx::Verb::warp_sync) return 0;
  const auto* const members =
      reinterpret_cast<const std::uint32_t*>(other.frame + warp.program->full[other.pc].a);
  std::uint32_t lanes = 0;
  for (std::uint32_t m = other.mask; m != 0; m &= m - 1) {
    const int lane = std::countr_zero(m);
    if (members[lane] == named) lanes |= 1u << lane;
  }
  return lanes;
}

std::uint32_t wait_members(const Warp& warp, std::uint32_t named) {
  std::uint32_t lanes = 0;
  for (std::uint32_t i = 0; i < warp.schedule->count; ++i) lanes |= find_waiting(warp, i, named);
  return lanes;
}

/// These lanes go on after their bar.warp.sync.
void release_members(Warp& warp, std::uint32_t named) {
  Warp::Schedule& schedule = *warp.schedule;
  const std::uint32_t count = schedule.count;
  for (std::uint32_t i = 0; i < count; ++i) {
    const std::uint32_t lanes = find_waiting(warp, i, named);
    if (lanes == 0) continue;
    Split released = schedule.splits[i];
    released.mask = lanes;
    released.state = SplitState::ready;
    ++released.pc;
    schedule.splits[i].mask &= ~lanes;
    schedule.splits[schedule.splits[i].mask == 0 ? i : schedule.count++] = released;
  }
}

}  // namespace

bool Warp::converge(const Op* op, const std::uint32_t* members) {
  if ((live & ~mask) == 0 || lanes_that_miss(mask, live, members) == 0) return true;
  // Join the lanes already waiting here, then see if all are there.
  const std::uint32_t here = op_index(op);
  Split& joined = join_waiting(*this, here);
  const std::uint32_t waiting = lanes_that_miss(joined.mask, live, members);
  stop = Stop::reschedule;
  if (waiting == joined.mask) {
    joined.state = SplitState::sync;
    stop = Stop::warp_sync;
  } else if (waiting != 0) {
    Split& rest = schedule->fork(*this, waiting, here);
    rest.state = SplitState::sync;
    schedule->current().mask &= ~waiting;
  }
  return false;
}

const Op* Warp::meet_anywhere(const Op* op) {
  const auto* const members = reg<std::uint32_t>(op->a);
  if ((live & ~mask) == 0 || lanes_that_miss(mask, live, members) == 0) return op + 1;
  const std::uint32_t here = op_index(op);
  Split& joined = join_waiting(*this, here);
  std::uint32_t complete = 0, elsewhere = 0;
  for (std::uint32_t m = joined.mask; m != 0; m &= m - 1) {
    const int lane = std::countr_zero(m);
    const std::uint32_t others = wait_members(*this, members[lane]);
    if ((members[lane] & live & ~(joined.mask | others)) != 0) continue;
    complete |= 1u << lane;
    elsewhere |= others;
  }
  stop = complete == 0 ? Stop::warp_sync : Stop::reschedule;
  if (complete == 0) {
    joined.state = SplitState::sync;
    return nullptr;
  }
  for (std::uint32_t m = complete; m != 0; m &= m - 1) {
    release_members(*this, members[std::countr_zero(m)]);
  }
  if (const std::uint32_t rest = joined.mask & ~complete; rest != 0) {
    schedule->fork(*this, rest, here).state = SplitState::sync;
  }
  Split& going_on = schedule->current();
  going_on.mask = complete;
  going_on.pc = here + 1;
  if (worker->check != nullptr) {  // the op is not run again
    set_mask(complete);
    met_elsewhere = elsewhere;
    worker->check->meet(op, *this, members);
    met_elsewhere = 0;
  }
  return nullptr;
}

}  // namespace kernwright::sim
