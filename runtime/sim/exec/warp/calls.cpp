// Calls and returns: frames, parameter blocks, return addresses per lane.
#include "sim/exec/warp/scheduler.h"

#include "base/byte_text.h"
#include "base/format.h"
#include "sim/code/program.h"
#include "sim/code/tables.h"
#include "sim/exec/copy/strided_copy.h"

#include <algorithm>
#include <bit>

namespace kernwright::sim {
namespace {

template <typename F>
void each_lane(std::uint32_t lanes, F f) {
  if (lanes == kAllLanes) {  // a loop of vectors, where f allows
    for (std::size_t lane = 0; lane < kLanes; ++lane) f(lane);
    return;
  }
  for (; lanes != 0; lanes &= lanes - 1) f(static_cast<std::size_t>(std::countr_zero(lanes)));
}

std::uint32_t* lane_words(std::byte* frame, std::uint32_t offset) {
  return reinterpret_cast<std::uint32_t*>(frame + offset);
}

/// Copies arguments into the block at `to`.
void pass_arguments(const CallSite& site, const std::byte* caller, std::byte* to,
                    std::uint32_t stride, std::uint32_t lanes) {
  for (const CallValue& value : site.arguments) {
    copy_lanes({to + value.target, stride}, {caller + value.offset, value.stride}, value.bytes,
               lanes);
  }
}

void take_results(const CallSite& site, const std::byte* from, std::uint32_t stride,
                  std::byte* caller, std::uint32_t lanes) {
  for (const CallValue& value : site.results) {
    copy_lanes({caller + value.offset, value.stride}, {from + value.target, stride}, value.bytes,
               lanes);
  }
}

const Op* call_builtin(const Op* op, Warp& warp, const CallSite& site, const Builtin& builtin) {
  BuiltinCall call;
  call.params = warp.frame + site.block_offset;
  call.param_stride = site.block_stride;
  call.returns = warp.frame + site.return_offset;
  call.return_stride = site.return_stride;
  call.mask = warp.mask;
  pass_arguments(site, warp.frame, call.params, call.param_stride, warp.mask);
  constexpr unsigned kBuiltinCost = 100;  // of a lane; what takes longer charges more
  warp.charge(kBuiltinCost * static_cast<unsigned>(std::popcount(warp.mask)));
  builtin.run(op, warp, call);
  if (warp.stop != Stop::none) return nullptr;
  take_results(site, call.returns, call.return_stride, warp.frame, warp.mask);
  return op + 1;
}

/// Cost of a call in instructions, so that endless recursion ends: it has no backward branch. The
/// other is its cost in the fairness window, in iterations of a loop.
constexpr std::uint64_t kCallCost = 16;
constexpr std::int32_t kCallWindow = 1;

/// Moves `split` (the running one) into `function`. False after a fault.
bool enter(const Op* op, Warp& warp, Split& split, std::uint32_t function, const CallSite& site) {
  const FunctionInfo& callee = warp.program->functions[function];
  const int first = std::countr_zero(split.mask);
  if (split.depth + 1 >= kMaxCallDepth) {
    warp.fault(
        op, FaultKind::bounds, first, 0, 0,
        format("calls are nested more than {} deep: the recursion does not end", kMaxCallDepth));
    return false;
  }
  if (site.parameter_bytes != callee.parameter_bytes || site.return_bytes != callee.return_bytes) {
    warp.fault(op, FaultKind::trap, first, 0, 0,
               format("{} takes {} bytes and returns {}; the call passes {} and expects {}",
                      callee.name, callee.parameter_bytes, callee.return_bytes,
                      site.parameter_bytes, site.return_bytes));
    return false;
  }
  std::byte* const from = split.frame;
  const std::uint32_t here = warp.op_index(op);
  std::byte* const to = warp.schedule->callee_frame(warp, split.depth + 1, function);
  if (to == nullptr) {
    warp.fault(op, FaultKind::bounds, first, 0, 0,
               format("the frames of {} nested calls take more than {} in the call of {}",
                      split.depth + 1, describe_bytes(kMaxWarpFrameBytes), callee.name));
    return false;
  }
  const std::uint32_t* const tops = lane_words(from, kLocalTopOffset);
  const std::uint32_t local = callee.local_bytes;
  std::uint32_t highest = 0;
  each_lane(split.mask, [&](std::size_t lane) {
    const std::uint32_t base = (tops[lane] + 15) & ~15u;
    lane_words(to, kLocalBaseOffset)[lane] = base;
    lane_words(to, kLocalTopOffset)[lane] = base + local;
    lane_words(to, kReturnOffset)[lane] = here + 1;
    highest = std::max(highest, base);
  });
  const bool fits = local == 0 || std::uint64_t{highest} + local <= warp.local_bytes;
  if (!fits) {
    warp.fault(op, FaultKind::bounds, first, 0, 0,
               format("the stack of {} bytes per thread is used up in the call of {}",
                      warp.local_bytes, callee.name));
    return false;
  }
  pass_arguments(site, from, to + callee.parameter_base, callee.parameter_stride, split.mask);
  clear_registers(warp, function, to, split.mask);
  split.frame = to;
  split.function = function;
  split.depth += 1;
  split.pc = callee.first_op;
  return true;
}

/// Goes on with the running split at its new place: at once when nobody else is in the warp.
const Op* go_on(Warp& warp) {
  const Split& split = warp.schedule->current();
  if (warp.schedule->count == 1 && split.mask == warp.mask) {
    warp.frame = split.frame;
    return warp.code + split.pc;
  }
  warp.stop = Stop::reschedule;
  return nullptr;
}

/// Runs the running split on in `function`.
const Op* enter_function(const Op* op, Warp& warp, std::uint32_t function, const CallSite& site) {
  Split& split = warp.schedule->current();
  if (!enter(op, warp, split, function, site)) return nullptr;
  warp.executed += kCallCost;
  warp.window -= kCallWindow;
  split.window = warp.window;
  if (warp.window > 0 && warp.executed <= warp.budget) return go_on(warp);
  const bool may_wait = warp.may_wait;  // a call in a loop that waits tells nothing new
  warp.slow_back_edge(op, warp.code + split.pc);
  warp.may_wait = may_wait;
  return nullptr;
}

}  // namespace

const Op* Warp::call(const Op* op) {
  const CallSite& site = program->tables->call_sites[static_cast<std::size_t>(op->target)];
  if (const Builtin* const builtin = program->tables->builtins[site.function]) {
    return call_builtin(op, *this, site, *builtin);
  }
  return enter_function(op, *this, site.function, site);
}

const Op* Warp::call_indirect(const Op* op) {
  const CallSite& site = program->tables->call_sites[static_cast<std::size_t>(op->target)];
  const auto* pointers = reg<std::uint64_t>(op->a);
  const int first = std::countr_zero(mask);
  const std::uint64_t pointer = pointers[first];
  const std::uint64_t function = (pointer - kFunctionWindow) / 16;
  if (pointer < kFunctionWindow || pointer % 16 != 0 || function >= program->functions.size()) {
    return fault(op, FaultKind::bounds, first, pointer, 0,
                 format("the call goes to {:#x}, which is no function", pointer));
  }
  std::uint32_t group = 0;
  each_lane(mask, [&](std::size_t lane) { group |= pointers[lane] == pointer ? 1u << lane : 0u; });
  if (group != mask) schedule->fork(*this, mask & ~group, op_index(op));
  Split& split = schedule->current();
  const auto target = static_cast<std::uint32_t>(function);
  if (const Builtin* const builtin = program->tables->builtins[target]) {
    if (!suits(site, *builtin)) {
      return fault(op, FaultKind::trap, first, pointer, 0,
                   format("{} {}; the call assumes another signature", builtin->name,
                          signature_text(*builtin)));
    }
    if (group != mask) {  // run it with the group alone
      split.mask = group;
      split.pc = op_index(op);
      split.window = window;
      stop = Stop::reschedule;
      return nullptr;
    }
    return call_builtin(op, *this, site, *builtin);
  }
  if (!program->module->functions[target].has_body || program->functions[target].is_entry) {
    return fault(op, FaultKind::bounds, first, pointer, 0,
                 format("the function {} cannot be called", program->functions[target].name));
  }
  split.mask = group;
  return enter_function(op, *this, target, site);
}

const Op* Warp::ret(const Op* op) {
  Split& split = schedule->current();
  if (split.depth == 0) return exit(op);
  const FunctionInfo& callee = program->functions[split.function];
  const std::uint32_t* back = lane_words(frame, kReturnOffset);
  const std::uint32_t to = back[std::countr_zero(mask)];
  std::uint32_t group = 0;
  each_lane(mask, [&](std::size_t lane) { group |= back[lane] == to ? 1u << lane : 0u; });
  if (group != mask) schedule->fork(*this, mask & ~group, op_index(op));
  Split& returning = schedule->current();
  const CallSite& site =
      program->tables->call_sites[static_cast<std::size_t>(program->full[to - 1].target)];
  const std::uint32_t caller = program->tables->function_at(to - 1);
  std::byte* const caller_frame = schedule->frame_at(*this, returning.depth - 1, caller);
  take_results(site, frame + callee.return_base, callee.return_stride, caller_frame, group);
  returning.mask = group;
  returning.depth -= 1;
  returning.function = caller;
  returning.frame = caller_frame;
  returning.pc = to;
  returning.window = window;
  return go_on(*this);
}

}  // namespace kernwright::sim
