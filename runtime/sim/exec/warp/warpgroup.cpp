// Products of warpgroups in flight, with their registers until wgmma.wait_group.
#include "sim/exec/warp/warpgroup.h"

#include "base/format.h"
#include "sim/code/program.h"
#include "sim/code/wgmma_matrix.h"
#include "sim/code/wgmma_registers.h"
#include "sim/exec/warp/lane_memory.h"
#include "sim/exec/warp/scheduler.h"
#include "sim/exec/warp/warp.h"
#include "sim/exec/watcher.h"

#include <algorithm>
#include <bit>
#include <string>
#include <utility>

namespace kernwright::sim {
namespace {

using Registers = Warpgroups::Registers;

Registers get_sums(const Warp& warp, const PendingProduct& product) {
  return {warp.program->lists.data() + product.registers, product.sums};
}

Registers get_inputs(const Warp& warp, const PendingProduct& product) {
  return {warp.program->lists.data() + product.registers + product.sums, product.inputs};
}

/// The first of `some` found in `others`, or null.
const std::uint32_t* first_common(Registers some, Registers others) {
  const auto found = std::find_first_of(some.begin(), some.end(), others.begin(), others.end());
  return found == some.end() ? nullptr : &*found;
}

std::string label(const Warp& warp, std::uint32_t name) {
  const auto& functions = warp.program->module->functions;
  const std::uint32_t function = name >> 20, reg = name & 0xfffff;
  if (function >= functions.size() || reg >= functions[function].registers.size())
    return "a register";
  return "register " + full_name(functions[function].registers[reg]);
}

}  // namespace

void Warpgroups::reset(std::uint32_t warps) {
  warps_ = warps;
  groups_.clear();
}

Warpgroups::Warpgroup& Warpgroups::find_group(const Warp& warp) {
  if (groups_.empty()) groups_.resize((warps_ + kWarpgroupWarps - 1) / kWarpgroupWarps);
  return groups_[warp.index / kWarpgroupWarps];
}

Warpgroups::Part& Warpgroups::get_part(const Warp& warp) {
  return find_group(warp).parts[warp.index % kWarpgroupWarps];
}

bool Warpgroups::has_pending(const Warp& warp) {
  if (groups_.empty()) return false;
  const Part& part = get_part(warp);
  return !part.open.empty() || !part.groups.empty();
}

/// Ends the newest product with an error returned by `touched`, and all before it: they are done in
/// order.
template <typename F>
void Warpgroups::end_products(const Op* op, Warp& warp, Part& part, F touched) {
  bool ends = false;
  const auto is_done = [&](PendingProduct& product) {  // then all before it are, too
    if (product.is_over) return true;
    if (!ends) {
      std::string what = touched(product);
      if (what.empty()) return false;
      ends = true;
      Watcher* const check = warp.worker->check;
      if (check != nullptr) check->product_touched(op, warp, std::move(what), product.op);
    }
    product.is_over = true;
    return false;
  };
  const auto any_done = [&](Products& products) {
    return std::any_of(products.rbegin(), products.rend(), is_done);
  };
  if (!any_done(part.open)) std::any_of(part.groups.rbegin(), part.groups.rend(), any_done);
}

void Warpgroups::touch(const Op* op, Warp& warp, Registers reads, Registers writes) {
  end_products(op, warp, get_part(warp), [&](const PendingProduct& product) -> std::string {
    const Registers sums = get_sums(warp, product);
    const std::uint32_t* found = first_common(reads, sums);
    const char *touched = "read", *does = "write";
    if (found == nullptr) {
      found = first_common(writes, sums);
      touched = "written";
    }
    if (found == nullptr) {
      found = first_common(writes, get_inputs(warp, product));
      does = "read";
    }
    if (found == nullptr) return {};
    return format("{} is {} while a wgmma may still {} it", label(warp, *found), touched, does);
  });
}

bool Warpgroups::may_issue(const Op* op, Warp& warp, const PendingProduct& product) {
  const std::uint32_t first = warp.index / kWarpgroupWarps * kWarpgroupWarps;
  if (first + kWarpgroupWarps > warp.block->warp_count) {
    warp.fault(op, FaultKind::sync, -1, 0, 0,
               format("wgmma is executed by four warps together, {} of the block's {} begin at "
                      "warp {}: launch whole warpgroups of 128 threads",
                      warp.block->warp_count - first, warp.block->warp_count, first));
    return false;
  }
  const Registers sums = get_sums(warp, product), inputs = get_inputs(warp, product);
  end_products(op, warp, get_part(warp), [&](const PendingProduct& other) -> std::string {
    const Registers theirs = get_sums(warp, other);
    const std::uint32_t* found = first_common(inputs, theirs);
    const char *does = "written", *which = "";
    if (found == nullptr) {
      found = first_common(sums, get_inputs(warp, other));
      does = "read";
    }
    // Products of one shape may follow each other in the same accumulators.
    if (found == nullptr && !std::ranges::equal(sums, theirs)) {
      found = first_common(sums, theirs);
      does = "written";
      which = ", whose accumulators are others";
    }
    if (found == nullptr) return {};
    return format("{} of this wgmma is still {} by an earlier one{}", label(warp, *found), does,
                  which);
  });
  return true;
}

void Warpgroups::issue(Warp& warp, const PendingProduct& product) {
  constexpr unsigned kProductCost = 500;
  warp.charge(kProductCost);
  get_part(warp).open.push_back(product);
}

void Warpgroups::commit(const Warp& warp) {
  Part& part = get_part(warp);
  part.groups.push_back(std::move(part.open));
  part.open.clear();
  ++part.committed;
}

Warpgroups::Readiness Warpgroups::readiness(const Block& block, const Warpgroup& group,
                                            std::uint32_t first, std::uint64_t target) {
  Readiness result = Readiness::ready;
  for (std::uint32_t w = 0; w < kWarpgroupWarps; ++w) {
    if (group.parts[w].committed >= target) continue;
    if (first + w >= block.warp_count || block.warps[first + w].live == 0) return Readiness::never;
    result = Readiness::waits;
  }
  return result;
}

const Op* Warpgroups::wait(const Op* op, Warp& warp, std::uint32_t left) {
  Warpgroup& group = find_group(warp);
  Part& unit = group.parts[warp.index % kWarpgroupWarps];
  const std::uint64_t target = unit.committed > left ? unit.committed - left : 0;
  if (target > group.complete) {
    const std::uint32_t first = warp.index / kWarpgroupWarps * kWarpgroupWarps;
    const Readiness ready = readiness(*warp.block, group, first, target);
    if (ready == Readiness::never)
      return warp.fault(
          op, FaultKind::sync, -1, 0, 0,
          "wgmma is executed by four warps together: one of this warpgroup has exited "
          "without the products that this one waits for");
    if (ready == Readiness::waits) {
      unit.wanted = target;
      warp.schedule->park(warp, op, SplitState::warpgroup);
      return nullptr;
    }
    group.complete = target;
  }
  for (; unit.finished < target; ++unit.finished) unit.groups.pop_front();
  return op + 1;
}

bool Warpgroups::release(Block& block) {
  if (groups_.empty()) return false;
  bool any = false;
  for (std::uint32_t w = 0; w < block.warp_count; ++w) {
    const Warp& warp = block.warps[w];
    Warp::Schedule& schedule = *warp.schedule;
    for (std::uint32_t s = 0; s < schedule.count; ++s) {
      if (schedule.splits[s].state != SplitState::warpgroup) continue;
      const Warpgroup& group = groups_[w / kWarpgroupWarps];
      const std::uint64_t wanted = group.parts[w % kWarpgroupWarps].wanted;
      const std::uint32_t first = w / kWarpgroupWarps * kWarpgroupWarps;
      if (readiness(block, group, first, wanted) == Readiness::waits) continue;
      schedule.splits[s].state = SplitState::ready;
      any = true;
    }
  }
  return any;
}

const Op* touch_product_registers(const Op* op, Warp& warp) {
  Warpgroups& products = *warp.block->warpgroups;
  if (!products.has_pending(warp)) return op + 1;
  if (op->flags != 0) {
    const std::uint32_t holds = warp.pred(op->c);
    if (((op->flags == 1 ? holds : ~holds) & warp.mask) == 0) return op + 1;
  }
  const std::uint32_t* const lists = warp.program->lists.data();
  const Registers reads{lists + op->a, static_cast<std::size_t>(op->imm)};
  const Registers writes{lists + op->b, static_cast<std::size_t>(op->imm2)};
  products.touch(op, warp, reads, writes);
  return op + 1;
}

const Op* commit_products(const Op* op, Warp& warp) {
  warp.block->warpgroups->commit(warp);
  return op + 1;
}

const Op* wait_for_products(const Op* op, Warp& warp) {
  return warp.block->warpgroups->wait(op, warp, warp.reg<std::uint32_t>(op->a)[0]);
}

void report_chunk(const Op* op, Warp& warp, std::uint64_t offset, std::uint64_t leading) {
  report_access(op, warp, std::countr_zero(warp.mask),
                {ptx::Space::shared, AccessKind::read, offset, kMatrixChunk, kMatrixChunk});
  // Bits of an address from 20 on lie in the leading offset, if they are not cut off.
  const std::uint64_t rank = warp.rank_bits >> 16;
  if (rank == 0 || (leading & rank) != rank) return;
  warp.block->fault.message +=
      "; the descriptor's leading offset has the bits of the block's rank in the cluster: "
      "make descriptors of (address & 0x3ffff) >> 4";
}

}  // namespace kernwright::sim
